"""Certificates of networks with several outputs: the Gram matrix of all of them, and what theorems
about one output say.
"""

import math

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import expm

import wideflow as wf
from wideflow.observables.block_kernels import block_gram, block_of_features

OUTPUTS = 3


@pytest.fixture(scope="module")
def case():
    random = np.random.default_rng(0)
    x = random.normal(size=(6, 4))
    x /= 1.01 * np.linalg.norm(x, axis=1).max()
    net = wf.Shallow.init(
        1,
        features=4,
        width=200,
        outputs=OUTPUTS,
        scaling=wf.scalings.Zipf(0.5, 0.7),
        activation="tanh",
    )
    return net, wf.Dataset(x, random.normal(size=(6, OUTPUTS)))


@pytest.fixture(scope="module")
def certificate(case):
    return wf.certify(*case)


def dense_gram(net, x):
    """From the whole Jacobian by forward mode, rows ordered (sample, output)."""
    jacobian = jax.jacfwd(
        lambda w: wf.Shallow(w, net.output, net.scaling, net.activation).outputs(x).reshape(-1)
    )(net.hidden)
    jacobian = np.asarray(jacobian).reshape(len(x) * OUTPUTS, -1)
    return jacobian @ jacobian.T


def test_block_gram_is_that_of_the_jacobian(case):
    net, data = case
    assert_allclose(
        block_gram(net, data.inputs), dense_gram(net, data.inputs), rtol=1e-10, atol=1e-14
    )
    features = net.embed(data.inputs)
    by_autodiff = block_of_features.dispatch(object)(net, features)
    assert_allclose(by_autodiff, block_gram(net, data.inputs), rtol=1e-10, atol=1e-14)


def test_one_output_is_the_plain_gram():
    net = wf.Shallow.init(0, features=3, width=20)
    x = np.random.default_rng(0).normal(size=(5, 3))
    assert_allclose(block_gram(net, x), wf.observables.tangent_gram(net, x), rtol=1e-12)


def test_spectrum_times_and_coupling(case, certificate):
    net, data = case
    gram = dense_gram(net, data.inputs)
    assert_allclose(certificate.own.eigenvalues, np.linalg.eigvalsh(gram), rtol=1e-8, atol=1e-13)
    first = (np.asarray(net.outputs(data.inputs)) - data.targets).reshape(-1)
    for share, time in zip(certificate.timing.shares, certificate.timing.times):
        if math.isfinite(time):
            left = expm(-gram * time) @ first
            assert_allclose(left @ left, share * (first @ first), rtol=1e-6)
    mixed = np.asarray(net.scales) * np.asarray(net.output)
    assert_allclose(certificate.coupling, np.linalg.eigvalsh(mixed @ mixed.T), rtol=1e-10)
    assert "coupling of the outputs" in str(certificate)


def test_the_mean_over_hidden_weights_is_a_kronecker_product(case):
    net, data = case
    draws = [
        np.asarray(
            block_gram(
                wf.Shallow(
                    np.random.default_rng(k).normal(size=(200, 4)), net.output, net.scaling, "tanh"
                ),
                data.inputs,
            )
        )
        for k in range(300)
    ]
    mixed = np.asarray(net.scales) * np.asarray(net.output)
    expected = np.kron(np.asarray(wf.limits.mean_ntk(data.inputs, "tanh")), mixed @ mixed.T)
    error = np.std(draws, axis=0) / math.sqrt(len(draws))
    assert np.all(np.abs(np.mean(draws, axis=0) - expected) < 5 * error + 1e-12)


def test_theorems_extend_or_say_why_not(certificate):
    found = {p.theorem: p for p in certificate.promises if p.name.startswith(("caron", "chen"))}
    for name in ("Theorem41", "Theorem42", "LemmaD3", "LemmaD5", "Theorem1", "Certificate"):
        assert found[name].outcome is wf.Outcome.NOT_APPLICABLE
        assert "3 outputs here share their hidden weights" in found[name].message
    assert found["Proposition31"].outcome is wf.Outcome.HOLDS
    assert "the worst of 3 outputs" in found["PropositionC1"].message
    assert math.isfinite(found["PropositionC1"].required)


def test_lemma_2_shares_its_probability_among_the_outputs(case):
    data = case[1]
    plain = wf.Shallow.init(1, features=4, width=200, outputs=OUTPUTS, activation="tanh")
    found = next(p for p in wf.certify(plain, data).promises if p.theorem == "Lemma2")
    smallest = np.linalg.norm(data.targets, axis=0).min()
    total = 200 * np.sum(data.inputs**2) / 4  # chat^2 = m under the map from NTK, sum of G_aa
    needed = 2 * total * math.log(2 * 6 / (0.1 / OUTPUTS)) / ((math.sqrt(2) - 1) ** 2 * smallest**2)
    assert_allclose(found.required, needed, rtol=1e-8)


def test_a_run_of_all_outputs(case):
    net, data = case
    certificate = wf.certify(net, data, train=True, time=4.0)
    found = {p.theorem: p for p in certificate.promises}
    assert found["LemmaD1"].outcome is wf.Outcome.HOLDS
    assert "all 3 outputs together" in found["LemmaD1"].message
    assert found["LemmaD4"].outcome is wf.Outcome.HOLDS
    end = certificate.followed.model
    assert_allclose(
        certificate.followed.last["kernel_gap"],
        np.linalg.eigvalsh(dense_gram(end, data.inputs))[0],
        rtol=1e-6,
    )


def test_an_axis_of_one_output_changes_nothing():
    x, y = np.random.default_rng(0).normal(size=(5, 3)), np.arange(5.0)
    x /= np.linalg.norm(x, axis=1).max()
    with_axis = wf.Shallow.init(0, features=3, width=32, outputs=1)
    without = wf.Shallow(with_axis.hidden, with_axis.output[0])
    one, other = (
        wf.certify(with_axis, wf.Dataset(x, y[:, None])),
        wf.certify(without, wf.Dataset(x, y)),
    )
    assert [p.outcome for p in one.promises] == [p.outcome for p in other.promises]
    assert_allclose(one.own.eigenvalues, other.own.eigenvalues, rtol=1e-12)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # three epochs
def test_the_classifier_certifies_all_its_outputs():
    x = np.random.default_rng(0).normal(size=(12, 2))
    model = wf.WideClassifier(width=32, epochs=3, solver="descent", early_stopping=False)
    told = model.fit(x, np.where(x[:, 0] > 0, "a", "b")).certificate_
    assert told.subject["outputs"] == 2
    assert len(told.own.eigenvalues) == 24
    assert "cross-entropy" in " ".join(told.notes)
