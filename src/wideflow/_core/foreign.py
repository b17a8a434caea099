"""Other libraries: their objects known by their classes' names, so that the library need not be
imported; their functions with types.

What has no annotations gets them from the checker by its defaults (`eigsh(tol=0)` an int) and by
all that it may return.
"""

from collections.abc import Callable
from typing import Any

import numpy as np


def is_torch_module(thing) -> bool:
    """Whether it is a `torch.nn.Module`.

    >>> is_torch_module(lambda x: x)
    False
    """
    kinds = type(thing).__mro__
    return any(
        (kind.__module__, kind.__name__) == ("torch.nn.modules.module", "Module") for kind in kinds
    )


def untyped(function: Callable) -> Callable[..., Any]:
    """The function itself, for the type checker one of any arguments.

    >>> untyped(max)(1, 2)
    2
    """
    return function


def checked_rows(estimator, X, y, **options) -> tuple[np.ndarray, np.ndarray]:
    """X and y of `fit`, checked by scikit-learn.

    Args:
        estimator: keeps the number and the names of the features.
        options: of `sklearn.utils.validation.validate_data`.
    """
    from sklearn.utils.validation import validate_data

    return untyped(validate_data)(estimator, X, y, dtype=np.float64, **options)


def checked_inputs(estimator, X) -> np.ndarray:
    """X of `predict`, checked by scikit-learn against what `fit` has seen."""
    from sklearn.utils.validation import validate_data

    return untyped(validate_data)(estimator, X, reset=False, dtype=np.float64)
