"""The examples of PyTorch at a small size."""

import importlib.util
import pathlib

import numpy as np

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"


def example(name: str):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_residual_network_is_watched_and_probed(data_folder):
    watch, probe = example("torch_resnet").main(samples=64, steps=4, every=2, watched=6)
    assert list(watch.table.step.values) == [0, 2, 4]
    assert watch.table.kernel_change[0] == 0
    # the records of the loop and the two ends say the same
    np.testing.assert_allclose(watch.regime, probe.regime, rtol=1e-4)
    assert probe.feature_movement > 0


def test_the_transformer_is_checked_and_watched():
    transformer = example("torch_transformer")
    check = transformer.check(widths=(16, 64), seeds=1)
    roles = {name: scaling.role for name, scaling in check.scalings.items()}
    assert roles["embed.weight"] == "input"
    assert roles["layer.linear1.weight"] == "hidden"
    assert roles["last.weight"] == "output"
    # Adam's hidden updates grow with the width (yang2022, Table 3): the rate must fall like 1/width
    assert check.scalings["layer.linear1.weight"].rate < -0.5
    watch = transformer.watched(width=8, steps=2, every=1)
    assert watch.table.kernel_change[0] == 0 < watch.table.kernel_change[-1]
    assert "layer.self_attn" in watch.table.layer.values
