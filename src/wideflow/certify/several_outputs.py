r"""Networks with several outputs before theorems about one.

The diagonal block of output $k$ in the tangent Gram matrix,
$(\\Phi\\Phi^\\top)\\odot(S\\,\\mathrm{diag}(\\lambda A_k^2)\\,S^\\top)$, is the same for every
output whose weights are signs, and it depends on the hidden weights alone. Statements about it, or
about pre-activations, hold for every output as they stand. Statements about training do not: the
outputs share their hidden weights and move each other.
"""

from dataclasses import replace

import equinox as eqx

from ..data.dataset import Dataset
from ..models.shallow import Shallow
from ..theorems.base import Outcome, Verdict
from .registry import Case, Judge
from .shallow_only import not_applicable


def outputs_of(case: Case) -> int:
    """0 for a network without an axis of outputs."""
    return 0 if case.data.targets.ndim == 1 else case.data.targets.shape[1]


def single(model: Shallow, output: int) -> Shallow:
    """The network with one of its outputs alone."""
    return eqx.tree_at(lambda net: net.output, model, model.output[output])


def of_output(case: Case, output: int) -> Case:
    """The case with one output alone; the run's table speaks of all outputs and is left out."""
    data = case.data
    return replace(
        case,
        model=single(case.model, output),
        data=Dataset(data.inputs, data.targets[:, output], data.name, data.features),
        table=None,
        trained=None if case.trained is None else single(case.trained, output),
    )


def one_output(judge: Judge) -> Judge:
    """For statements about the training of one output."""

    def guarded(case: Case) -> Verdict:
        count = outputs_of(case)
        if not count:
            return judge(case)
        return not_applicable(
            f"it is proved for one output; the {count} outputs here share their hidden weights "
            "and move each other"
        )

    return guarded


def per_output(judge: Judge, *, share: bool = False) -> Judge:
    """For statements that hold for every output as they stand: the worst verdict of all.

    `share` divides the probability of failure among the outputs, for statements about each one's
    own outputs.
    """

    def guarded(case: Case) -> Verdict:
        count = outputs_of(case)
        if not count:
            return judge(case)
        chance = case.failure_probability / (count if share else 1)
        verdicts = [
            judge(replace(of_output(case, k), failure_probability=chance)) for k in range(count)
        ]
        worst = min(verdicts, key=_badness)
        text = f"the worst of {count} outputs, each judged alone: {worst.message}"
        return Verdict(worst.outcome, worst.margin, text, worst.numbers)

    return guarded


def _badness(verdict: Verdict) -> tuple[int, float]:
    order = (Outcome.VIOLATED, Outcome.NOT_APPLICABLE, Outcome.VACUOUS, Outcome.HOLDS)
    margin = verdict.margin
    return order.index(verdict.outcome), margin if margin == margin else float("-inf")
