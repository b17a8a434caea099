r"""The second exact engine: dynamics closed on the pre-activations at the training points
(chen2022, equations 10-13).

Full-batch descent and flow move the hidden weights only within the span of the training features:
$w(t) = w(0) + \Phi^\top V(t)$, with one coefficient per sample and neuron. So
$Z = \Phi w = Z(0) + K V$, $K = \Phi \Phi^\top$, and
$$V_{k+1} = V_k - \eta\, c\; \sigma'(Z_k) \odot \frac{\partial L}{\partial u} (s \odot A)^\top,
  \qquad Z_{k+1} = Z(0) + K V_{k+1}.$$
A step costs $n^2 m$ multiplications instead of $2 n D m$ and never sees $D$. Nothing is
approximated; only the rounding differs. Whenever something is recorded the weights are written out
again, so observables, test points and the final model are those of weight space.
"""

import dataclasses
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._core.activations import Activation
from .._core.node_products import spread
from .._core.trees import with_parameters
from ..data.dataset import DatasetObjective
from ..dynamics.descent import GradientDescent
from ..dynamics.flow import GradientFlow
from ..dynamics.gradient_flow.diffrax_solver import SOLVERS
from ..models.base import AbstractModel, Pullback
from ..models.shallow import Shallow
from .ensemble import Ensemble


class DualShallow(AbstractModel):
    r"""A shallow network that knows its training points alone:
    $u = \sigma(Z(0) + K V) (s \odot A)^\top$, trained in $V$.

    The objective's `features` are the Gram matrix $K$. `pullback` gives the move of $V$ that the
    gradient makes in the weights.
    """

    trained: ClassVar[tuple[str, ...]] = ("coefficients",)

    coefficients: Float[Array, "sample width"]
    start: Float[Array, "sample width"]
    mixed: Float[Array, "*output width"]
    activation: Activation = eqx.field(static=True)
    rate_factor: float = eqx.field(static=True)

    def embed(self, inputs):
        raise ValueError(
            "`inputs` other than the training points are unknown to a network in dual "
            "coordinates; convert it with `from_dual` first."
        )

    def respond(self, features) -> Float[Array, " sample *output"]:
        return self.activation(self.start + features @ self.coefficients) @ self.mixed.T

    def rate_factors(self) -> dict[str, float]:
        return {"coefficients": self.rate_factor}

    def pullback(self, features) -> tuple[Float[Array, " sample *output"], Pullback]:
        z = self.start + features @ self.coefficients
        outputs = self.activation.value(z) @ self.mixed.T

        def pull(cotangent):
            return {"coefficients": self.activation.slope(z) * spread(cotangent, self.mixed)}

        return outputs, pull


def to_dual(model: Shallow, objective: DatasetObjective) -> tuple[DualShallow, DatasetObjective]:
    """The network at its training points, and the objective that it descends."""
    features, dtype = objective.features, model.weights.dtype
    wide = features.astype(jnp.float64)  # the Gram matrix squares the condition number
    gram = (wide @ wide.T).astype(dtype)
    start = features @ model.weights
    dual = DualShallow(
        jnp.zeros_like(start),
        start,
        model.scales * model.output,
        model.activation,
        model.rate_factor,
    )
    return dual, DatasetObjective(
        objective.inputs, objective.targets, gram, objective.loss, objective.name
    )


def from_dual(dual: DualShallow, start: Shallow, objective: DatasetObjective) -> Shallow:
    r"""The whole network again: $w = w(0) + \Phi^\top V$."""
    return with_parameters(
        start, {"weights": start.weights + objective.features.T @ dual.coefficients}
    )


class FunctionSpace:
    """The engine that moves the coefficients of the training features."""

    def __init__(self, members: Ensemble):
        self.whole = members
        start, objective = members.call(
            to_dual, ("member", "objective"), members.start, members.objective
        )
        # Z(0) and K V belong to one member: the objective, which holds K, is stacked with it
        shared = (not members.several, *members.shared[1:])
        self.members = dataclasses.replace(members, start=start, objective=objective, shared=shared)

    def as_model(self, model):
        """The model as observables see it."""
        whole = self.whole
        return whole.call(
            from_dual, ("member", "member", "objective"), model, whole.start, whole.objective
        )


def function_space(
    name: str, members: Ensemble, evaluations: int, records: int
) -> FunctionSpace | None:
    """The engine for the request `name`; None where "auto" finds more multiplications in it than in
    the weights, or no way to it.

    Args:
        evaluations: steps of descent, or a guess of what a flow takes.
    """
    fault = _fault(members)
    if name == "function" and fault:
        raise ValueError(f"`engine` 'function' needs {fault}. Use engine='auto' or 'weights'.")
    if fault or (name == "auto" and not _cheaper(members, evaluations, records)):
        return None
    return FunctionSpace(members)


def _fault(members: Ensemble) -> str:
    """Why the dynamics do not close on the training points; empty where they do."""
    if type(members.start) is not Shallow:
        return f"a `Shallow` network, got {type(members.start).__name__}"
    if type(members.objective) is not DatasetObjective:
        return f"a `Dataset` of training points, got {type(members.objective).__name__}"
    dynamics = members.dynamics
    if type(dynamics) not in (GradientDescent, GradientFlow):
        return f"full-batch `GradientDescent` or `GradientFlow`, got {type(dynamics).__name__}"
    if isinstance(dynamics, GradientFlow) and dynamics.method not in SOLVERS:
        return (
            f"one of the explicit flows {', '.join(SOLVERS)}, got method {dynamics.method!r}, "
            "which closes on the samples by itself"
        )
    return ""


def _cheaper(members: Ensemble, evaluations: int, records: int) -> bool:
    features, width = members.start.weights.shape[-2:]
    samples = members.objective.features.shape[-2]
    # two products of (n, D) with (D, m) a step, pre-activations and gradient; against one of (n, n)
    # with (n, m), the weights written out at every record, and the Gram matrix once
    weights = 2 * evaluations * samples * features * width
    function = (
        evaluations * samples + (records + 1) * features
    ) * samples * width + samples**2 * features
    return function < weights
