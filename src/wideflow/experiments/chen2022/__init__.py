"""Experiments of chen2022; see README.md beside this file."""

EXPERIMENTS: tuple[str, ...] = (
    "figure1",
    "figure2",
    "figure3",
    "figure4",
    "dashboard",
    "gram",
    "reduction",
    "limits",
)
