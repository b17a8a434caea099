r"""What is read off a deep network layer by layer: feature kernels, gradient kernels, movement of
features and of weights.

Weight layer $l$ sees features $x^{l-1}$ and its pre-activations have gradients
$\delta^l = \partial f/\partial h^l$. The feature kernel is
$\Phi^l_{ij} = \langle x^l_i, x^l_j\rangle / n$ (the mean over positions where there are several),
the gradient kernel $G^l_{ij} = \langle\delta^l_i, \delta^l_j\rangle$; a dense layer's part of the
tangent kernel is $c\,\kappa^2 n\, \Phi^{l-1} \odot G^l$.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from .._core.arrays import real_array, square_matrix
from .._core.errors import check_choice, check_count, check_flag
from .._core.precision import double
from .._core.trees import parameters
from ..models.deep import Deep
from ..models.deep_gram import sides
from ..models.rescaled import Rescaled
from .base import AbstractObservable, SampleSnapshot, check_samples, probe_features
from .kernels import check_output, embedded

__all__ = [
    "ArrayMovement",
    "FeatureAlignment",
    "FeatureKernelDrift",
    "GradientKernelDrift",
    "LayerFeatureMovement",
    "centred_alignment",
    "feature_kernels",
    "gradient_kernels",
]

NORMS = ("relative", "frobenius", "spectral")


@double
def feature_kernels(model, inputs) -> dict[str, Float[Array, "sample sample"]]:
    r"""$\Phi^l$ of what every weight layer after the first sees, by the layer that it comes out of:
    `layer_1`, ...

    Args:
        model: a `Deep` network, or a rescaled one.
        inputs: one a row.
    """
    return _feature_kernels(model, embedded(model, inputs))


@double
def gradient_kernels(model, inputs, output: int = 0) -> dict[str, Float[Array, "sample sample"]]:
    r"""$G^l$ of every trained weight layer, by `layer_1`, ...; for a rescaled model those of the
    model inside.

    Args:
        model: a `Deep` network, or a rescaled one.
        inputs: one a row.
        output: which output's gradients.
    """
    features = embedded(model, inputs)
    check_output(model, features, output)
    return _gradient_kernels(model, features, output)


@double
def centred_alignment(first, second) -> Float[Array, ""]:
    r"""CKA: $\langle HKH, HLH\rangle / (\lVert HKH\rVert\, \lVert HLH\rVert)$ with
    $H = I - 11^\top/n$ (kornblith2019).

    Args:
        first, second: the kernels $K$ and $L$, shape (sample, sample).

    >>> import numpy as np
    >>> x = np.array([[1.0], [2.0], [4.0]])
    >>> round(float(centred_alignment(x @ x.T, 3 + 2 * x @ x.T)), 12)
    1.0
    """
    first = square_matrix("first", first, symmetric=False).astype(float)
    n = first.shape[0]
    second = real_array("second", second, f"({n}, {n})").astype(float)
    for name, kernel in (("first", first), ("second", second)):
        # up to rounding: the sums that are taken off have the size of the kernel itself
        centred = isinstance(kernel, Tracer) or np.ptp(_centred(np.asarray(kernel))) > 1e-14 * n * (
            np.abs(kernel).max()
        )
        if not centred:
            raise ValueError(
                f"`{name}` must vary among the samples: centred it is zero, and its direction "
                "means nothing."
            )
    return alignment(first, second)


def alignment(first, second) -> Float[Array, ""]:
    a, b = _centred(first), _centred(second)
    return jnp.sum(a * b) / (jnp.linalg.norm(a) * jnp.linalg.norm(b))


class FeatureKernelDrift(AbstractObservable):
    r"""$\lVert\Phi^l_t - \Phi^l_0\rVert_F / \lVert\Phi^l_0\rVert_F$, one number a hidden layer.

    Args:
        samples: only the first so many training inputs.
    """

    samples: int | None = eqx.field(static=True)
    name: str = eqx.field(static=True, default="feature_kernel_drift")
    label: str = eqx.field(static=True, default="‖Φ(t) − Φ(0)‖ / ‖Φ(0)‖")
    axes: tuple[str, ...] = eqx.field(static=True, default=("layer",))

    def __init__(self, samples: int | None = None):
        check_samples(samples)
        self.samples = samples

    def __call__(self, snapshot):
        features = probe_features(snapshot, self.samples)
        return _drift(*(_feature_kernels(m, features) for m in (snapshot.model, snapshot.start)))


class GradientKernelDrift(AbstractObservable):
    r"""$\lVert G^l_t - G^l_0\rVert_F / \lVert G^l_0\rVert_F$, one number a trained layer.

    Args:
        samples: only the first so many training inputs.
        output: which output's gradients.
    """

    samples: int | None = eqx.field(static=True)
    output: int = eqx.field(static=True)
    name: str = eqx.field(static=True, default="gradient_kernel_drift")
    label: str = eqx.field(static=True, default="‖G(t) − G(0)‖ / ‖G(0)‖")
    axes: tuple[str, ...] = eqx.field(static=True, default=("trained_layer",))

    def __init__(self, samples: int | None = None, output: int = 0):
        check_samples(samples)
        check_count("output", output, least=0)
        self.samples, self.output = samples, output

    def __call__(self, snapshot):
        features = probe_features(snapshot, self.samples)
        pair = (snapshot.model, snapshot.start)
        return _drift(*(_gradient_kernels(m, features, self.output) for m in pair))


class FeatureAlignment(AbstractObservable):
    r"""CKA of every hidden layer's feature kernel with the targets' $y y^\top$.

    Args:
        samples: only the first so many training inputs.
    """

    samples: int | None = eqx.field(static=True)
    name: str = eqx.field(static=True, default="feature_alignment")
    label: str = eqx.field(static=True, default="alignment of Φ with the targets (CKA)")
    axes: tuple[str, ...] = eqx.field(static=True, default=("layer",))

    def __init__(self, samples: int | None = None):
        check_samples(samples)
        self.samples = samples

    def __call__(self, snapshot: SampleSnapshot):
        kernels = _feature_kernels(snapshot.model, probe_features(snapshot, self.samples))
        y = snapshot.objective.targets.astype(jnp.float64)
        y = (y[:, None] if y.ndim == 1 else y)[: self.samples]
        return jnp.stack([alignment(k, y @ y.T) for k in kernels.values()])


class LayerFeatureMovement(AbstractObservable):
    r"""Root mean square of $h^l(x; t) - h^l(x; 0)$ over units and inputs, one number a hidden
    layer; `relative` to that of $h^l(x; 0)$ or not.

    Args:
        relative: whether to divide by the size at the start.
        samples: only the first so many training inputs.
    """

    relative: bool = eqx.field(static=True)
    samples: int | None = eqx.field(static=True)
    name: str = eqx.field(static=True, default="layer_feature_movement")
    label: str = eqx.field(static=True, default="root mean square of h(t) − h(0)")
    axes: tuple[str, ...] = eqx.field(static=True, default=("layer",))

    def __init__(self, relative: bool = False, samples: int | None = None):
        check_flag("relative", relative)
        check_samples(samples)
        self.relative, self.samples = relative, samples

    def __call__(self, snapshot):
        features = probe_features(snapshot, self.samples)
        now, start = (_deep(m).hidden(features) for m in (snapshot.model, snapshot.start))
        moved = jnp.stack([_rms(now[name] - start[name]) for name in start])
        return moved / jnp.stack([_rms(h) for h in start.values()]) if self.relative else moved


class ArrayMovement(AbstractObservable):
    r"""How far every trained array $w$ has moved: $\lVert w_t - w_0\rVert$, one number an array in
    the order of `model.trained`.

    Args:
        norm: "relative" (Frobenius, over that of $w_0$), "frobenius", or "spectral" (largest
            singular value; windows of convolutions are laid into the rows, and vectors have their
            length).
    """

    norm: str = eqx.field(static=True)
    name: str = eqx.field(static=True)
    label: str = eqx.field(static=True)
    axes: tuple[str, ...] = eqx.field(static=True, default=("array",))

    def __init__(self, norm: str = "relative"):
        check_choice("norm", norm, NORMS)
        self.norm, self.name = norm, f"array_movement_{norm}"
        self.label = f"movement of every array ({norm})"

    def __call__(self, snapshot):
        now, start = parameters(snapshot.model), parameters(snapshot.start)
        return jnp.stack([self._size(now[name], start[name]) for name in snapshot.model.trained])

    def _size(self, now, start):
        moved = (now - start).astype(jnp.float64)
        if self.norm == "spectral" and moved.ndim >= 2:
            return jnp.linalg.norm(moved.reshape(-1, moved.shape[-1]), 2)
        size = jnp.linalg.norm(moved)
        return size / jnp.linalg.norm(start) if self.norm == "relative" else size


def _deep(model) -> Deep:
    while isinstance(model, Rescaled):
        model = model.model
    if not isinstance(model, Deep):
        raise ValueError(
            "this observable looks into the layers of a `Deep` network, got "
            f"{type(model).__name__}; "
            "use `ArrayMovement`, `KernelDistance` or `LinearisationGap`, which any model has."
        )
    return model


def _feature_kernels(model, features) -> dict[str, Array]:
    """From what every weight layer but the first sees, whether trained or not."""
    deep, kernels = _deep(model), {}

    def weigh(number, layer, x):
        if number:
            flat = x.reshape(x.shape[0], -1)
            kernels[f"layer_{number}"] = (flat @ flat.T / flat.shape[1]).astype(jnp.float64)
        return deep.weigh(number, layer, x)

    deep.respond_through(features, weigh)
    return kernels


def _gradient_kernels(model, features, output: int) -> dict[str, Array]:
    kernels = {}
    for number, side in sides(_deep(model), features, output).items():
        flat = side.gradient.reshape(side.gradient.shape[0], -1)
        kernels[f"layer_{number + 1}"] = (flat @ flat.T).astype(jnp.float64)
    return kernels


def _drift(now: dict[str, Array], start: dict[str, Array]):
    size = lambda name: jnp.linalg.norm(now[name] - start[name]) / jnp.linalg.norm(start[name])
    return jnp.stack([size(name) for name in start])


def _rms(x):
    return jnp.sqrt(jnp.mean(x.astype(jnp.float64) ** 2))


def _centred(kernel):
    # H K H: first the means of columns, then those of the rows that are left
    kernel = kernel - jnp.mean(kernel, axis=0, keepdims=True)
    return kernel - jnp.mean(kernel, axis=1, keepdims=True)
