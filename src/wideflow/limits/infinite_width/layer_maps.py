r"""What each layer does to the covariances of an infinitely wide network.

With $\Sigma$ the covariance of one channel and $\Theta$ the tangent kernel (jacot2018; novak2020
for convolutions),

| layer | $\Sigma$ | $\Theta$ |
|---|---|---|
| dense, trained | $\sigma_w^2\Sigma + \sigma_b^2$ | the new $\Sigma$ $+\ \sigma_w^2\Theta$ |
| dense, frozen | the same | $\sigma_w^2\Theta$ |
| dense, standard parametrisation | the same | $n\Sigma + 1_\text{bias} + \sigma_w^2\Theta$, $n$ the fan-in, $\Sigma$ the old one |
| convolution | as dense, of the mean over the window | likewise |
| activation | $E[\phi(u)\phi(v)]$ | $\Theta\,E[\phi'(u)\phi'(v)]$ |
| pooling, flattening | sums and means over positions | the same |
| layer norm | $\Sigma / \sqrt{(p + \epsilon)(r + \epsilon)}$ | the same factor |
| residual | the sum of both branches | the sum |
| attention | `attention.py` | |
"""

import functools
import math

import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array

from ..._core.architecture import (
    AbstractLayer,
    Activate,
    AveragePool,
    Chain,
    Conv,
    Dense,
    Flatten,
    GlobalAveragePool,
    LayerNorm,
    Residual,
    SelfAttention,
    SumPool,
)
from ..._core.dual_activations import check_smooth, dual
from ..._core.scalings import NTK
from .attention import identity_attention, linear_attention
from .covariances import Covariances, mean_over_positions, of_inputs
from .windows import convolve, pool


class Rates:
    """The learning rates of the layers with weights, handed out one by one in the order of the
    description.
    """

    def __init__(self, values, parametrisation: str):  # values None: nothing is trained
        self.values = values
        self.parametrisation = parametrisation
        self.next = 0

    def take(self, layer):
        self.next += 1
        return self.values[self.next - 1] if layer.trained and self.values is not None else None


def weighted_layers(layer: AbstractLayer) -> list[AbstractLayer]:
    """The dense layers (attention's are several) and convolutions in the order of the description;
    of a residual, the body's come first.
    """
    if isinstance(layer, Dense | Conv):
        return [layer]
    if isinstance(layer, SelfAttention):
        return list(layer.parts)
    if isinstance(layer, Chain):
        return [inner for part in layer.layers for inner in weighted_layers(part)]
    if isinstance(layer, Residual):
        shortcut = [] if layer.shortcut is None else weighted_layers(layer.shortcut)
        return weighted_layers(layer.body) + shortcut
    return []


def activations_of(layer: AbstractLayer) -> list:
    if isinstance(layer, Activate):
        return [layer.activation]
    if isinstance(layer, Chain):
        return [act for part in layer.layers for act in activations_of(part)]
    if isinstance(layer, Residual):
        shortcut = [] if layer.shortcut is None else activations_of(layer.shortcut)
        return activations_of(layer.body) + shortcut
    return []


@functools.singledispatch
def pairs_before(layer, after: bool) -> bool:
    """Whether pairs of different positions are needed before a layer, given whether they are needed
    after it.
    """
    return after


@pairs_before.register(AveragePool)
@pairs_before.register(SumPool)
@pairs_before.register(GlobalAveragePool)
@pairs_before.register(SelfAttention)
def _(layer, after):
    return True


@pairs_before.register
def _(layer: Flatten, after):
    return False


@pairs_before.register
def _(layer: Chain, after):
    for part in reversed(layer.layers):
        after = pairs_before(part, after)
    return after


@pairs_before.register
def _(layer: Residual, after):
    around = after if layer.shortcut is None else pairs_before(layer.shortcut, after)
    return pairs_before(layer.body, after) or around


@functools.singledispatch
def apply_layer(layer, state: Covariances, rates: Rates, pairs_after: bool) -> Covariances:
    raise ValueError(
        f"`architecture` holds a layer {type(layer).__name__} whose infinite-width limit is not "
        "known."
    )


def run_layers(layers, state: Covariances, rates: Rates, pairs_after: bool, record=None):
    """The layers one after the other, with pairs of positions only as long as a later layer asks
    for them.
    """
    needs = [pairs_after]
    for layer in reversed(layers):
        needs.append(pairs_before(layer, needs[-1]))
    needs = needs[::-1]  # needs[k] before layer k, needs[k + 1] after it
    for k, layer in enumerate(layers):
        state = state if needs[k] else state.without_pairs()
        state = apply_layer(layer, state, rates, needs[k + 1])
        state = state if needs[k + 1] else state.without_pairs()
        if record is not None:
            record(layer, state)
    return state


def start(layers, x, x2, *, matched: bool):
    """The first covariances and the layers that are left: what stands before the first weights acts
    on the inputs.
    """
    done = 0
    for layer in layers:
        if weighted_layers(layer):
            break
        x = on_inputs(layer, x)
        x2 = None if x2 is None else on_inputs(layer, x2)
        done += 1
    rest = layers[done:]
    pairs = pairs_before(Chain(*rest), False) if rest else False
    return of_inputs(x, x2, pairs, matched=matched), rest, done


# ---------------------------------------------------------------- layers with weights


@apply_layer.register
def _(layer: Dense, state, rates, pairs_after):
    if layer.node_scaling is not None and not isinstance(layer.node_scaling, NTK):
        raise ValueError(
            f"`node_scaling` {layer.node_scaling!r} has a random limit kernel; `kernels` needs "
            "equal node weights. "
            "Use `limits.random_ntg` for shallow networks, or leave `node_scaling` out."
        )
    new = _affine(layer, state, state, state.shape[-1], rates)
    return new.replace(shape=(*state.shape[:-1], layer.width))


@apply_layer.register
def _(layer: Conv, state, rates, pairs_after):
    shape = layer.output_shape(state.shape)
    read = state.linear(lambda x: convolve(x, layer, state.pairs))
    fan_in = state.shape[-1] * math.prod(layer.window)
    return _affine(layer, state, read, fan_in, rates).replace(shape=shape)


@apply_layer.register
def _(layer: SelfAttention, state, rates, pairs_after):
    if rates.parametrisation != "ntk":
        raise ValueError(
            "`SelfAttention` has kernels in the NTK parametrisation alone; use "
            "parametrisation='ntk'."
        )
    if layer.scaling == "sqrt" and layer.mechanism != "identity":
        raise ValueError(
            "`SelfAttention` with scaling='sqrt' has a limit in closed form for "
            f"mechanism='identity' alone, got {layer.mechanism!r}. Use scaling='linear'."
        )
    shape = layer.output_shape(state.shape)
    part_rates = [rates.take(part) for part in layer.parts]
    map_ = linear_attention if layer.scaling == "linear" else identity_attention
    return map_(layer, state, part_rates).replace(shape=shape, gaussian=True)


def _affine(layer, state, read, fan_in: int, rates: Rates) -> Covariances:
    """Weights and bias on covariances `read` that the layer sees."""
    weight, bias = layer.weight_std**2, 0.0 if layer.bias_std is None else layer.bias_std**2
    new = read.linear(lambda x: weight * x + bias, tangent=False)
    below = None if read.tangent is None else weight * read.tangent
    rate = rates.take(layer)
    if rate is None:
        own = None
    elif rates.parametrisation == "standard":
        # weights of variance sigma_w^2/fan_in and no factor in front: the gradient is the input
        # itself, whose square is a sum over the fan-in
        own = rate * (fan_in * read.cross + (0.0 if layer.bias_std is None else 1.0))
    else:
        own = rate * new.cross  # the gradient by weights and bias, squared, is the new covariance
    tangent = own if below is None else below if own is None else own + below
    return new.replace(tangent=tangent, gaussian=True)


# ---------------------------------------------------------------- layers without


@apply_layer.register
def _(layer: Activate, state, rates, pairs_after):
    if not state.gaussian:
        raise ValueError(
            f"`architecture` applies {layer.activation!r} to values that are not Gaussian in the "
            "limit of infinite width. "
            "Put a `Dense` or `Conv` layer before it."
        )
    both = dual(layer.activation).both
    # `left` and `right` hold the covariances of a sample with itself at two positions: Gaussian
    # pairs like those of `cross`, with the variances at both positions on the outside
    own = lambda k: both(*_sandwich(state.own_variances(k), k))[0]
    p, r = state.variances()
    if not dual(layer.activation).closed:
        _check_quadrature(layer.activation, p, r)
    cross, slope = both(p, state.cross, r)
    return state.replace(
        left=None if state.left is None else own(state.left),
        right=None if state.right is None else own(state.right),
        cross=cross,
        tangent=None if state.tangent is None else state.tangent * slope,
        gaussian=False,
    )


def _check_quadrature(activation, p, r):
    """Measures the error where there are numbers to measure it at; inside `jax.jit` there are none,
    inside `jax.grad` a first call has.
    """
    for variances in (p, r):
        if not isinstance(variances, Tracer):
            check_smooth(activation, variances)


def _sandwich(outer, inner):
    return outer[0], inner, outer[1]


@apply_layer.register
def _(layer: LayerNorm, state, rates, pairs_after):
    if not state.gaussian:
        raise ValueError(
            "`LayerNorm` needs centred Gaussian channels in the limit of infinite width: put it "
            "right after a `Dense` or "
            "`Conv` layer (before the activation), not after an activation."
        )
    # over infinitely many channels the mean is 0 and the mean square the variance, so that layer
    # norm is a fixed factor, which `cross` and `tangent` share; two roots, as the product could
    # overflow
    scaled = lambda x, outer: (
        x / jnp.sqrt(outer[0] + layer.epsilon) / jnp.sqrt(outer[1] + layer.epsilon)
    )
    own = lambda x: None if x is None else scaled(x, state.own_variances(x))
    outer = state.variances()
    return state.replace(
        left=own(state.left),
        right=own(state.right),
        cross=scaled(state.cross, outer),
        tangent=None if state.tangent is None else scaled(state.tangent, outer),
    )


@apply_layer.register(AveragePool)
@apply_layer.register(SumPool)
def _(layer, state, rates, pairs_after):
    mean = isinstance(layer, AveragePool)
    pooled = state.linear(lambda x: pool(x, layer, state.pairs, mean))
    return pooled.replace(shape=layer.output_shape(state.shape))


@apply_layer.register
def _(layer: GlobalAveragePool, state, rates, pairs_after):
    shape = layer.output_shape(state.shape)
    pooled = state.linear(lambda x: mean_over_positions(x, state.spatial, state.pairs))
    return pooled.replace(shape=shape, pairs=False)


@apply_layer.register
def _(layer: Flatten, state, rates, pairs_after):
    # the weights that read a flattened sample are independent from position to position: pairs of
    # different positions have no part, and the new fan-in makes the sum over positions a mean
    flat = state.without_pairs()
    flat = flat.linear(lambda x: mean_over_positions(x, state.spatial, False))
    return flat.replace(shape=layer.output_shape(state.shape))


@apply_layer.register
def _(layer: Chain, state, rates, pairs_after):
    return run_layers(layer.layers, state, rates, pairs_after)


@apply_layer.register
def _(layer: Residual, state, rates, pairs_after):
    layer.output_shape(state.shape)  # both branches must give one shape
    body = run_layers(layer.body.layers, state, rates, pairs_after)
    around = state
    if layer.shortcut is not None:
        around = run_layers(layer.shortcut.layers, state, rates, pairs_after)
    around = around if pairs_after else around.without_pairs()
    # E[(f + g)(f' + g')] = E[ff'] + E[gg']: the cross terms vanish where one branch ends with
    # centred weights that the other does not have
    independent = weighted_layers(layer.body) or (
        layer.shortcut and weighted_layers(layer.shortcut)
    )
    if not (independent and (body.gaussian or around.gaussian)):
        raise ValueError(
            "`Residual` adds two branches that are correlated in the limit of infinite width. "
            "End its `body` with a "
            "`Dense` or `Conv` layer."
        )
    add = lambda a, b: b if a is None else a if b is None else a + b
    return body.replace(
        left=add(body.left, around.left),
        right=add(body.right, around.right),
        cross=body.cross + around.cross,
        tangent=add(body.tangent, around.tangent),
        gaussian=body.gaussian and around.gaussian,
    )


# ---------------------------------------------------------------- before the first weights


@functools.singledispatch
def on_inputs(layer, x) -> Array:
    """A layer without weights on the inputs themselves, (sample, *position, channel)."""
    raise ValueError(
        f"`architecture` holds a layer {type(layer).__name__} whose infinite-width limit is not "
        "known."
    )


@on_inputs.register
def _(layer: Activate, x):
    return layer.activation(x)


@on_inputs.register
def _(layer: Flatten, x):
    return x.reshape(x.shape[0], -1)


@on_inputs.register
def _(layer: GlobalAveragePool, x):
    layer.output_shape(x.shape[1:])
    return x.mean(tuple(range(1, x.ndim - 1)))


@on_inputs.register(AveragePool)
@on_inputs.register(SumPool)
def _(layer, x):
    layer.output_shape(x.shape[1:])
    leading = jnp.moveaxis(x, 0, -1)  # positions lead
    return jnp.moveaxis(pool(leading, layer, False, isinstance(layer, AveragePool)), -1, 0)


@on_inputs.register
def _(layer: LayerNorm, x):
    centred = x - x.mean(-1, keepdims=True)
    return centred / jnp.sqrt((centred**2).mean(-1, keepdims=True) + layer.epsilon)


@on_inputs.register
def _(layer: Chain, x):
    for part in layer.layers:
        x = on_inputs(part, x)
    return x


@on_inputs.register
def _(layer: Residual, x):
    around = x if layer.shortcut is None else on_inputs(layer.shortcut, x)
    return on_inputs(layer.body, x) + around
