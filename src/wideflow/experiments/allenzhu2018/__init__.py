EXPERIMENTS: tuple[str, ...] = ()
