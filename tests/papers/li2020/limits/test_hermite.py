"""Population loss, gradients and tensor orders against quadrature, explicit tensors and
autodiff.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.polynomial import hermite_e
from numpy.testing import assert_allclose
from scipy.integrate import quad

from wideflow.papers.li2020.limits import hermite
from wideflow.papers.li2020.limits.gaussian_cloud import gaussian_cloud_field
from wideflow.papers.li2020.limits.sign_averages import (
    plateau_drift,
    symmetric_order_field,
    symmetric_order_losses,
)
from wideflow.papers.li2020.limits.symmetric_cloud import SymmetricCloud, sign_group

VARIANTS = ("abs", "relu1", "relu2")


def draw(width, features, seed=0):
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(width, features)) / math.sqrt(features)
    a = rng.uniform(0.5, 1.5, features)
    directions = np.linalg.qr(rng.normal(size=(features, features)))[0]
    return weights, a / a.sum(), directions


def network(weights, x, variant):
    r = jnp.sqrt(jnp.sum(weights**2, axis=1))
    z = x @ weights.T
    hidden = jnp.abs(z) if variant == "abs" else jnp.maximum(z, 0)
    return {"abs": 1, "relu1": 1, "relu2": 2}[variant] * hidden @ r / weights.shape[0]


def circle_loss(weights, a, directions, variant, nodes=20_000):
    """In the plane, for 1-homogeneous functions: E|x|^2 = 2 times the mean over the circle (kinks
    cost O(nodes^-2)).
    """
    t = 2 * np.pi * (np.arange(nodes) + 0.5) / nodes
    x = np.stack([np.cos(t), np.sin(t)], axis=1)
    return 2 * jnp.mean((network(weights, x, variant) - jnp.abs(x @ directions.T) @ a) ** 2)


@pytest.mark.parametrize("k", [0, 1, 2, 3, 4, 6, 8, 12])
def test_coefficients_are_squared_hermite_integrals(k):
    # c_k = (E |z| He_k(z))^2 / k!
    basis = hermite_e.HermiteE.basis(k)
    density = lambda z: math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    parts = [
        quad(lambda z, s=s: z * basis(s * z) * density(z), 0, 14, epsabs=1e-13)[0] for s in (1, -1)
    ]
    expected = sum(parts) ** 2 / math.factorial(k)
    assert_allclose(hermite.coefficients(12)[k], expected, rtol=1e-9, atol=1e-12)


def test_coefficients_printed_values_and_sums():
    c = np.asarray(hermite.coefficients(12))
    pi = math.pi
    assert_allclose(
        c[[0, 2, 4, 6, 8]],
        [2 / pi, 1 / pi, 1 / (12 * pi), 1 / (40 * pi), 5 / (448 * pi)],
        rtol=1e-14,
    )
    assert_allclose(c[[10, 12]], [0.001934175, 0.001186880], atol=5e-10)
    assert not c[1::2].any()
    # sum of all is K(1) = 1, and the tail decays like j^-3/2 / (3 pi^3/2) beyond order 2j
    long = hermite.coefficients(4000)
    assert_allclose(1 - long.sum(), 2000**-1.5 / (3 * pi**1.5), rtol=1e-3)
    assert_allclose(hermite.coefficients(2, "relu"), c[:3] / 4 + np.array([0, 0.25, 0]), rtol=1e-15)
    assert [float(hermite.coefficients(1, v)[1]) for v in VARIANTS] == [0.0, 0.25, 1.0]


@pytest.mark.parametrize("variant", VARIANTS)
def test_loss_and_gradient_against_circle_quadrature(variant):
    weights, a, directions = draw(3, 2)
    expected, slope = jax.value_and_grad(circle_loss)(jnp.asarray(weights), a, directions, variant)
    assert_allclose(hermite.population_loss(weights, a, directions, variant), expected, rtol=1e-6)
    gradient = hermite.population_gradient(weights, a, directions, variant)
    assert_allclose(gradient, 3 * slope, atol=5e-4)  # autodiff of the quadrature jumps at its kinks


@pytest.mark.parametrize("variant", VARIANTS)
def test_gradient_is_width_times_the_derivative_of_the_loss(variant):
    weights, a, directions = draw(4, 3)
    gradient = np.asarray(hermite.population_gradient(weights, a, directions, variant))
    h = 1e-5
    for index in np.ndindex(weights.shape):
        step = np.zeros_like(weights)
        step[index] = h
        up, down = (
            hermite.population_loss(weights + s * step, a, directions, variant) for s in (1, -1)
        )
        assert_allclose(gradient[index], 4 * (up - down) / (2 * h), atol=2e-9)


def test_gradient_weights_by_hand():
    # c_2 = 1/pi, c_4 = 1/(12 pi), c_6 = 1/(40 pi): b = 4 c, b' = (4j - 4) c, B1 = 4 j c
    for order, c in ((2, 1 / math.pi), (4, 1 / (12 * math.pi)), (6, 1 / (40 * math.pi))):
        j = order // 2
        expected = (4 * c, (4 * j - 4) * c, 4 * j * c, (4 * j - 4) * c)
        assert_allclose(hermite.gradient_weights(order), expected, rtol=1e-14)
    assert_allclose(hermite.gradient_weights(0), (8 / math.pi, 0, 8 / math.pi, 0), rtol=1e-15)
    with pytest.raises(ValueError, match="`order`"):
        hermite.gradient_weights(3)


def test_gradient_weights_are_those_of_the_order_field():
    # (2.5) at one particle: b T + b' (T - vbar <vbar, T>), T from its definition
    weights, a, _ = draw(5, 3, seed=7)
    v = np.array([0.3, -0.8, 0.5])
    r, s = np.linalg.norm(weights, axis=1), weights @ v
    cosines, unit = s / r / np.linalg.norm(v), v / np.linalg.norm(v)
    for order in (2, 4, 6):
        t = (s * cosines ** (order - 2)) @ weights / 5 - a * v * unit ** (order - 2)
        g = hermite.gradient_weights(order)
        expected = g.b * t + g.b_prime * (t - unit * (unit @ t))
        field = hermite.order_field(v[None], weights, a, (order,))[0, 0]
        assert_allclose(field, expected, rtol=1e-12)


def degenerate():
    """Neurons that coincide, oppose each other, lie on a target direction, and one without
    weights.
    """
    weights, a, _ = draw(8, 3, seed=4)
    weights[1], weights[2], weights[3] = 2 * weights[0], -weights[0], [0.0, 1.3, 0.0]
    weights[4] = 0.0
    return weights, a


@pytest.mark.parametrize("variant", VARIANTS)
def test_automatic_gradients_of_the_loss_are_finite_and_right(variant):
    for seed in range(3):
        weights, a, directions = draw(12, 6, seed)
        loss = lambda w, a=a, v=directions: hermite.population_loss(w, a, v, variant)
        expected = hermite.population_gradient(weights, a, directions, variant) / 12
        assert_allclose(jax.grad(loss)(jnp.asarray(weights)), expected, rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("variant", VARIANTS)
def test_automatic_gradients_at_degenerate_networks(variant):
    weights, a = degenerate()
    loss = lambda w: hermite.population_loss(w, a, variant=variant)
    gradient = jax.grad(loss)(jnp.asarray(weights))
    direction = np.random.default_rng(0).normal(size=weights.shape)
    direction[4] = 0.0
    h = 1e-4  # terms |t|^3 at coincident neurons: central differences cost O(h^2)
    difference = (loss(weights + h * direction) - loss(weights - h * direction)) / (2 * h)
    assert_allclose(np.sum(gradient * direction), difference, atol=3e-7)
    assert np.all(gradient[4] == 0.0)  # 2-homogeneous: the derivative at a zero row is zero


@pytest.mark.parametrize("variant", ["abs", "relu2"])
def test_second_derivatives_by_differentiating_the_field(variant):
    weights, a = degenerate()
    weights[4] = [0.1, 0.4, -0.2]  # at a zero row a 2-homogeneous function has no second derivative
    at = jnp.asarray(weights)
    direction = np.random.default_rng(1).normal(size=weights.shape)
    field = lambda w: hermite.population_gradient(w, a, variant=variant)
    product = jax.jvp(field, (at,), (jnp.asarray(direction),))[1]
    twice = jax.jvp(
        jax.grad(lambda w: hermite.population_loss(w, a, variant=variant)),
        (at,),
        (jnp.asarray(direction),),
    )[1]
    assert_allclose(8 * twice, product, atol=1e-12)
    h = 1e-6  # one-sided terms |t| t of the field at coincident neurons: errors O(h)
    difference = (field(at + h * direction) - field(at - h * direction)) / (2 * h)
    assert_allclose(product, difference, atol=2e-5)


def test_automatic_derivatives_of_what_stands_around_the_loss_are_finite():
    weights, a = degenerate()
    particles = np.concatenate([weights[:3], np.eye(3)[:1], np.zeros((1, 3))])
    functions = {
        "order_losses": lambda w: hermite.order_losses(w, a, range(5)),
        "order_gradients": lambda w: hermite.order_gradients(w, a, range(5), variant="relu2"),
        "field": lambda w: hermite.field(particles, w, a),
        "loss_tail": lambda w: hermite.loss_tail(w, a, 4),
        "coincidence_tail": lambda w: hermite.coincidence_tail(w, a, 4),
        "gaussian_cloud_field": lambda w: gaussian_cloud_field(w, a),
        "symmetric_order_losses": lambda w: symmetric_order_losses(w, a),
        "symmetric_order_field": lambda w: symmetric_order_field(w, w, a, 4),
        "plateau_drift": lambda w: plateau_drift(w, a),
        "cloud": lambda w: SymmetricCloud(w, sign_group(3)).loss(a),
    }
    for name, function in functions.items():
        derivative = jax.jit(jax.jacrev(function))(jnp.asarray(weights))
        assert np.isfinite(np.asarray(derivative)).all(), name


def test_derivatives_of_the_orders_where_neurons_are_orthogonal():
    # order 2 is 4 c_2 W (M - A) with M = W^T W / m; along T at W = r I:
    # 4 c_2 (T (M - A) + r (r T + r T^T) / m). Its cosines are exactly 0 off the diagonal.
    m, r = 3, 1.3
    a, t = np.array([0.2, 0.3, 0.5]), np.random.default_rng(0).normal(size=(3, 3))
    gradient = lambda w: hermite.order_gradients(w, a, (2,))[0]
    along = jax.jvp(gradient, (r * jnp.eye(m),), (jnp.asarray(t),))[1]
    expected = 4 / math.pi * (t * (r**2 / m - a) + r**2 / m * (t + t.T))
    assert_allclose(along, expected, atol=1e-13)
    loss = lambda w: hermite.order_losses(w, a, (2,))[0]
    twice = jax.jvp(jax.grad(loss), (r * jnp.eye(m),), (jnp.asarray(t),))[1]
    assert_allclose(m / math.pi * twice, expected, atol=1e-13)
    # and order 4 by differences of its gradient
    fourth = lambda w: hermite.order_gradients(w, a, (4,))[0]
    along, h = jax.jvp(fourth, (r * jnp.eye(m),), (jnp.asarray(t),))[1], 1e-5
    difference = (fourth(r * np.eye(m) + h * t) - fourth(r * np.eye(m) - h * t)) / (2 * h)
    assert_allclose(along, difference, atol=1e-9)


def test_monte_carlo():
    weights, a, directions = draw(5, 4)
    x = np.random.default_rng(1).normal(size=(200_000, 4))
    squares = np.asarray(
        (network(jnp.asarray(weights), x, "relu2") - np.abs(x @ directions.T) @ a) ** 2
    )
    error = squares.std() / math.sqrt(len(squares))
    assert (
        abs(float(hermite.population_loss(weights, a, directions, "relu2")) - squares.mean())
        < 4 * error
    )


def test_relu_variants_and_the_absolute_value():
    weights, a, directions = draw(6, 4)
    mean = (np.linalg.norm(weights, axis=1)[:, None] * weights).mean(0)
    loss = {v: float(hermite.population_loss(weights, a, directions, v)) for v in VARIANTS}
    assert_allclose(loss["relu2"], loss["abs"] + mean @ mean, rtol=1e-13)
    shrunk = hermite.population_loss(weights / math.sqrt(2), a, directions, "relu2")
    assert_allclose(loss["relu1"], shrunk, rtol=1e-12)
    # the flow of relu1 is that of relu2 on W / sqrt 2 at half speed
    g1 = hermite.population_gradient(weights, a, directions, "relu1")
    g2 = hermite.population_gradient(weights / math.sqrt(2), a, directions, "relu2")
    assert_allclose(g1 / math.sqrt(2), g2 / 2, atol=1e-14)


def test_two_homogeneity():
    weights, a, _ = draw(5, 3)
    one, two = hermite.population_loss(weights, a), hermite.population_loss(2 * weights, 4 * a)
    assert_allclose(two, 16 * one, rtol=1e-12)


def power(u, k):
    """u^{(x) k} of each row, flattened."""
    tensor = jnp.ones((u.shape[0], 1))
    for _ in range(k):
        tensor = (tensor[:, :, None] * u[:, None, :]).reshape(u.shape[0], -1)
    return tensor


def tensor_loss(weights, a, directions, k, halved):
    """|| E p u^{(x) k} - sum a w*^{(x) k} ||_F^2 with the tensors written out."""
    p = jnp.sum(weights**2, axis=1)
    u = weights / jnp.sqrt(p)[:, None]
    difference = halved * (p @ power(u, k)) / len(weights) - a @ power(directions, k)
    return jnp.sum(difference**2)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("k", [0, 2, 4, 6])
def test_orders_against_explicit_tensors(variant, k):
    weights, a, directions = draw(4, 3, seed=2)
    halved = 0.5 if variant == "relu1" else 1.0
    reference = jax.jit(jax.value_and_grad(tensor_loss), static_argnums=3)
    value, slope = reference(jnp.asarray(weights), a, directions, k, halved)
    assert_allclose(
        hermite.order_losses(weights, a, (k,), directions, variant), [value], rtol=1e-10
    )
    c = hermite.coefficients(6, variant)[k]
    gradient = hermite.order_gradients(weights, a, (k,), directions, variant)[0]
    assert_allclose(gradient, 4 * c * slope, atol=1e-13)


@pytest.mark.parametrize("variant", VARIANTS)
def test_first_order(variant):
    weights, a, _ = draw(4, 3)
    first = lambda w: jnp.sum(jnp.mean(jnp.linalg.norm(w, axis=1)[:, None] * w, axis=0) ** 2)
    value, slope = jax.value_and_grad(first)(jnp.asarray(weights))
    assert_allclose(hermite.order_losses(weights, a, 1, variant=variant), [value], rtol=1e-13)
    c = {"abs": 0, "relu1": 0.25, "relu2": 1}[variant]
    assert_allclose(
        hermite.order_gradients(weights, a, [1], variant=variant)[0], 4 * c * slope, atol=1e-14
    )
    assert not hermite.order_losses(weights, a, (3, 5), variant=variant).any()


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_orders_sum_to_the_loss(variant):
    # with the coincident directions' tail in closed form the rest decays geometrically
    weights, a, directions = draw(4, 3, seed=3)
    through = 1200
    c = hermite.coefficients(through, variant)
    parts = hermite.order_losses(weights, a, range(through + 1), directions, variant)
    whole = hermite.population_loss(weights, a, directions, variant)
    slow = hermite.coincidence_tail(weights, a, through, directions, variant)
    assert_allclose(c @ parts + slow, whole, rtol=1e-12)
    assert_allclose(hermite.loss_tail(weights, a, through, directions, variant), slow, rtol=1e-6)
    gradients = hermite.order_gradients(weights, a, range(0, 401), directions, variant).sum(0)
    assert_allclose(
        gradients, hermite.population_gradient(weights, a, directions, variant), atol=1e-3
    )


def test_tail_is_the_rest():
    weights, a, _ = draw(5, 3)
    parts = hermite.order_losses(weights, a, (0, 2, 4))
    expected = (
        hermite.population_loss(weights, a) - (2 * parts[0] + parts[1] + parts[2] / 12) / math.pi
    )
    assert_allclose(hermite.loss_tail(weights, a, 4), expected, rtol=1e-12)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("gap", [0.0, 1e-12, 1e-8, 1e-4])
def test_gradient_is_continuous_at_aligned_and_antipodal_neurons(sign, gap):
    base, a, _ = draw(3, 3)
    pair = lambda g: np.concatenate([base, sign * base[:1] + g * np.array([[0.3, -0.2, 0.5]])])
    at, near = (hermite.population_gradient(pair(g), a) for g in (0.0, gap))
    assert np.isfinite(near).all()
    # modulus of continuity: K' has a square root singularity times a vanishing tangent, so linear
    # up to a log
    assert_allclose(near, at, atol=50 * gap + 1e-14)


def test_neurons_on_the_target_are_a_stationary_point():
    a = np.array([0.2, 0.3, 0.5])
    weights = np.diag(np.sqrt(3 * a)) * [[1], [-1], [1]]
    assert abs(float(hermite.population_loss(weights, a))) < 1e-15
    assert_allclose(hermite.population_gradient(weights, a), 0, atol=5e-15)
    assert_allclose(hermite.order_losses(weights, a, (0, 2, 4, 6, 8)), 0, atol=1e-15)


def test_masses_are_multiplicities():
    weights, a, _ = draw(3, 3)
    repeated = weights[[0, 0, 1, 2]]
    masses = np.array([0.5, 0.25, 0.25])
    assert_allclose(
        hermite.population_loss(weights, a, masses=masses),
        hermite.population_loss(repeated, a),
        rtol=1e-12,
    )
    field = hermite.field(weights, weights, a, masses=masses)
    assert_allclose(field, hermite.population_gradient(repeated, a)[1:], atol=1e-14)


@pytest.mark.parametrize("memory", [1, 4000, None])
def test_memory_budget_changes_nothing(memory):
    weights, a, directions = draw(11, 3)
    args = (weights, a, directions, "relu2")
    assert_allclose(
        hermite.population_loss(*args, memory=memory), hermite.population_loss(*args), rtol=1e-14
    )
    assert_allclose(
        hermite.population_gradient(*args, memory=memory),
        hermite.population_gradient(*args),
        atol=1e-15,
    )
    orders = lambda **k: hermite.order_gradients(weights, a, (0, 1, 2, 4), directions, "relu2", **k)
    assert_allclose(orders(memory=memory), orders(), atol=1e-15)


def test_target_moments_by_hand():
    # E|z| = sqrt(2/pi), Var|z| = 1 - 2/pi, independent coordinates
    mean, second, variance = hermite.target_moments([0.3, 0.7])
    assert_allclose(mean, math.sqrt(2 / math.pi), rtol=1e-14)
    assert_allclose(variance, 0.58 * (1 - 2 / math.pi), rtol=1e-14)
    assert_allclose(second, variance + mean**2, rtol=1e-14)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda w, a: hermite.population_loss(w, a, variant="tanh"), "variant"),
        (lambda w, a: hermite.population_loss(w[0], a), "weights"),
        (lambda w, a: hermite.population_loss(w, np.ones(9)), "coefficients"),
        (lambda w, a: hermite.population_loss(w, a, np.ones((3, 3))), "directions"),
        (lambda w, a: hermite.population_loss(w, a, masses=[1.0]), "masses"),
        (lambda w, a: hermite.field(w[:, :2], w, a), "particles"),
        (lambda w, a: hermite.coefficients(-1), "order"),
        (lambda w, a: hermite.coefficients(2, "gelu"), "activation"),
        (lambda w, a: hermite.order_losses(w, a, (-2,)), "orders"),
    ],
)
def test_errors_name_the_argument(call, name):
    weights, a, _ = draw(4, 3)
    with pytest.raises(ValueError, match=f"`{name}`"):
        call(weights, a)
