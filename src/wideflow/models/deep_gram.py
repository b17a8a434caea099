r"""The tangent Gram matrix of a deep network from products of layer Gram matrices; no Jacobian is
formed.

With $x_{ip}$ what output position $p$ of a weight layer sees of sample $i$ and
$\delta_{ikp} = \partial f_k(x_i)/\partial h_{ip}$, the layer's part is
$$\Theta_{(i,k),(j,l)} = c\,\kappa^2 \sum_{p,q} \langle x_{ip}, x_{jq}\rangle\, \langle\delta_{ikp},
  \delta_{jlq}\rangle,$$
$\kappa$ its factor in the forward pass and $c$ its rate's multiplier; a bias has the same with 1
for $\langle x, x'\rangle$. One backward pass an output gives every $\delta$. A dense layer has one
position: two products of (sample, width) matrices and a Hadamard product,
$O(n^2(\text{fan-in} + \text{fan-out}))$ instead of $O(n^2\,\text{fan-in}\cdot\text{fan-out})$. With
many positions it can be cheaper to sum over them first, $\sum_p x_{ip}\otimes\delta_{ikp}$, which
is the gradient itself; the count of multiplications decides.
"""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._core.architecture import Conv, Dense
from .._core.memory import budget
from .._core.node_products import symmetric_product
from .deep import Deep
from .layers import patches

__all__ = ["gram", "gram_parts"]

COPIES = 4  # of a tile's arrays that the compiled program holds at its peak


class Side(eqx.Module):
    """One layer at some samples: what each output position sees, and the outputs' gradients
    there.
    """

    inputs: Float[Array, "sample position fan_in"]
    gradient: Float[Array, "sample output position channel"]


def sides(model: Deep, features, output: int | None) -> dict[int, Side]:
    """Every trained layer's `Side`, by number; for one output, or for all of them if None."""
    trained = [l for l, place in enumerate(model.places) if place.layer.trained]
    shapes: dict[int, tuple] = {}

    def measure(number, layer: Dense | Conv, x):
        h = model.weigh(number, layer, x)
        shapes[number] = (h.shape, h.dtype)
        return h

    outputs = jax.eval_shape(lambda: model.respond_through(features, measure))

    def shifted(shifts):
        """Outputs with `shifts` added to the trained layers' pre-activations, and what those layers
        see.
        """
        inputs = {}

        def weigh(number, layer, x):
            h = model.weigh(number, layer, x)
            if number not in shifts:
                return h
            inputs[number] = patches(layer, x)
            # the derivative of f in a shift at 0 is delta, without a derivative in any weight
            return h + shifts[number]

        return model.respond_through(features, weigh), inputs

    zeros = {l: jnp.zeros(*shapes[l]) for l in trained}
    _, pull, inputs = jax.vjp(shifted, zeros, has_aux=True)
    if outputs.ndim == 1:
        rows = jnp.ones((1, *outputs.shape), outputs.dtype)
    else:
        basis = jnp.eye(outputs.shape[1], dtype=outputs.dtype)
        basis = basis if output is None else basis[output : output + 1]
        # samples do not mix: pulling e_k back for all samples at once gives every sample its own
        # delta_k
        rows = jnp.broadcast_to(basis[:, None, :], (len(basis), *outputs.shape))
    gradients = jax.vmap(lambda row: pull(row)[0])(rows)
    flat = lambda g: jnp.moveaxis(g.reshape(*g.shape[:2], -1, g.shape[-1]), 0, 1)
    return {l: Side(inputs[l], flat(gradients[l])) for l in trained}


def gram_parts(
    model: Deep, left, right=None, output: int | None = 0, memory=None
) -> dict[str, Array]:
    """The Gram matrix's part of every trained array, (sample x output, sample x output), from
    embedded inputs.

    `right` None means `left` itself; `output` None all outputs. Samples are worked off in tiles
    that fit the memory budget.
    """
    return _tiled(_parts, model, left, right, output, memory)


def gram(
    model: Deep, left, right=None, output: int | None = 0, memory=None
) -> Float[Array, "left right"]:
    """The sum of all parts."""
    return _tiled(_total, model, left, right, output, memory)


def _tiled(block, model: Deep, left, right, output, memory) -> Any:
    """`block` on tiles of samples, put together again; of a symmetric matrix only the upper ones
    are computed.
    """
    per_sample = COPIES * left.dtype.itemsize * _numbers_per_sample(model, output)
    # two sides of a tile are in memory at once
    tile = max(1, int(budget(memory) // (2 * per_sample)))
    other = left if right is None else right
    if tile >= max(len(left), len(other)):
        return block(model, left, right, output)
    firsts, seconds = range(0, len(left), tile), range(0, len(other), tile)
    blocks = {}
    for i in firsts:
        for j in seconds:
            if right is None and j < i:
                blocks[i, j] = jax.tree.map(jnp.transpose, blocks[j, i])
            else:
                facing = None if right is None and i == j else other[j : j + tile]
                blocks[i, j] = block(model, left[i : i + tile], facing, output)
    join = lambda axis, trees: jax.tree.map(lambda *t: jnp.concatenate(t, axis=axis), *trees)
    return join(0, [join(1, [blocks[i, j] for j in seconds]) for i in firsts])


def _numbers_per_sample(model: Deep, output: int | None) -> int:
    """Numbers that the two sides of a sample hold, and its gradient rows in layers with many
    positions.
    """
    all_outputs = math.prod(model.architecture.output_shape(model.input_shape))
    count, outputs = 0, 1 if output is not None else all_outputs
    for place in model.places:
        positions = math.prod(place.layer.output_shape(place.shape)[:-1])
        count += positions * (place.fan_in + outputs * place.channels_out)
        if positions > 1:
            count += outputs * place.fan_in * place.channels_out
    return count


@eqx.filter_jit
def _total(model: Deep, left, right, output: int | None):
    return sum(_parts(model, left, right, output).values())


@eqx.filter_jit
def _parts(model: Deep, left, right, output: int | None) -> dict[str, Array]:
    ours = sides(model, left, output)
    theirs = ours if right is None else sides(model, right, output)
    parts = {}
    for l in ours:
        weight, bias = model.scales[l]
        parts[f"weight_{l + 1}"] = weight.rate * weight.factor**2 * _products(ours[l], theirs[l])
        if bias is not None:
            own, other = (_rows(jnp.sum(side[l].gradient, axis=2)) for side in (ours, theirs))
            parts[f"bias_{l + 1}"] = bias.rate * bias.factor**2 * _inner(own, other, right is None)
    return parts


def _products(a: Side, b: Side):
    r"""$\sum_{p,q} \langle x_{ip}, x_{jq}\rangle \langle\delta_{ikp}, \delta_{jlq}\rangle$,
    whichever way takes fewer multiplications.
    """
    n, outputs, positions, channels = a.gradient.shape
    m, fan_in = b.gradient.shape[0], a.inputs.shape[-1]
    if positions == 1:
        overlaps = _inner(a.inputs[:, 0], b.inputs[:, 0], a is b)
        gradients = _inner(_rows(a.gradient), _rows(b.gradient), a is b)
        whole = overlaps[:, None, :, None] * gradients.reshape(n, outputs, m, outputs)
        return whole.reshape(n * outputs, m * outputs)
    # overlaps <x, x'>, overlaps <delta, delta'> for all pairs of outputs, and their product
    pairs = n * m * positions**2 * (fan_in + outputs**2 * (channels + 1))
    # gradients sum_p x_p (x) delta_p of both sides, and their inner products
    rows = outputs * fan_in * channels * ((n + m) * positions + n * m * outputs)
    if rows <= pairs:
        summed = lambda side: _rows(jnp.einsum("ipf,ikpc->ikfc", side.inputs, side.gradient))
        left = summed(a)
        return _inner(left, left if a is b else summed(b), a is b)
    overlaps = jnp.einsum("ipf,jqf->ijpq", a.inputs, b.inputs)
    gradients = jnp.einsum("ikpc,jlqc->ikjlpq", a.gradient, b.gradient)
    return jnp.einsum("ijpq,ikjlpq->ikjl", overlaps, gradients).reshape(n * outputs, m * outputs)


def _inner(left, right, symmetric: bool):
    return symmetric_product(left) if symmetric else left @ right.T


def _rows(gradient):
    """(sample, output, ...) as (sample x output, ...)."""
    return gradient.reshape(gradient.shape[0] * gradient.shape[1], -1)
