"""The weight layers of an architecture in the order in which a forward pass meets them, with their
sizes and roles.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from .architecture import AbstractLayer, Chain, Conv, Dense, Residual, SelfAttention

INPUT, HIDDEN, OUTPUT = "input", "hidden", "output"


@dataclass(frozen=True)
class WeightLayer:
    """One dense or convolutional layer in its place; attention is several dense ones.

    Attributes:
        layer: its description.
        shape: of one sample that comes in.
        role: "input" (reads features whose number is fixed), "output" (the last layer) or "hidden".
    """

    layer: Dense | Conv
    shape: tuple[int, ...]
    role: str

    @property
    def channels_in(self) -> int:
        return self.shape[-1]

    @property
    def channels_out(self) -> int:
        return self.layer.width if isinstance(self.layer, Dense) else self.layer.channels

    @property
    def window(self) -> tuple[int, ...]:
        return () if isinstance(self.layer, Dense) else self.layer.window

    @property
    def fan_in(self) -> int:
        return math.prod(self.window) * self.channels_in

    @property
    def weight_shape(self) -> tuple[int, ...]:
        """(channel in, channel out), after the window for convolutions."""
        return (*self.window, self.channels_in, self.channels_out)


def weight_layers(
    architecture: AbstractLayer, input_shape: tuple[int, ...]
) -> tuple[WeightLayer, ...]:
    """All weight layers; a residual block's body comes before its shortcut, attention's dense
    layers in the order of its `parts`.
    """
    chain = Chain(architecture)
    chain.output_shape(input_shape)  # a shape that does not fit fails here, with its reason
    last = _last(chain)
    layers = tuple(_walk(chain, tuple(input_shape), False, last))
    if not layers:
        raise ValueError("`architecture` must have at least one `Dense` or `Conv` layer, got none.")
    return layers


def _last(chain: Chain) -> AbstractLayer | None:
    """The output layer: the last weight layer of the chain itself, unless a residual block with
    weights follows.
    """
    for layer in reversed(chain.layers):
        if isinstance(layer, Dense | Conv | SelfAttention):
            return layer
        if isinstance(layer, Residual):
            return None
    return None


def _walk(chain: Chain, shape, wide: bool, last) -> Iterator[WeightLayer]:
    for position, layer in enumerate(chain.layers):
        if isinstance(layer, Dense | Conv):
            final = last is not None and position == _position(chain, last)
            role = INPUT if not wide else OUTPUT if final else HIDDEN
            yield WeightLayer(layer, shape, role)
            wide = True
        elif isinstance(layer, SelfAttention):
            *readers, last_part = layer.parts
            for part in readers:
                yield WeightLayer(part, shape, HIDDEN if wide else INPUT)
            final = last is not None and position == _position(chain, last)
            inner = (*shape[:-1], layer.heads * layer.value_width)
            yield WeightLayer(last_part, inner, OUTPUT if final else HIDDEN)
            wide = True
        elif isinstance(layer, Residual):
            inside = list(_walk(layer.body, shape, wide, None))
            if layer.shortcut is not None:
                inside += _walk(layer.shortcut, shape, wide, None)
            yield from inside
            wide = wide or bool(inside)
        shape = layer.output_shape(shape)


def _position(chain: Chain, last: AbstractLayer) -> int:
    # by identity, not equality: two equal descriptions are two layers; the last place, for one
    # object may stand in several
    return max(k for k, layer in enumerate(chain.layers) if layer is last)
