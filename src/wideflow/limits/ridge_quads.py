r"""Expectations of four ridge functions, $E[\sigma'(\lambda_k)\sigma'(\lambda_l)\,e^2]$ with
$e = \sum_ic_i\varphi_i(h_i)$: the noise of online SGD.

The $h_i$ are centred Gaussian with covariance $C$; the first $K$ of them are the student's
$\lambda$. Five routes, each exact or with a stated error:

* **erf students, any teacher.** $\sigma'(\lambda_k)\sigma'(\lambda_l)$ is a Gaussian factor, so the
  expectation is a constant times $E'e^2$ under the tilted covariance
  $C' = C - C_{\cdot S}(C_{SS} + I/(2b^2))^{-1}C_{S\cdot}$, $S = (k, l)$: a sum of pairs, in closed
  form (saad1995).
* **Piecewise linear students and teachers.** One integral over closed forms: see `positive_quad`;
  1e-12.
* **Polynomials.** Gauss-Hermite with enough nodes for their degree: exact.
* **Piecewise linear students of polynomials, erf and signs; polynomial students of piecewise linear
  teachers, erf and signs.** Powers and signs: see `sign_moments`; 1e-12.
* **All other smooth ones.** The trapezoid rule in as many dimensions as there are different units,
  at most four (`gaussian_lattice`: for tanh at 48 nodes a dimension 1e-12 at variances up to one,
  1e-8 up to four); `order_parameter_error` states the error for the equations at hand.
"""

import itertools
import math
from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._core.activations import Activation, powers
from .._core.gaussian import angle
from .._core.gaussian_lattice import MOST_DIMENSIONS, lattice_rule
from .._core.ridge_pairs import (
    NODES,
    Absolute,
    NoisySign,
    Polynomial,
    hermite_nodes,
    parts,
    ridge_pair,
)
from .sign_moments import SignMoments, tanh_sinh

__all__ = ["noise_matrix"]


def noise_matrix(
    student: Activation, teacher: Activation, covariance, c, width: int, order: int
) -> Float[Array, "width width"]:
    r"""$E[\sigma'(\lambda_k)\sigma'(\lambda_l)e^2]$ for all students $k, l$.

    Args:
        student, teacher: $\sigma$ of the first `width` indices, $\sigma^*$ of the others.
        covariance: $C$.
        c: coefficients of $e$, those of the teacher with their minus.
        order: nodes a dimension where quadrature is all there is.
    """
    if student.name in ("erf", "unit_erf"):
        return _tilted(student, teacher, covariance, c, width)
    slopes, kinks = _slopes(student), _slopes(teacher)
    exact = exact_order(student, teacher)
    if exact is None and slopes is not None and kinks is not None:
        return _piecewise_linear(slopes, kinks, covariance, c, width)
    if exact is None and parts(student) is not None and parts(teacher) is not None:
        return _by_sign_moments(student, teacher, covariance, c, width)
    order = order if exact is None else exact
    if len(covariance) <= MOST_DIMENSIONS:
        return _joint(student, teacher, covariance, c, width, order)
    return _by_quadruples(student, teacher, covariance, c, width, order)


def exact_order(student: Activation, teacher: Activation) -> int | None:
    """Nodes that integrate the product of two slopes and two values exactly; None unless both are
    polynomials.
    """
    p, q = powers(student), powers(teacher)
    if p is None or q is None:
        return None
    # two slopes of degree deg p - 1 and two values; N Gauss nodes are exact up to degree 2N - 1
    degree = 2 * (len(p) - 2) + 2 * (max(len(p), len(q)) - 1)
    return degree // 2 + 1


def unit_pairs(
    student: Activation, teacher: Activation, covariance, width: int, nodes: int = NODES
):
    """`ridge_pair` of every student with every unit, and the value of every teacher with every
    teacher.
    """
    diagonal = jnp.diagonal(covariance)
    own, theirs = diagonal[:width], diagonal[width:]
    among = ridge_pair(student, student, own[:, None], covariance[:width, :width], own, nodes)
    cross = ridge_pair(student, teacher, own[:, None], covariance[:width, width:], theirs, nodes)
    target = ridge_pair(
        teacher, teacher, theirs[:, None], covariance[width:, width:], theirs, nodes
    )
    rows = type(among)(*(jnp.concatenate(two, 1) for two in zip(among, cross, strict=True)))
    return rows, target.value


def mean_square(rows, target, c, width: int):
    r"""$E e^2$ from the tables of `unit_pairs`."""
    a, b = c[:width], c[width:]
    return a @ rows.value[:, :width] @ a + 2 * a @ rows.value[:, width:] @ b + b @ target @ b


# -- erf -------------------------------------------------------------------------------------------


def _tilted(student, teacher, covariance, c, width):
    (b,) = student.parameters
    spread = 1 / (2 * b**2)

    def entry(k, l):
        pair = jnp.stack([k, l])
        rows = covariance[pair]
        inner = covariance[pair][:, pair] + spread * jnp.eye(2)
        # sigma' = (2b/sqrt(pi)) exp(-b^2 u^2): the normalisation of the tilted law is det(I + 2 b^2
        # C_SS)^(-1/2)
        weight = (4 * b**2 / jnp.pi) * spread / jnp.sqrt(jnp.linalg.det(inner))
        tilted = covariance - rows.T @ jnp.linalg.solve(inner, rows)
        table, target = unit_pairs(student, teacher, tilted, width)
        return weight * mean_square(table, target, c, width)

    k = jnp.arange(width)
    return jax.vmap(lambda i: jax.vmap(lambda j: entry(i, j))(k))(k)


# -- piecewise linear ------------------------------------------------------------------------------


def _slopes(act: Activation) -> tuple[float, float] | None:
    r"""$(\alpha, \beta)$ of $\alpha\,u^+ + \beta\,(-u)^+$."""
    if act.name in ("leaky_relu", "two_slopes"):
        left, right = (*act.parameters, 1.0)[:2]
        return right, -left
    return {"relu": (1.0, 0.0), "abs": (1.0, 1.0), "linear": (1.0, -1.0)}.get(act.name)


def _piecewise_linear(student, teacher, covariance, c, width):
    units = len(covariance)
    # a unit is alpha h^+ + beta (-h)^+: every choice of four half lines is `positive_quad` of h
    # with signs
    flips = np.array(list(itertools.product((1.0, -1.0), repeat=4)))
    quads = np.array(
        [
            (k, l, i, j)
            for k in range(width)
            for l in range(width)
            for i in range(units)
            for j in range(units)
        ]
    )

    def half(index, flip):
        """The coefficient of a unit's half line: alpha on the right, beta on the left."""
        right = jnp.where(index < width, student[0], teacher[0])
        left = jnp.where(index < width, student[1], teacher[1])
        return jnp.where(flip > 0, right, left)

    def one(quad):
        block = covariance[quad][:, quad]
        # sigma'(u) = alpha 1(u > 0) - beta 1(u < 0)
        k, l, i, j = quad
        outside = [half(m, flips[:, n]) for n, m in enumerate((k, l, i, j))]
        weight = flips[:, 0] * flips[:, 1] * math.prod(outside)
        values = jax.vmap(lambda s: positive_quad(block * s[:, None] * s))(flips)
        return c[i] * c[j] * jnp.sum(weight * values)

    terms = jax.lax.map(one, jnp.asarray(quads), batch_size=16)
    return jnp.sum(terms.reshape(width, width, units, units), axis=(2, 3))


def positive_quad(covariance: Float[Array, "4 4"]) -> Float[Array, ""]:
    r"""$G = E[1(u>0)\,1(v>0)\,x^+y^+]$.

    Scale the covariances between $(u, v)$ and $(x, y)$ by $t$: at $t = 0$ the two blocks are
    independent, and
    $$\frac{dG}{dt} = \sum_{i\in\{u,v\}}\sum_{j\in\{x,y\}}c_{ij}\,E[\partial_i\partial_jg], \qquad
      E[\partial_u\partial_xg] = p_u(0)\,E[1(v>0)\,1(x>0)\,y^+ \mid u = 0],$$
    each in closed form. The end $t = 1$ may have a root singularity (singular covariances), which
    the tanh-sinh rule resolves.
    """
    t, _, weights = tanh_sinh()
    inside = jnp.kron(jnp.eye(2), jnp.ones((2, 2))) > 0

    def slope(t):
        scaled = jnp.where(inside, covariance, t * covariance)
        # (i, k, j, l): d_i d_j of 1(h_i > 0) 1(h_k > 0) h_j^+ h_l^+ is delta(h_i) 1(h_k > 0) 1(h_j
        # > 0) h_l^+
        ends = [(0, 1, 2, 3), (0, 1, 3, 2), (1, 0, 2, 3), (1, 0, 3, 2)]
        return sum(covariance[i, j] * _at_zero(scaled, i, k, j, l) for i, k, j, l in ends)

    pair = covariance[2, 2], covariance[2, 3], covariance[3, 3]
    _, sines, theta = angle(*pair)
    start = orthant(covariance[0, 0], covariance[0, 1], covariance[1, 1]) * (
        (sines + (jnp.pi - theta) * pair[1]) / (2 * jnp.pi)
    )
    return start + jax.vmap(slope)(t) @ weights


def orthant(k11, k12, k22):
    r"""$P(u > 0, v > 0) = \frac14 + \frac1{2\pi}\arcsin\rho$; a degenerate variable counts half on
    each side.
    """
    s = jnp.sqrt(jnp.maximum(k11 * k22, 0.0))
    rho = jnp.where(s > 0, k12 / jnp.where(s > 0, s, 1.0), 0.0)
    return 0.25 + jnp.arcsin(jnp.clip(rho, -1.0, 1.0)) / (2 * jnp.pi)


def _at_zero(c, i, a, b, top):
    """E[delta(h_i) 1(h_a > 0) 1(h_b > 0) h_top^+] for centred Gaussians of covariance `c`."""
    left = [n for n in range(4) if n != i]
    place = {n: m for m, n in enumerate(left)}
    rest = _condition(c, i, left)
    p = [place[n] for n in (a, b, top)]
    return _density(c[i, i]) * _three(rest, *p)


def _three(c, a, b, top):
    r"""$E[1(h_a>0)1(h_b>0)h^+] = \sum_jc_{hj}\,E[\delta(h_j)\,\ldots]$ by Stein's lemma."""
    total = 0.0
    for j in (a, b, top):
        others = [n for n in (a, b, top) if n != j]
        rest = _condition(c, j, others)
        corner = orthant(rest[0, 0], rest[0, 1], rest[1, 1])
        total = total + c[top, j] * _density(c[j, j]) * corner
    return total


def _condition(c, i, left):
    """The covariance of the variables `left` where variable `i` is 0; variances at the level of
    rounding are 0.
    """
    left = np.array(left)
    column = c[left, i]
    pivot = jnp.where(c[i, i] > 0, c[i, i], 1.0)
    rest = c[left][:, left] - jnp.outer(column, column) / pivot
    size = jnp.diagonal(c)[left]
    # the difference of two numbers of size `size` rounds at 1e-16 of it: below 1e-14 it is rounding
    gone = jnp.diagonal(rest) <= 1e-14 * size
    return jnp.where(gone[:, None] | gone, 0.0, rest)


def _density(k):
    return jnp.where(k > 0, 1 / jnp.sqrt(2 * jnp.pi * jnp.where(k > 0, k, 1.0)), 0.0)


# -- powers and signs ------------------------------------------------------------------------------

Term = tuple[float, int, bool]  # coefficient, power, and whether the sign is a factor


def _by_sign_moments(student, teacher, covariance, c, width):
    """Polynomial and piecewise linear units with those and with signs: a finite sum of
    `SignMoments`.
    """
    slopes, own, theirs = _slope_terms(student), _terms(student), _terms(teacher)
    noise = sum((part.noise for part in parts(teacher) or () if isinstance(part, NoisySign)), 0.0)
    students, teachers = range(width), range(width, len(covariance))

    def total(left, right, left_terms, right_terms, noises):
        quads = np.array(list(itertools.product(students, students, left, right)))
        noises = (0.0, 0.0, *noises)
        patterns = np.array([_first_alike(quad, noises) for quad in quads.tolist()])
        noisy = jnp.zeros((width, width))
        for pattern in np.unique(patterns, axis=0):
            some = quads[np.all(patterns == pattern, axis=1)]
            entries = [[covariance[some[:, m], some[:, n]] for n in range(4)] for m in range(4)]
            moment, values = SignMoments(entries, noises), jnp.zeros(len(some))
            for terms in itertools.product(slopes, slopes, left_terms, right_terms):
                # an even number of equal signs is 1
                signed = Counter(int(pattern[m]) for m, term in enumerate(terms) if term[2])
                signs = frozenset(m for m, count in signed.items() if count % 2)
                powers = tuple(power for _, power, _ in terms)
                values = values + math.prod(term[0] for term in terms) * moment(powers, signs)
            k, l, i, j = some.T
            noisy = noisy.at[k, l].add(c[i] * c[j] * values)
        return noisy

    straight = _slopes(student)
    if straight is None:
        among = total(students, students, own, own, (0.0, 0.0))
    else:
        among = _piecewise_linear(straight, straight, covariance[:width, :width], c, width)
    cross = total(students, teachers, own, theirs, (0.0, noise))
    return among + 2 * cross + total(teachers, teachers, theirs, theirs, (noise, noise))


def _first_alike(quad: list[int], noises: tuple[float, ...]) -> tuple[int, ...]:
    """For each of the four units the first place at which its sign stands: signs of one unit
    without noise are one, and cancel in pairs.
    """
    return tuple(m if noises[m] else quad.index(unit) for m, unit in enumerate(quad))


def _terms(act: Activation) -> list[Term]:
    r"""The activation as a sum of $c\,u^n$ and $c\,u^n\,\mathrm{sign}(u)$, for signs seen through
    their noise.
    """
    terms = []
    for part in parts(act) or ():
        if isinstance(part, Polynomial):
            terms += [
                (value, power, False) for power, value in enumerate(part.coefficients) if value
            ]
        else:
            terms.append((part.factor, 1, True) if isinstance(part, Absolute) else (1.0, 0, True))
    return terms


def _slope_terms(act: Activation) -> list[Term]:
    """The same of the slope, where it is no density."""
    # (u^n)' = n u^(n-1), and |u|' = sign(u)
    return [(power * value, power - 1, signed) for value, power, signed in _terms(act) if power]


# -- tensor rules ----------------------------------------------------------------------------------


def psd_root(covariance):
    r"""$S$ lower triangular with $SS^\top = C$; a direction without variance gets a column of
    zeros.
    """
    count = len(covariance)
    # Cholesky by columns without pivoting: the order of the units is that of the points
    size = jnp.maximum(jnp.max(jnp.diagonal(covariance)), 1e-300)
    columns, rest = [], covariance
    for i in range(count):
        pivot = rest[i, i]
        # a few roundings of the largest variance: a smaller pivot is the rounding of a zero
        positive = pivot > 1e-15 * size
        column = jnp.where(positive, rest[:, i] / jnp.sqrt(jnp.where(positive, pivot, 1.0)), 0.0)
        column = jnp.where(jnp.arange(count) < i, 0.0, column)
        columns.append(column)
        rest = rest - jnp.outer(column, column)
    return jnp.stack(columns, axis=1)


def tensor_rule(dimensions: int, nodes, weights) -> tuple[np.ndarray, np.ndarray]:
    """Nodes (point, dimension) and weights of the product of one-dimensional rules; of none of them
    it is one point of weight 1.
    """
    if not dimensions:
        return np.zeros((1, 0)), np.ones(1)
    points = np.stack(np.meshgrid(*[nodes] * dimensions, indexing="ij"), -1).reshape(-1, dimensions)
    weights = np.prod(np.stack(np.meshgrid(*[weights] * dimensions, indexing="ij"), -1), -1).ravel()
    return points, weights


def gaussian_points(student: Activation, covariance, order: int, entire: bool = True):
    r"""Points $h$ (point, unit) and weights for $E[F(h)]$: Gauss-Hermite for polynomial students,
    else the lattice.
    """
    root = psd_root(covariance)
    if powers(student) is None:
        return lattice_rule(root, order, entire)
    points, weights = tensor_rule(len(covariance), *hermite_nodes(order))
    return jnp.asarray(points) @ root.T, jnp.asarray(weights)


def _entire(*activations: Activation) -> bool:
    """Whether a slope may be as narrow as erf's; the ones named have their poles at pi/2 or
    further.
    """
    return any(act.name not in ("tanh", "sigmoid", "softplus") for act in activations)


def _joint(student, teacher, covariance, c, width, order):
    h, weights = gaussian_points(student, covariance, order, _entire(student, teacher))
    slope = student.slope(h[:, :width])
    # one rule for all k and l together: the entries are a weighted Gram matrix of slopes
    e = student.value(h[:, :width]) @ c[:width] + teacher.value(h[:, width:]) @ c[width:]
    return (slope * (weights * e**2)[:, None]).T @ slope


def _by_quadruples(student, teacher, covariance, c, width, order):
    units = len(covariance)
    # symmetric in (k, l) and in (i, j): each combination once
    quads = [
        (k, l, i, j)
        for k in range(width)
        for l in range(k, width)
        for i in range(units)
        for j in range(i, units)
    ]
    total = jnp.zeros((width, width))
    # A quadruple with repeated units is an integral in fewer dimensions; those of one count share a
    # program.
    for count in sorted({len(set(quad)) for quad in quads}):
        alike = [quad for quad in quads if len(set(quad)) == count]
        terms = _alike_quadruples(student, teacher, covariance, width, order, alike)
        k, l, i, j = np.array(alike).T
        # (i, j) and (j, i) are one term, counted twice
        terms = terms * np.where(i == j, 1.0, 2.0) * c[i] * c[j]
        total = total.at[k, l].add(terms)
    return jnp.triu(total) + jnp.triu(total, 1).T


def _alike_quadruples(student, teacher, covariance, width, order, quads):
    """E[sigma'(h_k) sigma'(h_l) phi_i(h_i) phi_j(h_j)] of quadruples with equally many different
    units.
    """
    different = [sorted(set(quad)) for quad in quads]
    places = [[own.index(m) for m in quad] for quad, own in zip(quads, different, strict=True)]
    entire = _entire(student, teacher)

    def one(case):
        (_, _, i, j), own, place = case
        h, weights = gaussian_points(student, covariance[own][:, own], order, entire)
        k, l, m, n = (h[:, p] for p in place)
        unit = lambda number, z: jnp.where(number < width, student.value(z), teacher.value(z))
        return weights @ (student.slope(k) * student.slope(l) * unit(i, m) * unit(j, n))

    return jax.lax.map(one, tuple(map(jnp.asarray, (quads, different, places))))
