"""Diffrax and Optimistix, imported when an equation is first solved: a fifth of the time that
importing wideflow would else take.

A function that solves one imports this module. It may be inside a trace then, to which nothing that
the libraries build on import may belong.
"""

import jax

with jax.ensure_compile_time_eval():
    import diffrax as diffrax
    import optimistix as optimistix
