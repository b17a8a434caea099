"""Runs an experiment into a store: found if it is there, resumed if it was cut short, saved when
done.
"""

import contextlib
import dataclasses
import datetime
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
import xarray as xr

from .._core.errors import check_choice, did_you_mean
from .._core.precision import double
from ..experiments.base import SIZES, Claim, Experiment
from ..training.session import OnRecord, Progress, Session, silent
from .overrides import overridden
from .provenance import revision, sources, versions
from .records import TOO_SMALL, Judged, Record
from .store import Store, address


@dataclass(frozen=True)
class Performed:
    """A record, and whether it was found in the store rather than computed now."""

    record: Record
    found: bool

    @property
    def outdated(self) -> bool:
        """Whether the record that was found was computed by other sources than the present ones."""
        return self.found and self.record.versions.get("sources") != sources()


def settings_of(experiment: Experiment, size: str, overrides: Mapping[str, Any]) -> Any:
    """The settings of that size with single fields replaced; wrong names and values are
    explained.
    """
    check_choice("size", size, SIZES)
    return overridden(experiment.settings[size], overrides, experiment.name)


def perform(
    experiment: Experiment,
    store: Store,
    *,
    size: str = "default",
    overrides: Mapping[str, Any] | None = None,
    seed: int = 0,
    device: str | None = None,
    fresh: bool = False,
    flow: bool = False,
    progress: Progress = silent,
    on_record: OnRecord | None = None,
) -> Performed:
    """Runs `experiment` and saves it in `store`, unless the same run is already there.

    Args:
        size: "smoke", "default" or "paper".
        overrides: fields of the settings by name; text is read as the field's type.
        seed: of the experiment's key.
        device: "cpu", "gpu", "gpu:1"; default is JAX's own choice.
        fresh: compute even if the run is there, and from its start.
        flow: gradient flow in place of full-batch descent, recorded at the same times; kept as the
            setting "flow".
        progress: called with (done, total, what).
        on_record: shown the table at every record of every training (`Session.on_record`).
    """
    settings = settings_of(experiment, size, overrides or {})
    where = address(experiment.name, _values(settings, flow), seed)
    store.check_writable()
    if fresh:
        store.forget(where)
    elif (record := store.find(where)) is not None:
        return Performed(record, True)
    done = compute(
        experiment,
        store,
        settings,
        size=size,
        seed=seed,
        device=device,
        progress=progress,
        flow=flow,
        on_record=on_record,
    )
    return Performed(done, False)


def compute(
    experiment: Experiment,
    store: Store,
    settings: Any,
    *,
    size: str,
    seed: int,
    device: str | None = None,
    progress: Progress = silent,
    flow: bool = False,
    on_record: OnRecord | None = None,
) -> Record:
    """Runs `experiment` with these settings, from its last checkpoint if it was cut short, and
    saves it in `store`.
    """
    where = address(experiment.name, _values(settings, flow), seed)
    began, clock = datetime.datetime.now(datetime.UTC), time.perf_counter()
    session = Session(flow, store.checkpointer(where), on_record, progress, folder=store.folder)
    with on_device(device) as used:
        table = _computed(experiment, settings, seed, session)
        claims = experiment.claims(table)
    seconds = time.perf_counter() - clock
    record = as_record(experiment, size, settings, seed, table, claims, used, began, seconds, flow)
    return store.save(record)


def _values(settings, flow: bool) -> dict[str, Any]:
    """What decides a run: all fields of its settings, and whether it flows in place of
    descending.
    """
    return dataclasses.asdict(settings) | ({"flow": True} if flow else {})


def as_record(
    experiment: Experiment,
    size: str,
    settings: Any,
    seed: int,
    table: xr.Dataset,
    claims: tuple[Claim, ...],
    device: str,
    began: datetime.datetime,
    seconds: float,
    flow: bool = False,
) -> Record:
    """What is kept of a run that has given `table`."""
    values = _values(settings, flow)
    plain_size = dataclasses.asdict(experiment.settings[size])
    large_enough = experiment.is_large_enough(size)
    return Record(
        experiment=experiment.name,
        paper=experiment.paper,
        title=experiment.title,
        figure=experiment.figure,
        size=size,
        settings=values,
        changed=tuple(n for n, v in values.items() if v != plain_size.get(n)),
        seed=seed,
        address=address(experiment.name, values, seed),
        status=str(table.attrs.get("status", "finished")),
        claims=tuple(judged(claim, large_enough) for claim in claims),
        versions=versions(),
        revision=revision(),
        device=device,
        started=began.isoformat(timespec="seconds"),
        seconds=seconds,
        table=table,
    )


@double
def _computed(experiment: Experiment, settings, seed: int, session: Session) -> xr.Dataset:
    table = experiment.run(settings, jax.random.key(seed), session)
    if session.flow and not session.counts.flows:
        raise ValueError(
            f"`{experiment.name}` uses no gradient descent, so --flow does not apply to it; run it "
            "without --flow."
        )
    return _in_c_order(table)


def _in_c_order(table: xr.Dataset) -> xr.Dataset:
    """The table with its arrays laid out as they are when it is read back.

    NumPy adds up in the order of memory, so that claims on another layout could differ in the last
    digit.
    """
    return table.copy(
        data={name: np.asarray(array.values, order="C") for name, array in table.data_vars.items()}
    )


def judged(claim: Claim, large_enough: bool = True) -> Judged:
    """The claim with its verdict, in plain values; unjudged where the run is too small for it."""
    return Judged(
        text=claim.text,
        value=float(claim.value),
        bound=claim.bound,
        verdict=claim.verdict if large_enough else TOO_SMALL,
        acceptable=bool(claim.ok) or not large_enough,
        reproduces=claim.expected_to_hold,
        published=None if claim.published is None else float(claim.published),
        note=claim.note,
    )


@contextlib.contextmanager
def on_device(name: str | None):
    """Computes on the device called `name` inside the block; gives the device in words."""
    device = find_device(name)
    with jax.default_device(device):
        yield f"{device.platform}:{device.id} ({device.device_kind})"


def find_device(name: str | None) -> jax.Device:
    """The device of that name ("cpu", "gpu", "gpu:1"), or JAX's first; an unknown one lists what
    exists.
    """
    if name is None:
        return jax.devices()[0]
    platform, _, number = name.partition(":")
    try:
        if not platform or number.startswith("-"):  # JAX's own choice; the last but one
            raise ValueError(name)
        devices = jax.devices("gpu" if platform == "cuda" else platform)
        return devices[int(number or 0)]
    except (RuntimeError, ValueError, IndexError) as error:
        names = sorted({f"{d.platform}:{d.id}" for d in (*jax.devices(), *jax.devices("cpu"))})
        raise ValueError(
            f"`device` must be one of this machine's devices, {', '.join(names)}, got {name!r}."
            f"{did_you_mean(name, names)}"
        ) from error
