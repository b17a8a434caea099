"""A user's own function swept like an experiment: durable, found again, collected."""

import jax
import numpy as np
import pytest

import wideflow as wf


def distance(key, width=4, rate=0.5):
    """A number that can be computed by hand."""
    draw = jax.random.normal(key, ())
    return {"value": width * rate + 0 * float(draw), "draw": float(draw)}


SPEC = {"experiment": distance, "grid": {"width": [2, 3], "rate": [0.5, 1.0]}, "seeds": 2}


def test_a_function_is_swept_and_found_again(tmp_path):
    swept = wf.sweep(SPEC, tmp_path, workers=1)
    assert (swept.computed, swept.troubles) == (4 * 2, [])
    table = swept.table
    np.testing.assert_array_equal(
        table.value.isel(seed=0).transpose("width", "rate"), [[1.0, 2.0], [1.5, 3.0]]
    )
    expected = [float(jax.random.normal(jax.random.key(s), ())) for s in (0, 1)]
    np.testing.assert_allclose(table.draw.isel(width=0, rate=0), expected, rtol=1e-6)
    again = wf.sweep(SPEC, tmp_path, workers=1)
    assert again.computed == 0


def test_a_parameter_without_a_default_is_named(tmp_path):
    def needy(key, width):
        return {}

    with pytest.raises(ValueError, match="must give its parameter `width` a default"):
        wf.sweep({"experiment": needy, "grid": {"width": [1]}}, tmp_path)


def test_a_seed_of_its_own_is_refused_since_no_seed_of_the_sweep_would_change_it(tmp_path):
    def seeded(seed=0, width=4):
        return {"value": float(np.random.default_rng(seed).normal())}

    with pytest.raises(ValueError, match=r"`seed`.* the JAX key `key`"):
        wf.sweep({"experiment": seeded, "grid": {"width": [1]}, "seeds": 3}, tmp_path)
