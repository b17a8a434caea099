"""Concepts by their written formulas, padding by its norms."""

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

import wideflow as wf
from wideflow.data import (
    ThreeLayerConcept,
    TwoLayerConcept,
    plain_concept,
    polynomial,
    smooth,
    unit_padding,
)


def unit_rows(rng, *shape):
    rows = rng.normal(size=shape)
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def test_two_layer_concept_is_formula_3():
    rng = np.random.default_rng(0)
    w1, w2, a, x = (
        unit_rows(rng, 3, 4),
        unit_rows(rng, 3, 4),
        rng.uniform(-1, 1, (2, 3)),
        rng.normal(size=4),
    )
    concept = TwoLayerConcept(a, w1, w2, (smooth("sin", 3.0), smooth("cos"), smooth("exp")))
    phi = np.array([np.sin(3 * w1[0] @ x), np.cos(w1[1] @ x), np.exp(w1[2] @ x)])
    assert_allclose(
        concept(x),
        [sum(a[r, i] * phi[i] * (w2[i] @ x) for i in range(3)) for r in range(2)],
        rtol=1e-13,
    )
    assert concept.outputs(np.stack([x, x])).shape == (2, 2)


@pytest.mark.parametrize("general", [False, True], ids=["(6)", "(9)"])
def test_three_layer_concept_is_formulas_6_and_9(general):
    rng = np.random.default_rng(1)
    w1, w2, w3, w4 = (unit_rows(rng, 2, 3) for _ in range(4))
    v1, v2, a, x = (
        unit_rows(rng, 2, 2),
        unit_rows(rng, 2, 2),
        rng.uniform(-1, 1, 2),
        rng.normal(size=3),
    )
    extra = {"first_linear": w3, "second_linear": w4} if general else {}
    concept = ThreeLayerConcept(
        a,
        (smooth("tanh"), polynomial((0.0, 0.0, 1.0))),
        v1,
        v2,
        w1,
        w2,
        smooth("sin"),
        (smooth("cos"), smooth("exp")),
        **extra,
    )
    first = np.array([np.sin(w1[j] @ x) * (w3[j] @ x if general else 1) for j in range(2)])
    second = np.array(
        [f(w2[j] @ x) * (w4[j] @ x if general else 1) for j, f in enumerate((np.cos, np.exp))]
    )
    outer = (np.tanh, np.square)
    expected = sum(a[i] * outer[i](v1[i] @ first) * (v2[i] @ second) for i in range(2))
    assert_allclose(concept(x), expected, rtol=1e-12)


def test_plain_network_has_second_factor_one():
    rng = np.random.default_rng(2)
    w, v, x = unit_rows(rng, 3, 4), unit_rows(rng, 2, 3), rng.normal(size=4)
    concept = plain_concept([0.5, -1.0], smooth("sin"), v, w, smooth("tanh"))
    hidden = np.tanh(w @ x)
    assert_allclose(concept(x), 0.5 * np.sin(v[0] @ hidden) - np.sin(v[1] @ hidden), rtol=1e-12)
    assert_allclose(np.linalg.norm(concept.second_mix, axis=1), 1.0)


def test_named_targets():
    x = np.array([0.3, -0.4, 0.1, 0.2, 0.5, 0.5])
    assert_allclose(
        wf.data.product_concept(smooth("cos", 6.0), smooth("cos", 6.0), 5)(x),
        np.cos(1.8) * np.cos(2.4),
        rtol=1e-13,
    )
    assert_allclose(
        wf.data.composite_of_sines(5)(x), np.sin(3 * (np.sin(0.9) + np.sin(-1.2))), rtol=1e-12
    )


def test_padding_of_real_data():
    raw = np.random.default_rng(3).normal(size=(20, 4))
    rule = unit_padding(raw)
    x = np.asarray(rule(raw))
    assert x.shape == (20, 6)
    assert_allclose(np.linalg.norm(x, axis=1), 1.0, rtol=1e-13)
    assert_allclose(x[:, -1], 0.5)
    assert_allclose(np.max(np.linalg.norm(x[:, :4], axis=1)), np.sqrt(0.75), rtol=1e-13)
    far = np.asarray(
        rule(raw[:1] * 100)
    )  # a test point beyond the fitted radius is clipped onto it
    assert_allclose(np.linalg.norm(far), 1.0, rtol=1e-13)
    assert_allclose(far[0, -2], 0.0, atol=1e-7)


def test_padding_of_sphere_data_adds_one_coordinate():
    raw = unit_rows(np.random.default_rng(4), 10, 3) * 7
    x = np.asarray(unit_padding(raw)(raw))
    assert x.shape == (10, 4)
    assert_allclose(np.linalg.norm(x, axis=1), 1.0, rtol=1e-13)
    sphere = np.asarray(wf.data.padded_sphere(jax.random.key(0), 10, 3))
    assert_allclose(np.linalg.norm(sphere, axis=1), 1.0, rtol=1e-13)
    assert_allclose(sphere[:, -1], 0.5)


def test_labels_and_noise():
    concept = wf.data.product_concept(smooth("sin"), smooth("cos"), 3)
    clean = wf.data.concept_data(jax.random.key(0), concept, samples=2000, features=3)
    noisy = wf.data.concept_data(jax.random.key(0), concept, samples=2000, features=3, noise=0.4)
    assert_allclose(
        clean.targets, np.sin(clean.inputs[:, 0]) * np.cos(clean.inputs[:, 1]), rtol=1e-12
    )
    assert_allclose(clean.inputs, noisy.inputs)
    assert_allclose(np.std(noisy.targets - clean.targets), 0.4, rtol=4 / np.sqrt(4000))


def test_errors_name_the_argument():
    row = [[1.0, 0.0]]
    with pytest.raises(ValueError, match=r"`inner`.*norm 2"):
        TwoLayerConcept([1.0], [[2.0, 0.0]], row, smooth("sin"))
    TwoLayerConcept([1.0], [[2.0, 0.0]], row, smooth("sin"), unit=False)
    with pytest.raises(ValueError, match="`output`"):
        TwoLayerConcept([2.0], row, row, smooth("sin"))
    with pytest.raises(ValueError, match="`activations`"):
        TwoLayerConcept([1.0], row, row, (smooth("sin"), smooth("cos")))
    with pytest.raises(ValueError, match="`first_mix`"):
        ThreeLayerConcept(
            [1.0], smooth("sin"), [[0.5]], [[1.0]], row, row, smooth("sin"), smooth("sin")
        )
    with pytest.raises(ValueError, match="`raw`"):
        unit_padding(np.zeros((2, 2)))
    with pytest.raises(ValueError, match=r"`raw` must be finite, got nan at index \(1, 0\)"):
        unit_padding([[1.0, 0.0], [np.nan, 1.0]])
    on_sphere = unit_padding([[3.0, 4.0], [0.0, 5.0]])
    with pytest.raises(ValueError, match=r"`raw` must hold nonzero rows.*got zero in row 1"):
        on_sphere([[1.0, 0.0], [0.0, 0.0]])
