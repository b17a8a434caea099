"""ren2023 speaks of the Bessel law, ReLU(1 - |x|) and its own three-layer learner; no dataset is
that population.
"""

from ...certify.registry import Statement
from ...certify.shallow_only import always
from . import theorems as paper

_WHY = (
    "it is about inputs from the heavy-tailed Bessel law with labels ReLU(1 - |x|) and the "
    "depth separator under clipped flow; "
    "`wf.populations.Radial` with `wf.DepthSeparator` is that setting"
)

STATEMENTS = (
    Statement(paper.TimeToLoss, always(_WHY), "three layers reach error eps in polynomial time"),
    Statement(paper.Lemma42, always(_WHY), "stage one ends in time"),
    Statement(paper.Lemma43, always(_WHY), "stage two converges"),
)
