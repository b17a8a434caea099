"""The mean-field limit beside a plane, against the limit solved in function space."""

import jax
import numpy as np
import pytest
import xarray as xr

import wideflow as wf
from wideflow.phase.axes import plane_of
from wideflow.phase.errors_of_predictions import error_of
from wideflow.phase.levels import at_levels
from wideflow.phase.network import Network, Training, train_network
from wideflow.phase.rich_end import check_particles, rich_errors, rich_points
from wideflow.phase.splits import Standard, split_rows

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(80, 3))
DATA = wf.Dataset(X, np.sin(2 * X[:, 0]) + 0.1 * GENERATOR.normal(size=80), "waves")
LEVELS, TIME = (0.8, 0.6), 8.0


def test_particles_are_the_limit_solved_in_function_space():
    """Another solver and other draws: the errors, of order one, of 2000 particles and of 1000
    differ by some 1000^(-1/2) = 0.03.
    """
    rows = split_rows(0, len(DATA), 0, 3, 40)
    standard = Standard.of(DATA.inputs[rows.train], DATA.targets[rows.train])
    y = standard.targets(DATA.targets)
    train, test = (standard.inputs(DATA.inputs[part]) for part in (rows.train, rows.test))
    network = Network(width=2000, richness=2.0, activation="tanh")
    finite = train_network(network, Training(LEVELS, steps=500), 0, train, y[rows.train], test)
    points = np.concatenate([train, test])
    limit = wf.limits.mean_field(
        points @ points.T / points.shape[1],
        y[rows.train],
        "tanh",
        np.linspace(0.0, TIME, 31),
        magnitude=0.5,
        method="particles",
        particles=1000,
        key=jax.random.key(1),
        tolerance=1e-3,
    )
    losses = 2 * np.asarray(limit.losses) / np.sum(y[rows.train] ** 2)
    outputs = np.asarray(limit.outputs)[:, len(rows.train) :]
    expected, got = (
        at_levels(share, error_of(values, y[rows.test], None), LEVELS)
        for share, values in ((losses, outputs), (finite.losses, finite.outputs))
    )
    assert np.isfinite(expected).all()
    np.testing.assert_allclose(got, expected, atol=0.03)


def test_levels_that_are_not_reached_are_no_result():
    runs = xr.Dataset(
        {
            "validation": (("point", "level"), [[0.5, np.nan], [0.1, 0.2]]),
            "test": (("point", "level"), [[0.6, np.nan], [0.1, 0.2]]),
            "run_status": ("point", ["finished", "missing"]),
        },
        {"level": [0.8, 0.5]},
    )
    errors = rich_errors(
        runs,
        [{"fold": 1, "richness": 2.0, "width": 8}, {"fold": 2, "richness": 2.0, "width": 8}],
        (0.8, 0.5),
        3,
    )
    np.testing.assert_array_equal(errors["test"], [[np.inf] * 2, [0.6, np.inf], [np.inf] * 2])


def test_the_richest_value_of_either_axis():
    alpha = plane_of({"alpha": (0.1, 100.0, 4), "width": [4, 16]})
    assert rich_points(alpha, [0, 2], 9) == [
        {"fold": 0, "richness": 10.0, "width": 9},
        {"fold": 2, "richness": 10.0, "width": 9},
    ]


@pytest.mark.parametrize(
    ("axes", "changed"),
    [
        (("richness", "weight_std"), {}),
        (("richness", "width"), {"scaling": "ntk"}),
        (("richness", "width"), {"depth": 2}),
    ],
)
def test_planes_without_such_a_limit_are_refused(axes, changed):
    shared = {"scaling": "mean-field", "depth": 0} | changed
    with pytest.raises(ValueError, match="`particles` must be 0 here, got 5"):
        check_particles(5, plane_of(axes), shared)
    check_particles(0, plane_of(axes), shared)
