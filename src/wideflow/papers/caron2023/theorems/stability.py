"""How far the Gram matrix can move when the weights move little: Lemma D.2 (ReLU) and Lemma D.4
(smooth).
"""

import math
from typing import ClassVar

import jax.numpy as jnp
import numpy as np

from ...._core.arrays import real_array
from ...._core.precision import double
from ....theorems.base import Citation, Verdict
from ....theorems.of_runs import AbstractRunTheorem
from ....theorems.recorded_run import unjudged
from ..observables.kernel_parts import part_gram
from ..observables.kinks import gradient_change
from .problem import Problem, conclude, gather, hypotheses, unmet


class LemmaD2(AbstractRunTheorem):
    r"""ReLU. Given $c_j>0$, with probability at least $1-\delta$: for all $W$ with
    $|w_j-w_{0j}|\le\delta^2c_j/4$, both parts $k = 1,2$ satisfy
    $$\lVert\widehat\Theta^{(k)}(W)-\widehat\Theta^{(k)}(W_0)\rVert_2\le\frac
      nd\sum_j\lambda^{(k)}_jc_j + \frac{2n}d\Big(\gamma_k\sum_j\lambda^{(k)}_jc_j\Big)^{1/2},$$
    $\gamma_1=\gamma$, $\gamma_2 = 1-\gamma$ (the statement drops $\gamma_k\le1$; its proof gives
    it), and
    $$\lambda_{\min}(\widehat\Theta(W))\ge\lambda_{\min}(\widehat\Theta^{(1)}(W_0)) -
      \Big[\frac{n\gamma}{dm}\sum_jc_j+\frac{2n\gamma}{d\sqrt m}\Big(\sum_jc_j\Big)^{1/2}\Big].$$

    Judged with $c_j = 4|w_j-w_{0j}|/\delta^2$, and beside it the deterministic version, which holds
    for every $W$:
    $\lVert\Delta\widehat\Theta^{(k)}\rVert_2\le\Phi_k+2\sqrt{\tfrac nd\gamma_k\Phi_k}$,
    $\Phi_k = \lVert\nabla f^{(k)}(W)-\nabla f^{(k)}(W_0)\rVert_F^2$.
    """

    citation: ClassVar = Citation("caron2023", "Lemma D.2")

    @double
    def evaluate(
        self, start, model, data, *, failure_probability: float = 0.1, mean=None
    ) -> Verdict:
        """Judges the movement from `start` to `model` on `data`; `mean` as in `gather`."""
        delta = failure_probability
        problem, stopped = hypotheses(start, data, mean, delta, kinked=True, positive_gamma=False)
        stopped = stopped or lost(problem, model)
        if stopped is not None:
            return stopped
        n, d, m, g = problem.samples, problem.features, problem.width, problem.gamma
        c = 4 * movement(start, model) / delta**2
        ratios, numbers = a_posteriori(problem, start, model, data)
        for part, weights, share in parts(problem):
            total = float(np.sum(weights * c))
            bound = n / d * total + 2 * n / d * math.sqrt(share * total)
            numbers[f"bound_{part}"] = bound
            ratios[f"drift_{part}"] = over(numbers[f"drift_{part}"], bound)
        loss = n * g / (d * m) * c.sum() + 2 * n * g / (d * math.sqrt(m)) * math.sqrt(c.sum())
        numbers["gap_bound"] = numbers["gap_symmetric_start"] - loss
        ratios["gap"] = lower(numbers["gap"], numbers["gap_bound"])
        return conclude(ratios, numbers, f"largest movement {c.max() * delta**2 / 4:.3g}")


class LemmaD4(AbstractRunTheorem):
    r"""Smooth $\sigma$, deterministic. If $|w_j-w_{0j}|\le c_j/2$ for all $j$ then
    $$\lVert\widehat\Theta^{(k)}(W)-\widehat\Theta^{(k)}(W_0)\rVert_2\le\frac{nM^2}{4d^2}\sum_j\lambda^{(k)}_jc_j^2
       +\frac{nM}{d^{3/2}}\Big(\gamma_k\sum_j\lambda^{(k)}_jc_j^2\Big)^{1/2},$$
    $$\lambda_{\min}(\widehat\Theta(W))\ge\lambda_{\min}(\widehat\Theta^{(1)}(W_0))-\Big[\frac{nM^2\gamma}{4d^2m}\sum_jc_j^2+\frac{nM\gamma}{d^{3/2}\sqrt m}\Big(\sum_jc_j^2\Big)^{1/2}\Big].$$

    Judged with $c_j = 2|w_j-w_{0j}|$, so it must hold for every pair of weights; the statement
    drops $\gamma_k$, its proof keeps it.
    """

    citation: ClassVar = Citation("caron2023", "Lemma D.4")

    @double
    def evaluate(self, start, model, data, *, mean=None) -> Verdict:
        """Judges the movement from `start` to `model` on `data`; `mean` as in `gather`."""
        problem = gather(start, data, mean=mean)
        stopped = unmet(problem, kinked=False, positive_gamma=False, random=False)
        stopped = stopped or lost(problem, model)
        if stopped is not None:
            return stopped
        n, d, m, g, curve = (
            problem.samples,
            problem.features,
            problem.width,
            problem.gamma,
            problem.curvature,
        )
        c = 2 * movement(start, model)
        ratios, numbers = a_posteriori(problem, start, model, data)
        for part, weights, share in parts(problem):
            total = float(np.sum(weights * c**2))
            bound = n * curve**2 / (4 * d**2) * total + n * curve / d**1.5 * math.sqrt(
                share * total
            )
            numbers[f"bound_{part}"] = bound
            ratios[f"drift_{part}"] = over(numbers[f"drift_{part}"], bound)
        total = float(np.sum(c**2))
        loss = n * curve**2 * g / (4 * d**2 * m) * total + n * curve * g / (
            d**1.5 * math.sqrt(m)
        ) * math.sqrt(total)
        numbers["gap_bound"] = numbers["gap_symmetric_start"] - loss
        ratios["gap"] = lower(numbers["gap"], numbers["gap_bound"])
        return conclude(ratios, numbers, f"largest movement {c.max() / 2:.3g}")


def parts(problem: Problem):
    """(name, node weights, total weight) of the symmetric and of the asymmetric part."""
    return (("1", problem.symmetric, problem.gamma), ("2", problem.asymmetric, 1.0 - problem.gamma))


def lost(problem: Problem, model) -> Verdict | None:
    """NOT_APPLICABLE where the weights of `model` are no numbers any more, else None."""
    if bool(jnp.all(jnp.isfinite(model.weights))):
        return None
    return unjudged("the weights after the run are not finite: it diverged", problem.numbers())


def movement(start, model) -> np.ndarray:
    return np.linalg.norm(np.asarray(model.weights - start.weights, dtype=np.float64), axis=0)


def a_posteriori(problem: Problem, start, model, data) -> tuple[dict[str, float], dict[str, float]]:
    r"""Ratios of $\lVert\Delta\widehat\Theta^{(k)}\rVert_2$ to
    $\Phi_k+2\sqrt{(n/d)\gamma_k\Phi_k}$, and the measured numbers.

    Exact for $|\sigma'|\le1$ and $|x_i|\le1$: the Gram matrix is $JJ^\top$ with
    $\lVert J\rVert^2\le\gamma_kn/d$.
    """
    features = start.embed(data.inputs).astype(float)
    ratios, numbers = {}, problem.numbers()
    total = 0.0
    for name, weights, share in parts(problem):
        weights = real_array("weights", weights)
        before, after = (part_gram(network, features, weights) for network in (start, model))
        drift = float(jnp.max(jnp.abs(jnp.linalg.eigvalsh(after - before))))
        change = float(gradient_change(model, start, features, weights))
        numbers[f"drift_{name}"], numbers[f"phi_{name}"] = drift, change
        ratios[f"posterior_{name}"] = over(
            drift, change + 2 * math.sqrt(problem.samples / problem.features * share * change)
        )
        if name == "1":
            numbers["gap_symmetric_start"] = float(jnp.linalg.eigvalsh(before)[0])
        total = total + after
    numbers["gap"] = float(jnp.linalg.eigvalsh(total)[0])
    return ratios, numbers


def over(actual: float, bound: float) -> float:
    """actual/bound; an exact zero, or rounding of one, is within every bound."""
    return (
        actual / bound if bound > 0 and actual > 1e-14 else (0.0 if actual <= 1e-14 else math.inf)
    )


def lower(actual: float, bound: float) -> float:
    """Ratio for a lower bound: at most 1 where `actual` is at least `bound`; a bound below zero
    asks nothing of a Gram matrix.
    """
    if bound <= 0:
        return 0.0 if actual >= min(bound, -1e-12) else math.inf
    return bound / actual if actual > 0 else math.inf
