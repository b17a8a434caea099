"""NumPy generators seeded from typed keys, for draws whose many shapes are not worth a compiled
program each.
"""

import jax
import numpy as np

from ...._core.randomness import named_key


def generator(key, *names: str | int) -> np.random.Generator:
    """The generator of the part called `names`."""
    return np.random.default_rng(
        np.asarray(jax.random.key_data(named_key(key, *names)), dtype=np.uint32)
    )


def biased_preactivations(rng: np.random.Generator, width: int) -> np.ndarray:
    """First-layer pre-activations on a unit input, as at the learners' start: N(0, 1/m) or N(0,
    3/m), half and half.
    """
    deviation = np.where(rng.random(width) < 0.5, 1.0, np.sqrt(3.0))
    return deviation * rng.normal(size=width) / np.sqrt(width)
