"""Embeddings against hand-written formulas."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import wideflow as wf
from wideflow.models.embeddings import virtual_inputs


def test_identity_gram_is_the_scaled_product_of_inputs():
    x = np.array([[1.0, 2.0], [0.0, -1.0], [3.0, 0.5]])
    assert_allclose(wf.embeddings.Identity().gram(x), x @ x.T / 2, rtol=1e-15)


def test_quadratic_lists_all_products_row_by_row():
    # x = (2, 3): x1 x1, x1 x2, x2 x1, x2 x2
    assert_allclose(wf.embeddings.Quadratic()(np.array([2.0, 3.0])), [4.0, 6.0, 6.0, 9.0])
    assert wf.embeddings.Quadratic().features(7) == 49


def test_quadratic_gram_is_the_squared_cosine_kernel():
    x = np.random.default_rng(0).normal(size=(5, 3))
    assert_allclose(wf.embeddings.Quadratic().gram(x), (x @ x.T / 3) ** 2, rtol=1e-12)


def test_random_features_by_hand():
    # z1 = (1, 0), z2 = (0, -1), x = (2, 2): z.x / sqrt 2 = (sqrt 2, -sqrt 2)
    embedding = wf.embeddings.RandomFeatures([[1.0, 0.0], [0.0, -1.0]], "relu")
    assert_allclose(embedding([2.0, 2.0]), [np.sqrt(2), 0.0], rtol=1e-15)
    assert embedding.features(2) == 2


def test_deep_features_with_three_layers_are_random_features():
    key = jax.random.key(3)
    deep = wf.embeddings.DeepRandomFeatures.init(key, 4, 6, layers=3, activation="tanh")
    shallow = wf.embeddings.RandomFeatures.init(key, 4, 6, activation="tanh")
    x = np.random.default_rng(1).normal(size=(3, 4))
    assert deep.layers == 3
    assert_allclose(deep.embed(x), shallow.embed(x), rtol=1e-15)


def test_deep_features_follow_the_recursion():
    rng = np.random.default_rng(2)
    first, inner, x = rng.normal(size=(5, 3)), rng.normal(size=(2, 5, 5)), rng.normal(size=3)
    embedding = wf.embeddings.DeepRandomFeatures(first, inner, "tanh")
    h = first @ x / np.sqrt(3)
    for weights in inner:
        h = weights @ np.tanh(h) / np.sqrt(5)
    assert embedding.layers == 5
    assert_allclose(embedding(x), np.tanh(h), rtol=1e-14)


def test_function_tells_its_features():
    embedding = wf.embeddings.Function(lambda x: jnp.concatenate([x, jnp.sin(x)]))
    assert embedding.features(3) == 6
    assert_allclose(embedding.embed(np.ones((2, 3)))[1], [1, 1, 1, *[np.sin(1)] * 3], rtol=1e-15)


def test_virtual_inputs_have_the_gram_matrix_asked_for():
    gram = np.array([[2.0, 1.0, 1.0], [1.0, 1.0, 0.0], [1.0, 0.0, 1.0]])  # singular
    inputs = virtual_inputs(gram)
    assert_allclose(wf.embeddings.Identity().gram(inputs), gram, atol=1e-14)


def test_preactivations_at_virtual_inputs_have_the_law_of_the_start():
    # rows of H are N(0, G): the covariance of 40000 rows has standard error sqrt((G_aa G_bb +
    # G_ab^2) / m) <= 0.015
    gram = np.array([[1.0, 0.4], [0.4, 2.0]])
    inputs = virtual_inputs(gram)
    net = wf.Shallow.init(
        jax.random.key(0),
        features=2,
        width=40_000,
        scaling=wf.scalings.MeanField(),
        activation="tanh",
    )
    h = np.asarray(net.preactivations(inputs))
    assert_allclose(h @ h.T / 40_000, gram, atol=4 * 0.015)


@pytest.mark.parametrize(
    ("build", "name"),
    [
        (lambda: wf.embeddings.RandomFeatures([1.0, 2.0]), "weights"),
        (lambda: wf.embeddings.RandomFeatures.init(jax.random.key(0), 2, 0), "features"),
        (
            lambda: wf.embeddings.DeepRandomFeatures.init(jax.random.key(0), 2, 3, layers=2),
            "layers",
        ),
        (lambda: wf.embeddings.DeepRandomFeatures(np.ones((3, 2)), [np.ones((2, 2))]), "inner"),
        (lambda: wf.embeddings.RandomFeatures(np.ones((3, 2)))([1.0, 2.0, 3.0]), "x"),
        (lambda: wf.embeddings.RandomFeatures(np.ones((3, 2))).features(5), "input_dimension"),
        (lambda: wf.embeddings.Identity().embed([1.0, 2.0]), "inputs"),
        (lambda: wf.embeddings.Function(lambda x: x[0]).features(2), "function"),
    ],
)
def test_wrong_input_is_named(build, name):
    with pytest.raises(ValueError, match=f"`{name}`"):
        build()
