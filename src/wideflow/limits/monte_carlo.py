r"""Kernels of finite random networks, averaged over draws, with standard errors: what the limits
are held against.

Of one network with outputs $f_o(x)$ and parameters $\theta$ the empirical kernels are, averaged
over its $O$ outputs,
$$\hat K(x, x') = \frac1O\sum_o f_o(x)f_o(x'), \qquad \hat\Theta(x, x') =
  \frac1O\sum_o\langle\nabla_\theta f_o(x), \nabla_\theta f_o(x')\rangle .$$
Nothing here knows what the network is: it is any pytree of arrays that can be called, and the
Jacobian is autodiff's.
"""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._core.arrays import real_array
from .._core.errors import as_key, check_callable, check_choice, check_count, check_takes
from .._core.precision import double

__all__ = ["KernelEstimate", "monte_carlo_kernel"]


class KernelEstimate(NamedTuple):
    """The mean over networks and its standard error, entry by entry.

    Attributes:
        mean: the estimate, shape (left, right).
        error: its standard error, likewise.
    """

    mean: Float[Array, "left right"]
    error: Float[Array, "left right"]


@double
def monte_carlo_kernel(
    key, draw: Callable, x, x2=None, *, kernel: str = "ntk", samples: int = 100, tangent=None
) -> KernelEstimate:
    r"""The mean of $\hat\Theta$ (or $\hat K$) over random networks, with its standard error.

    Args:
        key: random key.
        draw: `draw(key)` gives a network with `outputs(inputs)` of shape (sample,) or (sample,
            output).
        x, x2: inputs; `x2` is `x` if None.
        kernel: 'ntk' or 'nngp'.
        samples: networks that are drawn, one after the other.
        tangent: `tangent(network, x, x2)`, the tangent kernel of one network, where it knows a
            quicker way than the Jacobian, or where layers have rates of their own.

    Returns:
        `KernelEstimate(mean, error)`, both (left, right).
    """
    check_choice("kernel", kernel, ("ntk", "nngp"))
    check_count("samples", samples, least=2)
    key = as_key(key)
    if not callable(draw):  # a class whose instances are networks will do
        raise ValueError(f"`draw` must be a function of a key that gives a network, got {draw!r}.")
    check_takes("draw", draw, ("key",))
    if tangent is not None:
        check_callable("tangent", tangent, "a function of (network, x, x2)")
    x = real_array("x", x)
    x2 = x if x2 is None else real_array("x2", x2)
    for name, inputs in (("x", x), ("x2", x2)):
        if inputs.ndim < 2:
            raise ValueError(
                f"`{name}` must have shape (sample, ...), got {inputs.shape}. For one input use "
                "`[None]`."
            )
    network = eqx.filter_eval_shape(draw, key)
    if not callable(getattr(network, "outputs", None)):
        raise ValueError(f"`draw` must give a network with `outputs(inputs)`, got {network!r}.")
    one = _covariance if kernel == "nngp" else tangent or _tangent

    def step(key, count, mean, squares):
        """Welford's update: no two large numbers are subtracted."""
        value = one(draw(key), x, x2)
        delta = value - mean
        mean = mean + delta / count
        return mean, squares + delta * (value - mean)

    step = eqx.filter_jit(step)
    mean = squares = jnp.zeros((x.shape[0], x2.shape[0]))
    for k, part in enumerate(jax.random.split(key, samples)):
        mean, squares = step(part, jnp.asarray(k + 1.0), mean, squares)
    # the deviation over samples, divided by sqrt(samples)
    return KernelEstimate(mean, jnp.sqrt(squares / (samples - 1) / samples))


def _covariance(network, x, x2):
    left, right = (_columns(network.outputs(a)) for a in (x, x2))
    return left @ right.T / left.shape[1]


def _tangent(network, x, x2):
    weights, rest = eqx.partition(network, eqx.is_inexact_array)
    jacobian = lambda a: jax.jacrev(lambda w: _columns(eqx.combine(w, rest).outputs(a)))(weights)
    total = 0.0
    for left, right in zip(jax.tree.leaves(jacobian(x)), jax.tree.leaves(jacobian(x2))):
        # (sample, output, *weights) each; equal outputs are summed with the weights
        flat = lambda j: j.reshape(j.shape[0], -1)
        total = total + flat(left) @ flat(right).T / left.shape[1]
    return total


def _columns(outputs):
    return outputs[:, None] if outputs.ndim == 1 else outputs.reshape(outputs.shape[0], -1)
