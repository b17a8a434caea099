EXPERIMENTS: tuple[str, ...] = (
    "width",
    "three_beat_two",
    "coupling",
    "sign_changes",
    "variants",
    "spread",
)
