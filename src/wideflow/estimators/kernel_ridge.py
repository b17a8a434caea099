r"""The network at infinite width: ridge regression with its mean tangent kernel, or with any kernel
that is given.

As the width grows, a network trained to time infinity from a function of zero predicts
$k(x)^\top (\Theta^* + \rho I)^{-1} y$ with the mean tangent kernel $\Theta^*$ (`limits.mean_ntk`)
and $\rho \to 0$; a positive ridge $\rho$ acts like early stopping. Ridge and size of the bias
column are those of the least leave-one-out error, which has a closed form: with
$S = \Theta^*(\Theta^* + \rho I)^{-1}$ the prediction of row $i$ by all others misses by
$(y - S y)_i / (1 - S_{ii})$. A given kernel acts on the standardised columns without the bias
column, as its architecture has biases of its own.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from .._core.foreign import untyped
from .._core.memory import budget
from .._core.precision import double
from ..limits.infinite_width.architecture_kernels import Kernels
from ..limits.infinite_width.kernel_store import stored_kernel
from ..limits.infinite_width.regression import regress
from ..limits.kernels import mean_ntk
from ..models.embeddings import AbstractEmbedding

RIDGES = np.logspace(-10, 1, 23)  # over the largest eigenvalue
BIASES = (0.3, 1.0, 3.0)  # in units of the standardised columns (chosen)
CHOSEN_ON = 2000  # rows at most, for ridge and bias
MATRICES = 2  # of n x n numbers are held at once: the kernel and its factor


@dataclass(frozen=True)
class KernelMachine:
    r"""$f(x) = c \sum_i \Theta^*(x, x_i)\, \alpha_i$, as plain arrays, which pickle.

    `inputs` are the training rows $x_i$ as the kernel takes them, `weights` the $\alpha_i$ (sample,
    output), `scale` is $c$ (1 for regression), `kernel` the given one in the place of $\Theta^*$.
    """

    inputs: np.ndarray
    weights: np.ndarray
    activation: object
    embedding: AbstractEmbedding | None
    bias: float
    ridge: float
    loo_error: float
    scale: float = 1.0
    kernel: "Kernels | Callable | None" = None

    def outputs(self, inputs: np.ndarray) -> np.ndarray:
        """(sample, output), a block of rows at a time within the memory budget."""
        size = max(1, budget() // (8 * 8 * len(self.inputs)))  # the kernel and its intermediates
        blocks = [inputs[i : i + size] for i in range(0, len(inputs), size)]
        parts = []
        for block in blocks:
            left = _features(self.kernel, self.embedding, block, self.bias)
            parts.append(_matrix(self.kernel, self.activation, left, self.inputs) @ self.weights)
        return self.scale * np.concatenate(parts)


@double
def fit_kernel(settings, inputs, targets, embedding, labels, seed: int) -> KernelMachine:
    """Ridge regression of `targets` (sample, output); with `labels` the outputs are logits of the
    best leave-one-out likelihood.
    """
    rows = len(inputs)
    if settings.store is None and MATRICES * 8 * rows**2 > budget():
        most = int((budget() / (8 * MATRICES)) ** 0.5)
        raise ValueError(
            f"`solver`='kernel' holds matrices of {rows} x {rows} numbers, more than the memory "
            f"budget; give at most {most} rows, a "
            "larger WIDEFLOW_MEMORY, a folder as `store`, or solver='adam'."
        )
    kernel, activation = settings.kernel, settings.activation
    some = np.random.default_rng(seed).permutation(rows)[:CHOSEN_ON]
    trials = []
    for bias in BIASES if kernel is None else (1.0,):
        features = _features(kernel, embedding, inputs[some], bias)
        gram = _matrix(kernel, activation, features)
        trials.append((*_leave_one_out(gram, targets[some]), bias))
    error, ridge, predicted, bias = min(trials, key=lambda trial: trial[0])
    features = _features(kernel, embedding, inputs, bias)
    if settings.store is None:
        gram = np.array(_matrix(kernel, activation, features))
        gram[np.diag_indices(rows)] += ridge
        weights = cho_solve(cho_factor(gram, lower=True, overwrite_a=True), targets)
    else:
        assert kernel is not None  # `store` needs one
        stored = stored_kernel(settings.store, kernel, features, "ntk")
        weights = np.asarray(regress(stored, None, targets, ridge=ridge).coefficients)
    scale = 1.0 if labels is None else _sharpness(predicted, labels[some])
    return KernelMachine(
        features, weights, activation, embedding, bias, ridge, error, scale, kernel
    )


def _matrix(kernel, activation, left: np.ndarray, right: np.ndarray | None = None) -> np.ndarray:
    """The kernel of all pairs of rows; of one set of rows with itself where `right` is None."""
    if kernel is None:
        return np.asarray(mean_ntk(left, activation, right))
    if isinstance(kernel, Kernels):
        return np.asarray(kernel.ntk(left, right), dtype=float)
    shape = (len(left), len(left if right is None else right))
    values = np.asarray(kernel(left, left if right is None else right), dtype=float)
    if values.shape != shape or not np.all(np.isfinite(values)):
        raise ValueError(
            f"`kernel` must give finite numbers of shape {shape} for so many rows, got shape "
            f"{values.shape}" + ("." if values.shape != shape else " with NaN or infinity.")
        )
    return values


def _features(kernel, embedding, inputs: np.ndarray, bias: float) -> np.ndarray:
    """Rows as the kernel takes them: embedded with a bias column of size `bias`, or without the
    column for a given kernel.
    """
    if kernel is not None:
        return inputs[:, :-1]
    scaled = np.concatenate([inputs[:, :-1], bias * inputs[:, -1:]], axis=1)
    return scaled if embedding is None else np.asarray(embedding.embed(scaled), dtype=float)


def _leave_one_out(gram, targets) -> tuple[float, float, np.ndarray]:
    """The least mean square over the ridges, the ridge, and every row's prediction by all
    others.
    """
    values, vectors = np.linalg.eigh(gram)
    if values[0] < -1e-8 * np.abs(values).max():
        raise ValueError(
            "`kernel` must be positive semi-definite, but on the training rows its eigenvalues "
            f"run from {values[0]:.3g} to {values[-1]:.3g}."
        )
    values, modes = np.maximum(values, 0.0), vectors.T @ targets
    best = (np.inf, np.nan, targets)
    top = max(float(values[-1]), np.finfo(float).tiny)
    for ridge in RIDGES * top:
        shrinkage = values / (values + ridge)
        leverage = (vectors**2) @ shrinkage
        # a leverage that rounds to 1 leaves nothing of the row for others to predict it by
        misses = (targets - vectors @ (shrinkage[:, None] * modes)) / np.maximum(
            1 - leverage, 1e-12
        )[:, None]
        error = float(np.mean(misses**2))
        if error < best[0]:
            best = (error, float(ridge), targets - misses)
    return best


def _sharpness(predicted: np.ndarray, labels: np.ndarray) -> float:
    """The factor that turns scores into logits: the most likely one on rows that were left out."""

    def surprise(log_factor):
        logits = np.exp(log_factor) * predicted
        return -np.mean(log_softmax(logits, axis=1)[np.arange(len(labels)), labels])

    best = untyped(minimize_scalar)(surprise, bounds=(-3.0, 5.0), method="bounded")
    return float(np.exp(best.x))
