"""The guided tours without a browser: each runs, its moment is in the table, and the moment means
what it says.
"""

import dataclasses
import math
import pathlib

import jax
import numpy as np
import pytest
import scipy.integrate
import scipy.optimize
import scipy.special
import xarray as xr
from numpy.testing import assert_allclose

import wideflow as wf
from wideflow.dynamics.losses import HalfMeanSquares
from wideflow.experiments import registry
from wideflow.lab.tours import TOURS
from wideflow.papers import papers
from wideflow.papers.allenzhu2018 import tour as allenzhu2018
from wideflow.papers.caron2023 import tour as caron2023
from wideflow.papers.chen2022 import tour as chen2022
from wideflow.papers.li2020 import tour as li2020
from wideflow.papers.ren2023 import tour as ren2023
from wideflow.papers.saad1995 import tour as saad1995
from wideflow.report.interactive import plots
from wideflow.report.static import build
from wideflow.runs import Store, perform, read_record
from wideflow.runs.overrides import overridden
from wideflow.runs.runner import judged


@dataclasses.dataclass
class Watched:
    """A tour at its smoke size, with every table that was shown on the way."""

    record: object
    shown: list[xr.Dataset]
    progress: list[tuple]

    @property
    def table(self) -> xr.Dataset:
        return self.record.table


def watched(paper: str, folder, size: str) -> Watched:
    shown, told = [], []
    done = perform(
        registry.experiment(TOURS[paper].experiment),
        Store(folder),
        size=size,
        progress=lambda *p: told.append(p),
        on_record=lambda so_far: shown.append(so_far()),
    )
    return Watched(done.record, shown, told)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Each tour's smoke run, made when a test first asks for it."""
    made: dict[str, Watched] = {}

    def of(paper: str) -> Watched:
        if paper not in made:
            made[paper] = watched(paper, tmp_path_factory.mktemp(paper), "smoke")
        return made[paper]

    return of


def moments(paper: str, table: xr.Dataset) -> list:
    return [step.moment(table) for step in TOURS[paper].steps if step.moment is not None]


def shape(spec) -> list:
    """What must stay the same while the data move: panels, marks, their kinds, labels and
    groups.
    """
    return [
        (
            panel.title,
            panel.x,
            panel.y,
            panel.xscale,
            panel.yscale,
            [
                (type(mark).__name__, mark.label, getattr(mark, "group", None))
                for mark in panel.marks
            ],
        )
        for panel in spec.panels
    ]


def test_every_paper_with_a_chapter_has_a_tour():
    assert set(TOURS) == {key for key, paper in papers().items() if paper.module("tour")}
    chapters = (pathlib.Path(__file__).parents[2] / "docs" / "papers").glob("*[0-9].md")
    assert {chapter.stem for chapter in chapters} <= set(TOURS)
    assert {tour.experiment for tour in TOURS.values()} == {
        name for name in registry.others() if name.startswith("tour-")
    }
    assert not set(registry.others()) & set(registry.experiments())


@pytest.mark.parametrize("paper", TOURS)
def test_a_tour_declares_itself_properly(paper):
    tour, experiment = TOURS[paper], registry.experiment(TOURS[paper].experiment)
    assert tour.paper == experiment.paper == paper
    assert experiment.name == f"tour-{paper}"
    assert tour.live is experiment.draw
    assert 3 <= len(tour.steps) <= 4
    assert tour.steps[-1].moment is not None
    overridden(experiment.settings["default"], dict(tour.settings), experiment.name)
    for step in tour.steps:
        assert step.title
        assert 60 <= len(step.text) <= 700


@pytest.mark.parametrize("paper", TOURS)
def test_the_run_ends_with_its_moments_and_claims(paper, runs):
    run = runs(paper)
    assert [claim for claim in run.record.claims if not claim.ok] == []
    assert moments(paper, run.shown[0]) == [None] * len(moments(paper, run.table))
    assert None not in moments(paper, run.table)
    assert all(0 <= done <= total * (1 + 1e-9) for done, total, _ in run.progress)
    experiment, again = registry.experiment(TOURS[paper].experiment), read_record(run.record.path)
    repeated = [repr(judged(claim, True)) for claim in experiment.claims(again.table)]
    assert repeated == list(map(repr, run.record.claims))


@pytest.mark.parametrize("paper", TOURS)
def test_a_moment_once_seen_is_never_taken_back(paper, runs):
    """The page announces it at the first record that shows it; the finished table must say the
    same.
    """
    run = runs(paper)
    final = moments(paper, run.table)
    seen = [moments(paper, table) for table in run.shown]
    for number, moment in enumerate(final):
        told = [row[number] for row in seen]
        first = next(i for i, one in enumerate(told) if one is not None)
        assert set(told[first:]) == {moment}
        assert moment.time == pytest.approx(float(run.shown[first].time[-1]))
        assert moment.sentence.endswith(".")


@pytest.mark.parametrize("paper", TOURS)
def test_the_live_figure_keeps_its_marks(paper, runs):
    run, tour = runs(paper), TOURS[paper]
    assert len(run.shown) >= 20
    shapes = [shape(tour.live(table)) for table in (*run.shown, run.table)]
    assert all(one == shapes[0] for one in shapes)
    titles = [panel[0] for panel in shapes[0]]
    assert len(set(titles)) == len(titles)
    assert {step.look for step in tour.steps} <= set(titles)
    for table in (run.shown[0], run.table):
        spec = tour.live(table)
        build(spec).draw_without_rendering()
        assert len(plots(spec, "tour")) == len(titles)


@pytest.mark.parametrize("paper", TOURS)
def test_partial_tables_are_the_beginning_of_the_final_one(paper, runs):
    run = runs(paper)
    table = run.shown[len(run.shown) // 2]
    begun = run.table.isel(step=slice(0, table.sizes["step"]))
    assert set(table.data_vars) == set(begun.data_vars)
    for name in table.data_vars:
        assert_allclose(table[name].values, begun[name].values, rtol=0, err_msg=name)
    told = {
        name: run.table.attrs[name] for name in table.attrs if name not in ("seconds", "status")
    }
    assert {name: table.attrs[name] for name in told} == told


@pytest.mark.slow
@pytest.mark.parametrize("paper", TOURS)
def test_the_preset_itself(paper, tmp_path):
    run = watched(paper, tmp_path, "default")
    assert [claim for claim in run.record.claims if not claim.ok] == []
    assert len(run.shown) >= 60
    assert moments(paper, run.shown[0]) == [None] * len(moments(paper, run.table))
    assert None not in moments(paper, run.table)


# What the moments mean, by other routes.


def test_li2020_waits_at_the_error_of_the_best_quadratic(runs):
    # Least squares of |x| on 1, x, x^2 under the normal law, by quadrature: the target is a mean of
    # d independent copies.
    normal = lambda x: math.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    mean = lambda f: scipy.integrate.quad(
        lambda x: f(x) * normal(x), -12, 12, points=[0.0], limit=200
    )[0]
    powers = [lambda x: 1.0, lambda x: x, lambda x: x * x]
    gram = [[mean(lambda x, p=p, q=q: p(x) * q(x)) for q in powers] for p in powers]
    right = [mean(lambda x, p=p: p(x) * abs(x)) for p in powers]
    left_over = mean(lambda x: x * x) - np.dot(right, np.linalg.solve(gram, right))
    table = runs("li2020").table
    floor = left_over / table.attrs["features"]
    start, end = li2020.settled(table), li2020.plateau(table).time
    waiting = table.loss.values[(table.time >= start) & (table.time <= end)]
    assert len(waiting) > 3
    assert_allclose(waiting, floor, rtol=0.35)
    assert float(table.loss[0]) > 1.5 * floor
    assert float(table.loss[-1]) < 0.1 * floor


def test_li2020_winners_are_those_who_carry_the_function(runs):
    """At the end the winners' share of the mass is most of it, and before the plateau's end nobody
    had won.
    """
    table = runs("li2020").table
    count, mass = li2020.winners(table)
    waited = int(np.searchsorted(table.time.values, li2020.plateau(table).time))
    assert count[0] == 0
    assert mass[waited] < 0.2
    assert mass[-1] > 0.6
    assert count[-1] < table.attrs["width"]


def test_ren2023_the_three_numbers_make_the_function(runs):
    """max(b + αw r, 0) from the recorded weights against the recorded outputs, and against the flow
    of infinite width.
    """
    table = runs("ren2023").table
    now = int(np.searchsorted(table.time.values, ren2023.cone(table).time))
    slope, bias = (values[now] for values in ren2023.slopes(table))
    predicted = np.maximum(bias + slope * ren2023.RADII, 0.0)
    assert_allclose(table.profile.isel(step=now).mean("direction"), predicted, atol=0.04)
    limit = np.interp(table.time.values[now], table.limit_time, table.limit_alpha)
    assert_allclose(float(table.alpha[now]), limit, rtol=0.06)
    assert_allclose(
        np.interp(table.time.values[now], table.limit_time, table.limit_b), bias, rtol=0.03
    )


@pytest.mark.parametrize("name", chen2022.NAMES)
def test_chen2022_the_batch_trains_each_scaling_as_it_is(name):
    """The network under its own scaling and rate takes the same path as its twin in the batch."""
    key = jax.random.key(3)
    training = wf.data.axis_types(jax.random.key(4), 12, 5)
    net = chen2022.networks(key, name, 5, 16, 1)[0]
    twin, factor = chen2022.as_ours(net)
    assert_allclose(
        twin.outputs(training.inputs), net.outputs(training.inputs), rtol=1e-12, atol=1e-14
    )
    runs = [
        wf.train(
            one, training, wf.GradientDescent(rate), steps=40, loss=HalfMeanSquares(), every=10
        )
        for one, rate in ((net, 0.7), (twin, 0.7 * factor))
    ]
    assert_allclose(runs[0].table.loss, runs[1].table.loss, rtol=1e-9)
    inputs = training.inputs[:2]
    assert_allclose(
        runs[0].model.preactivations(inputs),
        runs[1].model.preactivations(inputs),
        rtol=1e-8,
        atol=1e-12,
    )


def test_chen2022_the_scatter_starts_as_the_scalings_say(runs):
    # h is normal with variance G_aa under ours and NTK, and G_aa/m under MF: the cloud is sqrt(m)
    # times narrower.
    table = runs("chen2022").table
    width = chen2022.spread(table).isel(step=0)
    root = math.sqrt(table.attrs["width"])
    assert_allclose(float(width.sel(scaling="ours") / width.sel(scaling="MF")), root, rtol=1e-9)
    assert_allclose(float(width.sel(scaling="NTK") / width.sel(scaling="ours")), 1.0, rtol=0.15)


def test_caron2023_pruning_is_removing_nodes():
    data = wf.data.sphere_sines(jax.random.key(0), samples=9, features=4)
    net = wf.Shallow.init(
        jax.random.key(1), features=4, width=12, scaling=wf.scalings.Zipf(0.3, 0.5)
    )
    levels = (0, 3, 11, 12)
    observed = wf.observables.PrunedRisk(data.inputs, data.targets, levels)
    run = wf.train(net, data, wf.GradientDescent(0.5), steps=20, every=20, record=[observed])
    for place, (model, keep) in enumerate(((net, 9), (run.model, 9))):
        small = wf.prune(model, keep=keep)
        risk = np.mean((np.asarray(small.outputs(data.inputs)) - np.asarray(data.targets)) ** 2)
        assert_allclose(float(run.table.pruned_risk[place, 1]), risk, rtol=1e-10)


def test_caron2023_curves_end_where_they_must(runs):
    table = runs("caron2023").table
    assert_allclose(table.pruned_risk.sel(removed=0.0), table.risk, rtol=1e-9)
    assert_allclose(table.pruned_risk.sel(removed=1.0), table.attrs["zero"], rtol=1e-12)


def test_allenzhu2018_the_map_of_the_target_and_the_better_map(runs):
    table = runs("allenzhu2018").table
    first, second = np.meshgrid(allenzhu2018.AXIS, allenzhu2018.AXIS)
    product = np.cos(6 * first) * np.cos(6 * second)
    assert_allclose(table.target.values.reshape(product.shape), product, atol=1e-12)
    inputs = allenzhu2018.slice_inputs(5)
    assert_allclose(np.linalg.norm(inputs, axis=1), 1.0)
    off = {
        name: np.mean(
            (allenzhu2018.of(table, name).learned_function.values[-1] - product.ravel()) ** 2
        )
        for name in allenzhu2018.LEARNERS
    }
    assert off["three layers"] < 0.7 * off["two layers"]


def test_saad1995_the_network_is_the_one_of_the_equations(runs):
    """Overlaps from the weights, and the error by Monte Carlo over the inputs, against the
    equations at time 0.
    """
    settings = saad1995.EXPERIMENT.settings["smoke"]
    d, delta = settings.features, settings.difference
    net = saad1995.student(d, delta)
    weights = np.asarray(net.hidden) / math.sqrt(d)  # lambda = w x / sqrt d
    assert_allclose(weights[:, :2], delta * np.eye(2), atol=1e-15)
    assert_allclose(weights @ weights.T, 0.25 * np.eye(2), atol=1e-15)
    x = np.random.default_rng(0).normal(size=(100_000, d))
    teacher = scipy.special.erf(x[:, :2] / math.sqrt(2)).sum(axis=1)
    halves = (np.asarray(net.outputs(x)) - teacher) ** 2 / 2
    at_start = float(runs("saad1995").table.limit_error[0])
    assert_allclose(halves.mean(), at_start, atol=4 * halves.std() / math.sqrt(len(x)))


def test_saad1995_the_plateau_is_that_of_two_equal_students(runs):
    # Both students at the same overlap with both units: the least of the error over their common M
    # and Q = |w|^2, where M <= sqrt(Q / 2). E erf(a/sqrt2) erf(b/sqrt2) = 2/pi arcsin(c / sqrt((1 +
    # A)(1 + B))) for covariance c and variances A, B.
    table = runs("saad1995").table
    mean = lambda c, a, b: 2 / math.pi * math.asin(c / math.sqrt((1 + a) * (1 + b)))

    def error(q):
        m = math.sqrt(q / 2)
        return (4 * mean(q, q, q) - 8 * mean(m, q, 1.0) + 2 * mean(1.0, 1.0, 1.0)) / 2

    least = scipy.optimize.minimize_scalar(error, bounds=(0.01, 2.0), method="bounded").fun
    level = float(
        table.generalisation_error[
            saad1995.waiting(table.time.values, table.generalisation_error.values)
        ]
    )
    assert (
        least < level < 1.6 * least
    )  # above it: the noise of single samples at this rate keeps the students from the best place


# A table without the event has no moment.


def test_no_moment_without_the_event(runs):
    table = runs("li2020").table
    early = table.isel(step=table.time.values <= li2020.plateau(table).time)
    assert li2020.escape(early) is None
    assert li2020.plateau(early.assign(loss=4 * early.loss)) is None

    table = runs("ren2023").table
    assert (
        ren2023.cone(table.assign(profile=table.profile.isel(step=0).broadcast_like(table.profile)))
        is None
    )
    assert (
        ren2023.leaves_the_constant(table.assign(loss=table.loss * 0 + table.attrs["constant"]))
        is None
    )

    table = runs("chen2022").table
    names = list(chen2022.NAMES)
    assert chen2022.features_learnt(table.assign_coords(scaling=names[::-1])) is None
    assert chen2022.mean_field_left(table.assign_coords(scaling=["MF", "ours", "NTK"])) is None

    table = runs("caron2023").table
    turned = table.isel(setting=slice(None, None, -1))
    assert caron2023.features_move(turned) is None
    assert caron2023.prunable(turned) is None

    table = runs("saad1995").table
    swapped = table.assign(teacher_overlap=table.teacher_overlap.isel(index=[1, 0]))
    assert saad1995.parted(swapped) is None
    assert saad1995.plateau(table.assign(generalisation_error=np.exp(-table.time))) is None

    table = runs("allenzhu2018").table
    assert allenzhu2018.three_layers_win(table.assign(learner=1 - table.learner)) is None
    assert allenzhu2018.two_layers_stop(table.isel(step=slice(0, 5))) is None


@pytest.mark.parametrize(
    ("module", "field", "value"),
    [
        (li2020, "rate", 0.0),
        (ren2023, "bias", 1.5),
        (chen2022, "samples", 1),
        (caron2023, "gammas", (0.5, 0.0, 0.0)),
        (allenzhu2018, "features", 2),
        (saad1995, "difference", 0.7),
    ],
)
def test_wrong_settings_are_told(module, field, value):
    with pytest.raises(ValueError, match=f"`{field}` must"):
        dataclasses.replace(module.EXPERIMENT.settings["default"], **{field: value})
