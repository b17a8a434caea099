r"""What both estimators do: standardise, start a network, train with early stopping, keep plain
arrays.

The rate needs no tuning. Adam moves every weight by about its rate $\eta$, so that one step changes
the outputs by at most $\eta\,|p\,\phi(x)|_1 \sum_j s_j |A_j|$ where $|\sigma'| \le 1$; $\eta$ makes
the mean of this bound `REACH`, and is at most `LARGEST` (weights start at deviation 1). For the
other solvers: on the half mean of squares over a batch of $b$ samples descent is stable below
$2b/\lambda_{\max}(\Theta_B)$; half of that, with the largest $\lambda_{\max}(\Theta_B)$ over some
batches and all outputs together, is the rate (for full-batch descent with $\Theta$ itself). If
training diverges it is halved and begun again.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from .._core.activations import ActivationLike, activation as as_activation
from .._core.errors import check_between, check_choice, check_count, check_flag, check_positive
from .._core.foreign import untyped
from .._core.precision import double
from .._core.scalings import AbstractScaling, parse_scaling
from ..data.dataset import Dataset
from ..dynamics.losses import CrossEntropy, HalfMeanSquares
from ..limits.infinite_width.architecture_kernels import Kernels
from ..models.embeddings import AbstractEmbedding, RandomFeatures
from ..models.shallow import Shallow
from .search import Stage, follow, search

SOLVERS = ("adam", "kernel", "sgd", "descent", "flow")
WIDTHS = (512, 4096)  # least and largest width chosen, while the weights outnumber the rows
WEIGHTS = 4  # trained weights a row
STEPS, EPOCHS, LONG = 65_536, 2_000, 4_000  # caps: Adam's steps and epochs; the others' epochs
REACH = 8.0  # chosen on folds of the UCI sets (docs/estimators.md says which)
LARGEST = 0.3  # chosen: a third of the deviation that weights start with
HALVINGS = 6  # of a rate at which training diverged (chosen)
BATCHES = 16  # how many are looked at for the rate
KEPT = 400  # training rows kept for the certificate


@dataclass(frozen=True)
class Network:
    """A fitted `Shallow` as plain arrays, which pickle; `model()` builds it again.

    `activation` is the estimator's own parameter (a name or an object), `embedding` an embedding
    that was given, `random` the weights of random features that were drawn, `width` the full width,
    whose scales a pruned network keeps. Training is in float32, what is built here in float64.
    """

    hidden: np.ndarray
    output: np.ndarray
    scales: np.ndarray
    scaling: AbstractScaling
    activation: ActivationLike
    embedding: AbstractEmbedding | None
    random: np.ndarray | None
    width: int

    @double
    def model(self) -> Shallow:
        embedding = (
            self.embedding if self.random is None else RandomFeatures(self.random, self.activation)
        )
        hidden, output = (
            np.zeros((self.width, self.hidden.shape[1])),
            np.zeros((*self.output.shape[:-1], self.width)),
        )
        blank = Shallow(hidden, output, self.scaling, self.activation, embedding)
        arrays = tuple(
            jnp.asarray(a, dtype=float) for a in (self.hidden.T, self.output, self.scales)
        )
        return eqx.tree_at(lambda m: (m.weights, m.output, m.scales), blank, arrays)


@double
def as_arrays(model: Shallow, settings: "Settings") -> Network:
    embedding, random = settings.embedding, None
    if isinstance(embedding, int):  # random features, drawn when the network was built
        assert isinstance(model.embedding, RandomFeatures)
        embedding, random = None, np.asarray(model.embedding.weights)
    return Network(
        np.asarray(model.hidden),
        np.asarray(model.output),
        np.asarray(model.scales),
        model.scaling,
        settings.activation,
        embedding,
        random,
        settings.width,
    )


@dataclass(frozen=True)
class Settings:
    """The parameters of an estimator, checked."""

    width: int
    scaling: AbstractScaling
    activation: ActivationLike
    embedding: int | AbstractEmbedding | None
    solver: str
    kernel: "Kernels | Callable | None"
    store: object
    epochs: int
    batch: int
    rate: float | None
    early_stopping: bool
    validation_fraction: float
    patience: int

    @classmethod
    def of(cls, estimator, rows: int, features: int) -> "Settings":
        """The parameters for a table of `rows` and `features` (bias column included), which fill in
        width and epochs where they are None.
        """
        for name in ("width", "epochs"):
            if getattr(estimator, name) is not None:
                check_count(name, getattr(estimator, name))
        check_count("batch", estimator.batch)
        check_count("patience", estimator.patience)
        check_choice("solver", estimator.solver, SOLVERS)
        check_flag("early_stopping", estimator.early_stopping)
        check_between("validation_fraction", estimator.validation_fraction, 0.0, 1.0, open=True)
        if estimator.rate is not None:
            check_positive("rate", estimator.rate)
        scaling = estimator.scaling
        if isinstance(scaling, str):
            scaling = parse_scaling(scaling)
        if not isinstance(scaling, AbstractScaling):
            raise ValueError(
                "`scaling` must be a text like 'zipf:0.5,0.7' or one of `wf.scalings`, got "
                f"{scaling!r}."
            )
        embedding = estimator.embedding
        if isinstance(embedding, int | np.integer) and embedding > 0:
            embedding = int(embedding)
        elif not (embedding is None or isinstance(embedding, AbstractEmbedding)):
            raise ValueError(
                "`embedding` must be None, a number of random features or one of "
                f"`wf.embeddings`, got {embedding!r}."
            )
        _check_kernel(estimator.kernel, estimator.solver, embedding)
        if estimator.store is not None and not isinstance(estimator.kernel, Kernels):
            raise ValueError(
                "`store` needs kernel=`wf.limits.kernels(...)`, by which a kernel on disk is "
                f"found again, got kernel={estimator.kernel!r}."
            )
        as_activation(estimator.activation)
        if isinstance(embedding, AbstractEmbedding):
            embedded = embedding.features(features)
        else:
            embedded = embedding or features
        width = estimator.width or width_for(rows, embedded)
        epochs = estimator.epochs or epochs_for(estimator.solver, rows, int(estimator.batch))
        return cls(
            int(width),
            scaling,
            estimator.activation,
            embedding,
            estimator.solver,
            estimator.kernel,
            estimator.store,
            int(epochs),
            int(estimator.batch),
            estimator.rate,
            bool(estimator.early_stopping),
            float(estimator.validation_fraction),
            int(estimator.patience),
        )


def _check_kernel(kernel, solver: str, embedding) -> None:
    if kernel is None:
        return
    if not (isinstance(kernel, Kernels) or callable(kernel)):
        raise ValueError(
            "`kernel` must be `wf.limits.kernels(...)`, a function of two sets of rows, or "
            f"None, got {kernel!r}."
        )
    if solver != "kernel":
        raise ValueError(f"`kernel` needs solver='kernel', got solver={solver!r}.")
    if embedding is not None:
        raise ValueError(
            f"`embedding` must be None where a `kernel` is given, got {embedding!r}. Put frozen "
            "layers into its architecture."
        )


def width_for(rows: int, features: int) -> int:
    r"""Nodes with `WEIGHTS` trained weights a row, within `WIDTHS`; beyond them still as many
    weights as rows.

    Fewer weights than rows cannot fit a table whatever the training: the error is then that of the
    width.
    """
    least, largest = WIDTHS
    width = min(max(-(-WEIGHTS * rows // features), least), largest)
    return max(width, -(-rows // features))


def epochs_for(solver: str, rows: int, batch: int) -> int:
    """The cap on epochs where none is given: so many steps of Adam, but no more than `EPOCHS`
    passes.
    """
    if solver != "adam":
        return LONG
    return min(EPOCHS, -(-STEPS // max(1, rows // batch)))


@dataclass
class Fitted:
    """What came out of training."""

    start: Network
    end: Network
    epochs: int
    rate: float
    cut_short: bool = False
    train_curve: list[float] = field(default_factory=list)
    validation_curve: list[float] = field(default_factory=list)


def standardise(inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and deviation of every column; columns that do not vary get deviation 1, so that they
    become 0.
    """
    mean, deviation = inputs.mean(axis=0), inputs.std(axis=0)
    tiny = deviation <= 1e-12 * np.maximum(np.abs(mean), 1e-300)
    return mean, np.where(tiny, 1.0, deviation)


@double
def fit(
    settings: Settings, inputs: np.ndarray, targets: np.ndarray, loss, strata, seed: int
) -> Fitted:
    """Trains on standardised `inputs` (with bias) and `targets` (sample, output); `strata` are
    labels to split by, or None.
    """
    training_rows, validation_rows = _split(
        settings, len(inputs), strata, np.random.default_rng(seed)
    )

    def part(rows, name: str) -> Dataset:
        return Dataset(inputs[rows].astype(np.float32), targets[rows].astype(np.float32), name)

    some, whole = part(training_rows, "training"), part(np.arange(len(inputs)), "all rows")
    rest = part(validation_rows, "validation") if len(validation_rows) else None
    start = _start(settings, inputs.shape[1], targets.shape[1], seed)
    rate = settings.rate or _rate(settings, start, some.inputs)
    for _ in range(HALVINGS):
        if rest is None:
            last = result = follow(
                settings, start, some, loss, (Stage(rate, settings.epochs),), seed
            )
        else:
            result = search(settings, start, some, rest, loss, rate, seed)
            last = result and follow(settings, start, whole, loss, result.plan, seed)
        if result is not None and last is not None:
            epochs = sum(stage.epochs for stage in result.plan)
            return Fitted(
                as_arrays(start, settings),
                as_arrays(last.net, settings),
                epochs,
                rate,
                result.cut_short,
                result.losses,
                result.validation,
            )
        rate /= 2
    raise ValueError(
        f"training diverged even at rate {rate * 2:.3g}; give a smaller `rate`, or another "
        "`scaling`."
    )


def _split(settings: Settings, samples: int, strata, random) -> tuple[np.ndarray, np.ndarray]:
    """Rows to train on and rows held out; of each class at least one stays in training."""
    order = random.permutation(samples)
    count = int(settings.validation_fraction * samples)
    if settings.early_stopping and count >= 2 and samples - count < 2:
        raise ValueError(
            f"`validation_fraction` = {settings.validation_fraction} leaves {samples - count} of "
            f"{samples} rows to train on. Take less."
        )
    if not settings.early_stopping or count < 2 or samples - count < 2:
        return order, order[:0]
    if strata is None:
        return order[count:], order[:count]
    validation = np.zeros(samples, bool)
    for label in np.unique(strata):
        rows = order[strata[order] == label]
        validation[rows[: int(settings.validation_fraction * len(rows))]] = True
    if validation.sum() < 2:
        return order, order[:0]
    return order[~validation[order]], order[validation[order]]


@double
def embedding_of(settings: Settings, features: int, seed: int) -> AbstractEmbedding | None:
    """The embedding itself, or the random features that a number asks for."""
    embedding = settings.embedding
    if isinstance(embedding, int):
        return RandomFeatures.init(jax.random.key(seed), features, embedding, settings.activation)
    return embedding


@double
def _start(settings: Settings, features: int, outputs: int, seed: int) -> Shallow:
    embedding = embedding_of(settings, features, seed)
    net = Shallow.init(
        seed,
        features=features,
        width=settings.width,
        scaling=settings.scaling,
        activation=settings.activation,
        outputs=outputs,
        embedding=embedding,
    )
    return jax.tree.map(
        lambda leaf: leaf.astype(jnp.float32) if eqx.is_inexact_array(leaf) else leaf, net
    )


def _rate(settings: Settings, net: Shallow, inputs: np.ndarray) -> float:
    return (adam_rate if settings.solver == "adam" else safe_rate)(settings, net, inputs)


@double
def adam_rate(settings: Settings, net: Shallow, inputs: np.ndarray) -> float:
    """See the head of this file."""
    sizes = np.abs(np.asarray(net.embed(jnp.asarray(inputs)), dtype=float)).sum(axis=1)
    mixed = np.abs(np.asarray(net.scales * jnp.atleast_2d(net.output), dtype=float)).sum(axis=1)
    return float(min(REACH / (sizes.mean() * mixed.mean()), LARGEST))


@eqx.filter_jit
def _slopes(activation, features, weights):
    return activation.slope(features @ weights)


@double
def safe_rate(settings: Settings, net: Shallow, inputs: np.ndarray) -> float:
    """See the head of this file."""
    rows = inputs[: BATCHES * settings.batch]
    features = np.asarray(net.embed(jnp.asarray(rows)), dtype=float)
    slopes = np.asarray(_slopes(net.activation, features, net.weights), dtype=float)
    mixed = np.asarray(net.scales * jnp.atleast_2d(net.output), dtype=float)
    size = min(settings.batch, len(rows)) if settings.solver == "sgd" else len(rows)
    starts = range(0, len(rows) - size + 1, size)
    tops = [_top(features[i : i + size], slopes[i : i + size], mixed) for i in starts]
    return size / max(net.rate_factor * max(tops), np.finfo(float).tiny)


def _top(features: np.ndarray, slopes: np.ndarray, mixed: np.ndarray) -> float:
    r"""$\lambda_{\max}(JJ^\top)$ over samples and outputs together, matrix-free."""
    shape = (len(features), len(mixed))

    def product(v):
        pulled = features.T @ (slopes * (v.reshape(shape) @ mixed))
        return ((slopes * (features @ pulled)) @ mixed.T).reshape(-1)

    size = shape[0] * shape[1]
    if size == 1:
        return float(product(np.ones(1))[0])
    start = np.random.default_rng(0).normal(size=size)
    operator = untyped(LinearOperator)((size, size), product, dtype=float)
    largest = untyped(eigsh)(operator, k=1, v0=start, tol=1e-6, return_eigenvectors=False)
    return float(largest[0])


REGRESSION, CLASSIFICATION = HalfMeanSquares(), CrossEntropy()
