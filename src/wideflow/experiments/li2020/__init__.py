"""li2020: one file a figure; see docs/papers/li2020.md for what each shows."""

EXPERIMENTS: tuple[str, ...] = (
    "figure1",
    "figure1_samples",
    "figure2",
    "scaling",
    "width",
    "late",
    "kernels",
    "infinite_width",
    "coupling",
    "lottery",
    "algorithm1",
)
