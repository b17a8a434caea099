r"""The infinite-width limit of deep networks that learn features (bordelon2022): the public entry.

Derivation, index of the responses and map of parametrisations: `docs/theory/field-theory.md`.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..._core.activations import Activation
from ..._core.errors import as_key, check_callable, check_choice, check_count, check_positive
from ..._core.gaussian import pair_matrix
from ..._core.memory import budget
from ..._core.precision import AbstractResult, double
from ..._core.randomness import named_key
from ..._core.status import Status
from .arguments import checked_data, checked_network, half_square
from .continuity import check_continuous
from .draws import SIGNS, first_sources, signs
from .loss_estimate import loss_of_mean, summed_loss
from .march import ARRAYS_A_LAYER, march

BLOWN_UP = 1e6  # times the first loss: beyond it descent counts as diverged (chosen)


@dataclass(frozen=True)
class Problem:
    """Settings that shape a march's program; hashable, so that a compiled one is reused."""

    depth: int
    activation: Activation
    steps: int
    samples: int
    readout: str
    loss: Callable
    neurons: int


class FieldTheory(AbstractResult):
    r"""The limit along the steps of descent; points are the training samples, then the test points.

    Outputs and kernels are means over independent repeats and every `..._error` is the standard
    error of such a mean: with $R$ repeats it has $R - 1$ degrees of freedom, so that an interval is
    Student's quantile times it (3.2 at 95 % and four repeats, not 2). The bias of one repeat is of
    order 1 / samples. Losses are those of the mean outputs (`loss_estimate.py`).

    Attributes:
        times: of the steps, shape (step,).
        outputs: $f$, shape (step, point).
        losses: of the mean outputs, summed over the training points, shape (step,).
        features: $\Phi^l$ for $l = 1, \dots, L$, shape (layer, step, point, step, point).
        gradients: $G^l$, likewise.
        outputs_error, losses_error, features_error, gradients_error: their standard errors.
        forward_responses: $\bar A^lF = \langle\partial\phi(h^l_\mu(k))/\partial\zeta_a(j)\rangle$
            for $l = 1, \dots, L - 1$: to the white sources of $r^l = F\zeta$, $F$ the Cholesky
            factor of $G^{l+1}$ over rows (step, point).
        backward_responses: $\bar B^lF = \langle\partial g^{l+1}_\mu(k)/\partial\zeta_a(j)\rangle$,
            to those of $u^{l+1} = F\zeta$, $F$ the factor of $\Phi^l$.
        kernels: the tangent kernel $\Theta$, shape (step, point, point).
        sharpness: $\eta\lambda_{\max}(D^{1/2}\Theta D^{1/2})$ over the training points with
            $D = \ell''(f)$, shape (step,). From 2 on a step amplifies what it should damp.
        preactivations: $h^l$ of single neurons, shape (layer, step, point, neuron).
        status: whether it ran to the end or diverged.
    """

    times: jax.Array
    outputs: jax.Array
    outputs_error: jax.Array
    losses: jax.Array
    losses_error: jax.Array
    features: jax.Array
    features_error: jax.Array
    gradients: jax.Array
    gradients_error: jax.Array
    forward_responses: jax.Array
    backward_responses: jax.Array
    kernels: jax.Array
    sharpness: jax.Array
    preactivations: jax.Array
    status: Status = eqx.field(static=True)


@double
def field_theory(
    key,
    inputs,
    targets,
    architecture=2,
    *,
    activation=None,
    rate: float | int = 0.1,
    steps: int = 20,
    richness: float | int = 1.0,
    samples: int = 4096,
    repeats: int = 4,
    test=None,
    loss: Callable | None = None,
    readout: Literal["trained", "frozen signs"] = "trained",
    neurons: int = 0,
    memory: int | str | None = None,
) -> FieldTheory:
    r"""Solves the dynamical mean-field theory of descent at infinite width.

    The network is $h^1 = W^0 x/\sqrt D$, $h^{l+1} = W^l \phi(h^l)/\sqrt N$,
    $f = w \cdot \phi(h^L)/(\gamma_0 N)$ with standard normal weights, descent is
    $\theta \leftarrow \theta - \eta \gamma_0^2 N \nabla \sum_\mu \ell(f_\mu, y_\mu)$, and
    $N \to \infty$. Time is $k \eta$; for the flow take a small rate (the error is of first order in
    it).

    Args:
        key: of the draws.
        inputs, targets: $x$, (sample, feature), and $y$, (sample,).
        architecture: $L$, or `mlp(depth=L, activation=...)`.
        activation: $\phi$, 'tanh' by default; continuous.
        rate, steps: $\eta$ and the number of steps.
        richness: $\gamma_0$: towards 0 the tangent kernel stands still, larger values learn more
            features.
        samples: neurons drawn a layer and repeat, a multiple of 4.
        repeats: independent solutions; means and standard errors are over them.
        test: inputs that are carried along without being trained on.
        loss: $\ell(f, y)$ of one point, written with `jax.numpy`; half the square by default.
        readout: 'frozen signs' keeps $w = \pm 1$, as the shallow `mean_field` does.
        neurons: how many single neurons' pre-activations to return.
        memory: budget in bytes or as text.
    """
    depth, act = checked_network(architecture, activation)
    check_positive("rate", rate)
    check_positive("richness", richness, "For the lazy limit take a small one such as 1e-3.")
    check_count("steps", steps, least=0)
    check_count("repeats", repeats, least=2, remedy="Standard errors need two.")
    check_count("samples", samples)
    check_count("neurons", neurons, least=0, most=samples)
    check_choice("readout", readout, ("trained", "frozen signs"))
    loss = half_square if loss is None else loss
    check_callable("loss", loss, "a function of one output and one target")
    check_continuous(act)
    key = as_key(key)
    gram, targets = checked_data(inputs, targets, test)
    points, rows = len(gram), (steps + 1) * len(gram)
    if samples % SIGNS or samples < SIGNS * rows:
        raise ValueError(
            f"`samples` must be a multiple of {SIGNS} and at least {SIGNS * rows}, {SIGNS} times "
            f"the rank that the processes of {points} points at "
            f"{steps + 1} times may have, got {samples}. Draw more, or take fewer steps."
        )
    _check_memory(depth, rows, samples, repeats, memory)
    problem = Problem(depth, act, steps, samples, readout, loss, neurons)
    _check_rate(rate, gram, targets, problem)
    keys = jnp.stack([named_key(key, "repeat", number) for number in range(repeats)])
    strengths = jnp.asarray(rate, float), jnp.asarray(richness, float)
    copies = samples // len(signs(act))
    first = np.stack([first_sources(key, points, depth, copies) for key in keys])
    paths = _march_all(keys, first, gram, targets, *strengths, problem)
    summary, diverged = _summary(paths, strengths[0], gram, targets, problem)
    if bool(diverged):
        return FieldTheory(**summary, status=Status.DIVERGED)
    _warn_of_the_edge(np.asarray(summary["sharpness"]), rate)
    return FieldTheory(**summary, status=Status.FINISHED)


@eqx.filter_jit
def _march_all(keys, first, gram, targets, rate, richness, problem):
    def solve(drawn):
        key, sources = drawn
        return march(key, sources, gram, targets, rate, richness, problem)

    return jax.lax.map(solve, (keys, first))


@eqx.filter_jit
def _summary(paths, rate, gram, targets, problem) -> tuple[dict[str, jax.Array], jax.Array]:
    """The arrays of a `FieldTheory` from those of all repeats, and whether it diverged."""
    points, count, depth = len(gram), problem.steps + 1, problem.depth
    trained = paths["outputs"][..., : len(targets)]
    losses, losses_error = loss_of_mean(problem.loss, trained, targets)
    each = summed_loss(problem.loss, trained, targets)  # (repeat, step)
    mean = lambda values: jnp.mean(values, axis=0)
    # of the mean over independent repeats
    error = lambda values: jnp.std(values, axis=0, ddof=1) / np.sqrt(len(values))
    square = lambda values: values.reshape(len(values), count, points, count, points)
    features, gradients = square(mean(paths["features"])), square(mean(paths["gradients"]))
    # of the first loss of all repeats, which is the same up to rounding: outputs vanish at the
    # start
    blown_up = jnp.max(each) > BLOWN_UP * jnp.max(each[:, 0])
    kernels = _tangent_kernels(gram, features, gradients, problem)
    sharpness = _sharpness(rate, kernels, mean(trained), targets, problem)
    summary = dict(
        times=rate * jnp.arange(float(count)),
        outputs=mean(paths["outputs"]),
        outputs_error=error(paths["outputs"]),
        losses=losses,
        losses_error=losses_error,
        features=features,
        features_error=square(error(paths["features"])),
        gradients=gradients,
        gradients_error=square(error(paths["gradients"])),
        forward_responses=square(mean(paths["forward"])[: depth - 1]),
        backward_responses=square(mean(paths["backward"])[1:]),
        kernels=kernels,
        sharpness=sharpness,
        preactivations=paths["preactivations"][0].reshape(depth, count, points, problem.neurons),
    )
    return summary, blown_up | ~jnp.all(jnp.isfinite(each))


def _tangent_kernels(gram, features, gradients, problem):
    r"""$\Theta(k) = \sum_{l=0}^{L} G^{l+1}(k,k) \circ \Phi^l(k,k)$; a frozen readout has no last
    term.
    """
    at_once = lambda kernel: jnp.einsum("lkakb->lkab", kernel)
    phi, g = at_once(features), at_once(gradients)
    total = g[0] * gram + jnp.sum(g[1:] * phi[:-1], axis=0)
    return total + phi[-1] if problem.readout == "trained" else total


def _sharpness(rate, kernels, outputs, targets, problem):
    count = len(targets)
    curvature = jax.vmap(jax.vmap(jax.grad(jax.grad(problem.loss))), (0, None))(outputs, targets)
    root = jnp.sqrt(jnp.maximum(curvature, 0.0))
    weighted = root[:, :, None] * kernels[:, :count, :count] * root[:, None, :]
    return rate * jnp.linalg.eigvalsh(weighted)[:, -1]


def _warn_of_the_edge(sharpness: np.ndarray, rate) -> None:
    """Where features grow, so does the kernel: a rate that is stable at the start may not be so
    later.
    """
    step = int(np.argmax(sharpness))
    if sharpness[step] >= 2:
        warnings.warn(
            f"`rate` {rate:.3g} times the largest eigenvalue of the tangent kernel rises from "
            f"{sharpness[0]:.2g} to {sharpness[step]:.3g} at step {step}: from 2 on descent "
            "amplifies what it should damp, and finite networks leave the limit sooner. Take a "
            "smaller `rate` and more `steps`.",
            stacklevel=3,
        )


def _check_memory(depth, rows, samples, repeats, memory) -> None:
    # Updates of histories may be held twice by the compiler; six square matrices a layer in a
    # march, four in what is kept of each repeat.
    needed = 8 * depth * (2 * ARRAYS_A_LAYER * rows * samples + (6 + 4 * repeats) * rows**2)
    allowed = budget(memory)
    if needed > allowed:
        raise ValueError(
            f"`memory` allows {allowed / 2**30:.3g} GiB, but {samples} samples of {rows} rows "
            f"(steps times points) in {depth} layers need "
            f"{needed / 2**30:.3g} GiB. Take fewer `steps` or `samples`, or give "
            f"`memory='{int(np.ceil(needed / 2**30))}G'`."
        )


def _check_rate(rate, gram, targets, problem) -> None:
    """Descent on the tangent kernel at the start must be stable: rate x curvature x largest
    eigenvalue below 2.
    """
    count = len(targets)
    kernel = _kernel_at_start(gram[:count, :count], problem)
    largest = float(_largest_at_start(kernel, targets, problem.loss))
    if not rate * largest < 2:
        raise ValueError(
            f"`rate` must be below {2 / largest:.3g}, two over the largest eigenvalue of the "
            f"tangent kernel at the start, got {rate}: "
            "descent diverges. Take a smaller one."
        )


@eqx.filter_jit
def _largest_at_start(kernel, targets, loss):
    """The tangent kernel's largest eigenvalue times the loss's largest curvature at outputs 0."""
    curvature = jax.vmap(jax.grad(jax.grad(loss)))(jnp.zeros_like(targets), targets)
    return jnp.linalg.eigvalsh(kernel)[-1] * jnp.max(curvature)


def _kernel_at_start(gram, problem):
    r"""$\Theta \leftarrow \Theta \circ \mathrm{Dual}_{\phi'}(\Phi) + \mathrm{Dual}_\phi(\Phi)$
    layer by layer.
    """
    features, tangent = gram, gram
    for l in range(problem.depth):
        tangent = tangent * pair_matrix(problem.activation, features, order=1)
        features = pair_matrix(problem.activation, features)
        frozen = l == problem.depth - 1 and problem.readout == "frozen signs"
        tangent = tangent if frozen else tangent + features
    return tangent
