import math

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

from wideflow._core.scalings import NTK, MeanField, Weights, Zipf
from wideflow.limits.kernels import mean_ntk
from wideflow.limits.random_gram import (
    departure,
    gram_variance,
    limit_nodes,
    random_ntg,
    truncation_error,
    variance_constant,
    zipf_sum,
    zipf_tail,
)

INPUTS = np.random.default_rng(3).normal(size=(3, 4)) / 2


def test_zipf_sums_are_zeta_values():
    assert zipf_sum(0.5) == pytest.approx(0.4, rel=1e-14)  # zeta(4)/zeta(2)^2 = (pi^4/90)/(pi^4/36)
    assert zipf_sum(0.5, power=1.0) == pytest.approx(1.0, rel=1e-14)
    assert zipf_sum(0.25) == pytest.approx((math.pi**8 / 9450) / (math.pi**4 / 90) ** 2, rel=1e-13)
    values = [zipf_sum(alpha) for alpha in np.linspace(0.05, 0.97, 40)]
    assert np.all(np.diff(values) < 0)
    assert values[0] > 0.999
    assert values[-1] < 0.01


def test_zipf_tails_lie_between_their_integrals():
    s, count = 1 / 0.7, 2000
    tail = zipf_tail(0.7, count)
    assert tail == pytest.approx(0.03, abs=0.001)
    direct = sum(j**-s for j in range(1, 200_001)) + (200_000.5) ** (1 - s) / (
        s - 1
    )  # midpoint remainder
    head = sum(j**-s for j in range(1, count + 1))
    assert tail == pytest.approx(1 - head / direct, rel=1e-6)
    assert count ** (1 - s) / (s - 1) / direct > tail > (count + 1) ** (1 - s) / (s - 1) / direct
    assert zipf_tail(0.5, 0) == pytest.approx(1.0)


@pytest.mark.parametrize("name", ["relu", "tanh"])
def test_draws_have_the_stated_mean_and_variance(name):
    # 3000 draws; four standard errors of the sample means.
    scaling, draws = Zipf(0.4, 0.6), 3000
    grams = np.asarray(random_ntg(jax.random.key(0), INPUTS, scaling, name, draws=draws))
    mean = np.asarray(mean_ntk(INPUTS, name))
    error = grams.std(0) / math.sqrt(draws)
    assert np.all(np.abs(grams.mean(0) - mean) < 4 * error + 1e-15)
    squares = ((grams - mean) ** 2).sum((1, 2))
    assert abs(
        squares.mean() - gram_variance(INPUTS, scaling, name)
    ) < 4 * squares.std() / math.sqrt(draws)


def test_variance_constant_of_relu_on_orthogonal_inputs():
    # Only the diagonal carries weight: (|x|^2/d)^2 Var(coin of 1/2) = 1/4 each.
    assert variance_constant(np.eye(2) * math.sqrt(2), "relu") == pytest.approx(2 * 0.25)


def test_variance_constant_of_sine_in_closed_form():
    x, y = INPUTS[0], INPUTS[1]
    total = 0.0
    for u, v in ((x, x), (x, y), (y, x), (y, y)):
        p, q, r = u @ u / 4, u @ v / 4, v @ v / 4
        mean = math.exp(-(p + r) / 2) * math.cosh(q)
        fourth = (
            1 + math.exp(-2 * p) + math.exp(-2 * r) + math.exp(-2 * p - 2 * r) * math.cosh(4 * q)
        ) / 4
        total += q**2 * (fourth - mean**2)
    assert variance_constant(INPUTS[:2], "sin") == pytest.approx(total, rel=1e-11)


def test_finite_width_variance_by_enumeration_of_signs():
    # d = 1, one input x = 1, ReLU: the Gram is sum_j lambda_j b_j with fair coins b_j; variance sum
    # lambda_j^2 / 4.
    weights = np.asarray(Zipf(0.3, 0.5).node_weights(5))
    assert gram_variance(np.ones((1, 1)), Zipf(0.3, 0.5), "relu", width=5) == pytest.approx(
        np.sum(weights**2) / 4
    )


def test_truncation_error_falls_and_is_what_more_nodes_remove():
    scaling = Zipf(0.0, 0.6)
    few, many = (truncation_error(INPUTS, scaling, "relu", nodes) for nodes in (10, 1000))
    assert many < few / 20
    constant = variance_constant(INPUTS, "relu")
    kept = sum(float(w) ** 2 for w in scaling.limit_weights(10))
    assert few**2 == pytest.approx(constant * (zipf_sum(0.6) - kept), rel=1e-9)


def test_symmetric_scaling_is_not_random():
    mean = mean_ntk(INPUTS, "relu")
    for scaling in (NTK(), Zipf(gamma=1.0)):
        assert_allclose(random_ntg(jax.random.key(1), INPUTS, scaling, "relu"), mean, rtol=1e-15)
        assert gram_variance(INPUTS, scaling, "relu") == 0.0


def test_one_node_sequence_is_one_random_feature():
    # sequence (1): the limit is XX^T/d o s s^T for one random s, so entries are 0 or <x_i, x_k>/d.
    gram = np.asarray(random_ntg(jax.random.key(2), INPUTS, Weights((1.0,)), "relu"))
    products = INPUTS @ INPUTS.T / 4
    assert np.all(np.isclose(gram, 0.0) | np.isclose(gram, products))


def test_a_callable_sequence_is_the_zipf_law_it_spells():
    spelt = limit_nodes(Weights(lambda j: 6 / (math.pi**2 * j**2), gamma=0.2), 50)
    zipf = limit_nodes(Zipf(0.2, 0.5), 50)
    assert_allclose(spelt.head, zipf.head, rtol=1e-12)
    assert spelt.tail == pytest.approx(zipf.tail, rel=1e-10)
    assert spelt.tail_squares >= zipf.tail_squares


def test_departure_from_the_kernel_regime():
    assert departure(Zipf(0.5, 0.5)) == pytest.approx(0.25 * 0.4)
    assert departure(NTK(), 50) == pytest.approx(1 / 50)
    assert departure(NTK()) == 0.0
    assert departure(Weights((1.0,))) == 1.0
    finite = [departure(Zipf(0.5, 0.5), width) for width in (100, 10_000)]
    assert finite[0] > finite[1] > 0.1  # from above, (3.5) of Proposition A.2


def test_errors():
    with pytest.raises(ValueError, match="`scaling` must be `NTK`"):
        random_ntg(jax.random.key(0), INPUTS, MeanField(), "relu")
    with pytest.raises(ValueError, match="`power` must exceed `alpha`"):
        zipf_sum(0.7, power=0.5)
    with pytest.raises(ValueError, match="must sum to 1"):
        limit_nodes(Weights(lambda j: 1.0 / j), 50)
