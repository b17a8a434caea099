EXPERIMENTS: tuple[str, ...] = (
    "figure1", "figure2", "figure3", "figure4", "figure5", "figure6", "figure7", "figure8", "figure9", "figure10", "figure11",
    "widths", "kinks", "limit", "guarantees", "first_step", "to_the_end",
)  # fmt: skip
