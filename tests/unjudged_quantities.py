"""Quantities that an experiment's table holds to be drawn or read, and of which its paper says nothing that a claim could ask.

By experiment: the quantity, and why nothing is asked of it. `tests/experiments/test_default_sizes.py` lets no other pass.
"""

UNJUDGED: dict[str, dict[str, str]] = {}
