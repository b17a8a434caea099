r"""The two sums over nodes and samples in a step of a network with one output, in the form that each platform does fastest.

On a GPU a step is bound by reading and writing the n x m array of pre-activations: a product with one column
is done as a sum, which fuses with the activation, and the output weights leave the second product. Slopes that are
only 0 or 1 are exact in bfloat16, so float32 products with them run on the matrix units in three exact
pieces of 8 bits, as accurate as plain float32 and faster.
"""

import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .activations import Activation

PIECES = 3  # of 8 bits: all 24 of a float32
FULL = ("highest", "float32", "F32_F32_F32")


def spread(
    cotangent: Float[Array, " sample *output"], mixed: Float[Array, "*output width"]
) -> Float[Array, "sample width"]:
    r"""$r\,c$: the cotangent of each neuron's activation."""
    return cotangent[:, None] * mixed if mixed.ndim == 1 else cotangent @ mixed


def node_sum(
    sigma: Activation, z: Float[Array, "sample width"], mixed: Float[Array, " width"]
) -> Float[Array, " sample"]:
    r"""$\sum_j \sigma(z_{ij}) c_j$."""
    return jax.lax.platform_dependent(
        z, mixed,
        cuda=lambda z, c: jnp.sum(sigma.value(z) * c, axis=1), default=lambda z, c: sigma.value(z) @ c,
    )  # fmt: skip


def node_gradient(
    sigma: Activation,
    features: Float[Array, "sample feature"],
    z: Float[Array, "sample width"],
    cotangent: Float[Array, " sample"],
    mixed: Float[Array, " width"],
) -> Float[Array, "feature width"]:
    r"""$\sum_i \phi_{ik} \sigma'(z_{ij}) r_i c_j$."""
    exact = sigma.switch and z.dtype == jnp.float32 and _full_precision()
    on_gpu, on_cpu = (
        functools.partial(form, sigma) for form in (in_pieces if exact else mixed_last, mixed_first)
    )
    return jax.lax.platform_dependent(
        features, z, cotangent, mixed, cuda=on_gpu, default=on_cpu
    )  # fmt: skip


def _full_precision() -> bool:
    return jax.config.jax_default_matmul_precision in FULL  # pyright: ignore[reportAttributeAccessIssue]


def mixed_first(sigma, features, z, cotangent, mixed):
    return features.T @ (sigma.slope(z) * (cotangent[:, None] * mixed))


def mixed_last(sigma, features, z, cotangent, mixed):
    return (features.T * cotangent) @ sigma.slope(z) * mixed


def in_pieces(sigma, features, z, cotangent, mixed):
    left = jnp.concatenate(pieces(features.T * cotangent))
    product = jax.lax.dot(
        left, sigma.slope(z).astype(jnp.bfloat16), preferred_element_type=jnp.float32
    )
    return sum(jnp.split(product, PIECES)) * mixed


def pieces(values: Float[Array, "..."]) -> list[Array]:
    """bfloat16 arrays whose sum is `values`, in float32, exactly."""
    parts, rest = [], values
    for _ in range(PIECES):
        piece = jax.lax.reduce_precision(rest, exponent_bits=8, mantissa_bits=7)
        parts.append(piece.astype(jnp.bfloat16))
        rest = rest - piece
    return parts
