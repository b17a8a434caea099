r"""Closed forms of $F = E[\phi(u)\phi(v)]$ and $\dot F = E[\phi'(u)\phi'(v)]$ for a centred
Gaussian pair.

$(u, v)$ has covariance $\begin{psmallmatrix} p & q \\ q & r \end{psmallmatrix}$. Each closed form
is written in $(p, q, r)$, so that nothing is divided by a variance that may be 0, and every one is
a function that `jax.jit` and `jax.grad` take:

* the smooth ones are smooth in $(p, q, r)$ up to the boundary $q^2 = pr$, so autodiff needs no
  care;
* those with a kink go through the angle $\vartheta$ of the pair, $\cos\vartheta = q/\sqrt{pr}$,
  whose derivative is infinite at $\vartheta \in \{0, \pi\}$; there `angle_of_pair` takes the
  derivative 0. $F$'s own derivative $\partial_q F = \dot F$ (Price) stays exact, since the infinite
  parts cancel.

`CLOSED` is the one place where they stand; `gaussian.py` and `dual_activations.py` read it.
"""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from .activations import Activation
from .arc_cosine import arcsin

Pair = tuple[jax.Array, jax.Array]


@jax.custom_jvp
def angle_of_pair(p, q, r) -> Pair:
    r"""$(\sqrt{pr - q^2}, \vartheta)$: the sine times $\sqrt{pr}$, and the angle in $[0, \pi]$.

    A sine below $\sqrt{32\epsilon}$ counts as 0: the covariances of two equal inputs that were
    summed in different orders differ by a few $\epsilon$, and the angle would turn that into
    $10^{-8}$. Beyond that the cosine's rounding moves the angle no more than that of $q$ itself
    does; with a zero variance it is 0.
    """
    scale = jnp.sqrt(p) * jnp.sqrt(r)  # of vectors, before they meet: two square roots less a pair
    # p r - q^2 in factors: near q = +- sqrt(p r) the difference is exact, where the product would
    # round
    squares = (scale - q) * (scale + q)
    parallel = squares <= 32 * jnp.finfo(squares.dtype).eps * scale**2
    # `parallel` holds for a zero variance too (then q = 0 = scale), so nothing is divided by 0
    sines = jnp.sqrt(jnp.where(parallel, 0.0, squares))
    cosines = jnp.where(parallel, jnp.where(q < 0, -1.0, 1.0), q / jnp.where(parallel, 1.0, scale))
    return sines, 0.5 * jnp.pi - arcsin(cosines)


@angle_of_pair.defjvp
def _(primals, tangents):
    p, q, r = primals
    dp, dq, dr = tangents
    sines, theta = angle_of_pair(p, q, r)
    # the inner `where` keeps the branch that is not taken finite, for derivatives of this
    # derivative
    inverse = jnp.where(sines > 0, 1.0 / jnp.where(sines > 0, sines, 1.0), 0.0)
    # with s = sqrt(pr - q^2):  2 s ds = r dp + p dr - 2 q dq,  s dtheta = q (dp/p + dr/r)/2 - dq
    relative = dp * _inverse(p) + dr * _inverse(r)
    dsines = inverse * (0.5 * (r * dp + p * dr) - q * dq)
    dtheta = inverse * (0.5 * q * relative - dq)
    return (sines, theta), (dsines, dtheta)


def _inverse(x):
    return jnp.where(x > 0, 1.0 / jnp.where(x > 0, x, 1.0), 0.0)


def _two_slopes(negative: float, positive: float, at_kink: float = 0.0):
    r"""$\phi = a\min(z,0) + b\max(z,0)$: $\dot F = \frac{a^2+b^2}2 - c\vartheta$ and
    $F = c\sqrt{pr-q^2} + q\dot F$, $c = \frac{(a-b)^2}{2\pi}$.

    Where a variance is 0, that $\phi'$ is the value at the kink, the other's mean is $(a+b)/2$.
    """
    a, b = negative, positive
    c = (a - b) ** 2 / (2 * math.pi)

    def both(p, q, r):
        sines, theta = angle_of_pair(p, q, r)
        # both slopes are b, or both a, with probability (pi - theta)/(2 pi) each; they differ with
        # theta/pi
        slope = (a**2 + b**2) / 2 - c * theta
        mean = lambda x: jnp.where(x > 0, (a + b) / 2, at_kink)
        edge = mean(p) * mean(r) if at_kink else 0.0
        return c * sines + q * slope, jnp.where((p > 0) & (r > 0), slope, edge)

    return both


def _sign(act):
    r"""$F = \frac2\pi\arcsin\rho = 1 - 2\vartheta/\pi$ and $\dot F = 0$."""

    def both(p, q, r):
        _, theta = angle_of_pair(p, q, r)
        value = jnp.where((p > 0) & (r > 0), 1 - 2 * theta / jnp.pi, 0.0)
        return value, jnp.zeros_like(value)

    return both


def _rectified_power(act):
    r"""$F = E[u_+^k v_+^k]$ and $\dot F = k^2 E[u_+^{k-1} v_+^{k-1}]$ (the arc-cosine kernels of
    cho2009).
    """
    k = int(act.parameters[0])

    def both(p, q, r):
        p, q, r = jnp.broadcast_arrays(p, q, r)
        moments = _rectified_moments(p, q, r)
        return moments(k, k), k**2 * moments(k - 1, k - 1) if k else jnp.zeros_like(q)

    return both


def _rectified_moments(p, q, r):
    r"""$(m, n) \mapsto M_{mn} = E[u_+^m v_+^n]$ for $m \le n$ and even $m + n$, by Stein's lemma.

    $M_{mn} = (m-1)p\,M_{m-2,n} + n q\,M_{m-1,n-1}$ for $m \ge 2$; below that a boundary term
    $E[\delta(u)v_+^n] = \frac{\mu_n}{\sqrt{2\pi p}}\big(\frac{pr-q^2}{p}\big)^{n/2}$,
    $\mu_n = E[z_+^n]$, enters: $M_{1n} = p\,E[\delta(u)v_+^n] + n q M_{0,n-1}$,
    $M_{0n} = (n-1) r M_{0,n-2} + q E[\delta(u)v_+^{n-1}]$.
    """
    sines, theta = angle_of_pair(p, q, r)
    positive = (p > 0) & (r > 0)
    over = _inverse(p)

    def boundary(n):  # E[delta(u) v_+^n] for odd n: an integer power of 1/p
        mu = 2 ** (n / 2 - 1) * math.gamma((n + 1) / 2) / math.sqrt(math.pi)
        return mu / math.sqrt(2 * math.pi) * sines**n * over ** ((n + 1) // 2)

    def moment(m, n):  # m <= n: each step keeps that, and the boundary is always that of u
        if m == n == 0:
            # the probability of a quadrant; a variable without variance is 0 and no positive number
            return jnp.where(positive, 0.5 - theta / (2 * jnp.pi), 0.0)
        if m == 0:
            return (n - 1) * r * moment(0, n - 2) + q * boundary(n - 1)
        if m == 1:
            return p * boundary(n) + n * q * moment(0, n - 1)
        return (m - 1) * p * moment(m - 2, n) + n * q * moment(m - 1, n - 1)

    return moment


def _erf(act):
    r"""$\phi = \mathrm{erf}(bz)$: $F = \frac2\pi\arcsin\frac{2b^2q}{\sqrt D}$,
    $\dot F = \frac{4b^2}{\pi\sqrt{D - 4b^4q^2}}$, $D = (1+2b^2p)(1+2b^2r)$.
    """
    (b,) = act.parameters

    def both(p, q, r):
        x = 2 * b**2 * q
        # the arc sine of x / sqrt(D) as the arc tangent of x over the other leg: no ratio that
        # rounding could push beyond 1, and the same root serves the slope
        root = jnp.sqrt((1 + 2 * b**2 * p) * (1 + 2 * b**2 * r) - x**2)
        return (2 / jnp.pi) * jnp.arctan2(x, root), (4 * b**2 / jnp.pi) / root

    return both


def _gelu(act):
    r"""$\phi = z\Phi(z)$ (tsuchida2021): with $D = (1+p)(1+r)$, $\delta = \sqrt{D - q^2}$ and
    $\alpha = \arctan(q/\delta)$,
    $$2\pi F = \frac{q^2 + pr\,\delta^2}{D\,\delta} + q\alpha + \frac\pi2 q, \qquad
      2\pi\dot F = \frac q\delta\Big(\frac1{\delta^2} + \frac{1 - pr}{D} + 1\Big) + \alpha +
      \frac\pi2.$$
    """

    def both(p, q, r):
        product = p * r
        D = (1 + p) * (1 + r)
        squared = D - q**2
        delta = jnp.sqrt(squared)
        alpha = jnp.arctan2(q, delta)
        value = (q**2 + product * squared) / (D * delta) + q * alpha + 0.5 * jnp.pi * q
        slope = q / delta * (1 / squared + (1 - product) / D + 1) + alpha + 0.5 * jnp.pi
        return value / (2 * jnp.pi), slope / (2 * jnp.pi)

    return both


def _wave(amplitude: float, frequency: float, phase: float):
    r"""$\phi = a\sin(bz+c)$: with $e_\pm = e^{-b^2((p+r)/2 \mp q)}$,
    $F = \frac{a^2}2(e_+ - e_-\cos 2c)$ and $\dot F = \frac{a^2b^2}2(e_+ + e_-\cos 2c)$; neither
    exponential overflows, as $|q| \le (p+r)/2$.
    """
    a, b, c = amplitude, frequency, math.cos(2 * phase)

    def both(p, q, r):
        near = jnp.exp(b**2 * (q - 0.5 * (p + r)))
        far = c * jnp.exp(-(b**2) * (q + 0.5 * (p + r)))
        return a**2 / 2 * (near - far), a**2 * b**2 / 2 * (near + far)

    return both


def _exponential(act):
    r"""$\phi = e^z$: $F = \dot F = e^{(p+r)/2+q}$."""

    def both(p, q, r):
        value = jnp.exp(0.5 * (p + r) + q)
        return value, value

    return both


def _gaussian(act):
    r"""$\phi = e^{-bz^2}$: $F = D^{-1/2}$, $\dot F = 4b^2 q D^{-3/2}$,
    $D = (1+2bp)(1+2br) - 4b^2q^2$.
    """
    (b,) = act.parameters

    def both(p, q, r):
        D = (1 + 2 * b * p) * (1 + 2 * b * r) - 4 * b**2 * q**2
        return D**-0.5, 4 * b**2 * q * D**-1.5

    return both


def _polynomial(coefficients):
    r"""$\phi = \sum_m c_m z^m$, from the mixed moments of a Gaussian pair (Isserlis):
    $$E[u^m v^n] = \sum_j \frac{m!\,n!}{j!\,\frac{m-j}2!\,\frac{n-j}2!\,2^{(m+n)/2-j}}\; p^{(m-j)/2}
      r^{(n-j)/2} q^j .$$

    Sorted by $j$, the sum is $\sum_j q^j A_j(p)A_j(r)/j!$ with
    $A_j(p) = \sum_m c_m \frac{m!}{((m-j)/2)!\,2^{(m-j)/2}} p^{(m-j)/2}$ $= E[\phi^{(j)}(u)]$:
    functions of one input each, so only the powers of $q$ cost a pass over the pairs.
    """

    def coefficients_of(j, c):
        """Of $A_j$ in powers of p."""
        terms = [
            c[m] * math.factorial(m) / (math.factorial((m - j) // 2) * 2 ** ((m - j) // 2))
            for m in range(j, len(c), 2)
        ]
        # 1/j! in equal shares to both factors A_j(p) and A_j(r)
        return np.array(terms) / math.sqrt(math.factorial(j))

    def value(c, p, q, r):
        total = jnp.zeros(jnp.broadcast_shapes(jnp.shape(p), jnp.shape(q), jnp.shape(r)), q.dtype)
        # Horner's rule in q: one multiplication a pair for every power
        for j in range(len(c) - 1, -1, -1):
            a = coefficients_of(j, c)
            here = _power_sum(a, p) * _power_sum(a, r) if np.any(a) else 0.0
            total = total * q + here
        return total

    c = tuple(coefficients)
    first = tuple(m * c[m] for m in range(1, len(c))) or (0.0,)

    def both(p, q, r):
        return value(c, p, q, r), value(first, p, q, r)

    return both


def _power_sum(coefficients, x):
    total = jnp.full_like(x, coefficients[-1])
    for c in coefficients[-2::-1]:
        total = total * x + c
    return total


CLOSED: dict[str, Callable[[Activation], Callable[..., Pair]]] = {
    "relu": lambda act: _two_slopes(0.0, 1.0, act.at_kink),
    "leaky_relu": lambda act: _two_slopes(act.parameters[0], 1.0),
    "two_slopes": lambda act: _two_slopes(*act.parameters),
    "abs": lambda act: _two_slopes(-1.0, 1.0),
    "rectified_power": _rectified_power,
    "sign": _sign,
    "erf": _erf,
    "unit_erf": _erf,
    "gelu": _gelu,
    "sin": lambda act: _wave(1.0, 1.0, 0.0),
    "cos": lambda act: _wave(1.0, 1.0, 0.5 * math.pi),
    "wave": lambda act: _wave(*act.parameters),
    "exp": _exponential,
    "gaussian": _gaussian,
    "linear": lambda act: _polynomial((0.0, 1.0)),
    "square": lambda act: _polynomial((0.0, 0.0, 1.0)),
    "polynomial": lambda act: _polynomial(act.parameters),
}
