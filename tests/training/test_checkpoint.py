"""A checkpoint must never be handed to another training, however much the two share."""

import functools
import types

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


def at(snapshot, *, index):
    """One output."""
    return snapshot.objective.targets[index] * snapshot.model.weights[0, 0]


def closure(index):
    def one(snapshot):
        """One weight."""
        return snapshot.model.weights[0, index]

    return one


SAME = {
    "plain": {},
    "grid": {"record": [wf.observables.OutputsAt(X[:2])]},
    "closure": {"record": [closure(0)]},
    "partial": {"record": [functools.partial(at, index=0)]},
    "level": {"stop_below": 1e-3},
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
