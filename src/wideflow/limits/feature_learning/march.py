r"""The field theory forward in time, one descent step after the other.

With $\eta$ the rate, $(\mu, k)$ a point and a step, and bars on responses that are counted per
step,
$$h^l_\mu(k) = u^l_\mu(k) + \sum_{j<k,a} \big[\bar A^{l-1} + \eta\gamma_0\, \Phi^{l-1}
  \Delta\big]_{\mu a}(k,j)\, g^l_a(j),$$
$$z^l_\mu(k) = r^l_\mu(k) + \sum_{j\le k,a} \big[\bar B^l + \eta\gamma_0\, G^{l+1} \Delta\,
  1_{j<k}\big]_{\mu a}(k,j)\, \phi(h^l_a(j)),$$
$g^l = \phi'(h^l) z^l$. Everything at step $k$ depends on earlier steps, on lower layers (for $h$)
and on upper ones (for $z$): going up and then down at every step solves the self-consistent
equations exactly for the given draws. Nothing is iterated and nothing has to converge.

Responses. Sources are $u = F\zeta$ with white $\zeta$ and $FF^\top = \Phi^{l}$, the covariance of
the features $\phi = \phi(h^l)$ below. Those have therefore white coordinates too,
$\omega = F^{-1}\phi$ with $\langle\omega\omega^\top\rangle = I$, and by Stein's lemma
$$\bar B^l \phi = \left\langle\frac{\partial g^{l+1}}{\partial u^{l+1}}\right\rangle F\,
  F^{-1}\phi = \langle g^{l+1} \zeta^\top\rangle\, \omega,$$
likewise $\bar A^l g^{l+1} = \langle\phi(h^l)\zeta_r^\top\rangle\, F_r^{-1} g^{l+1}$ with
$F_rF_r^\top = G^{l+1}$. No derivative is taken, so kinks are as good as smooth activations, and
nothing is divided by the small eigenvalues of nearly singular kernels: both factors are of order
one. With the signs of `draws` only the part of $g$ that is odd in $u$ and even in $r$ (of $\phi$
that is odd in $r$) makes noise, which is the part that training has brought.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from .causal_factor import append_rows, whiten_rows
from .draws import layer_draws

# Of a layer over all (step, point) rows, each (row, sample):
HISTORIES = (
    "phi",  # phi(h)
    "g",
    "white_phi",  # omega of phi, in the coordinates of the next layer's u
    "white_g",  # of g, in the coordinates of r below
)
ARRAYS_A_LAYER = len(HISTORIES) + 2  # and the draws
MATRICES = (  # each (row, row)
    "features",
    "gradients",
    "forward",  # <phi zeta_r>: the response of phi to r of this layer, times the factor of r
    "backward",  # <g zeta_u>: of g to u of this layer, times the factor of u
    "factor_u",
    "factor_r",
)


class Now(NamedTuple):
    """Where a step stands: its first row, masks over rows of earlier steps and of steps until now,
    and eta gamma_0 Delta of the earlier ones.
    """

    start: jax.Array
    before: jax.Array
    until: jax.Array
    weights: jax.Array


def march(key, first, input_gram, targets, rate, richness, problem):
    """One solution of the field theory.

    Args:
        first: sources of the first step, (layer, u or r, point, copy).
        input_gram: $\\Phi^0$ over training points, then test points, (point, point).
        targets: one number a training point.
        rate, richness: $\\eta$ and $\\gamma_0$.
        problem: `Problem`, the settings that shape the program.

    Returns:
        outputs (step, point), features and gradients (layer, row, row), forward and backward
            responses to white sources
        (layer, row, row), and pre-activations of the first `problem.neurons` neurons (layer, row,
            neuron).
    """
    points, depth, act = input_gram.shape[0], problem.depth, problem.activation
    rows, samples = (problem.steps + 1) * points, problem.samples
    place = jnp.arange(rows) // points
    # u of the first layer and r of the last, the readout, stand still: they need draws of one step
    # only.
    needed = lambda l: (points if l == 0 else rows, 1 if l == depth - 1 else rows)
    draws = [
        layer_draws(jax.random.fold_in(key, l), first[l], needed(l), act) for l in range(depth)
    ]
    bottom = append_rows(jnp.zeros((points, points)), input_gram, 0) @ draws[0]["u"]
    readout = draws[-1]["r"]
    frozen = problem.readout == "frozen signs"
    readout = jnp.sign(readout) if frozen else readout
    tiled_inputs = jnp.tile(input_gram, (1, problem.steps + 1))

    def block(array, start):
        return jax.lax.dynamic_slice_in_dim(array, start, points, 0)

    def put(layer, name, values, start):
        layer[name] = jax.lax.dynamic_update_slice_in_dim(layer[name], values, start, 0)

    def put_kernel(layer, name, values, now):
        """New rows of a symmetric kernel over the steps until now, and the same as columns."""
        # rows of steps to come are still zero in `phi` and `g`; the mask keeps the new columns
        # causal as well
        values = values / samples * now.until
        layer[name] = jax.lax.dynamic_update_slice(layer[name], values.T, (0, now.start))
        put(layer, name, values, now.start)

    def sources(layer, factor, zeta, kernel, fields, name, now):
        """u (or r) of this step for the covariance `kernel`, and the white coordinates of the
        fields `name` whose covariance that is.
        """
        layer[factor] = append_rows(layer[factor], kernel, now.start)
        values, white = block(fields[name], now.start), "white_" + name
        coordinates = whiten_rows(layer[factor], fields[white], values, now.start)
        put(fields, white, coordinates, now.start)
        return block(layer[factor], now.start) @ zeta

    def preactivations(l, layers, now):
        layer = layers[l]
        if l == 0:
            return bottom + (tiled_inputs * now.weights) @ layer["g"]
        lower = layers[l - 1]
        kernel = block(lower["features"], now.start)
        u = sources(layer, "factor_u", draws[l]["u"], kernel, lower, "phi", now)
        memory = block(lower["forward"], now.start) @ layer["white_g"]
        return u + (kernel * now.weights) @ layer["g"] + memory

    def backpropagated(l, layers, now):
        layer = layers[l]
        if l == depth - 1:
            return readout + (0.0 if frozen else now.weights @ layer["phi"])
        upper = layers[l + 1]
        kernel = block(upper["gradients"], now.start)
        r = sources(layer, "factor_r", draws[l]["r"], kernel, upper, "g", now)
        memory = block(upper["backward"], now.start) @ layer["white_phi"]
        return r + (kernel * now.weights) @ layer["phi"] + memory

    def step(k, state):
        layers, errors, outputs, shown = state
        layers = [dict(layer) for layer in layers]
        before = place < k
        now = Now(k * points, before, place <= k, rate * richness * errors * before)
        slopes = []
        for l, layer in enumerate(layers):  # upwards: h
            h = preactivations(l, layers, now)
            phi = act(h)
            put(layer, "phi", phi, now.start)
            put_kernel(layer, "features", phi @ layer["phi"].T, now)
            if l < depth - 1:
                put(layer, "forward", phi @ draws[l]["r"].T / samples * before, now.start)
            slopes.append(act.derivative(h))
            start = (l, now.start, 0)
            shown = jax.lax.dynamic_update_slice(shown, h[None, :, : problem.neurons], start)
        for l, layer in reversed(list(enumerate(layers))):  # downwards: z and g
            z = backpropagated(l, layers, now)
            if l == depth - 1:
                output = jnp.mean(z * block(layer["phi"], now.start), axis=1) / richness
            g = slopes[l] * z
            put(layer, "g", g, now.start)
            put_kernel(layer, "gradients", g @ layer["g"].T, now)
            if l > 0:
                put(layer, "backward", g @ draws[l]["u"].T / samples * now.until, now.start)
        error = -jax.vmap(jax.grad(problem.loss))(output[: len(targets)], targets)
        errors = jax.lax.dynamic_update_slice(errors, error, (now.start,))
        return layers, errors, outputs.at[k].set(output), shown

    empty = {name: jnp.zeros((rows, samples)) for name in HISTORIES}
    empty |= {name: jnp.zeros((rows, rows)) for name in MATRICES}
    state = (
        [empty] * depth,
        jnp.zeros(rows),  # Delta, zero at test points
        jnp.zeros((problem.steps + 1, points)),
        jnp.zeros((depth, rows, problem.neurons)),
    )
    layers, _, outputs, shown = jax.lax.fori_loop(0, problem.steps + 1, step, state)
    for layer in layers:  # a dropped pivot has no source, hence no response but noise
        layer["forward"] *= jnp.diagonal(layer["factor_r"]) > 0
        layer["backward"] *= jnp.diagonal(layer["factor_u"]) > 0
    stacked = {name: jnp.stack([layer[name] for layer in layers]) for name in MATRICES[:4]}
    return {"outputs": outputs, "preactivations": shown, **stacked}
