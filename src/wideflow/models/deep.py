r"""Networks of any depth from a description of their layers and a parametrisation."""

import math
import re
from collections.abc import Sequence
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._core import host
from .._core.architecture import AbstractLayer, Chain, Conv, Dense
from .._core.arrays import check_finite, real_array
from .._core.errors import as_key, check_count, check_list
from .._core.memory import check_fits
from .._core.parametrisations import LayerScale, Parametrisation, layer_scales, parametrisation
from .._core.precision import double
from .._core.randomness import named_key, normal
from .._core.scalings import ABC, AbstractScaling
from .._core.types import Key
from .._core.weight_layers import WeightLayer, weight_layers
from .base import AbstractModel, Pullback, adaptive_rate_factors, pullback_by_autodiff
from .layers import convolve, forward

__all__ = ["Deep"]


class Deep(AbstractModel):
    r"""A network read off an architecture: weight layer $l$ gives
    $h^l = k_l\, n^{-a_l}\, w^l x^{l-1} + k'_l\, b^l$.

    The factors come from the parametrisation (see `wideflow.parametrisations`), the constants $k_l$
    from the description's $\sigma_w$, $\sigma_b$. Trained arrays are called `weight_1`, `bias_1`,
    ..., in the order of a forward pass (a residual block's body before its shortcut); frozen layers
    are not among them. Weights are (channel in, channel out), after the window for convolutions. A
    network with one output gives outputs (sample,), one with several (sample, output).

    Args:
        architecture: layers of `wideflow.architecture`, or `wideflow.mlp(...)`.
        features: the number of inputs, or the shape of one input, such as (28, 28, 1); batches then
            come as (sample, 28, 28, 1) or flat.
        weights: one array a weight layer.
        biases: one array or None a weight layer; default zeros where the description has a bias.
        parametrisation: a name ('ntk', 'standard', 'mean-field', 'maximal-update'), a
            `Parametrisation`, or `scalings.ABC`.

    >>> import wideflow as wf
    >>> net = wf.Deep(wf.mlp(depth=1, width=2), 2, [[[2.0, 0.0], [0.0, 1.0]], [[1.0], [-1.0]]])
    >>> net([1.0, 1.0])  # (2 - 1) / sqrt(2) in each layer
    Array(0.5, dtype=float64)
    """

    labels: ClassVar[tuple[str, ...]] = ("parametrisation",)  # `scales` has its numbers

    weights: tuple[Float[Array, "..."], ...]
    biases: tuple[Float[Array, " channel"] | None, ...]
    nodes: tuple[Float[Array, " channel"] | None, ...]
    architecture: Chain = eqx.field(static=True)
    input_shape: tuple[int, ...] = eqx.field(static=True)
    parametrisation: Parametrisation | ABC | None = eqx.field(static=True)
    scales: tuple[tuple[LayerScale, LayerScale | None], ...] = eqx.field(static=True)

    @double
    def __init__(
        self,
        architecture,
        features,
        weights: Sequence,
        biases: Sequence | None = None,
        parametrisation: "str | Parametrisation | ABC" = "ntk",
    ):
        self._describe(architecture, features, parametrisation)
        places = weight_layers(self.architecture, self.input_shape)
        biases = [None] * len(places) if biases is None else biases
        for name, values in (("weights", weights), ("biases", biases)):
            check_list(name, values, "arrays, one a layer with weights")
            if len(values) != len(places):
                raise ValueError(
                    f"`{name}` must have one entry for each of the {len(places)} weight layers, "
                    f"got {len(values)}."
                )
        arrays = [
            _array(f"weights[{l}]", values, place.weight_shape)
            for l, (values, place) in enumerate(zip(weights, places, strict=True))
        ]
        single = all(array.dtype == jnp.float32 for array in arrays)
        dtype = jnp.float32 if single else jnp.float64
        self.weights = tuple(array.astype(dtype) for array in arrays)
        self.biases = tuple(
            _bias(l, values, place, dtype)
            for l, (values, place) in enumerate(zip(biases, places, strict=True))
        )
        self.nodes = tuple(_nodes(place, dtype) for place in places)

    def _describe(self, architecture, features, scheme) -> None:
        self.architecture = _chain(architecture)
        self.input_shape = _shape(features)
        self.parametrisation = parametrisation(scheme)
        self.scales = _scales(self.architecture, self.input_shape, scheme)

    @classmethod
    @double
    def init(
        cls,
        key: int | Key,
        architecture,
        features,
        parametrisation: "str | Parametrisation | ABC" = "ntk",
    ) -> "Deep":
        r"""A random start: $w^l \sim N(0, n^{-2b_l})$ and biases likewise, as the parametrisation
        says.

        Every array is drawn from its own named key, so that a deeper network has the same first
        layers.

        Args:
            architecture: the layers, without arrays; see `wideflow.architecture`.
            features: the shape of one input, or its dimension.
            parametrisation: where the powers of the width stand: a name, a `Parametrisation` or
                `ABC`.
        """
        key, shape = as_key(key), _shape(features)
        chain, weights, biases = _chain(architecture), [], []
        draw = lambda name, l, shape: normal(named_key(key, name, l), shape)
        places, scales = weight_layers(chain, shape), _scales(chain, shape, parametrisation)
        for l, (place, (weight, bias)) in enumerate(zip(places, scales, strict=True), 1):
            check_fits(**{f"layer {l}": math.prod(place.weight_shape)})
            weights.append(host.scale(weight.start, draw("weight", l, place.weight_shape)))
            biases.append(bias and host.scale(bias.start, draw("bias", l, (place.channels_out,))))
        return cls(architecture, shape, weights, biases, parametrisation)

    @property
    def places(self) -> tuple[WeightLayer, ...]:
        """The weight layers with their sizes and roles."""
        return weight_layers(self.architecture, self.input_shape)

    @property
    def layers(self) -> int:
        """How many layers have weights."""
        return len(self.weights)

    @property
    def trained(self) -> tuple[str, ...]:
        names = []
        for l, place in enumerate(self.places):
            if place.layer.trained:
                names.append(f"weight_{l + 1}")
                if self.biases[l] is not None:
                    names.append(f"bias_{l + 1}")
        if not names:
            raise ValueError("`architecture` has no trained layer; leave `trained=True` in one.")
        return tuple(names)

    def __getattr__(self, name: str):
        match = re.fullmatch(r"(weight|bias)_([1-9][0-9]*)", name)
        if match is None or int(match[2]) > len(self.weights):
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}.")
        return (self.weights if match[1] == "weight" else self.biases)[int(match[2]) - 1]

    @double
    def embed(self, inputs) -> Float[Array, "sample embedded"]:
        """Inputs laid flat, in the network's precision."""
        inputs = real_array("inputs", inputs, finite=False)
        size = math.prod(self.input_shape)
        if inputs.shape[1:] not in ((size,), self.input_shape):
            raise ValueError(
                f"`inputs` must have shape (sample, {size}) or (sample, "
                f"{', '.join(map(str, self.input_shape))}), got {inputs.shape}."
            )
        return inputs.reshape(len(inputs), size).astype(self.weights[0].dtype)

    def weigh(self, number: int, layer: Dense | Conv, x):
        """Weight layer `number` (from 0) on what comes in."""
        (weight, bias), array = self.scales[number], self.weights[number]
        scaled = weight.factor * array
        h = convolve(layer, x, scaled) if isinstance(layer, Conv) else x @ scaled
        shift = self.biases[number]
        return h if bias is None or shift is None else h + bias.factor * shift

    def respond(self, features) -> Float[Array, " sample *output"]:
        return self.respond_through(features, self.weigh)

    def respond_through(self, features, weigh) -> Float[Array, " sample *output"]:
        """Outputs with every weight layer taken by `weigh(number, layer, x)`; for what is read off
        inside the network.
        """
        x = features.reshape(features.shape[0], *self.input_shape)
        return single_output(forward(self.architecture, x, weigh, self.nodes))

    @double
    def preactivations(self, inputs) -> dict[str, Float[Array, "sample ..."]]:
        r"""$h^l$ of every weight layer but the output, by `layer_1`, `layer_2`, ..."""
        return self.hidden(self.embed(inputs))

    def hidden(self, features) -> dict[str, Float[Array, "sample ..."]]:
        """The same from embedded inputs."""
        preactivations = {}

        def weigh(number, layer, x):
            preactivations[f"layer_{number + 1}"] = h = self.weigh(number, layer, x)
            return h

        self.respond_through(features, weigh)
        roles = {f"layer_{l}": place.role for l, place in enumerate(self.places, 1)}
        return {name: h for name, h in preactivations.items() if roles[name] != "output"}

    def rate_factors(self) -> dict[str, float]:
        return self._per_array(lambda scale: scale.rate)

    def _per_array(self, number) -> dict[str, float]:
        """A number of every trained array's scale, by name."""
        names = {}
        for l, (weight, bias) in enumerate(self.scales, 1):
            names |= {f"weight_{l}": weight, f"bias_{l}": bias}
        return {name: number(names[name]) for name in self.trained}

    def pullback(self, features) -> tuple[Float[Array, " sample *output"], Pullback]:
        return pullback_by_autodiff(self, features)


@adaptive_rate_factors.register
def _(model: Deep) -> dict[str, float]:
    return model._per_array(lambda scale: scale.adaptive_rate)


def _chain(architecture) -> Chain:
    if not isinstance(architecture, AbstractLayer):
        raise ValueError(
            "`architecture` must be layers of `wideflow.architecture` or `wideflow.mlp(...)`, "
            f"got {architecture!r}. "
            "For a network of another library use `wideflow.wrap`."
        )
    return Chain(architecture)


def _scales(chain: Chain, shape: tuple[int, ...], scheme):
    return layer_scales(chain, shape, parametrisation(scheme))


def single_output(outputs):
    """One output has no axis; several lie on the last one."""
    flat = outputs.reshape(outputs.shape[0], -1)
    return flat[:, 0] if flat.shape[1] == 1 else flat


def _shape(features) -> tuple[int, ...]:
    shape = tuple(features) if isinstance(features, Sequence) else (features,)
    for size in shape:
        check_count("features", size)
    return shape


def _array(name: str, value, shape: tuple[int, ...]):
    array = jnp.asarray(value)
    if array.shape != shape:
        raise ValueError(
            f"`{name}` must have shape {shape} (channels in, then channels out), got {array.shape}."
        )
    check_finite(name, array)
    return array if jnp.issubdtype(array.dtype, jnp.floating) else array.astype(float)


def _bias(l: int, value, place: WeightLayer, dtype):
    if place.layer.bias_std is None:
        if value is not None:
            raise ValueError(
                f"`biases[{l}]` must be None, as its layer has no bias. Give the layer a "
                "`bias_std`."
            )
        return None
    if value is None:
        return jnp.zeros(place.channels_out, dtype)
    return _array(f"biases[{l}]", value, (place.channels_out,)).astype(dtype)


def _nodes(place: WeightLayer, dtype):
    r"""$\sqrt{m}\, s_j$ of a layer with node weights; None for equal ones."""
    scaling = getattr(place.layer, "node_scaling", None)
    if scaling is None:
        return None
    if not isinstance(scaling, AbstractScaling):
        raise ValueError(f"`node_scaling` must be one of `wideflow.scalings`, got {scaling!r}.")
    width = place.channels_out
    return (math.sqrt(width) * scaling.node_scales(width)).astype(dtype)
