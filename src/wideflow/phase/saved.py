"""A plane that was written to a folder, read again: nothing is run and nothing is fitted anew but
the surface.
"""

import json
import pathlib
from typing import TYPE_CHECKING

import xarray as xr

from ..runs.files import write_whole
from ..runs.json_encoding import plain
from .answer import answer
from .axes import Axis
from .measurements import measurements_of

if TYPE_CHECKING:
    from .phase import Phase

FILE = "phase.nc"
ABOUT = "plane"  # the attribute that holds what is not a table
ERRORS = ("validation", "test")
DIMS = ("limit_fold", "level")


def write_plane(plane: "Phase", path: pathlib.Path) -> None:
    """The runs, the limits beside them, and what both mean, in one netCDF file."""
    about = {
        "name": plane.name,
        "axes": {axis.name: list(axis.values) for axis in plane.axes},
        "runs": [[list(place), fold] for place, fold in plane.done],
        "settings": dict(plane.settings),
        "kind": plane.kind,
        "folds": plane.folds,
        "stopped": plane.stopped,
        "rich": None if plane.rich is None else dict(plane.rich.attrs),
    }
    ends = {"lazy": plane.lazy} | ({} if plane.rich is None else {"rich": plane.rich})
    limits = {
        f"{end}_limit_{n}": (DIMS, errors[n].values) for end, errors in ends.items() for n in ERRORS
    }
    text = json.dumps(plain(about, spelt=False))
    table = plane.table.assign(limits).assign_attrs({ABOUT: text})
    write_whole(path, bytes(table.to_netcdf(engine="h5netcdf")))


def read_plane(folder: str | pathlib.Path) -> "Phase":
    """The plane that `Phase.write` or `wideflow phase` left in `folder`.

    Raises:
        ValueError: there is none, or one of an older version.
    """
    from .phase import Phase

    path = pathlib.Path(folder) / FILE
    if not path.is_file():
        raise ValueError(
            f"`folder` holds no {FILE}: {folder}. `wideflow phase DATA --out {folder}` writes it."
        )
    with xr.open_dataset(path, engine="h5netcdf") as opened:
        table = opened.load()
    if ABOUT not in table.attrs:
        raise ValueError(
            f"{path} was written by an older version. The same `wideflow phase` command writes "
            "it again, without running anything."
        )
    about = json.loads(table.attrs.pop(ABOUT))
    first, second = (Axis(name, tuple(values)) for name, values in about["axes"].items())
    done = [((int(place[0]), int(place[1])), int(fold)) for place, fold in about["runs"]]
    settings = about["settings"] | {"levels": tuple(about["settings"]["levels"])}
    lazy = _limit(table, "lazy", settings["levels"])
    rich = (
        None
        if about["rich"] is None
        else _limit(table, "rich", settings["levels"]).assign_attrs(about["rich"])
    )
    table = table.drop_vars([name for name in table.data_vars if DIMS[0] in table[name].dims])
    places, measured = measurements_of(
        table, (first, second), done, settings["levels"], about["folds"]
    )
    limits = {name: lazy[name].values for name in ERRORS}
    verdict = answer((first, second), places, measured, limits, about["folds"], rich)
    return Phase(
        about["name"],
        (first, second),
        places,
        settings,
        table,
        lazy,
        rich,
        measured,
        verdict,
        about["kind"],
        about["folds"],
        about["stopped"],
        done,
    )


def _limit(table: xr.Dataset, end: str, levels: tuple[float, ...]) -> xr.Dataset:
    """The errors of one end's limit, as `Phase` has them."""
    errors = {name: (("fold", "level"), table[f"{end}_limit_{name}"].values) for name in ERRORS}
    return xr.Dataset(errors, {"level": list(levels)})
