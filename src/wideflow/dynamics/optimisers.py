r"""Any Optax gradient transformation as a dynamics, at the rates that a model's parametrisation
asks for.
"""

import math
from typing import cast

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, PyTree

from .._core.errors import check_choice, check_flag, check_positive
from .._core.precision import double
from .._core.trees import Parameters, parameters, with_parameters
from ..models.base import adaptive_rate_factors
from .base import AbstractDynamics
from .batches import Batches, BatchState

KINDS = ("sgd", "adaptive")
PROBE_STEPS = 4  # a warm-up may start at rate 0; by then its rate is above it


class OptaxState(eqx.Module):
    """The transformation's own state, and where the batches are."""

    inner: PyTree
    batches: BatchState | None


class Optax(AbstractDynamics):
    r"""$\theta_{k+1} = \theta_k + \eta\, c\, u_k$ with $u_k$ the update of an Optax transformation
    for the plain gradient.

    $c$ are the parametrisation's factors layer by layer, as theory asks for each kind of update:
    `rate_factors` of the model where updates are proportional to the gradient (SGD, momentum),
    `adaptive_rate_factors` where their size does not depend on the gradient's (Adam, sign descent;
    under maximal update hidden rates then fall as 1/width: yang2022, Table 8). Weight decay inside
    a transformation is multiplied by the same factors.

    Args:
        transformation: for instance `optax.adam(1e-3)`, `optax.sgd(schedule, momentum=0.9)`, or a
            chain.
        batch: samples a step; None for all of them.
        rate: $\eta$, multiplies every update. Runs that differ in it alone go into one program:
            `Optax(optax.adam(1.0), rate=r)`.
        kind: "sgd" or "adaptive"; default: found out by giving the transformation a gradient and
            ten times that gradient.
        replace, order: as in `SGD`.

    A step takes time $\eta$, so that with `rate=1` time counts steps.
    """

    rate: Float[Array, ""]
    batches: Batches | None
    transformation: optax.GradientTransformationExtraArgs = eqx.field(static=True)
    kind: str = eqx.field(static=True)

    @double
    def __init__(
        self,
        transformation,
        batch: int | None = None,
        *,
        rate: float | int = 1.0,
        kind: str | None = None,
        replace: bool = False,
        order=None,
    ):
        if not (hasattr(transformation, "init") and hasattr(transformation, "update")):
            raise ValueError(
                "`transformation` must be an Optax gradient transformation such as "
                f"`optax.adam(1e-3)`, got {transformation!r}."
            )
        check_positive("rate", rate)
        if kind is not None:
            check_choice("kind", kind, KINDS)
        check_flag("replace", replace)
        if batch is None and (replace or order is not None):
            raise ValueError(
                "`replace` and `order` choose batches, so `batch` must be given with them, got "
                "None."
            )
        self.rate = jnp.asarray(float(rate))
        self.batches = None if batch is None else Batches(batch, replace, order)
        self.transformation = optax.with_extra_args_support(transformation)
        self.kind = _kind(transformation) if kind is None else kind

    @property
    def replayed(self) -> tuple[str, np.ndarray] | None:
        """As in `SGD`."""
        return self.batches and self.batches.replayed

    def init(self, model, objective, key):
        batches = self.batches and self.batches.init("Optax", model, objective, key)
        return OptaxState(self.transformation.init(parameters(model)), batches)

    def step(self, model, state, objective):
        if self.batches is None:
            (model, inner), _ = self._update((model, state.inner), objective)
            return model, OptaxState(inner, None)
        moved = (model, state.inner)
        (model, inner), batches = self.batches.step(state.batches, objective, self._update, moved)
        return model, OptaxState(inner, batches)

    def _update(self, moved, objective):
        model, inner = moved
        loss, gradient = objective.gradient(model)
        theta = parameters(model)
        updates, inner = self.transformation.update(gradient, inner, theta, value=loss)
        update = cast(Parameters, updates)  # a tree like `theta`
        adaptive = self.kind == "adaptive"
        factors = adaptive_rate_factors(model) if adaptive else model.rate_factors()
        new = {}
        for name, old in theta.items():
            factor = jnp.asarray(self.rate * factors[name]).astype(old.dtype)
            new[name] = old + factor * update[name].astype(old.dtype)
        return (with_parameters(model, new), inner), loss

    def duration(self, state, model):
        return self.rate


def _kind(transformation) -> str:
    """How updates answer a gradient ten times as large: ten times as large too, or not at all."""
    sizes = []
    try:
        for scale in (1.0, 10.0):
            theta = {"probe": jnp.zeros((2, 2))}
            # between the rounding that Adam's epsilon guards against and the norms at which
            # clipping sets in
            gradient = {"probe": scale * jnp.asarray([[1.0, -2.0], [3.0, 0.5]]) * 1e-3}
            state, total = transformation.init(theta), 0.0
            for _ in range(PROBE_STEPS):
                updates, state = optax.with_extra_args_support(transformation).update(
                    gradient, state, theta, value=jnp.zeros(())
                )
                update = cast(Parameters, updates)
                total += float(np.linalg.norm(np.asarray(update["probe"])))
            sizes.append(total)
    except Exception as error:  # whatever a transformation for other parameters raises
        raise ValueError(
            f"`transformation` cannot be tried on a small array ({error}); say with `kind` "
            "whether its updates are 'sgd' "
            "(proportional to the gradient) or 'adaptive' (of a size that does not depend on it)."
        ) from error
    # updates ~ gradient^degree, measured over one factor of ten
    degree = math.log10(sizes[1] / sizes[0]) if min(sizes) > 0 else math.nan
    for kind, expected in (("sgd", 1.0), ("adaptive", 0.0)):
        # Adam's epsilon, 1e-8 beside gradients of 1e-3, moves the degree by 1e-5 alone
        if abs(degree - expected) < 0.05:
            return kind
    raise ValueError(
        f"`transformation`'s updates grow like the gradient to the power {degree:.2f}, neither 1 "
        "nor 0; say with `kind` whether "
        "rates should be those of 'sgd' or of 'adaptive' updates."
    )
