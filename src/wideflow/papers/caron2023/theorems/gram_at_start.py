"""The Gram matrix at time zero: Propositions 3.1, 3.3, C.1 and the matrix Chernoff bounds behind
the last.
"""

import math
from typing import ClassVar

import jax.numpy as jnp

from ...._core.activations import activation as as_activation
from ...._core.arrays import real_array
from ...._core.errors import check_between, check_positive
from ...._core.precision import double
from ...._core.randomness import named_key, normal
from ....data.assumptions import check_data_assumptions
from ....limits.kernels import Spectrum, mean_ntk, spectrum
from ....limits.random_gram import limit_nodes
from ....theorems.arguments import checked
from ....theorems.base import AbstractTheorem, Citation, Outcome, Verdict
from ....theorems.of_runs import AbstractRunTheorem
from ..observables.kernel_parts import part_gram
from .problem import REACHABLE, conclude, hypotheses


@checked
def chernoff_lower(
    dimension: int, epsilon: float, smallest_mean: float, bound: float
) -> tuple[float, float]:
    r"""Matrix Chernoff, lower tail (caron2023, Proposition A.1): for independent positive
    semidefinite $X_j$ with $\lambda_{\max}\le R$, $\Pr(\lambda_{\min}(\sum
    X_j)\le(1-\epsilon)\mu_{\min})\le
    n\big[e^{-\epsilon}/(1-\epsilon)^{1-\epsilon}\big]^{\mu_{\min}/R}\le
    ne^{-\epsilon^2\mu_{\min}/(2R)}$.

    Returns both bounds, the sharp one first.

    Args:
        dimension: $n$.
        epsilon: $\epsilon$, from 0 to 1.
        smallest_mean: $\mu_{\min}$, the smallest eigenvalue of $\mathbb E\sum X_j$.
        bound: $R$.
    """
    check_between("epsilon", epsilon, 0.0, 1.0)
    check_positive("bound", bound)
    ratio = smallest_mean / bound
    rest = (1 - epsilon) * math.log(1 - epsilon) if epsilon < 1 else 0.0
    return dimension * math.exp((-epsilon - rest) * ratio), dimension * math.exp(
        -(epsilon**2) * ratio / 2
    )


@checked
def chernoff_upper(
    dimension: int, epsilon: float, largest_mean: float, bound: float
) -> tuple[float, float]:
    r"""Upper tail: $\Pr(\lambda_{\max}(\sum X_j)\ge(1+\epsilon)\mu_{\max})\le
    n\big[e^{\epsilon}/(1+\epsilon)^{1+\epsilon}\big]^{\mu_{\max}/R} \le
    ne^{-\epsilon^2\mu_{\max}/((2+\epsilon)R)}$; both bounds, the sharp one first.

    Args:
        dimension: $n$.
        epsilon: $\epsilon > 0$.
        largest_mean: $\mu_{\max}$, the largest eigenvalue of $\mathbb E\sum X_j$.
        bound: $R$.
    """
    check_positive("epsilon", epsilon)
    check_positive("bound", bound)
    ratio = largest_mean / bound
    sharp = (epsilon - (1 + epsilon) * math.log1p(epsilon)) * ratio
    return dimension * math.exp(sharp), dimension * math.exp(-(epsilon**2) * ratio / (2 + epsilon))


class Proposition31(AbstractTheorem):
    r"""$\kappa_n = \lambda_{\min}(\widehat\Theta^*) > 0$ when no input is zero, no two are
    parallel, and $\sigma$ is ReLU or analytic and not a polynomial.

    Corrected: the paper also names linear and leaky ReLU activations. Linear ones are polynomials:
    $\widehat\Theta^* = XX^\top/d$ has rank at most $d$. Leaky ReLU is neither ReLU nor analytic:
    the proposition does not speak of it, though its closed form shows $\kappa_n>0$.
    """

    citation: ClassVar = Citation("caron2023", "Proposition 3.1")

    @double
    def __call__(self, inputs, activation, *, mean: Spectrum | None = None) -> Verdict:
        """Positive means above the rounding $n\\,\\epsilon\\,\\mathrm{tr}$; the margin is
        $\\kappa_n$ over that. `mean` as in `gather`.

        Args:
            inputs: shape (sample, feature).
            activation: a name, an `Activation` or a function.
        """
        act, inputs = (
            as_activation(activation),
            real_array("inputs", inputs, "(sample, feature)").astype(float),
        )
        assumptions = check_data_assumptions(inputs, jnp.zeros(inputs.shape[0]))
        spectral = spectrum(mean_ntk(inputs, act)) if mean is None else mean
        numbers = {
            "kappa": spectral.smallest,
            "largest": spectral.largest,
            "trace": spectral.trace,
            "resolution": spectral.resolution,
            "smallest_sine": assumptions.smallest_sine,
        }
        if act.polynomial:
            return Verdict(
                Outcome.NOT_APPLICABLE, math.nan, f"{act.name!r} is a polynomial", numbers
            )
        if not act.analytic and act.name != "relu":
            text = (
                f"{act.name!r} is neither ReLU nor analytic; kappa_n = {spectral.smallest:.3g} by "
                "its closed form"
            )
            return Verdict(Outcome.NOT_APPLICABLE, math.nan, text, numbers)
        if not assumptions.smallest_norm > 0 or not assumptions.no_parallels:
            return Verdict(Outcome.NOT_APPLICABLE, math.nan, assumptions.message, numbers)
        if not spectral.resolved:
            text = (
                f"kappa_n = {spectral.smallest:.3g} is numerically zero (rounding "
                f"{spectral.resolution:.1g})"
            )
            return Verdict(Outcome.VACUOUS, math.nan, text, numbers)
        text = f"kappa_n = {spectral.smallest:.3g} of trace {spectral.trace:.3g}"
        return Verdict(Outcome.HOLDS, spectral.smallest / spectral.resolution - 1.0, text, numbers)


class Proposition33(AbstractTheorem):
    r"""$\widehat\Theta_m(W_0)\to\widehat\Theta_\infty$ almost surely. For one sequence $(w_{0j})$,
    whatever follows after node $m$, and $|\sigma'|\le1$,
    $$|\Theta_m-\Theta_\infty|(x_i,x_k)\le\frac{|\langle x_i,x_k\rangle|}d\Big(\gamma\Big|\frac1m\sum_{j\le m}\sigma'\sigma'-\mathbb
      E\sigma'\sigma'\Big|
      +2(1-\gamma)\Big(1-\sum_{j\le m}\tilde\lambda_j\Big)\Big).$$

    Checked on a drawn sequence; the nodes beyond `nodes` are replaced by their mean, an error the
    allowance counts in full.
    """

    citation: ClassVar = Citation("caron2023", "Proposition 3.3")

    @double
    def __call__(
        self, key, inputs, scaling, activation, *, width: int, nodes: int | None = None
    ) -> Verdict:
        """Compares width `width` with the limit on the first `nodes` (default 20 times as many) of
        one drawn sequence.

        Args:
            inputs: shape (sample, feature).
            scaling: where the node weights come from.
            activation: a name, an `Activation` or a function.
        """
        act, inputs = (
            as_activation(activation),
            real_array("inputs", inputs, "(sample, feature)").astype(float),
        )
        if not act.lipschitz <= 1.0 + 1e-12:
            return Verdict(
                Outcome.NOT_APPLICABLE, math.nan, f"|sigma'| reaches {act.lipschitz:.4g} > 1", {}
            )
        nodes = 20 * width if nodes is None else nodes
        if not nodes >= width:
            raise ValueError(f"`nodes` must be at least `width` = {width}, got {nodes}.")
        limit, features = limit_nodes(scaling, nodes), inputs.shape[1]
        nodes = max(nodes, limit.head.size)
        head = jnp.zeros(nodes).at[: limit.head.size].set(jnp.asarray(limit.head))
        hidden = normal(named_key(key, "hidden"), (nodes, features))
        slopes = act.derivative(inputs @ hidden.T / math.sqrt(features))
        products, mean = inputs @ inputs.T / features, mean_ntk(inputs, act)
        first = slopes[:, :width]
        finite = products * ((first * scaling.node_scales(width) ** 2) @ first.T)
        rest = 1.0 - limit.gamma
        infinite = limit.gamma * mean + rest * (
            products * ((slopes * head) @ slopes.T) + limit.tail * mean
        )
        beyond = 1.0 - jnp.sum(head[:width])
        gap = jnp.abs(products * (first @ first.T) / width - mean)
        allowance = jnp.abs(products) * rest * 2.0 * limit.tail
        bound = limit.gamma * gap + 2.0 * rest * beyond * jnp.abs(products) + allowance
        excess = jnp.max(jnp.abs(finite - infinite) - bound)
        worst = float(jnp.max(jnp.abs(finite - infinite) / jnp.maximum(bound, 1e-300)))
        numbers = {
            "distance": float(jnp.max(jnp.abs(finite - infinite))),
            "tail": float(beyond),
            "excess": float(excess),
        }
        return conclude(
            {"pairs": worst if float(excess) > 1e-14 else min(worst, 1.0)},
            numbers,
            f"width {width} against {nodes} nodes",
        )


class PropositionC1(AbstractRunTheorem):
    r"""If $\gamma>0$ and $m\ge8n\log(n/\delta)/(\kappa_nd)$ then with probability at least
    $1-\delta$
    $\lambda_{\min}(\widehat\Theta_m(W_0))\ge\lambda_{\min}(\widehat\Theta^{(1)}_m(W_0))>\gamma\kappa_n/2$.

    The first inequality is Weyl's and always true. The bound is loose: at the threshold width the
    observed ratio stays near 0.9 instead of 0.5.
    """

    citation: ClassVar = Citation("caron2023", "Proposition C.1")

    @staticmethod
    def threshold(samples: int, features: int, kappa: float, delta: float) -> float:
        return 8 * samples * math.log(samples / delta) / (kappa * features)

    @double
    def evaluate(
        self, start, data, *, failure_probability: float = 0.1, mean: Spectrum | None = None
    ) -> Verdict:
        """Judges the drawn network `start`; a violation has probability at most `delta`. `mean` as
        in `gather`.
        """
        delta = failure_probability
        problem, stopped = hypotheses(start, data, mean, delta)
        if stopped is not None:
            return stopped
        required = self.threshold(problem.samples, problem.features, problem.kappa, delta)
        features = start.embed(data.inputs).astype(float)
        gap, symmetric = (
            float(
                jnp.linalg.eigvalsh(part_gram(start, features, real_array("weights", weights)))[0]
            )
            for weights in (problem.weights, problem.symmetric)
        )
        bound = problem.gamma * problem.kappa / 2
        numbers = {
            **problem.numbers(),
            "required": required,
            "gap": gap,
            "gap_symmetric": symmetric,
            "bound": bound,
        }
        if not problem.width >= required:
            outcome = Outcome.NOT_APPLICABLE if required <= REACHABLE else Outcome.VACUOUS
            return Verdict(
                outcome, math.nan, f"needs m >= {math.ceil(required)}, got {problem.width}", numbers
            )
        ratios = {
            "gap": bound / symmetric if symmetric > 0 else math.inf,
            "weyl": symmetric / gap if gap > 0 else math.inf,
        }
        return conclude(ratios, numbers, f"gap {gap:.3g} against gamma kappa/2 = {bound:.3g}")
