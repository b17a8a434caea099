"""The tasks of chen2022's Experiments 2 and 3 against their definitions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import wideflow as wf


def test_axis_types_are_the_four_of_the_paper():
    data = wf.data.axis_types(jax.random.key(0), samples=4000, features=6)
    x, y = np.asarray(data.inputs), np.asarray(data.targets)
    assert_allclose(y, x[:, 0] ** 2 - x[:, 1] ** 2)
    kinds, counts = np.unique(x[:, :2], axis=0, return_counts=True)
    assert sorted(map(tuple, kinds)) == [(-1.0, 0.0), (0.0, -1.0), (0.0, 1.0), (1.0, 0.0)]
    assert np.all(np.abs(counts - 1000) < 5 * np.sqrt(750))  # binomial, 5 deviations
    assert np.abs(x[:, 2:]).max() <= 1
    assert_allclose((x[:, 2:] ** 2).mean(), 1 / 3, atol=5 * np.sqrt(4 / 45 / 16000))


def test_the_teacher_is_a_network_on_the_quadratic_embedding():
    key = jax.random.key(1)
    data = wf.data.quadratic_teacher(key, samples=20, features=4)
    # recover the same numbers through `Shallow` with the teacher's own draws
    from wideflow._core.randomness import named_key

    weights = jax.random.normal(named_key(key, "teacher", "hidden"), (5, 4, 4))
    signs = jax.random.rademacher(named_key(key, "teacher", "output"), (5,), float)
    net = wf.Shallow(
        weights.reshape(5, 16), signs, wf.scalings.MeanField(), "relu", wf.embeddings.Quadratic()
    )
    assert_allclose(net.outputs(data.inputs), data.targets, atol=1e-14)


def test_training_and_test_data_share_their_teacher_and_nothing_else():
    key = jax.random.key(2)
    train, test = (wf.data.quadratic_teacher(key, 10, 3, part=part) for part in ("train", "test"))
    assert np.abs(np.asarray(train.inputs - test.inputs)).min() > 0
    longer = wf.data.quadratic_teacher(key, 11, 3, part="test")
    assert longer.inputs.shape == (11, 3)
    assert not jnp.array_equal(train.targets, test.targets)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda k: wf.data.axis_types(k, 0), "samples"),
        (lambda k: wf.data.axis_types(k, 3, 1), "features"),
        (lambda k: wf.data.quadratic_teacher(k, 3, 0), "features"),
    ],
)
def test_wrong_counts_are_named(call, name):
    with pytest.raises(ValueError, match=f"`{name}`"):
        call(jax.random.key(0))
