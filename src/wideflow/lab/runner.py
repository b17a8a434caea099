"""A job in the worker: the experiment under a watcher, the theorems beside it, the files at the
end.
"""

import dataclasses
import datetime
import functools
import pathlib
import tempfile
import threading
import time
from collections.abc import Callable

import jax
import numpy as np
import xarray as xr

from .._core.precision import double
from ..experiments.background import AWAITED
from ..experiments.base import Experiment
from ..report.static import render_png
from ..runs.records import write_record
from ..runs.runner import as_record, on_device
from ..training.session import Session
from .health import diverged, ending, warning
from .messages import Figure, Job, State, Taken
from .scenes import Scene, find_scene
from .worker import NextJob, Rehearsed, Show


def perform(job: Job, show: Show) -> Job:
    """Runs the job to its end, then hands out its files; gives the next job, which may come at any
    moment.
    """
    scene = find_scene(job.scene)
    try:
        try:
            settings = scene.settings(job.changes)
            Performance(scene, settings, job, show).run()
        except (EOFError, BrokenPipeError, ConnectionResetError):
            raise
        except Exception as error:
            if show.mute and not job.stays:
                raise Rehearsed from error  # a tab that asks for this job is told
            show.send(State("failed", sentence(error)))
        while True:
            show.listen(None)
    except NextJob as coming:
        return coming.job


def sentence(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if isinstance(error, ValueError) else f"{type(error).__name__}: {text}"


class Performance:
    """One run, as its worker sees it."""

    def __init__(self, scene: Scene, settings, job: Job, show: Show):
        self.scene, self.settings, self.job, self.show = scene, settings, job, show
        self.table: Callable[[], xr.Dataset] | None = None  # of the records so far
        self.complete, self.records = False, 0
        self.awaited = 0  # predictions that the last figure did not have yet
        self.happened: set[int] = set()
        self.began, self.clock = datetime.datetime.now(datetime.UTC), time.perf_counter()
        show.take = self.take

    @property
    def experiment(self) -> Experiment:
        return self.scene.experiment

    def run(self) -> None:
        self.show.send(State("preparing" if self.job.held else "running", "compiling"))
        with on_device(None) as self.device:
            table = self._computed()
        self.table, self.complete = lambda: table, True
        self.moments(table)
        self.show.hold()  # a run of one record alone
        self.show.figure(lambda: self.seen(table), final=True)
        self.show.send(State("diverged" if diverged(table) else "finished", ending(table)))

    @double
    def _computed(self) -> xr.Dataset:
        key = jax.random.key(self.job.seed)
        session = Session(on_record=self.watch, progress=self.show.progress)
        return self.experiment.run(self.settings, key, session)

    def watch(self, so_far) -> None:
        # A table takes longer than a step, and most records of a fast run are neither drawn nor
        # taken home.
        self.table = table = functools.cache(so_far)
        self.records += 1
        if self.records == 2 and self.show.held:
            self.hold(so_far)
        if self.scene.steps:
            self.moments(table())
        self.show.figure(lambda: self.seen(table()))
        if self.records == 2 and self.scene.judge is not None:  # the first steps go before
            threading.Thread(target=self.judge, daemon=True).start()
        self.show.after_record()

    def hold(self, so_far) -> None:
        """Everything is compiled; the first record is shown again whenever predictions have come
        since.
        """

        def refresh() -> bool:
            table = so_far()
            awaited = table.attrs.get(AWAITED, 0)
            if awaited != self.awaited:
                self.show.figure(lambda: self.seen(table.isel(step=slice(0, 1))))
            return awaited > 0 or awaited != self.awaited

        self.show.hold((lambda: False) if self.scene.steps else refresh)

    def seen(self, table: xr.Dataset) -> Figure:
        last = {name: table[name].values.max() for name in ("step", "time") if name in table.coords}
        step, at = int(last.get("step", 0)), float(last.get("time", np.nan))
        self.awaited = table.attrs.get(AWAITED, 0)
        return Figure(
            self.scene.live(table), self.scene.dial(table), at, step, warning(table, self.settings)
        )

    def moments(self, table: xr.Dataset) -> None:
        for number, step in enumerate(self.scene.steps):
            if number in self.happened or step.moment is None:
                continue
            moment = step.moment(table)
            if moment is not None:
                self.happened.add(number)
                self.show.event(number, float(moment.time), moment.sentence)

    def judge(self) -> None:
        """The theorems on this very network and data, in a thread beside the run."""
        assert self.scene.judge is not None
        try:
            self.show.send(self.scene.judge(self.settings, self.job.seed))
        except (BrokenPipeError, OSError):
            pass
        except Exception as error:
            self.show.send(
                State("unjudged", f"The theorems could not be evaluated: {sentence(error)}")
            )

    def take(self, kind: str) -> Taken:
        """The figure as PNG or the record as netCDF, of the table as it stands."""
        if self.table is None or self.show.held:
            return Taken(kind, trouble="Nothing has been recorded yet. Press Start first.")
        table = self.table()
        if kind == "figure":
            spec = self.scene.live(table)
            caption = f"{spec.caption} Seed {self.job.seed}."
            return Taken(kind, render_png(dataclasses.replace(spec, caption=caption)))
        with tempfile.TemporaryDirectory(prefix="wideflow-") as folder:
            path = pathlib.Path(folder) / "record.nc"
            write_record(self.record(table), path)
            return Taken(kind, path.read_bytes())

    def record(self, table: xr.Dataset):
        claims = self.experiment.claims(table) if self.complete else ()
        size, seconds = "default", time.perf_counter() - self.clock
        return as_record(
            self.experiment,
            size,
            self.settings,
            self.job.seed,
            table,
            claims,
            self.device,
            self.began,
            seconds,
        )
