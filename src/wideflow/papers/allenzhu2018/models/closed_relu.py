r"""The ReLU of allenzhu2018: $\sigma(z) = \max(0, z)$ with $\sigma'(z) = \mathbf 1[z \ge 0]$, so
the derivative at exactly 0 is 1.

Everywhere else in wideflow a kink has derivative 0; only the learners of this paper take 1, as the
paper does.
"""

import jax
import jax.numpy as jnp
from jax import Array


def active(z: Array) -> Array:
    r"""$\mathbf 1[z \ge 0]$ as Booleans: the signs of a layer."""
    return z >= 0


@jax.custom_jvp
def closed_relu(z: Array) -> Array:
    r"""$\max(0, z)$, with derivative $\mathbf 1[z \ge 0]$ under autodiff."""
    return jnp.maximum(z, 0)


@closed_relu.defjvp
def _closed_relu_jvp(primals, tangents):
    (z,), (dz,) = primals, tangents
    return closed_relu(z), jnp.where(active(z), dz, 0)
