r"""The infinite-width limit of a multilayer mean-field network, by particles (ren2023, Appendix A).

Block $l$ is a measure $\mu^{(l)}_t$ over neurons $(a, w)$, and
$F^{(l)} = \int a\,\sigma(w\cdot F^{(l-1)})\, d\mu^{(l)}_t$. Every neuron follows the gradient of
the first variation of the loss, so that the measures solve a (McKean-Vlasov) continuity equation.
If $\mu^{(l)}_0 = \sum_j p_j \delta_{(a_j, w_j)}$ then $\mu^{(l)}_t$ is carried by the same nodes:
the limit is an ordinary differential equation in the nodes,
$$\dot\theta_j = -\frac1{p_j} \frac{\partial L}{\partial\theta_j}, \qquad L = \tfrac12
  \mathrm{mean}_x \lVert f(x) - y \rVert^2,$$
without any error in the number of nodes. It is the limit $m_l \to \infty$ of networks whose neurons
are drawn independently from the nodes with probabilities $p_j$ (`MeanFieldStack.neurons`); a
continuous $\mu_0$ is met by as many nodes as one likes.

Propagation of chaos: a network of width $m$ that starts from drawn nodes stays within $O(m^{-1/2})$
of the nodes that it drew (`StackPath.coupled_distance`), its outputs fluctuate by $O(m^{-1/2})$
around a mean that is off by $O(1/m)$.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._core.activations import ActivationLike, activation as as_activation
from .._core.arrays import real_array
from .._core.errors import check_count, check_list, check_nonnegative, check_positive
from .._core.precision import double

__all__ = ["StackPath", "stack_limit"]


@dataclass(frozen=True, eq=False)
class StackPath:
    """The limit along `times`; `outers[l]` (time, out, node) and `inners[l]` (time, node, in) are
    the nodes of block l.

    Attributes:
        outputs: shape (time, sample, output).
        losses: half the mean over samples of the squared residual, shape (time,).
        weights: those of the nodes, one array (node,) a block, constant in time.
        steps: how many the solver took.
    """

    times: np.ndarray
    outputs: np.ndarray
    losses: np.ndarray
    outers: tuple[np.ndarray, ...]
    inners: tuple[np.ndarray, ...]
    weights: tuple[np.ndarray, ...]
    steps: int

    def coupled_distance(
        self, outers: Sequence, inners: Sequence, rows: Sequence, index: int = -1
    ) -> np.ndarray:
        r"""$\bigl(\frac1{m_l}\sum_i \lVert\theta_i - \bar\theta_{j(i)}\rVert^2\bigr)^{1/2}$ for
        every block: a finite network against the nodes that it drew.

        Args:
            outers, inners: the network's arrays at the same moment, (out, width) and (width, in)
                per block.
            rows: per block, the node $j(i)$ that neuron $i$ started from.
            index: position in `times`.
        """
        distances = []
        for l, drawn in enumerate(rows):
            drawn = np.asarray(drawn)
            outer = np.asarray(outers[l]) - np.asarray(self.outers[l][index])[:, drawn]
            inner = np.asarray(inners[l]) - np.asarray(self.inners[l][index])[drawn]
            distances.append(np.sqrt(np.mean((outer**2).sum(0) + (inner**2).sum(1))))
        return np.array(distances)


@double
def stack_limit(
    layers: Sequence,
    inputs,
    targets,
    times,
    activation: ActivationLike = "relu",
    *,
    weights: Sequence | None = None,
    rate: float | None = None,
    rtol: float = 1e-8,
    atol: float = 1e-10,
    max_steps: int = 100_000,
) -> StackPath:
    r"""The mean-field limit of a stack from the given nodes on.

    Args:
        layers: pairs $(A_l, W_l)$ of shapes ($D_l$, nodes) and (nodes, $D_{l-1}$): the nodes
            $(a_j, w_j)$ of the starting measures.
        inputs, targets: (sample, feature) and (sample, output); $L$ is half the mean over samples
            of the squared residual.
        times: increasing times from 0 on.
        activation: $\sigma$, name or object.
        weights: None, or for each block None (equal weights) or the $p_j$, positive with sum 1.
        rate: if given, explicit Euler steps of this length instead of the flow, for comparison with
            descent at that rate.
        rtol, atol, max_steps: of the adaptive solver (Tsit5).

    Example:
        One linear node: $f = a w x$ at $x = 1$, $y = 0$, $a = w$, so that $\dot a = -a^3$ and
            $a(t) = (1 + 2t)^{-1/2}$.

        >>> path = stack_limit([([[1.0]], [[1.0]])], [[1.0]], [[0.0]], [1.5], "linear")
        >>> round(float(path.outers[0][-1, 0, 0]), 6)
        0.5
    """
    nodes, masses = _checked(layers, weights)
    x = real_array("inputs", inputs, "(sample, feature)").astype(float)
    y = real_array("targets", targets, "(sample,)", "(sample, output)").astype(float)
    y = y[:, None] if y.ndim == 1 else y
    expected = (x.shape[0], nodes[-1][0].shape[0])
    if x.shape[1] != nodes[0][1].shape[1]:
        raise ValueError(
            f"`inputs` must have shape (sample, {nodes[0][1].shape[1]}), got {x.shape}."
        )
    if y.shape != expected:
        raise ValueError(f"`targets` must have shape {expected}, got {y.shape}.")
    times = jnp.atleast_1d(real_array("times", times, "()", "(time,)").astype(float))
    if not (
        bool(jnp.all(jnp.diff(times) > 0))
        and float(times[0]) >= 0
        and bool(jnp.isfinite(times[-1]))
    ):
        raise ValueError(f"`times` must be finite and increasing from 0 on, got {times}.")
    if rate is not None:
        check_positive("rate", rate, remedy="For its limit leave `rate` out.")
    check_positive("rtol", rtol)
    check_nonnegative("atol", atol)
    check_count("max_steps", max_steps)
    act = as_activation(activation)
    length = (
        None if rate is None else np.asarray(float(rate))
    )  # an array: one program for all rates
    path, steps, good = _solve(act, nodes, masses, x, y, times, length, rtol, atol, max_steps)
    if not bool(good):
        raise ValueError(
            f"`max_steps` = {max_steps} solver steps did not reach time {float(times[-1]):g}; "
            "allow more steps."
        )
    outputs, losses = _along(act, path, masses, x, y)
    outers, inners = zip(*path, strict=True)
    blocks = [tuple(map(np.asarray, part)) for part in (outers, inners, masses)]
    return StackPath(
        np.asarray(times),
        np.asarray(outputs),
        np.asarray(losses),
        blocks[0],
        blocks[1],
        blocks[2],
        int(steps),
    )


def _outputs(act, nodes, masses, x):
    """The measure form: one expectation over nodes a block."""
    layer = x
    for (a, w), p in zip(nodes, masses, strict=True):
        layer = jnp.einsum("j,sj,oj->so", p, act(layer @ w.T), a)
    return layer


@eqx.filter_jit
def _along(act, path, masses, x, y):
    """Outputs and losses at all times."""
    outputs = jax.vmap(lambda at: _outputs(act, at, masses, x))(path)
    return outputs, 0.5 * jnp.mean(jnp.sum((outputs - y) ** 2, axis=2), axis=1)


@eqx.filter_jit
def _solve(act, nodes, masses, x, y, times, rate, rtol, atol, max_steps):
    from .._core.solvers import diffrax

    def loss(nodes):
        return 0.5 * jnp.mean(jnp.sum((_outputs(act, nodes, masses, x) - y) ** 2, axis=1))

    def velocity(t, nodes, args):
        pairs = zip(jax.grad(loss)(nodes), masses, strict=True)
        return tuple((-a / p, -w / p[:, None]) for (a, w), p in pairs)

    if rate is None:
        solver, control, first = diffrax.Tsit5(), diffrax.PIDController(rtol=rtol, atol=atol), None
    else:
        solver, control, first = diffrax.Euler(), diffrax.ConstantStepSize(), rate
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(velocity),
        solver,
        0.0,
        jnp.maximum(times[-1], 1e-300),
        first,
        nodes,
        saveat=diffrax.SaveAt(ts=times),
        stepsize_controller=control,
        max_steps=max_steps,
        throw=False,
    )
    good = solution.result == diffrax.RESULTS.successful
    assert solution.ys is not None  # `saveat` asks for them
    return solution.ys, solution.stats["num_accepted_steps"], good


def _checked(layers, weights):
    """Nodes and masses as arrays, or the reason why not."""
    check_list("layers", layers, "pairs (outer, inner)")
    if len(layers) == 0:
        raise ValueError("`layers` must hold at least one pair (outer, inner), got none.")
    for l, pair in enumerate(layers):
        if not (isinstance(pair, tuple | list) and len(pair) == 2):
            raise ValueError(f"`layers[{l}]` must be a pair (outer, inner), got {pair!r}.")
    pairs = [
        (real_array(f"layers[{l}]", a), real_array(f"layers[{l}]", w))
        for l, (a, w) in enumerate(layers)
    ]
    if weights is not None:
        check_list("weights", weights, "node weights, one entry a block")
    nodes = tuple((a.astype(float), w.astype(float)) for a, w in pairs)
    given = [None] * len(nodes) if weights is None else list(weights)
    if len(given) != len(nodes):
        raise ValueError(
            f"`weights` must have one entry per block ({len(nodes)}), got {len(given)}."
        )
    masses = []
    for l, (a, w) in enumerate(nodes):
        if a.ndim != 2 or w.ndim != 2 or a.shape[1] != w.shape[0]:
            raise ValueError(
                f"`layers[{l}]` must be a pair of shapes (out, node) and (node, in), got "
                f"{a.shape} and {w.shape}."
            )
        if l and w.shape[1] != nodes[l - 1][0].shape[0]:
            raise ValueError(
                f"`layers[{l}]` reads {w.shape[1]} numbers, but `layers[{l - 1}]` gives "
                f"{nodes[l - 1][0].shape[0]}."
            )
        count = w.shape[0]
        p = jnp.full(count, 1 / count)
        if given[l] is not None:
            p = real_array(f"weights[{l}]", given[l]).astype(float)
        if (
            p.shape != (count,)
            or not bool(jnp.all(p > 0))
            or not math.isclose(float(p.sum()), 1.0, abs_tol=1e-9)
        ):
            raise ValueError(
                f"`weights[{l}]` must be {count} positive numbers with sum 1, got {given[l]}."
            )
        masses.append(p)
    return nodes, tuple(masses)
