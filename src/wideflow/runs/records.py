"""A finished run as one netCDF file: the table, and with it all that is needed to repeat and to
judge it.

The file is netCDF 4 through h5netcdf; where that package is missing (a bare compute node) it is
netCDF 3 through SciPy, with the same content, and both are read back alike. Nothing is ever
unpickled. A digest stands behind the end of the netCDF data, where other readers do not look, so
that damage is recognised wherever it sits.
"""

import hashlib
import importlib.util
import io
import pathlib
import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import numpy as np
import xarray as xr

from .files import write_whole
from .json_encoding import decode, encode
from .netcdf3 import pack, unpack

FORMAT = 1
_ABOUT, _JSON = "wideflow", "wideflow_json"
_SEAL = b"\nwideflow sha256 "
_MAGIC = {b"\x89HDF": "h5netcdf", b"CDF\x01": "scipy", b"CDF\x02": "scipy", b"CDF\x05": "scipy"}


class DamagedRecordError(ValueError):
    """A file that should be a record and is not, or no longer; the message names it and says
    why.
    """


@dataclass(frozen=True)
class Damage:
    """A file of a store that cannot be read as a record, and why."""

    path: pathlib.Path
    reason: str


TOO_SMALL = "not checked at this size"
_OLD_TOO_SMALL = "not asked at this size"  # in records written before 0.2.0
KINDS = ("failed", "declared", "unasked", "holds")


@dataclass(frozen=True)
class Judged:
    """A claim with its verdict, as it was when the run was saved."""

    text: str
    value: float
    bound: str
    verdict: str
    acceptable: bool
    reproduces: bool
    published: float | None = None
    note: str = ""

    @property
    def ok(self) -> bool:
        """Whether the claim holds, is declared not to hold and does not, or was not checked at this
        size.
        """
        return self.acceptable

    @property
    def kind(self) -> str:
        """'failed', 'declared' (a declared non-reproduction), 'unasked' (the run is too small) or
        'holds'.
        """
        if not self.ok:
            return "failed"
        if self.verdict in (TOO_SMALL, _OLD_TOO_SMALL):
            return "unasked"
        return "holds" if self.reproduces else "declared"

    @property
    def ours(self) -> str:
        """The value as it is shown; claims without a number show whether they are true."""
        if self.kind == "unasked" and self.value != self.value:
            return "–"
        if self.value != self.value and self.bound == "true":
            return "true" if self.ok == self.reproduces else "false"
        return f"{self.value:.4g}"


@dataclass(frozen=True)
class Record:
    """What is kept of a run.

    Attributes:
        experiment, paper, title, figure: what was run.
        size, settings, seed: with what; `settings` holds every field, `changed` those that differ
            from the size.
        address: the hash under which the store finds it.
        status: why the run stopped.
        claims: judged when the run was saved.
        versions, revision, device: what computed it.
        started, seconds: when (UTC) and how long.
        table: all numbers.
    """

    experiment: str
    paper: str
    title: str
    figure: str
    size: str
    settings: Mapping[str, Any]
    changed: tuple[str, ...]
    seed: int
    address: str
    status: str
    claims: tuple[Judged, ...]
    versions: Mapping[str, str]
    revision: str
    device: str
    started: str
    seconds: float
    table: xr.Dataset = field(repr=False, compare=False)
    path: pathlib.Path | None = None

    @property
    def ok(self) -> bool:
        """Whether every claim holds, or is declared as not reproducing and does not."""
        return all(claim.ok for claim in self.claims)

    @property
    def acceptable(self) -> bool:
        """The old name of `ok`."""
        return self.ok

    @property
    def counts(self) -> dict[str, int]:
        """How many claims failed, are declared as not reproducing, were not checked, hold."""
        kinds = [claim.kind for claim in self.claims]
        return {kind: kinds.count(kind) for kind in KINDS}

    @property
    def stem(self) -> str:
        """The name of its files, without the ending."""
        return f"{self.experiment}-{self.size}-{self.address}"

    @property
    def command(self) -> str:
        """The shell command that repeats the run."""
        changed = {name: self.settings[name] for name in self.changed}
        return repeat_command(self.experiment, self.size, self.seed, changed)

    def about(self) -> dict[str, Any]:
        """Everything but the table, in plain values."""
        values = {
            f.name: getattr(self, f.name)
            for f in fields(self)
            if f.name not in ("table", "path", "claims")
        }
        return {"format": FORMAT, **values, "claims": [asdict(claim) for claim in self.claims]}


def repeat_command(experiment: str, size: str, seed: int, changed: Mapping[str, Any]) -> str:
    """The shell command of a run with those settings changed."""
    words = ["wideflow", "run", experiment, "--size", size, "--seed", str(seed)]
    for name, value in changed.items():
        if name == "flow":  # no field of any settings: it has its own flag
            words.append("--flow")
            continue
        text = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
        words += ["--set", f"{name}={text}"]
    return shlex.join(words)


def write_record(record: Record, path: pathlib.Path, *, small: bool = False) -> Record:
    """Saves `record` at `path`, whole or not at all; returns it with its path.

    `small` asks for netCDF 3, which is written and read far quicker; a table that does not fit it
    (integers beyond 32 bit) is written as netCDF 4 all the same. It is not waited for the disk:
    what a power cut leaves of such a file is known by its digest, and the run is done again.
    """
    table = _with_json_attributes(record.table)
    table.attrs[_ABOUT] = encode(record.about(), ordered=False)
    large = "h5netcdf" if importlib.util.find_spec("h5netcdf") else "scipy"
    payload = pack(table) if small else None
    if payload is None:
        try:
            payload = bytes(table.to_netcdf(engine="scipy" if small else large))
        except (ValueError, TypeError):
            if not small:
                raise
            payload = bytes(table.to_netcdf(engine=large))
    write_whole(path, payload + _seal(payload), durable=not small)
    return replace(record, path=path)


def read_record(path: pathlib.Path) -> Record:
    """Reads a record back.

    Raises:
        DamagedRecordError: the file is cut short, changed, empty, or not a record at all.
        OSError: it cannot be opened.
    """
    payload, engine = check_whole(path)
    table = unpack(payload) if engine == "scipy" else None
    if table is None:
        with xr.open_dataset(io.BytesIO(payload), engine=engine, decode_times=False) as opened:
            table = opened.load()
    table = _without_json_attributes(table)
    return _record(decode(table.attrs.pop(_ABOUT)), table, path)


def check_whole(path: pathlib.Path) -> tuple[bytes, str]:
    """The netCDF content of a record and the engine that reads it; raises as `read_record` does."""
    content = path.read_bytes()
    engine = _MAGIC.get(content[:4])
    if engine is None:
        raise DamagedRecordError(
            f"{path} is not a netCDF file{' (it is empty)' if not content else ''}."
        )
    length = len(content) - len(_seal(b""))
    payload, seal = content[: max(length, 0)], content[max(length, 0) :]
    if not seal.startswith(_SEAL):
        raise DamagedRecordError(
            f"{path} is a netCDF file, but not a record of wideflow, or it was truncated."
        )
    if seal != _seal(payload):
        raise DamagedRecordError(f"{path} is damaged: its content does not match its digest.")
    return payload, engine


def _seal(payload: bytes) -> bytes:
    return _SEAL + hashlib.sha256(payload).hexdigest().encode()


def _record(about: dict[str, Any], table: xr.Dataset, path: pathlib.Path) -> Record:
    if about.pop("format") != FORMAT:
        raise DamagedRecordError(f"{path} was written in a record format other than {FORMAT}.")
    claims = tuple(Judged(**claim) for claim in about.pop("claims"))
    about["changed"] = tuple(about["changed"])
    return Record(**about, claims=claims, table=table, path=path)


def _with_json_attributes(table: xr.Dataset) -> xr.Dataset:
    """A copy whose attributes are strings and numbers; all others go as JSON and are listed."""
    table = table.copy()
    for holder in (table, *(table[name] for name in table.variables)):
        rich = [
            n
            for n, v in holder.attrs.items()
            if isinstance(v, bool) or not isinstance(v, str | int | float)
        ]
        holder.attrs = {n: encode(v) if n in rich else v for n, v in holder.attrs.items()}
        if rich:
            holder.attrs[_JSON] = encode(rich)
    return table


def _without_json_attributes(table: xr.Dataset) -> xr.Dataset:
    for holder in (table, *(table[name] for name in table.variables)):
        rich = decode(holder.attrs.pop(_JSON, "[]"))
        holder.attrs = {
            n: decode(v) if n in rich else v.item() if isinstance(v, np.generic) else v
            for n, v in holder.attrs.items()
        }
    return table
