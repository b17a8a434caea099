r"""Kernels of the learners of allenzhu2018 at finite width: tangent Gram matrices in structured
form, and last-layer features.

Two layers, $W$ trained: $\Theta = (XX'^\top)\odot(DA^2D'^\top)$. Three layers, $W$ and $V$ trained,
with $A = a*D_v$, $U = \sigma(W_0X+b_1)$, $B = (AV)*D_w$:
$\Theta = (AA'^\top)\odot(UU'^\top) + (XX'^\top)\odot(BB'^\top)$. Importing this file teaches
`tangent_gram` both.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from ...._core.arrays import real_array
from ...._core.precision import double
from ....observables.kernels import gram_of_features
from ..models.biased_three_layer import BiasedThreeLayer
from ..models.biased_two_layer import BiasedTwoLayer
from ..models.closed_relu import active


@gram_of_features.register
def _(model: BiasedTwoLayer, left, right, output: int = 0):
    a = jnp.atleast_2d(model.output)[output]
    on, other = (active(model.preactivations(f)) * a for f in (left, right))
    return (left @ right.T) * (on @ other.T)


@gram_of_features.register
def _(model: BiasedThreeLayer, left, right, output: int = 0):
    a = jnp.atleast_2d(model.output)[output]

    def parts(features):
        z, q = model.preactivations(features)
        readout = active(q) * a
        return (
            jnp.maximum(z, 0),
            readout,
            (readout @ (model.second + model.second_increment)) * active(z),
        )

    (u, readout, back), (u2, readout2, back2) = parts(left), parts(right)
    return model.scale**2 * (
        (readout @ readout2.T) * (u @ u2.T) + (left @ right.T) * (back @ back2.T)
    )


@double
def last_layer_features(
    model: BiasedTwoLayer | BiasedThreeLayer, inputs
) -> Float[Array, "sample width"]:
    """What a learner with only its output layer trained sees: the last hidden layer.

    Args:
        model: a network of two or three layers.
        inputs: shape (sample, feature).
    """
    x = model.embed(real_array("inputs", inputs, "(sample, feature)"))
    if isinstance(model, BiasedTwoLayer):
        last = model.preactivations(x)
    else:
        _, last = model.preactivations(x)
    return jnp.maximum(last, 0)


@double
def last_layer_gram(
    model: BiasedTwoLayer | BiasedThreeLayer, inputs, other=None
) -> Float[Array, "left right"]:
    """The Gram matrix of `last_layer_features` (random features).

    Args:
        model: a network of two or three layers.
        inputs: shape (left, feature).
        other: shape (right, feature); the inputs themselves if None.
    """
    left = last_layer_features(model, inputs)
    return left @ (left if other is None else last_layer_features(model, other)).T
