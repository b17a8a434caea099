"""NumPy moves what lies in the host's memory: JAX's numbers, and no program for a new shape."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compile_log import compilations

from wideflow import Dataset, GradientDescent, Shallow, train
from wideflow._core import host
from wideflow._core.arrays import check_finite, real_array


def test_new_shapes_compile_nothing():
    arrays = [jax.device_put(np.full((7, 3, 11), k)) for k in (1.0, 2.0)]
    with compilations() as names:
        stacked = host.stack(arrays)
        parts = host.unstack(stacked)
        check_finite("x", stacked)
        real_array("x", np.ones((7, 3, 13)))
        turned, halved = host.transpose(arrays[0]), host.scale(0.5, arrays[1])
    assert names == []
    np.testing.assert_array_equal(turned, arrays[0].T)
    np.testing.assert_array_equal(halved, 0.5 * arrays[1])
    with compilations() as names:  # the log itself is heard
        jnp.stack(arrays)
    assert names == ["stack"]
    assert all(isinstance(part, jax.Array) for part in parts)
    np.testing.assert_array_equal(stacked, jnp.stack(arrays))
    np.testing.assert_array_equal(parts[1], arrays[1])
    assert stacked.dtype == parts[0].dtype == jnp.float64


def test_what_has_no_numbers_on_the_host_stays_with_jax():
    keys = [jax.random.key(k) for k in (0, 1)]
    assert not host.on_host(keys[0])
    assert host.stack(keys).shape == (2,)
    assert bool(jnp.all(host.unstack(host.stack(keys))[1] == keys[1]))
    rows = jax.jit(lambda x: host.unstack(host.stack([x, 2 * x]))[1])(jnp.ones(3))
    np.testing.assert_array_equal(rows, [2.0, 2.0, 2.0])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_every_kind_of_array_is_judged(bad):
    for dtype in (np.float32, np.float64, jnp.bfloat16):
        values = np.array([1.0, bad], dtype)
        assert not host.all_finite(values)
        assert not host.all_finite(jnp.asarray(values))
        assert host.all_finite(jnp.asarray(values[:1]))


def test_an_array_that_is_written_to_later_changes_no_copy():
    values = np.ones(1024)
    copy = host.on_device(values)
    values[:] = 5.0
    assert float(copy.sum()) == 1024
    parent = jax.device_put(np.arange(2048.0).reshape(2, 1024))
    first, _ = host.unstack(parent)
    parent.delete()
    assert float(first[3]) == 3.0


def test_members_come_out_as_they_went_in():
    nets = [Shallow.init(jax.random.key(k), features=3, width=5) for k in (0, 1)]
    data = Dataset(np.eye(3), np.ones(3))
    run = train(nets, data, GradientDescent(0.1), steps=0)
    for before, after in zip(nets, run.model, strict=True):
        np.testing.assert_array_equal(before.weights, after.weights)
