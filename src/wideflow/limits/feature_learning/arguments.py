"""What the field theory is given: data as a Gram matrix, the loss, the network."""

import jax.numpy as jnp

from ..._core.activations import Activation, activation as as_activation
from ..._core.architecture import Chain, Dense, alternating
from ..._core.arrays import real_array
from ..._core.errors import check_count


def half_square(output, target):
    """The default loss of one point."""
    return 0.5 * (output - target) ** 2


def checked_data(inputs, targets, test):
    r"""$\Phi^0 = x \cdot x' / D$ over training points, then test points; and the targets."""
    inputs = real_array("inputs", inputs, "(sample, feature)").astype(float)
    targets = real_array("targets", targets, "(sample,)").astype(float)
    if len(targets) != len(inputs):
        raise ValueError(
            f"`targets` must hold one number per sample ({len(inputs)}), got {len(targets)}."
        )
    features = inputs.shape[1]
    if test is not None:
        test = real_array("test", test, f"(sample, {features})").astype(float)
        inputs = jnp.concatenate([inputs, test])
    return inputs @ inputs.T / features, targets


def checked_network(architecture, activation) -> tuple[int, Activation]:
    """Depth and activation, from a depth or from an architecture such as
    `mlp(depth=2, activation='tanh')`.
    """
    if not isinstance(architecture, Chain):
        check_count("architecture", architecture, remedy="Give a depth, or an `mlp(...)`.")
        return int(architecture), as_activation("tanh" if activation is None else activation)
    if activation is not None:
        raise ValueError(
            "`activation` must be left out where `architecture` brings its own, got "
            f"{activation!r}."
        )
    dense, between = alternating(architecture) or ([], [])
    plain = all(_plain_dense(layer) for layer in dense)
    if not plain or len({layer.activation for layer in between}) != 1 or dense[-1].width != 1:
        raise ValueError(
            "`architecture` must be a multilayer perceptron with one activation, one output, "
            f"`weight_std` 1 and no bias, got {architecture!r}. "
            "Build it with `mlp(depth=2, activation='tanh')`."
        )
    return len(between), between[0].activation


def _plain_dense(layer: Dense) -> bool:
    plain = layer.weight_std == 1.0 and layer.bias_std is None
    return plain and layer.trained and layer.node_scaling is None
