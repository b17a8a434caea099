"""The first order in the richness against the exact linear theory, the sampled theory, and its own order."""

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

import wideflow as wf
from wideflow._core.activations import activation
from wideflow.limits.feature_learning.lazy_expansion import kernel_change, rules

X = np.random.default_rng(1).normal(size=(3, 4))
Y = np.array([1.0, -0.7, 0.4])
GRAM = X @ X.T / 4


def descent_sums(kernel, rate, steps):
    """S and P of descent on the frozen kernel: sums over steps in the place of the integrals."""
    errors, total, double = Y.copy(), np.zeros(3), np.zeros((3, 3))
    for _ in range(steps):
        double += rate * np.outer(errors, total)
        total += rate * errors
        errors = errors - rate * kernel @ errors
    return total, double


def linear_kernels(theory):
    phi, g = theory.features[0], theory.gradients[0]
    at = lambda kernel: np.einsum("kakb->kab", kernel)
    return GRAM * at(g) + at(phi)


def test_linear_networks_to_the_next_order():
    # Theta(richness) = Theta_0 + richness^2 Theta_2 + O(richness^4): halving the richness cuts the defect by four
    rate, steps = 0.1, 8
    act = activation("linear")
    change = kernel_change(act, GRAM, *rules(GRAM)[1], *descent_sums(2 * GRAM, rate, steps))
    defects = []
    for richness in (0.1, 0.05):
        exact = wf.limits.linear_field_theory(
            X, Y, depth=1, rate=rate, steps=steps, richness=richness
        )
        measured = (linear_kernels(exact)[-1] - 2 * GRAM) / richness**2
        defects.append(np.abs(measured - change).max())
    assert defects[1] < 2e-3
    assert defects[0] / defects[1] == pytest.approx(4, rel=0.1)


def test_outputs_of_linear_networks():
    # (f(richness) - f(0)) / richness^2 by descent at two rates, extrapolated to the flow: second orders in rate and richness are left
    expansion = wf.limits.lazy_expansion(X, Y, [0.5, 1.0], "linear")
    richness, coefficients = 0.1, []
    for steps in (10, 20):
        settings = {"depth": 1, "rate": 1 / steps, "steps": steps}
        rich, lazy = (
            np.asarray(wf.limits.linear_field_theory(X, Y, richness=g, **settings).outputs)
            for g in (richness, 1e-3)
        )
        coefficients.append((rich - lazy)[[steps // 2, steps]] / richness**2)
    flow = 2 * coefficients[1] - coefficients[0]
    size = np.abs(flow).max()
    assert_allclose(expansion.output_coefficients, flow, atol=0.05 * size)
    assert_allclose(
        expansion.outputs_at(0.3), expansion.outputs + 0.09 * expansion.output_coefficients
    )


def test_tanh_against_the_sampled_theory():
    rate, steps, richness = 0.2, 4, 0.1
    settings = {"rate": rate, "steps": steps, "samples": 40_000, "repeats": 2}
    key = jax.random.key(0)
    kernels = [
        np.asarray(wf.limits.field_theory(key, X, Y, 1, richness=g, **settings).kernels[-1])
        for g in (richness, 1e-4)
    ]
    u, weights = rules(GRAM)[1]
    act = activation("tanh")
    value, slope = np.asarray(act.value(u)), np.asarray(act.slope(u))
    mean = lambda a: (a * np.asarray(weights)[:, None]).T @ a
    change = kernel_change(act, GRAM, u, weights, *descent_sums(mean(value) + GRAM * mean(slope), rate, steps))  # fmt: skip
    # the same draws in both, so that their error is relative: 1/sqrt(80,000) times a spread of a few, and richness^2
    measured = (kernels[0] - kernels[1]) / richness**2
    assert_allclose(measured, change, atol=0.03 * np.abs(change).max())


def test_more_points_than_dimensions_and_bad_input():
    line = np.linspace(-1, 1, 6)[:, None]  # rank one
    low = wf.limits.lazy_expansion(line, line[:, 0], [1.0])
    assert low.error < 1e-9
    with pytest.raises(ValueError, match="activation"):
        wf.limits.lazy_expansion(X, Y, [1.0], "relu")
    with pytest.raises(ValueError, match="times"):
        wf.limits.lazy_expansion(X, Y, [1.0, 0.5])
