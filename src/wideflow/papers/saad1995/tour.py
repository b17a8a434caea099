r"""Tour: the plateau of online learning, and what ends it (saad1995, sections III and IV).

A student of two units erf learns a teacher of two by one-pass SGD in high dimension. Both students
first learn the mean of the teachers and stay there; the small difference in their overlaps grows
exponentially, and when it is of order one they part. The equations of the overlaps, solved before
the run, say when.

Run:  wideflow run tour-saad1995
"""

import math
from dataclasses import dataclass

import numpy as np
import xarray as xr

from ..._core.errors import check_count, check_positive
from ..._core.randomness import named_key
from ...data.multi_index import MultiIndex
from ...dynamics.online_sgd import OnlineSGD
from ...experiments.base import Claim, Experiment
from ...experiments.tours.moments import Moment, line_at
from ...figures import FigureSpec, HLine, Line, Panel, Points
from ...limits.order_parameters import OnlineEquations, Overlaps, order_parameters
from ...models.shallow import Shallow
from ...observables.overlaps import GeneralisationError, TeacherOverlap
from ...observables.stages import first_time
from ...training.train import train
from .experiments.plateau import ERF, LENGTH

UNITS = 2
FLAT = 1.25  # on the plateau: within this factor while the time doubles
OWN, OTHER = (
    0.9,
    0.1,
)  # overlaps of a student that has parted: with its own unit, and with the other
TIME = "τ = samples / d"
STUDENTS = ("student 1", "student 2")


@dataclass(frozen=True)
class Settings:
    """`difference` is $M_{11} - M_{12}$ at the start: what distinguishes the students' overlaps."""

    features: int = 500
    difference: float = 0.05
    rate: float = 1.0
    time: float = 110.0
    records: int = 150

    def __post_init__(self):
        check_count("features", self.features, least=2 * UNITS)
        check_count("records", self.records, least=10)
        for name in ("rate", "time", "difference"):
            check_positive(name, getattr(self, name))
        if self.difference**2 > LENGTH:
            raise ValueError(
                f"`difference` must be at most {math.sqrt(LENGTH)}, the length of a student, got "
                f"{self.difference}."
            )


def student(features: int, difference: float) -> Shallow:
    r"""Unit $k$ is `difference` $v_k$ and for the rest orthogonal to the teacher: $M = $
    `difference` $I$, $Q = \frac14I$, outputs $\sum_k g(\lambda_k)$.
    """
    rest = math.sqrt(LENGTH - difference**2)
    hidden = difference * np.eye(UNITS, features) + rest * np.eye(UNITS, features, UNITS)
    # NTK scaling: pre-activations over sqrt(d), outputs over sqrt(K), which the output weights undo
    return Shallow(math.sqrt(features) * hidden, np.full(UNITS, math.sqrt(UNITS)), activation=ERF)


def run(settings: Settings, key, session) -> xr.Dataset:
    d = settings.features
    steps = np.unique(np.round(np.linspace(0, settings.time * d, settings.records + 1)).astype(int))
    equations = predicted(settings, steps / d)
    finished = lambda table: _in_samples(table, d).assign(equations)
    table = train(
        student(d, settings.difference),
        MultiIndex(ERF, np.eye(UNITS, d)),
        OnlineSGD(settings.rate),
        steps=int(steps[-1]),
        every=[int(step) for step in steps],
        record=[GeneralisationError(), TeacherOverlap()],
        key=named_key(key, "samples"),
        session=session.showing(finished),
    ).table
    return finished(table)


def _in_samples(table: xr.Dataset, features: int) -> xr.Dataset:
    """The time of the equations is the count of samples over d."""
    time = ("step", table.step.values / features, {"label": TIME})
    return table.assign_coords(time=time).assign_attrs(features=features)


def predicted(settings: Settings, times: np.ndarray) -> dict:
    """The equations from the overlaps of the start, at the times of the records."""
    identity = np.eye(UNITS)
    start = Overlaps(settings.difference * identity, LENGTH * identity, identity, np.ones(UNITS))
    path = order_parameters(OnlineEquations(ERF, ERF, rate=settings.rate), start, times)
    return {
        "limit_time": ("ahead", times),
        "limit_error": ("ahead", np.asarray(path.error)),
        "limit_overlap": (("ahead", "width", "index"), np.asarray(path.M)),
    }


def waiting(times: np.ndarray, errors: np.ndarray) -> int | None:
    """The first record by which the error has stayed within `FLAT` while the time doubled, far
    below its start; None before it.
    """
    for now in range(1, len(times)):
        since = int(np.searchsorted(times, times[now] / 2))
        window = errors[since : now + 1]
        if since > 0 and window.max() <= FLAT * window.min() and window.max() < errors[0] / 4:
            return now
    return None


def halved(times: np.ndarray, errors: np.ndarray) -> float:
    """When, after the plateau, the error is half of what it was there; NaN before."""
    now = waiting(times, errors)
    if now is None:
        return math.nan
    return first_time(times, (errors <= errors[now] / 2) & (times > times[now]))


def plateau(table: xr.Dataset) -> Moment | None:
    """The error stands still while the count of samples doubles."""
    times, errors = table.time.values, table.generalisation_error.values
    now = waiting(times, errors)
    if now is None:
        return None
    return Moment(
        float(times[now]),
        f"From τ = {times[now] / 2:.0f} to {times[now]:.0f} the samples have doubled and the "
        f"error has stayed at {errors[now]:.3f}, {errors[now] / errors[0]:.0%} of the start.",
    )


def escape(table: xr.Dataset) -> Moment | None:
    """The error is half of the plateau's; beside it, when the equations said so."""
    time = halved(table.time.values, table.generalisation_error.values)
    if math.isnan(time):
        return None
    foretold = halved(table.limit_time.values, table.limit_error.values)
    return Moment(
        time,
        f"At τ = {time:.0f} the error is half of the plateau's. The equations, from the first "
        f"overlaps alone, said τ = {foretold:.0f}.",
    )


def parted(table: xr.Dataset) -> Moment | None:
    """Each student follows one unit of the teacher, and no other."""
    overlap, times = table.teacher_overlap.values, table.time.values
    own = np.diagonal(overlap, axis1=1, axis2=2)
    other = np.abs(overlap - own[:, :, None] * np.eye(UNITS)).max(axis=(1, 2))
    time = first_time(times, (own.min(axis=1) >= OWN) & (other <= OTHER))
    if math.isnan(time) or escape(table) is None:
        return None
    now = int(np.searchsorted(times, time))
    return Moment(
        time,
        f"At τ = {time:.0f} each student has an overlap of {own[now].min():.2f} or more with its "
        f"own unit and at most {other[now]:.2f} with the other.",
    )


def difference(overlap: np.ndarray) -> np.ndarray:
    r"""$\frac12(M_{11} - M_{12} + M_{22} - M_{21})$ at every time: zero for students that cannot be
    told apart.
    """
    return (overlap[:, 0, 0] - overlap[:, 0, 1] + overlap[:, 1, 1] - overlap[:, 1, 0]) / 2


def live(table: xr.Dataset) -> FigureSpec:
    times, ahead = table.time.values, table.limit_time.values
    M, limit = table.teacher_overlap.values, table.limit_overlap.values
    event = line_at(escape(table), "half the plateau")
    apart = np.maximum(difference(M), 1e-4)
    paths = [
        mark
        for k, name in enumerate(STUDENTS)
        for mark in (
            Line(limit[:, k, 0], limit[:, k, 1], "equations", dash="dashed"),
            Line(M[:, k, 0], M[:, k, 1], name),
            Points(M[-1:, k, 0], M[-1:, k, 1], name, size=9),
        )
    ]
    overlaps = [
        mark
        for k, name in enumerate(STUDENTS)
        for r in range(UNITS)
        for mark in (
            Line(ahead, limit[:, k, r], "equations", dash="dashed"),
            Line(times, M[:, k, r], name),
        )
    ]
    return FigureSpec(
        f"The symmetric plateau: d = {table.attrs['features']}, two units",
        [
            Panel(
                "Generalisation error",
                TIME,
                "error",
                [
                    Line(ahead, table.limit_error.values, "equations", dash="dashed"),
                    Line(times, table.generalisation_error.values, "network"),
                    event,
                ],
                yscale="log",
            ),
            Panel(
                "Students among the teachers",
                "overlap with unit 1",
                "overlap with unit 2",
                [
                    *paths,
                    Points(
                        np.array([1.0, 0.0]), np.array([0.0, 1.0]), "the teacher's units", size=9
                    ),
                ],
                one_unit=True,
            ),
            Panel("Overlaps with the teacher", TIME, "M", [*overlaps, event]),
            Panel(
                "What tells the students apart",
                TIME,
                "own minus other overlap",
                [
                    Line(ahead, difference(limit), "equations", dash="dashed"),
                    Line(times, apart, "network"),
                    HLine(1.0, "apart", "dotted"),
                    event,
                ],
                yscale="log",
            ),
        ],
        caption="One network, every sample seen once; dashed the equations of infinite dimension "
        "from the same start. Compare saad1995, sections III and IV.",
        first=("equations", "network"),
    )


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    times, errors = table.time.values, table.generalisation_error.values
    ahead, limit = table.limit_time.values, table.limit_error.values
    now = waiting(times, errors)
    level, foretold = (e[now] if now is not None else math.nan for e in (errors, limit))
    return (
        Claim("the error stands still while the samples double", holds=plateau(table) is not None),
        Claim("then it falls to half of the plateau's", holds=escape(table) is not None),
        Claim("each student finds its own unit", holds=parted(table) is not None),
        # a run at dimension d differs by d^(-1/2), which is 0.045 at 500: the level by a few of
        # these, the escape by the share of the first difference that the noise makes up
        Claim(
            "the plateau's error over that of the equations at the same time",
            level / foretold,
            at_least=0.85,
            at_most=1.15,
        ),
        Claim(
            "time of the escape over that of the equations",
            halved(times, errors) / halved(ahead, limit),
            at_least=0.75,
            at_most=1.33,
        ),
        Claim("error at the end over the plateau's", errors[-1] / level, at_most=0.1),
    )


EXPERIMENT = Experiment(
    name="tour-saad1995",
    paper="saad1995",
    title="Tour: the plateau of online learning and what ends it",
    figure="Sections III and IV",
    settings={
        "smoke": Settings(features=300, difference=0.15, time=80.0, records=100),
        "default": Settings(),
        "paper": Settings(features=2000, time=140.0, records=200),
    },
    run=run,
    draw=live,
    claims=claims,
)
