"""What the experiments' tables say: crossings, verdicts, and claims that a failure must not
remove.
"""

import math

import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_allclose

from wideflow.papers.ren2023.experiments import dimension_scaling, figure2, width_scaling
from wideflow.papers.ren2023.experiments.crossings import first_times
from wideflow.papers.ren2023.experiments.start import start_claim
from wideflow.papers.ren2023.experiments.verdicts import verdict_claims, with_verdicts
from wideflow.theorems.base import Outcome, Verdict


def test_crossings_of_an_exponential_are_exact():
    times = np.linspace(0.0, 10.0, 21)
    reached = first_times(np.exp(-times), times, (math.exp(-3.3), 1e-30))
    assert_allclose(reached, [3.3, math.inf])


def test_the_worst_verdict_over_seeds_is_asked():
    good, close = (Verdict(Outcome.HOLDS, margin, "fine") for margin in (1.0, 0.1))
    broken = Verdict(Outcome.VIOLATED, -1.0, "off by one")
    absent = Verdict(Outcome.NOT_APPLICABLE, math.nan, "no start")
    seeds = [{"A": good, "B": good, "C": good}, {"A": close, "B": broken, "C": absent}]
    claims = {claim.text: claim for claim in verdict_claims(with_verdicts(xr.Dataset(), seeds))}
    assert claims["A"].satisfied
    assert not claims["B"].satisfied
    assert "off by one" in claims["B"].note
    assert not claims["C"].satisfied


def dimension_table(reached):
    held = Verdict(Outcome.HOLDS, 1.0, "fine")
    table = xr.Dataset(
        {
            "reached": (("dimension", "start", "level"), reached),
            "stage_one": (
                "stage_dimension",
                [6.509 / (10**1.5 * math.log(10)), 6.502 / (20**1.5 * math.log(20))],
            ),
        },
        {
            "dimension": [10],
            "start": ["1/√d", "1"],
            "level": [1e-2, 1e-3, 1e-4],
            "stage_dimension": [10, 20],
        },
        {"tabulated": 1},
    )
    return with_verdicts(table, [{"Lemma": held}])


def test_the_length_of_stage_one_is_asked_and_not_only_its_spread():
    table = dimension_table(np.array([dimension_scaling.TABLE[10]], float))
    table["stage_one"] = 1.01 * table.stage_one  # the same spread
    failed = [claim.text for claim in dimension_scaling.claims(table) if not claim.satisfied]
    assert failed == ["T₁ d^1.5 ln d (Lemma C.10), largest distance from the table"]


def test_a_common_factor_of_the_first_layers_errors_is_noticed():
    # d = 3: C = Gamma(3/2) sqrt(3) / (2 sqrt(pi)) = sqrt(3)/4, so 1/(2 C^2) = 8/3
    errors = np.sqrt([[5 / 3 / 64, 0.01], [0.9 * 5 / 3 / 64, 0.01]])
    table = xr.Dataset({"direction_error": (("seed", "step"), errors)})
    table = table.assign_attrs(features=3, width=64)
    assert_allclose(start_claim(table).value, 0.9)
    assert start_claim(table).satisfied
    table["direction_error"] = 3 * table.direction_error
    assert not start_claim(table).satisfied


def test_a_level_that_is_not_reached_fails_its_claims():
    reached = np.array([dimension_scaling.TABLE[10]], float)
    claims = dimension_scaling.claims(dimension_table(reached))
    assert all(claim.satisfied for claim in claims)
    reached[0, 1, 2] = math.inf
    later = dimension_scaling.claims(dimension_table(reached))
    assert [c.text for c in later] == [c.text for c in claims]
    assert sum(not claim.satisfied for claim in later) == 2  # the row of the table, and the bound


def test_snapshots_show_the_learning_and_not_the_plateau():
    plateau, falling = np.full(30, 1.0), np.geomspace(1.0, 1e-2, 11)
    shots = figure2._snapshots(np.concatenate([plateau, falling]), (0.9, 0.5, 0.1))
    assert list(shots) == [0, 31, 32, 35, 40]


@pytest.mark.parametrize(("factor", "holds"), [(1.0, True), (2.5, False)])
def test_tabulated_deviations_are_asked(factor, holds):
    spread = np.array([-1.0, 1.0, -0.5, 0.5])
    columns = {
        name: (
            ("width", "seed"),
            [factor * row[k][0] + row[k][1] * spread for row in width_scaling.TABLE.values()],
        )
        for k, name in enumerate(("alpha", "w", "b"))
    }
    coords = {"width": list(width_scaling.TABLE), "seed": np.arange(4)}
    table = xr.Dataset(columns, coords, {"tabulated": 1, "limit_alpha": 0.41051899})
    assert all(claim.satisfied for claim in width_scaling.claims(table)) is holds
