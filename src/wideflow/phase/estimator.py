"""`PhaseRegressor`: the network of a phase plane as a scikit-learn estimator."""

import warnings

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from .._core.foreign import checked_inputs, checked_rows
from .._core.precision import Precision, cast, double
from .._core.status import Status
from .network import STEPS, Network, Training, train_network
from .splits import Standard


class PhaseRegressor(RegressorMixin, BaseEstimator):
    """Trains one network of a phase plane on raw tables, down to a stated training loss.

    What `wf.phase(...).estimator()` gives, with the settings that it recommends; for two classes
    given as two numbers the prediction's nearer number is the class.

    Parameters:
        width, richness, scaling, share, tail, weight_std, depth, activation: of the network
            (`wideflow.phase.Network`).
        rate, steps, dynamics, precision: of its training (`wideflow.phase.Training`).
        loss: share of the targets' variance that is left when training stops.
        random_state: seed of the network.

    Attributes:
        loss_: the training loss at the end.
        status_: why training stopped; where the loss was not reached, a `ConvergenceWarning` says
            so.
        model_, start_: the network and its start; predictions are their difference.
    """

    def __init__(
        self,
        width=256,
        richness=1.0,
        scaling="mean-field",
        share=0.5,
        tail=0.7,
        weight_std=1.0,
        depth=0,
        activation="relu",
        rate=0.25,
        steps=STEPS,
        dynamics="descent",
        precision: Precision = "float32",
        loss=0.1,
        random_state=0,
    ):
        self.width, self.richness, self.scaling = width, richness, scaling
        self.share, self.tail, self.weight_std = share, tail, weight_std
        self.depth, self.activation = depth, activation
        self.rate, self.steps, self.dynamics = rate, steps, dynamics
        self.precision: Precision = precision
        self.loss, self.random_state = loss, random_state

    def fit(self, X, y):
        """Fits to X (sample, feature) and y (sample,)."""
        X, y = checked_rows(self, X, y, y_numeric=True, ensure_min_samples=2)
        y = np.asarray(y, dtype=np.float64)
        network = Network(
            self.width,
            self.richness,
            self.scaling,
            self.share,
            self.tail,
            self.weight_std,
            self.depth,
            self.activation,
        )
        training = Training((self.loss,), self.rate, self.steps, self.dynamics, self.precision)
        self.standard_ = Standard.of(X, y)
        inputs = self.standard_.inputs(X)
        path = train_network(
            network, training, self.random_state, inputs, self.standard_.targets(y), inputs[:1]
        )
        self.model_, self.start_ = path.model, path.start
        self.loss_, self.status_ = float(path.losses[-1]), path.status
        if path.status is not Status.BELOW:
            warnings.warn(
                f"training ended at a loss of {self.loss_:.3g}, above `loss` = {self.loss:g}: "
                f"{path.status.sentence}.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    @double
    def predict(self, X):
        """Predictions (sample,), in float64 whatever the precision of training: they are small
        differences of outputs.
        """
        check_is_fitted(self)
        inputs = self.standard_.inputs(checked_inputs(self, X))
        now, start = (cast(model, "float64") for model in (self.model_, self.start_))
        moved = np.asarray(now.outputs(inputs)) - np.asarray(start.outputs(inputs))
        return self.standard_.predictions(moved)
