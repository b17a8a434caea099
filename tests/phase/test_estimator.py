"""What scikit-learn asks of every estimator, of the one that goes on from a plane."""

import pytest
from sklearn.utils.estimator_checks import check_estimator

from wideflow.phase.estimator import PhaseRegressor


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_estimator_keeps_to_scikit_learns_contract():
    """Few steps: what is asked is the contract, not the fit."""
    check_estimator(PhaseRegressor(width=16, steps=300, loss=0.2), on_skip=None)
