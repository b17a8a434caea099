"""Certificates against independent computation: NumPy closed forms, hand derivations, the theorems
called directly.
"""

import json
import math

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

import wideflow as wf
from wideflow.certify import Statement, prepare, register, registry
from wideflow.runs.json_encoding import plain


def relu_mean_gram(x):
    """<x, x'>/d (pi - angle)/(2 pi), in NumPy."""
    norms = np.linalg.norm(x, axis=1)
    cosine = np.clip(x @ x.T / np.outer(norms, norms), -1, 1)
    return x @ x.T / x.shape[1] * (np.pi - np.arccos(cosine)) / (2 * np.pi)


def own_gram(net, x):
    z = x @ np.asarray(net.hidden).T / math.sqrt(x.shape[1])
    masks = (z > 0).astype(float)
    return (x @ x.T) / x.shape[1] * ((masks * np.asarray(net.scales) ** 2) @ masks.T)


@pytest.fixture(scope="module")
def data():
    return wf.data.sphere_sines(jax.random.key(0), samples=8, features=5)


@pytest.fixture(scope="module")
def net():
    return wf.Shallow.init(0, features=5, width=64, scaling=wf.scalings.Zipf(0.5, 0.7))


@pytest.fixture(scope="module")
def certificate(net, data):
    return wf.certify(net, data)


def test_spectra_agree_with_numpy(certificate, net, data):
    x = np.asarray(data.inputs)
    for report, gram in (
        (certificate.mean, relu_mean_gram(x)),
        (certificate.own, own_gram(net, x)),
    ):
        values = np.linalg.eigvalsh(gram)
        assert_allclose(report.eigenvalues, values, rtol=1e-8, atol=1e-14)
        assert_allclose(report.effective_rank, np.trace(gram) ** 2 / np.sum(gram**2), rtol=1e-10)
        assert_allclose(report.condition, values[-1] / values[0], rtol=1e-8)
        assert report.resolved


def test_laziness_by_a_second_route(certificate, net, data):
    # the lazy path's end from the matrix exponential of the whole Jacobian's kernel, written out in
    # NumPy
    x, y = np.asarray(data.inputs), np.asarray(data.targets)
    gram, time = own_gram(net, x), certificate.laziness.time
    values, vectors = np.linalg.eigh(gram)
    residual = np.asarray(net.outputs(x)) - y
    push = vectors @ ((1 - np.exp(-values * time)) / values * (vectors.T @ residual))
    masks = (x @ np.asarray(net.hidden).T > 0).astype(float)
    mixed = np.asarray(net.scales * net.output)
    step = -(masks * mixed * push[:, None]).T @ x / math.sqrt(5)
    moved = wf.Shallow(np.asarray(net.hidden) + step, net.output, net.scaling)
    change = np.linalg.norm(own_gram(moved, x) - gram) / np.linalg.norm(gram)
    shift = np.asarray(moved.outputs(x) - net.outputs(x))
    gap = np.linalg.norm(shift + gram @ push) / np.linalg.norm(shift)
    assert_allclose(certificate.laziness.here, (change, gap), rtol=1e-8)
    assert_allclose(certificate.laziness.here.index, 1 / (1 + max(change, gap)), rtol=1e-8)


def test_ntk_gets_lazier_with_width_and_zipf_does_not(data):
    slopes = {}
    for name, scaling in (("ntk", wf.scalings.NTK()), ("zipf", wf.scalings.Zipf(0.2, 0.5))):
        net = wf.Shallow.init(1, features=5, width=512, scaling=scaling, activation="tanh")
        slopes[name] = wf.certify(net, data).laziness.slope
    assert slopes["ntk"] < -0.4
    assert slopes["zipf"] > -0.2


def test_every_paper_is_there_and_statements_agree_with_direct_calls(certificate, net, data):
    papers = {p.name.split()[0] for p in certificate.promises}
    assert papers == {"caron2023", "chen2022", "allenzhu2018", "li2020", "ren2023"}
    direct = wf.theorems.caron2023.PropositionC1()(net, data, failure_probability=0.1)
    promise = next(p for p in certificate.promises if p.theorem == "PropositionC1")
    assert promise.outcome is direct.outcome
    assert promise.numbers["gap"] == pytest.approx(direct.numbers["gap"], rel=1e-10)
    assert all(p.message for p in certificate.promises)
    assert "Lemma D.1" in " ".join(certificate.later)


def test_text_and_dictionary(certificate):
    text = str(certificate)
    for piece in (
        "kappa_n",
        "VACUOUS",
        "times too narrow",
        "laziness index",
        "predicted time",
        "Do not apply here",
        "li2020",
    ):
        assert piece in text
    told = json.loads(json.dumps(plain(certificate.to_dict(), spelt=False)))
    assert told["mean_gram"]["resolved"] is True
    assert len(told["theorems"]) == len(certificate.promises)
    assert {p.title for p in certificate.figure().panels} >= {
        "spectrum of the tangent Gram matrix",
        "loss over time",
        "required width",
    }


def test_chen_is_judged_in_its_own_scaling():
    # orthonormal inputs: G = I/d; leaky ReLU has slopes bounded below, large output weights make
    # beta small
    data = wf.Dataset(np.eye(3), 0.01 * np.ones(3))
    ntk = wf.Shallow.init(0, features=3, width=4000, activation="leaky_relu", symmetric=True)
    found = {p.theorem: p for p in wf.certify(ntk, data).promises}
    mapped = wf.maps.ntk_as_mean_field(ntk, 1.0).model
    variance = float(np.mean(np.diag(np.eye(3) @ np.eye(3).T / 3)))
    interval = wf.theorems.chen2022.suggested_interval(ntk.activation, variance)
    direct = wf.theorems.chen2022.Certificate()(mapped, data, interval=interval)
    assert found["Certificate"].outcome is direct.outcome
    if (
        direct.holds
    ):  # rates in the time of the given network: mean-field time is NTK time over the width
        assert_allclose(
            found["Certificate"].rate, direct.numbers["certified_rate"] / 4000, rtol=1e-10
        )
    assert direct.holds


def test_train_compares_promises_with_what_happened(data):
    net = wf.Shallow.init(0, features=5, width=128, activation="tanh")
    certificate = wf.certify(net, data, train=True, time=5.0)
    outcomes = {p.theorem: p.outcome for p in certificate.promises}
    assert outcomes["LemmaD1"] is wf.Outcome.HOLDS
    assert outcomes["LemmaD4"] is wf.Outcome.HOLDS
    assert not certificate.later
    followed = certificate.followed
    run = wf.train(net, data, wf.GradientFlow(1e-10), time=5.0)
    assert_allclose(followed.last["loss"], float(run.table["loss"].values[-1]), rtol=1e-5)
    assert "What happened" in str(certificate)
    assert any(mark.label == "the flow itself" for mark in certificate.figure().panels[1].marks)


def test_models_without_structure_get_what_needs_none(data):
    net = wf.Homogeneous(np.random.default_rng(0).normal(size=(6, 5)), "abs")
    certificate = wf.certify(net, data)
    assert certificate.mean is None
    assert certificate.own.eigenvalues.shape == (8,)
    assert all(p.outcome is wf.Outcome.NOT_APPLICABLE for p in certificate.promises)
    assert "Homogeneous" in str(certificate)


def test_sampling_is_told_and_bounds_kappa_from_above():
    full = wf.data.sphere_sines(jax.random.key(1), samples=60, features=5)
    net = wf.Shallow.init(0, features=5, width=32)
    with pytest.warns(UserWarning, match="20 of 60 rows"):
        part = wf.certify(net, full, samples=20)
    assert part.mean.smallest >= np.linalg.eigvalsh(relu_mean_gram(np.asarray(full.inputs)))[0]
    assert "upper bound" in " ".join(part.notes)


def test_unresolved_gap_is_no_number():
    x = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    certificate = wf.certify(
        wf.Shallow.init(0, features=2, width=16), wf.Dataset(x, [1.0, 2.0, 3.0])
    )
    assert not certificate.mean.resolved
    assert (
        "not resolved"
        in dict((a, b) for a, b, _ in certificate.rows())[
            "kappa_n (smallest eigenvalue of the mean Gram)"
        ]
    )
    duplicates = next(c for c in certificate.checks if c.name == "duplicate rows")
    assert duplicates.verdict == "wrong"
    assert "0.25" in duplicates.meaning  # half of (0.5^2 + 0.5^2)
    assert certificate.timing.times[-1] == math.inf


def test_prepare_says_what_it_does():
    x = np.array([[1.0, 7.0, 1.0], [1.0, 7.0, 1.0], [2.0, 7.0, 5.0], [4.0, 7.0, 0.0]])
    data, notes = prepare(wf.Dataset(x, [1.0, 3.0, 0.0, 5.0], "t", ("a", "b", "c")))
    assert data.features == ("a", "c", "bias")
    assert len(data) == 3
    assert_allclose(np.linalg.norm(data.inputs, axis=1).max(), 1.0)
    assert_allclose(
        data.targets, (np.array([2.0, 0.0, 5.0]) - 7 / 3) / np.std([2.0, 0.0, 5.0]), rtol=1e-12
    )
    told = " ".join(notes)
    assert "constant columns: b" in told
    assert "merged 1 row with" in told


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": 3}, "`model` must be a wideflow model"),
        ({"data": 3}, "`data` must be a `Dataset`"),
        ({"failure_probability": 0.0}, "`failure_probability`"),
        ({"samples": 0}, "`samples`"),
        ({"data": wf.Dataset(np.eye(5), np.eye(5))}, "targets of shape"),
    ],
)
def test_wrong_input_is_named(change, message, net, data):
    with pytest.raises(ValueError, match=message):
        wf.certify(**({"model": net, "data": data} | change))


def test_one_registration_adds_a_theorem(net, data, monkeypatch):
    class Parity(wf.theorems.AbstractTheorem):
        """The width is even."""

        citation = wf.theorems.Citation("mine2026", "Remark 1")

        def __call__(self, width):
            return wf.Verdict(
                wf.Outcome.HOLDS if width % 2 == 0 else wf.Outcome.VIOLATED,
                0.0,
                "even",
                {"needs": 2.0},
            )

    monkeypatch.setattr(registry, "_REGISTERED", list(registry._REGISTERED))
    statement = Statement(
        Parity, lambda case: Parity()(case.model.width), "an even width", required="needs"
    )
    register(statement)
    promise = next(p for p in wf.certify(net, data).promises if p.theorem == "Parity")
    assert (promise.name, promise.required) == ("mine2026 Remark 1", 2.0)
    with pytest.raises(ValueError, match="registered already"):
        register(statement)
    with pytest.raises(ValueError, match="takes `width`"):
        Statement(Parity)


def test_a_statement_that_needs_a_run_must_say_so():
    class Falls(wf.theorems.AbstractRunTheorem):
        citation = wf.theorems.Citation("mine2026", "Remark 3")

        def evaluate(self, start, data, table):
            raise NotImplementedError

    with pytest.raises(ValueError, match="`run` must be 'always', as Falls takes `table`"):
        Statement(Falls)
    assert Statement(Falls, run="always").about == ""


def test_a_theorem_takes_the_parts_of_a_case_by_name(net, data, monkeypatch):
    class Parts(wf.theorems.AbstractTheorem):
        citation = wf.theorems.Citation("mine2026", "Remark 2")

        def __call__(self, start, data, *, failure_probability=0.5, model=None):
            numbers = {"width": float(start.width), "allowed": failure_probability}
            outcome = wf.Outcome.HOLDS if model is None else wf.Outcome.VIOLATED
            return wf.Verdict(outcome, 0.0, f"{len(data)} samples", numbers)

    monkeypatch.setattr(registry, "_REGISTERED", list(registry._REGISTERED))
    register(Statement(Parts, about="what it was given"))
    certificate = wf.certify(net, data, failure_probability=0.25)
    promise = next(p for p in certificate.promises if p.theorem == "Parts")
    assert promise.outcome is wf.Outcome.HOLDS  # the network before training is no trained one
    assert promise.message == f"{len(data)} samples"
    assert promise.numbers == {"width": float(net.width), "allowed": 0.25}


def test_time_to_loss_by_hand_and_by_the_linearised_path():
    assert_allclose(
        wf.limits.time_to_loss(np.diag([1.0, 3.0]), [0.0, 2.0], 0.1), math.log(10) / 6, rtol=1e-12
    )
    kernel = np.array([[2.0, 0.5], [0.5, 1.0]])
    time = wf.limits.time_to_loss(kernel, [1.0, -2.0], 0.05)
    path = wf.limits.linearised(kernel, np.zeros(2), [0.0, time], start=[1.0, -2.0])
    assert_allclose(path.losses[1] / path.losses[0], 0.05, rtol=1e-10)
    assert wf.limits.time_to_loss(np.diag([1.0, 0.0]), [1.0, 1.0], 0.4) == math.inf
    with pytest.raises(ValueError, match="`share`"):
        wf.limits.time_to_loss(kernel, [1.0, 1.0], 2.0)
