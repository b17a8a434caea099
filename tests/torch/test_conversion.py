"""Modules carried over: the network computes what the module does; what has no counterpart is
named, all of it.
"""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from numpy.testing import assert_allclose
from torch import nn

import wideflow as wf

A = wf.architecture


class Block(nn.Module):
    def __init__(self, inside: int, outside: int, stride: int = 1):
        super().__init__()
        self.first = nn.Conv2d(inside, outside, 3, stride, 1)
        self.second = nn.Conv2d(outside, outside, 3, padding="same")
        self.around = (
            nn.Conv2d(inside, outside, 1, stride, bias=False)
            if inside != outside
            else nn.Identity()
        )

    def forward(self, x):
        return F.relu(self.around(x) + self.second(torch.relu(self.first(x))))


class ResNet(nn.Module):
    """Nested residual sums, functions and methods, dropout, a view between positions and
    features.
    """

    def __init__(self):
        super().__init__()
        self.stem, self.one, self.two = nn.Conv2d(2, 4, 3, padding=1), Block(4, 4), Block(4, 6, 2)
        self.pool, self.hidden, self.norm = (
            nn.AvgPool2d(2),
            nn.Linear(24, 7),
            nn.LayerNorm(7, elementwise_affine=False),
        )
        self.last, self.drop = nn.Linear(7, 3), nn.Dropout(0.2)

    def forward(self, x):
        x = F.gelu(self.stem(x))
        x = x + self.one(x)
        x = self.pool(self.two(x))
        x = self.norm(self.drop(self.hidden(x.view(x.size(0), -1))))
        return self.last(x.tanh())


class Sequence(nn.Module):
    """Begins with a linear layer, so that channels are last already."""

    def __init__(self):
        super().__init__()
        self.inside, self.mix, self.last = nn.Linear(3, 5), nn.Linear(5, 5), nn.Linear(5, 1)

    def forward(self, x):
        x = torch.sigmoid(self.inside(x))
        x = torch.add(x, F.leaky_relu(self.mix(x), 0.2))
        return self.last(x.mean(dim=1))


MODULES = {
    "perceptron": (
        lambda: nn.Sequential(
            nn.Linear(4, 6), nn.Softplus(), nn.Linear(6, 6, bias=False), nn.SiLU(), nn.Linear(6, 2)
        ),
        (4,),
    ),
    "residual network": (ResNet, (2, 9, 9)),
    "sequence": (Sequence, (6, 3)),
    "flattened first": (
        lambda: nn.Sequential(nn.Flatten(), nn.Linear(12, 5), nn.ReLU(), nn.Linear(5, 1)),
        (3, 2, 2),
    ),
    "one axis": (
        lambda: nn.Sequential(
            nn.Conv1d(2, 3, 3, padding=1, padding_mode="circular"),
            nn.Tanh(),
            nn.AdaptiveAvgPool1d(1),
            nn.Flatten(),
            nn.Linear(3, 1),
        ),
        (2, 7),
    ),
    "pooling with padding": (
        lambda: nn.Sequential(
            nn.Conv2d(1, 2, (3, 1)),
            nn.ReLU(),
            nn.AvgPool2d(3, 1, 1, count_include_pad=False),
            nn.Flatten(),
            nn.Linear(40, 1),
        ),
        (1, 6, 5),
    ),
}


@pytest.mark.parametrize("name", list(MODULES))
def test_outputs_are_those_of_the_module(name):
    torch.manual_seed(0)
    build, shape = MODULES[name]
    module = build().double().eval()
    x = torch.randn(5, *shape).double()
    net = wf.torch.from_torch(module, shape, weights=True)
    first_is_conv = isinstance(
        next(m for m in module.modules() if hasattr(m, "weight")), nn.modules.conv._ConvNd
    )
    ours = x.movedim(1, -1) if first_is_conv else x
    expected = module(x).detach().numpy()
    outputs = np.asarray(net.outputs(ours.numpy())).reshape(expected.shape)
    assert_allclose(outputs, expected, atol=1e-12, rtol=0)
    assert net.architecture == wf.torch.from_torch(module, shape)


def test_the_shape_of_a_perceptron_is_not_needed_and_float32_stays():
    module = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 1))
    net = wf.torch.from_torch(module, weights=True)
    assert net.weights[0].dtype == np.float32
    assert net.input_shape == (4,)
    single = wf.torch.from_torch(nn.Linear(4, 2), weights=True)
    assert [weight.shape for weight in single.weights] == [(4, 2)]


def test_the_deviations_are_those_of_the_weights():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(300, 500), nn.ReLU(), nn.Linear(500, 200, bias=False))
    first, _, last = wf.torch.from_torch(module).layers
    # PyTorch draws weights and biases uniformly in +-fan_in^-1/2: mean squares 1/(3 fan_in), so
    # sigma_w^2 = 1/3 and sigma_b^2 = 1/900
    assert_allclose(first.weight_std, 3**-0.5, rtol=5 / (300 * 500) ** 0.5)
    assert_allclose(first.bias_std, 30**-1, rtol=5 / 500**0.5)
    assert last.bias_std is None


def test_kernels_and_training_can_be_had_of_it():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(3, 40), nn.Tanh(), nn.Linear(40, 1)).double()
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(5, 3)), rng.normal(size=5)
    kernel = wf.limits.kernels(wf.torch.from_torch(module)).ntk(x)
    assert np.linalg.eigvalsh(kernel)[0] > 0
    net = wf.torch.from_torch(module, weights=True)
    run = wf.train(
        net, wf.Dataset(x, y), wf.GradientDescent(0.05), steps=3, loss=wf.losses.HalfMeanSquares()
    )
    optimiser = torch.optim.SGD(module.parameters(), lr=0.05)
    for _ in range(3):
        optimiser.zero_grad()
        (torch.sum((module(torch.tensor(x))[:, 0] - torch.tensor(y)) ** 2) / 10).backward()
        optimiser.step()
    assert_allclose(
        run.model.outputs(x), module(torch.tensor(x)).detach().numpy()[:, 0], atol=1e-12
    )


def test_frozen_layers_stay_frozen():
    module = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    module[0].requires_grad_(False)
    assert wf.torch.from_torch(module, weights=True).trained == ("weight_2", "bias_2")


def test_a_layer_norm_with_its_first_scale_is_carried_with_a_word():
    module = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.ReLU(), nn.Linear(4, 1))
    with pytest.warns(
        UserWarning, match=r"trained scale and shift, which are 1 and 0 here: '1' \(LayerNorm\)"
    ):
        chain = wf.torch.from_torch(module)
    assert isinstance(chain.layers[1], A.LayerNorm)


class Product(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(self, x):
        return self.a(x) * torch.softmax(self.b(x), -1)


class Choice(nn.Linear):
    def forward(self, x):
        return x if x.sum() > 0 else -x


@pytest.mark.parametrize(
    ("module", "shape", "words"),
    [
        (
            nn.Sequential(
                nn.Conv2d(1, 4, 3),
                nn.BatchNorm2d(4),
                nn.MaxPool2d(2),
                nn.PReLU(),
                nn.Flatten(),
                nn.Linear(4, 2),
            ),
            None,
            ["'1' (BatchNorm2d): batch normalisation", "'2' (MaxPool2d): maxima", "'3' (PReLU)"],
        ),
        (
            nn.Sequential(nn.Conv2d(1, 4, 3, stride=2, padding=1), nn.Flatten(), nn.Linear(64, 1)),
            (1, 8, 8),
            ["'0' (Conv2d): padding (1, 1) with strides (2, 2) on positions (8, 8)"],
        ),
        (
            nn.Sequential(nn.Conv2d(1, 4, 3, stride=2, padding=1), nn.Flatten(), nn.Linear(64, 1)),
            None,
            ["needs `shape`"],
        ),
        (
            nn.Sequential(nn.Conv2d(2, 4, 3, groups=2), nn.Conv2d(4, 4, 3, dilation=2)),
            None,
            ["'0' (Conv2d): groups=2", "'1' (Conv2d): groups=1 and dilation=(2, 2)"],
        ),
        (
            nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5)).train(),
            None,
            ["'1' (Dropout): active dropout"],
        ),
        (
            nn.Sequential(nn.Linear(3, 3), nn.GELU(approximate="tanh")),
            None,
            ["'1' (GELU): approximate='tanh'"],
        ),
        (
            nn.Sequential(nn.Conv2d(1, 2, 3), nn.Linear(6, 2)),
            None,
            ["last axis, which is a position"],
        ),
        (Product(), None, ["'softmax' (softmax)", "'mul' (mul)"]),
        (Choice(3, 3), None, ["cannot be traced by torch.fx"]),
        (nn.Sequential(nn.ReLU(), nn.Identity()), None, ["`requires_grad=True`"]),
        (nn.Sequential(nn.LazyLinear(3)), None, ["lazy parameters"]),
        (nn.Linear(3, 3).half(), None, ["float16"]),
        (nn.TransformerEncoderLayer(4, 2, batch_first=True).eval(), None, ["`module` cannot be"]),
        (nn.Linear(3, 3), (7,), ["`shape` must be that of one input"]),
        ("net", None, ["`module` must be a torch.nn.Module"]),
    ],
)
def test_what_has_no_counterpart_is_named_layer_by_layer(module, shape, words):
    with pytest.raises(ValueError) as raised:
        wf.torch.from_torch(module, shape)
    for word in words:
        assert word in str(raised.value)


class Behind(nn.Module):
    """A residual sum of flattened positions."""

    def __init__(self):
        super().__init__()
        self.conv, self.mix, self.last = nn.Conv2d(1, 2, 3), nn.Linear(8, 8), nn.Linear(8, 1)

    def forward(self, x):
        x = torch.flatten(self.conv(x), 1)
        return self.last(x + self.mix(x))


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (Behind(), "follows the flattening"),
        (nn.Conv2d(1, 2, 3), "its outputs have positions"),
        (nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten()), "its outputs have positions"),
    ],
)
def test_weights_are_not_carried_where_the_order_of_positions_would_show(module, words):
    with pytest.raises(ValueError, match=words):
        wf.torch.from_torch(module, (1, 4, 4), weights=True)


def test_weights_of_a_convolutional_module_need_the_shape():
    module = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(8, 1))
    with pytest.raises(ValueError, match="`shape` must be given"):
        wf.torch.from_torch(module, weights=True)
