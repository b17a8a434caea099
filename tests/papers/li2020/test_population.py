"""The exact population as an objective: against the limit's own derivation, differences and
samples.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import wideflow as wf
from wideflow.data.objective import gradient_by_autodiff
from wideflow.dynamics.losses import CrossEntropy, HalfMeanSquares, HalfSumSquares, MeanSquares
from wideflow.papers.li2020.limits import hermite
from wideflow.papers.li2020.population import GaussianAbsTeacher

LEARNERS = {"abs": ("abs", 1.0), "relu1": ("relu", 1.0), "relu2": ("relu", 2.0)}


def setting(seed=0, width=6, features=4):
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(width, features)) / 2
    a = rng.uniform(0.5, 1.5, features)
    return weights, a / a.sum(), np.linalg.qr(rng.normal(size=(features, features)))[0]


@pytest.mark.parametrize("variant", LEARNERS)
@pytest.mark.parametrize("memory", [None, 3000])
def test_value_and_gradient_agree_with_the_limit(variant, memory):
    weights, a, directions = setting()
    net = wf.Homogeneous(weights, *LEARNERS[variant])
    objective = GaussianAbsTeacher(a, directions, memory=memory).objective(MeanSquares(), net)
    value, gradient = objective.gradient(net)
    expected = hermite.population_loss(weights, a, directions, variant)
    assert_allclose([value, objective.value(net)], expected, rtol=1e-12)
    assert_allclose(
        len(weights) * gradient["weights"],
        hermite.population_gradient(weights, a, directions, variant),
        atol=1e-14,
    )


@pytest.mark.parametrize("activation", ["abs", "relu"])
def test_shallow_networks_by_differences_and_by_samples(activation):
    _, a, _ = setting()
    net = wf.Shallow.init(
        jax.random.key(0),
        features=4,
        width=5,
        scaling=wf.scalings.Zipf(0.3, 0.5),
        activation=activation,
    )
    teacher = GaussianAbsTeacher(a)
    objective = teacher.objective(MeanSquares(), net)
    value, gradient = objective.gradient(net)
    for index in ((0, 0), (1, 3), (3, 4)):
        steps = [
            eqx.tree_at(lambda n: n.weights, net, net.weights.at[index].add(h))
            for h in (1e-5, -1e-5)
        ]
        up, down = (objective.value(n) for n in steps)
        assert_allclose(gradient["weights"][index], (up - down) / 2e-5, atol=1e-9)
    data = teacher.sample(jax.random.key(1), 100_000)
    squares = np.asarray((net.outputs(data.inputs) - data.targets) ** 2)
    assert abs(squares.mean() - float(value)) < 4 * squares.std() / np.sqrt(len(data))


def test_float32_weights_get_a_float64_loss():
    weights, a, _ = setting()
    net = wf.Homogeneous(weights.astype(np.float32))
    value, gradient = GaussianAbsTeacher(a).objective(MeanSquares(), net).gradient(net)
    assert value.dtype == jnp.float64
    assert gradient["weights"].dtype == jnp.float32
    assert_allclose(value, hermite.population_loss(weights.astype(np.float32), a), rtol=1e-12)


def test_aligned_and_antipodal_neurons():
    a = np.array([0.25, 0.75])
    weights = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 2.0], [0.0, 2.0]])
    net = wf.Homogeneous(weights)
    gradient = GaussianAbsTeacher(a).objective(MeanSquares(), net).gradient(net)[1]["weights"]
    # one mass too many on axis 1: E p_1 = 1/2 against 1/4, E p_2 = 2 against 3/4; all orders push
    # along the axes only
    assert np.isfinite(gradient).all()
    assert abs(gradient[0, 1]) < 1e-15
    assert gradient[0, 0] == -gradient[1, 0]
    assert gradient[2, 1] > 0


@pytest.mark.parametrize("activation", ["abs", "relu"])
def test_the_automatic_gradient_agrees_with_the_hand_written_one(activation):
    weights, a, _ = setting()
    shallow = wf.Shallow(
        np.concatenate([weights, np.zeros((1, weights.shape[1]))]),
        np.linspace(-1, 1, len(weights) + 1),
        activation=activation,
    )
    for net in (wf.Homogeneous(weights, activation), shallow):
        objective = GaussianAbsTeacher(a).objective(MeanSquares(), net)
        value, gradient = objective.gradient(net)
        witness, automatic = gradient_by_autodiff(objective, net)
        assert_allclose(value, witness, rtol=1e-13)
        for name in gradient:
            assert_allclose(automatic[name], gradient[name], rtol=1e-11, atol=1e-14)


def general_teacher():
    """Five directions in four dimensions, correlated, of different lengths, with both signs."""
    rng = np.random.default_rng(8)
    return GaussianAbsTeacher([0.7, -0.4, 1.1, 0.3, -0.9], rng.normal(size=(5, 4)))


def test_any_directions_and_signs_by_samples():
    teacher = general_teacher()
    rng = np.random.default_rng(9)
    net = wf.Homogeneous(rng.normal(size=(6, 4)), "relu", factor=2.0)
    x = rng.normal(size=(400_000, 4))
    y = np.abs(x @ np.asarray(teacher.directions).T) @ np.asarray(teacher.coefficients)
    squares = (np.asarray(net.outputs(x)) - y) ** 2
    error = squares.std() / np.sqrt(len(squares))
    objective = teacher.objective(MeanSquares(), net)
    assert abs(squares.mean() - objective.value(net)) < 4 * error
    assert error < 0.01 * squares.mean()
    value, gradient = objective.gradient(net)
    witness, automatic = gradient_by_autodiff(objective, net)
    assert_allclose(
        [value, *gradient["weights"].ravel()],
        [witness, *automatic["weights"].ravel()],
        rtol=1e-10,
        atol=1e-13,
    )


def test_a_student_that_is_the_teacher_has_no_loss():
    teacher = general_teacher()
    # f* = sum_k a_k |<w*_k, x>| is a shallow network of absolute values
    learner = lambda output: wf.Shallow(
        teacher.directions, output, scaling=wf.scalings.NTK(), activation="abs"
    )
    a = np.asarray(teacher.coefficients)
    x = np.array([1.0, -0.3, 0.2, 2.0])
    net = learner(a * float(teacher.targets(x[None])[0] / learner(a)(x)))  # undoes the scaling
    value, gradient = teacher.objective(MeanSquares(), net).gradient(net)
    assert abs(value) < 1e-13
    assert max(np.abs(g).max() for g in gradient.values()) < 1e-13


def test_floor_of_any_directions_is_the_best_fit_of_degree_two():
    # In the plane and in polar coordinates: f* = r g(t), the even polynomials of degree two are 1
    # and r^2 times cos^2, sin^2, cos sin; the radius has the moments of a chi with two degrees, the
    # angle is uniform.
    teacher = GaussianAbsTeacher([1.0, -0.5, 0.8], [[1.0, 0.2], [0.5, 2.0], [-1.0, 1.0]])
    t = 2 * np.pi * (np.arange(200_000) + 0.5) / 200_000
    circle = np.stack([np.cos(t), np.sin(t)], axis=1)
    f = np.abs(circle @ np.asarray(teacher.directions).T) @ np.asarray(teacher.coefficients)
    moments = {0: 1.0, 1: np.sqrt(np.pi / 2), 2: 2.0, 3: 3 * np.sqrt(np.pi / 2), 4: 8.0}  # E r^k
    basis = [
        (0, np.ones_like(t)),
        (2, np.cos(t) ** 2),
        (2, np.sin(t) ** 2),
        (2, np.cos(t) * np.sin(t)),
    ]
    gram = np.array([[moments[p + q] * np.mean(g * h) for q, h in basis] for p, g in basis])
    right = np.array([moments[p + 1] * np.mean(g * f) for p, g in basis])
    best = moments[2] * np.mean(f**2) - right @ np.linalg.solve(gram, right)
    assert_allclose(teacher.floor, best, rtol=1e-6)


def test_the_floor_is_float64_outside_of_64_bit_too():
    teacher = GaussianAbsTeacher(np.full(30, 1 / 30))
    with jax.enable_x64(False):
        assert abs(teacher.floor / ((1 - 3 / np.pi) / 30) - 1) < 1e-14


def test_losses_and_their_factors():
    weights, a, _ = setting()
    net, teacher = wf.Homogeneous(weights), GaussianAbsTeacher(a)
    whole, default, half = (
        teacher.objective(loss, net).value(net)
        for loss in (MeanSquares(), HalfSumSquares(), HalfMeanSquares())
    )
    assert float(whole) == float(default) == 2 * float(half)


def test_training_the_population_descends_the_mean_field_gradient():
    weights, a, _ = setting()
    run = wf.train(wf.Homogeneous(weights), GaussianAbsTeacher(a), wf.GradientDescent(0.1), steps=3)
    expected = weights
    for _ in range(3):
        expected = expected - 0.1 * np.asarray(hermite.population_gradient(expected, a))
    assert_allclose(run.model.weights, expected, atol=1e-14)
    assert "population" in run.table.attrs["loss"]


def test_target_and_condition():
    teacher = GaussianAbsTeacher([0.25, 0.75], features=3)
    assert teacher.targets([[2.0, -4.0, 9.0]]).tolist() == [0.5 + 3.0]
    assert_allclose(teacher.condition, 2.0)
    assert_allclose(teacher.floor, (1 - 3 / np.pi) * 0.625, rtol=1e-14)
    assert GaussianAbsTeacher([1.0, -1.0]).condition == np.inf


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: GaussianAbsTeacher([]), "coefficients"),
        (lambda: GaussianAbsTeacher([np.nan]), "coefficients"),
        (lambda: GaussianAbsTeacher([0.5, 0.5], [[1.0, 0.0], [0.0, 0.0]]), "directions"),
        (lambda: GaussianAbsTeacher([0.5, 0.5], np.ones((3, 2))), "directions"),
        (lambda: GaussianAbsTeacher([0.5, 0.5], features=1), "features"),
        (lambda: GaussianAbsTeacher([0.5], memory="lots"), "memory"),
        (
            lambda: GaussianAbsTeacher([1.0]).objective(CrossEntropy(), wf.Homogeneous([[1.0]])),
            "loss",
        ),
    ],
)
def test_errors_name_the_argument(call, name):
    with pytest.raises(ValueError, match=f"`{name}`"):
        call()


def test_models_that_do_not_fit_are_told_why():
    teacher = GaussianAbsTeacher([0.5, 0.5])
    with pytest.raises(ValueError, match="'abs' or 'relu'"):
        wf.train(
            wf.Shallow([[1.0, 0.0]], [1.0], activation="tanh"),
            teacher,
            wf.GradientDescent(0.1),
            steps=1,
        )
    with pytest.raises(ValueError, match="3 features"):
        wf.train(wf.Homogeneous(np.ones((2, 3))), teacher, wf.GradientDescent(0.1), steps=1)
