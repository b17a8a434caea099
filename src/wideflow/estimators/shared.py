"""What both estimators share with their users: transform, prune, certificate, the fitted
network.
"""

import copy
import warnings

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._core.foreign import checked_inputs
from .._core.precision import double
from ..certify.build import certify
from ..certify.certificate import Certificate
from ..data.dataset import Dataset
from ..models.pruning import features, importance, prune as prune_network
from ..models.shallow import Shallow
from .fitting import KEPT, Fitted, Network, Settings, embedding_of, fit, standardise
from .kernel_ridge import fit_kernel


def _check_network(estimator) -> None:
    if estimator.solver == "kernel":
        raise AttributeError(
            "`solver`='kernel' fits the limit of infinite width, which has no nodes; use "
            "solver='adam' for a network."
        )


class WideBase(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A shallow wide network with frozen output signs, trained on standardised inputs with a bias
    column.
    """

    _certificate_notes: tuple[str, ...] = ()

    def __init__(
        self,
        width=None,
        scaling="zipf:0.5,0.7",
        activation="relu",
        embedding=None,
        solver="adam",
        epochs=None,
        batch=32,
        rate=None,
        early_stopping=True,
        validation_fraction=0.1,
        patience=300,
        random_state=None,
        kernel=None,
        store=None,
    ):
        self.width = width
        self.scaling = scaling
        self.activation = activation
        self.embedding = embedding
        self.solver = solver
        self.epochs = epochs
        self.batch = batch
        self.rate = rate
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.random_state = random_state
        self.kernel = kernel
        self.store = store

    def _train(self, X: np.ndarray, targets: np.ndarray, loss, strata) -> None:
        """Fits to `targets` (sample, output) and keeps what prediction, certificate and pickling
        need.
        """
        rows, features = X.shape[0], X.shape[1] + 1
        settings = Settings.of(self, rows, features)
        seed = _seed(self.random_state)
        self.input_mean_, self.input_scale_ = standardise(X)
        inputs = self._inputs(X)
        if settings.solver == "kernel":
            embedding = embedding_of(settings, features, seed)
            self.kernel_ = fit_kernel(settings, inputs, targets, embedding, strata, seed)
            self.n_epochs_ = self.n_iter_ = 1  # solved in one go
            return
        fitted = fit(settings, inputs, targets, loss, strata, seed)
        self._keep(fitted, inputs, targets, seed)
        if fitted.cut_short:
            warnings.warn(
                f"training was cut short by `epochs`={settings.epochs}: the loss was still "
                "falling. Give more `epochs`"
                + (", or solver='kernel'." if settings.solver == "adam" else ", or solver='adam'."),
                ConvergenceWarning,
                stacklevel=3,
            )

    def _keep(self, fitted: Fitted, inputs: np.ndarray, targets: np.ndarray, seed: int) -> None:
        self.network_, self._start = fitted.end, fitted.start
        self.rate_ = fitted.rate
        self.loss_curve_, self.validation_curve_ = fitted.train_curve, fitted.validation_curve
        self.n_epochs_ = self.n_iter_ = fitted.epochs
        rows = np.random.default_rng(seed).permutation(len(inputs))[:KEPT]
        self._sample = (inputs[rows], targets[rows])

    def _inputs(self, X: np.ndarray) -> np.ndarray:
        return np.concatenate(
            [(X - self.input_mean_) / self.input_scale_, np.ones((len(X), 1))], axis=1
        )

    def _raw(self, X) -> np.ndarray:
        """Outputs of the network or of its limit, (sample, output)."""
        check_is_fitted(self)
        X = checked_inputs(self, X)
        if self.solver == "kernel":
            return self.kernel_.outputs(self._inputs(X))
        return np.asarray(self.model_.outputs(self._inputs(X)), dtype=np.float64)

    @property
    def model_(self) -> Shallow:
        """The fitted `wf.Shallow`, on standardised inputs with a bias column."""
        check_is_fitted(self)
        _check_network(self)
        return self.network_.model()

    @property
    def _n_features_out(self) -> int:
        return self.network_.hidden.shape[0]

    @property
    def node_importances_(self) -> np.ndarray:
        r"""Importance $\lambda_j|w_j|^2$ of every node, in the network's order."""
        return np.asarray(importance(self.model_))

    @double
    def transform(self, X) -> np.ndarray:
        """Hidden features of the nodes, most important first."""
        check_is_fitted(self)
        _check_network(self)
        X = checked_inputs(self, X)
        return np.asarray(features(self.model_, self._inputs(X)), dtype=np.float64)

    def prune(self, keep):
        """A fitted copy with the `keep` most important nodes alone (a count, or a share below 1);
        nothing is retrained.
        """
        check_is_fitted(self)
        _check_network(self)
        pruned = copy.copy(self)
        small = prune_network(self.model_, keep)
        whole = self.network_
        pruned.network_ = Network(
            np.asarray(small.hidden),
            np.asarray(small.output),
            np.asarray(small.scales),
            whole.scaling,
            whole.activation,
            whole.embedding,
            whole.random,
            whole.width,
        )
        return pruned

    @property
    def certificate_(self) -> Certificate:
        """What theory says about the network at time zero on (at most 400 of) the training rows,
        put into the unit ball.

        It is about least squares, for the classifier on the classes as rows of 0 and 1. Computed on
        first access.
        """
        check_is_fitted(self)
        _check_network(self)
        inputs, targets = self._sample
        data = Dataset(
            inputs.astype(np.float64), targets.astype(np.float64), "training rows"
        ).on_unit_ball()
        unique = np.unique(data.inputs, axis=0, return_index=True)[1]
        return certify(
            self._start.model(), data.take(np.sort(unique)), notes=self._certificate_notes
        )


def _seed(random_state) -> int:
    try:
        return int(check_random_state(random_state).randint(2**31 - 1))
    except ValueError as error:
        raise ValueError(
            "`random_state` must be None, a whole number from 0 to 2**32 - 1 or a "
            f"`RandomState`, got {random_state!r}."
        ) from error
