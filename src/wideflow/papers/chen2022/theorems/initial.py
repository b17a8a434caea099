"""Lemmas 2 and 3: the loss and the active fraction of a random start."""

import math
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ...._core.normal_rows import square_root
from ...._core.precision import double
from ...._core.randomness import named_key
from ....models.shallow import Shallow
from ....theorems.base import Citation, Outcome, Verdict
from ....theorems.of_runs import AbstractRunTheorem
from ..observables.activity import middle_third, share_inside
from .constants import (
    active_floor,
    active_floor_exact,
    output_proxies,
    width_for_activity,
    width_for_loss,
)
from .problem import REACHABLE, Problem, check_probability, gather


class Lemma2(AbstractRunTheorem):
    r"""If $m \ge 2 (\sum_a v_a) \log(2n/p) / ((\sqrt2 - 1)^2 \lVert y \rVert^2)$, then
    $L^0 \le \lVert y \rVert^2$ with probability at least $1 - p$ over
    $W_{ij} \sim \mathcal{N}(0, 1)$ and the signs of $c$. $v_a = \hat c^2 L_\sigma^2 G_{aa}$ where
    $\sigma(0) = 0$, else $2 \hat c^2 (\sigma(0)^2 + L_\sigma^2 G_{aa})$.

    Corrected: the printed union bound uses the threshold $\lVert y \rVert$ for each point where
    $\lVert y \rVert / \sqrt n$ is needed, drops a cross term (what is used is
    $\lVert f^0 \rVert \le (\sqrt2 - 1) \lVert y \rVert$), and needs $\sigma(0) = 0$.

    With a `key` the probability itself is checked over `draws` fresh starts; without one, the given
    start alone.
    """

    citation: ClassVar[Citation] = Citation("chen2022", "Lemma 2")

    @double
    def evaluate(
        self,
        start: Shallow,
        data,
        *,
        failure_probability: float | int = 0.1,
        key=None,
        draws: int = 200,
    ) -> Verdict:
        check_probability(failure_probability)
        problem = gather(start, data)
        faults = [
            f for f in problem.random_faults if "singular" not in f and "bounded away" not in f
        ]
        proxies = output_proxies(problem.activation, problem.magnitude, problem.diagonal)
        needed = width_for_loss(proxies, problem.target_norm, failure_probability)
        numbers = {**problem.numbers(), "needed_width": needed, "probability": failure_probability}
        if faults:
            return Verdict(Outcome.NOT_APPLICABLE, math.nan, "; ".join(faults), numbers)
        if problem.width < needed:
            return too_narrow(problem.width, needed, numbers)
        return judged(
            start,
            data,
            problem,
            "loss",
            problem.target_norm**2,
            failure_probability,
            key,
            draws,
            numbers,
        )


class Lemma3(AbstractRunTheorem):
    r"""If $m \ge \log(n/p) / (2 K_3^2)$ then $\tilde\eta^0 > K_3$ with probability at least $1 - p$
    (corrected: the paper says $\eta^0$; its proof is about $\tilde\eta^0$), with
    $K_3 = \frac{I_r - I_l}{6 \sqrt{2\pi G_{\max}}} e^{-\max(I_l^2, I_r^2) / (2 G_{\min})}$ from the
    extreme diagonal entries of $G$ (corrected exponent and root). `exact=True` takes half the exact
    Gaussian mass of the middle third, which is larger.
    """

    citation: ClassVar[Citation] = Citation("chen2022", "Lemma 3")

    @double
    def evaluate(
        self,
        start: Shallow,
        data,
        *,
        failure_probability: float | int = 0.1,
        interval=None,
        exact: bool = False,
        key=None,
        draws: int = 200,
    ) -> Verdict:
        check_probability(failure_probability)
        problem = gather(start, data, interval)
        floor = activity_floor(problem, exact)
        needed = width_for_activity(floor, problem.samples, failure_probability)
        numbers = {
            **problem.numbers(),
            "needed_width": needed,
            "K3": floor,
            "probability": failure_probability,
        }
        faults = [f"{problem.law} (Assumption 3)"] if problem.law else []
        faults += [fault for fault in problem.faults if "pruned" in fault]
        if not math.isclose(start.hidden_scale * problem.features**0.5, 1.0, rel_tol=1e-9):
            faults.append(
                f"the pre-activations are not N(0, G) under {start.scaling}; `wf.maps` writes it "
                "in MeanField()"
            )
        if faults:
            return Verdict(Outcome.NOT_APPLICABLE, math.nan, "; ".join(faults), numbers)
        if problem.width < needed:
            return too_narrow(problem.width, needed, numbers)
        return judged(
            start, data, problem, "activity", floor, failure_probability, key, draws, numbers
        )


def activity_floor(problem: Problem, exact: bool) -> float:
    if exact:
        return active_floor_exact(problem.interval, problem.diagonal)
    return active_floor(problem.interval, problem.least, problem.most)


def too_narrow(width: int, needed: float | int, numbers: dict) -> Verdict:
    """Why the width hypothesis fails: VACUOUS where no computer could meet it."""
    vacuous = not needed <= REACHABLE
    message = f"the width {width} is below the required {needed:.3g}" + (
        ", which no computer holds" if vacuous else ""
    )
    return Verdict(
        Outcome.VACUOUS if vacuous else Outcome.NOT_APPLICABLE, width / needed - 1, message, numbers
    )


def judged(
    start,
    data,
    problem: Problem,
    what: str,
    level: float | int,
    failure_probability,
    key,
    draws,
    numbers,
) -> Verdict:
    """The event at the given start, or its frequency over fresh starts."""
    if key is None:
        good = problem.initial_loss <= level if what == "loss" else problem.eta_tilde > level
        margin = level - problem.initial_loss if what == "loss" else problem.eta_tilde - level
        outcome = Outcome.HOLDS if good else Outcome.VIOLATED
        return Verdict(
            outcome,
            margin,
            f"this start {'has' if good else 'lacks'} the property (it may fail with probability "
            f"{failure_probability})",
            numbers,
        )
    losses, shares = starts(key, start, data, problem, draws)
    failures = float(np.mean(losses > level)) if what == "loss" else float(np.mean(shares <= level))
    allowed = failure_probability + 3 * math.sqrt(failure_probability / draws)
    outcome = Outcome.HOLDS if failures <= allowed else Outcome.VIOLATED
    message = f"{failures:.1%} of {draws} starts fail, {failure_probability:.1%} are allowed"
    return Verdict(outcome, allowed - failures, message, {**numbers, "failure_rate": failures})


@double
def starts(
    key, start: Shallow, data, problem: Problem, draws: int
) -> tuple[np.ndarray, np.ndarray]:
    r"""$L^0$ and $\tilde\eta^0$ of fresh starts, drawn in function space: rows of $H^0$ are
    $\mathcal{N}(0, G)$.
    """
    root = square_root(start.embedding.gram(data.inputs))
    targets, interval = jnp.asarray(data.targets), middle_third(problem.interval)
    keys = jax.vmap(lambda i: jax.random.fold_in(named_key(key, "starts"), i))(jnp.arange(draws))
    losses, shares = _draw(
        keys, root, targets, problem.activation, problem.width, problem.magnitude, interval
    )
    return np.asarray(losses), np.asarray(shares)


@eqx.filter_jit
def _draw(keys, root, targets, act, width, magnitude, interval):
    def one(key):
        rows, signs = jax.random.split(key)
        h = root @ jax.random.normal(rows, (len(root), width))
        c = magnitude * jax.random.rademacher(signs, (width,), float)
        loss = 0.5 * jnp.sum((act(h) @ c / width - targets) ** 2)
        return loss, jnp.min(share_inside(h, interval))

    return jax.lax.map(one, keys)
