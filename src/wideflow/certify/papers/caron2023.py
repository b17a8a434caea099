"""caron2023 on a user's network: the gap at the start, global convergence, and what the run itself certifies."""

from ...theorems import caron2023 as paper
from ..registry import ALWAYS, MAYBE, Statement
from .shallow_only import of_shallow

BOUNDS = ("bound_gap", "bound_movement", "bound_drift", "bound_trivial_drift")

STATEMENTS = (
    Statement(
        paper.Proposition31,
        of_shallow(lambda case: paper.Proposition31()(case.model.embedding.embed(case.data.inputs), case.model.activation)),
        "kappa_n, the smallest eigenvalue of the mean Gram matrix, is positive",
    ),
    Statement(
        paper.PropositionC1,
        of_shallow(lambda case: paper.PropositionC1()(case.model, case.data, delta=case.delta)),
        "the drawn Gram matrix has a gap of at least gamma kappa_n / 2", required="required", bounds=("bound", "gap"),
    ),
    Statement(
        paper.Theorem41,
        of_shallow(lambda case: paper.Theorem41()(case.model, case.data, case.table, delta=case.delta)),
        "ReLU: gradient flow converges at rate gamma kappa_n / 2", MAYBE, "required", "bound_rate", BOUNDS,
    ),
    Statement(
        paper.Theorem42,
        of_shallow(lambda case: paper.Theorem42()(case.model, case.data, case.table, delta=case.delta)),
        "smooth: gradient flow converges at rate gamma kappa_n / 2", MAYBE, "required", "bound_rate", BOUNDS,
    ),
    Statement(
        paper.LemmaD3,
        of_shallow(lambda case: paper.LemmaD3()(case.model, case.data, case.table, delta=case.delta)),
        "ReLU: the same from the residual of this start", MAYBE, "required", "bound_rate", ("bound_gap", "bound_drift"),
    ),
    Statement(
        paper.LemmaD5,
        of_shallow(lambda case: paper.LemmaD5()(case.model, case.data, case.table, delta=case.delta)),
        "smooth: the same from the residual of this start", MAYBE, "required", "bound_rate", ("bound_gap", "bound_drift"),
    ),
    Statement(
        paper.LemmaD1,
        of_shallow(lambda case: paper.LemmaD1()(case.model, case.data, case.table)),
        "a posteriori: the loss falls at twice the smallest gap seen on the run", ALWAYS, rate="zeta", bounds=("gap",),
    ),
    Statement(
        paper.LemmaD2,
        of_shallow(lambda case: paper.LemmaD2()(case.model, case.trained, case.data, delta=case.delta)),
        "a posteriori, ReLU: the kernel moved no more than the weights allow", ALWAYS, bounds=("bound_1", "bound_2"),
    ),
    Statement(
        paper.LemmaD4,
        of_shallow(lambda case: paper.LemmaD4()(case.model, case.trained, case.data)),
        "a posteriori, smooth: the kernel moved no more than the weights allow", ALWAYS, bounds=("bound_1", "bound_2"),
    ),
)  # fmt: skip
"""Statements of the paper that judge a network on a dataset; those about laws and draws (3.3, A.2, 5.1, 5.2) have nothing to promise here."""
