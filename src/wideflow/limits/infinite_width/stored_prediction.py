r"""Predictions from kernels on disk: the formulas of `predict.py`, from products with the kernels
and solves alone.

With $S = T\,\Theta(X, x)$ for a group of test inputs $x$, the columns of the ensemble's covariance
are
$$C(\cdot, x) = K(\cdot, x) + \Theta(\cdot, X)\,T\,\big(K S - K(X, x)\big) - K(\cdot, X)\,S,$$
so that no matrix is held but the group's. At infinite time $T = (\Theta + \lambda I)^{-1}$ is a
factor or conjugate gradients (`kernel_inverse.py`), at a finite time it acts by Lanczos' method
(`learnt_part.py`). The columns of the posterior's covariance are
$C(\cdot, x) = K(\cdot, x) - K(\cdot, X)S$ with $S = (K + \lambda I)^{-1}K(X, x)$.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..._core.memory import budget
from .kernel_identity import differing
from .kernel_inverse import inverse
from .kernel_store import StoredKernel, check_complete
from .learnt_part import apply_learnt
from .regression import factor_bytes

LANCZOS_TOLERANCE = 1e-13  # of the change over eight steps; the error is some multiple of it
LANCZOS_STEPS = 400  # products with the kernel at most; a basis of so many vectors is held
Matrix = Any  # an array, or a `StoredKernel`: both know `@`


def check_kernels(name: str, train: dict[str, Matrix], cross: tuple | None) -> None:
    """Refuses training kernels that are not whole or not of one set of inputs, and cross kernels
    that do not belong to them.

    Args:
        name: of the argument that holds the training kernels.
        train: by their kinds, 'nngp' and 'ntk'.
        cross: in the same order, or None.
    """
    if not all(isinstance(matrix, StoredKernel) for matrix in train.values()):
        raise ValueError(f"`{name}` must hold two stored kernels or two arrays, got one of each.")
    named = lambda argument, kind: argument if len(train) == 1 else f"{argument}.{kind}"
    first = next(iter(train.values())).identity
    for kind, stored in train.items():
        own = stored.identity
        reference = {**own, "kernel": kind, "row inputs": own["column inputs"]}
        _refuse(named(name, kind), stored, "of the training inputs with themselves", reference)
        reference = {**first, "kernel": kind}
        _refuse(named(name, kind), stored, "of the same architecture and inputs", reference)
    for kind, matrix in zip(train, cross or ()):
        argument = named("cross", kind)
        samples = train[kind].shape[0]
        if np.ndim(matrix) != 2 or np.shape(matrix)[1] != samples:
            raise ValueError(
                f"`{argument}` must have shape (test sample, {samples}), got {np.shape(matrix)}."
            )
        if isinstance(matrix, StoredKernel):
            reference = {**train[kind].identity, "row inputs": matrix.identity["row inputs"]}
            _refuse(argument, matrix, "of test inputs against the training kernel's", reference)


def _refuse(argument: str, stored: StoredKernel, what: str, reference: dict) -> None:
    """Refuses a stored kernel whose identity is not that of `reference`, or that is not whole."""
    fields = differing(stored.identity, reference)
    if fields:
        raise ValueError(
            f"`{argument}` must be the '{reference['kernel']}' kernel {what}, but "
            f"{str(stored.path)!r} holds another one (different: {', '.join(fields)}). "
            "Write it with `write_kernel`."
        )
    check_complete(argument, stored)


def check_factor(name: str, stored: StoredKernel, memory) -> None:
    """Refuses a determinant where no factor fits."""
    needed = factor_bytes(stored.shape[0], 8)
    if needed > budget(memory):
        raise ValueError(
            f"`memory` must be at least {needed / 2**30:.3g} GiB, the size of the factor of "
            f"`{name}` in {str(stored.path)!r}, got {budget(memory) / 2**30:.3g} GiB."
        )


def test_kernels(name: str, train: tuple, cross: tuple | None, test) -> tuple[tuple, Any]:
    """The cross kernels, and the test kernel in memory; the training inputs are their own test
    inputs where none are given.
    """
    if cross is None and test is None:
        first = f"{name}[0]" if len(train) > 1 else name
        raise ValueError(
            "`test_nngp` must be given for a stored kernel beyond the memory budget: "
            f"`{first}.diagonal()` for variances at the training inputs. "
            f"For the mean alone give `cross={name}`."
        )
    cross = train if cross is None else cross
    return tuple(m if isinstance(m, StoredKernel) else np.asarray(m) for m in cross), load(test)


def fits(samples: int, matrices: int, memory) -> bool:
    """Whether so many whole matrices of float64 fit the budget: then the formulas of `predict.py`
    are the quicker way.
    """
    return matrices * 8 * samples**2 <= budget(memory)


def load(stored: Matrix) -> Any:
    """The whole matrix in float64 where it is stored; what it is otherwise."""
    return np.asarray(stored.to_array(), float) if isinstance(stored, StoredKernel) else stored


def in_memory(name: str, matrix: Matrix, memory=None) -> Any:
    """The same for a formula that needs the matrix itself; refused where it does not fit the
    budget.
    """
    if isinstance(matrix, StoredKernel):
        check_complete(name, matrix)
        needed = 8 * matrix.shape[0] * matrix.shape[1]
        if needed > budget(memory):
            raise ValueError(
                f"`{name}` in {str(matrix.path)!r} must fit in memory here: it takes "
                f"{needed / 2**30:.3g} GiB, and the budget (WIDEFLOW_MEMORY) is "
                f"{budget(memory) / 2**30:.3g} GiB. `limits.ensemble` and `limits.regress` read "
                "a kernel chunk by chunk."
            )
    return load(matrix)


def posterior_moments(nngp: StoredKernel, y, cross: Matrix, test, ridge, memory, progress):
    """Mean (test sample, output) and covariance, variances, or None."""
    solve = inverse(nngp, ridge, memory, progress).solve
    mean = cross @ solve(y)
    if test is None:
        return mean, None
    covariance = np.array(test, float)
    for a, b, rows in _groups(cross, nngp.shape[0], 4, memory):
        solution = solve(rows.T)
        if covariance.ndim == 1:
            covariance[a:b] -= np.einsum("xs,sx->x", rows, solution)
        else:
            covariance[:, a:b] -= cross @ solution
    return mean, covariance if covariance.ndim == 1 else _symmetric(covariance)


def ensemble_moments(
    train: tuple[StoredKernel, StoredKernel], y, times, cross, test, rate, ridge, memory, progress
):
    """Mean (time, test sample, output) and covariance (time, test sample, test sample), variances,
    or None.
    """
    nngp, ntk = train
    cross_nngp, cross_ntk = cross
    learnt = learnt_operator(ntk, times, rate, ridge, memory, progress)
    mean = np.stack([cross_ntk @ c for c in learnt(y)])
    if test is None:
        return mean, None
    covariance = np.stack([np.array(test, float)] * len(times))
    # arrays of (sample, group): the rows, crossed, two products, a solution a time, and Lanczos'
    # basis
    basis = min(LANCZOS_STEPS, ntk.shape[0]) if np.isfinite(times).any() else 0
    arrays = 4 + len(times) + basis
    for a, b, rows in _groups(cross_ntk, ntk.shape[0], arrays, memory):
        crossed = _rows(cross_nngp, a, b)
        for t, S in enumerate(learnt(rows.T)):
            inner = learnt(nngp @ S - crossed.T, only=t)[0]
            if covariance.ndim == 2:
                covariance[t, a:b] += np.einsum("xs,sx->x", rows, inner)
                covariance[t, a:b] -= np.einsum("xs,sx->x", crossed, S)
            else:
                covariance[t, :, a:b] += cross_ntk @ inner - cross_nngp @ S
    return mean, covariance if covariance.ndim == 2 else _symmetric(covariance)


def learnt_operator(ntk: StoredKernel, times, rate, ridge, memory, progress=None) -> Callable:
    r"""$B \mapsto T_t B$ for all times, (time, sample, column), or for the one with number
    `only`.
    """
    times = np.asarray(times, float)
    ended = np.isinf(times)
    # made where the first infinite time needs it
    solver = functools.cache(lambda: inverse(ntk, ridge, memory, progress).solve)
    product = lambda v: ntk @ v + ridge * v
    steps: dict[str, Any] = dict(rate=rate, tolerance=LANCZOS_TOLERANCE, max_steps=LANCZOS_STEPS)
    # Lanczos' values see the largest eigenvalue and refuse a rate beyond 2 over it
    if rate is not None:
        apply_learnt(product, np.ones((ntk.shape[0], 1)), np.array([rate]), **steps)

    def apply(vectors: np.ndarray, only: int | None = None) -> np.ndarray:
        vectors = np.asarray(vectors, float)
        selection = slice(None) if only is None else slice(only, only + 1)
        moments, at_end = times[selection], ended[selection]
        parts = np.empty((len(moments), *vectors.shape))
        if at_end.any():
            parts[at_end] = solver()(vectors)
        if not at_end.all():
            parts[~at_end] = apply_learnt(
                product, vectors, moments[~at_end], progress=progress, **steps
            )
        return parts

    return apply


def _groups(
    cross: Matrix, samples: int, arrays: int, memory
) -> Iterator[tuple[int, int, np.ndarray]]:
    """Rows of the cross kernel, as many as fit when `arrays` of (sample, group) are in memory:
    first, last plus one, and the rows.
    """
    # most of the budget is the factor's
    step = max(1, budget(memory) // 4 // (8 * samples * arrays))
    for a in range(0, cross.shape[0], step):
        b = min(a + step, cross.shape[0])
        yield a, b, _rows(cross, a, b)


def _rows(cross: Matrix, a: int, b: int) -> np.ndarray:
    return np.asarray(cross.rows(a, b) if isinstance(cross, StoredKernel) else cross[a:b], float)


def _symmetric(covariance: np.ndarray) -> np.ndarray:
    """Columns are computed one group at a time: only rounding tells them from the rows."""
    return (covariance + np.swapaxes(covariance, -1, -2)) / 2
