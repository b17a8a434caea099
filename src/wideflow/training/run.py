"""What `train` returns: a run that knows what it is."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import xarray as xr

from .._core.trees import describe


@dataclass(frozen=True)
class Run:
    """A training with all that went into it, so that a theorem can check its hypotheses before it
    judges.

    Attributes:
        model: the model at the end (a tuple of them when several were trained together).
        table: everything recorded; dimension `step`, coordinate `time`, attributes with
            conventions. For flows `step` numbers the records, and the coordinate `solver_steps`
            counts the steps that the solver had taken (the most of any member).
        status: why the run stopped (a tuple likewise).
        start: the model at step 0.
        state: the dynamics' state at the end.
        data, test: what it was trained and tested on, as they were given.
        dynamics: what moved it (the flow itself where a session turned descent into one).
        loss: what it descended.
        record: the observables that were recorded.
        original: model, state, test and loss as `train` put them in, so that another one in their
            place (`dataclasses.replace`) is noticed; start, data and dynamics are known to the
            table.
    """

    model: Any
    table: xr.Dataset
    status: Any
    start: Any
    state: Any
    data: Any = None
    test: Any = None
    dynamics: Any = None
    loss: Any = None
    record: tuple = ()
    original: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def several(self) -> bool:
        """Whether several models were trained together."""
        return isinstance(self.model, tuple)

    def member(self, index: int) -> "Run":
        """One of several models that were trained together, as a run of its own."""
        if not self.several:
            raise ValueError("`index` picks one of several models, but this run trained one.")
        count = len(self.model)
        if not -count <= index < count:
            raise ValueError(f"`index` must lie in [0, {count - 1}], got {index}.")
        axis = next(d for d in self.table.loss.dims if d != "step")
        pick = lambda part: part[index] if isinstance(part, list | tuple) else part
        own = {"status": self.status[index].value}
        for name in ("starts", "data"):  # one digest for all members, or one for each
            digests = str(self.table.attrs.get(name, "")).split(",")
            if len(digests) == count:
                own[name] = digests[index]
        if isinstance(self.dynamics, list | tuple):
            own["dynamics"] = describe(self.dynamics[index])
        return Run(
            self.model[index],
            self.table.isel({axis: index}, drop=True).assign_attrs(own),
            self.status[index],
            self.start[index],
            self.state[index],
            pick(self.data),
            pick(self.test),
            pick(self.dynamics),
            self.loss,
            self.record,
            {name: pick(part) for name, part in self.original.items()},
        )
