"""A dataset: inputs, targets and a name, checked when it is built; and a loss on it, which dynamics
descend.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import equinox as eqx
import jax
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from .._core.arrays import index_list, real_values
from .._core.errors import check_count, check_kind, check_list, listing
from .._core.memory import check_fits
from .._core.precision import double
from .._core.trees import Parameters
from .._core.types import Scalar
from .objective import AbstractObjective, Loss

__all__ = ["Dataset", "DatasetObjective", "one_hot"]


class DatasetObjective(AbstractObjective):
    r"""$L(\theta) = \ell(f_\theta(X), y)$ for a fixed dataset.

    `features` are the inputs as the model's trained layers see them (`model.embed`), computed once.

    Attributes:
        inputs: $X$, shape (sample, feature).
        targets: $y$, shape (sample,) or (sample, output).
        features: the inputs after the model's embedding.
        loss: $\ell$, one of `wideflow.losses`.
        name: the dataset's name, for tables.
    """

    inputs: Float[Array, "sample feature"]
    targets: Float[Array, " sample *output"]
    features: Float[Array, "sample embedded"]
    loss: Loss
    name: str = eqx.field(static=True)

    def outputs(self, model) -> Float[Array, " sample *output"]:
        _check_model(model)
        return model.respond(self.features)

    def value(self, model) -> Scalar:
        return self.loss.value_and_gradient(self.outputs(model), self.targets)[0]

    def gradient(self, model) -> tuple[Scalar, Parameters]:
        _check_model(model)
        outputs, pull = model.pullback(self.features)
        value, cotangent = self.loss.value_and_gradient(outputs, self.targets)
        return value, pull(cotangent)

    def batch(self, indices) -> "DatasetObjective":
        """The same loss on the chosen samples."""
        if not isinstance(indices, Tracer):
            indices = np.atleast_1d(index_list("indices", indices, self.samples))
        rows = (self.inputs[indices], self.targets[indices], self.features[indices])
        return DatasetObjective(*rows, self.loss, self.name)

    @property
    def samples(self) -> int:
        return self.features.shape[0]

    def describe(self) -> str:
        return (
            f"{self.loss.formula} on {self.name} ({self.samples} sample{'s' * (self.samples != 1)})"
        )


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Dataset:
    """Inputs (sample, feature) with targets (sample,) or (sample, output), as NumPy arrays.

    Args:
        inputs, targets: arrays of numbers; class labels come one-hot (see `one_hot`).
        name: said in tables and figures.
        features: names of the columns, where known.
    """

    inputs: Float[np.ndarray, "sample feature"]
    targets: Float[np.ndarray, " sample *output"]
    name: str
    features: tuple[str, ...]

    def __init__(self, inputs, targets, name: str = "data", features: Sequence[str] = ()):
        x, y = _numbers("inputs", inputs), _numbers("targets", targets)
        if x.ndim != 2:
            raise ValueError(
                f"`inputs` must have shape (sample, feature), got {x.shape}. "
                "For one feature use `inputs[:, None]`."
            )
        if y.ndim not in (1, 2):
            raise ValueError(
                f"`targets` must have shape (sample,) or (sample, output), got {y.shape}."
            )
        if len(x) != len(y):
            raise ValueError(
                f"`inputs` and `targets` must have one row per sample, got {len(x)} and {len(y)}."
            )
        if x.shape[0] == 0 or x.shape[1] == 0:
            raise ValueError(f"`inputs` must not be empty, got shape {x.shape}.")
        check_list("features", features, "names, one a column")
        for column in features:
            check_kind("features", column, str, "names, as text")
        if len(features) and len(features) != x.shape[1]:
            raise ValueError(
                f"`features` must name every column of `inputs`, got {len(features)} names for "
                f"{x.shape[1]} columns."
            )
        twice = sorted({column for column in features if list(features).count(column) > 1})
        if twice:
            raise ValueError(
                f"`features` must name every column differently, got {listing(twice)} twice."
            )
        check_kind("name", name, str, "text")
        object.__setattr__(self, "inputs", x)
        object.__setattr__(self, "targets", y)
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "features", tuple(features))

    def __len__(self) -> int:
        return self.inputs.shape[0]

    def __repr__(self) -> str:
        return f"Dataset({self.name!r}, inputs {self.inputs.shape}, targets {self.targets.shape})"

    @property
    def dimension(self) -> int:
        return self.inputs.shape[1]

    @double
    def objective(self, loss, model) -> DatasetObjective:
        """What dynamics descend: `loss` of `model` on these samples."""
        if not hasattr(loss, "check_data"):
            raise ValueError(
                f"`loss` must be an instance of one of `wideflow.losses`, got {loss!r}."
            )
        _check_model(model)
        loss.check_data(self.targets)
        # copies, for NumPy's arrays may be written to; `device_put` compiles no program for their
        # shape
        x, y = (jax.device_put(np.array(values)) for values in (self.inputs, self.targets))
        return DatasetObjective(x, y, model.embed(x), loss, self.name)

    def take(self, rows, name: str | None = None) -> "Dataset":
        """The chosen samples, in the order given."""
        rows = np.atleast_1d(index_list("rows", rows, len(self)))
        name = self.name if name is None else name
        return Dataset(self.inputs[rows], self.targets[rows], name, self.features)

    def standardised(self, like: "Dataset | None" = None) -> "Dataset":
        """Columns and targets with mean 0 and (population) deviation 1 over `like`, default
        itself.
        """
        like = self._like(like)
        x = _standardise("inputs", self.inputs, like.inputs, like.features)
        y = _standardise("targets", self.targets, like.targets, ())
        return Dataset(x, y, self.name, self.features)

    def on_unit_ball(self, like: "Dataset | None" = None) -> "Dataset":
        """Inputs divided by the largest norm over `like`, so that theorems on $|x| \\le 1$
        apply.
        """
        norms = np.linalg.norm(self._like(like).inputs, axis=1)
        return Dataset(self.inputs / np.max(norms), self.targets, self.name, self.features)

    def _like(self, like) -> "Dataset":
        if like is None:
            return self
        check_kind("like", like, Dataset, "a `Dataset`")
        if like.dimension != self.dimension:
            raise ValueError(
                f"`like` must have {self.dimension} features like these data, got {like.dimension}."
            )
        return like

    def duplicates(self) -> int:
        """How many rows repeat the inputs of an earlier row."""
        return len(self) - len(np.unique(self.inputs, axis=0))


def one_hot(labels, classes: int | None = None) -> np.ndarray:
    """Labels 0..K-1 as rows of 0 and 1.

    Args:
        labels: whole numbers from 0, shape (sample,).
        classes: $K$; one more than the largest label if None.
    """
    labels = np.asarray(real_values("labels", labels, empty=True))
    if labels.ndim != 1 or not np.issubdtype(labels.dtype, np.integer):
        raise ValueError(
            f"`labels` must be a list of whole numbers, got {labels.dtype} {labels.shape}."
        )
    if labels.size == 0:
        raise ValueError("`labels` must not be empty, got none.")
    if classes is not None:
        check_count("classes", classes)
    count = int(labels.max()) + 1 if classes is None else classes
    if labels.min() < 0 or labels.max() >= count:
        raise ValueError(
            f"`labels` must lie in 0..{count - 1}, got {labels.min()}..{labels.max()}."
        )
    check_fits(labels=labels.size, classes=count)
    return (labels[:, None] == np.arange(count)).astype(np.float64)


def _numbers(name: str, value) -> np.ndarray:
    values = np.asarray(real_values(name, value, empty=True))
    return values if values.dtype in (np.float32, np.float64) else values.astype(np.float64)


def _check_model(model) -> None:
    """Models lie in a folder that is not read here: they are known by what they do."""
    if isinstance(model, type) or not hasattr(model, "pullback"):
        raise ValueError(f"`model` must be a wideflow model, built, got {model!r}.")


def _standardise(name, values, like, columns):
    mean, deviation = np.mean(like, axis=0), np.std(like, axis=0)
    constant = np.flatnonzero(np.atleast_1d(deviation == 0))
    if constant.size:
        which = ", ".join(str(columns[i]) if columns else str(i) for i in constant)
        raise ValueError(
            f"`{name}` has constant columns that cannot be standardised: {which}. Drop them."
        )
    return (values - mean) / deviation
