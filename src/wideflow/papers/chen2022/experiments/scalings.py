"""Experiment 3's three scalings on common draws of data, embedding, weights and signs (chen2022,
Table 1).
"""

import numpy as np
import xarray as xr

from .... import data, observables
from ...._core.randomness import named_key
from ...._core.scalings import NTK, MeanField
from ....limits.linearised import linearised
from ....models.embeddings import RandomFeatures
from ....models.shallow import Shallow
from ....observables.kernels import tangent_gram
from .common import descend, records_of, stack

SCALINGS = {"ours": MeanField(), "MF": MeanField(hidden=1.0), "NTK": NTK()}
RECORD = (
    observables.SumLoss(),
    observables.TestRisk(),
    observables.Accuracy(),
    observables.FeatureMovement(),
)


def networks(key, name: str, features: int, width: int, seeds: int) -> list[Shallow]:
    """ReLU networks with a frozen random layer, $D = m$; NTK starts from zero by symmetry, total
    width $m$.
    """
    nets = []
    for seed in range(seeds):
        embedding = RandomFeatures.init(named_key(key, "embedding", seed), features, width)
        nets.append(
            Shallow.init(
                named_key(key, "net", seed),
                features=features,
                width=width,
                scaling=SCALINGS[name],
                embedding=embedding,
                symmetric=name == "NTK",
            )
        )
    return nets


def draws(key, samples: int, test_samples: int, features: int, seeds: int):
    """Training and test sets, one of each per seed."""
    sets = [
        data.axis_types(named_key(key, "data", seed), samples, features) for seed in range(seeds)
    ]
    tests = [
        data.axis_types(named_key(key, "test", seed), test_samples, features)
        for seed in range(seeds)
    ]
    return sets, tests


def compare(
    key, settings, samples: int, width: int, session, *, lazy: bool = False, scatter: bool = False
) -> xr.Dataset:
    """All scalings on one size; `lazy` adds the constant-kernel prediction, `scatter` the features
    of two inputs.
    """
    sets, tests = draws(key, samples, settings.test_samples, settings.features, settings.seeds)
    total = (
        settings.steps_of_one / samples
        if settings.literal
        else min(settings.steps_of_one / samples, settings.longest)
    )
    tables = {}
    for i, name in enumerate(SCALINGS):
        nets = networks(key, name, settings.features, width, settings.seeds)
        fraction = settings.careful_fraction if name == "MF" else settings.fraction
        run = descend(
            nets,
            sets,
            tests=tests,
            total_time=total,
            fraction=fraction,
            literal=settings.literal,
            record=RECORD,
            records=20,
            session=session.within(i, len(SCALINGS), f"{name}, n = {samples}, m = {width}"),
        )
        table = records_of(run, samples)
        starts = [
            np.asarray(net.preactivations(one.inputs)) for net, one in zip(nets, sets, strict=True)
        ]
        ends = [
            np.asarray(net.preactivations(one.inputs))
            for net, one in zip(run.model, sets, strict=True)
        ]
        moved = [
            np.linalg.norm(end - start) / np.linalg.norm(start)
            for start, end in zip(starts, ends, strict=True)
        ]
        table["relative_movement"] = ("seed", moved)
        expected = [
            np.sqrt(np.diag(np.asarray(net.embedding.gram(one.inputs))))
            for net, one in zip(nets, sets, strict=True)
        ]
        if name == "MF":
            expected = [value / width**0.5 for value in expected]
        off = [start.std(axis=1) / value - 1 for start, value in zip(starts, expected, strict=True)]
        table["start_spread_worst"] = ("seed", [np.abs(value).max() for value in off])
        table["start_spread_mean"] = ("seed", [value.mean() for value in off])
        if scatter:
            table["scatter"] = _scatter(nets[0], run.model[0], sets[0], tests[0], settings.shown)
        tables[name] = table
    joined = stack(tables, "scaling")
    if lazy:
        nets = networks(key, "ours", settings.features, width, settings.seeds)
        joined["lazy_risk"] = (
            "seed",
            [
                _lazy(net, one, test, total)
                for net, one, test in zip(nets, sets, tests, strict=True)
            ],
        )
    return joined


def _scatter(start, end, train, test, shown):
    """(phase, input, neuron): pre-activations at the first training input and at the first test
    input of the other label.
    """
    opposite = int(np.argmax(np.asarray(test.targets) != float(train.targets[0])))
    inputs = np.stack([np.asarray(train.inputs[0]), np.asarray(test.inputs[opposite])])
    values = np.stack([np.asarray(net.preactivations(inputs))[:, :shown] for net in (start, end)])
    return ("phase", "input", "neuron"), values


def _lazy(net, train, test, time: float) -> float:
    """Test risk at that time of the constant kernel of the unsymmetrised start, from zero
    outputs.
    """
    kernel, cross = tangent_gram(net, train.inputs), tangent_gram(net, test.inputs, train.inputs)
    predicted = linearised(kernel, train.targets, [time], test_kernel=cross)
    outputs = np.asarray(predicted.test_outputs)[0]
    return float(np.mean((outputs - np.asarray(test.targets)) ** 2))
