"""The generic experiment that records everything: predictions against the run itself, panels at
every length.
"""

import dataclasses

import jax
import numpy as np
import pytest

import wideflow as wf
from wideflow.experiments.training import EXPERIMENT, Settings, build
from wideflow.report.interactive import plots, refresh, same_marks
from wideflow.training.session import Session

SMALL = Settings(
    data="wave-1d",
    samples=8,
    noise=0.0,
    width=10,
    record=("all",),
    records=6,
    dynamics="descent",
    rate=0.5,
    steps=60,
)


def run(settings, watcher=None):
    return EXPERIMENT.run(settings, jax.random.key(2), Session(on_record=watcher))


def test_a_linear_network_follows_its_linearisation():
    # where the model is linear in its weights, the frozen kernel is the kernel: prediction and run
    # agree
    for dynamics in ("descent", "flow"):
        for loss in ("half-sum-squares", "mean-squares"):
            settings = dataclasses.replace(
                SMALL, activation="linear", dynamics=dynamics, time=30.0, loss=loss
            )
            table = run(settings)
            np.testing.assert_allclose(table.time_ahead, table.time, rtol=1e-12)
            np.testing.assert_allclose(table.linearised_loss, table.loss, rtol=1e-6)
            final = table.learned_function[-1]
            np.testing.assert_allclose(table.linearised_function, final, atol=1e-6)


@pytest.mark.parametrize(("share", "diverges"), [(1.9, False), (3.0, True)])
def test_a_linearisation_that_diverges_does_not_take_the_panel(share, diverges):
    # linearised descent multiplies a mode of eigenvalue l by 1 - rate l: it grows without bound
    # where rate l > 2
    first = run(dataclasses.replace(SMALL, activation="tanh", rate=1e-6, steps=1, records=1))
    rate = share / float(first.kernel_spectrum[0, -1])
    table = run(dataclasses.replace(SMALL, activation="tanh", rate=rate))
    panel = EXPERIMENT.draw(table).panels[0]
    assert panel.title == "Learned function"
    ahead = np.asarray(panel.marks[2].y)
    assert np.isnan(ahead).all() == diverges
    assert ("diverges" in panel.note) == diverges


def test_the_limit_gap_is_met_by_a_very_wide_network():
    # concentration: at width 20,000 the Gram matrix is within 5 % of its mean in every eigenvalue
    # that counts
    table = run(
        dataclasses.replace(
            SMALL, width=20_000, scaling="ntk", activation="tanh", steps=1, records=1
        )
    )
    ours, limit = table.kernel_spectrum[0].values, table.limit_spectrum.values
    np.testing.assert_allclose(ours[-3:], limit[-3:], rtol=0.05)
    np.testing.assert_allclose(table.limit_spectra.values, limit[None], rtol=1e-12)
    assert (
        run(dataclasses.replace(SMALL, scaling="zipf:0.5,0.5", steps=1, records=1)).sizes["draw"]
        == 8
    )


@pytest.mark.parametrize(("data", "count"), [("wave-1d", 8), ("wave-2d", 8), ("sphere-sines", 8)])
def test_panels_keep_their_marks_from_record_to_record(data, count):
    seen = []
    settings = dataclasses.replace(
        SMALL, data=data, features=4, scaling="zipf:0.5,0.5", test_samples=5
    )
    table = run(settings, lambda so_far: seen.append(EXPERIMENT.draw(so_far())))
    assert len(seen) == 7  # the start and six records
    drawn = plots(seen[0], "lab")
    assert len(drawn) == count
    for spec in (*seen[1:], EXPERIMENT.draw(table)):  # predictions may come with any of them
        assert same_marks(drawn, spec)
        refresh(drawn, spec)
    fresh = plots(EXPERIMENT.draw(table), "lab")
    for old, new in zip(drawn, fresh):
        for a, b in zip(old.renderers, new.renderers):
            assert a.data_source.data.keys() == b.data_source.data.keys()
            for name in a.data_source.data:
                np.testing.assert_array_equal(a.data_source.data[name], b.data_source.data[name])
    beginning, now = (spec.panels[1].marks[1].y for spec in (seen[0], EXPERIMENT.draw(table)))
    assert np.isnan(beginning).all()  # the first picture does not wait for the predictions
    assert np.isfinite(now).all()
    fewer = dataclasses.replace(seen[0], panels=seen[0].panels[1:])
    assert not same_marks(drawn, fewer)
    with pytest.raises(ValueError, match="other panels"):
        refresh(drawn, fewer)


def test_a_spectrum_that_jumps_is_drawn_by_its_mean():
    # the least eigenvalue switches between 1e-4 and 1e-8 from record to record: its geometric mean
    # is 1e-6
    table = run(dataclasses.replace(SMALL, activation="tanh", steps=8, records=8))
    spectra = np.tile(np.linspace(1.0, 2.0, table.sizes["eigenvalue"]), (table.sizes["step"], 1))
    spectra[:, 0] = np.where(np.arange(len(spectra)) % 2, 1e-4, 1e-8)
    table = table.assign(kernel_spectrum=(table.kernel_spectrum.dims, spectra))
    panel = EXPERIMENT.draw(table).panels[-1]
    start, now = (np.asarray(mark.y) for mark in panel.marks[:2])
    np.testing.assert_allclose(start, spectra[0, ::-1])
    np.testing.assert_allclose(now, [*spectra[0, :0:-1], 1e-6])


def test_a_spectrum_below_rounding_is_a_sentence_and_no_curve():
    # a linear network on one input has a Gram matrix of rank two: the median of eight eigenvalues
    # is rounding
    table = run(dataclasses.replace(SMALL, activation="linear", steps=1, records=1))
    panel = next(p for p in EXPERIMENT.draw(table).panels if p.title == "Eigenvalues of the kernel")
    assert [mark.label for mark in panel.marks] == ["largest"]
    assert panel.note == "6 of 8 are below rounding, not drawn"


@pytest.mark.parametrize("dynamics", ["descent", "momentum", "adam"])
def test_deep_networks_under_every_dynamics(dynamics):
    deep = dataclasses.replace(
        SMALL,
        depth=2,
        scaling="maximal-update",
        activation="tanh",
        dynamics=dynamics,
        rate=0.02,
        batch=0,
        records=2,
        steps=20,
    )
    table = run(deep)
    networks, training, _ = build(deep, jax.random.key(2))
    assert networks[0].layers == 3
    gram = wf.observables.tangent_gram(networks[0], training.inputs)
    spectrum = np.linalg.eigvalsh(np.asarray(gram))
    np.testing.assert_allclose(table.kernel_spectrum[0], spectrum, atol=1e-12 * spectrum[-1])
    assert float(table.loss[-1]) < float(table.loss[0])
    known = dynamics == "descent"  # Adam's lazy path has no closed form
    assert np.isfinite(table.linearised_loss.values).all() == known
    assert "limit_spectrum" not in table
    assert len(EXPERIMENT.draw(table).panels) == 6
    assert " at 0x" not in table.attrs["dynamics"]  # the same words in every process


def test_what_is_recorded_by_itself_is_there_at_any_depth():
    small = {"samples": 8, "features": 3, "width": 6, "steps": 2, "records": 1}
    for network in ({"depth": 1}, {"depth": 2, "scaling": "maximal-update"}):
        table = run(Settings(**small, **network))
        assert {"loss", "kernel_drift", "parameter_movement"} <= set(table.data_vars)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            {"depth": 2, "scaling": "zipf:0.5,0.5"},
            "must be one of ntk, standard, mean-field, maximal-update",
        ),
        ({"depth": 2, "symmetric": True}, "`symmetric` is for `depth` = 1"),
        ({"depth": 0}, "`depth`"),
        ({"scaling": "maximal-update"}, "`scaling` must be"),
        ({"dynamics": "sgd", "batch": 0}, "`batch`"),
        ({"frequency": float("nan")}, "`frequency`"),
    ],
)
def test_wrong_settings_are_explained(wrong, said):
    with pytest.raises(ValueError, match=said):
        Settings(**wrong)


def test_a_wave_has_the_asked_frequency_and_amplitude():
    settings = dataclasses.replace(SMALL, frequency=2.0, amplitude=0.3, test_samples=4)
    _, training, test = build(settings, jax.random.key(0))
    for part in (training, test):
        x = part.inputs[:, 0] * 2**0.5  # rows are divided by sqrt(p + 1)
        np.testing.assert_allclose(part.targets, 0.3 * np.sin(2 * np.pi * x), rtol=1e-12)
    assert (len(training), len(test)) == (8, 4)


@pytest.mark.parametrize(
    "wrong",
    [
        {"record": ("all", "risk")},
        {"record": ("all",), "seeds": 2},
        {"record": ("all",), "dynamics": "sgd"},
    ],
)
def test_all_stands_alone(wrong):
    with pytest.raises(ValueError, match="'all' must be the only entry"):
        Settings(**wrong)


def test_tables_are_prepared_and_thinned(tmp_path):
    path = tmp_path / "t.csv"
    rows = "\n".join(f"{x},{x * x},{3 * x + 1}" for x in range(20))
    path.write_text(f"a,b,y\n{rows}\n")
    s = Settings(
        data=str(path),
        rows=9,
        prepared=True,
        target="b",
        record=("risk",),
        width=4,
        steps=2,
        records=1,
    )
    networks, training, _ = build(s, jax.random.key(0))
    assert len(training) == 9
    assert training.features == ("a", "y", "bias")
    assert np.linalg.norm(training.inputs, axis=1).max() == pytest.approx(1)
    assert np.mean(training.targets) == pytest.approx(0, abs=1e-12)
    assert networks[0].weights.shape == (3, 4)
    _, fewer, test = build(dataclasses.replace(s, test_samples=5), jax.random.key(0))
    assert (len(fewer), len(test)) == (
        10,
        4,
    )  # of 14 rows that are read at most a third is set aside
    together = np.concatenate([fewer.inputs, test.inputs])
    assert len(np.unique(together, axis=0)) == 14
