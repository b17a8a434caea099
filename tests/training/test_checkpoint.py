"""A checkpoint must never be handed to another training, however much the two share."""

import dataclasses
import functools
import types

import equinox as eqx
import numpy as np
import pytest

import wideflow as wf
from wideflow.training.checkpoint import AbstractCheckpointer, fingerprint
from wideflow.training.identity import digest
from wideflow.training.session import Session

RNG = np.random.default_rng(0)
X, Y, W, C = (
    RNG.normal(size=(4, 3)),
    RNG.normal(size=4),
    RNG.normal(size=(6, 3)),
    np.sign(RNG.normal(size=6)),
)


class Memory(AbstractCheckpointer):
    def __init__(self):
        self.kept, self.hits = {}, 0

    def begun(self):
        return bool(self.kept)

    def due(self, *, force=False):
        return True

    def load(self, fingerprint):
        self.hits += fingerprint in self.kept
        return self.kept.get(fingerprint)

    def save(self, fingerprint, arrays, *, force=False):
        self.kept[fingerprint] = arrays


def train(memory, act="tanh", scaling=None, record=(), **settings):
    """One training in a session of its own, as when a killed process starts again."""
    net = wf.Shallow(W, C, scaling or wf.scalings.MeanField(), act)
    settings = {"steps": 5, "engine": "weights"} | settings
    session = Session(checkpointer=memory)
    dynamics = wf.GradientDescent(0.1)
    return wf.train(net, wf.Dataset(X, Y), dynamics, record=record, session=session, **settings)


DESCENT = wf.GradientDescent(0.01)


def scaled(params, inputs):
    return FACTOR * inputs @ params["w"]


def at(snapshot, *, index):
    """One output."""
    return snapshot.objective.targets[index] * snapshot.model.weights[0, 0]


def closure(index):
    def one(snapshot):
        """One weight."""
        return snapshot.model.weights[0, index]

    return one


FACTOR = 1.0


def helper(snapshot):
    return snapshot.model.weights[0, 0]


def reads(snapshot):
    """A weight, by a helper, times a number that stands outside."""
    return FACTOR * helper(snapshot)


def twice(snapshot):
    return 2 * snapshot.model.weights[0, 0]


def weighing(factor):
    """An observable whose class reads `factor`; all such classes have one name."""

    class Weight(wf.AbstractObservable):
        name: str = "weight"
        label: str = "weight"
        axes: tuple[str, ...] = ()

        def __call__(self, snapshot):
            return factor * snapshot.model.weights[0, 0]

    return Weight()


@dataclasses.dataclass
class Weighed:
    """A plain dataclass, which no dictionary takes as a key."""

    factors: np.ndarray
    name: str = "weighed"

    def __call__(self, snapshot):
        return self.factors.sum() * snapshot.model.weights[0, 0]


class Plain:
    """An object that a method belongs to."""

    def __init__(self, factor):
        self.factor = factor

    def method(self, snapshot):
        return self.factor * snapshot.model.weights[0, 0]


SAME = {
    "plain": {},
    "grid": {"record": [wf.observables.OutputsAt(X[:2])]},
    "closure": {"record": [closure(0)]},
    "partial": {"record": [functools.partial(at, index=0)]},
    "level": {"stop_below": 1e-3},
    "default": {"record": [lambda snapshot, index=0: snapshot.model.weights[0, index]]},
    "class": {"record": [weighing(1.0)]},
    "dataclass": {"record": [Weighed(np.ones(2))]},
    "globals": {"record": [reads]},
    "compiled": {"record": [eqx.filter_jit(closure(0))]},
}
OTHER = {
    "loss": ({}, {"loss": wf.losses.HalfMeanSquares()}),
    "activation": ({}, {"act": "relu"}),
    "scaling": ({}, {"scaling": wf.scalings.NTK()}),
    "interval": (
        {"record": [wf.observables.LeastActiveFraction((-1.0, 1.0))]},
        {"record": [wf.observables.LeastActiveFraction((-2.0, 2.0))]},
    ),
    "engine": ({}, {"engine": "function"}),
    "grid": (SAME["grid"], {"record": [wf.observables.OutputsAt(100 * X[:2])]}),
    "closure": (SAME["closure"], {"record": [closure(1)]}),
    "partial": (SAME["partial"], {"record": [functools.partial(at, index=1)]}),
    "level": (SAME["level"], {"stop_below": 1.0}),
    "no level": (SAME["level"], {}),
    "default": (
        SAME["default"],
        {"record": [lambda snapshot, index=1: snapshot.model.weights[0, index]]},
    ),
    "class": (SAME["class"], {"record": [weighing(2.0)]}),
    "dataclass": (SAME["dataclass"], {"record": [Weighed(2 * np.ones(2))]}),
    "compiled": (SAME["compiled"], {"record": [eqx.filter_jit(closure(1))]}),
}


@pytest.mark.parametrize("settings", SAME.values(), ids=SAME)
def test_the_same_training_is_read_back(settings):
    memory = Memory()
    first, again = train(memory, **settings), train(memory, **settings)
    assert memory.hits == 1
    assert again.table.equals(first.table)


@pytest.mark.parametrize(("settings", "other"), OTHER.values(), ids=OTHER)
def test_another_training_on_the_same_arrays_is_not(settings, other):
    memory = Memory()
    train(memory, **settings)
    second = train(memory, **other)
    assert memory.hits == 0
    assert second.table.equals(train(None, **other).table)


@pytest.mark.parametrize(("name", "new"), [("FACTOR", 2.0), ("helper", twice)])
def test_what_an_observable_reads_from_outside_belongs_to_it(monkeypatch, name, new):
    # FACTOR = 2 and `twice` both double what is recorded
    memory = Memory()
    first = train(memory, record=[reads])
    monkeypatch.setitem(globals(), name, new)
    second = train(memory, record=[reads])
    assert memory.hits == 0
    np.testing.assert_allclose(second.table.reads, 2 * first.table.reads, rtol=1e-15)


def test_an_observable_that_was_changed_in_place_is_compiled_anew():
    plain, weighed = Plain(1.0), Weighed(np.ones(2))
    first = train(None, record=[plain.method, weighed]).table
    plain.factor, weighed.factors = 3.0, 3 * np.ones(2)
    second = train(None, record=[plain.method, weighed]).table
    for name in ("method", "weighed"):
        np.testing.assert_allclose(second[name], 3 * first[name], rtol=1e-15)


def test_a_model_that_reads_from_outside_is_compiled_anew(monkeypatch):
    def run():
        return wf.train(wf.wrap(scaled, {"w": W[0]}), wf.Dataset(X, 0 * Y), DESCENT, steps=1).table

    first = run()
    monkeypatch.setitem(globals(), "FACTOR", 2.0)
    # without targets the loss is a square of the outputs
    np.testing.assert_allclose(run().loss[0], 4 * first.loss[0], rtol=1e-12)


def test_an_observable_may_hold_numpy_arrays():
    class Scaled(wf.AbstractObservable):
        factors: np.ndarray
        name: str = "scaled"
        label: str = "scaled"
        axes: tuple[str, ...] = ("factor",)

        def __call__(self, snapshot):
            return self.factors * snapshot.model.weights[0, 0]

    table = train(None, record=[Scaled(np.array([1.0, 2.0]))]).table
    np.testing.assert_allclose(table.scaled[:, 1], 2 * table.scaled[:, 0], rtol=1e-15)


def test_two_equal_trainings_of_one_session_have_checkpoints_of_their_own():
    memory = Memory()
    session = Session(checkpointer=memory)
    net = wf.Shallow(W, C)
    for _ in range(2):
        wf.train(net, wf.Dataset(X, Y), wf.GradientDescent(0.1), steps=2, session=session)
    assert (len(memory.kept), memory.hits) == (2, 0)


def test_what_has_no_identity_is_computed_anew():
    class Odd:
        """Compared by its place in memory."""

    class Observable:
        """An observable that carries something unknown."""

        name, part = "odd", Odd()

        def __call__(self, snapshot):
            return snapshot.time

    memory = Memory()
    for _ in range(2):
        train(memory, record=[Observable()])
    assert (memory.kept, memory.hits) == ({}, 0)
    assert fingerprint(Odd()) is None


def test_a_set_in_the_code_is_the_same_in_whatever_order_it_lies():
    # 0 and 8 fall on one place of a table of eight: the set lists first what came first, as text
    # does by a hash that changes from process to process
    def one(x):
        return x in {0, 8}

    def with_set(items):
        constants = tuple(
            frozenset(items) if isinstance(part, frozenset) else part
            for part in one.__code__.co_consts
        )
        return types.FunctionType(one.__code__.replace(co_consts=constants), globals(), "one")

    forth, back = frozenset([0, 8]), frozenset([8, 0])
    assert list(forth) != list(back)
    assert digest(with_set(forth)) == digest(with_set(back)) != digest(with_set([0, 9]))
