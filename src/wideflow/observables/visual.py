r"""What one looks at while a shallow network trains: its function on a grid, the places of its
neurons, its features of two inputs.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._core.arrays import real_array
from .._core.precision import double
from .base import AbstractObservable, ShallowSnapshot, probe_features

__all__ = ["FeaturePair", "NeuronPlaces", "OutputsAt"]


class OutputsAt(AbstractObservable):
    """The outputs at given inputs, for instance on a grid.

    Args:
        inputs: shape (grid, feature).
        name: the table's variable.
        axis: the name of its axis.
    """

    inputs: Float[Array, "grid feature"]
    name: str = eqx.field(static=True)
    axes: tuple[str, ...] = eqx.field(static=True)
    label: str = eqx.field(static=True, default="f(x)")

    @double
    def __init__(self, inputs, name: str = "learned_function", axis: str = "grid"):
        self.inputs = real_array("inputs", inputs, "(grid, feature)")
        self.name, self.axes = name, (axis,)

    def __call__(self, snapshot):
        model = snapshot.model
        return model.respond(model.embed(self.inputs)).astype(jnp.float64)


class NeuronPlaces(AbstractObservable):
    r"""Where each neuron of a `Shallow` network switches: the point of
    $\{x : \langle v_j, x\rangle + b_j = 0\}$ nearest to the origin, $-b_jv_j/|v_j|^2$.

    The last input is the constant one: $w_j = (v_j, b_j)$ and $x$ are all others, in units of the
    constant. With one input it is the kink itself, $-b_j/v_j$.
    """

    name: str = eqx.field(static=True, default="neuron_places")
    label: str = eqx.field(static=True, default="−b_j v_j / |v_j|²")
    axes: tuple[str, ...] = eqx.field(static=True, default=("plane", "width"))

    def __call__(self, snapshot: ShallowSnapshot):
        weights = snapshot.model.weights.astype(jnp.float64)
        direction, bias = weights[:-1], weights[-1]
        return -bias * direction / jnp.sum(direction**2, axis=0)


class FeaturePair(AbstractObservable):
    r"""$(h_j(x_1), h_j(x_2))$ of every node, for the first two training inputs."""

    name: str = eqx.field(static=True, default="feature_pair")
    label: str = eqx.field(static=True, default="h_j of the first two inputs")
    axes: tuple[str, ...] = eqx.field(static=True, default=("pair", "width"))

    def __call__(self, snapshot: ShallowSnapshot):
        return (probe_features(snapshot, 2) @ snapshot.model.weights).astype(jnp.float64)
