"""Errata that no other test looks at."""

import jax
import numpy as np
import pytest

import wideflow as wf


@pytest.mark.parametrize("width", [64, 4096])
def test_ntk_outputs_are_of_order_one_at_every_width(width):
    """chen2022, Appendix I, says that they would blow up. For |x|^2 = D the pre-activations are
    N(0, 1), and

    f = m^{-1/2} sum c_i relu(h_i) with c_i = +-1 has variance E relu(h)^2 = 1/2, whatever m:
    deviation 0.7071.
    """
    x = np.ones((1, 8))
    draws = [
        float(wf.Shallow.init(jax.random.key(seed), features=8, width=width).outputs(x)[0])
        for seed in range(400)
    ]
    # the deviation of a sample deviation is sigma / sqrt(2 n) = 0.025 for 400 normal draws: four of
    # them
    assert np.std(draws) == pytest.approx(np.sqrt(0.5), abs=0.1)
