"""Loss, risk (mean of squares) and accuracy, on training and on test data."""

import equinox as eqx
import jax.numpy as jnp

from .._core.errors import check_flag
from ..data.dataset import DatasetObjective
from .base import AbstractObservable, SampleSnapshot, test_objective

__all__ = ["Accuracy", "Loss", "Outputs", "Risk", "TestLoss", "TestRisk"]


class Loss(AbstractObservable):
    """The descended objective itself."""

    name: str = eqx.field(static=True, default="loss")
    label: str = eqx.field(static=True, default="loss")
    axes: tuple[str, ...] = eqx.field(static=True, default=())

    def __call__(self, snapshot):
        return snapshot.objective.value(snapshot.model)


class Risk(AbstractObservable):
    r"""$\mathrm{mean}\,(f - y)^2$ on the training data."""

    name: str = eqx.field(static=True, default="risk")
    label: str = eqx.field(static=True, default="training risk (mean of squares)")
    axes: tuple[str, ...] = eqx.field(static=True, default=())

    def __call__(self, snapshot):
        return mean_squares(training_samples(snapshot), snapshot.model)


class TestRisk(AbstractObservable):
    r"""$\mathrm{mean}\,(f - y)^2$ on the test data."""

    __test__ = False  # not a test case, whatever its name says

    name: str = eqx.field(static=True, default="test_risk")
    label: str = eqx.field(static=True, default="test risk (mean of squares)")
    axes: tuple[str, ...] = eqx.field(static=True, default=())

    def __call__(self, snapshot):
        return mean_squares(test_objective(snapshot), snapshot.model)


class TestLoss(AbstractObservable):
    """The loss on the test data."""

    __test__ = False

    name: str = eqx.field(static=True, default="test_loss")
    label: str = eqx.field(static=True, default="test loss")
    axes: tuple[str, ...] = eqx.field(static=True, default=())

    def __call__(self, snapshot):
        return test_objective(snapshot).value(snapshot.model)


class Accuracy(AbstractObservable):
    """Share of samples whose largest output is their class; `test` says on which data.

    Args:
        test: whether to take the test data.
    """

    test: bool = eqx.field(static=True)
    name: str = eqx.field(static=True)
    label: str = eqx.field(static=True)
    axes: tuple[str, ...] = eqx.field(static=True, default=())

    def __init__(self, test: bool = True):
        check_flag("test", test)
        self.test = test
        self.name = "test_accuracy" if test else "accuracy"
        self.label = "test accuracy" if test else "training accuracy"

    def __call__(self, snapshot: SampleSnapshot):
        objective = test_objective(snapshot) if self.test else training_samples(snapshot)
        outputs = objective.outputs(snapshot.model)
        if outputs.ndim == 1:  # one output: the sign tells the class
            right = (outputs > 0) == (objective.targets > 0)
        else:
            right = jnp.argmax(outputs, axis=1) == jnp.argmax(objective.targets, axis=1)
        return jnp.mean(right.astype(jnp.float64))


class Outputs(AbstractObservable):
    """The outputs at the training points (or at the test points).

    Args:
        test: whether to take the test points.
        several: whether the model has several outputs, which adds the axis `output`.
    """

    test: bool = eqx.field(static=True)
    name: str = eqx.field(static=True)
    label: str = eqx.field(static=True)
    axes: tuple[str, ...] = eqx.field(static=True)

    def __init__(self, test: bool = False, several: bool = False):
        check_flag("test", test)
        check_flag("several", several)
        self.test = test
        self.name = "test_outputs" if test else "outputs"
        self.label = self.name.replace("_", " ")
        self.axes = (("test_sample" if test else "sample"), *(("output",) if several else ()))

    def __call__(self, snapshot: SampleSnapshot):
        objective = test_objective(snapshot) if self.test else training_samples(snapshot)
        return objective.outputs(snapshot.model)


def training_samples(snapshot) -> DatasetObjective:
    """The training objective, where it is one on samples."""
    if not hasattr(snapshot.objective, "outputs"):
        raise ValueError(
            "`record` holds an observable that looks at samples, but the run is on an exact "
            "population; "
            "use `Loss()` or train on a `Dataset`."
        )
    return snapshot.objective


def mean_squares(objective, model):
    residual = (objective.outputs(model) - objective.targets).astype(jnp.float64)
    return jnp.mean(residual**2)
