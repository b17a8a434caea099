r"""Expectations of two ridge functions: $E[f(u)g(v)]$ with its derivatives, for $f \ne g$ as well.

$(u, v)$ is centred Gaussian with covariance $((k_{11}, k_{12}), (k_{12}, k_{22}))$. By Stein's
lemma $E[f'(u)\,z\,g(v)] = \mathrm{Cov}(z, u)\,E[f''g] + \mathrm{Cov}(z, v)\,E[f'g']$ for any third
Gaussian $z$, so the four numbers of a `Pair` are all that gradients of population losses and the
drift of order parameters need.

Closed forms: each activation is a sum of parts, a polynomial, $|u|$, or a sign seen through noise,
for $\mathrm{erf}(bu) = E_n\,\mathrm{sign}(u + n)$ with $n \sim N(0, 1/(2b^2))$. With
$s^2 = k_{11}k_{22}$ and, for signs, $A = k_{11} + \nu_1$, $B = k_{22} + \nu_2$,
$$E|u||v| = \tfrac2\pi\big(\sqrt{s^2-k_{12}^2} + k_{12}\arcsin(k_{12}/s)\big), \qquad
  E\,\mathrm{sign}\,\mathrm{sign} = \tfrac2\pi\arcsin\frac{k_{12}}{\sqrt{AB}}, \qquad
  E|u|\,\mathrm{sign}(v) = 0,$$
$$E[p(u)g(v)] = \sum_{j\le\deg p}\frac{k_{12}^j}{j!}\,E[p^{(j)}(u)]\,E[g^{(j)}(v)]
  \quad\text{(Mehler, a finite sum)}.$$
All others by the trapezoid rule in two dimensions with a spacing that fits the variances
(`gaussian_lattice`): for tanh the error is below 2e-12 at variances up to 4, 2e-7 at 16 and 3e-5 at
64, the largest where both Gaussians are one.
"""

import functools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .activations import Activation, powers
from .gaussian import angle
from .gaussian_lattice import line_rule

NODES = 128  # a dimension; see the head of this file for the error
PAIRS_AT_ONCE = 64  # 64 pairs of 128 x 128 nodes are 8 MB an array


class Pair(NamedTuple):
    """$E[fg]$, $E[f''g]$, $E[fg'']$ and $E[f'g']$."""

    value: Float[Array, "*shape"]
    first: Float[Array, "*shape"]
    second: Float[Array, "*shape"]
    mixed: Float[Array, "*shape"]


class Polynomial(NamedTuple):
    coefficients: tuple[float, ...]


class Absolute(NamedTuple):
    factor: float


class NoisySign(NamedTuple):
    noise: float


def parts(act: Activation) -> list | None:
    """The activation as a sum of `Polynomial`, `Absolute` and `NoisySign`; None where it is no such
    sum.
    """
    if (coefficients := powers(act)) is not None:
        return [Polynomial(coefficients)]
    if act.name == "relu":
        return [Polynomial((0.0, 0.5)), Absolute(0.5)]
    if act.name in ("leaky_relu", "two_slopes"):
        a, b = (*act.parameters, 1.0)[:2]  # slopes on the left and on the right
        return [Polynomial((0.0, (b + a) / 2)), Absolute((b - a) / 2)]
    if act.name == "abs":
        return [Absolute(1.0)]
    if act.name in ("erf", "unit_erf"):
        return [NoisySign(1 / (2 * act.parameters[0] ** 2))]
    return [NoisySign(0.0)] if act.name == "sign" else None


def check_ridge(name: str, act: Activation) -> None:
    """Refuses kinked activations without a closed form: quadrature would not converge on them."""
    if parts(act) is None and act.kinks:
        raise ValueError(
            f"`{name}` must be smooth or one of 'relu', 'leaky_relu', 'abs' and `sign()`, got "
            f"{act.name!r}, "
            "whose kinks have no closed form here."
        )


def ridge_pair(f: Activation, g: Activation, k11, k12, k22, nodes: int = NODES) -> Pair:
    """The four expectations, elementwise over broadcast covariances; `nodes` a dimension where
    quadrature is needed.
    """
    k11, k12, k22 = jnp.broadcast_arrays(*(jnp.asarray(k, float) for k in (k11, k12, k22)))
    left, right = parts(f), parts(g)
    if left is None or right is None:
        for act in (f, g):
            if act.kinks:
                raise ValueError(
                    f"the pair of {f.name!r} and {g.name!r} has no closed form, and the kink of "
                    f"{act.name!r} "
                    "spoils quadrature; take a smooth activation in its place."
                )
        return _by_quadrature(f, g, k11, k12, k22, nodes)
    products = [_product(p, q, k11, k12, k22) for p in left for q in right]
    return Pair(*(functools.reduce(jnp.add, numbers) for numbers in zip(*products, strict=True)))


def _product(p, q, k11, k12, k22) -> Pair:
    if isinstance(p, Polynomial) or isinstance(q, Polynomial):
        return _mehler(p, q, k11, k12, k22)
    if isinstance(p, Absolute) and isinstance(q, Absolute):
        return _absolutes(p, q, k11, k12, k22)
    if isinstance(p, NoisySign) and isinstance(q, NoisySign):
        return _signs(p, q, k11, k12, k22)
    zero = jnp.zeros_like(k12)  # an even and an odd function
    return Pair(zero, zero, zero, zero)


def _absolutes(p, q, k11, k12, k22) -> Pair:
    # E[2 delta(u) |v|] = 2/sqrt(2 pi k11) sqrt(2/pi) sqrt(k22 - k12^2/k11) = (2/pi) sqrt(s^2 -
    # k12^2)/k11, and E[sign sign] = (2/pi)(pi/2 - theta)
    _, sines, theta = angle(k11, k12, k22)  # |u|'' = 2 delta(u)
    scale = 2 * p.factor * q.factor / jnp.pi
    turn = jnp.pi / 2 - theta
    return Pair(
        scale * (sines + k12 * turn),
        scale * _ratio(sines, k11),
        scale * _ratio(sines, k22),
        scale * turn,
    )


def _signs(p, q, k11, k12, k22) -> Pair:
    a, b = k11 + p.noise, k22 + q.noise
    # AB - k12^2 without the cancellation of two large products
    square = (k11 * k22 - k12**2) + p.noise * k22 + q.noise * k11 + p.noise * q.noise
    root = jnp.sqrt(jnp.maximum(square, 0.0))
    scale = 2 / jnp.pi
    # E[4 delta(u + n) delta(v + n')] = 4/(2 pi root); the first and second follow by E[f'' g] = 2
    # d/dk11 E[fg] (Price) from the arc sine
    mixed = scale * _ratio(jnp.ones_like(root), root)
    return Pair(
        scale * jnp.arctan2(k12, root), -k12 * _ratio(mixed, a), -k12 * _ratio(mixed, b), mixed
    )


def _ratio(numerator, denominator):
    """Zero where the denominator is: a neuron without weights sits at its kink, where the slope is
    0 by convention.
    """
    inside = denominator > 0
    return jnp.where(inside, numerator / jnp.where(inside, denominator, 1.0), 0.0)


def _mehler(p, q, k11, k12, k22) -> Pair:
    degrees = [len(x.coefficients) - 1 for x in (p, q) if isinstance(x, Polynomial)]
    top = min(degrees)  # the shorter polynomial's derivatives end the sum
    # derivatives up to order top, and two more for f'' and g''
    a, b = _means(p, k11, top + 3), _means(q, k22, top + 3)

    def series(i: int, j: int):
        terms = (k12**n / math.factorial(n) * a[n + i] * b[n + j] for n in range(top + 1))
        return sum(terms, start=jnp.zeros_like(k12))

    return Pair(series(0, 0), series(2, 0), series(0, 2), series(1, 1))


def _means(part, k, count: int) -> list:
    r"""$E[f^{(j)}(\sqrt k\,z)]$, $z \sim N(0, 1)$, for $j <$ `count`."""
    zero = jnp.zeros_like(k)
    if isinstance(part, Polynomial):
        coefficients, means = np.asarray(part.coefficients), []
        for _ in range(count):
            even = enumerate(coefficients[::2])
            means.append(sum((c * _double_factorial(2 * m - 1) * k**m for m, c in even), zero))
            coefficients = np.polynomial.polynomial.polyder(coefficients)
        return means
    if isinstance(part, Absolute):
        # |u|'' = 2 delta(u), an even function
        rises = [2 * part.factor * d for d in _density_at_zero(k, count)]
        return ([part.factor * jnp.sqrt(2 * k / jnp.pi), zero] + rises)[:count]
    return ([zero] + [2 * d for d in _density_at_zero(k + part.noise, count)])[:count]


def _density_at_zero(k, count: int) -> list:
    r"""The derivatives at 0 of the density of $N(0, k)$:
    $(-1)^{m/2}(m-1)!!\,k^{-m/2}/\sqrt{2\pi k}$ for even $m$, else 0.
    """
    # He_m(0) = (-1)^(m/2) (m - 1)!! for even m, and the m-th derivative of the density is (-1)^m
    # k^(-m/2) He_m times it
    density = _ratio(jnp.ones_like(k) / math.sqrt(2 * math.pi), jnp.sqrt(k))
    inverse = _ratio(jnp.ones_like(k), k)
    return [
        (-1) ** (m // 2) * _double_factorial(m - 1) * inverse ** (m // 2) * density
        if m % 2 == 0
        else jnp.zeros_like(k)
        for m in range(count)
    ]


def _double_factorial(n: int) -> int:
    return math.prod(range(n, 0, -2))


def hermite_nodes(order: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Hermite nodes and weights for the normal law; exact up to degree 2 `order` - 1."""
    t, weights = np.polynomial.hermite_e.hermegauss(order)
    return t, weights / weights.sum()


def _by_quadrature(f: Activation, g: Activation, k11, k12, k22, nodes: int) -> Pair:
    r"""$u = \sqrt{k_{11}}\,t_1$,
    $v = (k_{12}/\sqrt{k_{11}})\,t_1 + \sqrt{k_{22} - k_{12}^2/k_{11}}\;t_2$; singular covariances
    are no exception.
    """

    def one(covariance):
        p, q, r = covariance
        t, weights = line_rule(nodes, jnp.sqrt(jnp.maximum(p, r)))
        scale = jnp.sqrt(p)
        slope = _ratio(q, scale)
        u = scale * t
        v = slope * t[:, None] + jnp.sqrt(jnp.maximum(r - slope**2, 0.0)) * t
        both = lambda left, right: (weights * left) @ right @ weights
        value = g.value(v)
        return Pair(
            both(f.value(u), value),
            both(f.bend(u), value),
            both(f.value(u), g.bend(v)),
            both(f.slope(u), g.slope(v)),
        )

    flat = tuple(k.ravel() for k in (k11, k12, k22))
    pairs = jax.lax.map(one, flat, batch_size=PAIRS_AT_ONCE)
    return Pair(*(numbers.reshape(k12.shape) for numbers in pairs))
