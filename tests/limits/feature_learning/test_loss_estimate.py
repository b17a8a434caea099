"""Coverage of the loss's error bar on made-up outputs whose truth is known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from wideflow.limits.feature_learning.arguments import half_square
from wideflow.limits.feature_learning.loss_estimate import loss_of_mean

REPEATS, TRIALS, T95 = 4, 2000, 3.182  # Student's 97.5 % quantile with three degrees of freedom


@pytest.mark.parametrize("size", [0.0, 0.3, 1.0, 10.0])
def test_the_interval_covers_the_loss_of_the_true_outputs(size):
    # Residuals of `size` standard deviations of one repeat, at five points: trials are the "steps".
    targets = np.linspace(-1, 1, 5)
    residual = size * np.array([1.0, -1.0, 0.5, 0.0, 2.0])
    noise = np.random.default_rng(0).normal(size=(REPEATS, TRIALS, 5))
    losses, errors = loss_of_mean(
        half_square, jnp.asarray(targets + residual + noise), jnp.asarray(targets)
    )
    covered = np.mean(np.abs(np.asarray(losses) - 0.5 * residual @ residual) < T95 * errors)
    assert covered > 0.95 - 4 * np.sqrt(0.95 * 0.05 / TRIALS)
    if size == 10.0:  # linear regime: the error bar is no wider than it must be
        assert covered < 0.95 + 4 * np.sqrt(0.95 * 0.05 / TRIALS)


def test_the_mean_of_losses_would_not_cover():
    # What the loss of the mean replaces: at zero residual it reports half the variance, with an
    # error bar too small for it.
    noise = np.random.default_rng(0).normal(size=(REPEATS, TRIALS, 5))
    each = 0.5 * np.sum(noise**2, axis=-1)
    errors = each.std(axis=0, ddof=1) / np.sqrt(REPEATS)
    assert np.mean(each.mean(axis=0) < T95 * errors) < 0.6


def test_another_loss_by_finite_differences_of_its_repeats():
    # To first order the error is the deviation of the repeats' own losses: repeats very close to
    # each other.
    loss = lambda f, y: jnp.log1p(jnp.exp(-f * y))
    outputs = 0.4 + 1e-6 * np.random.default_rng(1).normal(size=(6, 3, 2))
    targets = jnp.asarray([1.0, -1.0])
    value, error = loss_of_mean(loss, jnp.asarray(outputs), targets)
    each = np.asarray(jax.vmap(lambda f: jnp.sum(loss(f, targets), axis=-1))(jnp.asarray(outputs)))
    np.testing.assert_allclose(value, each.mean(axis=0), rtol=1e-9)
    np.testing.assert_allclose(error, each.std(axis=0, ddof=1) / np.sqrt(6), rtol=1e-3)
