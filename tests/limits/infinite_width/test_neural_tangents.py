"""Both kernels of some sixty architectures against neural-tangents 0.6.5, to 1e-10."""

import json

import numpy as np
import pytest
from limits.infinite_width.neural_tangents_values import PLACE, SPECS, inputs
from numpy.testing import assert_allclose

import wideflow as wf
from wideflow import architecture as a

VALUES = json.loads(PLACE.read_text())
LAYERS = {"global": a.GlobalAveragePool, "flatten": a.Flatten, "norm": a.LayerNorm}


def build(layers) -> a.Chain:
    return a.Chain(*(layer(*spec) for spec in layers))


def layer(kind, s):
    if kind == "dense":
        return a.Dense(s["width"], s["w"], s["b"])
    if kind == "conv":
        return a.Conv(s["channels"], s["window"], s["strides"], s["padding"], s["w"], s["b"])
    if kind == "act":
        return a.Activate(activation(s["name"], s["parameters"]))
    if kind == "pool":
        pool = a.AveragePool if s["kind"] == "average" else a.SumPool
        return pool(s["window"], s["strides"], s["padding"])
    if kind == "attention":
        stds = dict(
            query_key_std=s.get("qk", 1.0),
            value_std=s.get("value", 1.0),
            weight_std=s.get("out", 1.0),
        )
        return a.SelfAttention(8, 4, 8, 8, s["scaling"], s["mechanism"], **stds, bias_std=s["b"])
    if kind == "residual":
        return a.Residual(build(s["body"]), s["shortcut"] and build(s["shortcut"]))
    return LAYERS[kind]()


def activation(name, parameters):
    if not parameters:
        return wf.activations.sign() if name == "sign" else name
    if name == "polynomial":
        return wf.activations.polynomial(parameters)
    return getattr(wf.activations, {"erf": "scaled_erf"}.get(name, name))(*parameters)


@pytest.mark.parametrize("name", SPECS)
def test_both_kernels_as_neural_tangents_computes_them(name):
    _, parametrisation, layers = SPECS[name]
    k = wf.limits.kernels(build(layers), parametrisation=parametrisation)
    both = k.both(inputs(name, 3, 0), inputs(name, 2, 1))
    for kernel in ("nngp", "ntk"):
        expected = np.array(VALUES[name][kernel])
        assert_allclose(getattr(both, kernel), expected, rtol=1e-10, atol=1e-12, err_msg=kernel)
