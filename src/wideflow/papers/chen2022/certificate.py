"""chen2022 on a user's network: the active-neuron certificate and linear convergence.

The paper's scaling is `MeanField()`. NTK networks and the older mean-field scaling are written in
it exactly (`wf.maps`) and judged there; for NTK time is then divided by the width, so rates are
given in the time of the original network.
"""

import math
from dataclasses import replace
from functools import partial

import jax.numpy as jnp

from ..._core.scalings import NTK, MeanField
from ..._core.trees import unlabelled
from ...certify.registry import ALWAYS, MAYBE, Case, Statement, on_case
from ...certify.several_outputs import one_output, per_output
from ...certify.shallow_only import not_applicable, of_shallow
from ...models import maps
from ...models.shallow import has_own_scales
from ...theorems.base import Outcome, Verdict
from ...training.identity import digest
from . import theorems as paper

RATES = ("guaranteed_rate", "certified_rate", "rate", "measured_rate")


def mapped(judge, outputs=one_output):
    """Judges in the paper's scaling where an exact map leads there; `outputs` says what several
    outputs mean to the statement.
    """

    def through(case: Case) -> Verdict:
        model, factor = case.model, 1.0
        if not has_own_scales(model):
            return not_applicable(
                f"the node scales are not those of {model.scaling} at width {model.width}: the "
                "network was pruned or changed"
            )
        if isinstance(model.scaling, NTK):
            model, factor = maps.ntk_as_mean_field(model, 1.0).model, 1.0 / model.width
        elif isinstance(model.scaling, MeanField) and model.scaling.hidden != 0.5:
            model = maps.older_as_mean_field(model, 1.0).model
        table = case.table
        if (
            table is not None and model is not case.model
        ):  # the map is exact: the run is the mapped network's too
            table = table.assign_coords(time=table["time"] * factor)
            table = table.assign_attrs(starts=digest(unlabelled(model)))
        verdict = judge(replace(case, model=model, table=table))
        numbers = {
            name: value * (factor if name in RATES else 1.0)
            for name, value in verdict.numbers.items()
        }
        verdict = Verdict(verdict.outcome, verdict.margin, verdict.message, numbers)
        return _under_ntk(verdict, case.model) if isinstance(case.model.scaling, NTK) else verdict

    return of_shallow(outputs(through))


def _under_ntk(verdict: Verdict, model) -> Verdict:
    r"""What helps under NTK, where $\hat c = \sqrt m\,c$ grows with the width.

    Lemma 2's condition $m\ge\hat c^2A = mc^2A$ does not depend on $m$: it is met by $c\le A^{-1/2}$
    or not at all. The condition on $\hat c$ is met by the width $(\hat c_{\rm needed}/c)^2$, that
    of the certificate by one about $\beta^2$ times larger.
    """
    numbers, text, width = dict(verdict.numbers), verdict.message, model.width
    if not numbers.get("chat", 0.0) > 0 or verdict.outcome is Outcome.HOLDS:
        return verdict
    magnitude = numbers["chat"] / width**0.5
    if 1 <= numbers.get("beta", 0.0) < math.inf:
        text += (
            f"; under NTK chat = sqrt(m) c, so that about {numbers['beta'] ** 2:.3g} times the "
            "width would do too"
        )
    if "needed_chat" in numbers and "width_for_activity" in numbers:
        widths = numbers["width_for_activity"], (numbers["needed_chat"] / magnitude) ** 2
        numbers["needed_width"] = max(widths)
        text += f"; under NTK chat = sqrt(m) c, which m >= {widths[1]:.3g} would meet"
    share = numbers.get("width_for_loss", numbers.get("needed_width", 0.0)) / width
    about_loss = "K3" not in numbers or "width_for_loss" in numbers  # Lemma 3 is about activity
    if about_loss and share > 1:
        numbers["width_helps"] = 0.0
        text = (
            f"{text}; no width meets the condition on the initial loss, which under NTK reads c "
            f"<= {magnitude / share**0.5:.3g} "
            f"(here {magnitude:.3g}) at every width: larger targets or smaller output weights help"
        )
    return Verdict(verdict.outcome, verdict.margin, text, numbers)


def interval_of(model, data) -> tuple[float, float]:
    """The interval that serves the certificate best at the mean variance of the pre-activations."""
    variance = float(jnp.mean(jnp.diagonal(model.embedding.gram(data.inputs))))
    return paper.suggested_interval(model.activation, variance)


STATEMENTS = (
    Statement(
        paper.Certificate,
        mapped(on_case(paper.Certificate)),
        "deterministic, from the start alone: neurons stay active and the loss falls",
        MAYBE,
        rate="certified_rate",
        bounds=("beta", "certified_eta"),
    ),
    Statement(
        paper.Lemma2,
        mapped(on_case(paper.Lemma2), partial(per_output, share=True)),
        "the initial loss is at most |y|^2",
        required="needed_width",
        bounds=("initial_loss",),
    ),
    Statement(
        paper.Lemma3,
        mapped(on_case(paper.Lemma3), per_output),
        "a share K3 of the neurons is active at the start",
        required="needed_width",
        bounds=("K3", "eta_tilde"),
    ),
    Statement(
        paper.Theorem1,
        mapped(on_case(paper.Theorem1, variant="sharp", exact=True)),
        "fixed embedding: linear convergence for large output weights",
        MAYBE,
        "needed_width",
        "guaranteed_rate",
        ("needed_chat", "chat"),
    ),
    Statement(
        paper.Corollary1,
        mapped(on_case(paper.Corollary1, variant="sharp", exact=True)),
        "plain shallow network: the same when rank X = n",
        MAYBE,
        "needed_width",
        "guaranteed_rate",
        ("rank",),
    ),
    Statement(
        paper.Theorem2,
        mapped(on_case(paper.Theorem2)),
        "random embedding: the same from its limiting Gram matrix",
        MAYBE,
        "needed_width",
        "guaranteed_rate",
        ("gram_distance", "limit_lambda_min"),
    ),
    Statement(
        paper.Theorem3,
        mapped(on_case(paper.Theorem3)),
        "one random layer (P-3L): the same from D alone",
        MAYBE,
        "needed_width",
        "guaranteed_rate",
        ("needed_features",),
    ),
    Statement(
        paper.Lemma1,
        mapped(on_case(paper.Lemma1, variant="sharp")),
        "a posteriori: active neurons against the fall of the loss",
        ALWAYS,
        bounds=("share_not_vacuous",),
    ),
)
