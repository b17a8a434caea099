"""A journal must never hand one computation the checkpoint of another that shares its arrays."""

import numpy as np
import pytest

import wideflow as wf
from wideflow._core.journal import AbstractJournal, journal_open

RNG = np.random.default_rng(0)
X, Y, W, C = (
    RNG.normal(size=(4, 3)),
    RNG.normal(size=4),
    RNG.normal(size=(6, 3)),
    np.sign(RNG.normal(size=6)),
)


class Memory(AbstractJournal):
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


def losses(journal, act="tanh", loss=None, scaling=None, interval=(-1.0, 1.0), engine="weights"):
    net = wf.Shallow(W, C, scaling or wf.scalings.MeanField(), act)
    with journal_open(journal):
        record = [wf.observables.Eta(interval)]
        run = wf.train(
            net,
            wf.Dataset(X, Y),
            wf.GradientDescent(0.1),
            steps=5,
            record=record,
            loss=loss,
            engine=engine,
        )
    return run.table.loss.values


def test_the_same_computation_is_read_back():
    journal = Memory()
    first, again = losses(journal), losses(journal)
    assert journal.hits == 1
    np.testing.assert_array_equal(first, again)


@pytest.mark.parametrize(
    "change",
    [
        {"loss": wf.losses.HalfMeanSquares()},
        {"act": "relu"},
        {"scaling": wf.scalings.NTK()},
        {"interval": (-2.0, 2.0)},
        {"engine": "function"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_another_computation_on_the_same_arrays_is_not(change):
    journal = Memory()
    losses(journal)
    other = losses(journal, **change)
    assert journal.hits == 0
    np.testing.assert_allclose(other, losses(None, **change), rtol=1e-14)
