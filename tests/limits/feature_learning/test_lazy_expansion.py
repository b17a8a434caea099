"""The first order in the richness against the exact linear theory, the sampled theory, and its own
order.
"""

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import wideflow as wf
from wideflow._core.activations import activation
from wideflow.limits.feature_learning.lazy_expansion import (
    kernel_change,
    layers_at_start,
    tangent_kernel,
)

X = np.random.default_rng(1).normal(size=(3, 4))
Y = np.array([1.0, -0.7, 0.4])
GRAM = jnp.asarray(X @ X.T / 4)


def descent_sums(kernel, rate, steps):
    """S and P of descent on the frozen kernel: sums over steps in the place of the integrals."""
    errors, total, double = Y.copy(), np.zeros(3), np.zeros((3, 3))
    for _ in range(steps):
        double += rate * np.outer(errors, total)
        total += rate * errors
        errors = errors - rate * kernel @ errors
    return total, double


def linear_kernels(theory):
    """Theta at every step: the sum over l of G^{l+1} o Phi^l."""
    at = lambda kernels: np.einsum("lkakb->lkab", kernels)
    phi, g = at(theory.features), at(theory.gradients)
    return GRAM * g[0] + np.sum(g[1:] * phi[:-1], axis=0) + phi[-1]


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_linear_networks_to_the_next_order(depth):
    # Theta(richness) = Theta_0 + richness^2 Theta_2 + O(richness^4): halving the richness cuts the
    # defect by four
    rate, steps = 0.1, 6
    act = activation("linear")
    layers, kernel = layers_at_start(act, GRAM, depth, 0), (depth + 1) * GRAM
    assert_allclose(tangent_kernel(layers), kernel, atol=1e-6)
    change = kernel_change(act, GRAM, layers, *descent_sums(kernel, rate, steps))
    defects = []
    for richness in (0.08, 0.04):
        exact = wf.limits.linear_field_theory(
            X, Y, depth=depth, rate=rate, steps=steps, richness=richness
        )
        measured = (linear_kernels(exact)[-1] - kernel) / richness**2
        defects.append(np.abs(measured - change).max() / np.abs(change).max())
    assert defects[1] < 2e-2
    assert defects[0] / defects[1] == pytest.approx(4, rel=0.1)


def test_outputs_of_linear_networks():
    # (f(richness) - f(0)) / richness^2 by descent at two rates, extrapolated to the flow: second
    # orders in rate and richness are left
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


@pytest.mark.parametrize(
    "depth", [2, *(pytest.param(depth, marks=pytest.mark.slow) for depth in (1, 3))]
)
def test_tanh_against_the_sampled_theory(depth):
    rate, steps, keys, quotients = 0.3, 3, 8, []
    act = activation("tanh")
    layers = layers_at_start(act, GRAM, depth, 0)
    change = kernel_change(act, GRAM, layers, *descent_sums(tangent_kernel(layers), rate, steps))
    settings = {"rate": rate, "steps": steps, "samples": 2**12, "repeats": 2}
    for key in range(keys):
        # the same draws at every richness; Richardson takes off the order richness^4
        far, near, start = (
            np.asarray(wf.limits.field_theory(key, X, Y, depth, richness=g, **settings).kernels[-1])
            for g in (0.4, 0.2, 1e-4)
        )
        quotients.append((4 * (near - start) / 0.2**2 - (far - start) / 0.4**2) / 3)
    error = np.std(quotients, axis=0, ddof=1) / np.sqrt(keys)
    assert error.max() < 0.1 * np.abs(change).max()
    # One in a thousand by Student's t with seven degrees of freedom, and 1 % for the next order of
    # Richardson.
    allowed = 5.4 * error + 0.01 * np.abs(change).max()
    assert np.all(np.abs(np.mean(quotients, axis=0) - change) < allowed)
    # Responses at equal times and through curvature matter: without either one the kernel is
    # elsewhere.
    if depth > 1:
        for part in ({"instant": 0 * GRAM}, {"onward": None}):
            less = [
                layer._replace(**{n: layer.back if v is None else v for n, v in part.items()})
                for layer in layers
            ]
            other = kernel_change(
                act, GRAM, less, *descent_sums(tangent_kernel(layers), rate, steps)
            )
            assert np.any(np.abs(np.mean(quotients, axis=0) - other) > allowed)


def test_flow_at_depth_is_descent_with_small_steps():
    # Coefficients of the flow against the exact linear theory's at two rates, extrapolated.
    expansion = wf.limits.lazy_expansion(X[:2], Y[:2], [0.4], "linear", depth=3)
    richness, coefficients = 0.05, []
    for steps in (8, 16):
        settings = {"depth": 3, "rate": 0.4 / steps, "steps": steps}
        rich, lazy = (
            np.asarray(wf.limits.linear_field_theory(X[:2], Y[:2], richness=g, **settings).outputs)[
                -1
            ]
            for g in (richness, 1e-3)
        )
        coefficients.append((rich - lazy) / richness**2)
    flow = 2 * coefficients[1] - coefficients[0]
    assert_allclose(expansion.output_coefficients[0], flow, atol=0.05 * np.abs(flow).max())


def test_more_points_than_dimensions_and_bad_input():
    line = np.linspace(-1, 1, 6)[:, None]  # rank one
    low = wf.limits.lazy_expansion(line, line[:, 0], [1.0])
    assert low.error < 1e-9
    with pytest.raises(ValueError, match="activation"):
        wf.limits.lazy_expansion(X, Y, [1.0], "relu")
    with pytest.raises(ValueError, match="times"):
        wf.limits.lazy_expansion(X, Y, [1.0, 0.5])
