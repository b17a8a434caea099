"""`KernelRegressor`: least squares with the kernel of an infinitely wide network."""

import math
from typing import Any

import numpy as np
import scipy.linalg
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from .._core.architecture import AbstractLayer, mlp
from .._core.errors import (
    check_choice,
    check_count,
    check_flag,
    check_list,
    check_positive,
)
from .._core.foreign import checked_inputs, checked_rows
from .._core.precision import double
from ..limits.infinite_width.architecture_kernels import Kernels, kernels
from ..limits.infinite_width.kernel_store import StoredKernel, stored_kernel
from ..limits.infinite_width.learnt_part import learnt_part
from ..limits.infinite_width.regression import apply_kernel, regress
from ..limits.infinite_width.stored_prediction import fits, learnt_operator, load
from ..limits.predict import cholesky, ensemble, posterior, spectrum_of

# whole matrices held during an eigendecomposition: kernel, symmetric part, vectors, workspace
SPECTRAL_MATRICES = 4


class KernelRegressor(RegressorMixin, MultiOutputMixin, BaseEstimator):
    r"""What infinitely many infinitely wide networks predict on average, and how far they spread.

    $f(x) = k(x, X)\,T\,y$ with $T = (k + \lambda I)^{-1}(I - e^{-(k + \lambda I)t})$; $k$ is the
    tangent kernel (all layers trained) or the covariance of random networks (the posterior of their
    Gaussian process). Columns and targets are standardised inside, unless `standardise` is False.

    With `store` the kernel of the training rows lies on disk and may be larger than memory: it is
    computed once, found again by later fits on the same rows, and solved by blocks or by conjugate
    gradients within the memory budget (WIDEFLOW_MEMORY).

    Parameters:
        architecture: a description from `wf.architecture`, or its `wf.limits.kernels(...)` (any
            parametrisation, rates, precision); None for `depth` hidden layers of `activation` with
            `weight_std` and `bias_std`.
        depth, activation, weight_std, bias_std: as in `wf.architecture.mlp`, where no
            `architecture` is given. He's sqrt(2) suits ReLU.
        kernel: 'ntk' or 'nngp'.
        ridge: $\lambda$ as a share of the mean of the kernel's diagonal.
        time: how long the networks are trained, in units of 1 / (mean of the kernel's diagonal);
            the end if infinite. Only for 'ntk'.
        shape: shape of one input for convolutions, such as (28, 28, 1); None for vectors.
        standardise: whether columns and targets are centred and scaled; False takes them as they
            are.
        store: None; a folder in which kernels of training rows are kept, each under its
            architecture and inputs; or one that `wf.limits.write_kernel` has written of the
            training rows (with standardise=False, of the rows as they are), refused where it is of
            other rows or of another architecture.

    Attributes:
        dual_coef_: $T y$ in standardised targets. kernels_: the `wf.limits.Kernels`.
    """

    def __init__(
        self,
        architecture=None,
        depth=3,
        activation="relu",
        weight_std=math.sqrt(2),
        bias_std=0.1,
        kernel="ntk",
        ridge=1e-6,
        time=math.inf,
        shape=None,
        standardise=True,
        store=None,
    ):
        self.architecture = architecture
        self.depth = depth
        self.activation = activation
        self.weight_std = weight_std
        self.bias_std = bias_std
        self.kernel = kernel
        self.ridge = ridge
        self.time = time
        self.shape = shape
        self.standardise = standardise
        self.store = store

    @property
    def kernels_(self) -> Kernels:
        architecture = self.architecture
        if isinstance(architecture, Kernels):
            return architecture
        if architecture is None:
            architecture = mlp(
                self.depth, 1, self.activation, weight_std=self.weight_std, bias_std=self.bias_std
            )
        if not isinstance(architecture, AbstractLayer):
            raise ValueError(
                "`architecture` must be a layer or chain of `wf.architecture`, or "
                f"`wf.limits.kernels(...)`, got {architecture!r}."
            )
        return kernels(architecture)

    @double
    def fit(self, X, y):
        """Fits to X (sample, feature) and y (sample,) or (sample, output)."""
        check_choice("kernel", self.kernel, ("ntk", "nngp"))
        if not (isinstance(self.time, float) and self.time == math.inf):
            check_positive("time", self.time, "Infinity trains to the end.")
        if self.shape is not None:
            check_list("shape", self.shape, "sizes of one input's axes")
            for size in self.shape:
                check_count("shape", size)
        if self.kernel == "nngp" and math.isfinite(self.time):
            raise ValueError("`time` must be infinite for kernel='nngp', which is not trained.")
        check_positive("ridge", self.ridge, "The kernel of many rows is singular to rounding.")
        check_flag("standardise", self.standardise)
        X, y = checked_rows(self, X, y, multi_output=True, y_numeric=True)
        y = np.asarray(y, dtype=np.float64)
        self._single = y.ndim == 1
        targets = y[:, None] if self._single else y
        self.input_mean_, self.input_scale_ = self._standard(X)
        self.target_mean_, self.target_scale_ = self._standard(targets)
        self.inputs_ = self._inputs(X)
        self.targets_ = (targets - self.target_mean_) / self.target_scale_
        gram = self._training(self.kernel)
        diagonal = gram.diagonal() if isinstance(gram, StoredKernel) else np.diagonal(gram)
        self.size_ = float(np.mean(diagonal))
        dual = self._stored_dual if isinstance(gram, StoredKernel) else self._dual
        self.dual_coef_ = np.asarray(dual(gram))
        return self

    def _training(self, kernel: str):
        """The kernel of the training rows: on disk where there is a `store`, else in memory."""
        if self.store is None:
            return getattr(self.kernels_, kernel)(self.inputs_)
        return stored_kernel(self.store, self.kernels_, self.inputs_, kernel)

    def _dual(self, gram):
        if not math.isfinite(self.time):
            factor = np.asarray(cholesky("kernel", gram, self._ridge))
            return scipy.linalg.cho_solve((factor, True), self.targets_)
        values, vectors = spectrum_of("kernel", gram)
        learnt = learnt_part(values + self._ridge, np.array([self._time]))[0]
        return vectors @ (learnt[:, None] * (vectors.T @ self.targets_))

    def _stored_dual(self, gram: StoredKernel):
        if not math.isfinite(self.time):
            return regress(gram, None, self.targets_, ridge=self._ridge).coefficients
        if fits(gram.shape[0], SPECTRAL_MATRICES, None):
            return self._dual(load(gram))
        return learnt_operator(gram, [self._time], None, self._ridge, None)(self.targets_)[0]

    @double
    def predict(self, X, return_std: bool = False):
        """The mean, (sample,) or (sample, output) as y was; with `return_std` also the standard
        deviation of one network's prediction.
        """
        check_is_fitted(self)
        check_flag("return_std", return_std)
        X = checked_inputs(self, X)
        inputs, k = self._inputs(X), self.kernels_
        mean = np.asarray(
            apply_kernel(k, inputs, self.inputs_, self.dual_coef_, kernel=self.kernel)
        )
        mean = mean * self.target_scale_ + self.target_mean_
        mean = mean[:, 0] if self._single else mean
        if not return_std:
            return mean
        variances = np.maximum(np.asarray(self._variances(k, inputs)), 0.0)
        std = np.sqrt(variances)[:, None] * self.target_scale_
        return mean, std[:, 0] if self._single else std

    def _variances(self, k: Kernels, inputs):
        settings: dict[str, Any] = dict(test_nngp=k.nngp_diagonal(inputs), ridge=self._ridge)
        if self.kernel == "nngp":
            cross = k.nngp(inputs, self.inputs_)
            return posterior(
                self._training("nngp"), self.targets_, cross=cross, **settings
            ).covariance
        if isinstance(self.store, StoredKernel):
            raise ValueError(
                "`return_std` with kernel='ntk' needs both kernels of the training rows, but "
                "`store` is one of them. Give a folder as `store`."
            )
        if self.store is None:
            train = k.both(self.inputs_)
        else:
            train = (self._training("nngp"), self._training("ntk"))
        cross = k.both(inputs, self.inputs_)
        return ensemble(train, self.targets_, self._time, cross=cross, **settings).covariance

    def _standard(self, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if not self.standardise:
            return np.zeros(columns.shape[1]), np.ones(columns.shape[1])
        return columns.mean(0), _scale(columns)

    @property
    def _time(self) -> float:
        return self.time / self.size_

    @property
    def _ridge(self) -> float:
        return self.ridge * self.size_

    def _inputs(self, X: np.ndarray) -> np.ndarray:
        inputs = (X - self.input_mean_) / self.input_scale_
        if self.shape is None:
            return inputs
        if math.prod(self.shape) != X.shape[1]:
            raise ValueError(
                f"`shape` {tuple(self.shape)} must hold the {X.shape[1]} columns of X, but holds "
                f"{math.prod(self.shape)}."
            )
        return inputs.reshape(len(X), *self.shape)


def _scale(columns: np.ndarray) -> np.ndarray:
    """The deviation of each column, 1 for constant ones."""
    largest = np.maximum(np.abs(columns).max(axis=0), 1e-300)  # squares of what is left fit
    deviation = largest * (columns / largest).std(axis=0)
    small = 1e-12 * np.maximum(np.abs(columns.mean(axis=0)), 1e-300)
    return np.where(deviation > small, deviation, 1.0)
