r"""Training at infinite width under asymmetric node scaling: a fixed kernel beside finitely many
moving nodes.

Not in caron2023, but what its section 3 implies. As $m\to\infty$ with the sequence $\tilde\lambda$
fixed, the symmetric part of the node weights becomes a Gaussian field that moves by the mean kernel
alone, while node $j$ keeps its weight $\lambda_j = (1-\gamma)\tilde\lambda_j$ and learns features.
Keep $J$ nodes and lump everything else into a kernel of weight
$\gamma_J = \gamma + (1-\gamma)\sum_{j>J}\tilde\lambda_j$:

$$G_0\sim\mathcal N(0,\gamma_JK),\qquad u = G +
  \sum_{j\le J}\sqrt{\lambda_j}\,a_j\,\sigma(Z_j),\qquad
\dot G = \gamma_J\,\widehat\Theta^*\,(y-u),\qquad \dot w_j =
  \sqrt{\lambda_j}\,\frac{a_j}{\sqrt d}\sum_i\sigma'(Z_j(x_i))\,(y_i-u_i)\,x_i.$$

$G$ lives on the training and the test inputs together. A network of width $m$ differs from this by
$O(m^{-1/2})$, so at $m\sim10^3$ the loss is still tens of per cent off; compare the two only
coupled (same first nodes, and $G_0$ the actual output of the other nodes), through `start`.
"""

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...._core.activations import Activation, activation as as_activation
from ...._core.arrays import real_array
from ...._core.errors import check_count, check_kind, check_positive
from ...._core.precision import AbstractResult, double
from ...._core.randomness import named_key
from ...._core.scalings import AbstractScaling
from ....limits.kernels import mean_ntk, nngp
from ....limits.random_gram import limit_nodes

__all__ = ["NodeLimit", "NodeLimitPath", "node_limit", "train_node_limit"]


class NodeLimitPath(NamedTuple):
    """Recorded every `every` steps, time zero included: the loss is that of the training inputs
    before the step.
    """

    time: Float[Array, " record"]
    loss: Float[Array, " record"]
    outputs: Float[Array, "record point"]
    movement: Float[Array, "record node"]
    end: "NodeLimit"


class NodeLimit(AbstractResult):
    r"""State of the limit: moving nodes and the Gaussian field on `inputs`, the first `samples` of
    which are trained on.

    Attributes:
        hidden: $w_j$ of the moving nodes, shape (node, feature).
        signs: $a_j = \pm 1$.
        node_weights: $\lambda_j$.
        field: $G$ at all points, shape (point,).
        inputs: training inputs, then others, shape (point, feature).
        drift: $\gamma_J\Theta^*$ between all points and the training inputs, shape (point, sample).
        activation: $\sigma$.
    """

    hidden: Float[Array, "node feature"]
    signs: Float[Array, " node"]
    node_weights: Float[Array, " node"]
    field: Float[Array, " point"]
    inputs: Float[Array, "point feature"]
    drift: Float[Array, "point sample"]
    activation: Activation = eqx.field(static=True)

    @property
    def samples(self) -> int:
        return self.drift.shape[1]

    def outputs(self) -> Float[Array, " point"]:
        r"""$u = G + \sum_j\sqrt{\lambda_j}a_j\sigma(Z_j)$ at all points."""
        z = self.inputs @ self.hidden.T / math.sqrt(self.inputs.shape[1])
        return self.field + self.activation(z) @ (jnp.sqrt(self.node_weights) * self.signs)

    def moved(self, targets: Float[Array, " sample"], rate) -> "NodeLimit":
        """One Euler step of size `rate`."""
        train = self.inputs[: self.samples]
        root = math.sqrt(train.shape[1])
        remaining = targets - self.outputs()[: self.samples]
        slopes = self.activation.derivative(train @ self.hidden.T / root)
        push = (slopes * remaining[:, None]) * (jnp.sqrt(self.node_weights) * self.signs)
        return eqx.tree_at(
            lambda state: (state.hidden, state.field),
            self,
            (
                self.hidden + rate * push.T @ train / root,
                self.field + rate * self.drift @ remaining,
            ),
        )


@double
def node_limit(
    key, inputs, scaling: AbstractScaling, activation, *, nodes: int = 400, other=None, start=None
) -> NodeLimit:
    r"""The infinite-width network at time zero.

    Args:
        key: draws the $J$ nodes, their signs and $G_0$.
        inputs: training inputs, (sample, feature).
        scaling: `NTK`, `Zipf` or `Weights`.
        activation: $\sigma$.
        nodes: $J$; every node of a finite `Weights` list is kept.
        other: test inputs, (point, feature), on which $G$ is carried along.
        start: `(hidden, signs, field)` to couple with a finite network instead of drawing: its
            first $J$ weight rows and signs, and the actual output of its other nodes on training
            and test inputs.
    """
    act = as_activation(activation)
    inputs = real_array("inputs", inputs, "(sample, feature)").astype(float)
    points = inputs
    if other is not None:
        other = real_array("other", other, f"(point, {inputs.shape[1]})").astype(float)
        points = jnp.concatenate([inputs, other])
    limit = limit_nodes(scaling, nodes)
    share = limit.gamma + (1.0 - limit.gamma) * limit.tail
    weights = jnp.asarray((1.0 - limit.gamma) * limit.head)
    drift = share * mean_ntk(points, act, inputs)
    if start is not None:
        if not (isinstance(start, tuple | list) and len(start) == 3):
            raise ValueError(f"`start` must be (hidden, signs, field), got {start!r}.")
        hidden, signs, field = (real_array("start", part).astype(float) for part in start)
        expected = ((weights.shape[0], inputs.shape[1]), weights.shape, (points.shape[0],))
        if (hidden.shape, signs.shape, field.shape) != expected:
            raise ValueError(
                f"`start` must be (hidden, signs, field) of shapes {expected}, got "
                f"{(hidden.shape, signs.shape, field.shape)}."
            )
        return NodeLimit(hidden, signs, weights, field, points, drift, act)
    hidden = jax.random.normal(
        named_key(key, "hidden"), (weights.shape[0], inputs.shape[1]), dtype=inputs.dtype
    )
    signs = jax.random.rademacher(named_key(key, "output"), weights.shape, dtype=inputs.dtype)
    values, vectors = jnp.linalg.eigh(share * nngp(points, act))
    noise = jax.random.normal(named_key(key, "field"), values.shape, dtype=inputs.dtype)
    field = vectors @ (jnp.sqrt(jnp.maximum(values, 0.0)) * noise)
    return NodeLimit(hidden, signs, weights, field, points, drift, act)


@double
def train_node_limit(
    state: NodeLimit, targets, *, rate: float, steps: int, every: int = 1
) -> NodeLimitPath:
    r"""Euler steps of size `rate` of the limit dynamics on $L = \frac12\sum_i(y_i-u_i)^2$; step $k$
    is at time $k\cdot$`rate`.

    Args:
        state: where to start; `node_limit` draws it.
        targets: $y$, shape (sample,).
        rate: the size of a step.
        steps: how many.
        every: record each so many steps.
    """
    check_kind("state", state, NodeLimit, "what `node_limit` returns")
    check_positive("rate", rate)
    check_count("steps", steps)
    check_count("every", every)
    targets = real_array("targets", targets).astype(float)
    if targets.shape != (state.samples,):
        raise ValueError(f"`targets` must have shape ({state.samples},), got {targets.shape}.")
    end, (loss, outputs, movement) = _euler(state, targets, rate, steps // every, every)
    time = rate * every * jnp.arange(loss.shape[0])
    return NodeLimitPath(time, loss, outputs, movement, end)


@eqx.filter_jit
def _euler(start: NodeLimit, targets, rate, records: int, every: int):
    def record(state):
        outputs = state.outputs()
        loss = jnp.sum((targets - outputs[: state.samples]) ** 2) / 2.0
        return loss, outputs, jnp.linalg.norm(state.hidden - start.hidden, axis=1)

    def chunk(state, _):
        moved = jax.lax.fori_loop(0, every, lambda _, s: s.moved(targets, rate), state)
        return moved, record(moved)

    end, rest = jax.lax.scan(chunk, start, length=records)
    return end, jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), record(start), rest)
