"""What `run`, `reproduce` and `report` do between parsing and printing."""

import os
import pathlib
from typing import Any

import jax

from .._core.errors import check_choice
from .._core.precision import jax_flag
from ..data.files import DataNotFoundError, cache_folder
from ..experiments import registry
from ..experiments.base import Experiment
from ..report.static import save_figure
from ..runs.failures import FAILED, INTERRUPTED, USAGE, CommandError, sentence_of, usage_errors
from ..runs.records import Record
from ..runs.runner import Performed, find_device, perform, settings_of
from ..runs.store import Store
from . import terminal


def perform_shown(
    experiment: Experiment,
    out: pathlib.Path,
    size: str,
    overrides: dict[str, Any],
    seed: int,
    device: str | None,
    fresh: bool,
    flow: bool = False,
) -> Performed:
    """Runs into the folder `out`, with progress; what goes wrong comes out as one sentence."""
    with usage_errors():
        settings_of(experiment, size, overrides)
        find_device(device)
    keep_compiled_programs()
    store = Store(out)
    try:
        with terminal.progress_of(experiment.name) as progress:
            return perform(
                experiment,
                store,
                size=size,
                overrides=overrides,
                seed=seed,
                device=device,
                fresh=fresh,
                flow=flow,
                progress=progress,
            )
    except KeyboardInterrupt as error:
        checkpoint = "it had no checkpoint yet."
        if store.unfinished():
            checkpoint = (
                f"its last checkpoint is saved in {out}, and the same command continues from there."
            )
        raise CommandError(
            f"{experiment.name} was interrupted; {checkpoint}", INTERRUPTED
        ) from error
    except DataNotFoundError:
        raise
    except Exception as error:
        code = USAGE if isinstance(error, ValueError) else FAILED  # a setting that a part refuses
        raise CommandError(f"{experiment.name} stopped: {sentence_of(error)}", code) from error


def common_overrides(
    experiment: Experiment,
    seeds: int | None,
    precision: str | None,
    strict: bool,
    devices: int | None = None,
) -> dict[str, Any]:
    """`--seeds`, `--precision` and `--devices` as settings; an experiment without such a field
    refuses if `strict`.
    """
    options = {"seeds": seeds, "precision": precision, "devices": devices}
    overrides = {name: value for name, value in options.items() if value is not None}
    fields = vars(experiment.settings["default"])
    missing = [name for name in overrides if name not in fields]
    if missing and strict:
        raise ValueError(
            f"`{experiment.name}` has no setting {missing[0]!r}, so --{missing[0]} does not apply "
            "to it."
        )
    return {name: value for name, value in overrides.items() if name in fields}


def experiments_of(paper: str | None) -> list[Experiment]:
    """The experiments of one paper, or all of them."""
    if paper is not None:
        check_choice("paper", paper, registry.papers())
    return [one for one in registry.experiments().values() if paper in (None, one.paper)]


def draw(experiment: Experiment, record: Record) -> tuple[pathlib.Path, pathlib.Path]:
    """The record's figure as PNG and PDF beside it."""
    assert record.path is not None
    return save_figure(experiment.draw(record.table), record.path.with_suffix(""))


def keep_compiled_programs() -> None:
    """Turns JAX's persistent compilation cache on, so that the same shapes start at once next
    time.
    """
    folder = jax_flag("jax_compilation_cache_dir")
    if folder is None and "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        jax.config.update("jax_compilation_cache_dir", str(cache_folder() / "jax"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)


def drop_compiled_programs() -> None:
    """Before the next of many experiments: programs of one serve no other, and a process may hold
    only so many.
    """
    jax.clear_caches()
