r"""Exact maps between parameterisations: the same training path written in other weights (chen2022,
Table 1, Appendices B and C).

Each map takes a network and a rate of `GradientDescent` and gives an `Equivalent`: another network,
rate and factors whose path is the same at every step up to rounding. "Ours" below is `MeanField()`:
$1/m$ outside, $D^{-1/2}$ inside, neuron factor $m$.
"""

from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np

from .._core.errors import check_count, check_list, check_number, check_positive, check_same_length
from .._core.precision import double
from .._core.scalings import ABC, NTK, AbstractScaling, MeanField
from .embeddings import DeepRandomFeatures, RandomFeatures
from .shallow import Shallow, has_own_scales

__all__ = [
    "Equivalent",
    "Exponents",
    "abc_network",
    "as_xavier",
    "common_magnitude",
    "maximal_update_exponents",
    "ntk_as_mean_field",
    "ntk_exponents",
    "older_as_mean_field",
    "older_mean_field_exponents",
    "ours_exponents",
    "unit_magnitude",
    "xavier_network",
]


Scaling = TypeVar("Scaling", bound=AbstractScaling)


class Equivalent(NamedTuple):
    """Another network with the same path.

    Attributes:
        model: the other network.
        rate: with which it is trained.
        output_factor: the original outputs over those of `model`.
        target_factor: the targets for `model` over the original ones.
    """

    model: Shallow
    rate: float | int
    output_factor: float = 1.0
    target_factor: float = 1.0


@double
def ntk_as_mean_field(model: Shallow, rate: float | int) -> Equivalent:
    r"""NTK$(c, W_0, \delta)$ is ours$(\sqrt m\, c, W_0, \delta/m)$: weights and pre-activations
    agree at every step.

    So the lazy network is the mean-field one with large output weights: "lazy" and "$\hat c$ large"
    are the same thing.

    Args:
        model: a `Shallow` network in `NTK()`.
        rate: $\delta$ of its training.
    """
    _expect(model, NTK, "NTK()")
    check_positive("rate", rate)
    width = model.width
    return Equivalent(
        Shallow(
            model.hidden, width**0.5 * model.output, MeanField(), model.activation, model.embedding
        ),
        rate / width,
    )


@double
def older_as_mean_field(model: Shallow, rate: float | int) -> Equivalent:
    r"""MF$(c, W_0, \delta)$ is ours$(c, W_0/\sqrt D, \delta)$: pre-activations agree,
    $W_{MF} = \sqrt D\, W_{ours}$.

    So the older mean-field scaling, $1/D$ inside, is ours started near $h = 0$. Any
    `MeanField(hidden=q)` is mapped likewise, by $D^{1/2 - q}$.

    Args:
        model: a `Shallow` network in `MeanField(hidden=1.0)`.
        rate: $\delta$ of its training.
    """
    scaling = _expect(model, MeanField, "MeanField(hidden=1.0)")
    check_positive("rate", rate)
    features = model.weights.shape[0]
    hidden = features ** (0.5 - scaling.hidden) * model.hidden
    return Equivalent(
        Shallow(hidden, model.output, MeanField(), model.activation, model.embedding), rate
    )


@double
def unit_magnitude(model: Shallow, rate: float | int) -> Equivalent:
    r"""Output weights $\pm \hat c$: $f/\hat c$ is the network of magnitude 1 on targets $y/\hat c$
    with rate $\delta\, \hat c^2$; $h$ is the same.

    So only $\lVert y \rVert / \hat c$ matters, up to the scale of time.

    Args:
        model: a `Shallow` network whose output weights are $\pm\hat c$.
        rate: $\delta$ of its training.
    """
    magnitude = common_magnitude(model)
    check_positive("rate", rate)
    scaled = Shallow(
        model.hidden, model.output / magnitude, model.scaling, model.activation, model.embedding
    )
    return Equivalent(scaled, rate * magnitude**2, magnitude, 1 / magnitude)


@double
def as_xavier(model: Shallow, rate: float | int) -> Equivalent:
    r"""Xavier weights (Appendix B): $\theta^3 = c/\sqrt m$, $\theta^2 = W/\sqrt m$,
    $\theta^1 = Z/\sqrt m$ with no other factor, the same rate.

    Exact for a three-layer network of ours with $D = m$ and an activation positively homogeneous of
    degree 1 (relu, leaky_relu, abs, linear); then $h_{Xavier} = h_{ours}/\sqrt m$. Corrected: the
    paper says "homogeneous"; of degree $k \ne 1$ the two differ by $m^{(1-k^2)/2}$ at step 0. For
    any other activation the map is refused; `xavier_network` builds it all the same, for the
    comparison.

    Args:
        model: a `Shallow` network in `MeanField()` on `RandomFeatures`, with as many features as
            neurons.
        rate: $\delta$ of its training.
    """
    if model.activation.degree != 1.0 or _frozen(model).activation.degree != 1.0:
        raise ValueError(
            "`model` must have activations of homogeneity degree 1 for the Xavier map, got "
            f"{model.activation.name!r}. "
            "Use 'relu', 'leaky_relu', 'abs' or 'linear'."
        )
    return xavier_network(model, rate)


@double
def xavier_network(model: Shallow, rate: float | int) -> Equivalent:
    """The network of `as_xavier` without the check of homogeneity: for other activations it is
    another network.

    Args:
        model: a `Shallow` network in `MeanField()` on `RandomFeatures`, with as many features as
            neurons.
        rate: of its training.
    """
    _expect(model, MeanField, "MeanField()")
    check_positive("rate", rate)
    embedding, width = _frozen(model), model.width
    if model.weights.shape[0] != width:
        raise ValueError(
            "`model` must have as many features as neurons for the Xavier map, got "
            f"{model.weights.shape[0]} and {width}."
        )
    root = width**-0.5
    # D = m, so m^(1/2) D^(-1/2) = 1: no factor anywhere
    plain = ABC(a=(-0.5, 0.0), b=(0.5, 0.5), c=0.0)
    first = RandomFeatures(root * embedding.weights, embedding.activation)
    return Equivalent(
        Shallow(root * model.hidden, root * model.output, plain, model.activation, first), rate
    )


@dataclass(frozen=True)
class Exponents:
    r"""abc-parameterisation of a deep network of width $m$ (yang2021; chen2022, Appendix C).

    Layer $l = 1..L_h + 1$ acts as $m^{-a_l} w^l$ with entries of size $m^{-b_l}$ at the start, and
    is trained at rate $\delta\, m^{-c}$. $L_h$ counts hidden layers: a P-L network has
    $L_h = L - 1$ (corrected: the paper writes $L$ for both). The input's $1/\sqrt d$ stays outside.

    Attributes:
        a: $a_l$, one a layer.
        b: $b_l$, likewise.
        c: $c$, one for all.
    """

    a: tuple[float | int, ...]
    b: tuple[float | int, ...]
    c: float | int

    def __post_init__(self):
        for name, exponents in (("a", self.a), ("b", self.b)):
            check_list(name, exponents, "exponents, one a layer")
            for exponent in exponents:
                check_number(name, exponent)
        check_number("c", self.c)
        check_same_length(a=self.a, b=self.b)
        if len(self.a) < 2:
            raise ValueError(
                "`a` must have an exponent for each hidden layer and the output, got "
                f"{len(self.a)}."
            )

    def shifted(self, theta: float | int) -> "Exponents":
        r"""$a_l + \theta$, $b_l - \theta$, $c - 2\theta$: the same outputs at every step, for every
        activation.
        """
        check_number("theta", theta)
        return Exponents(
            tuple(a + theta for a in self.a), tuple(b - theta for b in self.b), self.c - 2 * theta
        )

    @property
    def feature_exponent(self) -> float:
        r"""$r = \min(a_o + b_o, 2 a_o + c) + c - 1 + \min_l (2 a_l + 1[l = 1])$: 0 feature
        learning, positive kernel regime, negative unstable.
        """
        # features of any trained layer reach the last one: the fastest decides
        inner = min(2 * a + (1 if layer == 0 else 0) for layer, a in enumerate(self.a[:-1]))
        return min(self.a[-1] + self.b[-1], 2 * self.a[-1] + self.c) + self.c - 1 + inner

    @property
    def partial_exponent(self) -> float:
        r"""The same with the last hidden layer alone trained: $a_o + b_o + c - 1 + 2 a_{L_h}$ (+1
        if $L_h = 1$).
        """
        return (
            self.a[-1] + self.b[-1] + self.c - 1 + 2 * self.a[-2] + (1 if len(self.a) == 2 else 0)
        )

    @property
    def nontrivial(self) -> bool:
        r"""$a_o + b_o + r = 1$ or $2 a_o + c = 1$: outputs move by order one."""
        return (
            abs(self.a[-1] + self.b[-1] + self.feature_exponent - 1) < 1e-12
            or abs(2 * self.a[-1] + self.c - 1) < 1e-12
        )


def ours_exponents(layers: int = 3) -> Exponents:
    """`MeanField()` with all frozen layers of the same width.

    Args:
        layers: $L$ of the P-L network, which counts frozen, trained and output layers.
    """
    return Exponents((0.0, *[0.5] * _inner(layers), 1.0), (0.0,) * layers, -1.0)


def maximal_update_exponents(layers: int = 3) -> Exponents:
    """Maximal update; `.shifted(0.5)` is `ours_exponents`.

    Args:
        layers: $L$ of the P-L network, which counts frozen, trained and output layers.
    """
    return Exponents((-0.5, *[0.0] * _inner(layers), 0.5), (0.5,) * layers, 0.0)


def ntk_exponents(layers: int = 3) -> Exponents:
    """`NTK()`: all factors in front of standard normal weights.

    Args:
        layers: $L$ of the P-L network, which counts frozen, trained and output layers.
    """
    return Exponents((0.0, *[0.5] * (_inner(layers) + 1)), (0.0,) * layers, 0.0)


def older_mean_field_exponents(layers: int = 3) -> Exponents:
    """`MeanField(hidden=1.0)`: stable only because the other layers are frozen (`feature_exponent`
    -2, `partial_exponent` 0 at three layers).

    Args:
        layers: $L$ of the P-L network, which counts frozen, trained and output layers.
    """
    return Exponents((0.0, *[1.0] * (_inner(layers) + 1)), (0.0,) * layers, -2.0)


@double
def abc_network(model: Shallow, exponents: Exponents) -> Shallow:
    r"""The network of given exponents with the draws of `model`, whose weights count as the
    standard ones ($b = 0$).

    `model` is a network of width $m = D$ with frozen `RandomFeatures` or `DeepRandomFeatures`. With
    `ours_exponents` it is `model` in `MeanField()`.

    Args:
        model: where the draws come from.
        exponents: as many layers as the model has, frozen ones and the output counted.
    """
    embedding, width = model.embedding, model.width
    if not isinstance(embedding, RandomFeatures | DeepRandomFeatures):
        raise ValueError(f"`model` must have a random embedding, got {type(embedding).__name__}.")
    if model.weights.shape[0] != width:
        raise ValueError(
            f"`model` must have as many features as neurons, got {model.weights.shape[0]} and "
            f"{width}."
        )
    first = embedding.weights if isinstance(embedding, RandomFeatures) else embedding.first
    inner = () if isinstance(embedding, RandomFeatures) else embedding.inner
    if len(exponents.a) != len(inner) + 3:
        raise ValueError(
            f"`exponents` must have {len(inner) + 3} layers like `model`, got {len(exponents.a)}."
        )
    size = [float(width) ** -(a + b) for a, b in zip(exponents.a, exponents.b, strict=True)]
    # the embedding divides by sqrt(D) itself
    middle = [width**0.5 * s * w for s, w in zip(size[1:-2], inner, strict=True)]
    features = DeepRandomFeatures(size[0] * first, middle, embedding.activation)
    # `Shallow` divides by sqrt(D) = m^(1/2)
    scaling = ABC(a=(exponents.a[-2] - 0.5, exponents.a[-1]), b=exponents.b[-2:], c=exponents.c)
    hidden = float(width) ** -exponents.b[-2] * model.hidden
    output = float(width) ** -exponents.b[-1] * model.output
    return Shallow(hidden, output, scaling, model.activation, features)


@double
def common_magnitude(model: Shallow) -> float:
    r"""$\hat c$, where all output weights are $\pm \hat c$ (Assumption 1).

    Args:
        model: a `Shallow` network with one output.
    """
    sizes = np.abs(np.asarray(model.output))
    magnitude = float(np.max(sizes))
    if (
        model.output.ndim != 1
        or not magnitude > 0
        or not np.all(np.abs(sizes - magnitude) <= 1e-12 * magnitude)
    ):
        raise ValueError(
            "`model` must have one output with weights of one magnitude, plus or minus; they "
            "differ."
        )
    return magnitude


def _expect(model, kind: type[Scaling], name: str) -> Scaling:
    """The model's scaling, which must be of this kind."""
    if not isinstance(model, Shallow) or not isinstance(model.scaling, kind):
        got = model.scaling if isinstance(model, Shallow) else type(model).__name__
        raise ValueError(
            f"`model` must be a `Shallow` network with the scaling `{name}`, got {got}."
        )
    if not has_own_scales(model):
        raise ValueError(
            f"`model` must have the node scales of `{name}` at its width {model.width}; it was "
            "pruned or changed. Map it before pruning."
        )
    return model.scaling


def _frozen(model) -> RandomFeatures:
    if not isinstance(model.embedding, RandomFeatures):
        raise ValueError(
            "`model` must have the embedding `RandomFeatures` for the Xavier map, got "
            f"{type(model.embedding).__name__}."
        )
    return model.embedding


def _inner(layers: int) -> int:
    check_count("layers", layers, least=2)
    return layers - 2
