"""`WideRegressor`."""

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin

from .._core.foreign import checked_rows
from .fitting import REGRESSION
from .shared import WideBase


class WideRegressor(RegressorMixin, MultiOutputMixin, WideBase):
    r"""Least squares by a wide shallow network
    $f(x) = \sum_j \sqrt{\lambda_j}\, a_j\, \sigma(\langle w_j, x\rangle/\sqrt d)$ (caron2023,
    equation 2).

    Works on raw tables: columns and targets are standardised inside, a bias column is added, width,
    rate and length of training are chosen.

    Parameters:
        width: number of nodes; None takes four trained weights a row, between 512 and 4096 nodes,
            and beyond that as many weights as rows.
        scaling: 'ntk', 'mean-field', 'zipf:GAMMA,ALPHA', or one of `wf.scalings`. Zipf learns
            features and prunes well.
        activation: 'relu', 'tanh', ... or any activation of wideflow (by name, if the estimator is
            to be pickled).
        embedding: None, a number of frozen random features, or one of `wf.embeddings`.
        solver: 'adam' (rate falling along a cosine), 'sgd', 'descent' (full batch), 'flow', or
            'kernel': no network but its limit of infinite width, ridge regression with the mean
            tangent kernel, with ridge and bias by leave-one-out.
        epochs: at most so many passes; for 'descent' steps, for 'flow' units of the fastest time
            scale. None: for 'adam' 65,536 steps but no more than 2000 passes, for the others 4000.
            Where training was still gaining at this cap, a `ConvergenceWarning` says so.
        batch: samples a step of 'adam' and 'sgd'.
        rate: None chooses one.
        early_stopping, validation_fraction: hold rows out, choose the length of training (for
            'adam' among lengths that grow fourfold) by their loss, and train so long on all rows.
        patience: of the solvers other than 'adam': stop after so many epochs without gain.
        random_state: seed of weights, split and batches.
        kernel: for solver='kernel': `wf.limits.kernels(architecture)` (its tangent kernel), or any
            function of two sets of standardised rows, such as its `nngp`; a convolution takes
            `lambda x, z: k.ntk(x.reshape(-1, 28, 28, 1), z.reshape(-1, 28, 28, 1))`. None is the
            shallow mean tangent kernel.
        store: a folder in which the tangent kernel of the training rows is kept, for more rows than
            fit in memory; needs `kernel=wf.limits.kernels(...)`. A later fit on the same rows finds
            it again.

    Attributes:
        n_epochs_, rate_, loss_curve_, validation_curve_: how training went (with 'adam' the curves
            have one entry a length).
        model_: the fitted `wf.Shallow`. With 'kernel' there is none, but `kernel_` with its
            `ridge`, `bias` and `loo_error`.
        certificate_: `wf.certify` of the network at time zero on the training rows.

    Methods beside scikit-learn's: `transform` (hidden features by importance) and `prune(keep)`.
    """

    def fit(self, X, y):
        """Fits to X (sample, feature) and y (sample,) or (sample, output)."""
        X, y = checked_rows(self, X, y, multi_output=True, y_numeric=True)
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
            f"`y` must hold numbers only, got {np.asarray(y).dtype}. For classes use "
            "`WideClassifier`."
        ) from error
