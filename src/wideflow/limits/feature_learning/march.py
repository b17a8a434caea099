r"""The field theory forward in time, one descent step after the other.

With $\eta$ the rate, $(\mu, k)$ a point and a step, and bars on responses that are counted per step,
$$h^l_\mu(k) = u^l_\mu(k) + \sum_{j<k,a} C^l_{\mu a}(k,j)\, g^l_a(j), \qquad C^l = \bar A^{l-1} + \eta\gamma_0\, \Phi^{l-1} \Delta,$$
$$z^l_\mu(k) = r^l_\mu(k) + \sum_{j\le k,a} D^l_{\mu a}(k,j)\, \phi(h^l_a(j)), \qquad D^l = \bar B^l + \eta\gamma_0\, G^{l+1} \Delta\, 1_{j<k},$$
$g^l = \phi'(h^l) z^l$. Everything at step $k$ depends on earlier steps, on lower layers (for $h$) and on upper ones (for $z$): going up and
then down at every step solves the self-consistent equations exactly for the given draws. Nothing is iterated and nothing has to converge.

Responses. With $v$ a white probe, $\langle \partial g / \partial u \rangle = \langle (g[u + \epsilon v] - g[u])\, v^\top \rangle / \epsilon$, where the shifted
sources run through the same recursion. Three parts are known without that noise and serve as control variates: $C \circ \langle\phi'\phi'^\top\rangle$,
$D \circ \langle\phi'\phi'^\top\rangle$, and the direct share of $u(k)$ in $g(k)$, which is diagonal; noise only enters in second order. Smooth
activations take a tiny $\epsilon$. With kinks derivatives along a path are useless (they know nothing of the density at the kink, and kernels in
their place multiply over time), while differences stay bounded: there $\epsilon$ is a fraction of a standard deviation, at a bias of second order.
(Stein's lemma, $\langle g\,u^\top \rangle \Phi^{-1}$, would divide the noise by the smallest eigenvalues of a nearly singular $\Phi$.)
"""

import jax
import jax.numpy as jnp

from .causal_factor import append_rows
from .draws import layer_draws

# Histories of a layer, each (row, sample), rows ordered by (step, point):
HISTORIES = (
    "phi",  # phi(h)
    "slope",  # phi'(h)
    "g",
    "slope_probe",  # phi'(h) v
    "phi_r",  # phi(h) under r + epsilon v
    "g_r",
    "phi_u",  # phi(h) under u + epsilon v
    "g_u",
)
ARRAYS_A_LAYER = len(HISTORIES) + 3  # and the draws
SMOOTH_SHIFT = 1e-4  # standard deviations: truncation 1e-8, rounding 1e-12
KINKED_SHIFT = 0.2  # r is of order one whatever the inputs; chosen: bias of about its square in a correction; a fifth of the neurons near the kink count


def march(key, input_gram, targets, rate, richness, problem):
    """One solution of the field theory.

    Args:
        input_gram: $\\Phi^0$ over training points, then test points, (point, point).
        targets: one number a training point.
        rate, richness: $\\eta$ and $\\gamma_0$.
        problem: `Problem`, the settings that shape the program.

    Returns:
        outputs (step, point), features and gradients (layer, row, row), forward and backward responses
        (layer, row, row), and pre-activations of the first `problem.neurons` neurons (layer, row, neuron).
    """
    points, depth = input_gram.shape[0], problem.depth
    rows, samples = (problem.steps + 1) * points, problem.samples
    draws = [layer_draws(jax.random.fold_in(key, l), rows, samples) for l in range(depth)]
    bottom = jnp.zeros((points, points))
    bottom = append_rows(bottom, input_gram, 0) @ draws[0]["u"][:points]
    readout = draws[-1]["r"][0]
    if problem.readout == "frozen signs":
        readout = jnp.sign(readout)
    square = lambda: [jnp.zeros((rows, rows)) for _ in range(depth)]
    # Neurons are shown from all four blocks of signs.
    shown = jnp.arange(problem.neurons) * max(samples // max(problem.neurons, 1), 1)
    state = {
        "layers": [{name: jnp.zeros((rows, samples)) for name in HISTORIES} for _ in range(depth)],
        "features": square(),
        "gradients": square(),
        "forward": square(),  # A of layer l
        "backward": square(),  # B that layer l hands to layer l - 1
        "factor_u": square(),
        "factor_r": square(),
        "errors": jnp.zeros(rows),  # Delta, zero at test points
        "outputs": jnp.zeros((problem.steps + 1, points)),
        "h": jnp.zeros((depth, rows, problem.neurons)),
    }
    tiled_inputs = jnp.tile(input_gram, (1, problem.steps + 1))
    strength = rate * richness
    place = jnp.arange(rows) // points
    act = problem.activation
    shift = KINKED_SHIFT if act.kinks else SMOOTH_SHIFT

    def block(array, start):
        return jax.lax.dynamic_slice_in_dim(array, start, points, 0)

    def put(array, values, start):
        return jax.lax.dynamic_update_slice_in_dim(array, values, start, 0)

    def put_symmetric(array, values, start):
        array = jax.lax.dynamic_update_slice(array, values.T, (0, start))
        return jax.lax.dynamic_update_slice(array, values, (start, 0))

    def step(k, state):
        state = {**state, **{n: list(v) for n, v in state.items() if isinstance(v, list)}}
        start = k * points
        before, until = place < k, place <= k
        weights = strength * state["errors"] * before
        local: list = [None] * depth
        for l in range(depth):  # upwards: h
            past, draw = dict(state["layers"][l]), draws[l]
            probe = block(draw["probe"], start)
            if l == 0:
                u, drive = bottom, tiled_inputs * weights
            else:
                below = block(state["features"][l - 1], start)
                factor = append_rows(state["factor_u"][l], below, start)
                state["factor_u"][l] = factor
                u = block(factor, start) @ draw["u"]
                drive = below * weights + block(state["forward"][l - 1], start) * before
            variance = input_gram if l == 0 else state["features"][l - 1][:points, :points]
            spread = jnp.mean(jnp.diagonal(variance))
            epsilon = shift * jnp.where(spread > 0, jnp.sqrt(spread), 1.0)
            h = u + drive @ past["g"]
            h_r, h_u = u + drive @ past["g_r"], u + epsilon * probe + drive @ past["g_u"]
            phi, slope = act(h), act.derivative(h)
            values = (phi, slope, slope * probe, act(h_r), act(h_u))
            names = ("phi", "slope", "slope_probe", "phi_r", "phi_u")
            past |= {n: put(past[n], value, start) for n, value in zip(names, values)}
            indirect = (values[3] - phi) / shift - slope * (drive @ past["slope_probe"])
            slopes = slope @ past["slope"].T / samples * until
            response = drive * slopes + (indirect @ draw["probe"].T / samples) * before
            features = phi @ past["phi"].T / samples * until
            state["features"][l] = put_symmetric(state["features"][l], features, start)
            state["forward"][l] = put(state["forward"][l], response, start)
            state["layers"][l] = past
            state["h"] = jax.lax.dynamic_update_slice(state["h"], h[None, :, shown], (l, start, 0))
            local[l] = {"h": h, "h_r": h_r, "h_u": h_u, "slope": slope, "slopes": slopes}
            local[l] |= {"phi": phi, "probe": probe, "epsilon": epsilon}
        for l in reversed(range(depth)):  # downwards: z and g
            past, draw, here = dict(state["layers"][l]), draws[l], local[l]
            if l == depth - 1:
                r = readout
                trained = problem.readout != "frozen signs"
                drive = jnp.broadcast_to(weights * trained, (points, rows))
            else:
                above = block(state["gradients"][l + 1], start)
                factor = append_rows(state["factor_r"][l], above, start)
                state["factor_r"][l] = factor
                r = block(factor, start) @ draw["r"]
                drive = above * weights + block(state["backward"][l + 1], start) * until
            z = r + drive @ past["phi"]
            if l == depth - 1:
                outputs = jnp.mean(z * here["phi"], axis=1) / richness
            slope, probe, epsilon = here["slope"], here["probe"], here["epsilon"]
            z_r = r + shift * probe + drive @ past["phi_r"]
            z_u = r + drive @ past["phi_u"]
            values = (
                slope * z,
                act.derivative(here["h_r"]) * z_r,
                act.derivative(here["h_u"]) * z_u,
            )
            past |= {n: put(past[n], v, start) for n, v in zip(("g", "g_r", "g_u"), values)}
            # What u(k) does to g(k) = phi'(h(k)) z(k) directly: <phi'' z>, on the diagonal.
            direct = (act.derivative(here["h"] + epsilon * probe) - slope) * z / epsilon
            indirect = (values[2] - values[0]) / epsilon - direct
            indirect = indirect - slope * (drive @ past["slope_probe"])
            response = drive * here["slopes"] + (indirect @ draw["probe"].T / samples) * until
            equal = jnp.diag(jnp.mean(direct * probe, axis=1))
            corner = jax.lax.dynamic_slice(response, (0, start), (points, points)) + equal
            response = jax.lax.dynamic_update_slice(response, corner, (0, start))
            gradients = values[0] @ past["g"].T / samples * until
            state["gradients"][l] = put_symmetric(state["gradients"][l], gradients, start)
            state["backward"][l] = put(state["backward"][l], response, start)
            state["layers"][l] = past
        slopes = -jax.vmap(jax.grad(problem.loss))(outputs[: len(targets)], targets)
        errors = jnp.zeros(points).at[: len(targets)].set(slopes)
        state["errors"] = put(state["errors"], errors, start)
        state["outputs"] = state["outputs"].at[k].set(outputs)
        return state

    end = jax.lax.fori_loop(0, problem.steps + 1, step, state)
    stack = lambda name: jnp.stack(end[name])
    return {
        "outputs": end["outputs"],
        "features": stack("features"),
        "gradients": stack("gradients"),
        "forward": stack("forward"),
        "backward": stack("backward"),
        "preactivations": end["h"],
    }
