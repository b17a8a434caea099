"""A plane as files: page, figure, table, numbers."""

import json
import pathlib
import shlex
from typing import TYPE_CHECKING

from ..report.page import Sheet, write_page
from ..report.static import save_figure
from ..runs.files import write_whole
from ..runs.json_encoding import plain
from .comparisons import interval
from .saved import write_plane

if TYPE_CHECKING:
    from .phase import Phase

CHIPS = {"lazy": "holds", "between": "declared", "rich": "holds", "unknown": "failed"}


def write(plane: "Phase", folder: pathlib.Path) -> tuple[pathlib.Path, ...]:
    """Writes everything under the name `phase` and gives the paths, the page first."""
    folder.mkdir(parents=True, exist_ok=True)
    stem, spec = folder / "phase", plane.figure()
    png, pdf = save_figure(spec, stem)
    page, table, numbers = (stem.with_suffix(suffix) for suffix in (".html", ".nc", ".json"))
    write_plane(plane, table)
    write_whole(
        numbers,
        json.dumps(plain(summary(plane), spelt=False), indent=1, ensure_ascii=False).encode(),
    )
    subject = {
        "runs": str(plane.runs),
        "points": str(len(plane.places)),
        "folds": str(plane.folds),
        "training rows a run": str(int(plane.table["train_rows"].max())),
        "ended because": plane.stopped,
    }
    links = {
        "figure (PNG)": png.name,
        "figure (PDF)": pdf.name,
        "runs (netCDF)": table.name,
        "numbers (JSON)": numbers.name,
    }
    sheets = [_points(plane), Sheet("Go on in Python", ("code",), ((python(plane),),))]
    write_page(page, f"Phase plane of {plane.name}", [plane.sentence], subject, sheets, spec, links)
    return page, table, numbers, png, pdf


def python(plane: "Phase") -> str:
    """The recommended estimator as it is typed."""
    arguments = ", ".join(f"{name}={value!r}" for name, value in plane.recommended.items())
    return (
        "from wideflow.phase.estimator import PhaseRegressor; "
        f"PhaseRegressor({arguments}).fit(X, y)"
    )


def summary(plane: "Phase") -> dict:
    """The answer in plain values."""
    verdict = plane.answer
    numbers = lambda one: (
        None if one is None else {"mean": one.mean, "half": one.half, "folds": one.count}
    )
    return {
        "data": plane.name,
        "axes": {axis.name: list(axis.values) for axis in plane.axes},
        "sentence": plane.sentence,
        "runs": plane.runs,
        "stopped": plane.stopped,
        "recommended": plane.recommended,
        "regime": verdict.regime,
        "error_kind": plane.kind,
        "error": numbers(verdict.error),
        "error_of_the_setting": numbers(verdict.flattered),
        "lazy_limit": numbers(verdict.lazy_limit),
        "rich_limit": numbers(verdict.rich_limit),
        "log_rich_over_lazy": numbers(verdict.rich_over_lazy),
        "log_best_over_limit": numbers(verdict.best_over_limit),
        "enough": {
            name: None if one is None else {"value": one.value, "log_noise": one.noise}
            for name, one in verdict.enough.items()
        },
        "python": python(plane),
    }


def _points(plane: "Phase") -> Sheet:
    """Every point: regime, where it stands, errors, and what became of its runs."""
    measured, verdict = plane.measured, plane.answer
    levels = measured.best_levels()
    tests, checks = (measured.at(v, levels) for v in (measured.test, measured.validation))
    rows = []
    for i, place in enumerate(plane.places):
        values = [f"{axis.values[k]:g}" for axis, k in zip(plane.axes, place)]
        test, check = interval(tests[i], plane.folds), interval(checks[i], plane.folds)
        level = f"{measured.levels[levels[i]]:g}" if levels[i] >= 0 else "none reached"
        mark = "recommended" if i == verdict.best else "same" if i in verdict.same else ""
        reached = (
            f"{measured.levels[_deepest(measured.reached[i])]:g}"
            if measured.reached[i].any()
            else "above all levels"
        )
        rows.append(
            (
                verdict.regimes[i],
                *values,
                f"{check.mean:.4g}",
                f"{test.mean:.4g}",
                f"{test.half:.1g}",
                level,
                reached,
                str(test.count),
                mark,
            )
        )
    names = tuple(axis.name for axis in plane.axes)
    columns = (
        "regime",
        *names,
        "validation",
        "test",
        "± (95 %)",
        "best loss",
        "reached",
        "folds",
        "",
    )
    return Sheet("Points", columns, tuple(rows), CHIPS)


def _deepest(reached) -> int:
    """The last level that all runs of a point reached."""
    return max(number for number, yes in enumerate(reached) if yes)


def command(plane: "Phase", file: str) -> str:
    """The shell command that finds this plane again."""
    axes = " ".join(f"--axis {axis.name}" for axis in plane.axes)
    return f"wideflow phase {shlex.quote(file)} {axes}"
