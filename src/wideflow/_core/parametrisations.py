r"""Parametrisations: where the powers of the width stand, layer by layer.

A layer acts as $n^{-a} w$ with $w \sim N(0, n^{-2b})$ at the start and is trained at rate
$\eta\, n^{-c}$:

| parametrisation | input $(a, b, c)$ | hidden | output | |
|---|---|---|---|---|
| `NTK` | (0, 0, 0) | (1/2, 0, 0) | (1/2, 0, 0) | kernel regime |
| `STANDARD` | (0, 0, 1) | (0, 1/2, 1) | (0, 1/2, 1) | kernel regime, one rate $\eta/n$ for all layers |
| `MEAN_FIELD` | (0, 0, -1) | (1/2, 0, -1) | (1, 0, -1) | feature learning |
| `MAXIMAL_UPDATE` | (-1/2, 1/2, 0) | (0, 1/2, 0) | (1/2, 1/2, 0) | feature learning |

`MEAN_FIELD` is `MAXIMAL_UPDATE` shifted by $\theta = 1/2$, $(a + \theta, b - \theta, c - 2\theta)$:
the same training path. Constants that do not depend on the width ($\sigma_w$, $D^{-1/2}$ of $D$
inputs, the size of a convolution's window) multiply the forward pass; in `STANDARD` they multiply
the start, as in common frameworks.

**Which width.** $n$ is a hidden or output layer's own fan-in (its channels in, for convolutions)
and an input layer's fan-out. Where widths differ, the rate keeps each layer's share of the tangent
kernel: with $N$ the fan-in of the output layer, the effective matrix $W = n^{-a} w$ moves at rate
$N^{-(2a+c)}$ in an input layer and $N^{1-(2a+c)}/n$ in a hidden one, which for equal widths is
$n^{-(2a+c)}$, that is $n^{-c}$ for $w$.

**Biases** are input weights of a constant feature: those of input and hidden layers have the input
exponents, with $n$ their fan-out; the output's bias acts as it is, at rate
$N^{-\max(0, 2a_1 + c_1)}$, which is stable in all four.

**Adaptive rates.** Adam-like updates have size 1 whatever the gradient's, so $W$ moves by
$n^{-(a + c')}$ an entry at rate $n^{-c'}$. It moves by $n^{-(2a+c)} n^{-m}$ under SGD, $n^{-m}$ the
gradient's size ($m = 0$ for the output layer, else $\min(a+b, 2a+c)$ of the output layer). Adaptive
rates take the $c'$ that makes the two equal, $c' = a + c + m$: under maximal update
$a + c' = 0, 1, 1$ for input, hidden and output layers, which is Table 8 of yang2022. `STANDARD`
keeps one rate.
"""

from dataclasses import dataclass, replace

from .architecture import AbstractLayer
from .errors import check_choice, check_count, check_flag, check_kind, check_number
from .scalings import ABC
from .weight_layers import HIDDEN, INPUT, OUTPUT, WeightLayer, weight_layers

__all__ = [
    "MAXIMAL_UPDATE",
    "MEAN_FIELD",
    "NTK",
    "STANDARD",
    "Parametrisation",
    "parametrisation",
]

Exponents = tuple[float | int, ...]


@dataclass(frozen=True)
class Parametrisation:
    """Exponents (a, b, c) by the layer's role, for networks of any depth.

    Attributes:
        name: what users type.
        input, hidden, output: exponents of the first, of inner and of the last layer.
        one_rate: all weights and biases share one rate, $n^{-c}$ of the output layer, for every
            optimiser.
        constants_at_start: constants that do not depend on the width multiply the start instead of
            the forward pass.

    >>> MAXIMAL_UPDATE.abc(depth=2)
    ABC(a=(-0.5, 0.0, 0.5), b=(0.5, 0.5, 0.5), c=0.0)
    """

    name: str
    input: Exponents
    hidden: Exponents
    output: Exponents
    one_rate: bool = False
    constants_at_start: bool = False

    def __post_init__(self):
        check_kind("name", self.name, str, "text")
        for role in (INPUT, HIDDEN, OUTPUT):
            given = getattr(self, role)
            if not (isinstance(given, tuple | list) and len(given) == 3):
                raise ValueError(f"`{role}` must be three exponents (a, b, c), got {given!r}.")
            for exponent in given:
                check_number(role, exponent)
            exponents = tuple(map(float, given))
            object.__setattr__(self, role, exponents)
        check_flag("one_rate", self.one_rate)
        check_flag("constants_at_start", self.constants_at_start)
        if self.one_rate and not self.input[2] == self.hidden[2] == self.output[2]:
            raise ValueError(
                f"`one_rate` needs one exponent c in all layers, got {self.input[2]}, "
                f"{self.hidden[2]} and {self.output[2]}."
            )

    def abc(self, depth: int) -> ABC:
        """The exponents layer by layer for `depth` hidden layers, as `scalings.classify` takes
        them.
        """
        check_count("depth", depth)
        layers = (self.input, *(self.hidden,) * (depth - 1), self.output)
        a, b, c = (tuple(column) for column in zip(*layers))
        return ABC(a, b, c[0] if len(set(c)) == 1 else c)

    def with_rate_exponent(self, c: float | int) -> "Parametrisation":
        """The same start and forward pass with rate exponent `c` in every layer;
        `STANDARD.with_rate_exponent(0)` is plain training.
        """
        check_number("c", c)
        changed = {role: (*getattr(self, role)[:2], float(c)) for role in (INPUT, HIDDEN, OUTPUT)}
        return replace(self, name=f"{self.name} (c={c:g})", **changed)

    def shifted(self, theta: float) -> "Parametrisation":
        r"""The same training path: $(a + \theta, b - \theta, c - 2\theta)$ in every layer."""
        check_number("theta", theta)
        changed = {}
        for role in (INPUT, HIDDEN, OUTPUT):
            a, b, c = getattr(self, role)
            changed[role] = (a + theta, b - theta, c - 2 * theta)
        return replace(self, name=f"{self.name} (shifted by {theta:g})", **changed)


NTK = Parametrisation("ntk", (0, 0, 0), (0.5, 0, 0), (0.5, 0, 0))
STANDARD = Parametrisation(
    "standard", (0, 0, 1), (0, 0.5, 1), (0, 0.5, 1), one_rate=True, constants_at_start=True
)
MEAN_FIELD = Parametrisation("mean-field", (0, 0, -1), (0.5, 0, -1), (1, 0, -1))
MAXIMAL_UPDATE = Parametrisation("maximal-update", (-0.5, 0.5, 0), (0, 0.5, 0), (0.5, 0.5, 0))

TABLE = {p.name: p for p in (NTK, STANDARD, MEAN_FIELD, MAXIMAL_UPDATE)}


def parametrisation(given: "str | Parametrisation | ABC") -> "Parametrisation | ABC":
    """A parametrisation from its name or from itself; explicit exponents stay `ABC`.

    Args:
        given: "ntk", "standard", "mean-field" or "maximal-update", a `Parametrisation` or
            `scalings.ABC`.

    >>> parametrisation("ntk").output
    (0.5, 0.0, 0.0)
    """
    if isinstance(given, Parametrisation | ABC):
        return given
    if isinstance(given, str):
        check_choice("parametrisation", given, TABLE)
        return TABLE[given]
    raise ValueError(
        f"`parametrisation` must be a name, a `Parametrisation` or `scalings.ABC`, got {given!r}."
    )


@dataclass(frozen=True)
class LayerScale:
    """The numbers of one array: its factor in the forward pass, its deviation at the start, and its
    rates' multipliers.
    """

    factor: float
    start: float
    rate: float
    adaptive_rate: float


def layer_scales(
    architecture: AbstractLayer,
    input_shape: tuple[int, ...],
    scheme: "Parametrisation | ABC",
) -> tuple[tuple[LayerScale, LayerScale | None], ...]:
    """Scales of (weight, bias) for every weight layer; None where there is no bias."""
    layers = weight_layers(architecture, input_shape)
    exponents = _exponents(scheme, layers)
    one_rate = isinstance(scheme, Parametrisation) and scheme.one_rate
    at_start = isinstance(scheme, Parametrisation) and scheme.constants_at_start
    last_a, last_b, last_c = exponents[-1]
    readout_trained = layers[-1].layer.trained
    # the size n^-m of gradients in hidden coordinates; a frozen readout keeps its start
    m = min(last_a + last_b, 2 * last_a + last_c) if readout_trained else last_a + last_b
    final = _width(layers[-1], len(layers))
    scales = []
    for place, layer_exponents in zip(layers, exponents, strict=True):
        width = _width(place, len(layers))
        weight = _weight_scale(place, layer_exponents, width, final, m)
        bias = None
        if place.layer.bias_std is not None:
            bias = _bias_scale(place, exponents[0], final, m, len(layers))
        pair = [weight, bias]
        if one_rate:
            rate = float(final) ** -last_c
            pair = [p and replace(p, rate=rate, adaptive_rate=rate) for p in pair]
        constants = (_constant(place, width), place.layer.bias_std)
        for k, constant in enumerate(constants):
            if pair[k] is not None:
                name = "start" if at_start else "factor"
                pair[k] = replace(pair[k], **{name: getattr(pair[k], name) * constant})
        scales.append(tuple(pair))
    return tuple(scales)


def _exponents(scheme, layers: tuple[WeightLayer, ...]) -> list[Exponents]:
    if isinstance(scheme, Parametrisation):
        return [getattr(scheme, place.role) for place in layers]
    if len(scheme.a) != len(layers):
        raise ValueError(
            f"`parametrisation` has exponents for {len(scheme.a)} layers, but the architecture "
            f"has {len(layers)} "
            "with weights. Give one exponent per layer, or a `Parametrisation`, which fits any "
            "depth."
        )
    return list(zip(scheme.a, scheme.b, scheme.rate_exponents, strict=True))


def _width(place: WeightLayer, count: int) -> int:
    """The width $n$ that a layer's exponents belong to; a network of one layer has none."""
    if count == 1:
        return 1
    return place.channels_out if place.role == INPUT else place.channels_in


def _constant(place: WeightLayer, width: int) -> float:
    r"""$\sigma_w$ and what of $\text{fan-in}^{-1/2}$ does not grow with the width."""
    growing = 1 if place.role == INPUT else width
    return place.layer.weight_std * (growing / place.fan_in) ** 0.5


def _weight_scale(place, exponents: Exponents, width: int, final: int, m: float) -> LayerScale:
    a, b, c = exponents
    n, last = float(width), float(final)
    gradient = 0.0 if place.role == OUTPUT else m
    entry, adaptive = 2 * a + c, 2 * a + c + gradient  # exponents of W's movement
    if place.role == HIDDEN:
        # W = n^-a w moves n^(-2a) times as fast as the rate of w says: the factor n^(2a) turns the
        # head's N^(1-(2a+c))/n for W into the rate of w; adaptive updates know one n^-a alone
        rate = last ** (1 - entry) * n ** (2 * a - 1)
        adaptive_rate = last ** (1 - adaptive) * n ** (a - 1)
    else:
        rate, adaptive_rate = last**-entry * n ** (2 * a), last**-adaptive * n**a
    return LayerScale(n**-a, n**-b, rate, adaptive_rate)


def _bias_scale(place, first: Exponents, final: int, m: float, count: int) -> LayerScale:
    a, b, c = first
    n, last = float(place.channels_out), float(final)
    if place.role == OUTPUT or count == 1:
        rate = last ** -max(0.0, 2 * a + c)
        return LayerScale(1.0, 1.0, rate, rate)
    return LayerScale(
        n**-a, n**-b, last ** -(2 * a + c) * n ** (2 * a), last ** -(2 * a + c + m) * n**a
    )
