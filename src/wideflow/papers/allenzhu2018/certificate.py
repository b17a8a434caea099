"""allenzhu2018 on a user's data: what width and sample size its theorems ask for.

The theorems speak of their own learners on padded inputs (`wf.data.unit_padding` pads any dataset)
and of the best concept in a smooth class, which no dataset reveals. They are evaluated in the most
favourable case: one term, sin(z), error 0.1, the complexity constant 1 in place of the paper's
10^4. If the sizes fall short even there, they fall short for every richer concept.
"""

import math

from ...certify.registry import Case, Statement
from ...theorems.base import Outcome, Verdict
from . import theorems as paper
from .laws.power_series import smooth
from .limits.complexity import (
    log_three_layer_complexity,
    three_layer_prediction,
    two_layer_complexity,
    two_layer_prediction,
)

ERROR, CONSTANT = 0.1, 1.0


def _sizes(case: Case) -> tuple[int, int, int]:
    targets = case.data.targets
    width = getattr(case.model, "width", 1)
    return int(width), len(case.data), 1 if targets.ndim == 1 else targets.shape[1]


def _two_layers(case: Case) -> Verdict:
    width, samples, outputs = _sizes(case)
    error = min(ERROR, 0.9 / outputs)
    sup = two_layer_complexity([smooth("sin")], 1, error, CONSTANT)
    prediction = two_layer_prediction(
        terms=1, outputs=outputs, sup=sup, error=error, output_std=error
    )
    verdict = paper.Theorem41()(
        None,
        prediction,
        width=width,
        samples=samples,
        iterations=math.ceil(prediction.iterations),
        error=error,
        outputs=outputs,
    )
    text = (
        f"for one term sin(z) and error {error:g}: width {width} of {prediction.width:.3g}, "
        f"samples {samples} of {prediction.samples:.3g}"
    )
    return _of_sizes_alone(
        verdict, text, met=width >= prediction.width and samples >= prediction.samples
    )


def _three_layers(theorem, case: Case) -> Verdict:
    width, samples, outputs = _sizes(case)
    error = min(ERROR, 0.9 / outputs)
    sine = [smooth("sin")]
    prediction = three_layer_prediction(
        log_complexity=log_three_layer_complexity(sine, sine, 1, error, CONSTANT),
        outputs=outputs,
        outer_terms=1,
        inner_terms=1,
        error=error,
        width=width,
    )
    verdict = theorem()(None, prediction, width=width, samples=samples, error=error, terms=outputs)
    needed = verdict.numbers["log10_samples_needed"]
    numbers = {
        "width_needed": 10.0 ** min(prediction.log10_width, 300.0),
        "samples_needed": 10.0 ** min(needed, 300.0),
    }
    text = (
        f"for sin(sin(z)) and error {error:g}, exponent 1: width 10^{math.log10(width):.2g} of "
        f"10^{prediction.log10_width:.3g}, samples 10^{math.log10(samples):.2g} of 10^{needed:.3g}"
    )
    met = math.log10(width) >= prediction.log10_width and math.log10(samples) >= needed
    return _of_sizes_alone(
        Verdict(verdict.outcome, verdict.margin, verdict.message, {**verdict.numbers, **numbers}),
        text,
        met,
    )


def _of_sizes_alone(verdict: Verdict, text: str, met: bool) -> Verdict:
    """Without a test loss of the paper's learner there is no conclusion to judge: either the sizes
    fall short, or only they were checked.
    """
    numbers = {**verdict.numbers, "loss": math.nan}
    if met:
        return Verdict(
            Outcome.NOT_APPLICABLE,
            math.nan,
            text + "; the sizes suffice, but the concept behind the data is unknown",
            numbers,
        )
    return Verdict(
        Outcome.NOT_APPLICABLE,
        math.nan,
        text + "; too few even for the kindest concept",
        numbers,
    )


STATEMENTS = (
    Statement(
        paper.Theorem41,
        _two_layers,
        "two layers learn a smooth two-layer concept (own learner, padded data)",
        required="width_needed",
        bounds=("samples_needed", "iterations_needed"),
    ),
    Statement(
        paper.Theorem42,
        lambda case: _three_layers(paper.Theorem42, case),
        "three layers learn a composite concept, variant 1",
        required="width_needed",
        bounds=("samples_needed",),
    ),
    Statement(
        paper.Theorem43,
        lambda case: _three_layers(paper.Theorem43, case),
        "three layers learn a composite concept, variant 2",
        required="width_needed",
        bounds=("samples_needed",),
    ),
)
