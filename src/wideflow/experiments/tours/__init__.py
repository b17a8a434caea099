"""The lab's guided tours as experiments: one file a paper, small enough to be watched."""

EXPERIMENTS: tuple[str, ...] = ("caron2023", "chen2022", "li2020", "ren2023", "allenzhu2018")
