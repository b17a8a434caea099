r"""Normal draws whose second moments are exact: what is left of Monte Carlo error begins at the fourth moment.

The columns of a normal matrix are orthogonalised (QR), so that $\frac1S \zeta^\top \zeta = I$ to rounding, and every
draw is used with all four signs of $(u, r)$. Whatever is linear in the fields is then exact: networks with linear
activations come out without any Monte Carlo error, and odd moments vanish.
"""

import jax
import jax.numpy as jnp

from ..._core.randomness import named_key

SIGNS = 4  # (u, r), (u, -r), (-u, r), (-u, -r)


def white_rows(key, rows: int, columns: int) -> jax.Array:
    r"""`rows` orthogonal rows with $\frac{1}{\text{columns}} \zeta \zeta^\top = I$, a Haar-distributed frame."""
    frame, triangle = jnp.linalg.qr(jax.random.normal(key, (columns, rows)))
    # Signs of the diagonal make the frame's law the uniform one.
    return (frame * jnp.sign(jnp.diagonal(triangle))).T * jnp.sqrt(columns)


def layer_draws(key, rows: int, samples: int) -> dict[str, jax.Array]:
    """White sources of $u$ and $r$ and the probe of their responses, each (row, sample)."""
    base = samples // SIGNS
    part = lambda name: white_rows(named_key(key, name), rows, base)
    u, r, probe = part("u"), part("r"), part("probe")
    return {
        "u": jnp.concatenate([u, u, -u, -u], axis=1),
        "r": jnp.concatenate([r, -r, r, -r], axis=1),
        "probe": jnp.tile(probe, (1, SIGNS)),
    }
