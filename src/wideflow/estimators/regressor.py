"""`WideRegressor`."""

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import validate_data

from .fitting import REGRESSION
from .shared import WideBase


class WideRegressor(RegressorMixin, MultiOutputMixin, WideBase):
    r"""Least squares by a wide shallow network $f(x) = \sum_j \sqrt{\lambda_j}\, a_j\, \sigma(\langle w_j, x\rangle/\sqrt d)$ (caron2023, equation 2).

    Works on raw tables: columns and targets are standardised inside, a bias column is added, the rate is chosen from the tangent kernel.

    Parameters:
        width: number of nodes.
        scaling: 'ntk', 'mean-field', 'zipf:GAMMA,ALPHA', or one of `wf.scalings`. Zipf learns features and prunes well.
        activation: 'relu', 'tanh', ... or any activation of wideflow (by name, if the estimator is to be pickled).
        embedding: None, a number of frozen random features, or one of `wf.embeddings`.
        solver: 'sgd', 'descent' (full batch) or 'flow'.
        epochs: at most so many passes; for 'descent' steps, for 'flow' units of the fastest time scale.
        batch: samples a step of 'sgd'.
        rate: None chooses a stable one.
        early_stopping, validation_fraction, patience: hold rows out and keep the network of the best validation loss; stop after `patience` epochs without gain.
        random_state: seed of weights, split and batches.

    Attributes:
        model_: the fitted `wf.Shallow`. n_epochs_, rate_, loss_curve_, validation_curve_: how training went.
        certificate_: `wf.certify` of the network at time zero on the training rows.

    Methods beside scikit-learn's: `transform` (hidden features by importance) and `prune(keep)`.
    """

    def fit(self, X, y):
        """Fits to X (sample, feature) and y (sample,) or (sample, output)."""
        X, y = validate_data(self, X, y, multi_output=True, y_numeric=True, dtype=np.float64)
        y = _numbers(y)
        self._single = y.ndim == 1
        targets = y[:, None] if self._single else y
        self.target_mean_ = targets.mean(axis=0)
        size = np.abs(targets).max(axis=0)  # squares of numbers above 1e154 would overflow
        deviation = (targets / np.where(size > 0, size, 1.0)).std(axis=0) * size
        constant = deviation <= 1e-12 * np.maximum(np.abs(self.target_mean_), 1e-300)
        self.target_scale_ = np.where(constant, 1.0, deviation)
        centred = np.where(constant, 0.0, targets - self.target_mean_)
        self._train(X, centred / self.target_scale_, REGRESSION, None)
        return self

    def predict(self, X):
        """Predictions, (sample,) or (sample, output) as y was."""
        outputs = self._raw(X) * self.target_scale_ + self.target_mean_
        return outputs[:, 0] if self._single else outputs


def _numbers(y) -> np.ndarray:
    try:
        return np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"`y` must hold numbers only, got {np.asarray(y).dtype}. For classes use `WideClassifier`."
        ) from error
