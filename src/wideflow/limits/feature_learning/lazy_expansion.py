r"""Leaving the tangent kernel: the first term of the field theory in the richness, at any depth,
without Monte Carlo.

The equations of `march` in continuous time are expanded in $\gamma_0$ about
$h^l = u^l \sim N(0, \Phi^{l-1})$ and $z^l = r^l \sim N(0, G^{l+1})$, which stand still. Let
$\Delta$ be the errors of the flow on the frozen kernel $\Theta_0$, $S_a(t) = \int_0^t\Delta_a$ and
$P_{ab}(t) = \int_0^t\Delta_a(s)\,S_b(s)\,ds$; means and kernels below are those of the start, and
$\phi_a = \phi(u_a)$.

Responses. To leading order $A^l + \Delta\Phi^l = H^l_{\mu a}\Delta_a(s)$, where
$H^l = \Phi^l + \langle\phi'\phi'\rangle\circ H^{l-1}$, $H^0 = \Phi^0$, is the tangent kernel of the
first $l$ layers ($\Theta_0 = H^L$). Likewise $B^l + \Delta G^{l+1} = \Gamma^l_{\mu a}\Delta_a(s) +
\delta_{\mu a}\delta(t - s)\sum_cb^l_{\mu c}S_c(t)$, from $\Gamma^L = 1$, $b^L = 0$ downwards by
(all means and $G^{l+1}$ of layer $l$'s sources)
$$\Gamma^{l-1} = G^l + \langle\phi'\phi'\rangle\circ\Gamma^l + \langle\phi''\phi''\rangle\circ
  H^{l-1}\circ G^{l+1},$$
$$b^{l-1}_{\mu a} = \langle\phi''_\mu\phi_a\rangle\Gamma^l_{\mu a} +
  \langle\phi^{(3)}_\mu\phi'_a\rangle(H^{l-1}\circ G^{l+1})_{\mu a} + \langle\phi''_\mu\phi_\mu +
  \phi'^2_\mu\rangle b^l_{\mu a}.$$

Fields of layer $l$, with $H = H^{l-1}$, $\Gamma = \Gamma^l$, $\beta_\mu = \sum_ab^l_{\mu a}S_a$:
$$h_{1,\mu} = \sum_aH_{\mu a}S_a\phi'_ar_a, \quad z_{1,\mu} = \sum_a\Gamma_{\mu a}S_a\phi_a +
  \beta_\mu\phi_\mu, \quad z_{2,\mu} = \sum_{ab}\Gamma_{\mu a}P_{ab}H_{ab}\phi'_a\phi'_br_b +
  \beta_\mu\phi'_\mu h_{1,\mu},$$
$$h_{2,\mu} = \sum_{ab}H_{\mu a}P_{ab}\big(\phi''_ar_aH_{ab}\phi'_br_b + \phi'_a(\Gamma_{ab}\phi_b +
  b_{ab}\phi_a)\big).$$
All equations are even under $\gamma_0, r, z, g \to -\gamma_0, -r, -z, -g$, so kernels have no odd
orders: $\Phi^l = \Phi^l_0 + \gamma_0^2\Phi^l_2$ and the like, where $\Phi^l_2$ is the second order
of $\langle\phi(h)\phi(h)\rangle$ in the fields plus what the change $\Phi^{l-1}_2$ of the sources'
covariance does to it, and so for $G^l_2$ downwards. Then
$\Theta_2 = \sum_l(G^{l+1}_2\circ\Phi^l_0 + G^{l+1}_0\circ\Phi^l_2)$, and the outputs
$f_0 + \gamma_0^2f_2$ follow $\dot f_0 = \Theta_0\Delta$, $\dot f_2 = \Theta_2\Delta - \Theta_0f_2$
under half the sum of squares. Descent is the same with sums over earlier steps for the integrals.
Means over $r$ are taken by Wick's theorem; those over $u$ go by the lattice rule where its
covariance has rank at most four, else over points of a Sobol sequence; `error` states what that
leaves.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..._core.activations import Activation, ActivationLike, activation as as_activation
from ..._core.arrays import real_array
from ..._core.errors import check_count
from ..._core.gaussian_lattice import lattice_rule
from ..._core.precision import AbstractResult, double
from ..._core.sobol import sobol_normals
from .arguments import checked_data

ORDERS = {1: 24, 2: 24, 3: 16, 4: 16}  # of the lattice by dimension; a quarter more state the error
POINTS = 2**14  # of the Sobol sequence in more dimensions, twice
RANK = 1e-12  # eigenvalues below this share of the largest count as none


class Layer(NamedTuple):
    r"""What the expansion needs of layer $l$ at the start; matrices are (point, point).

    Attributes:
        u, weights: rule for means over $N(0, \Phi^{l-1})$, (node, point) and (node,).
        features: $\Phi^l_0$. slopes: $\langle\phi'\phi'\rangle$.
        tangent: $H^{l-1}$. back: $G^{l+1}_0$, the covariance of $r$.
        onward: $\Gamma^l$. instant: $b^l$.
    """

    u: jax.Array
    weights: jax.Array
    features: jax.Array
    slopes: jax.Array
    tangent: jax.Array
    back: jax.Array
    onward: jax.Array
    instant: jax.Array


class LazyExpansion(AbstractResult):
    r"""Kernel and outputs to first order in $\gamma_0^2$.

    Attributes:
        times: of the flow.
        kernel: $\Theta_0$, (point, point).
        kernel_coefficients: $\Theta_2$, (time, point, point).
        outputs: $f_0$, (time, point).
        output_coefficients: $f_2$, (time, point).
        error: largest difference of $\Theta_2$ between two quadrature rules.
    """

    times: jax.Array
    kernel: jax.Array
    kernel_coefficients: jax.Array
    outputs: jax.Array
    output_coefficients: jax.Array
    error: float

    def kernels_at(self, richness: float) -> jax.Array:
        r"""$\Theta_0 + \gamma_0^2\Theta_2$, (time, point, point)."""
        return self.kernel + richness**2 * self.kernel_coefficients

    def outputs_at(self, richness: float) -> jax.Array:
        r"""$f_0 + \gamma_0^2f_2$, (time, point)."""
        return self.outputs + richness**2 * self.output_coefficients


@double
def lazy_expansion(
    inputs, targets, times, activation: ActivationLike = "tanh", *, depth: int = 1
) -> LazyExpansion:
    r"""The flow of a wide network to first order in $\gamma_0^2$, half the sum of squares.

    Args:
        inputs, targets: $x$, (sample, feature), and $y$, (sample,).
        times: from 0 on, rising.
        activation: $\phi$, three times differentiable.
        depth: $L$, hidden layers.

    >>> expansion = lazy_expansion([[1.0, 0.0], [0.5, 1.0]], [1.0, -1.0], [1.0])
    >>> bool(expansion.kernel_coefficients[0, 0, 0] > 0)  # features grow
    True
    """
    act = as_activation(activation)
    if act.kinks:
        raise ValueError(
            f"`activation` must be smooth, got {act!r}: the expansion takes three derivatives. "
            "Use `field_theory` for kinks."
        )
    check_count("depth", depth)
    gram, targets = checked_data(inputs, targets, None)
    ts = real_array("times", times, "(time,)").astype(float)
    if ts[0] < 0 or not bool(jnp.all(jnp.diff(ts) > 0)):
        raise ValueError("`times` must rise from 0 or later, each one larger than the one before.")
    coarse, fine = (layers_at_start(act, gram, depth, rule) for rule in range(2))
    kernel = tangent_kernel(fine)
    outputs, corrections, kernels = _flow(kernel, targets, ts, *_coefficients(act, gram, fine))
    other = _flow(kernel, targets, ts, *_coefficients(act, gram, coarse))[2]
    error = float(jnp.max(jnp.abs(kernels - other)))
    return LazyExpansion(ts, kernel, kernels, outputs, corrections, error)


def rule_of(covariance, number: int):
    """Nodes $u$ (node, point) and weights for means over $N(0, \\Phi)$; rule 1 is finer than (in
    many dimensions: another one than) rule 0.
    """
    values, vectors = np.linalg.eigh(np.asarray(covariance))
    live = values > RANK * max(values[-1], 1e-300)
    root = vectors[:, live] * np.sqrt(values[live])
    rank = root.shape[1]
    if rank in ORDERS:
        return lattice_rule(jnp.asarray(root), round((1.0, 1.25)[number] * ORDERS[rank]))
    nodes = sobol_normals(POINTS, max(rank, 1), number)[:, :rank]
    return jnp.asarray(nodes @ root.T), jnp.full(POINTS, 1 / POINTS)


def layers_at_start(act: Activation, gram, depth: int, rule: int) -> list[Layer]:
    """Upwards for features and tangent kernels, downwards for what comes back from the layers
    above.
    """
    covariance, tangent, rising = gram, gram, []
    for _ in range(depth):
        u, weights = rule_of(covariance, rule)
        covariance, *means = _static_means(act, u, weights)
        rising.append((u, weights, covariance, means, tangent))
        tangent = covariance + means[0] * tangent
    back = onward = jnp.ones_like(gram)
    instant, layers = jnp.zeros_like(gram), []
    for u, weights, features, (slopes, bends, bend_value, third_slope), tangent in reversed(rising):
        layers.append(Layer(u, weights, features, slopes, tangent, back, onward, instant))
        # the right sides take this layer's G, Gamma and b and give those of the layer below
        local = jnp.diagonal(bend_value + slopes)[:, None] * instant
        instant = bend_value * onward + third_slope * tangent * back + local
        onward = slopes * back + slopes * onward + bends * tangent * back
        back = slopes * back
    return layers[::-1]


@eqx.filter_jit
def _static_means(act, u, weights):
    f, f1, f2, f3 = _derivatives(act, u)
    mean = lambda left, right: (left * weights[:, None]).T @ right
    return mean(f, f), mean(f1, f1), mean(f2, f2), mean(f2, f), mean(f3, f1)


def _derivatives(act: Activation, u):
    third = jax.vmap(jax.vmap(jax.grad(lambda z: act.bend(z))))
    return act.value(u), act.slope(u), act.bend(u), third(u)


def tangent_kernel(layers: list[Layer]):
    r"""$\Theta_0 = H^L$."""
    last = layers[-1]
    return last.features + last.slopes * last.tangent


@eqx.filter_jit
def kernel_change(act: Activation, gram, layers: list[Layer], S, P):
    r"""$\Theta_2$ from $S$ (point,) and $P$ (point, point); linear in $P$, quadratic in $S$."""
    change, below, rising = jnp.zeros_like(gram), gram, []
    for layer in layers:
        own, gradients, by_source = _second_order(act, layer, S, P)
        value_change, slope_change = by_source
        rising.append((below, change, gradients + layer.back * slope_change(change)))
        change = own + value_change(change)
        below = layer.features
    # Theta = sum over l of G^{l+1} o Phi^l, changed factor by factor
    total, back_change = change, jnp.zeros_like(gram)  # G^{L+1} = 1 stands still
    for layer, (below, below_change, own) in zip(reversed(layers), reversed(rising)):
        back_change = own + layer.slopes * back_change
        total = total + back_change * below + layer.slopes * layer.back * below_change
    return total


def _second_order(act: Activation, layer: Layer, S, P):
    r"""Second orders of $\langle\phi(h)\phi(h)\rangle$ and $\langle gg\rangle$ in the fields, and
    what a change of the sources' covariance does.

    Letters: $i$ a node of $u$, $m, n, a, b$ points; `R` is the covariance of $r$. Given $u$, the
    fields are polynomials in $r$, whose moments are $\langle r_ar_b\rangle = R_{ab}$ and
    $\langle r_ar_br_mr_n\rangle = R_{ab}R_{mn} + R_{am}R_{bn} + R_{an}R_{bm}$.
    """
    H, R, gamma, b = layer.tangent, layer.back, layer.onward, layer.instant
    f, f1, f2, f3 = _derivatives(act, layer.u)
    w = layer.weights[:, None]
    mean = lambda left, right: (left * w).T @ right
    mean3 = lambda left, middle, right: jnp.einsum("im,imn,in->mn", left * w, middle, right)
    both = lambda matrix: matrix + matrix.T

    # (node, point, point): for every node u the fields are matrices that act on r
    X = H * (S * f1)[:, None, :]  # h_1 = X r
    Y = X @ R  # <h_1 r>
    Q = Y @ jnp.swapaxes(X, 1, 2)  # <h_1 h_1>
    y, q = (jnp.diagonal(matrix, axis1=1, axis2=2) for matrix in (Y, Q))
    beta = b @ S
    z1 = (f * S) @ gamma.T + beta * f
    plain = f1 * (f @ (P * gamma).T + f * jnp.sum(P * b, axis=1))
    h2 = (f2 * (f1 @ (P * H * R).T) + plain) @ H.T  # <h_2>

    features = mean3(f1, Q, f1) + both(mean(0.5 * f2 * q + f1 * h2, f))

    # <g_1 g_1>, g_1 = phi'' h_1 r + phi' z_1
    # <h_m h_n r_m r_n> by Wick: <hh><rr>, <h_m r_m><h_n r_n>, <h_m r_n><h_n r_m>
    quartic = Q * R + y[:, :, None] * y[:, None, :] + Y * jnp.swapaxes(Y, 1, 2)
    gradients = mean3(f2, quartic, f2) + both(mean(f2 * y, f1 * z1)) + mean(f1 * z1, f1 * z1)
    # <g_2 g_0>, g_2 = phi^(3) h_1^2 r / 2 + phi'' (h_2 r + h_1 z_1) + phi' z_2 and g_0 = phi' r
    ER = ((P * H) * f2[:, :, None] * f1[:, None, :]) @ R
    crossed = (H * R) @ ER + (H * jnp.swapaxes(ER, 1, 2)) @ R  # <h_2 r r> without <h_2><r r>
    z2 = (gamma * f1[:, None, :]) @ ((P * H) * f1[:, None, :] @ R)
    z2 = z2 + (beta * f1)[:, :, None] * Y  # <z_2 r>
    second = (0.5 * f3 * q + f2 * h2)[:, :, None] * R
    second = second + (f3 * y + f2 * z1)[:, :, None] * Y
    second = second + f2[:, :, None] * crossed + f1[:, :, None] * z2
    gradients = gradients + both(jnp.einsum("i,imn,in->mn", layer.weights, second, f1))

    def moved(value, slope, bend):
        """Change of <value value> where the covariance of u changes: half the second derivatives
        times it.
        """
        sides, middle = mean(bend, value), mean(slope, slope)
        return lambda change: both(0.5 * jnp.diagonal(change)[:, None] * sides) + middle * change

    return features, gradients, (moved(f, f1, f2), moved(f1, f2, f3))


def _coefficients(act: Activation, gram, layers: list[Layer]):
    r"""$\Theta_2 = \sum_{ab}(p_{ab}P_{ab} + s_{ab}S_aS_b)$: the tensors $p$ and $s$, (a, b, point,
    point).

    Nodes are many and times may be: the tensors cost about $3n^2/2$ evaluations once, whatever the
    number of steps of the flow.
    """
    n = len(gram)
    eye, none = np.eye(n), np.zeros((n, n))
    units = np.eye(n * n).reshape(n * n, n, n)
    linear = np.stack([kernel_change(act, gram, layers, none[0], unit) for unit in units])
    quadratic = lambda s: np.asarray(kernel_change(act, gram, layers, s, none))
    squares = [quadratic(e) for e in eye]
    tensor = np.zeros((n, n, n, n))
    for a in range(n):
        tensor[a, a] = squares[a]
        for b in range(a):
            # the quadratic form at a sum, less the squares, is twice the bilinear one
            mixed = 0.5 * (quadratic(eye[a] + eye[b]) - squares[a] - squares[b])
            tensor[a, b] = tensor[b, a] = mixed
    return linear.reshape(n, n, n, n), tensor


@eqx.filter_jit
def _flow(kernel, targets, ts, linear, quadratic):
    from ..._core.solvers import diffrax

    def change(S, P):
        return jnp.einsum("abmn,ab->mn", linear, P) + jnp.einsum("abmn,a,b->mn", quadratic, S, S)

    def field(t, state, args):
        errors, S, P, correction = state
        drift = change(S, P) @ errors - kernel @ correction
        return -kernel @ errors, errors, jnp.outer(errors, S), drift

    n = len(targets)
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(field),
        diffrax.Tsit5(),
        0.0,
        ts[-1],
        None,
        (targets, jnp.zeros(n), jnp.zeros((n, n)), jnp.zeros(n)),
        saveat=diffrax.SaveAt(ts=ts),
        stepsize_controller=diffrax.PIDController(rtol=1e-8, atol=1e-10),
    )
    assert solution.ys is not None  # `saveat` asks for them
    errors, S, P, corrections = solution.ys
    return targets - errors, corrections, jax.vmap(change)(S, P)
