"""Experiments of Ren, Zhou and Ge; see README.md for which file is which figure."""

EXPERIMENTS: tuple[str, ...] = (
    "figure2",
    "concentration",
    "separation",
    "width_scaling",
    "dimension_scaling",
    "stages",
    "regular_laws",
    "clipping",
    "deterministic",
)
