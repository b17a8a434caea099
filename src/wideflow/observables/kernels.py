r"""The tangent Gram matrix and what is read off it: drift, gap, trace, rank, alignment.

$\Theta(x, x') = c\,\langle \nabla_\theta f(x), \nabla_\theta f(x')\rangle$ with the neuron factor
$c$, so that gradient flow moves outputs by $\dot u = -\Theta\, \partial L/\partial u$ in every
scaling. For a shallow network it is a Hadamard product,
$(\Phi\Phi'^\top) \odot (S\,\mathrm{diag}(c\,\lambda A_k^2)\,S'^\top)$, $S = \sigma'(Z)$: no
Jacobian is ever formed.
"""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._core.arrays import real_array
from .._core.errors import check_choice, check_count, check_flag, check_kind
from .._core.memory import tile_rows
from .._core.node_products import symmetric_product
from .._core.precision import double
from .._core.trees import parameters, unlabelled, with_parameters
from ..dynamics.gradient_flow.jacobian import jacobian_of
from ..models import deep_gram
from ..models.base import AbstractModel
from ..models.deep import Deep
from ..models.rescaled import Rescaled
from ..models.shallow import Shallow
from .base import AbstractObservable, SampleSnapshot, Snapshot, check_samples, probe_features

__all__ = [
    "EffectiveRank",
    "KernelAlignment",
    "KernelDistance",
    "KernelMaxEigenvalue",
    "KernelMinEigenvalue",
    "KernelSpectrum",
    "KernelTrace",
    "gram_of_features",
    "tangent_gram",
    "tangent_gram_parts",
    "tangent_products",
]


def embedded(model, inputs, name: str = "inputs") -> Float[Array, "sample embedded"]:
    """Inputs as the trained part of a model sees them; the model and the inputs are checked."""
    check_kind("model", model, AbstractModel, "a wideflow model")
    return model.embed(real_array(name, inputs))


@double
def tangent_gram_parts(model, inputs, other=None, output: int = 0) -> dict[str, Array]:
    """The tangent Gram matrix's part of every trained array, by name; their sum is `tangent_gram`.

    Args:
        model: where the Jacobian is taken.
        inputs: shape (left, feature).
        other: shape (right, feature); the inputs themselves if None.
        output: which output.

    >>> import wideflow as wf
    >>> net = wf.Deep(wf.mlp(depth=1, width=1, activation="linear"), 1, [[[2.0]], [[3.0]]])
    >>> parts = wf.observables.tangent_gram_parts(net, [[1.0]])
    >>> {name: float(part[0, 0]) for name, part in parts.items()}
    {'weight_1': 9.0, 'weight_2': 4.0}
    """
    check_count("output", output, least=0)
    left = embedded(model, inputs)
    right = left if other is None else embedded(model, other, "other")
    if isinstance(model, Rescaled):
        model = model.model
    if isinstance(model, Deep):
        return deep_gram.gram_parts(model, left, None if other is None else right, output)
    ours = gradient_rows(model, left, output)
    theirs = ours if other is None else gradient_rows(model, right, output)
    return _row_products(model, ours, theirs)


@double
def tangent_products(model, inputs):
    r"""The map $v \mapsto \Theta v$ over all samples and outputs, without the matrix: one product
    with $J^\top$, one with $J$.

    `v` has the shape of the outputs. One product costs about three forward passes and holds no more
    than they do.

    Args:
        model: where the Jacobian $J$ is taken.
        inputs: shape (sample, feature).
    """
    features = embedded(model, inputs)
    jacobian = jacobian_of(model, features)
    _, here = jacobian.linearise(parameters(model))
    product = jax.jit(jacobian.gram_map(here))
    shape = str(jax.eval_shape(model.respond, features).shape)
    return double(lambda vector: product(real_array("vector", vector, shape)))


@double
def tangent_gram(model, inputs, other=None, output: int = 0) -> Float[Array, "left right"]:
    """The tangent Gram matrix of one output between `inputs` and `other` (default: themselves).

    Args:
        model: where the Jacobian is taken.
        inputs: shape (left, feature).
        other: shape (right, feature).
        output: which output.

    >>> import wideflow as wf
    >>> net = wf.Shallow([[1.0, 0.0], [0.0, 1.0]], [1.0, -1.0])
    >>> wf.observables.tangent_gram(net, [[1.0, 0.0]])  # x.x / D times half the nodes on
    Array([[0.25]], dtype=float64)
    """
    check_kind("model", model, AbstractModel, "a wideflow model")
    left = model.embed(real_array("inputs", inputs, "(sample, feature)"))
    right = left
    if other is not None:
        right = model.embed(real_array("other", other, "(sample, feature)"))
    check_output(model, left, output)
    return gram_of_features(model, left, right, output)


def check_output(model, features, output) -> None:
    """Refuses outputs that the model does not have: indexing would clamp them to the last one."""
    check_count("output", output, least=0)
    shape = jax.eval_shape(model.respond, features).shape
    count = shape[1] if len(shape) > 1 else 1
    if output >= count:
        raise ValueError(f"`output` must lie in 0..{count - 1}, the model's outputs, got {output}.")


@functools.singledispatch
def gram_of_features(model: AbstractModel, left, right, output: int = 0):
    """The same from embedded inputs; from gradient rows where no structured form is registered.

    Rows are worked off in tiles that fit the memory budget: a Jacobian is never whole.

    Args:
        model: where the Jacobian is taken; its class chooses the form.
        left, right: embedded inputs (`model.embed`), shapes (left, embedded) and (right, embedded).
        output: which output.
    """
    size = sum(leaf.size for leaf in parameters(model).values())
    tile = tile_rows(max(len(left), len(right)), 4 * left.dtype.itemsize * size)

    def block(i: int, j: int):
        ours = gradient_rows(model, left[i : i + tile], output)
        same = right is left and i == j
        theirs = ours if same else gradient_rows(model, right[j : j + tile], output)
        return sum(_row_products(model, ours, theirs).values())

    seconds = range(0, len(right), tile)
    rows = [jnp.concatenate([block(i, j) for j in seconds], 1) for i in range(0, len(left), tile)]
    return jnp.concatenate(rows)


def gradient_rows(model: AbstractModel, features, output: int = 0) -> dict[str, Array]:
    """The gradient of one output at every sample, array by array, with samples first."""

    def scalar(theta, feature):
        value = with_parameters(model, theta).respond(feature[None])[0]
        return value if value.ndim == 0 else value[output]

    return jax.vmap(jax.grad(scalar), in_axes=(None, 0))(parameters(model), features)


def _row_products(model: AbstractModel, ours, theirs) -> dict[str, Array]:
    factors = model.rate_factors()  # numbers, or one factor a neuron
    flat = lambda rows: rows.reshape(len(rows), -1)
    return {name: flat(ours[name]) @ flat(factors[name] * theirs[name]).T for name in ours}


@gram_of_features.register
def _(model: Deep, left, right, output: int = 0):
    return deep_gram.gram(model, left, None if right is left else right, output)


@gram_of_features.register
def _(model: Rescaled, left, right, output: int = 0):
    return gram_of_features(model.model, left, right, output)  # the factors cancel


@gram_of_features.register
def _(model: Shallow, left, right, output: int = 0):
    # one program for every scaling
    return _shallow_gram(unlabelled(model), left, None if right is left else right, output)


@eqx.filter_jit
def _shallow_gram(model: Shallow, left, right, output: int):
    """`right` None means `left` itself."""
    mixed = model.scales * (model.output if model.output.ndim == 1 else model.output[output])
    # c A_k^2 s^2 as its root on both sides: the product is symmetric, and half of it is enough
    scale = jnp.sqrt(model.rate_factor) * jnp.abs(mixed)
    slopes = model.activation.slope(left @ model.weights) * scale
    if right is None:
        return (left @ left.T) * symmetric_product(slopes)
    return (left @ right.T) * (slopes @ (model.activation.slope(right @ model.weights) * scale).T)


def spectral_norm(matrix: Float[Array, "sample sample"]) -> Float[Array, ""]:
    """Of a symmetric matrix, in float64."""
    return jnp.max(jnp.abs(jnp.linalg.eigvalsh(matrix.astype(jnp.float64))))


class _Watched(eqx.Module):
    """Which points and which output a kernel is watched at."""

    samples: int | None = eqx.field(static=True)
    output: int = eqx.field(static=True)

    def __check_init__(self):
        check_samples(self.samples)
        check_count("output", self.output, least=0)

    def gram(self, model, snapshot: Snapshot):
        features = probe_features(snapshot, self.samples)
        check_output(model, features, self.output)
        return gram_of_features(model, features, features, self.output).astype(jnp.float64)


class KernelDistance(AbstractObservable):
    r"""How far the tangent kernel has gone: $\lVert\Theta_t - \Theta_0\rVert$, with `relative`
    divided by $\lVert\Theta_0\rVert$.

    The table's variable is `kernel_change` for the relative Frobenius norm (the number that
    `Regime` judges by), `kernel_drift` for the absolute spectral one (that of caron2023's
    theorems), else says both.

    Args:
        norm: "frobenius" or "spectral".
        relative: whether the distance is divided by the norm of the start's matrix.
        samples: watch the first so many training inputs; None watches all.
        output: which output's kernel.
    """

    watched: _Watched
    norm: str = eqx.field(static=True)
    relative: bool = eqx.field(static=True)
    name: str = eqx.field(static=True)
    label: str = eqx.field(static=True)
    axes: tuple[str, ...] = eqx.field(static=True, default=())

    def __init__(
        self,
        norm: str = "frobenius",
        relative: bool = True,
        samples: int | None = None,
        output: int = 0,
    ):
        check_choice("norm", norm, ("frobenius", "spectral"))
        check_flag("relative", relative)
        self.watched, self.norm, self.relative = _Watched(samples, output), norm, relative
        usual = {("frobenius", True): "kernel_change", ("spectral", False): "kernel_drift"}
        name = f"kernel_distance_{norm}" + "_relative" * relative
        self.name = usual.get((norm, relative), name)
        bar = "‖₂" if norm == "spectral" else "‖"
        self.label = f"‖Θ(t) − Θ(0){bar}" + f" / ‖Θ(0){bar}" * relative

    def __call__(self, snapshot):
        now, start = (self.watched.gram(m, snapshot) for m in (snapshot.model, snapshot.start))
        size = spectral_norm if self.norm == "spectral" else jnp.linalg.norm
        distance, unit = size(now - start), size(start)
        if not self.relative:
            return distance
        # a kernel of zero that stayed zero, as of neurons that are all saturated, has not moved
        return jnp.where((unit == 0) & (distance == 0), 0.0, distance / unit)


class KernelMinEigenvalue(AbstractObservable):
    r"""$\lambda_{\min}(\Theta_t)$, the table's `kernel_gap`.

    Args:
        samples: only the first so many training inputs; their gap is at least that of all.
        output: which output's kernel.
    """

    watched: _Watched
    name: str = eqx.field(static=True, default="kernel_gap")
    label: str = eqx.field(static=True, default="smallest eigenvalue of Θ")
    axes: tuple[str, ...] = eqx.field(static=True, default=())

    def __init__(self, samples: int | None = None, output: int = 0):
        self.watched = _Watched(samples, output)

    def __call__(self, snapshot):
        return jnp.linalg.eigvalsh(self.watched.gram(snapshot.model, snapshot))[0]


class KernelMaxEigenvalue(AbstractObservable):
    r"""$\lambda_{\max}(\Theta_t)$ by power iteration, the table's `kernel_top`: descent at rate
    $\delta$ is locally stable where $\delta \lambda_{\max} < 2$ ($\delta/n$ for the mean).

    Args:
        iterations: products with the matrix at each record.
    """

    iterations: int = eqx.field(static=True)
    name: str = eqx.field(static=True, default="kernel_top")
    label: str = eqx.field(static=True, default="largest eigenvalue of Θ")
    axes: tuple[str, ...] = eqx.field(static=True, default=())

    def __init__(self, iterations: int = 60):
        check_count("iterations", iterations)
        self.iterations = iterations

    def __call__(self, snapshot):
        features = probe_features(snapshot, None)
        gram = gram_of_features(snapshot.model, features, features)
        # a start that is no eigenvector of a symmetric arrangement of points
        vector = 1 + jnp.arange(len(gram), dtype=gram.dtype) / len(gram)

        def step(_, v):
            # 1e-300: a kernel that has vanished gives 0, not NaN
            return gram @ v / jnp.maximum(jnp.linalg.norm(gram @ v), 1e-300)

        vector = jax.lax.fori_loop(0, self.iterations, step, vector)
        return vector @ gram @ vector / jnp.maximum(vector @ vector, 1e-300)


class KernelSpectrum(AbstractObservable):
    r"""All eigenvalues of $\Theta_t$, ascending.

    Args:
        samples: only the first so many training inputs.
        output: which output's kernel.
    """

    watched: _Watched
    name: str = eqx.field(static=True, default="kernel_spectrum")
    label: str = eqx.field(static=True, default="eigenvalues of Θ")
    axes: tuple[str, ...] = eqx.field(static=True, default=("eigenvalue",))

    def __init__(self, samples: int | None = None, output: int = 0):
        self.watched = _Watched(samples, output)

    def __call__(self, snapshot):
        return jnp.linalg.eigvalsh(self.watched.gram(snapshot.model, snapshot))


class KernelTrace(AbstractObservable):
    r"""$\mathrm{tr}\,\Theta_t$.

    Args:
        samples: only the first so many training inputs.
        output: which output's kernel.
    """

    watched: _Watched
    name: str = eqx.field(static=True, default="kernel_trace")
    label: str = eqx.field(static=True, default="trace of Θ")
    axes: tuple[str, ...] = eqx.field(static=True, default=())

    def __init__(self, samples: int | None = None, output: int = 0):
        self.watched = _Watched(samples, output)

    def __call__(self, snapshot):
        return jnp.trace(self.watched.gram(snapshot.model, snapshot))


class EffectiveRank(AbstractObservable):
    r"""$(\mathrm{tr}\,\Theta)^2 / \lVert\Theta\rVert_F^2$: how many directions carry the kernel; 0
    for a kernel that has vanished.

    Args:
        samples: only the first so many training inputs.
        output: which output's kernel.
    """

    watched: _Watched
    name: str = eqx.field(static=True, default="effective_rank")
    label: str = eqx.field(static=True, default="effective rank of Θ")
    axes: tuple[str, ...] = eqx.field(static=True, default=())

    def __init__(self, samples: int | None = None, output: int = 0):
        self.watched = _Watched(samples, output)

    def __call__(self, snapshot):
        gram = self.watched.gram(snapshot.model, snapshot)
        return _share(jnp.trace(gram), jnp.linalg.norm(gram)) ** 2


class KernelAlignment(AbstractObservable):
    r"""$y^\top\Theta y / (\lVert\Theta\rVert_F \lVert y\rVert^2)$ with the targets of the watched
    output; 0 where either has vanished.

    Args:
        samples: only the first so many training inputs.
        output: which output's kernel and targets.
    """

    watched: _Watched
    name: str = eqx.field(static=True, default="kernel_alignment")
    label: str = eqx.field(static=True, default="alignment of Θ with the targets")
    axes: tuple[str, ...] = eqx.field(static=True, default=())

    def __init__(self, samples: int | None = None, output: int = 0):
        self.watched = _Watched(samples, output)

    def __call__(self, snapshot: SampleSnapshot):
        gram = self.watched.gram(snapshot.model, snapshot)
        y = snapshot.objective.targets.astype(jnp.float64)
        y = (y if y.ndim == 1 else y[:, self.watched.output])[: gram.shape[0]]
        y = _share(y, jnp.linalg.norm(y))
        return _share(y @ gram @ y, jnp.linalg.norm(gram))


def _share(part, whole):
    """Their ratio; 0 of a whole that is 0 (units that are all saturated have no tangent kernel)."""
    return jnp.where(whole > 0, part / jnp.where(whole > 0, whole, 1.0), 0.0)
