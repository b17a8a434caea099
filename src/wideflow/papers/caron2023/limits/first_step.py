r"""Mean movement at time zero of weights and tangent kernel (caron2023, Theorems 5.1 and 5.2), by
Gaussian quadrature.

Gradient flow on $L = \frac12\sum_i (y_i - f(x_i))^2$ from $w_j \sim \mathcal N(0, I_d)$,
$a_j = \pm1$. Averaged over both, the targets drop out and only the network's own outputs act:

$$\mathbb E\,\dot w_{jk} = -\frac{\lambda_j}{\sqrt d}\sum_i x_{ik}\, g_1(x_i), \qquad g_1(x) =
  \mathbb E[\sigma(sz)\sigma'(sz)],\ s = |x|/\sqrt d,$$
$$\mathbb
  E\,\dot\Theta(x_k,x_l) = -\frac{\langle x_k,x_l\rangle}{d^2}\Big(\sum_j\lambda_j^2\Big)\sum_i\big[\langle
  x_k,x_i\rangle\, g_2(x_k,x_l,x_i)
   + \langle x_l,x_i\rangle\, g_2(x_l,x_k,x_i)\big],$$

$g_2(x_k,x_l,x_i) = \mathbb E[\sigma''(z_1)\sigma'(z_2)\sigma'(z_3)\sigma(z_3)]$ with $z$ Gaussian
of covariance the Gram matrix of $(x_k,x_l,x_i)/\sqrt d$. Corrected: Theorem 5.2 is printed with
$d^{3/2}$ for $d^2$; each of the two gradients of a pre-activation carries its own $1/\sqrt d$
beside the $1/d$ of the kernel. For odd $\sigma$ the function $g_1$ is zero, so the mean weight
velocity vanishes identically although single weights move by $O(\sqrt{\lambda_j})$
(`weight_speed`).
"""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from ...._core.activations import Activation, activation as as_activation
from ...._core.arrays import real_array
from ...._core.errors import check_count
from ...._core.gaussian import expect, expect_pair, pair, pair_derivative
from ...._core.polar import polar, root
from ...._core.precision import double
from ....limits.kernels import preactivation_covariance

__all__ = [
    "mean_kernel_velocity",
    "mean_weight_velocity",
    "output_bound",
    "self_correlation",
    "triple_correlation",
    "weight_speed",
]


MOST_POINTS = 200  # an axis: their cube is held in memory


@double
def self_correlation(inputs, activation) -> Float[Array, " sample"]:
    r"""$g_1(x) = \mathbb E[\sigma(sz)\sigma'(sz)]$, $s = |x|/\sqrt d$, for each row (caron2023,
    Theorem 5.1).

    ReLU: $|x|/\sqrt{2\pi d}$; zero for every odd activation; elsewhere one-dimensional quadrature.

    Args:
        inputs: $x$, one a row.
        activation: $\sigma$.
    """
    act = as_activation(activation)
    inputs = real_array("inputs", inputs, "(sample, feature)").astype(float)
    stds = polar(inputs)[0] / math.sqrt(inputs.shape[1])
    if act.odd:
        return jnp.zeros_like(stds)
    if act.degree == 1:  # sigma sigma' = slope^2 z on each side of the kink, and E|z| = sqrt(2/pi)
        right, left = (float(act.derivative(jnp.asarray(side))) for side in (1.0, -1.0))
        return (right**2 - left**2) * stds / math.sqrt(2.0 * math.pi)
    return expect(lambda z: act(z) * act.derivative(z), stds)


@double
def mean_weight_velocity(inputs, activation, node_weights) -> Float[Array, "width feature"]:
    r"""$\mathbb E[\dot w_{jk}]$ at time zero (caron2023, Theorem 5.1) for the half sum of squares.

    Args:
        inputs: (sample, feature).
        activation: $\sigma$.
        node_weights: the $\lambda_j$, (width,); `scaling.node_scales(width)**2`.
    """
    inputs = real_array("inputs", inputs, "(sample, feature)").astype(float)
    weights = _node_weights(node_weights)
    pull = inputs.T @ self_correlation(inputs, activation)
    return -weights[:, None] * pull[None, :] / math.sqrt(inputs.shape[1])


@double
def weight_speed(inputs, targets, activation, node_weights) -> Float[Array, " width"]:
    r"""Root mean square $(\mathbb E|\dot w_j|^2)^{1/2}$ of the velocity of each node at time zero,
    not in the paper.

    With $K' = \mathbb E\sigma'\sigma'$, $K = \mathbb E\sigma\sigma$,
    $Q = \mathbb E\sigma'\sigma'\sigma\sigma$ for the pair $(i,k)$,
    $$\mathbb E|\dot w_j|^2 = \frac{\lambda_j}{d}\sum_{i,k}\langle
      x_i,x_k\rangle\big\{K'_{ik}(y_iy_k + (\Lambda-\lambda_j)K_{ik}) + \lambda_jQ_{ik}\big\}$$
    with $\Lambda = \sum_k\lambda_k$, which is 1 but for the released sequence and pruned networks. So a
    weight moves like $\sqrt{\lambda_j}$ although its signed mean is $O(\lambda_j)$.

    Args:
        inputs: $x_i$, shape (sample, feature).
        targets: $y_i$, shape (sample,).
        activation: $\sigma$.
        node_weights: $\lambda_j$, shape (width,).
    """
    act = as_activation(activation)
    inputs, targets = (
        real_array("inputs", inputs, "(sample, feature)").astype(float),
        real_array("targets", targets).astype(float),
    )
    weights = _node_weights(node_weights)
    if targets.shape != (len(inputs),):
        raise ValueError(
            f"`targets` must have one number for each of the {len(inputs)} `inputs`, got shape "
            f"{targets.shape}."
        )
    covariance = preactivation_covariance(inputs)
    products = inputs @ inputs.T
    slopes, outputs = pair_derivative(act, *covariance), pair(act, *covariance)
    fixed = jnp.sum(products * slopes * (targets[:, None] * targets[None, :]))
    own = jnp.sum(products * slopes * outputs)
    fourth = jnp.sum(products * _slope_value_pair(act, *covariance))
    squares = (
        weights / inputs.shape[1] * (fixed + (jnp.sum(weights) - weights) * own + weights * fourth)
    )
    return root(squares)


@double
def triple_correlation(first, second, third, activation, *, order: int = 64) -> Float[Array, ""]:
    r"""$g_2 = \mathbb E[\sigma''(z_1)\sigma'(z_2)\sigma'(z_3)\sigma(z_3)]$, $z$ of covariance the
    Gram matrix of the three inputs over $d$.

    Tensor Gauss-Hermite rule of `order` points an axis in the symmetric square root of the
    covariance, which may be singular (it is whenever two arguments coincide); the symmetric root
    needs far fewer points than a triangular or an eigenvector factor.

    Args:
        first, second, third: the inputs behind $z_1$, $z_2$, $z_3$, each of shape (feature,).
        activation: $\sigma$, twice differentiable.
    """
    _check_smooth(as_activation(activation))
    check_count("order", order, most=MOST_POINTS)
    first = real_array("first", first, "(feature)").astype(float)
    second, third = (
        real_array(name, point, f"({len(first)},)").astype(float)
        for name, point in (("second", second), ("third", third))
    )
    points = jnp.stack([first, second, third])
    covariance = points @ points.T / points.shape[1]
    return _triples(covariance[None], as_activation(activation), order)[0]


@double
def mean_kernel_velocity(
    inputs, activation, node_weights, at=None, *, order: int = 64
) -> Float[Array, "point point"]:
    r"""$\mathbb E[\dot\Theta(x_k,x_l)]$ at time zero (caron2023, Theorem 5.2, with the corrected
    prefactor $1/d^2$).

    Args:
        inputs: training inputs, over which the sum runs, (sample, feature).
        activation: a smooth $\sigma$; ReLU has no second derivative and no such law.
        node_weights: the $\lambda_j$, (width,).
        at: points $x_k$ of the kernel, (point, feature); the training inputs when missing.
        order: Gauss-Hermite points an axis. Compare two orders when $|x|/\sqrt d$ is not small.
    """
    act = as_activation(activation)
    _check_smooth(act)
    inputs = real_array("inputs", inputs, "(sample, feature)").astype(float)
    check_count("order", order, most=MOST_POINTS)
    points = inputs
    if at is not None:
        points = real_array("at", at, f"(point, {inputs.shape[1]})").astype(float)
    features, count, samples = inputs.shape[1], points.shape[0], inputs.shape[0]
    weights = _node_weights(node_weights)
    k, l, i = (
        index.ravel()
        for index in np.meshgrid(range(count), range(count), range(samples), indexing="ij")
    )
    triples = jnp.stack([points[k], points[l], inputs[i]], axis=1)
    covariances = jnp.einsum("tad,tbd->tab", triples, triples) / features
    g2 = _triples(covariances, act, order).reshape(count, count, samples)
    half = jnp.einsum("ki,kli->kl", points @ inputs.T, g2)
    return -(points @ points.T) * jnp.sum(weights**2) * (half + half.T) / features**2


@double
def output_bound(activation, features: int) -> float:
    r"""$C_1 = \sup_{0<c\le1}\mathbb E\,\sigma(cz/\sqrt d)^2$ (caron2023, equation 13), the maximum
    over a grid of 200 values of $c$.

    For tanh, sin, erf, sigmoid and softplus the expectation increases with $c$ and the supremum is
    at $c = 1$.

    Args:
        activation: $\sigma$.
        features: $d$.
    """
    check_count("features", features)
    act = as_activation(activation)
    stds = jnp.linspace(0.0, 1.0, 201)[1:] / math.sqrt(features)
    if act.degree == 1:
        return float(jnp.max(pair(act, stds**2, stds**2, stds**2)))
    return float(jnp.max(expect(act, stds, power=2)))


def _check_smooth(act: Activation) -> None:
    if act.kinks:
        raise ValueError(
            f"`activation` must have a second derivative for Theorem 5.2, got {act.name!r}. "
            "Take 'softplus' or a scaled tanh in place of a kinked one."
        )


def _slope_value_pair(act: Activation, k11, k12, k22):
    r"""$\mathbb E[(\sigma\sigma')(u)(\sigma\sigma')(v)]$; piecewise linear activations through the
    ReLU pair, others by quadrature.
    """
    if act.degree == 1:
        right, left = (float(act.derivative(jnp.asarray(side))) ** 2 for side in (1.0, -1.0))
        relu = as_activation("relu")
        same, opposite = pair(relu, k11, k12, k22), pair(relu, k11, -k12, k22)
        return (right**2 + left**2) * same - 2.0 * right * left * opposite
    product = lambda z: act(z) * act.derivative(z)
    return expect_pair(product, product, k11, k12, k22)


@functools.partial(jax.jit, static_argnums=(1, 2))
def _triples(
    covariances: Float[Array, "triple 3 3"], act: Activation, order: int
) -> Float[Array, " triple"]:
    return _means(covariances, act, order)


@functools.partial(jax.custom_jvp, nondiff_argnums=(1, 2))
def _means(covariances, act, order):
    grid, mass = _rule(order)
    return jax.lax.map(
        lambda covariance: mass @ _integrand(act)(*_symmetric_root(covariance) @ grid), covariances
    )


@_means.defjvp
def _means_jvp(act, order, primals, tangents):
    r"""$\mathrm dE\,F = \frac12\sum_{ab} E[\partial_a\partial_bF]\,\mathrm dC_{ab}$ (Price's
    theorem): finite at a singular $C$, whose root has no derivative.
    """
    (covariances,), (changes,) = primals, tangents
    grid, mass = _rule(order)
    hessian = jax.vmap(jax.hessian(lambda z: _integrand(act)(*z)))

    def one(covariance):
        points = (_symmetric_root(covariance) @ grid).T
        return 0.5 * jnp.tensordot(mass, hessian(points), 1)

    slopes = jax.lax.map(one, covariances)
    return _means(covariances, act, order), jnp.einsum("tab,tab->t", slopes, changes)


def _integrand(act: Activation):
    return lambda z1, z2, z3: act.second(z1) * act.derivative(z2) * act.derivative(z3) * act(z3)


def _rule(order: int):
    """Nodes (3, point) and weights of the tensor Gauss-Hermite rule of mass 1."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(order)
    weights = weights / weights.sum()
    grid = np.stack([g.ravel() for g in np.meshgrid(nodes, nodes, nodes, indexing="ij")])
    mass = np.einsum("a,b,c->abc", weights, weights, weights).ravel()
    return jnp.asarray(grid), jnp.asarray(mass)


def _symmetric_root(covariance):
    values, vectors = jnp.linalg.eigh(covariance)
    return (vectors * jnp.sqrt(jnp.maximum(values, 0.0))) @ vectors.T


def _node_weights(node_weights) -> Float[Array, " width"]:
    r"""The $\lambda_j$, which are squares."""
    weights = real_array("node_weights", node_weights, "(width)").astype(float)
    if not isinstance(weights, Tracer) and bool(jnp.any(weights < 0)):
        raise ValueError(f"`node_weights` must not be negative, got {float(weights.min()):.6g}.")
    return weights
