r"""The two sums over nodes and samples in a step of a network with one output, in the form that each platform does fastest.

On a GPU a step is bound by reading and writing the n x m array of pre-activations: a product with one column
is done as a sum, which fuses with the activation, and the output weights leave the second product. Slopes that are
only 0 or 1 are exact in bfloat16, so float32 products with them run on the matrix units in three exact
pieces of 8 bits, as accurate as plain float32 and faster.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

PIECES = 3  # of 8 bits: all 24 of a float32
FULL = ("highest", "float32", "F32_F32_F32")


def node_sum(
    values: Float[Array, "sample width"], mixed: Float[Array, " width"]
) -> Float[Array, " sample"]:
    r"""$\sum_j v_{ij} c_j$."""
    return jax.lax.platform_dependent(
        values, mixed, cuda=lambda v, c: jnp.sum(v * c, axis=1), default=lambda v, c: v @ c
    )


def node_gradient(
    features: Float[Array, "sample feature"],
    slopes: Float[Array, "sample width"],
    cotangent: Float[Array, " sample"],
    mixed: Float[Array, " width"],
    switch: bool,
) -> Float[Array, "feature width"]:
    r"""$\sum_i \phi_{ik} \sigma'_{ij} r_i c_j$; `switch` says that the slopes are only 0 or 1."""
    exact = switch and slopes.dtype == jnp.float32 and _full_precision()
    return jax.lax.platform_dependent(
        features, slopes, cotangent, mixed, cuda=_in_pieces if exact else _mixed_last, default=_mixed_first
    )  # fmt: skip


def _full_precision() -> bool:
    return jax.config.jax_default_matmul_precision in FULL  # pyright: ignore[reportAttributeAccessIssue]


def _mixed_first(features, slopes, cotangent, mixed):
    return features.T @ (slopes * (cotangent[:, None] * mixed))


def _mixed_last(features, slopes, cotangent, mixed):
    return (features.T * cotangent) @ slopes * mixed


def _in_pieces(features, slopes, cotangent, mixed):
    left = pieces(features.T * cotangent)
    product = jax.lax.dot(
        jnp.concatenate(left), slopes.astype(jnp.bfloat16), preferred_element_type=jnp.float32
    )
    return sum(jnp.split(product, PIECES)) * mixed


def pieces(values: Float[Array, "..."]) -> list[Array]:
    """bfloat16 arrays whose sum is `values`, in float32, exactly."""
    found, rest = [], values
    for _ in range(PIECES):
        piece = jax.lax.reduce_precision(rest, exponent_bits=8, mantissa_bits=7)
        found.append(piece.astype(jnp.bfloat16))
        rest = rest - piece
    return found
