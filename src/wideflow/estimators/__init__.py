"""scikit-learn estimators: wide networks on raw tables."""

from .classifier import WideClassifier as WideClassifier
from .kernel_regressor import KernelRegressor as KernelRegressor
from .regressor import WideRegressor as WideRegressor
