"""A run is found by what was asked; what is damaged is listed and replaced."""

import pytest
from small_experiment import EXPERIMENT

from wideflow.runs import Store, address, perform


def asked(**changes):
    return {"width": 16, "rate": 0.5, "gammas": (1.0, 0.5)} | changes


@pytest.mark.parametrize(
    "other",
    [
        address("other", asked(), 0),
        address("one", asked(), 1),
        address("one", asked(width=17), 0),
        address("one", asked(gammas=(1.0,)), 0),
        address("one", asked(precision="float32"), 0),
    ],
)
def test_whatever_is_asked_differently_has_another_address(other):
    assert other != address("one", asked(), 0)


def test_order_and_kind_of_sequence_do_not_matter():
    turned = dict(reversed(asked(gammas=[1.0, 0.5]).items()))
    assert address("one", turned, 0) == address("one", asked(), 0)


def test_asking_again_reads_the_file(tmp_path):
    store, calls = Store(tmp_path), []
    counted = type(EXPERIMENT)(
        **{**vars(EXPERIMENT), "run": lambda *a: calls.append(1) or EXPERIMENT.run(*a)}
    )
    first = perform(counted, store, size="smoke")
    second = perform(counted, store, size="smoke")
    assert (first.found, second.found, len(calls)) == (False, True, 1)
    assert second.record.path == first.record.path
    assert not perform(counted, store, size="smoke", fresh=True).found
    assert len(calls) == 2
    assert not perform(counted, store, size="smoke", seed=1).found
    assert len(store.records()[0]) == 2


def test_a_damaged_run_is_listed_and_computed_again(tmp_path):
    store = Store(tmp_path)
    path = perform(EXPERIMENT, store, size="smoke").record.path
    path.write_bytes(path.read_bytes()[:500])
    records, damaged = store.records()
    assert records == []
    assert [d.path for d in damaged] == [path]
    assert path.name in damaged[0].reason
    assert not perform(EXPERIMENT, store, size="smoke").found
    assert len(store.records()[0]) == 1
    assert store.records()[1] == []


def test_an_empty_folder_and_none_have_no_runs(tmp_path):
    assert Store(tmp_path).records() == ([], [])
    assert Store(tmp_path / "not there").records() == ([], [])


def test_checkpoints_go_when_the_run_is_saved(tmp_path):
    store = Store(tmp_path, checkpoint_every=0.0)
    perform(EXPERIMENT, store, size="smoke")
    assert store.unfinished() == []
    assert [path.suffix for path in tmp_path.iterdir()] == [".nc"]
