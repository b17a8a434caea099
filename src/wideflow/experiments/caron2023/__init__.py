EXPERIMENTS: tuple[str, ...] = ("figure1",)
