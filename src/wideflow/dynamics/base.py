"""What a dynamics is: state in, state out; it knows nothing of loops or recording."""

import abc
from typing import ClassVar, Generic, TypeVar

import equinox as eqx
from jaxtyping import Array, Float, PyTree

from .._core.precision import DoubleModule
from .._core.types import Key, Scalar
from ..data.objective import AbstractObjective
from ..models.base import AbstractModel

Model = TypeVar("Model", bound=AbstractModel)
Objective = TypeVar("Objective", bound=AbstractObjective)


class AbstractDynamics(DoubleModule):
    """A dynamics in steps. Where it is `stateless`, `init` gives None and needs no program."""

    stateless: ClassVar[bool] = False

    @abc.abstractmethod
    def init(self, model: AbstractModel, objective: AbstractObjective, key: Key) -> PyTree:
        """The state at step 0."""

    @abc.abstractmethod
    def step(
        self, model: AbstractModel, state: PyTree, objective: AbstractObjective
    ) -> tuple[AbstractModel, PyTree]:
        """One step; pure and compilable."""

    @abc.abstractmethod
    def duration(self, state: PyTree, model: AbstractModel) -> Scalar:
        """The flow time that the next step takes."""


class AbstractFlow(DoubleModule):
    """A dynamics in continuous time."""

    @abc.abstractmethod
    def init(self, model: AbstractModel, objective: AbstractObjective, key: Key) -> PyTree:
        """The state at time 0; it must carry `steps` (taken), `failed` and `stationary` flags."""

    @abc.abstractmethod
    def advance(
        self,
        model: AbstractModel,
        state: PyTree,
        objective: AbstractObjective,
        start: Float[Array, ""],
        stop: Float[Array, ""],
        horizon: Float[Array, ""] | None = None,
    ) -> tuple[AbstractModel, PyTree]:
        """Moves from time `start` to time `stop` of a run that ends at `horizon` (default: at
        `stop`); pure and compilable.
        """


class Snapshot(eqx.Module, Generic[Model, Objective]):
    """What observables see: the model now and at the start, the objectives, and where we are.

    An observable may say which model and objective it reads:
    `snapshot: Snapshot[Shallow, DatasetObjective]`.

    Attributes:
        model: the model now, as the dynamics has moved it.
        start: the model at step 0.
        objective: what is descended: value, gradient and, for a dataset, inputs and targets.
        test: the same loss on test data, or None.
        step: how many steps were taken; for flows those of the solver.
        time: flow time; under descent the sum of the steps' durations.
        state: the state of the dynamics.
    """

    model: Model
    start: Model
    objective: Objective
    test: Objective | None
    step: Array
    time: Array
    state: PyTree
