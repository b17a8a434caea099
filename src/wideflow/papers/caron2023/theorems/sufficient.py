"""Sufficient conditions with free constants: Lemma D.3 (ReLU) and Lemma D.5 (smooth)."""

import math
from typing import ClassVar

import numpy as np

from ...._core.arrays import real_values
from ...._core.precision import double
from ....theorems.base import Citation, Outcome, Verdict
from ....theorems.of_runs import AbstractRunTheorem
from ....theorems.recorded_run import unjudged
from .problem import (
    REACHABLE,
    Problem,
    Trajectory,
    conclude,
    four_ratios,
    hypotheses,
    trajectory,
)

LEAST = 1e-200  # of the constants without `c`: they must be positive even where nothing has to move


class LemmaD3(AbstractRunTheorem):
    r"""ReLU. Choose $c_j>0$. If
    $m\ge\max\big(\frac{8n\log(4n/\delta)}{d\kappa},\frac{8n}{d\kappa}\sum_jc_j,\frac{256n^2}{d^2\kappa^2}\sum_jc_j\big)$
    and $R'_j = \sqrt{n\lambda_j/d}\,|y-u_0|\,\frac4{\gamma\kappa}<R_j = \delta^2c_j/64$ for all $j$
    with probability at least $1-\delta/2$, then with probability at least $1-\delta$ for all $t$:
    (a) $\lambda_{\min}(\widehat\Theta_t)\ge\gamma\kappa/4$; (b) $L_t\le e^{-\gamma\kappa t/2}L_0$;
    (c) $|w_{tj}-w_{0j}|\le R'_j$;
    (d) $\lVert\Delta\widehat\Theta\rVert_2\le\frac nd\sum\lambda c+\frac{2\sqrt2n}d(\sum\lambda
        c)^{1/2}$.

    Here $|y-u_0|$ is that of the given start, so the second condition is checked as it stands.
    Without `c` the smallest admissible choice $c_j = 1.01\cdot64R'_j/\delta^2$ is taken: labels
    close to the initial outputs make the lemma applicable at a width one can run.
    """

    citation: ClassVar = Citation("caron2023", "Lemma D.3")

    @double
    def evaluate(
        self, start, data, table=None, *, c=None, failure_probability: float = 0.5, mean=None
    ) -> Verdict:
        """Judges `start` on `data` with constants `c` (width,); `table` is a run recorded with
        `RECORD`, `mean` as in `gather`.
        """
        delta = failure_probability
        problem, stopped = hypotheses(start, data, mean, delta, kinked=True)
        if stopped is not None:
            return stopped
        n, d, k = problem.samples, problem.features, problem.kappa
        reach = radius(problem, start, data)
        c = _radii(c, 1.01 * 64 * reach / delta**2)
        total, weighted = float(c.sum()), float(np.sum(problem.weights * c))
        required = max(
            8 * n * math.log(4 * n / delta) / (d * k),
            8 * n / (d * k) * total,
            256 * n**2 / (d * k) ** 2 * total,
        )
        drift = n / d * weighted + 2 * math.sqrt(2) * n / d * math.sqrt(weighted)
        path = None if table is None else trajectory(table, start, data)
        return sufficient(problem, path, required, reach, delta**2 * c / 64, drift, delta)


class LemmaD5(AbstractRunTheorem):
    r"""Smooth $\sigma$. If
    $m\ge\max\big(\frac{8n\log(2n/\delta)}{d\kappa},\frac{nM^2\delta^2}{8d^2\kappa}\sum_jc_j^2,\frac{4n^2M^2\delta^2}{d^3\kappa^2}\sum_jc_j^2\big)$
    and $R'_j = \sqrt{n\lambda_j/d}\,|y-u_0|\,\frac4{\gamma\kappa}<R_j = \delta c_j/8$, then with
    probability at least $1-\delta$ for all $t$ the conclusions (a)-(c) of Lemma D.3 hold, and (d)
    $\lVert\Delta\widehat\Theta\rVert_2\le\frac{nM^2\delta^2}{64d^2}\sum\lambda
    c^2+\frac{nM\delta}{2^{3/2}d^{3/2}}(\sum\lambda c^2)^{1/2}$.

    Without `c` the smallest admissible choice $c_j = 1.01\cdot8R'_j/\delta$ is taken.
    """

    citation: ClassVar = Citation("caron2023", "Lemma D.5")

    @double
    def evaluate(
        self, start, data, table=None, *, c=None, failure_probability: float = 0.5, mean=None
    ) -> Verdict:
        """Judges `start` on `data` with constants `c` (width,); `table` is a run recorded with
        `RECORD`, `mean` as in `gather`.
        """
        delta = failure_probability
        problem, stopped = hypotheses(start, data, mean, delta, kinked=False)
        if stopped is not None:
            return stopped
        n, d, k, curve = problem.samples, problem.features, problem.kappa, problem.curvature
        reach = radius(problem, start, data)
        c = _radii(c, 1.01 * 8 * reach / delta)
        total, weighted = float(np.sum(c**2)), float(np.sum(problem.weights * c**2))
        scale = n * curve**2 * delta**2
        required = max(
            8 * n * math.log(2 * n / delta) / (d * k),
            scale / (8 * d**2 * k) * total,
            4 * n * scale / (d**3 * k**2) * total,
        )
        drift = scale / (64 * d**2) * weighted + n * curve * delta / (2**1.5 * d**1.5) * math.sqrt(
            weighted
        )
        path = None if table is None else trajectory(table, start, data)
        return sufficient(problem, path, required, reach, delta * c / 8, drift, delta)


def radius(problem: Problem, start, data) -> np.ndarray:
    r"""$R'_j = \sqrt{n\lambda_j/d}\,|y-u_0|\,4/(\gamma\kappa)$."""
    residual = np.asarray(start.outputs(data.inputs)) - np.asarray(data.targets)
    size = float(np.linalg.norm(residual))
    return (
        np.sqrt(problem.samples * problem.weights / problem.features)
        * size
        * 4
        / (problem.gamma * problem.kappa)
    )


def sufficient(
    problem: Problem,
    path: Trajectory | None,
    required: float,
    reach: np.ndarray,
    allowed: np.ndarray,
    drift: float,
    delta: float,
) -> Verdict:
    """The common end: both conditions, then the four conclusions."""
    numbers = {
        **problem.numbers(),
        "delta": delta,
        "required": required,
        "radius_ratio": float(np.max(reach / allowed)),
        "bound_drift": drift,
        "bound_gap": problem.gamma * problem.kappa / 4,
        "bound_rate": problem.gamma * problem.kappa / 2,
    }
    if not np.all(reach < allowed):
        text = f"R'_j exceeds R_j by up to {numbers['radius_ratio']:.3g}: choose larger `c`"
        return Verdict(Outcome.NOT_APPLICABLE, math.nan, text, numbers)
    if not problem.width >= required:
        outcome = Outcome.NOT_APPLICABLE if required <= REACHABLE else Outcome.VACUOUS
        return Verdict(
            outcome, math.nan, f"needs m >= {required:.4g}, got {problem.width}", numbers
        )
    if path is None:
        text = (
            f"m = {problem.width} >= {math.ceil(required)}: converges with probability "
            f"{1 - delta:g}"
        )
        return Verdict(Outcome.HOLDS, problem.width / required - 1.0, text, numbers)
    if path.fault:
        return unjudged(path.fault, numbers)
    ratios = four_ratios(
        path, gap=numbers["bound_gap"], rate=numbers["bound_rate"], reach=reach, drift=drift
    )
    return conclude(ratios, numbers, f"m = {problem.width} >= {math.ceil(required)}")


def _radii(c, smallest: np.ndarray) -> np.ndarray:
    """The constants $c_j > 0$, one a node; without `c` the smallest admissible ones."""
    if c is None:
        return np.maximum(smallest, LEAST)
    values = np.broadcast_to(np.asarray(real_values("c", c), np.float64), smallest.shape)
    if not np.all(values > 0):
        raise ValueError(f"`c` must be positive, one number per node, got {c!r}.")
    return values
