"""Images with ten classes as a question of two: is the digit even?"""

import numpy as np

from ..data.dataset import Dataset


def parity(images: Dataset) -> Dataset:
    """One-hot digits (sample, 10) as targets +1 for even and -1 for odd ones; pixels that never
    vary are dropped (geiger2020).
    """
    if images.targets.ndim != 2 or images.targets.shape[1] != 10:
        raise ValueError(
            f"`images` must have one-hot targets of ten digits, got shape {images.targets.shape}."
        )
    signs = 1.0 - 2.0 * (np.argmax(images.targets, axis=1) % 2)
    varies = np.ptp(images.inputs, axis=0) > 0
    return Dataset(images.inputs[:, varies], signs, f"parity of {images.name}")
