"""Every experiment at its default size: its claims hold or are declared, and they would notice
wrong numbers.

Slow (hours on two cores): `pytest -m slow tests/experiments/test_default_sizes.py`. Runs are kept
in the folder that `WIDEFLOW_DEFAULT_RUNS` names (`tools/run_experiments.py --out` fills one), so
that a second go reads them.
"""

import itertools
import os
import pathlib

import numpy as np
import pytest
from unjudged_quantities import SCALE_FREE, UNJUDGED

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


def scaled(values: np.ndarray):
    """The quantity larger and smaller."""
    yield values * FACTOR
    yield values / FACTOR


def reordered(values: np.ndarray):
    """The quantity backwards along each axis: rates and orderings do not see a common factor."""
    for axis in range(values.ndim):
        if values.shape[axis] > 1:
            yield np.flip(values, axis)


def noticed(experiment, table, name: str, mutations) -> bool:
    """Whether a claim that held fails, or cannot be computed, once the quantity is disturbed."""
    for values in mutations:
        disturbed = table.copy()
        disturbed[name] = (table[name].dims, values, table[name].attrs)
        try:
            if not all(claim.ok for claim in experiment.claims(disturbed)):
                return True
        except (ArithmeticError, ValueError, IndexError, KeyError):
            return True
    return False


def silent_quantities(experiment, table, mutate) -> set[str]:
    """The measured quantities whose mutations no claim notices."""
    measured = {str(name): v.values for name, v in table.data_vars.items() if v.dtype.kind == "f"}
    return {
        name
        for name, values in measured.items()
        if not noticed(experiment, table, name, mutate(values))
    }


@pytest.mark.parametrize("name", experiments())
def test_a_wrong_number_makes_a_claim_fail(name, record):
    mutate = lambda values: itertools.chain(scaled(values), reordered(values))
    silent = silent_quantities(experiments()[name], record.table, mutate)
    declared = set(UNJUDGED.get(name, {}))
    assert silent <= declared, f"nothing notices {sorted(silent - declared)}"


@pytest.mark.parametrize("name", SCALE_FREE)
def test_a_common_factor_makes_a_claim_fail(name, record):
    silent = silent_quantities(experiments()[name], record.table, scaled)
    declared = set(UNJUDGED.get(name, {})) | set(SCALE_FREE[name])
    assert silent <= declared, f"no claim asks the level of {sorted(silent - declared)}"
