r"""The mean-field limit $m \to \infty$ of a network whose hidden layer alone is trained (chen2022,
sections 2 and 3).

Two populations of neurons, $c = \pm \hat c$, each carrying its pre-activations $h \in \mathbb{R}^n$
at the training points:
$$\dot h_\pm = \mp \hat c\, G\, (\sigma'(h_\pm) \circ r), \qquad f = \tfrac{\hat c}{2}
  (E\sigma(h_+) - E\sigma(h_-)), \qquad r = f - y,$$
from $h(0) \sim \mathcal{N}(0, G)$, so that $f(0) = 0$. Solved along characteristics: nodes are put
on $h(0)$, their weights stay, and the coupled system is integrated. An odd $\sigma$ makes $h_-$ a
copy of $-h_+$ and one population suffices. New inputs are carried along: their drift is
$\mp \hat c\, G(x, \cdot) (\sigma'(h_\pm) \circ r)$ and they do not feed back.

Finite networks differ by $O(m^{-1/2})$. Time is that of the half sum of squares with neuron factor
$m$.
"""

import math
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._core.activations import activation as as_activation
from .._core.arrays import real_array
from .._core.errors import check_choice, check_count, check_positive
from .._core.gaussian import REACH, nodes
from .._core.normal_rows import checked_gram, normal_rows
from .._core.precision import AbstractResult, double
from .ridge_quads import tensor_rule

__all__ = ["MeanFieldPath", "collapsed_mean_field", "mean_field"]

LARGEST_GRID = 1_000_000  # nodes; no finer grid is tried
KINKED_GRID = 200_000  # convergence is slow there, and more nodes buy little


class MeanFieldPath(AbstractResult):
    r"""The limit along `times`; points are the training samples, then the test points.

    Attributes:
        outputs: $f_t$ at all points, shape (time, point).
        residuals: $f_t - y$, shape (time, sample).
        losses: half the sum of squares, shape (time,).
        kernels: $\hat c^2 G \circ \mathbb E[\sigma'(h)\sigma'(h)^\top]$, shape (time, sample,
            sample).
        movement: $\mathbb E|h(t) - h(0)|$, shape (time, sample).
        start: $h(0)$ of the nodes, shape (node, sample).
        stop: $h$ at the last time, shape (population, node, sample).
        weights: of the nodes, shape (node,).
        error: the change of the outputs at the last refinement of the grid; NaN where there was
            none.
        method: "grid", "particles" or "collapse".
    """

    times: jax.Array
    outputs: jax.Array
    residuals: jax.Array
    losses: jax.Array
    kernels: jax.Array
    movement: jax.Array
    start: jax.Array
    stop: jax.Array
    weights: jax.Array
    error: float
    method: str = eqx.field(static=True)


@double
def mean_field(
    gram,
    targets,
    activation,
    times,
    *,
    magnitude: float | int = 1.0,
    method: Literal["auto", "grid", "particles"] = "auto",
    particles: int = 4000,
    key=None,
    spacing: float | int | None = None,
    tolerance: float | int | None = None,
) -> MeanFieldPath:
    r"""Solves the mean-field limit.

    Args:
        gram: $G$ over the training points followed by the test points, (point, point):
            `hidden_gram`, or any embedding's Gram matrix.
        targets: $y$, one per training point; the first `len(targets)` points are the training
            points.
        activation: name or object.
        times: increasing times at which the limit is wanted, from 0 on.
        magnitude: $\hat c$.
        method: "grid" is the trapezoid rule on the whitened start, deterministic, for a training
            Gram matrix of rank at most 3; "particles" are draws of $\mathcal{N}(0, G)$, each used
            with both signs of $c$; "auto" takes the grid where the rank allows.
        particles, key: their number and the random key.
        spacing: of the grid, in standard deviations. By default it starts from a fraction of
            $\min(1/4, 0.35/s)$, $s$ the largest standard deviation, and is refined until the
            outputs change by less than 1e-10 (for an activation with kinks the error falls only
            like the spacing: 1e-5); the change is reported as `error`.
        tolerance: of the integration: relative and adaptive, 1e-10, for smooth activations; with
            kinks, where the field jumps, the fixed step in units of $1/\lambda_{\max}(K)$, 0.02.
    """
    act, gram, targets, times = _checked(gram, targets, activation, times, magnitude)
    check_choice("method", method, ("auto", "grid", "particles"))
    if spacing is not None:
        check_positive("spacing", spacing)
    samples = len(targets)
    factor, carried, spread = _whitened(gram, samples)
    rank = factor.shape[1]
    if method == "auto":
        method = "grid" if rank <= 3 else "particles"
    if method == "particles":
        check_count("particles", particles)
        if key is None:
            raise ValueError(
                "`key` must be given for particles, got None. Use `jax.random.key(0)`."
            )
        rows = normal_rows(key, gram, particles)
        weights = jnp.full(particles, 1 / particles)
        parts = rows[:, :samples], rows[:, samples:], jnp.zeros_like(spread), weights
        return _solve(act, gram, targets, times, magnitude, *parts, "particles", tolerance)
    if rank > 3:
        raise ValueError(
            f"`method` 'grid' needs a training Gram matrix of rank at most 3, got rank {rank}. "
            "Use 'particles'."
        )

    def solve(gap):
        points, weights = _product(gap, rank)
        parts = points @ factor.T, points @ carried.T, spread, weights
        return _solve(act, gram, targets, times, magnitude, *parts, "grid", tolerance)

    if spacing is not None:
        return solve(spacing)
    # the deviation of the pre-activation at each training point
    largest = float(jnp.max(jnp.linalg.norm(factor, axis=1), initial=0.0))
    gap = min(0.25, 0.35 / max(largest, 1e-300)) / (4 if act.kinks else 2 if rank < 3 else 1)
    limit, goal = (KINKED_GRID, 1e-5) if act.kinks else (LARGEST_GRID, 1e-10)
    path = solve(gap)
    # the flow sharpens the start, so finer grids are needed later on
    while (2 * REACH * 1.5 / gap + 1) ** rank <= limit:
        gap = gap / 1.5
        finer = solve(gap)
        error = float(jnp.max(jnp.abs(finer.outputs - path.outputs)))
        path = eqx.tree_at(lambda p: p.error, finer, error)
        if error <= goal * (1 + float(jnp.max(jnp.abs(finer.outputs)))):
            break
    return path


@double
def collapsed_mean_field(
    gram,
    targets,
    activation,
    times,
    *,
    magnitude: float | int = 1.0,
    tolerance: float | int | None = None,
) -> MeanFieldPath:
    r"""The limit $m, D \to \infty$ of the older mean-field scaling, $h(0) \to 0$ (chen2022, Table
    1, "MF").

    All neurons with the same sign of $c$ follow one path: the system above with every $h(0) = 0$,
    an equation in $2n$ unknowns. It needs $\sigma'(0) \ne 0$. With a kink at 0 the limit is not
    this one (signs stay those of $\mathcal{N}(0, G)$ at vanishing size): simulate it at finite $D$.

    Args:
        gram: $G$ of the training samples, then the test points, shape (point, point).
        targets: $y$, shape (sample,).
        activation: $\sigma$, smooth at 0 with a slope there.
        times: when the path is wanted, rising, none below 0.
        magnitude: $\hat c$, the size of the output weights.
        tolerance: of the integration, as in `mean_field`.
    """
    act, gram, targets, times = _checked(gram, targets, activation, times, magnitude)
    if 0.0 in act.kinks:
        raise ValueError(
            f"`activation` must be smooth at 0 for the collapsed limit, got {act.name!r}. Train "
            "a `Shallow` net with `MeanField(hidden=1.0)` instead."
        )
    if float(act.derivative(jnp.zeros(()))) == 0.0:
        raise ValueError(
            f"`activation` must have a slope at 0 for the collapsed limit, got {act.name!r}, for "
            "which nothing ever moves."
        )
    points, samples = len(gram), len(targets)
    start, rest = jnp.zeros((1, samples)), jnp.zeros((1, points - samples))
    spread, weights = jnp.zeros(points - samples), jnp.ones(1)
    return _solve(
        act, gram, targets, times, magnitude, start, rest, spread, weights, "collapse", tolerance
    )


def _solve(act, gram, targets, times, magnitude, start, rest, spread, weights, method, tolerance):
    if tolerance is None:
        tolerance = 0.02 if act.kinks else 1e-10
    check_positive("tolerance", tolerance)
    last = max(float(times[-1]), np.finfo(float).tiny)
    number = lambda value: jnp.asarray(value, float)  # an array: one program serves all numbers
    measured, shift = _integrate(
        act,
        gram,
        targets,
        times,
        number(last),
        number(magnitude),
        start,
        rest,
        spread,
        weights,
        number(tolerance),
    )
    outputs, kernels, movement = measured
    residuals = outputs[:, : len(targets)] - targets
    # h_s(t) = h(0) - chat U_s G
    stop = start - magnitude * shift @ gram[: len(targets), : len(targets)]
    return MeanFieldPath(
        times,
        outputs,
        residuals,
        0.5 * jnp.sum(residuals**2, axis=1),
        kernels,
        movement,
        start,
        stop,
        weights,
        math.nan,
        method,
    )


@eqx.filter_jit
def _integrate(act, gram, targets, times, last, magnitude, start, rest, spread, weights, tolerance):
    r"""Integrates $U_s = \int s\, \sigma'(h_s) \circ r$ for each population $s$;
    $h_s = h(0) - \hat c\, U_s G$ at every point.
    """
    from .._core.solvers import diffrax

    samples = len(targets)
    inner, outer = gram[:samples, :samples], gram[:samples, samples:]
    signs = jnp.array([1.0]) if act.odd else jnp.array([1.0, -1.0])
    share = 1.0 / len(signs)  # odd: f = chat E sigma(h+), else chat/2 (E sigma(h+) - E sigma(h-))
    # for the test points' own spread, good up to a deviation of 3
    gauss, gauss_weights = (jnp.asarray(part) for part in nodes(3.0))

    def mean(values):  # (population, node, point) -> (point,)
        return magnitude * share * jnp.einsum("s,k,skp->p", signs, weights, values)

    def here(shift):
        return start - magnitude * shift @ inner

    def field(time, shift, _):
        h = here(shift)
        residual = mean(act(h)) - targets
        return signs[:, None, None] * act.derivative(h) * residual

    def measure(time, shift, _):
        h = here(shift)
        slopes = act.derivative(h)
        kernel = magnitude**2 * inner * share * jnp.einsum("k,ska,skb->ab", weights, slopes, slopes)
        moved = share * jnp.einsum("k,ska->a", weights, jnp.abs(h - start))
        outputs = mean(act(h))
        if rest.shape[1]:
            centre = rest - magnitude * shift @ outer
            smooth = lambda node: mean(act(centre + spread * node))
            values = jax.lax.map(smooth, gauss)
            still = mean(act(centre))
            outputs = jnp.concatenate(
                [outputs, jnp.where(spread > 0, gauss_weights @ values, still)]
            )
        return outputs, kernel, moved

    if act.kinks:
        # K = chat^2 G o E[sigma' sigma'^T] has lambda_max(K) <= chat^2 sup|sigma'|^2 lambda_max(G)
        # (Schur)
        # sign and step jump and have the slope 0 elsewhere: nothing moves, at any step size
        steepest = act.lipschitz if math.isfinite(act.lipschitz) else 0.0
        fastest = magnitude**2 * steepest**2 * jnp.linalg.eigvalsh(inner)[-1]
        solver, controller, first = diffrax.Heun(), diffrax.ConstantStepSize(), tolerance / fastest
    else:
        solver, first = diffrax.Dopri8(), None
        controller = diffrax.PIDController(rtol=tolerance, atol=1e-2 * tolerance)
        controller = diffrax.ClipStepSizeController(controller, step_ts=times)  # no interpolation
    ends = diffrax.SubSaveAt(t1=True)
    saves = diffrax.SaveAt(subs=[diffrax.SubSaveAt(ts=times, fn=measure), ends])
    shift = jnp.zeros((len(signs), *start.shape))
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(field),
        solver,
        0.0,
        last,
        first,
        shift,
        saveat=saves,
        stepsize_controller=controller,
        max_steps=10_000_000,
    )
    assert solution.ys is not None  # `saveat` asks for them
    measured, final = solution.ys
    return measured, final[0]


def _whitened(gram, samples):
    r"""$h = A t$ on the training points, $h(x) = B t + s\, \xi$ at test points, with $t$, $\xi$
    standard normal; $A$ has the rank's columns.
    """
    values, vectors = np.linalg.eigh(np.asarray(gram[:samples, :samples]))
    # directions below the rounding of an eigenvalue have no variance to put nodes on
    keep = values > samples * np.finfo(float).eps * max(values[-1], 0.0)
    roots, vectors = np.sqrt(values[keep]), vectors[:, keep]
    carried = np.asarray(gram[samples:, :samples]) @ vectors / roots
    own = np.asarray(jnp.diagonal(gram))[samples:]
    left = own - np.sum(carried**2, axis=1)
    # what conditioning on the training points leaves: below 1e-14 of the variance it is rounding
    left = np.where(left > 1e-14 * np.maximum(own, 1e-300), left, 0.0)
    return jnp.asarray(vectors * roots), jnp.asarray(carried), jnp.sqrt(jnp.asarray(left))


def _product(spacing, dimensions):
    """The trapezoid rule for a standard normal vector: the product grid without its negligible
    corners, and its weights.
    """
    count = math.ceil(REACH / spacing)
    t = np.arange(-count, count + 1) * (REACH / count)
    grids, total = tensor_rule(dimensions, t, np.exp(-(t**2) / 2))
    # outside the ball the weight is below exp(-REACH^2/2) of the largest
    keep = np.sum(grids**2, axis=1) <= REACH**2
    total = total[keep]
    return jnp.asarray(grids[keep]), jnp.asarray(total / total.sum())


def _checked(gram, targets, activation, times, magnitude):
    check_positive("magnitude", magnitude)
    gram = checked_gram(real_array("gram", gram).astype(float))
    targets = real_array("targets", targets).astype(float)
    if targets.ndim != 1 or not 0 < len(targets) <= len(gram):
        raise ValueError(
            "`targets` must hold one number for each of the first points of `gram` "
            f"({len(gram)}), got shape {targets.shape}."
        )
    times = jnp.atleast_1d(real_array("times", times, "()", "(time)").astype(float))
    steps = np.diff(np.asarray(times))
    if not (np.all(np.isfinite(np.asarray(times))) and times[0] >= 0 and np.all(steps > 0)):
        raise ValueError(
            f"`times` must be finite, increasing and not negative, got {np.asarray(times)}."
        )
    return as_activation(activation), gram, targets, times
