"""The generic experiment that records everything: predictions against the run itself, panels at every length."""

import dataclasses

import jax
import numpy as np
import pytest

from wideflow.experiments.training import EXPERIMENT, Settings
from wideflow.report.interactive import plots, refresh, same_marks
from wideflow.training.session import Session

SMALL = Settings(data="wave-1d", samples=8, noise=0.0, width=10, record=("all",), records=6, dynamics="descent", rate=0.5, steps=60)  # fmt: skip


def run(settings, watcher=None):
    return EXPERIMENT.run(settings, jax.random.key(2), Session(on_record=watcher))


def test_a_linear_network_follows_its_linearisation():
    # where the model is linear in its weights, the frozen kernel is the kernel: prediction and run agree
    for dynamics in ("descent", "flow"):
        for loss in ("half-sum-squares", "mean-squares"):
            settings = dataclasses.replace(SMALL, activation="linear", dynamics=dynamics, time=30.0, loss=loss)  # fmt: skip
            table = run(settings)
            np.testing.assert_allclose(table.time_ahead, table.time, rtol=1e-12)
            np.testing.assert_allclose(table.linearised_loss, table.loss, rtol=1e-6)
            final = table.learned_function[-1]
            np.testing.assert_allclose(table.linearised_function, final, atol=1e-6)


@pytest.mark.parametrize(("share", "diverges"), [(1.9, False), (3.0, True)])
def test_a_linearisation_that_diverges_does_not_take_the_panel(share, diverges):
    # linearised descent multiplies a mode of eigenvalue l by 1 - rate l: it grows without bound where rate l > 2
    first = run(dataclasses.replace(SMALL, activation="tanh", rate=1e-6, steps=1, records=1))
    rate = share / float(first.kernel_spectrum[0, -1])
    table = run(dataclasses.replace(SMALL, activation="tanh", rate=rate))
    panel = EXPERIMENT.draw(table).panels[0]
    assert panel.title == "Learned function"
    ahead = np.asarray(panel.marks[2].y)
    assert np.isnan(ahead).all() == diverges
    assert ("diverges" in panel.note) == diverges


def test_the_limit_gap_is_met_by_a_very_wide_network():
    # concentration: at width 200,000 the Gram matrix is within 5 % of its mean in every eigenvalue that counts
    table = run(dataclasses.replace(SMALL, width=200_000, scaling="ntk", activation="tanh", steps=1, records=1))  # fmt: skip
    ours, limit = table.kernel_spectrum[0].values, table.limit_spectrum.values
    np.testing.assert_allclose(ours[-3:], limit[-3:], rtol=0.05)
    assert table.limit_gap.values == pytest.approx(limit[:1])
    assert len(run(dataclasses.replace(SMALL, scaling="zipf:0.5,0.5", steps=1, records=1)).limit_gap) == 8  # fmt: skip


@pytest.mark.parametrize(("data", "count"), [("wave-1d", 7), ("wave-2d", 7), ("sphere-sines", 6)])
def test_panels_keep_their_marks_from_record_to_record(data, count):
    seen = []
    settings = dataclasses.replace(SMALL, data=data, features=4, scaling="zipf:0.5,0.5")
    table = run(settings, lambda so_far: seen.append(EXPERIMENT.draw(so_far())))
    assert len(seen) == 7  # the start and six records
    drawn = plots(seen[0], "lab")
    assert len(drawn) == count
    for spec in seen[1:]:
        assert same_marks(drawn, spec)
        refresh(drawn, spec)
    fresh = plots(EXPERIMENT.draw(table), "lab")
    for old, new in zip(drawn, fresh):
        for a, b in zip(old.renderers, new.renderers):
            assert a.data_source.data.keys() == b.data_source.data.keys()
            for name in a.data_source.data:
                np.testing.assert_array_equal(a.data_source.data[name], b.data_source.data[name])
    fewer = dataclasses.replace(seen[0], panels=seen[0].panels[1:])
    assert not same_marks(drawn, fewer)
    with pytest.raises(ValueError, match="other panels"):
        refresh(drawn, fewer)


@pytest.mark.parametrize(
    "wrong",
    [
        {"record": ("all", "risk")},
        {"record": ("all",), "seeds": 2},
        {"record": ("all",), "dynamics": "sgd"},
    ],
)
def test_all_stands_alone(wrong):
    with pytest.raises(ValueError, match="'all' stands alone"):
        Settings(**wrong)


def test_tables_are_prepared_and_thinned(tmp_path):
    path = tmp_path / "t.csv"
    rows = "\n".join(f"{x},{x * x},{3 * x + 1}" for x in range(20))
    path.write_text(f"a,b,y\n{rows}\n")
    s = Settings(data=str(path), rows=9, prepared=True, target="b", record=("risk",), width=4, steps=2, records=1)  # fmt: skip
    from wideflow.experiments.training import build

    networks, training, _ = build(s, jax.random.key(0))
    assert len(training) == 9
    assert training.features == ("a", "y", "bias")
    assert np.linalg.norm(training.inputs, axis=1).max() == pytest.approx(1)
    assert np.mean(training.targets) == pytest.approx(0, abs=1e-12)
    assert networks[0].weights.shape == (3, 4)
