"""Every experiment at its default size: its claims hold or are declared, and they would notice
wrong numbers.

Slow (hours on two cores): `pytest -m slow tests/experiments/test_default_sizes.py`. Runs are kept
in the folder that `WIDEFLOW_DEFAULT_RUNS` names (`tools/run_experiments.py --out` fills one), so
that a second go reads them.
"""

import os
import pathlib

import numpy as np
import pytest
from unjudged_quantities import UNJUDGED

from wideflow.data.files import DataNotFoundError
from wideflow.experiments.registry import experiments
from wideflow.runs import Store
from wideflow.runs.runner import perform

FACTOR = 3.0  # no specification forgives this much in a quantity that it gives a number for

pytestmark = [pytest.mark.slow, pytest.mark.data]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = os.environ.get("WIDEFLOW_DEFAULT_RUNS")
    return Store(pathlib.Path(folder) if folder else tmp_path_factory.mktemp("default"))


@pytest.fixture
def record(name, store):
    try:
        return perform(experiments()[name], store, size="default").record
    except DataNotFoundError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("name", experiments())
def test_every_claim_holds_or_is_declared(name, record):
    failed = [claim.text for claim in record.claims if not claim.ok]
    assert failed == []


def mutations(values: np.ndarray):
    """The quantity larger, smaller, and backwards along each axis: rates and orderings do not see a
    common factor.
    """
    yield values * FACTOR
    yield values / FACTOR
    for axis in range(values.ndim):
        if values.shape[axis] > 1:
            yield np.flip(values, axis)


def noticed(experiment, table, name: str) -> bool:
    """Whether a claim that held fails, or cannot be computed, once the quantity is disturbed."""
    for values in mutations(table[name].values):
        disturbed = table.copy()
        disturbed[name] = (table[name].dims, values, table[name].attrs)
        try:
            if not all(claim.ok for claim in experiment.claims(disturbed)):
                return True
        except (ArithmeticError, ValueError, IndexError, KeyError):
            return True
    return False


def silent_quantities(experiment, table) -> set[str]:
    """The measured quantities that may be wrong by `FACTOR` without any claim noticing."""
    measured = [str(name) for name, values in table.data_vars.items() if values.dtype.kind == "f"]
    return {name for name in measured if not noticed(experiment, table, name)}


@pytest.mark.parametrize("name", experiments())
def test_a_wrong_number_makes_a_claim_fail(name, record):
    silent = silent_quantities(experiments()[name], record.table)
    declared = set(UNJUDGED.get(name, {}))
    assert silent <= declared, f"nothing notices {sorted(silent - declared)}"
