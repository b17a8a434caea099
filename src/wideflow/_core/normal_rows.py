r"""Gaussian rows with a given Gram matrix: the exact law of the pre-activations at the start
(chen2022, Assumption 3).

With $W_{ij} \sim \mathcal{N}(0, 1)$ the rows of $H = W \Phi^\top / \sqrt D$ are independent and
$\mathcal{N}(0, G)$, so $H$ can be drawn without $W$. This is an equality in law, not an
approximation.
"""

import jax
import jax.numpy as jnp
import numpy as np

from .arrays import real_array
from .errors import as_key
from .precision import double


@double
def square_root(gram):
    r"""The symmetric square root $G^{1/2}$ of a positive semi-definite matrix; rounding below zero
    counts as zero.

    It exists for singular $G$ too, as for a plain shallow network with more points than inputs
    coordinates.
    """
    gram = checked_gram(gram)
    values, vectors = jnp.linalg.eigh(gram)
    return (vectors * jnp.sqrt(jnp.maximum(values, 0))) @ vectors.T


@double
def normal_rows(key, gram, rows: int):
    r"""`rows` independent draws of $\mathcal{N}(0, G)$, shape (rows, point)."""
    key, gram = as_key(key), checked_gram(gram)
    draws = jax.random.normal(key, (rows, gram.shape[0]), gram.dtype)
    return draws @ square_root(gram)


def checked_gram(gram):
    """`gram` as an array, after checking that it is square, symmetric and not negative."""
    gram = real_array("gram", gram)
    if gram.ndim != 2 or gram.shape[0] != gram.shape[1]:
        raise ValueError(f"`gram` must be a square matrix, got shape {gram.shape}.")
    values = np.asarray(gram)
    size = np.abs(values).max(initial=0.0)
    if not np.isfinite(size):
        raise ValueError("`gram` must be finite, got infinite or undefined entries.")
    # ten times the rounding of an entry in float32: Gram matrices of float32 features pass
    if np.abs(values - values.T).max(initial=0.0) > 1e-6 * size:
        raise ValueError(
            "`gram` must be symmetric, got entries that differ by "
            f"{np.abs(values - values.T).max():.3g}."
        )
    lowest = np.linalg.eigvalsh(values)[0] if values.size else 0.0
    # n entries off by 1e-6 each move an eigenvalue by n times that at most
    if lowest < -1e-6 * size * len(values):
        raise ValueError(f"`gram` must be positive semi-definite, got the eigenvalue {lowest:.3g}.")
    return gram
