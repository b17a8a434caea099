r"""Self-attention of infinitely many heads and keys (hron2020), on covariances of all pairs of
positions.

With $\Sigma_{ab}(x, x')$ the covariance of one channel at positions $a$ of $x$ and $b$ of $x'$,
$\sigma_{qk}$ the product of the deviations of queries and keys and $\sigma = \sigma_v\sigma_w$:

* **Linear scaling.** $G = KK^\top/m$ tends to $\sigma_{qk}\Sigma(x, x)$, a number, so the weights
  $A(x) = \zeta(\sigma_{qk}\Sigma(x, x))$ no longer depend on the network:
  $$\Sigma' = \sigma^2 A(x)\,\Sigma(x, x')\,A(x')^\top + \sigma_b^2, \qquad \Theta' = \sigma^2
    A(x)\,\Theta(x, x')\,A(x')^\top + (\Sigma' - \sigma_b^2) + \Sigma',$$
  the second term of the values' weights, the last one of the layer after the heads and its bias.
  Keys have no part: their gradient is a mean over $m$.
* **Square-root scaling, identity.** $G$ stays Gaussian, of covariance
  $E[G_{ac}(x)G_{bd}(x')] = \sigma_{qk}^2\Sigma_{ab}\Sigma_{cd}$. With $s = \sigma_{qk}^2\sigma^2$,
  $\langle\cdot,\cdot\rangle$ the sum over pairs of positions,
  $$\Sigma' = s\,\langle\Sigma, \Sigma\rangle\,\Sigma + \sigma_b^2, \qquad \Theta' =
    s\,\big(2\langle\Sigma, \Theta\rangle\Sigma + \langle\Sigma, \Sigma\rangle\Theta\big) +
    3(\Sigma' - \sigma_b^2) + \Sigma':$$
  the inputs enter through queries, keys and values, and queries, keys, values and the last layer
  have an equal share each.
"""

import math

import jax
import jax.numpy as jnp

from ..._core.architecture import SelfAttention
from .covariances import Covariances


def linear_attention(layer: SelfAttention, state: Covariances, rates: list) -> Covariances:
    """The map above; `rates` are those of keys, values and the last layer, None where frozen."""
    _, value_rate, last_rate = rates
    variance, bias = _variances(layer)
    weights = lambda own: _weights(layer, own, state.spatial)
    if state.matched:
        left = right = weights(state.cross)
    else:
        left, right = weights(state.left), weights(state.right)
    facing = "bdn" if state.matched else "bdm"
    both = "n" if state.matched else "nm"

    def mixed(x):
        # A(x) Sigma(x, x') A(x')^T for all pairs of samples: c and d are the positions that are
        # read
        mixture = jnp.einsum(
            f"acn,cd{both},{facing}->ab{both}", left, _flat(x, state.spatial), right
        )
        return variance * _apart(mixture, state.shape[:-1])

    def own(x):
        if x is None:
            return None
        a = weights(x)
        mixture = jnp.einsum("acn,cdn,bdn->abn", a, _flat(x, state.spatial), a)
        return variance * _apart(mixture, state.shape[:-1]) + bias

    plain = mixed(state.cross)
    parts = [None if state.tangent is None else mixed(state.tangent)]
    parts += [_share(value_rate, plain), _share(last_rate, plain + bias)]
    return state.replace(
        left=own(state.left), right=own(state.right), cross=plain + bias, tangent=_sum(parts)
    )


def identity_attention(layer: SelfAttention, state: Covariances, rates: list) -> Covariances:
    """The map above for square-root scaling; `rates` are those of queries, keys, values and the
    last layer.
    """
    variance, bias = _variances(layer)
    variance = variance * layer.query_key_std**2
    axes = tuple(range(2 * state.spatial))
    over = lambda a, b: jnp.sum(a * b, axis=axes, keepdims=True)
    own = lambda x: None if x is None else variance * over(x, x) * x + bias
    cross, tangent = state.cross, state.tangent
    plain = variance * over(cross, cross) * cross
    parts = []
    if tangent is not None:
        below = 2 * over(cross, tangent) * cross + over(cross, cross) * tangent
        parts.append(variance * below)
    *inner, last = rates
    parts += [_share(rate, plain) for rate in inner]
    parts.append(_share(last, plain + bias))
    return state.replace(
        left=own(state.left), right=own(state.right), cross=plain + bias, tangent=_sum(parts)
    )


def _variances(layer: SelfAttention) -> tuple[float, float]:
    bias = 0.0 if layer.bias_std is None else layer.bias_std**2
    return (layer.value_std * layer.weight_std) ** 2, bias


def _weights(layer: SelfAttention, own, spatial: int):
    r"""$A = \zeta(\sigma_{qk}\Sigma(x, x))$ of each sample, (position, position read, sample)."""
    products = layer.query_key_std * _flat(own, spatial)
    if layer.mechanism == "softmax":
        return jax.nn.softmax(products, axis=1)
    return {"identity": lambda g: g, "relu": jax.nn.relu, "abs": jnp.abs}[layer.mechanism](products)


def _flat(x, spatial: int):
    """(H, H', W, W', ..., sample...) as (position, position', sample...)."""
    # first members of all pairs of axes, then second members, then samples
    order = (*range(0, 2 * spatial, 2), *range(1, 2 * spatial, 2), *range(2 * spatial, x.ndim))
    x = x.transpose(order)
    count = math.prod(x.shape[:spatial])
    return x.reshape(count, count, *x.shape[2 * spatial :])


def _apart(x, positions: tuple[int, ...]):
    """Back again."""
    spatial = len(positions)
    x = x.reshape(*positions, *positions, *x.shape[2:])
    pairs = [axis for k in range(spatial) for axis in (k, spatial + k)]
    return x.transpose(*pairs, *range(2 * spatial, x.ndim))


def _share(rate, values):
    """What a layer's own weights add to the tangent kernel; None where it is frozen."""
    return None if rate is None else rate * values


def _sum(parts):
    """The sum of the parts that are there; None where nothing is trained."""
    there = [part for part in parts if part is not None]
    return sum(there[1:], there[0]) if there else None
