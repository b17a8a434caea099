"""`WideClassifier`."""

import numpy as np
from scipy.special import softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from .._core.foreign import checked_rows
from .fitting import CLASSIFICATION
from .shared import WideBase


class WideClassifier(ClassifierMixin, WideBase):
    """Cross-entropy of a softmax over a wide shallow network with one output a class.

    Parameters, attributes and further methods are those of `WideRegressor`; validation rows are
    drawn class by class.
    """

    _certificate_notes = (
        "the classifier was trained by cross-entropy; the statements are about least squares on "
        "the classes as rows of 0 and 1",
    )

    def fit(self, X, y):
        """Fits to X (sample, feature) and labels y (sample,) of any type."""
        X, y = checked_rows(self, X, y)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y holds one class only, {self.classes_[0]!r}; the classifier needs at least two."
            )
        self._train(X, np.eye(len(self.classes_))[codes], CLASSIFICATION, codes)
        return self

    def decision_function(self, X):
        """Logits (sample, class); for two classes their difference (sample,)."""
        outputs = self._raw(X)
        return outputs[:, 1] - outputs[:, 0] if len(self.classes_) == 2 else outputs

    def predict_proba(self, X):
        """Probabilities (sample, class), the softmax of the outputs."""
        return softmax(self._raw(X), axis=1)

    def predict(self, X):
        """The most probable class of each row."""
        best = np.argmax(self._raw(X), axis=1)
        return self.classes_[best]
