r"""What both estimators do: standardise, start a network, train with early stopping, keep plain arrays.

The rate needs no tuning. On the half mean of squares over a batch of $b$ samples descent is stable below $2b/\lambda_{\max}(\Theta_B)$; half of that, with the
largest $\lambda_{\max}(\Theta_B)$ over some batches, is the rate (for full-batch descent with $\Theta$ itself). If training diverges it is halved and begun again.
"""

import math
from dataclasses import dataclass, field

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._core.activations import activation as as_activation
from .._core.errors import check_between, check_choice, check_count, check_positive
from .._core.precision import double
from .._core.scalings import AbstractScaling, parse_scaling
from .._core.status import Status
from ..data.dataset import Dataset
from ..dynamics.descent import GradientDescent
from ..dynamics.flow import GradientFlow
from ..dynamics.losses import CrossEntropy, HalfMeanSquares
from ..dynamics.sgd import SGD
from ..dynamics.train import train
from ..models.embeddings import AbstractEmbedding, RandomFeatures
from ..models.shallow import Shallow

SOLVERS = ("sgd", "descent", "flow")
CHECKS = 50  # how often the validation loss is looked at, at most
HALVINGS = 6
BATCHES = 16  # how many are looked at for the rate
KEPT = 400  # training rows kept for the certificate


@dataclass(frozen=True)
class Network:
    """A fitted `Shallow` as plain arrays, which pickle; `model()` builds it again.

    `activation` is the estimator's own parameter (a name or an object), `embedding` an embedding that was given, `random` the weights of
    random features that were drawn, `width` the full width, whose scales a pruned network keeps. Training is in float32, what is built here in float64.
    """

    hidden: np.ndarray
    output: np.ndarray
    scales: np.ndarray
    scaling: AbstractScaling
    activation: object
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
    drawn = isinstance(settings.embedding, int)
    return Network(
        np.asarray(model.hidden), np.asarray(model.output), np.asarray(model.scales), model.scaling, settings.activation,
        None if drawn else settings.embedding, np.asarray(model.embedding.weights) if drawn else None, settings.width,
    )  # fmt: skip


@dataclass(frozen=True)
class Settings:
    """The parameters of an estimator, checked."""

    width: int
    scaling: AbstractScaling
    activation: object
    embedding: int | AbstractEmbedding | None
    solver: str
    epochs: int
    batch: int
    rate: float | None
    early_stopping: bool
    validation_fraction: float
    patience: int

    @classmethod
    def of(cls, estimator) -> "Settings":
        check_count("width", estimator.width)
        check_count("epochs", estimator.epochs)
        check_count("batch", estimator.batch)
        check_count("patience", estimator.patience)
        check_choice("solver", estimator.solver, SOLVERS)
        check_between("validation_fraction", estimator.validation_fraction, 0.0, 1.0, open=True)
        if estimator.rate is not None:
            check_positive("rate", estimator.rate)
        scaling = estimator.scaling
        if isinstance(scaling, str):
            scaling = parse_scaling(scaling)
        if not isinstance(scaling, AbstractScaling):
            raise ValueError(
                f"`scaling` must be a text like 'zipf:0.5,0.7' or one of `wf.scalings`, got {scaling!r}."
            )
        embedding = estimator.embedding
        if isinstance(embedding, int | np.integer) and embedding > 0:
            embedding = int(embedding)
        elif not (embedding is None or isinstance(embedding, AbstractEmbedding)):
            raise ValueError(
                f"`embedding` must be None, a number of random features or one of `wf.embeddings`, got {embedding!r}."
            )
        as_activation(estimator.activation)
        return cls(
            int(estimator.width), scaling, estimator.activation, embedding, estimator.solver, int(estimator.epochs), int(estimator.batch),
            estimator.rate, bool(estimator.early_stopping), float(estimator.validation_fraction), int(estimator.patience),
        )  # fmt: skip


@dataclass
class Fitted:
    """What came out of training."""

    start: Network
    end: Network
    epochs: int
    rate: float
    train_curve: list[float] = field(default_factory=list)
    validation_curve: list[float] = field(default_factory=list)


def standardise(inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and deviation of every column; columns that do not vary get deviation 1, so that they become 0."""
    mean, deviation = inputs.mean(axis=0), inputs.std(axis=0)
    tiny = deviation <= 1e-12 * np.maximum(np.abs(mean), 1e-300)
    return mean, np.where(tiny, 1.0, deviation)


@double
def fit(
    settings: Settings, inputs: np.ndarray, targets: np.ndarray, loss, strata, seed: int
) -> Fitted:
    """Trains on standardised `inputs` (with bias) and `targets` (sample, output); `strata` are labels to split by, or None."""
    random = np.random.default_rng(seed)
    kept, held = _split(settings, len(inputs), strata, random)
    data = Dataset(inputs[kept].astype(np.float32), targets[kept].astype(np.float32), "training")
    test = (
        Dataset(inputs[held].astype(np.float32), targets[held].astype(np.float32), "validation")
        if len(held)
        else None
    )
    start = _start(settings, inputs.shape[1], targets.shape[1], seed)
    rate = settings.rate or safe_rate(settings, start, data.inputs)
    for _ in range(HALVINGS):
        found = _descend(settings, start, data, test, loss, rate, seed)
        if found is not None:
            end, epochs, curves = found
            return Fitted(
                as_arrays(start, settings), as_arrays(end, settings), epochs, rate, *curves
            )
        rate /= 2
    raise ValueError(
        f"training diverged even at rate {rate * 2:.3g}; give a smaller `rate`, or another `scaling`."
    )


def _split(settings: Settings, samples: int, strata, random) -> tuple[np.ndarray, np.ndarray]:
    """Rows to train on and rows held out; of each class at least one stays in training."""
    order = random.permutation(samples)
    count = int(settings.validation_fraction * samples)
    if not settings.early_stopping or count < 2 or samples - count < 2:
        return order, order[:0]
    if strata is None:
        return order[count:], order[:count]
    held = np.zeros(samples, bool)
    for label in np.unique(strata):
        rows = order[strata[order] == label]
        held[rows[: int(settings.validation_fraction * len(rows))]] = True
    return (order[~held[order]], order[held[order]]) if held.sum() >= 2 else (order, order[:0])


@double
def _start(settings: Settings, features: int, outputs: int, seed: int) -> Shallow:
    embedding = settings.embedding
    if isinstance(embedding, int):
        embedding = RandomFeatures.init(
            jax.random.key(seed), features, embedding, settings.activation
        )
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


@double
def safe_rate(settings: Settings, net: Shallow, inputs: np.ndarray) -> float:
    """See the head of this file. The kernel is that of the first output; the others have the same law."""
    rows = inputs[: BATCHES * settings.batch]
    features = np.asarray(net.embed(rows), dtype=float)
    slopes = np.asarray(net.activation.slope(jnp.asarray(features) @ net.weights), dtype=float)
    mixed = (
        net.rate_factor * np.asarray(net.scales * jnp.atleast_2d(net.output)[0], dtype=float) ** 2
    )
    gram = (features @ features.T) * ((slopes * mixed) @ slopes.T)
    size = min(settings.batch, len(rows)) if settings.solver == "sgd" else len(rows)
    blocks = [gram[i : i + size, i : i + size] for i in range(0, len(rows) - size + 1, size)]
    return size / max(float(np.linalg.eigvalsh(block)[-1]) for block in blocks)


def _dynamics(settings: Settings, samples: int, rate: float):
    """The dynamics, how much of it makes one epoch, and how a stretch is asked for."""
    if settings.solver == "sgd":
        batch = min(settings.batch, samples)
        return SGD(rate, batch), -(-samples // batch)
    if settings.solver == "descent":
        return GradientDescent(rate), 1
    return GradientFlow(1e-4), 1


def _descend(
    settings: Settings,
    net: Shallow,
    data: Dataset,
    test: Dataset | None,
    loss,
    rate: float,
    seed: int,
):
    """The best network by validation loss (the last without validation), or None where it diverged."""
    dynamics, steps = _dynamics(settings, len(data), rate)
    stretch = max(1, settings.epochs // CHECKS) if test is not None else settings.epochs
    best, best_loss, since, done = net, math.inf, 0, 0
    curves: tuple[list[float], list[float]] = ([], [])
    while done < settings.epochs:
        count = min(stretch, settings.epochs - done)
        how = {"time": count * rate} if settings.solver == "flow" else {"steps": count * steps}
        every = count * (rate if settings.solver == "flow" else steps)
        run = train(net, data, dynamics, **how, loss=loss, every=every, key=seed + done)
        if run.status in (Status.DIVERGED, Status.STALLED):
            return None
        net, done = run.model, done + count
        curves[0].append(float(run.table["loss"].values[-1]))
        if test is None:
            best = net
            continue
        value = float(loss(jnp.asarray(net.outputs(test.inputs)), jnp.asarray(test.targets)))
        curves[1].append(value)
        if not math.isfinite(value):
            return None
        if value < best_loss * (1 - 1e-4):
            best, best_loss, since = net, value, 0
        else:
            since += count
            if since >= settings.patience:
                break
    return best, done, curves


REGRESSION, CLASSIFICATION = HalfMeanSquares(), CrossEntropy()
