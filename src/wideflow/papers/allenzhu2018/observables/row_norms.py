r"""Row norms $\lVert W\rVert_{2,p} = (\sum_i\lVert w_i\rVert_2^p)^{1/p}$ of increments;
$p = \infty$ is the largest row.
"""

import math

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...._core.arrays import real_array
from ...._core.errors import check_between, check_choice
from ...._core.precision import double
from ....observables.base import AbstractObservable


@double
def row_norm(matrix, power: float | int = 2.0) -> Float[Array, ""]:
    r"""$\lVert W\rVert_{2,p}$ with $p$ = `power`; 2 is Frobenius, `math.inf` the largest row norm.

    Args:
        matrix: $W$, shape (row, column).
        power: $p$, from 1 to `math.inf`.
    """
    check_between("power", power, 1.0, math.inf)
    rows = jnp.sqrt(jnp.sum(real_array("matrix", matrix, "(row, column)") ** 2, axis=1))
    if math.isinf(power):
        return jnp.max(rows)
    top = jnp.max(rows)
    safe = jnp.where(top > 0, top, 1.0)
    return safe * jnp.sum((rows / safe) ** power) ** (1 / power)


class IncrementNorm(AbstractObservable):
    r"""$\lVert W_t\rVert_{2,p}$ of one trained array (`part`: "increment", "first_increment" or
    "second_increment").

    Args:
        part: which array.
        power: $p$, from 1 to `math.inf`.
    """

    part: str = eqx.field(static=True)
    power: float = eqx.field(static=True)
    name: str = eqx.field(static=True)
    label: str = eqx.field(static=True)
    axes: tuple[str, ...] = eqx.field(static=True)

    def __init__(self, part: str = "increment", power: float | int = 2.0):
        check_choice("part", part, ("increment", "first_increment", "second_increment"))
        check_between("power", power, 1.0, math.inf)
        self.part, self.power = part, float(power)
        text = "inf" if math.isinf(power) else f"{power:g}"
        self.name, self.label, self.axes = f"{part}_norm_{text}", f"{part} norm (2,{text})", ()

    def __call__(self, snapshot):
        if self.part not in snapshot.model.trained:
            raise ValueError(f"`part` must be one of {snapshot.model.trained}, got {self.part!r}.")
        return row_norm(getattr(snapshot.model, self.part), self.power)
