"""A user's own function swept like an experiment: durable, found again, collected."""

import sys

import jax
import numpy as np
import pytest

import wideflow as wf
from wideflow.runs.sweeps import plan, worker


def distance(key, width=4, rate=0.5):
    """A number that can be computed by hand."""
    draw = jax.random.normal(key, ())
    return {"value": width * rate + 0 * float(draw), "draw": float(draw)}


def helper(width):
    return 1.0 * width


def by_helper(key, width=4):
    return {"value": helper(width)}


SPEC = {"experiment": distance, "grid": {"width": [2, 3], "rate": [0.5, 1.0]}, "seeds": 2}


def test_a_function_is_swept_and_found_again(tmp_path):
    swept = wf.sweep(SPEC, tmp_path, workers=1)
    assert (swept.computed, swept.troubles) == (4 * 2, [])
    table = swept.table
    np.testing.assert_array_equal(
        table.value.isel(seed=0).transpose("width", "rate"), [[1.0, 2.0], [1.5, 3.0]]
    )
    expected = [float(jax.random.normal(jax.random.key(s), ())) for s in (0, 1)]
    np.testing.assert_allclose(table.draw.isel(width=0, rate=0), expected, rtol=1e-6)
    again = wf.sweep(SPEC, tmp_path, workers=1)
    assert again.computed == 0


def test_a_function_whose_helper_was_changed_is_another(tmp_path, monkeypatch):
    spec = SPEC | {"experiment": by_helper, "grid": {"width": [2, 3]}, "seeds": 1}
    first = wf.sweep(spec, tmp_path, workers=1)
    np.testing.assert_array_equal(first.table.value.values.ravel(), [2.0, 3.0])
    monkeypatch.setattr(sys.modules[__name__], "helper", lambda width: 10.0 * width)
    changed = wf.runs.sweeps.expand(wf.runs.sweeps.read_spec(spec))
    assert {run.address for run in changed.runs}.isdisjoint(first.plan.by_address)


def test_what_has_no_identity_is_refused_by_name(tmp_path):
    class Odd:
        """Compared by its place in memory."""

    odd = Odd()

    def reads(key, width=4):
        return {"value": odd.value}

    with pytest.raises(ValueError, match="'reads' reads something without a lasting identity"):
        wf.sweep({"experiment": reads, "grid": {"width": [1]}}, tmp_path)


def test_a_module_class_of_the_script_itself_is_refused(tmp_path, monkeypatch):
    class Weight(wf.AbstractObservable):
        name: str = "weight"
        label: str = "weight"
        axes: tuple[str, ...] = ()

        def __call__(self, snapshot):
            return snapshot.model.weights[0, 0]

    def recorded():
        return [Weight()]

    def trained(key, width=4):
        return {"value": len(recorded())}

    monkeypatch.setattr(Weight, "__module__", "__main__")
    with pytest.raises(ValueError, match="class Weight of the script or notebook itself"):
        wf.sweep({"experiment": trained, "grid": {"width": [1]}}, tmp_path)


def test_a_worker_with_other_code_says_so(tmp_path):
    """As when a module was changed here after it was imported: its worker reads the file."""
    spec = {"experiment": by_helper, "grid": {"width": [2]}, "seeds": 1}
    (run,) = wf.runs.sweeps.expand(wf.runs.sweeps.read_spec(spec)).runs
    task = worker.Task(run.address, "run.nc", run.settings, run.seed)
    _, (outcome,) = worker.work(str(tmp_path), distance, "default", [task])
    assert outcome.kind == "failed"
    assert "another than yours" in outcome.sentence


def test_runs_of_other_sources_are_named(tmp_path, monkeypatch):
    spec = SPEC | {"grid": {"width": [2]}}
    assert wf.sweep(spec, tmp_path, workers=1).troubles == []
    monkeypatch.setattr(plan, "sources", lambda: "0" * 12)
    ((what, which, why),) = wf.sweep(spec, tmp_path, workers=1).troubles
    assert (what, which) == ("found, from a different version of the code", "2 of 2 runs")
    assert "wideflow's sources have changed" in why


def test_a_parameter_without_a_default_is_named(tmp_path):
    def needy(key, width):
        return {}

    with pytest.raises(ValueError, match="must give its parameter `width` a default"):
        wf.sweep({"experiment": needy, "grid": {"width": [1]}}, tmp_path)


def test_a_seed_of_its_own_is_refused_since_no_seed_of_the_sweep_would_change_it(tmp_path):
    def seeded(seed=0, width=4):
        return {"value": float(np.random.default_rng(seed).normal())}

    with pytest.raises(ValueError, match=r"`seed`.* the JAX key `key`"):
        wf.sweep({"experiment": seeded, "grid": {"width": [1]}, "seeds": 3}, tmp_path)
