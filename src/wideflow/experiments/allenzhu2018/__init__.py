EXPERIMENTS: tuple[str, ...] = (
    "width",
    "three_beat_two",
    "coupling",
    "sign_changes",
    "variants",
    "spread",
    "representation",
    "descent_direction",
    "rademacher",
    "algorithm2",
)
