"""When two kernel matrices are the same: what a folder on disk says of the kernel in it.

Architectures are compared by their description and by the values of their activations, as two
functions of a user's own have one name and a parameter is printed in six digits; inputs by a hash
of the numbers as the kernel takes them.
"""

import hashlib
import json

import numpy as np

from .architecture_kernels import Kernels
from .layer_maps import activations_of

POINTS = np.linspace(-2.5, 2.5, 11)  # where activations are compared; 0 is among them
SAME_VALUE = 1e-12  # machines differ in the last digits of erf and exp


def identity(k: Kernels, left: np.ndarray, right: np.ndarray, kernel: str) -> dict:
    """What a kernel matrix is of, in plain numbers and text.

    Args:
        k: the kernels.
        left, right: inputs along the rows and the columns, in the precision of `k`.
        kernel: 'ntk' or 'nngp'.
    """
    activations = activations_of(k.architecture)
    return {
        "kernel": kernel,
        "architecture": repr(k.architecture),
        "activations": [np.asarray(act(POINTS), float).tolist() for act in activations],
        "parametrisation": k.parametrisation,
        "rates": list(k.rates),
        "row inputs": fingerprint(left),
        "column inputs": fingerprint(right),
    }


def differing(stored: dict, here: dict) -> list[str]:
    """The fields in which two identities differ; none where the kernels are the same."""
    fields = [name for name in here if name != "activations" and stored.get(name) != here[name]]
    if "architecture" in fields:  # other layers have other activations
        return fields
    values = [np.asarray(each.get("activations", ())) for each in (stored, here)]
    same = values[0].shape == values[1].shape and np.allclose(
        *values, rtol=SAME_VALUE, atol=SAME_VALUE, equal_nan=True
    )
    return fields if same else [*fields, "activations"]


def folder_name(described: dict, precision: str) -> str:
    """A name for the kernel of this identity: which of the two, and a hash."""
    # nine digits of the activations are the same on every machine
    rounded = [[f"{v:.8e}" for v in values] for values in described["activations"]]
    text = json.dumps({**described, "activations": rounded, "precision": precision}, sort_keys=True)
    return f"{described['kernel']}-{hashlib.sha256(text.encode()).hexdigest()[:16]}.zarr"


def fingerprint(array: np.ndarray) -> str:
    """A hash of shape, type and numbers."""
    digest = hashlib.sha256(repr((array.shape, array.dtype.str)).encode())
    digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
