"""Theorems 1, 2 and 3, Corollary 1 and Lemma 4 with every constant explicit."""

import math
from typing import ClassVar

import numpy as np

from ...._core.arrays import real_values
from ...._core.errors import check_choice, check_kind
from ...._core.precision import double
from ....data.dataset import Dataset
from ....limits.deep import hidden_gram, largest_cosine
from ....models.embeddings import DeepRandomFeatures, Identity, RandomFeatures
from ....models.shallow import Shallow
from ....theorems.base import AbstractTheorem, Citation, Outcome, Verdict
from ....theorems.gaussian_start import normal_fault
from ....theorems.of_runs import AbstractRunTheorem
from ....theorems.recorded_run import unjudged
from .constants import (
    VARIANTS,
    active_floor,
    features_for_gram,
    kappa,
    output_proxies,
    sub_gaussian_bound,
    width_for_activity,
    width_for_loss,
)
from .identities import measured_rate
from .initial import activity_floor, too_narrow
from .lemma1 import problem_kappa
from .problem import REACHABLE, Problem, check_probability, gather, trajectory


class Theorem1(AbstractRunTheorem):
    r"""Fixed embedding, $\lambda_{\min}(G) > 0$, Assumptions 1-3, gradient flow. With $K_3$ of Lemma 3
    and $\kappa$ of Lemma 1 put
    $$c_0 = \frac{9 \sqrt2\, \lVert y \rVert}{K_s (I_r - I_l) K_3^{3/2}}, \qquad r = 2^{1/3} K_s^2
      K_3.$$
    If $\hat c \ge c_0 \lambda_{\max}(G) / \lambda_{\min}(G) = 2 \kappa \lVert y \rVert / K_3^{3/2}$
    and $m \ge \max\{\log(2n/p) / (2 K_3^2),\; 2 (\sum_a v_a) \log(4n/p) / ((\sqrt2-1)^2 \lVert y
    \rVert^2)\}$, then with probability at least $1 - p$, for all $t$: $\eta^t \ge 2^{-2/3} K_3$ and
    $L^t \le L^0 e^{-r \hat c^2 \lambda_{\min}(G) t}$. Corrected: 9 for $9\sqrt2$ in the printed
    (58), and Lemma 2's hidden $n$. `variant="sharp"`: $\sqrt{G_{\max} / \lambda_{\min}}$ for
    $\lambda_{\max} / \lambda_{\min}$. `exact=True`: the exact $K_3$.
    """

    citation: ClassVar[Citation] = Citation("chen2022", "Theorem 1")

    @double
    def evaluate(
        self,
        start: Shallow,
        data,
        table=None,
        *,
        failure_probability: float | int = 0.1,
        interval=None,
        variant: str = "corrected",
        exact: bool = False,
    ) -> Verdict:
        check_probability(failure_probability)
        check_choice("variant", variant, VARIANTS)
        problem = gather(start, data, interval)
        unmet = problem.unmet()
        if unmet:
            return unmet
        floor = activity_floor(problem, exact)
        needed_chat = 2 * problem_kappa(problem, variant) * problem.target_norm / floor**1.5
        proxies = output_proxies(problem.activation, problem.magnitude, problem.diagonal)
        numbers = {
            **problem.numbers(),
            "K3": floor,
            "c0": 9
            * math.sqrt(2)
            * problem.target_norm
            / (problem.floor * (problem.interval[1] - problem.interval[0]) * floor**1.5),
            "needed_chat": needed_chat,
            "width_for_activity": width_for_activity(
                floor, problem.samples, failure_probability / 2
            ),
            "width_for_loss": width_for_loss(proxies, problem.target_norm, failure_probability / 2),
            "r": 2 ** (1 / 3) * problem.floor**2 * floor,
            "certified_eta": 2 ** (-2 / 3) * floor,
        }
        rate = numbers["r"] * problem.magnitude**2 * problem.smallest
        return _conclude(problem, start, data, table, numbers, needed_chat, rate)


class Corollary1(AbstractRunTheorem):
    r"""Theorem 1 for the plain shallow network, $G_0 = X X^\top / d$: $\lambda_{\min}(G_0) > 0$ iff
    rank $X = n$, so $n \le d$. Corrected: the conditions of Theorem 1 on $\hat c$ and $m$ are
    needed here too.
    """

    citation: ClassVar[Citation] = Citation("chen2022", "Corollary 1")

    @double
    def evaluate(
        self,
        start: Shallow,
        data,
        table=None,
        *,
        failure_probability: float | int = 0.1,
        interval=None,
        variant: str = "corrected",
        exact: bool = False,
    ) -> Verdict:
        """The options are those of `Theorem1`."""
        rank = int(np.linalg.matrix_rank(np.asarray(data.inputs)))
        numbers = {"rank": float(rank), "n": float(len(data)), "d": float(data.dimension)}
        if not isinstance(start.embedding, Identity):
            return Verdict(
                Outcome.NOT_APPLICABLE,
                math.nan,
                "the network has an embedding; use `Theorem1`",
                numbers,
            )
        if rank < len(data):
            return Verdict(
                Outcome.NOT_APPLICABLE,
                math.nan,
                f"rank X = {rank} is below n = {len(data)}: G_0 is singular",
                numbers,
            )
        verdict = Theorem1()(
            start,
            data,
            table,
            failure_probability=failure_probability,
            interval=interval,
            variant=variant,
            exact=exact,
        )
        return Verdict(
            verdict.outcome, verdict.margin, verdict.message, {**numbers, **verdict.numbers}
        )


class Theorem2(AbstractRunTheorem):
    r"""Random embedding with limiting Gram matrix $\bar G$, on the event
    $\lVert G - \bar G \rVert_2 \le \frac12 \lambda_{\min}(\bar G)$. Then
    $\lambda_{\min}(G) \ge \frac12 \lambda_{\min}(\bar G)$,
    $\lambda_{\max}(G) \le \frac32 \lambda_{\max}(\bar G)$ and
    $\frac12 \bar G_{\min} \le G_{aa} \le \frac32 \bar G_{\max}$. With
    $K = K_3(I, \frac12 \bar G_{\min}, 2 \bar G_{\max})$: if
    $\hat c \ge 8 \kappa(\bar G) \lVert y \rVert / K^{3/2}$ and $m \ge \max\{\log(4n/p) / (2 K^2),
    \text{Lemma 2 at } p/4 \text{ with } G_{aa} \le 2 \bar G_{\max}\}$, then with probability at
    least $1 - p$ $L^t \le L^0 e^{-r \hat c^2 \lambda_{\min}(\bar G) t}$, $r = 2^{-2/3} K_s^2 K$
    (corrected: the printed (83) forgets $t$, and puts eigenvalues into $K$).

    `limit` is $\bar G$; without it that of the network's own random features,
    `wf.limits.hidden_gram(inputs, activation, depth)`. The event is checked on the given embedding.
    """

    citation: ClassVar[Citation] = Citation("chen2022", "Theorem 2")

    @double
    def evaluate(
        self,
        start: Shallow,
        data,
        limit=None,
        table=None,
        *,
        failure_probability: float | int = 0.1,
        interval=None,
    ) -> Verdict:
        check_probability(failure_probability)
        if limit is None:
            if not isinstance(start.embedding, RandomFeatures | DeepRandomFeatures):
                text = "it is about random embeddings; this network has none"
                return Verdict(Outcome.NOT_APPLICABLE, math.nan, text)
            limit = _limiting_gram(start.embedding, data.inputs)
        problem = gather(start, data, interval)
        numbers, faults = (
            {**problem.numbers(), **gram_event(start, data, limit)},
            list(problem.faults),
        )
        if not numbers["limit_lambda_min"] > numbers["limit_resolution"]:
            faults.append(
                "the limiting Gram matrix is singular (lambda_min "
                f"{numbers['limit_lambda_min']:.2g})"
            )
        elif not numbers["gram_distance"] <= numbers["limit_lambda_min"] / 2:
            faults.append(
                f"|G - limit| = {numbers['gram_distance']:.3g} exceeds half of lambda_min = "
                f"{numbers['limit_lambda_min']:.3g}: D is too small"
            )
        if faults:
            return Verdict(Outcome.NOT_APPLICABLE, math.nan, "; ".join(faults), numbers)
        limit = np.asarray(limit, dtype=float)
        diagonal = np.diag(limit)
        floor = active_floor(problem.interval, diagonal.min() / 2, 2 * diagonal.max())
        constant = kappa(
            numbers["limit_lambda_min"],
            numbers["limit_lambda_max"],
            diagonal.max(),
            problem.floor,
            problem.interval,
        )
        needed_chat = 8 * constant * problem.target_norm / floor**1.5
        proxies = output_proxies(
            problem.activation, problem.magnitude, np.full(problem.samples, 2 * diagonal.max())
        )
        numbers.update(
            K=floor,
            kappa=constant,
            needed_chat=needed_chat,
            width_for_activity=width_for_activity(floor, problem.samples, failure_probability / 4),
            width_for_loss=width_for_loss(proxies, problem.target_norm, failure_probability / 4),
            r=2 ** (-2 / 3) * problem.floor**2 * floor,
        )
        return _conclude(
            problem,
            start,
            data,
            table,
            numbers,
            needed_chat,
            numbers["r"] * problem.magnitude**2 * numbers["limit_lambda_min"],
        )


def _limiting_gram(embedding: RandomFeatures | DeepRandomFeatures, inputs) -> np.ndarray:
    r"""$\bar G$ of infinitely many random features a layer."""
    depth = 1 if isinstance(embedding, RandomFeatures) else embedding.layers - 2
    return np.asarray(hidden_gram(inputs, embedding.activation, depth))


class Lemma4(AbstractTheorem):
    r"""P-3L with $z \sim \mathcal{N}(0, I)$ and $\sigma(0) = 0$:
    $\lVert G_1 - \bar G_1 \rVert_2 \le u$ with probability at least $1 - p$ once
    $D \ge D_{\min}(p, u) = (4 b^2 n^2 / u^2 + 2 b n / u) \log(2 n^2 / p)$,
    $b = \frac83 L_\sigma^2 \max_a \lVert x_a \rVert^2 / d$ (Bernstein and a union over entries;
    corrected: the printed $b$ lacks the inputs). By default $u = \frac12 \lambda_{\min}(\bar G_1)$,
    what Theorem 3 needs. The bound is pessimistic by many orders; the distance itself is reported
    too.

    Args:
        start: a `Shallow` network on `RandomFeatures`, at time zero.
        data: the training set.
        failure_probability: $p$.
        distance: $u$.
    """

    citation: ClassVar[Citation] = Citation("chen2022", "Lemma 4")

    @double
    def __call__(
        self,
        start: Shallow,
        data,
        *,
        failure_probability: float | int = 0.1,
        distance: float | int | None = None,
    ) -> Verdict:
        check_probability(failure_probability)
        fault = _three_layer_fault(start)
        if fault:
            return Verdict(Outcome.NOT_APPLICABLE, math.nan, fault)
        assert isinstance(start.embedding, RandomFeatures)  # anything else is a fault
        numbers = gram_event(start, data, hidden_gram(data.inputs, start.embedding.activation))
        numbers["largest_cosine"] = largest_cosine(data.inputs)
        distance = numbers["limit_lambda_min"] / 2 if distance is None else distance
        if not distance > numbers["limit_resolution"]:
            message = (
                "the limiting Gram matrix is singular (largest |cosine| between inputs "
                f"{numbers['largest_cosine']:.6g})"
            )
            return Verdict(Outcome.NOT_APPLICABLE, math.nan, message, numbers)
        bound = sub_gaussian_bound(data.inputs, start.embedding.activation.lipschitz)
        needed = features_for_gram(bound, len(data), failure_probability, distance)
        features = start.weights.shape[0]
        numbers.update(b=bound, needed_features=needed, D=float(features), distance=float(distance))
        reached = numbers["gram_distance"] <= distance
        comparison = f"|G - limit| = {numbers['gram_distance']:.3g} against {distance:.3g}"
        if features < needed:
            outcome = Outcome.VACUOUS if needed > REACHABLE else Outcome.NOT_APPLICABLE
            return Verdict(
                outcome,
                features / needed - 1,
                f"D = {features} is below the required {needed:.3g}; {comparison}",
                numbers,
            )
        return Verdict(
            Outcome.HOLDS if reached else Outcome.VIOLATED,
            distance - numbers["gram_distance"],
            comparison,
            numbers,
        )


class Theorem3(AbstractTheorem):
    r"""P-3L: if $D \ge D_{\min}(p/2, \frac12 \lambda_{\min}(\bar G_1))$ (Lemma 4) and the
    conditions of Theorem 2 hold with $\bar G_1$, then with probability at least $1 - p$ over $Z$,
    $W$ and $c$, $L^t \le L^0 e^{-r \hat c^2 \lambda_{\min}(\bar G_1) t}$ (corrected: $L_\sigma$
    belongs to the list of what the constants depend on).

    `empirical=True` replaces the condition on $D$ by the event itself,
    $\lVert G - \bar G_1 \rVert_2 \le \frac12 \lambda_{\min}(\bar G_1)$.

    Args:
        start: a `Shallow` network on `RandomFeatures`, at time zero.
        data: the training set.
        table: of a run from `start`, or None to judge the conditions alone.
        failure_probability: $p$.
        interval: $I$ of Theorem 2; the activation's own if None.
    """

    citation: ClassVar[Citation] = Citation("chen2022", "Theorem 3")

    @double
    def __call__(
        self,
        start: Shallow,
        data,
        table=None,
        *,
        failure_probability: float | int = 0.1,
        interval=None,
        empirical: bool = False,
    ) -> Verdict:
        first = Lemma4()(start, data, failure_probability=failure_probability / 2)
        if not first.numbers:
            return first
        if not empirical and first.outcome is not Outcome.HOLDS:
            return first
        verdict = Theorem2()(
            start, data, table=table, failure_probability=failure_probability, interval=interval
        )
        return Verdict(
            verdict.outcome, verdict.margin, verdict.message, {**first.numbers, **verdict.numbers}
        )


@double
def gram_event(start: Shallow, data, limit) -> dict[str, float]:
    """How far the embedding's Gram matrix is from its limit, and the four consequences of being
    near.

    Args:
        start: a `Shallow` network at time zero.
        data: the training set.
        limit: the Gram matrix of infinitely many features, shape (sample, sample).
    """
    check_kind("start", start, Shallow, "a `Shallow` network")
    check_kind("data", data, Dataset, "a `Dataset`")
    limit = np.asarray(real_values("limit", limit), dtype=float)
    gram = np.asarray(start.embedding.gram(data.inputs), dtype=float)
    if limit.shape != gram.shape:
        raise ValueError(
            f"`limit` must have the shape {gram.shape} of the Gram matrix, got {limit.shape}."
        )
    values, bars = np.linalg.eigvalsh(gram), np.linalg.eigvalsh(limit)
    return {
        "gram_distance": float(np.linalg.norm(gram - limit, 2)),
        "limit_lambda_min": float(bars[0]),
        "limit_lambda_max": float(bars[-1]),
        "limit_resolution": float(len(limit) * np.finfo(float).eps * bars[-1]),
        "keeps_lambda_min": float(values[0] >= bars[0] / 2),
        "keeps_lambda_max": float(values[-1] <= 1.5 * bars[-1]),
        "keeps_G_min": float(np.diag(gram).min() >= np.diag(limit).min() / 2),
        "keeps_G_max": float(np.diag(gram).max() <= 1.5 * np.diag(limit).max()),
    }


def _three_layer_fault(start: Shallow) -> str:
    if not isinstance(start.embedding, RandomFeatures):
        return (
            f"the embedding is {type(start.embedding).__name__}, not the one random layer of a "
            "P-3L network"
        )
    if start.embedding.activation.at_zero != 0:
        return (
            f"the explicit constant needs sigma(0) = 0, which {start.embedding.activation.name!r} "
            "lacks"
        )
    if not math.isfinite(start.embedding.activation.lipschitz):
        return f"{start.embedding.activation.name!r} has no known Lipschitz constant"
    law = normal_fault(start.embedding.weights, "the frozen weights z")
    return f"{law} (the constants are those of Gaussian z)" if law else ""


def _conclude(
    problem: Problem,
    start: Shallow,
    data,
    table,
    numbers: dict,
    needed_chat: float | int,
    rate: float | int,
) -> Verdict:
    """Hypotheses first; then, given a run, its loss against the envelope."""
    numbers["guaranteed_rate"] = rate
    needed_width = max(numbers["width_for_activity"], numbers["width_for_loss"])
    numbers["needed_width"] = needed_width
    if problem.law:
        return unjudged(f"{problem.law} (Assumptions 1 and 3)", numbers)
    if problem.magnitude < needed_chat:
        message = (
            f"chat = {problem.magnitude:.3g} is below the required {needed_chat:.3g}; as chat "
            "grows the network becomes lazy"
        )
        return Verdict(
            Outcome.NOT_APPLICABLE, problem.magnitude / needed_chat - 1, message, numbers
        )
    if problem.width < needed_width:
        return too_narrow(problem.width, needed_width, numbers)
    margin = min(problem.magnitude / needed_chat, problem.width / needed_width) - 1
    if table is None:
        return Verdict(
            Outcome.HOLDS,
            margin,
            f"all hypotheses hold; the loss falls at rate {rate:.3g} at least",
            numbers,
        )
    path = trajectory(table, start, data, problem)
    if path.fault:
        return unjudged(path.fault, numbers)
    numbers["measured_rate"] = measured_rate(path.times, path.losses)
    numbers["rate_ratio"] = numbers["measured_rate"] / rate
    slack = path.below(rate)
    message = f"guaranteed rate {rate:.3g}, measured {numbers['measured_rate']:.3g}"
    return Verdict(Outcome.HOLDS if slack >= 0 else Outcome.VIOLATED, slack, message, numbers)
