"""caron2023 on a user's network: the gap at the start, global convergence, and what the run itself
certifies.
"""

import math

import numpy as np

from ...certify.registry import ALWAYS, MAYBE, Case, Statement, on_case
from ...certify.several_outputs import one_output, outputs_of, per_output
from ...certify.shallow_only import of_shallow
from ...theorems.base import Outcome, Verdict
from ...theorems.recorded_run import run_fault, unjudged
from . import theorems as paper
from .theorems.problem import conclude

BOUNDS = ("bound_gap", "bound_movement", "bound_drift", "bound_trivial_drift")


def _decay(case: Case) -> Verdict:
    r"""Lemma D.1. For several outputs its first half carries over word for word with the gap of the
    Gram matrix of all outputs: $\dot L = -r^\top\widehat\Theta r\le-2\lambda_{\min}L$; each
    $|\dot w_j|$ is at most $\sqrt{K\lambda_j/d}\,\lVert X\rVert_2|r|$, so that the movement gains a
    factor $\sqrt K$.
    """
    count = outputs_of(case)
    if not count:
        return on_case(paper.LemmaD1)(case)
    fault = run_fault(case.table, ("loss", "kernel_gap", "weight_movement"))
    if fault:
        return unjudged(fault, {})
    times, losses, gaps = (case.table[n].values for n in ("time", "loss", "kernel_gap"))
    gap = float(gaps.min())
    if not gap > 0:
        return Verdict(
            Outcome.NOT_APPLICABLE,
            math.nan,
            f"the smallest eigenvalue over all {count} outputs reached {gap:.3g}",
            {"gap": gap},
        )
    resolved = (losses > 1e-24) & (times > 0)
    slope = max(float(case.model.activation.lipschitz), 1.0)
    scales = np.asarray(case.model.scales, dtype=float)
    features = np.asarray(
        case.model.embed(case.data.inputs), dtype=float
    )  # times the factor of the pre-activations
    size = float(np.max(np.abs(case.model.output))) * float(np.linalg.norm(features, 2))
    reach = slope * size * math.sqrt(count) * scales
    reach = case.model.rate_factor * reach * math.sqrt(2 * losses[0]) / gap
    moved = case.table["weight_movement"].values.max(axis=0)
    ratios = {
        "loss": float(
            np.max(losses[resolved] * np.exp(2 * gap * times[resolved]), initial=0.0) / losses[0]
        ),
        # a node of weight 0 does not move
        "sharp_movement": float(np.max(moved / np.where(moved > 0, reach, 1.0))),
    }
    return conclude(
        ratios,
        {"gap": gap, "zeta": 2 * gap},
        f"all {count} outputs together: decay at rate {2 * gap:.3g} up to time {times[-1]:.3g}",
    )


STATEMENTS = (
    Statement(
        paper.Proposition31,
        of_shallow(
            lambda case: paper.Proposition31()(
                case.model.embedding.embed(case.data.inputs),
                case.model.activation,
                mean=case.embedded_mean,
            )
        ),
        "kappa_n, the smallest eigenvalue of the mean Gram matrix, is positive",
    ),
    Statement(
        paper.PropositionC1,
        of_shallow(per_output(on_case(paper.PropositionC1))),
        "the drawn Gram matrix has a gap of at least gamma kappa_n / 2",
        required="required",
        bounds=("bound", "gap"),
    ),
    Statement(
        paper.Theorem41,
        of_shallow(one_output(on_case(paper.Theorem41))),
        "ReLU: gradient flow converges at rate gamma kappa_n / 2",
        MAYBE,
        "required",
        "bound_rate",
        BOUNDS,
    ),
    Statement(
        paper.Theorem42,
        of_shallow(one_output(on_case(paper.Theorem42))),
        "smooth: gradient flow converges at rate gamma kappa_n / 2",
        MAYBE,
        "required",
        "bound_rate",
        BOUNDS,
    ),
    Statement(
        paper.LemmaD3,
        of_shallow(one_output(on_case(paper.LemmaD3))),
        "ReLU: the same from the residual of this start",
        MAYBE,
        "required",
        "bound_rate",
        ("bound_gap", "bound_drift"),
    ),
    Statement(
        paper.LemmaD5,
        of_shallow(one_output(on_case(paper.LemmaD5))),
        "smooth: the same from the residual of this start",
        MAYBE,
        "required",
        "bound_rate",
        ("bound_gap", "bound_drift"),
    ),
    Statement(
        paper.LemmaD1,
        of_shallow(_decay),
        "a posteriori: the loss falls at twice the smallest gap seen on the run",
        ALWAYS,
        rate="zeta",
        bounds=("gap",),
    ),
    Statement(
        paper.LemmaD2,
        of_shallow(per_output(on_case(paper.LemmaD2))),
        "a posteriori, ReLU: the kernel moved no more than the weights allow",
        ALWAYS,
        bounds=("bound_1", "bound_2"),
    ),
    Statement(
        paper.LemmaD4,
        of_shallow(per_output(on_case(paper.LemmaD4))),
        "a posteriori, smooth: the kernel moved no more than the weights allow",
        ALWAYS,
        bounds=("bound_1", "bound_2"),
    ),
)
"""Statements of the paper that judge a network on a dataset; those about laws and draws (3.3, A.2,
5.1, 5.2) have nothing to promise here.
"""
