"""li2020 speaks of Gaussian inputs, an absolute-value teacher and its own learner; no dataset is
that population.
"""

from ...certify.registry import Statement
from ...certify.shallow_only import always
from . import theorems as paper

_WHY = (
    "it is about Gaussian inputs with labels sum a_i |<v_i, x>| and the norm-coupled learner "
    "under truncated descent; "
    "`wf.populations.GaussianAbsTeacher` with `wf.Homogeneous` is that setting"
)

STATEMENTS = (
    Statement(paper.FiniteConvergence, always(_WHY), "truncated descent beats every kernel"),
    Statement(paper.InfiniteWidthConvergence, always(_WHY), "the same at infinite width"),
    Statement(
        paper.KernelLowerBound,
        always(
            "it bounds the mean loss of fixed features over a family of targets, not on one dataset"
        ),
        "kernels stop at a loss of order 1/d",
    ),
)
