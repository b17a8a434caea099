"""The recorder of a loop of one's own: the table of `train` on the same network, its cost, and
where its numbers go.
"""

import sys
import time
import types

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import nn

import wideflow as wf

look = wf.observables
STEPS, RATE = (0, 10, 20), 0.05


def build() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 1)
    ).double()


@pytest.fixture(scope="module")
def pair():
    """A watched loop of PyTorch, and `train` on the same network from the same weights."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(9, 3)), rng.normal(size=(9, 1))
    module = build()
    record = [
        look.KernelDistance(),
        look.KernelAlignment(),
        look.KernelTrace(),
        look.EffectiveRank(),
        look.LinearisationGap(),
        look.ParameterMovement(),
        look.ArrayMovement(),
        look.FeatureKernelDrift(),
        look.FeatureAlignment(),
        look.LayerFeatureMovement(),
    ]
    run = wf.train(
        wf.torch.from_torch(module, weights=True),
        wf.Dataset(x, y[:, 0]),
        wf.GradientDescent(RATE),
        steps=STEPS[-1],
        every=STEPS[1],
        record=record,
        loss=wf.losses.HalfMeanSquares(),
    )
    inputs, targets = torch.tensor(x), torch.tensor(y)
    watch = wf.torch.Watch(module, inputs, targets)
    optimiser = torch.optim.SGD(module.parameters(), lr=RATE)
    for step in range(STEPS[-1] + 1):
        if step in STEPS:
            watch.record(step, time=RATE * step)
        optimiser.zero_grad()
        (torch.sum((module(inputs) - targets) ** 2) / (2 * len(x))).backward()
        optimiser.step()
    return watch, run, inputs


def test_the_table_is_that_of_train(pair):
    watch, run, _ = pair
    assert set(run.table.data_vars) == set(watch.table.data_vars) - {"kernel_cosine"}
    for name, expected in run.table.data_vars.items():
        ours = watch.table[name]
        assert ours.dims == expected.dims
        assert_allclose(ours.values, expected.values, rtol=1e-9, atol=1e-13, err_msg=name)
        if name != "loss":
            assert ours.attrs["label"] == expected.attrs["label"]
    assert_allclose(watch.table.time.values, run.table.time.values)
    assert list(watch.table.step.values) == list(STEPS)
    assert list(watch.table.layer.values) == ["0", "2"]
    assert list(watch.table.array.values) == [
        "0.weight",
        "0.bias",
        "2.weight",
        "2.bias",
        "4.weight",
        "4.bias",
    ]


def test_verdict_and_scalars_are_those_of_the_last_record(pair):
    watch, run, _ = pair
    last = run.table.isel(step=-1)
    assert_allclose(watch.regime, (last.kernel_change, last.linearisation_gap), rtol=1e-9)
    assert watch.verdict == watch.regime.verdict
    assert watch.index == watch.regime.index
    scalars = watch.scalars()
    assert_allclose(scalars["feature_kernel_drift/2"], last.feature_kernel_drift[1], rtol=1e-9)
    assert_allclose(
        scalars["array_movement_relative/4.bias"], last.array_movement_relative[5], rtol=1e-9
    )
    assert watch.verdict in str(watch)


def test_the_probe_gives_the_same_kernel_numbers():
    module, x = build(), torch.tensor(np.random.default_rng(1).normal(size=(6, 3)))
    watch = wf.torch.Watch(module, x, output=None)
    before = {name: value.clone() for name, value in module.state_dict().items()}
    with torch.no_grad():
        for p in module.parameters():
            p *= 1.2
    watch.record(1)
    probed = wf.probe(module, before, module, x)
    assert_allclose(watch.regime, probed.regime, rtol=1e-12)
    assert_allclose(watch.table.kernel_cosine[-1], probed.alignment, rtol=1e-12)
    assert_allclose(watch.table.parameter_movement[-1], probed.parameter_movement, rtol=1e-12)


def test_the_figure_is_drawn(pair, tmp_path):
    watch = pair[0]
    figure = watch.figure()
    assert [panel.title for panel in figure.panels][:2] == ["Loss", "From lazy to rich"]
    assert len(figure.panels) == 4
    assert watch.verdict in figure.caption
    wf.save_figure(figure, tmp_path / "watch")
    assert (tmp_path / "watch.png").stat().st_size > 5000


def test_the_cost_is_told_and_bounded():
    module, x = build(), torch.ones(4, 3).double()
    watch = wf.torch.Watch(module, x, share=0.2)
    began = time.perf_counter()
    step = 0
    while time.perf_counter() - began < 1.0:
        watch.record(step)
        step += 1
    assert watch.skipped
    assert len(watch.rows) + len(watch.skipped) == step
    assert watch.cost < 0.35  # one record may come late by its own length, on a busy machine
    assert watch.table.attrs["skipped"] == len(watch.skipped)
    assert watch.table.attrs["seconds"] == watch.seconds > 0
    always = wf.torch.Watch(module, x)
    for step in range(5):
        always.record(step)
    assert len(always.rows) == 5


def test_classes_and_convolutions():
    torch.manual_seed(0)
    module = nn.Sequential(
        nn.Conv2d(1, 3, 3), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(12, 4)
    ).double()
    x, labels = torch.randn(5, 1, 4, 4).double(), torch.tensor([0, 1, 2, 3, 1])
    watch = wf.torch.Watch(module, x, labels)
    watch.record(0)
    exact = nn.functional.cross_entropy(module(x), labels).item()
    assert_allclose(watch.table.loss[0], exact, rtol=1e-12)
    own = wf.torch.Watch(
        module, x, labels, loss=lambda f, y: nn.functional.cross_entropy(f, y, reduction="sum")
    )
    own.record(0)
    assert_allclose(own.table.loss[0], 5 * exact, rtol=1e-12)
    hot = np.eye(4)[labels.numpy()]
    hidden = module[:3](x).detach().numpy()
    expected = wf.observables.centred_alignment(hidden @ hidden.T, hot @ hot.T)
    assert_allclose(watch.table.feature_alignment[0, 0], expected, rtol=1e-10)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"module": "net"}, "`module` must be a torch.nn.Module"),
        ({"module": nn.Sequential(nn.Linear(3, 1), nn.Dropout(0.1))}, "active dropout"),
        ({"module": nn.Sequential(nn.Linear(3, 1), nn.BatchNorm1d(1))}, "batch statistics"),
        ({"module": nn.Sequential(nn.LazyLinear(1))}, "lazy parameters"),
        ({"module": nn.Linear(3, 1).half()}, "float16"),
        ({"inputs": torch.ones(2, 3, device="meta")}, "module's device cpu, got meta"),
        ({"targets": torch.ones(3, 1)}, "`targets` must be finite, of the outputs' shape"),
        ({"targets": torch.tensor([0, 1])}, "`targets` must be one class per sample"),
        ({"output": 4}, "`output` must be a whole number of at least 0 and at most 0"),
        ({"share": 2.0}, "`share` must lie in"),
        ({"loss": 3}, "`loss` must be a function"),
    ],
)
def test_wrong_input_is_named(change, message):
    given = {"module": nn.Linear(3, 1), "inputs": torch.ones(2, 3)} | change
    with pytest.raises(ValueError, match=message):
        wf.torch.Watch(**given)


def test_records_go_forward_and_need_a_function_of_one_input():
    module = nn.Sequential(nn.Linear(3, 2), nn.Dropout(0.5)).eval()
    watch = wf.torch.Watch(module, torch.ones(2, 3))
    with pytest.raises(ValueError, match="no record yet"):
        watch.verdict  # noqa: B018
    watch.record(3)
    with pytest.raises(ValueError, match="`step` must be larger than the last one, 3"):
        watch.record(3)
    module.train()
    with pytest.raises(ValueError, match="active dropout"):
        watch.record(4)


class Logger:
    def __init__(self):
        self.logged = []

    def log_metrics(self, metrics, step):
        self.logged.append((step, metrics))


def fit(callback, module, steps: int):
    """What Lightning does around a loop, as far as a callback sees it."""
    logger = Logger()
    trainer = types.SimpleNamespace(global_step=0, loggers=[logger])
    module.train()
    callback.on_train_start(trainer, module)
    for batch in range(steps):
        with torch.no_grad():
            for p in module.parameters():
                p *= 1.01
        trainer.global_step += 1
        callback.on_train_batch_end(trainer, module, None, None, batch)
    return logger


@pytest.mark.parametrize("library", [None, "lightning.pytorch"])
def test_the_lightning_callback(library, monkeypatch):
    base = type("Callback", (), {"setup": lambda self, *args: None})
    if library is not None:
        monkeypatch.setitem(sys.modules, library, types.SimpleNamespace(Callback=base))
    module = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.3), nn.Linear(4, 1))
    inputs, targets = np.eye(3), np.array([[0.0], [1.0], [3.0]])
    callback = wf.torch.lightning_callback(inputs, targets, every=2)
    assert isinstance(callback, base) == (library is not None)
    logger = fit(callback, module, 5)
    assert (
        [step for step, _ in logger.logged] == [0, 2, 4] == list(callback.watch.table.step.values)
    )
    assert logger.logged[-1][1] == callback.watch.scalars()
    assert all(part.training for part in module.modules())  # back in train mode
