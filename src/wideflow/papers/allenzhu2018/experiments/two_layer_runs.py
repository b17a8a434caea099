r"""Algorithm 1 over widths and sample sizes: the runs behind the experiments on width, coupling,
signs and spread.

Target (3) with $p = 3$: $\phi = \sin 3z, \cos 3z, e^z$, $a^\star = (1, -1, 1)$, random unit
$w_1, w_2$ drawn for each seed and kept for all sizes; sphere data. Batch 1,
$\eta = 1/(\varepsilon_a^2m)$, $\varepsilon_a = 0.3$, Huber loss. Every network is measured at its
end.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import xarray as xr

from ...._core.randomness import named_key
from ....data.dataset import Dataset
from ....data.synthetic import sphere
from ....dynamics.bounded_losses import Huber
from ....dynamics.sgd import SGD
from ..laws.concepts import TwoLayerConcept
from ..laws.power_series import smooth
from ..models.biased_two_layer import BiasedTwoLayer
from ..observables.pseudo import coupling_error, sign_changes, signs
from .seeds import datasets, networks, trained

MEASURES = {
    "test_loss": "test Huber loss",
    "baseline": "test Huber loss of the training mean",
    "train_loss": "training Huber loss",
    "coupling": "rms |f - g|, signs of the start",
    "flipped": "fraction of signs changed",
    "participation": "participation ratio of the increments",
    "largest": "largest over mean increment norm",
    "top_energy": "energy of the top 1 % of neurons",
    "awake": "fraction of neurons with norm > 0.1 mean",
    "dropped_top": "relative error without the top 1 %",
    "random_half": "relative error of a random half, doubled",
    "half_correlation": "correlation of the random half",
}


def mixture_concept(key, features: int) -> TwoLayerConcept:
    """The target of one seed on `features` raw coordinates."""
    inner, linear = (sphere(named_key(key, name), 3, features + 1) for name in ("inner", "linear"))
    functions = (smooth("sin", 3.0), smooth("cos", 3.0), smooth("exp"))
    return TwoLayerConcept([1.0, -1.0, 1.0], inner, linear, functions)


@eqx.filter_jit
def _on_inputs(model: BiasedTwoLayer, start: BiasedTwoLayer, inputs):
    """Outputs, coupling error, fraction of flipped signs, and the signs at the start."""
    return (
        model.outputs(inputs),
        coupling_error(model, start, inputs),
        sign_changes(model, start, inputs)["first"],
        signs(start, inputs).first,
    )


def measure(
    model: BiasedTwoLayer, start: BiasedTwoLayer, data: Dataset, test: Dataset
) -> dict[str, float]:
    """All of `MEASURES` for one trained network. Neurons are exchangeable, so the first half of
    them is a random half.
    """
    loss, targets = Huber(), test.targets
    outputs, error, flipped, active = _on_inputs(model, start, test.inputs.astype(jnp.float32))
    increment, readout = np.asarray(model.increment, float), np.asarray(model.output, float)
    norms = np.linalg.norm(increment, axis=1)
    width, top = model.width, max(1, round(model.width / 100))
    order = np.argsort(-norms)
    share = (
        np.asarray(active) * (np.asarray(test.inputs) @ increment.T) * readout
    )  # each neuron's part of what was learned
    learned = share.sum(axis=1)
    half = 2 * share[:, : width // 2].sum(axis=1)

    def relative(other):
        return float(np.sum((other - learned) ** 2) / np.sum(learned**2))

    return {
        "test_loss": float(loss(outputs.astype(targets.dtype), targets)),
        "baseline": float(loss(jnp.full_like(targets, jnp.mean(data.targets)), targets)),
        "train_loss": float(loss(model.outputs(data.inputs), data.targets)),
        "coupling": float(np.sqrt(np.mean(np.square(error)))),
        "flipped": float(flipped),
        "participation": float(np.sum(norms**2) ** 2 / (width * np.sum(norms**4))),
        "largest": float(np.max(norms) / np.mean(norms)),
        "top_energy": float(np.sum(norms[order[:top]] ** 2) / np.sum(norms**2)),
        "awake": float(np.mean(norms > 0.1 * np.mean(norms))),
        "dropped_top": relative(learned - share[:, order[:top]].sum(axis=1)),
        "random_half": relative(half),
        "half_correlation": float(np.corrcoef(half, learned)[0, 1]),
    }


def two_layer_table(settings, key, session) -> xr.Dataset:
    """Trains every width, sample size and seed of `settings`; axes (samples, width, seed).

    `settings` has widths, samples, seeds, features, steps, test_samples, output_std.
    """
    results = {
        name: np.zeros((len(settings.samples), len(settings.widths), settings.seeds))
        for name in MEASURES
    }
    keys = [named_key(key, "seed", s) for s in range(settings.seeds)]
    concepts = [mixture_concept(named_key(k, "target"), settings.features) for k in keys]
    d = settings.features
    tests = datasets("test", keys, concepts, settings.test_samples, d)
    total, done = len(settings.samples) * len(settings.widths), 0
    for i, samples in enumerate(settings.samples):
        data = datasets("data", keys, concepts, samples, d)
        for j, width in enumerate(settings.widths):
            session.progress(done, total, f"two layers, N={samples}, m={width}")
            starts = networks(BiasedTwoLayer, keys, d, width, settings.output_std)
            sgd = SGD(1 / (settings.output_std**2 * width), batch=1, replace=True)
            run = trained(starts, data, sgd, settings.steps, named_key(key, "batches"))
            for s, (model, start) in enumerate(zip(run.model, run.start, strict=True)):
                for name, value in measure(model, start, data[s], tests[s]).items():
                    results[name][i, j, s] = value
            done += 1
    session.progress(total, total, "two layers")
    axes = ("samples", "width", "seed")
    return xr.Dataset(
        {name: (axes, values, {"label": MEASURES[name]}) for name, values in results.items()},
        {
            "samples": list(settings.samples),
            "width": list(settings.widths),
            "seed": np.arange(settings.seeds),
        },
    )
