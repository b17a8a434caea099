"""Appendix A and Claim B.1: concentration, interval partition, Hermite polynomials, gradient or
curvature.
"""

import math
from collections.abc import Callable
from typing import ClassVar

import numpy as np
import scipy.special as sp

from ....theorems.base import AbstractTheorem, Citation, Verdict
from ..limits.constructions.hermite_functions import (
    normal_density,
    normalised_hermite,
    window_constant,
)
from ..limits.constructions.intervals import IntervalPartition
from .judging import judge, unmet, vacuous

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(120)
_WEIGHTS = _WEIGHTS / math.sqrt(2 * math.pi)


def _tail(
    sums: np.ndarray, level: float | int, allowed: float | int, numbers: dict, message: str
) -> Verdict:
    """Whether the fraction above `level` is at most `allowed`, plus three standard errors of a
    fraction. Where that is 1 or more every draw is allowed, and nothing is said.
    """
    fraction = float(np.mean(np.abs(sums) >= level))
    slack = 3 * math.sqrt(max(allowed, 1 / sums.size) / sums.size)
    numbers = {
        **numbers,
        "level": level,
        "fraction": fraction,
        "allowed": allowed,
        "standard_errors": slack,
    }
    text = f"{message}: {fraction:.3g} of the draws beyond, {allowed:.3g} allowed"
    if not allowed + slack < 1:
        return vacuous(f"{text}, which with {sums.size} draws no fraction can exceed", numbers)
    return judge({"tail": fraction / (allowed + slack)}, text, numbers)


class LemmaA1(AbstractTheorem):
    r"""$n_i, \alpha_i, a_i$ standard Gaussian, $a$ independent of the others, $|h| \le L$: for
    $B \ge 1$ the sum $\sum_ia_i^2\mathbf 1[n_i\ge0]h(\alpha_i)$ deviates from its mean by at least
    $cBL(\sqrt m + B)$ with probability at most $4e^{-B^2/2}$.

    Corrected: $c = 2$. The printed $c = 1$ fails for $B \ge 6$ because $a^2\mathbf 1[n\ge0]$ has
    variance 1.25 > 1 (tail 6.7e-8 against 6.1e-8 at $B = 6$).
    """

    citation: ClassVar = Citation("allenzhu2018", "Lemma A.1 (51)")

    def __call__(
        self,
        sums,
        *,
        width: int,
        deviation: float | int,
        bound: float | int = 1.0,
        mean: float | int = 0.0,
        constant: float | int = 2.0,
    ) -> Verdict:
        """`sums` are draws of the sum, `mean` its expectation, `bound` is $L$, `deviation` is $B$.

        Args:
            width: $m$.
            constant: $c$.
        """
        level = constant * deviation * bound * (math.sqrt(width) + deviation)
        allowed = 4 * math.exp(-(deviation**2) / 2)
        return _tail(
            np.asarray(sums, float) - mean,
            level,
            allowed,
            {"constant": constant},
            f"B = {deviation:g}",
        )

    @staticmethod
    def printed_fails(width: int, deviation: float | int) -> bool:
        r"""Whether the printed constant 1 fails for $h = 1$: the normal tail of variance 1.25 at
        the printed level exceeds $4e^{-B^2/2}$.
        """
        level = deviation * (math.sqrt(width) + deviation) / math.sqrt(1.25 * width)
        return 2 * float(sp.ndtr(-level)) > 4 * math.exp(-(deviation**2) / 2)


class LemmaA2(AbstractTheorem):
    r"""$h$ $L$-Lipschitz with $h(0) = 0$, $a_i, v_i$ standard Gaussian:
    $|\sum_ia_ih(v_i)| \ge BL(\sqrt m + B)$ with probability at most $4e^{-B^2/2}$, $B \ge 1$.
    """

    citation: ClassVar = Citation("allenzhu2018", "Lemma A.2 (54)")

    def __call__(
        self, sums, *, width: int, deviation: float | int, lipschitz: float | int = 1.0
    ) -> Verdict:
        """`sums` are draws of the sum.

        Args:
            width: $m$.
            deviation: $B$.
            lipschitz: $L$.
        """
        level = deviation * lipschitz * (math.sqrt(width) + deviation)
        return _tail(
            np.asarray(sums, float),
            level,
            4 * math.exp(-(deviation**2) / 2),
            {},
            f"B = {deviation:g}",
        )


class LemmaA4(AbstractTheorem):
    r"""The interval partition at $y \in [-1,1]$ has $P[g\in I] = \tau$, $P[s=\pm1] = \tau/2$,
    $\mathbb E[sg\mid I] = y$, and components of length at most $2.07\tau$.

    Corrected: see `limits.constructions.intervals`. All four are computed from the interval ends,
    to rounding, which at small $\tau$ is $10^{-16}/\tau$ of the masses. The length belongs to the
    lemma's $\tau \le 1/100$; the others hold at every $\tau$ at which $\mathbb E[sg\mid I] = 1$ can
    be reached.

    Args:
        tau: $\tau$.
        y: $y$.
        tolerance: of the three identities, relative.
    """

    citation: ClassVar = Citation("allenzhu2018", "Lemma A.4")

    def __call__(
        self, tau: float | int, y: float | int, *, tolerance: float | int = 1e-9
    ) -> Verdict:
        partition = IntervalPartition(tau)
        low, up = (float(end) for end in partition.ends(y))
        small = abs(y) < partition.threshold
        if small:
            e = math.sqrt(-2 * math.log1p(-abs(y) * tau * math.sqrt(2 * math.pi) / 2))
            d = float(sp.ndtri((sp.ndtr(e) + sp.ndtr(up)) / 2))
            mean = 2 * float(normal_density(0.0) - normal_density(e)) / tau
            plus = float(sp.ndtr(e)) - 0.5 + 2 * float(sp.ndtr(d) - sp.ndtr(e))
            mass, length = 2 * (float(sp.ndtr(up)) - 0.5), up
        else:
            mean = 2 * float(normal_density(low) - normal_density(up)) / tau
            plus = float(sp.ndtr(up) - sp.ndtr(low))
            mass, length = 2 * plus, up - low
        numbers = {"mass": mass, "plus": plus, "mean": mean, "length": length}
        errors = {
            "mass": abs(mass / tau - 1),
            "plus": abs(2 * plus / tau - 1),
            "mean": abs(mean - abs(y)),
        }
        resolved = tolerance + 8 * np.finfo(float).eps / tau
        ratios = {name: error / resolved for name, error in errors.items()}
        if tau <= 0.01:
            ratios["length"] = length / (2.07 * tau)
        return judge(
            ratios, f"mass {mass:.6g}, mean {mean:.6g} against |y| = {abs(y):.6g}", numbers
        )


class LemmaA5(AbstractTheorem):
    r"""$\mathbb E[He_iHe_j] = i!\,\delta_{ij}$ under $\mathcal N(0,1)$. Corrected: the constant is
    $i!$, not $\sqrt{2\pi}\,i!$.

    Args:
        degree: the largest $i$ and $j$.
        tolerance: of the normalised polynomials' products.
    """

    citation: ClassVar = Citation("allenzhu2018", "Lemma A.5")

    def __call__(self, degree: int = 20, *, tolerance: float | int = 1e-9) -> Verdict:
        q = normalised_hermite(degree, _NODES)
        if degree >= len(_NODES):
            return unmet(f"{len(_NODES)} nodes resolve degrees below that", {})
        worst = float(np.max(np.abs((q * _WEIGHTS) @ q.T - np.eye(degree + 1))))
        return judge(
            {"orthogonality": worst / tolerance},
            f"largest deviation {worst:.3g} up to degree {degree}",
            {"deviation": worst},
        )


class LemmaA6(AbstractTheorem):
    r"""$\mathbb E[He_i(\alpha_1)\mathbf 1[\alpha_1x_1 + \beta_1\sqrt{1-x_1^2} \ge b]] = p_i\,x_1^i$
    with $p_i = He_{i-1}(b)n(b)$ for $i \ge 1$.

    The closed form of the sums (70), (72) (which run over odd $r$, resp. start at $j = 0$;
    misprinted).

    Args:
        degree: $i$.
        b: $b$.
        x1: $x_1$.
        tolerance: of both sides over $\sqrt{i!}$.
    """

    citation: ClassVar = Citation("allenzhu2018", "Lemma A.6")

    def __call__(
        self, degree: int, b: float | int, x1: float | int, *, tolerance: float | int = 1e-9
    ) -> Verdict:
        import scipy.integrate  # slow to import, and few calls need it

        s = math.sqrt(1 - x1**2)
        if degree < 1 or s < 1e-6:
            return unmet(
                "needs a degree of at least 1 and |x1| < 1", {"degree": float(degree), "x1": x1}
            )

        def integrand(a: float | int) -> float:
            return float(
                normalised_hermite(degree, a)[degree]
                * normal_density(a)
                * sp.ndtr((a * x1 - b) / s)
            )

        left = scipy.integrate.quad(integrand, -12, 12, epsabs=1e-13, limit=400, points=[0.0])[0]
        right = (
            x1**degree
            * float(normalised_hermite(degree - 1, b)[degree - 1] * normal_density(b))
            / math.sqrt(degree)
        )
        numbers = {"left": left, "right": right}
        return judge(
            {"identity": abs(left - right) / tolerance},
            f"{left:.10g} against {right:.10g}, both over sqrt(i!)",
            numbers,
        )


class LemmaA7(AbstractTheorem):
    r"""$L_{i,b} = \mathbb E[\alpha^i\mathbf 1[\alpha\ge b]]$ obeys
    $L_{i,b} = b^{i-1}n(b) + (i-1)L_{i-2,b}$, $L_{0,b} = N(-b)$, $L_{1,b} = n(b)$; in closed form
    even $i$: $(i-1)!!\,N(-b) + n(b)\sum_{j\text{ odd}<i}\frac{(i-1)!!}{j!!}b^j$ (99), odd $i$:
    $n(b)\sum_{j\text{ even}<i}\frac{(i-1)!!}{j!!}b^j$.

    Corrected: (99) is printed for all $i$ but holds for even $i$ only (at $i = 3$, $b = 0.6$:
    0.786, while (99) gives 0.948).

    Args:
        degree: $i$.
        b: $b$.
        tolerance: relative where $L_{i,b} > 1$.
    """

    citation: ClassVar = Citation("allenzhu2018", "Lemma A.7 (99)")

    def __call__(self, degree: int, b: float | int, *, tolerance: float | int = 1e-9) -> Verdict:
        import scipy.integrate  # slow to import, and few calls need it

        exact = scipy.integrate.quad(
            lambda a: a**degree * float(normal_density(a)), b, 40, epsabs=1e-14, limit=400
        )[0]
        values = {"recursion": self.recursion(degree, b), "closed": self.closed(degree, b)}
        numbers = {"exact": exact, **values}
        scale = tolerance * max(1.0, abs(exact))
        return judge(
            {name: abs(v - exact) / scale for name, v in values.items()},
            f"L = {exact:.10g}",
            numbers,
        )

    @staticmethod
    def recursion(degree: int, b: float | int) -> float:
        density = float(normal_density(b))
        value = float(sp.ndtr(-b)) if degree % 2 == 0 else density
        for i in range(2 + degree % 2, degree + 1, 2):
            value = b ** (i - 1) * density + (i - 1) * value
        return value

    @staticmethod
    def closed(degree: int, b: float | int) -> float:
        def double_factorial(n: int) -> float:
            return float(math.prod(range(n, 0, -2)))

        top = double_factorial(degree - 1)
        start = 1 if degree % 2 == 0 else 0
        total = sum(top / double_factorial(j) * b**j for j in range(start, degree, 2))
        return float(normal_density(b)) * total + (
            top * float(sp.ndtr(-b)) if degree % 2 == 0 else 0.0
        )


class LemmaA8(AbstractTheorem):
    r"""If $\mathbb E f(x + \eta x_1 + \sqrt\eta x_2) \le f(x) - \eta\varepsilon$ for all small
    $\eta$, $\mathbb Ex_2 = 0$, $\lVert x_2\rVert = 1$, then
    $\lVert\nabla f(x)\rVert \ge \varepsilon/(2\lVert x_1\rVert)$ or
    $\lambda_{\min}(\nabla^2f(x)) \le -\varepsilon$.
    """

    citation: ClassVar = Citation("allenzhu2018", "Lemma A.8")

    def __call__(self, gradient, hessian, step, directions) -> Verdict:
        r"""`step` is $x_1$; `directions` (draws, dimension) are equally likely values of $x_2$.
        $\varepsilon$ is the rate of decrease that they give.

        Args:
            gradient: $\nabla f(x)$, shape (dimension,).
            hessian: $\nabla^2f(x)$, shape (dimension, dimension).
        """
        gradient, hessian, step = (np.asarray(v, float) for v in (gradient, hessian, step))
        directions = np.atleast_2d(np.asarray(directions, float))
        centred = float(np.linalg.norm(directions.mean(axis=0)))
        unit = float(np.max(np.abs(np.linalg.norm(directions, axis=1) - 1)))
        curvature = float(np.mean(np.einsum("ni,ij,nj->n", directions, hessian, directions)))
        decrease = -(float(gradient @ step) + curvature / 2)
        least = float(np.linalg.eigvalsh(hessian)[0])
        numbers = {
            "decrease": decrease,
            "gradient_norm": float(np.linalg.norm(gradient)),
            "least_eigenvalue": least,
        }
        if centred > 1e-9 or unit > 1e-9:
            return unmet("x2 must have mean zero and norm one", numbers)
        if not decrease > 0:
            return unmet(f"the move does not decrease: rate {decrease:.3g}", numbers)
        slope = 2 * float(np.linalg.norm(step)) * numbers["gradient_norm"]
        shown = [decrease / slope if slope > 0 else math.inf]
        shown.append(decrease / -least if least < 0 else math.inf)
        return judge(
            {"either": float(min(shown))}, f"decrease rate {decrease:.3g}", numbers, tolerance=1e-12
        )


class ClaimB1(AbstractTheorem):
    r"""$|p'_i| \ge (i-2)!!/20$ for odd $i$ (it is $(i-2)!!/(2\sqrt{2\pi})$) and
    $|p'_i| \ge (i-1)!!/(200i^2)$ for even $i$ with the paper's window, $b_0 \sim \mathcal N(0,2)$
    half the time.

    Args:
        degree: $i \ge 1$.
        constant: gives $p'_i$ for $i$; that of the paper's window by default.
    """

    citation: ClassVar = Citation("allenzhu2018", "Claim B.1")

    def __call__(
        self,
        degree: int,
        *,
        constant: Callable[[int], float] = lambda i: window_constant(i, "paper"),
    ) -> Verdict:
        value = abs(constant(degree))
        double_factorial = math.prod(range(degree - 2 if degree % 2 else degree - 1, 0, -2))
        bound = double_factorial / 20 if degree % 2 else double_factorial / (200 * degree**2)
        numbers = {"value": value, "bound": bound, "over_bound": value / bound}
        return judge(
            {"lower_bound": bound / value},
            f"|p'_{degree}| = {value:.4g}, at least {bound:.4g} required",
            numbers,
        )
