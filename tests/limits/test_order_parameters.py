"""The equations against autodiff of the error, another quadrature, li2020's exact population, and
hand-made cases.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import wideflow as wf
from wideflow.limits import OnlineEquations, Overlaps, order_parameters

N = np.random.default_rng(3)
H, V, A = N.normal(size=(2, 5)) / 2, N.normal(size=(1, 5)) / 2, np.array([0.8, -1.2])
STATE = Overlaps.of_weights(H, V, A)
SMALL = Overlaps.of_weights(H / 2, V, A)  # variances up to one


@pytest.mark.parametrize("name", ["erf", "relu", "square"])
def test_the_flow_is_the_gradient_of_the_error(name):
    """h' = -eta d(error)/dh moves M and Q by the chain rule; the noise term is off."""
    equations = OnlineEquations(
        name, name, [0.7], rate=0.3, output_rate=0.2, scale=1.5, online=False
    )

    def error(h, a):
        return equations._error(h @ V.T, h @ h.T, jnp.asarray(V @ V.T), a)

    # central differences: good to 1e-9, and no derivative of the code under test
    slope = lambda f, x: np.array(
        [(f(x + d) - f(x - d)) / 2e-5 for d in 1e-5 * np.eye(x.size).reshape(-1, *x.shape)]
    ).reshape(x.shape)
    error = jax.jit(error)
    dh, da = slope(lambda h: error(h, A), H), slope(lambda a: error(H, a), A)
    M, Q, a = equations.field(STATE)
    np.testing.assert_allclose(M, -0.3 * dh @ V.T, atol=1e-8)
    np.testing.assert_allclose(Q, -0.3 * (dh @ H.T + H @ dh.T), atol=1e-8)
    np.testing.assert_allclose(a, -0.2 * da, atol=1e-8)


def test_closed_forms_agree_with_the_rule_for_general_teachers():
    """The same teacher as a function: tensor quadrature, without Stein's lemma, tilting or arc
    sines.
    """
    erf = jax.scipy.special.erf
    common = dict(rate=0.5, noise=0.3, decay=0.1, batch=2, output_rate=1.0)
    closed = OnlineEquations("erf", "erf", [0.7], **common)
    general = OnlineEquations("erf", lambda rho: 0.7 * erf(rho[0]), **common, order=40)
    for one, two in zip(closed.field(SMALL), general.field(SMALL), strict=True):
        np.testing.assert_allclose(one, two, atol=1e-7)
    assert wf.limits.order_parameter_error(closed, SMALL) == 0.0
    assert 0 < wf.limits.order_parameter_error(general, SMALL) < 1e-7


def test_labels_noise_and_batch_by_hand():
    # a linear student at its teacher has e = 0: Q' = eta^2/B Delta E[sigma'^2] = 0.25/4 * 0.3
    equations = OnlineEquations("linear", "linear", rate=0.5, noise=0.3, batch=4)
    same = Overlaps([[1.0]], [[1.0]], [[1.0]], [1.0])
    M, Q, _ = equations.field(same)
    np.testing.assert_allclose([M[0, 0], Q[0, 0]], [0.0, 0.25 / 4 * 0.3], atol=1e-15)


def test_linear_regression_has_an_exponential_solution():
    # M' = -eta (M - 1), Q' = -2 eta (Q - M) + eta^2 (Q - 2M + 1): v = Q - 2M + 1 obeys v' =
    # (eta^2 - 2 eta) v
    eta, times = 0.5, np.array([0.5, 1.0, 4.0])
    start = Overlaps([[0.2]], [[1.5]], [[1.0]], [1.0])
    path = order_parameters(OnlineEquations("linear", "linear", rate=eta), start, times)
    np.testing.assert_allclose(path.M[:, 0, 0], 1 - 0.8 * np.exp(-eta * times), atol=1e-7)
    expected = 0.5 * (1.5 - 0.4 + 1) * np.exp((eta**2 - 2 * eta) * times)
    np.testing.assert_allclose(path.error, expected, atol=1e-7)
    assert path.status == "done"
    between = path.at(0.7)
    np.testing.assert_allclose(between.M[0, 0], 1 - 0.8 * np.exp(-eta * 0.7), atol=1e-6)
    # eta > 2 is unstable
    late = np.linspace(1.0, 50.0, len(times))
    wild = order_parameters(OnlineEquations("linear", "linear", rate=4.0), start, late)
    assert wild.status == "diverged"
    assert np.isnan(wild.M[-1, 0, 0])


def test_spherical_neurons_keep_their_length():
    equations = OnlineEquations("erf", "erf", [0.7], rate=0.5, spherical=True)
    M, Q, _ = equations.field(STATE)
    np.testing.assert_allclose(np.diag(Q), 0.0, atol=1e-15)
    free = OnlineEquations("erf", "erf", [0.7], rate=0.5).field(STATE)
    radial = 0.5 * np.diag(free[1]) / np.diag(STATE.Q)
    np.testing.assert_allclose(M, free[0] - radial[:, None] * STATE.M, atol=1e-15)


def test_the_flow_is_the_exact_population_dynamics_of_absolute_values():
    """li2020's objective at d = 4 is E e^2 without a half, so 2 t = eta d tau; weights are sqrt(d)
    times the rows of H.
    """
    d, width = 4, 2
    v = np.eye(2, d)
    weights, output = N.normal(size=(width, d)), np.array([1.0, 0.6])
    net = wf.Shallow(weights, output, activation="relu")
    tau = 0.3
    run = wf.train(
        net,
        wf.populations.GaussianAbsTeacher([0.5, 0.8], v),
        wf.GradientFlow(tolerance=1e-10),
        time=d * tau / 2,
    )
    equations = OnlineEquations("relu", "abs", [0.5, 0.8], scale=width**-0.5, online=False)
    start = Overlaps.of_weights(weights / np.sqrt(d), v, output)
    path = order_parameters(equations, start, [tau], rtol=1e-11, atol=1e-13)
    end = np.asarray(run.model.hidden) / np.sqrt(d)
    np.testing.assert_allclose(path.M[-1], end @ v.T, atol=1e-8)
    np.testing.assert_allclose(path.Q[-1], end @ end.T, atol=1e-8)


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: Overlaps([[2.0]], [[1.0]], [[1.0]], [1.0]), "negative eigenvalue"),
        (lambda: Overlaps([[0.1]], [[1.0]], [[1.0]], [1.0, 2.0]), "output"),
        (lambda: OnlineEquations("erf", "erf", [0.0]), "coefficients"),
        (lambda: OnlineEquations("sign"), "activation"),
        (lambda: OnlineEquations("relu", "tanh"), "teacher"),
        (lambda: OnlineEquations("tanh", wf.activations.sign(), online=False), "teacher"),
        (lambda: OnlineEquations(rate=-1.0), "rate"),
        (lambda: order_parameters(OnlineEquations(), STATE, [1.0, 0.5]), "times"),
        (lambda: OnlineEquations(coefficients=[1.0, 1.0]).field(STATE), "coefficients"),
    ],
)
def test_bad_input(call, word):
    with pytest.raises(ValueError, match=word):
        call()
