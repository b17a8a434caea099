r"""$B \mapsto (K + \lambda I)^{-1}B$ for a stored kernel, within the memory budget, for as many $B$
as are asked for.

Cholesky by blocks where half of the matrix fits the budget, else preconditioned conjugate gradients
with products over the chunks (`regression.py` has both).
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from ..._core.errors import check_positive
from ..._core.memory import budget
from .block_cholesky import log_determinant, solve
from .kernel_store import StoredKernel
from .regression import (
    conjugate_gradients,
    factor_bytes,
    factor_of,
    pivoted_preconditioner,
    stored_source,
)

RANK = 200  # columns of the preconditioner, as in `regress`
TOLERANCE = 1e-11  # of every column's residual; predictions ask for more than a fit
MAX_STEPS = 2000  # of conjugate gradients, each a product with the stored kernel (chosen)


class Inverse(NamedTuple):
    r"""The inverse as a function, and $\log\det(K + \lambda I)$; NaN where there is no factor."""

    solve: Callable[[np.ndarray], np.ndarray]
    log_determinant: float


def inverse(
    stored: StoredKernel, ridge: float, memory, progress: Callable | None = None
) -> Inverse:
    r"""The inverse of $K + \lambda I$, from a factor that is computed once or by iterations.

    Args:
        stored: $K$ of the training inputs; float32 is read as float64.
        ridge: $\lambda$; positive where the factor does not fit.
        memory: bytes for the factor (`WIDEFLOW_MEMORY` if None).
        progress: called with the blocks of the factor, or the steps of a solve, that are done and
            with all of them.
    """
    source = stored_source(stored)
    block = source.block
    # a factor in float32 would lose what predictions are asked to resolve
    source = source._replace(
        precision="float64", block=lambda i, j: jnp.asarray(block(i, j), jnp.float64)
    )
    if factor_bytes(source.samples, 8) <= budget(memory):
        factor = factor_of(source, ridge, stored.chunk, progress)
        return Inverse(
            lambda b: np.asarray(solve(factor, jnp.asarray(b), stored.chunk)),
            log_determinant(factor),
        )
    check_positive("ridge", ridge, "A kernel beyond the memory budget is solved by iterations.")
    precondition = pivoted_preconditioner(source, ridge, RANK)
    product = lambda v: source.product(v) + ridge * v

    def iterate(b):
        size = np.linalg.norm(b, axis=0)
        unit = b / np.where(size > 0, size, 1.0)  # so that every column meets the tolerance
        x, residual, steps = conjugate_gradients(
            product, jnp.asarray(unit), precondition, TOLERANCE, MAX_STEPS, progress
        )
        if not residual <= TOLERANCE:
            raise ValueError(
                f"the residual is {residual:.2g} after {steps} steps over the kernel in "
                f"{str(stored.path)!r}. Raise `ridge` (now {ridge:g}), or `memory` "
                f"to {factor_bytes(source.samples, 8) / 2**30:.3g} GiB, where a factor fits."
            )
        return np.asarray(x) * size

    return Inverse(iterate, math.nan)
