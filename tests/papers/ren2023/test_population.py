"""Estimators of the expectation against each other and against Monte Carlo."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import wideflow as wf
from wideflow.papers.ren2023.depth_separator import DepthSeparator
from wideflow.papers.ren2023.laws.base import sphere
from wideflow.papers.ren2023.laws.bessel import BesselLaw
from wideflow.papers.ren2023.laws.regular import FixedRadius, UniformRadius
from wideflow.papers.ren2023.laws.thresholds import Thresholds
from wideflow.papers.ren2023.population import Radial
from wideflow.papers.ren2023.separator.directions import direction_error
from wideflow.papers.ren2023.separator.integrated import integrated_field
from wideflow.papers.ren2023.separator.rays import ray_field
from wideflow.papers.ren2023.separator.samples import sample_field

KEY = jax.random.key(2)


def net(d=4, width=40, seed=0):
    first = (
        np.asarray(sphere(jax.random.key(seed), width, d)) * np.linspace(0.9, 1.1, width)[:, None]
    )
    return DepthSeparator(first, [-0.8, -0.6, -0.9], [0.7, 0.5, 0.8])


def parts(model):
    return model.first, model.second_weight, model.second_bias


@pytest.mark.parametrize(
    "clip", [Thresholds(), Thresholds(0.2, 0.08, 0.25)], ids=["free", "projected"]
)
def test_exact_radius_is_the_mean_over_many_radii(clip):
    # the same few directions, radii by a fine midpoint rule: only the radial integral differs
    law, model = UniformRadius(4, 2.5), net()
    directions = sphere(KEY, 6, 4)
    radii = 2.5 * (np.arange(4000) + 0.5) / 4000
    inputs = (radii[:, None, None] * np.asarray(directions)).reshape(-1, 4)
    targets = np.maximum(1 - np.linalg.norm(inputs, axis=1), 0)
    brute = sample_field(*parts(model), jnp.asarray(inputs), jnp.asarray(targets), clip)
    exact = ray_field(law, *parts(model), directions, clip)
    for name in ("first", "weight", "bias", "loss"):
        assert_allclose(getattr(exact, name), getattr(brute, name), atol=3e-7, err_msg=name)


def test_fixed_radius_needs_no_approximation():
    law, model = FixedRadius(4, 0.6), net()
    directions = sphere(KEY, 9, 4)
    x = 0.6 * directions
    brute = sample_field(*parts(model), x, jnp.full(9, 0.4), Thresholds())
    exact = ray_field(law, *parts(model), directions, Thresholds())
    assert_allclose(exact.first, brute.first, rtol=1e-10, atol=1e-14)
    assert_allclose(exact.loss, brute.loss, rtol=1e-12)


def test_control_variate_changes_the_noise_and_not_the_mean():
    law, model = BesselLaw(4), net(width=60)
    many = ray_field(law, *parts(model), sphere(KEY, 20_000, 4, antithetic=True), Thresholds())
    errors = {}
    for control in (False, True):
        draws = [
            ray_field(
                law, *parts(model), sphere(jax.random.key(i), 64, 4), Thresholds(), control=control
            )
            for i in range(8)
        ]
        errors[control] = np.sqrt(np.mean([np.sum((d.first - many.first) ** 2) for d in draws]))
        mean = np.mean([d.weight for d in draws], axis=0)
        assert_allclose(mean, many.weight, rtol=0.15)
    assert errors[True] < 0.6 * errors[False]


@pytest.mark.parametrize(("weight", "bias"), [(-0.05, 0.3), (-0.6, 0.5), (-1.0, 0.7)])
def test_integrated_directions_agree_with_many_directions(weight, bias):
    # single neurons against exact radius on 20 000 directions, whose own noise is 2e-4 of the mean
    # velocity of a weight and 2e-3 of that of the first layer; the derivatives at the point alpha
    # are those of the wave, off by 0.05 to 0.26
    law, second = BesselLaw(10), 8
    first = sphere(jax.random.key(1), 256, 10)
    w, b = weight * (1 + 0.1 * np.linspace(-1, 1, second)), np.full(second, bias)
    directions = sphere(KEY, 20_000, 10, antithetic=True)
    learner = (first, jnp.asarray(w), jnp.asarray(b))
    many = ray_field(law, *learner, directions, Thresholds(), control=True)
    none = integrated_field(law, *learner, Thresholds())
    for name in ("weight", "bias"):
        exact = np.asarray(getattr(many, name))
        error = np.abs(getattr(none, name) - exact).max() / np.abs(exact).mean()
        assert error < 1e-3, name
    first_error = jnp.linalg.norm(none.first - many.first) / jnp.linalg.norm(many.first)
    assert float(first_error) < 5e-3
    assert_allclose(none.loss, many.loss, rtol=1.5e-3)  # three of their standard errors
    # d/dt (mean |w_1|^2 - 2 mean w_2^2) vanishes, as for the true flow
    rate = 2 * jnp.mean(jnp.sum(first * none.first, axis=1)) - 4 * jnp.mean(w * none.weight)
    assert abs(float(rate)) < 1e-15


def test_integrated_field_counts_what_the_bounds_hold():
    law, model = BesselLaw(4), net(width=60)
    free = integrated_field(law, *parts(model), Thresholds(1e9, 1e9, 1e9))
    held = integrated_field(law, *parts(model), Thresholds(1e-3, 1e-3, 1e-3))
    assert_allclose(free.pairs, 0)
    assert_allclose(held.pairs, [60, 3, 3])
    assert_allclose(held.share, 1)


def test_a_layer_that_misses_a_ray_is_refused_where_its_gradient_is_infinite():
    # all neurons in the half space x_1 > 0: F = 0 on the ray through -e_1
    narrow = np.abs(np.asarray(sphere(KEY, 30, 4)))
    model = DepthSeparator(narrow, [-0.8, -0.6], [0.7, 0.5])
    inf = float("inf")
    train = lambda population, flow: wf.train(model, population, flow, steps=1)
    heavy = BesselLaw(4)
    for population in (Radial.integrated(heavy), Radial.rays(heavy, KEY, 32)):
        with pytest.raises(ValueError, match="does not see every direction"):
            train(population, wf.GradientDescent(0.1))
        with pytest.raises(ValueError, match="does not see every direction"):
            train(population, wf.ClippedFlow(0.1, inf, inf, inf))
    assert train(Radial.rays(heavy, KEY, 32), wf.ClippedFlow(0.1)).status.good
    assert train(Radial.rays(UniformRadius(4, 2.0), KEY, 32), wf.GradientDescent(0.1)).status.good


def test_direction_error_by_many_directions():
    model = net(width=30)
    layer = model.layer(sphere(KEY, 200_000, 4)) / model.alpha
    assert_allclose(direction_error(model.first), jnp.mean((layer - 1) ** 2), rtol=0.02)


def test_expected_direction_error_of_a_random_start():
    # (1/(2 C^2) - 1) / m1 in the mean over draws; 40 draws at relative deviation of about 0.1
    from wideflow.papers.ren2023.laws.base import c_gamma

    found = [float(direction_error(sphere(jax.random.key(i), 64, 10))) for i in range(40)]
    expected = (1 / (2 * c_gamma(10) ** 2) - 1) / 64
    assert abs(np.mean(found) / expected - 1) < 4 * np.std(found) / expected / np.sqrt(40)


def test_every_estimator_trains():
    law, model = BesselLaw(4), net()
    populations = {
        "fresh": Radial.fresh(law, 64, stratified=True, antithetic=True, evaluation=256),
        "fixed": Radial.fixed(law, KEY, 256, stratified=True),
        "rays": Radial.rays(law, KEY, 32),
        "fresh rays": Radial.rays(law, KEY, 32, fresh=True),
        "integrated": Radial.integrated(law),
    }
    for name, population in populations.items():
        run = wf.train(model, population, wf.ClippedFlow(0.2), steps=20, every=20)
        assert run.status.good, name
        assert run.table.loss.values[-1] < 0.95 * run.table.loss.values[0], name
    inf = float("inf")
    flow = wf.train(model, populations["integrated"], wf.GradientDescent(0.2), steps=20, every=20)
    same = wf.train(
        model, populations["integrated"], wf.ClippedFlow(0.2, inf, inf, inf), steps=20, every=20
    )
    assert_allclose(flow.model.first, same.model.first, rtol=1e-10)


def test_population_as_dataset():
    data = Radial(BesselLaw(4)).sample(KEY, 50)
    assert_allclose(data.targets, np.maximum(1 - np.linalg.norm(data.inputs, axis=1), 0))
    on = Radial.on(BesselLaw(4), data.inputs)
    value = on.objective(wf.losses.HalfMeanSquares(), net()).value(net())
    assert_allclose(
        value,
        0.5 * np.mean((np.asarray(net().outputs(data.inputs)) - data.targets) ** 2),
        rtol=1e-12,
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Radial.fresh(BesselLaw(4), 0), "`batch`"),
        (lambda: Radial.on(BesselLaw(4), np.ones((3, 2))), "`inputs`"),
        (
            lambda: wf.train(
                net(),
                Radial(BesselLaw(4)),
                wf.ClippedFlow(0.1),
                steps=1,
                loss=wf.losses.MeanSquares(),
            ),
            "`loss`",
        ),
        (
            lambda: wf.train(
                wf.Shallow(np.ones((2, 4)), [1.0, 1.0]),
                Radial(BesselLaw(4)),
                wf.GradientDescent(0.1),
                steps=1,
            ),
            "DepthSeparator",
        ),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
