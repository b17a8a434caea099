r"""The three-layer learner over widths: plain SGD on $\sin(3x_1)\sin(2x_2)$, the runs behind the
experiments on width, coupling, signs and spread.

$d_0 = 5$, $N = 300$, $\varepsilon_a = 1$, $\eta = 1/(2m)$, batch 10; no smoothing, regulariser or
shrink; last iterate.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from ...._core.randomness import named_key
from ....dynamics.sgd import SGD
from ..concept_data import product_concept
from ..laws.power_series import smooth
from ..models.biased_three_layer import BiasedThreeLayer
from ..observables.pseudo import coupling_error, sign_changes
from ..observables.row_norms import row_norm
from .seeds import datasets, networks, trained

MEASURES = {
    "test_error": "relative test error, MSE / variance",
    "train_error": "relative training error",
    "coupling3": "rms |f - g|, three layers",
    "flipped_first": "first-layer signs changed",
    "flipped_second": "second-layer signs changed",
    "first_norm_4": r"$\|W\|_{2,4}$",
    "first_norm_2": "‖W‖_F",
    "first_norm_inf": r"$\|W\|_{2,\infty}$",
    "second_norm_2": "‖V‖_F",
    "second_norm_inf": r"$\|V\|_{2,\infty}$",
}


def relative_error(outputs, targets):
    """Mean squared error divided by the variance of the targets."""
    return jnp.mean((outputs - targets) ** 2) / jnp.var(targets)


@eqx.filter_jit
def measure(model: BiasedThreeLayer, start: BiasedThreeLayer, data, test) -> dict[str, jax.Array]:
    """All of `MEASURES` for one trained network."""
    (x, y), (inputs, targets) = data, test
    changes = sign_changes(model, start, inputs)
    w, v = model.first_increment, model.second_increment
    return {
        "test_error": relative_error(model.outputs(inputs), targets),
        "train_error": relative_error(model.outputs(x), y),
        "coupling3": jnp.sqrt(jnp.mean(coupling_error(model, start, inputs) ** 2)),
        "flipped_first": changes["first"],
        "flipped_second": changes["second"],
        "first_norm_4": row_norm(w, 4.0),
        "first_norm_2": row_norm(w, 2.0),
        "first_norm_inf": row_norm(w, math.inf),
        "second_norm_2": row_norm(v, 2.0),
        "second_norm_inf": row_norm(v, math.inf),
    }


def three_layer_table(settings, key, session) -> xr.Dataset:
    """Trains every width and seed; axes (width3, seed3). `settings` has widths3, seeds3, samples3,
    steps3, test_samples.
    """
    results = {name: np.zeros((len(settings.widths3), settings.seeds3)) for name in MEASURES}
    keys = [named_key(key, "three layers", s) for s in range(settings.seeds3)]
    concepts = [product_concept(smooth("sin", 3.0), smooth("sin", 2.0), 5)] * len(keys)
    data = datasets("data", keys, concepts, settings.samples3, 5)
    tests = datasets("test", keys, concepts, settings.test_samples, 5)
    for j, width in enumerate(settings.widths3):
        session.progress(j, len(settings.widths3), f"three layers, m={width}")
        starts = networks(BiasedThreeLayer, keys, 5, width, 1.0)
        sgd = SGD(0.5 / width, batch=10, replace=True)
        run = trained(starts, data, sgd, settings.steps3, named_key(key, "batches"))
        for s, (model, start) in enumerate(zip(run.model, run.start, strict=True)):
            pairs = [
                (d.inputs.astype(jnp.float32), d.targets.astype(jnp.float32))
                for d in (data[s], tests[s])
            ]
            for name, value in measure(model, start, *pairs).items():
                results[name][j, s] = float(value)
    session.progress(len(settings.widths3), len(settings.widths3), "three layers")
    return xr.Dataset(
        {
            name: (("width3", "seed3"), values, {"label": MEASURES[name]})
            for name, values in results.items()
        },
        {"width3": list(settings.widths3), "seed3": np.arange(settings.seeds3)},
    )
