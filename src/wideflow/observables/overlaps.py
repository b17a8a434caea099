r"""Overlaps of a student with the indices of a Gaussian teacher, along a run on
`populations.MultiIndex`.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from .._core.arrays import increasing, real_values
from .._core.errors import check_between, check_same_length
from ..data.multi_index import MultiIndexObjective
from ..dynamics.base import Snapshot
from ..models.base import AbstractModel
from .base import AbstractObservable

__all__ = [
    "GeneralisationError",
    "LargestCosine",
    "StudentOverlap",
    "TeacherOverlap",
    "weak_recovery_time",
]


TeacherSnapshot = Snapshot[AbstractModel, MultiIndexObjective]


class TeacherOverlap(AbstractObservable):
    r"""$M = HV^\top$, the covariance of $\lambda = Hx$ with the indices $\rho = Vx$."""

    name: str = eqx.field(static=True, default="teacher_overlap")
    label: str = eqx.field(static=True, default="overlap M with the teacher")
    axes: tuple[str, ...] = eqx.field(static=True, default=("width", "index"))

    def __call__(self, snapshot: TeacherSnapshot):
        _, hidden = _neurons(snapshot)
        return hidden @ snapshot.objective.directions.T


class StudentOverlap(AbstractObservable):
    r"""$Q = HH^\top$."""

    name: str = eqx.field(static=True, default="student_overlap")
    label: str = eqx.field(static=True, default="overlap Q of the student")
    axes: tuple[str, ...] = eqx.field(static=True, default=("width", "other_width"))

    def __call__(self, snapshot):
        _, hidden = _neurons(snapshot)
        return hidden @ hidden.T


class GeneralisationError(AbstractObservable):
    r"""$\frac12E(f - E[y|x])^2$, whichever square is descended."""

    name: str = eqx.field(static=True, default="generalisation_error")
    label: str = eqx.field(static=True, default="generalisation error")
    axes: tuple[str, ...] = eqx.field(static=True, default=())

    def __call__(self, snapshot: TeacherSnapshot):
        _neurons(snapshot)
        return snapshot.objective.value(snapshot.model) * (0.5 / snapshot.objective.factor)


class LargestCosine(AbstractObservable):
    r"""$\max_{k,r}|\cos(h_k, v_r)|$: weak recovery is the time at which it leaves the order
    $d^{-1/2}$ of chance.
    """

    name: str = eqx.field(static=True, default="largest_cosine")
    label: str = eqx.field(static=True, default="largest |cosine| of a neuron and an index")
    axes: tuple[str, ...] = eqx.field(static=True, default=())

    def __call__(self, snapshot: TeacherSnapshot):
        _, hidden = _neurons(snapshot)
        v = snapshot.objective.directions
        size = lambda rows: jnp.linalg.norm(rows, axis=1)
        return jnp.max(jnp.abs(hidden @ v.T) / (size(hidden)[:, None] * size(v)))


def weak_recovery_time(times, cosines, threshold: float = 0.5) -> float:
    """The first time at which the recorded cosine reaches `threshold`, between records by a
    straight line; NaN where it never does.

    Args:
        times: of the records.
        cosines: one a record, for instance one entry of `LargestCosine`.

    >>> weak_recovery_time([0.0, 1.0, 2.0], [0.1, 0.4, 0.6])
    1.5
    """
    t = increasing("times", times, strictly=False)
    c = np.asarray(real_values("cosines", cosines, "(time,)"), float)
    check_same_length(times=t.tolist(), cosines=c.tolist())
    check_between("threshold", threshold, 0.0, 1.0, open=True)
    above = np.flatnonzero(c >= threshold)
    if not above.size:
        return float("nan")
    i = above[0]
    if i == 0:
        return float(t[0])
    return float(t[i - 1] + (threshold - c[i - 1]) / (c[i] - c[i - 1]) * (t[i] - t[i - 1]))


def _neurons(snapshot):
    if not hasattr(snapshot.objective, "draw"):
        raise ValueError(
            "`record` holds an observable of overlaps with a teacher; train on "
            "`populations.MultiIndex`."
        )
    return snapshot.objective.neurons(snapshot.model)
