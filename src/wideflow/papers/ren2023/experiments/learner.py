"""Training the learner on fresh samples of a radial law, with everything that the figures need
recorded.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from ...._core.precision import double
from ...._core.randomness import named_key
from ....theorems.base import Verdict
from ....training.train import train
from ..clipped_flow import ClippedFlow
from ..depth_separator import DepthSeparator
from ..estimators import Fresh, symmetric_error
from ..laws.base import sphere
from ..limits.flow import alpha_of_norm, reduced_flow
from ..observables import depth
from ..population import Radial
from ..theorems.layers import LemmaC11, LemmaC13, LemmaC14
from ..theorems.projections import Lemma41

RADII = np.linspace(0.0, 2.0, 81)


@double
def train_learner(
    law, settings, key, session=None, *, time_grid=None
) -> tuple[xr.Dataset, dict[str, Verdict]]:
    """One seed: its table, and what the lemmas say of the network at the end. `settings` has
    features, width, second, radius, deviation, bias, batch, rate, steps, records, precision.
    """
    net, population, key, redraws = beginning(law, settings, key)
    assert isinstance(population.estimator, Fresh)  # `beginning` takes it
    evaluation = population.estimator.evaluation
    record = [
        depth.Alpha(),
        depth.SecondWeights(),
        depth.SecondBiases(),
        depth.SecondSpread(),
        depth.DirectionError(),
        depth.TangentSpread(),
        depth.RadialSpread(),
        depth.ProjectedPairs(),
        depth.LossDecomposition(inputs=evaluation),
        depth.Profile(
            radii=jnp.asarray(RADII),
            directions=sphere(named_key(key, "profile"), 64, settings.features),
        ),
    ]
    every = time_grid if time_grid is not None else max(1, settings.steps // settings.records)
    run = train(
        net,
        population,
        ClippedFlow(settings.rate),
        steps=settings.steps,
        record=record,
        every=every,
        key=key,
        precision=settings.precision,
        session=session,
    )
    table = run.table.assign_coords(
        radius=RADII, part=["L1", "L2", "L3", "eq6"], threshold=["first", "weight", "bias"]
    )
    table["redraws"] = redraws
    table["symmetry_gap"] = float(depth.symmetry_gap(run.model, evaluation))
    table["exact_eq6"] = float(_exact_term(law, run.model))
    table["projected_steps"] = ("threshold", np.asarray(run.state.held_steps))
    verdicts = _verdicts(
        law, net, run.model, ClippedFlow(settings.rate).thresholds(law.d), evaluation
    )
    return table.map(lambda values: values.astype(float)), verdicts


@double
def _verdicts(law, start, end, clip, inputs) -> dict[str, Verdict]:
    """Lemmas on the trained network, in double precision."""
    start, end = (
        DepthSeparator(*(np.asarray(a, float) for a in (m.first, m.second_weight, m.second_bias)))
        for m in (start, end)
    )
    w, b = end.second_weight, end.second_bias
    directions = inputs / jnp.linalg.norm(inputs, axis=1, keepdims=True)
    return {
        "Lemma 4.1: no projection can act at the end": Lemma41()(
            end, clip, inputs, spread=float(depth.direction_sup(end))
        ),
        "Lemma C.11: where one neuron bends, the others are near their bend": LemmaC11()(w, b),
        "Lemma C.13: neurons differ on few inputs": LemmaC13()(law, float(end.alpha), w, b),
        "Lemma C.14: the first layer stays near its start": LemmaC14()(end, start, directions),
    }


@double
def beginning(law, settings, key) -> tuple[DepthSeparator, Radial, jax.Array, int]:
    """The network at its start, the population of fresh batches, the key of the training and how
    often the first batch was redrawn.

    It is drawn anew until every second-layer neuron is active on all of it: one sample beyond the
    first edge drives a part of the neurons only and multiplies their spread for good.
    """
    net = DepthSeparator.init(
        named_key(key, "net"),
        features=settings.features,
        width=settings.width,
        second=settings.second,
        radius=settings.radius or 1 / math.sqrt(settings.features),
        deviation=settings.deviation,
        bias=settings.bias,
    )
    population = Radial.fresh(law, settings.batch)
    key, redraws = _first_batch(net, population, key)
    return net, population, key, redraws


def _first_batch(net, population, key):
    for redraws in range(100):
        trial = named_key(key, "train", redraws)
        first = jax.random.fold_in(named_key(trial, "batches"), 0)  # as `ClippedFlow` draws it
        layer = net.layer(population.estimator.inputs(population.law, first))
        if bool(jnp.max(layer) * jnp.max(-net.second_weight) < jnp.min(net.second_bias)):
            return trial, redraws
    raise ValueError(
        "`deviation` is too large: no first batch keeps every second-layer neuron active."
    )


@double
def _exact_term(law, model):
    first, weight, bias = (
        jnp.asarray(a, jnp.float64) for a in (model.first, model.second_weight, model.second_bias)
    )
    return symmetric_error(law, (first, weight, bias))


def reduced_reference(law, settings, times) -> xr.Dataset:
    """The infinite-width flow from the same start, with all weights next to zero from below."""
    radius = settings.radius or 1 / math.sqrt(settings.features)
    path = reduced_flow(law, alpha_of_norm(settings.features, radius), -1e-6, settings.bias, times)
    columns = {
        name: ("time", np.asarray(getattr(path, name))) for name in ("alpha", "w", "b", "loss")
    }
    return xr.Dataset(columns, {"time": np.asarray(path.time)})
