"""The probe of modules against the probe of the same network in JAX, against dense Jacobians, and
what it refuses.
"""

import copy
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import nn
from torch.func import functional_call, jacrev

import wideflow as wf
from wideflow.torch.kernels import Kernels
from wideflow.torch.network import Network, exact_arithmetic


def convnet() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, stride=2, padding=1),
        nn.Tanh(),
        nn.Flatten(),
        nn.Linear(64, 5),
        nn.Tanh(),
        nn.Linear(5, 2),
    )


def same_in_jax(params, images):
    """The network of `convnet` on a batch, written with JAX."""
    conv, hidden, last = (params[name] for name in ("0", "3", "5"))
    h = jax.lax.conv_general_dilated(images, conv["weight"], (2, 2), [(1, 1), (1, 1)])
    h = jnp.tanh(h + conv["bias"][:, None, None]).reshape(len(images), -1)
    h = jnp.tanh(h @ hidden["weight"].T + hidden["bias"])
    return h @ last["weight"].T + last["bias"]


def moved(module: nn.Module, size: float = 0.05) -> nn.Module:
    other = copy.deepcopy(module)
    draw = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for p in (p for p in other.parameters() if p.requires_grad):
            p += size * torch.randn(p.shape, generator=draw, dtype=torch.float64).to(p.dtype)
    return other


def as_tree(module: nn.Module) -> dict:
    tree: dict = {}
    for name, p in module.named_parameters():
        layer, _, key = name.partition(".")
        tree.setdefault(layer, {})[key] = p.detach().numpy()
    return tree


def data(dtype):
    rng = np.random.default_rng(0)
    return rng.normal(size=(7, 1, 8, 8)).astype(dtype), rng.normal(size=(7, 2)).astype(dtype)


@pytest.mark.parametrize(("dtype", "rtol"), [("float64", 1e-10), ("float32", 1e-5)])
@pytest.mark.parametrize("output", [None, 1])
def test_rows_are_those_of_the_same_network_in_jax(dtype, rtol, output):
    before = convnet().to(getattr(torch, dtype))
    after = moved(before)
    x, y = data(dtype)
    ours = wf.probe(before, before.state_dict(), after, torch.tensor(x), y, output=output)
    theirs = wf.probe(
        same_in_jax, as_tree(before), as_tree(after), x, y, output=output, batched=True
    )
    ours_plain, theirs_plain = ours.to_dict(), theirs.to_dict()
    spectra = [ours_plain.pop(name) for name in ("spectrum_before", "spectrum_after")]
    others = [theirs_plain.pop(name) for name in ("spectrum_before", "spectrum_after")]
    for a, b in zip(spectra, others):
        assert_allclose(a, b, atol=rtol * max(b))
    layers, other_layers = ours_plain.pop("layers"), theirs_plain.pop("layers")
    assert list(layers) == list(other_layers) == ["0", "3", "5"]
    for name in layers:
        assert_allclose(list(layers[name].values()), list(other_layers[name].values()), rtol=rtol)
    for name, value in theirs_plain.items():
        if isinstance(value, str):
            assert ours_plain[name] == value
        else:  # the smallest eigenvalue is known to rounding of the largest
            scale = max(others[0]) if name.startswith(("gap_before", "gap_after")) else 0.0
            assert_allclose(ours_plain[name], value, rtol=rtol, atol=rtol * scale, err_msg=name)
    texts = [(name, text) for name, _, text in ours.rows() + ours.layer_rows()]
    assert [name for name, _ in texts] == [row[0] for row in theirs.rows() + theirs.layer_rows()]


class Everything(nn.Module):
    """Layers with a formula and without: norms, positions, a tied weight, a plain parameter,
    attention, an embedding, an in-place sum.
    """

    def __init__(self):
        super().__init__()
        self.embed, self.norm = nn.Embedding(6, 4), nn.LayerNorm(4)
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)
        self.wide, self.back = nn.Linear(4, 5), nn.Linear(5, 4)
        self.conv, self.group = nn.Conv1d(4, 4, 3, padding=1), nn.GroupNorm(2, 4)
        self.batch = nn.BatchNorm1d(4)
        self.shared = nn.Linear(4, 4, bias=False)
        self.scale, self.last = nn.Parameter(torch.ones(4)), nn.Linear(4, 3)
        self.frozen = nn.Linear(4, 4)
        self.frozen.requires_grad_(False)

    def forward(self, tokens):
        x = self.embed(tokens)
        seen = self.norm(x)
        x = x + self.attention(seen, seen, seen, need_weights=False)[0]
        h = self.back(torch.relu(self.wide(x)))
        h += x
        x = h
        x = self.batch(self.group(self.conv(x.transpose(1, 2)))).transpose(1, 2)
        x = torch.tanh(self.shared(torch.tanh(self.shared(x)))) * self.scale
        return self.last(self.frozen(x).mean(1) + self.shared.weight.sum())


def dense_parts(module, inputs, output):
    """Every array's part of the kernel from a whole Jacobian by reverse mode."""
    params = {n: p.detach() for n, p in module.named_parameters() if p.requires_grad}
    rest = {n: p.detach() for n, p in module.named_parameters() if n not in params}
    rest |= dict(module.named_buffers())
    call = lambda p: functional_call(module, {**p, **rest}, (inputs,))[:, output]
    with exact_arithmetic(inputs.device):
        rows = jacrev(call)(params)
    return {n: (r.flatten(1) @ r.flatten(1).T).numpy() for n, r in rows.items()}


@pytest.mark.parametrize("memory", [None, 60_000])
def test_every_kind_of_layer_has_the_kernel_of_a_dense_jacobian(memory):
    torch.manual_seed(0)
    module = Everything().double().eval()
    module.batch.running_mean += 0.3
    tokens = torch.randint(6, (5, 4))
    network = Network(module, tokens)
    state = network.state()
    with exact_arithmetic(network.device):
        kernels = Kernels(network, state, 0, memory)
        answers = kernels.parts(state, (0, 2))
    assert {
        "wide.weight",
        "back.bias",
        "conv.weight",
        "group.weight",
        "batch.bias",
        "norm.bias",
    } <= kernels.trusted
    assert {"shared.weight", "scale", "embed.weight", "attention.in_proj_weight"} <= set(
        kernels.rest
    )
    for output, parts in zip((0, 2), answers, strict=True):
        expected = dense_parts(module, tokens, output)
        assert set(parts) == set(expected)
        for name, part in parts.items():
            assert_allclose(
                part, expected[name], atol=1e-12 * np.abs(expected[name]).max(), err_msg=name
            )
    whole = wf.probe(module, module, moved(module), tokens, memory=memory)
    assert whole.parameters == sum(p.numel() for p in module.parameters() if p.requires_grad)


def test_a_weight_that_is_used_twice_behind_the_layers_back_is_noticed():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 3)

        def forward(self, x):
            return torch.tanh(self.layer(x)) @ self.layer.weight

    torch.manual_seed(0)
    module, x = Twice().double(), torch.randn(4, 3).double()
    network = Network(module, x)
    kernels = Kernels(network, network.state(), 0, None)
    assert kernels.trusted == {"layer.bias"}
    parts = kernels.parts(network.state(), (0,))[0]
    assert_allclose(parts["layer.weight"], dense_parts(module, x, 0)["layer.weight"], rtol=1e-10)


def test_features_by_name_and_by_function():
    before = convnet().double()
    after = moved(before)
    x = torch.tensor(data("float64")[0])
    by_name = wf.probe(before, before, after, x, features="3").feature_movement
    read = lambda state, images: functional_call(
        before[:4], {k: v for k, v in state.items() if k[0] in "03"}, (images,)
    )
    assert_allclose(
        wf.probe(before, before, after, x, features=read).feature_movement, by_name, rtol=1e-12
    )
    first, second = (m[:4](x).detach().numpy() for m in (before, after))
    assert_allclose(by_name, np.linalg.norm(second - first) / np.linalg.norm(first), rtol=1e-12)


def test_the_module_is_left_as_it_was():
    module = convnet().train()
    state = copy.deepcopy(module.state_dict())
    wf.probe(module, state, moved(module), torch.tensor(data("float32")[0]), output=0)
    assert module.training
    assert all(torch.equal(value, state[name]) for name, value in module.state_dict().items())
    assert all(p.grad is None for p in module.parameters())
    assert not any(part._forward_hooks for part in module.modules())


NORM = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))


@pytest.mark.parametrize(
    ("module", "change", "message"),
    [
        (copy.deepcopy(NORM).train(), {}, r"batch statistics in '1' \(BatchNorm1d\).*module.eval"),
        (
            nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2, track_running_stats=False)).eval(),
            {},
            "batch statistics",
        ),
        (nn.Sequential(nn.Linear(3, 2), nn.Dropout(0.5)).train(), {}, "active dropout in '1'"),
        (
            nn.Sequential(nn.LazyLinear(2)),
            {},
            "lazy parameters without a shape, such as '0.weight'",
        ),
        (nn.Linear(3, 1).half(), {}, "must be in float32 or float64, got float16 in 'weight'"),
        (nn.Linear(3, 1).bfloat16(), {}, "got bfloat16"),
        (
            nn.Linear(3, 1),
            {"inputs": torch.ones(2, 3).half()},
            "`inputs` must be in float32 or float64, got float16",
        ),
        (
            nn.Linear(3, 1),
            {"inputs": torch.ones(2, 3, device="meta")},
            "`inputs` must lie on the module's device cpu, got meta",
        ),
        (nn.Linear(3, 1), {"inputs": torch.full((2, 3), torch.nan)}, "`inputs` must be finite"),
        (nn.Linear(3, 1), {"inputs": "x"}, "`inputs` must be tensors or arrays of numbers"),
        (nn.Linear(3, 1), {"inputs": torch.ones(0, 3)}, "`inputs` must hold arrays"),
        (
            nn.Linear(3, 1),
            {"params_after": {"weight": torch.ones(1, 3)}},
            "`params_after` must have the entries of the module, but 'bias'",
        ),
        (
            nn.Linear(3, 1),
            {"params_after": nn.Linear(2, 1)},
            "`params_after` must have the shapes of the module",
        ),
        (
            nn.Linear(3, 1),
            {"params_after": nn.Linear(3, 1).half()},
            "`params_after` must be in float32",
        ),
        (nn.Linear(3, 1), {"params_before": 3}, "`params_before` must be a state dict or a module"),
        (nn.Linear(3, 1), {"targets": np.ones(2)}, "`targets` must have the shape"),
        (nn.Linear(3, 1), {"output": 3}, "`output` must lie in 0..0"),
        (nn.Linear(3, 1), {"features": "hidden"}, "`features` must name a submodule, got 'hidden'"),
        (nn.Linear(3, 1), {"batched": False}, "`batched` must be None or True"),
        (
            nn.LSTM(3, 2, batch_first=True),
            {"inputs": torch.ones(2, 4, 3)},
            "must give one tensor, got tuple",
        ),
        (
            nn.Linear(3, 1).requires_grad_(False),
            {},
            "at least one parameter with `requires_grad=True`",
        ),
    ],
)
def test_wrong_input_is_named_in_one_sentence(module, change, message):
    given = {"params_before": module, "params_after": module, "inputs": torch.ones(2, 3)}
    with pytest.raises(ValueError, match=message) as raised:
        wf.probe(module, **(given | change))
    assert "\n" not in str(raised.value)


def test_frozen_parameters_may_not_move():
    before = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1))
    after = moved(before)
    before[0].requires_grad_(False)
    with pytest.raises(ValueError, match=r"in '0.weight', which has `requires_grad=False`"):
        wf.probe(before, before, after, torch.ones(2, 3))


ON_DEMAND = """
import importlib.abc, sys
import numpy as np
import wideflow as wf

class Hidden(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")

wf.torch, dir(wf.torch)
wf.probe(lambda w, x: w @ x, np.ones(2), np.zeros(2), np.eye(2))
assert "torch" not in sys.modules
hidden = Hidden()
sys.meta_path.insert(0, hidden)
try:
    wf.torch.Watch
except ModuleNotFoundError as error:
    print(error)
sys.meta_path.remove(hidden)
wf.torch.Watch
assert "torch" in sys.modules
"""


def test_torch_is_imported_when_it_is_used_and_missed_with_the_remedy():
    done = subprocess.run(
        [sys.executable, "-c", ON_DEMAND], check=True, capture_output=True, text=True
    )
    assert "pip install 'wideflow[torch]'" in done.stdout


MEMORY = """
import pathlib
import torch
from torch import nn
import wideflow as wf

torch.manual_seed(0)
{build}
before = {{name: value.clone() for name, value in net.state_dict().items()}}
with torch.no_grad():
    for p in net.parameters():
        p += 1e-3 * torch.sign(p)
found = wf.probe(net, before, net, x, output=0)
status = pathlib.Path("/proc/self/status").read_text()  # ru_maxrss would count the parent's memory before exec
print(found.parameters, found.verdict, int(status.split("VmHWM:")[1].split()[0]))
"""
DENSE = """
sizes = (64, 1800, 2900, 1800, 1)
net = nn.Sequential(*(layer for a, b in zip(sizes, sizes[1:]) for layer in (nn.Linear(a, b), nn.ReLU())))[:-1]
x = torch.randn(64, 64)
"""
RESNET18 = """
class Block(nn.Module):
    def __init__(self, inside, outside, stride):
        super().__init__()
        conv = lambda a, b, s: nn.Conv2d(a, b, 3, s, 1, bias=False)
        self.body = nn.Sequential(conv(inside, outside, stride), nn.GroupNorm(8, outside), nn.ReLU(),
                                  conv(outside, outside, 1), nn.GroupNorm(8, outside))
        self.around = nn.Conv2d(inside, outside, 1, stride, bias=False) if stride > 1 else nn.Identity()
    def forward(self, x):
        return torch.relu(self.around(x) + self.body(x))
stages = ((64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2))
blocks = [block for a, b, s in stages for block in (Block(a, b, s), Block(b, b, 1))]
net = nn.Sequential(nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.GroupNorm(8, 64), nn.ReLU(), *blocks,
                    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))
x = torch.randn(64, 3, 32, 32)
"""


@pytest.mark.parametrize(
    "build", [DENSE, pytest.param(RESNET18, marks=pytest.mark.slow)], ids=["dense", "resnet18"]
)
def test_eleven_million_parameters_and_64_inputs_within_four_gigabytes(build):
    told = subprocess.run(
        [sys.executable, "-c", MEMORY.format(build=build)],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    count, verdict, peak = told.split()
    assert int(count) > 10_500_000
    assert verdict in ("lazy", "between", "rich")
    assert int(peak) * 1024 < 4e9
