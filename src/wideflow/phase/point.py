"""One run of a plane: one network on one fold, trained down through the levels."""

import numpy as np
import xarray as xr

from .._core.randomness import named_key
from ..training.session import Session
from .errors_of_predictions import error_of, two_classes
from .levels import at_levels
from .network import LEVELS, STEPS, split_settings, train_network
from .splits import Standard, split_rows
from .tables import load_table

MEASURED = {
    "validation": "error on the validation rows",
    "test": "error on the fold held out",
    "kernel_change": "‖Θ(t) − Θ(0)‖ / ‖Θ(0)‖",
    "linearisation_gap": "share of the outputs' change that first order misses",
    "movement": "relative movement of the weights",
    "time": "flow time of the half mean of squares",
}


def phase_point(
    key,
    session: Session,
    data: str = "",
    fold: int = 0,
    folds: int = 5,
    samples: int = 400,
    width: int = 256,
    richness: float = 1.0,
    scaling: str = "mean-field",
    share: float = 0.5,
    tail: float = 0.7,
    weight_std: float = 1.0,
    depth: int = 0,
    activation: str = "relu",
    levels: tuple = LEVELS,
    rate: float = 0.25,
    steps: int = STEPS,
    dynamics: str = "descent",
    precision: str = "float32",
) -> xr.Dataset:
    """A network of a phase plane, trained to a stated loss.

    Its table has a value a level of the training loss, NaN where the level was not reached: why not
    is the run's status.
    """
    if session.folder is None:
        raise ValueError("`session` must come with the folder in which the data lie.")
    table = load_table(session.folder, data)
    network, training = split_settings(locals())
    rows = split_rows(key, len(table), fold, folds, samples)
    raw, targets = table.inputs, table.targets
    standard = Standard.of(raw[rows.train], targets[rows.train])
    y = standard.targets(targets)
    border = float(np.mean(np.unique(y))) if two_classes(targets) else None
    evaluation_rows = np.concatenate([rows.validation, rows.test])
    path = train_network(
        network,
        training,
        named_key(key, "fold", fold),
        standard.inputs(raw[rows.train]),
        y[rows.train],
        standard.inputs(raw[evaluation_rows]),
        session,
    )
    cut = len(rows.validation)
    curves = {
        "validation": error_of(path.outputs[:, :cut], y[rows.validation], border),
        "test": error_of(path.outputs[:, cut:], y[rows.test], border),
        "kernel_change": path.kernel_change,
        "linearisation_gap": path.linearisation_gap,
        "movement": path.movement,
        "time": path.times,
    }
    values = {
        name: ("level", at_levels(path.losses, curves[name], training.levels), {"label": label})
        for name, label in MEASURED.items()
    }
    ends = {"final_loss": path.losses[-1], "final_step": path.steps, "train_rows": len(rows.train)}
    return xr.Dataset(
        values | ends, {"level": list(training.levels)}, {"status": path.status.sentence}
    )
