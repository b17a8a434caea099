"""The lab's guided tours as experiments: one file a paper, small enough to be watched."""

EXPERIMENTS: tuple[str, ...] = ("li2020", "ren2023")
