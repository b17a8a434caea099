r"""The loss of a limit whose outputs are known with an error.

Repeats $f_1, \dots, f_R$ of the outputs have the mean $\bar f = f + e$, $e$ of mean zero and
covariance $C$. The loss is not linear, so the mean of the repeats' losses is too large by
$\frac12\ell''\,\mathrm{var}(f_i)$, $R$ times what the loss of the mean is off by. Of the latter,
$$\ell(\bar f) - \ell(f) = \ell'(\bar f)\cdot e - \tfrac12 e^\top\ell''e,$$
the first term has the standard error $\sqrt{\ell'^\top C\ell'}$, the deviation of the scalars
$\ell'(\bar f)\cdot f_i$ over $\sqrt R$, and the second the mean $\frac12\mathrm{tr}(\ell''C)$,
which takes over where the residual is smaller than the error of the outputs. Both are estimated and
added in quadrature. Subtracting the second would make losses near zero negative.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp


def summed_loss(loss: Callable, outputs: jax.Array, targets: jax.Array) -> jax.Array:
    """Over points, the last axis."""
    return jnp.sum(jnp.vectorize(loss)(outputs, targets), axis=-1)


def loss_of_mean(loss: Callable, outputs: jax.Array, targets: jax.Array):
    r"""$\ell(\bar f)$ summed over points and its standard error, each (step,); the error has
    $R - 1$ degrees of freedom.

    Args:
        loss: $\ell(f, y)$ of one point.
        outputs: $f_i$, (repeat, step, point).
        targets: $y$, (point,).
    """
    repeats, mean = len(outputs), jnp.mean(outputs, axis=0)
    deviations = outputs - mean
    derivative = jax.grad(loss)
    targets = jnp.broadcast_to(targets, mean.shape)
    slopes = jnp.vectorize(derivative)(mean, targets)
    curvatures = jnp.vectorize(jax.grad(derivative))(mean, targets)
    squared_error = lambda d: jnp.sum(d**2, axis=0) / (repeats * (repeats - 1))
    first = squared_error(jnp.sum(slopes * deviations, axis=-1))
    second = 0.5 * jnp.sum(curvatures * squared_error(deviations), axis=-1)
    return summed_loss(loss, mean, targets), jnp.sqrt(first + second**2)
