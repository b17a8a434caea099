"""The settings of the runs over widths, and the sizes at which tests run them."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class WidthSettings:
    """Widths, sample sizes and steps; names ending in 3 belong to the three-layer runs."""

    widths: tuple[int, ...] = (20, 50, 100, 200, 400, 800, 1600, 3200, 6400)
    samples: tuple[int, ...] = (100, 400)
    seeds: int = 3
    features: int = 10
    steps: int = 4000
    output_std: float = 0.3
    test_samples: int = 2000
    widths3: tuple[int, ...] = (50, 100, 200, 400, 800)
    samples3: int = 300
    seeds3: int = 1
    steps3: int = 3000


# the same small shapes in all experiments of this folder, so that one process compiles them once
SMALL: dict[str, Any] = dict(
    widths=(20, 40),
    samples=(50,),
    seeds=1,
    steps=100,
    test_samples=100,
    widths3=(20, 40),
    samples3=50,
    steps3=50,
)
