"""What the experiments that train several seeds together share: each seed's data and network from
the parts of its own key, and all of them trained in one program.
"""

from ...._core.randomness import named_key
from ....data.dataset import Dataset
from ....dynamics.base import AbstractDynamics
from ....dynamics.bounded_losses import Huber
from ....training.run import Run
from ....training.train import train
from ..concept_data import concept_data


def datasets(
    part: str, keys, concepts, samples: int, features: int, noise: float | int = 0.0
) -> list[Dataset]:
    """Sphere data for every seed, from the part of its key called "data" or "test".

    Args:
        concepts: one a seed.
    """
    return [
        concept_data(named_key(k, part), c, samples=samples, features=features, noise=noise)
        for k, c in zip(keys, concepts, strict=True)
    ]


def networks(kind, keys, features: int, width: int, output_std: float) -> list:
    """A start of the architecture `kind` for every seed, on padded inputs of `features` raw
    coordinates.
    """
    return [
        kind.init(
            named_key(k, "network"), features=features + 1, width=width, output_std=output_std
        )
        for k in keys
    ]


def trained(starts, data, dynamics: AbstractDynamics, steps: int, key) -> Run:
    """All seeds together, Huber loss, single precision, recorded at both ends alone."""
    return train(
        starts,
        data,
        dynamics,
        steps=steps,
        every=steps,
        loss=Huber(),
        precision="float32",
        key=key,
    )
