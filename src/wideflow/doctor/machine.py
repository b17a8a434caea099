"""What wideflow runs on: versions, devices, precision, data, disk, caches."""

import importlib.metadata
import os
import pathlib
import shutil

import jax
import jax.numpy as jnp

from .._core.memory import budget
from .._core.precision import double, jax_flag
from ..data.files import MNIST, UCI, cache_folder
from ..runs.files import check_writable
from ..runs.provenance import revision, versions
from .findings import Finding

OPTIONAL = {
    "h5netcdf": "records are written as netCDF 3",
    "bokeh": "no report page and no lab",
    "matplotlib": "no figures",
    "dask": "no sweeps",
    "tornado": "no lab",
    "scikit-learn": "no estimators",
    "pooch": "no downloads",
}
ENOUGH = 1 << 30  # bytes free on a disk


def look_over(out: pathlib.Path) -> list[Finding]:
    """The findings on this machine; `out` is the folder of runs."""
    return [
        _versions(),
        _optional(),
        _devices(),
        _precision(),
        _data(),
        _disk("folder of runs", out),
        _disk("cache folder", cache_folder()),
        _compiled(),
        Finding("memory budget", f"{_size(budget())} (WIDEFLOW_MEMORY)"),
    ]


def _versions() -> Finding:
    listed = ", ".join(f"{name} {version}" for name, version in versions().items())
    missing = "missing" in versions().values()
    return Finding(
        "versions", f"{listed}; source revision {revision()}", "wrong" if missing else "well"
    )


def _optional() -> Finding:
    missing = []
    for package, cost in OPTIONAL.items():
        try:
            importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            missing.append(f"{package} is missing: {cost}")
    if missing:
        return Finding("optional parts", "; ".join(missing), "note")
    return Finding("optional parts", "all there")


def _devices() -> Finding:
    names = ", ".join(f"{d.platform}:{d.id} ({d.device_kind})" for d in jax.devices())
    return Finding("devices", f"{names}; {os.cpu_count()} processor cores")


def _precision() -> Finding:
    """Whether an entry point has 64 bits: 1 + 2^-50 must not be 1."""
    outside = "on" if jax_flag("jax_enable_x64") else "off, and left off"
    one = double(lambda: jnp.ones(()) + 2.0**-50)()
    if one.dtype == jnp.float64 and float(one) > 1.0:
        return Finding("precision", f"float64 in every entry point; JAX's global flag is {outside}")
    return Finding("precision", f"entry points compute in {one.dtype}", "wrong")


def _data() -> Finding:
    sources = {name: [entry.source] for name, entry in UCI.items()} | {
        "mnist": list(MNIST.values())
    }
    local = os.environ.get("WIDEFLOW_DATA")
    folders = [pathlib.Path(local).expanduser()] if local else []
    folders.append(cache_folder())
    have = [
        n
        for n, parts in sources.items()
        if all(any((f / s.file).is_file() for f in folders) for s in parts)
    ]
    lack = [name for name in sources if name not in have]
    where = f"WIDEFLOW_DATA is {local or 'not set'}, cache {cache_folder()}"
    summary = f"{', '.join(have) or 'no files'} found" + (
        f", {', '.join(lack)} not here" if lack else ""
    )
    return Finding("data files", f"{summary}; {where}", "note" if lack else "well")


def _disk(what: str, folder: pathlib.Path) -> Finding:
    try:
        check_writable(folder)
    except OSError as error:
        return Finding(
            what, f"{folder.absolute()} cannot be written to: {error.strerror or error}", "wrong"
        )
    free = shutil.disk_usage(folder).free
    return Finding(
        what, f"{folder.absolute()}, {_size(free)} free", "well" if free > ENOUGH else "note"
    )


def _compiled() -> Finding:
    folder = jax_flag("jax_compilation_cache_dir")
    if not folder:
        return Finding(
            "compilation cache", "off in this process; the command line turns it on", "note"
        )
    files = [path for path in pathlib.Path(folder).glob("*") if path.is_file()]
    return Finding(
        "compilation cache",
        f"{folder}, {len(files)} files, {_size(sum(p.stat().st_size for p in files))}",
    )


def _size(count: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.3g} {unit}"
        count /= 1024
    return f"{count:.3g} TiB"
