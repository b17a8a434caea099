"""scikit-learn estimators: wide networks on raw tables."""

from .classifier import WideClassifier as WideClassifier
from .regressor import WideRegressor as WideRegressor
