"""Modules whose coordinates both wideflow and microsoft/mup check: plain and maximal-update
networks under SGD and Adam.

The maximal-update ones are written out as mup's rules have them (yang2022, Table 8): relative to a
base width the readout divides what it sees by the ratio of widths and starts at the base width's
deviation, and the optimiser's rates are multiplied layer by layer.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

WIDTHS = (32, 64, 128, 256)
BASE = 32
FEATURES, CLASSES, SAMPLES = 12, 4, 24


class Net(nn.Module):
    """Two hidden layers with tanh; `ratio` divides what the readout sees."""

    def __init__(self, width: int, ratio: float = 1.0):
        super().__init__()
        self.first = nn.Linear(FEATURES, width)
        self.second = nn.Linear(width, width)
        self.last = nn.Linear(width, CLASSES, bias=False)
        self.ratio = ratio

    def forward(self, x):
        x = torch.tanh(self.second(torch.tanh(self.first(x))))
        return self.last(x / self.ratio)


def plain(width: int) -> Net:
    torch.manual_seed(width)
    return Net(width)


def maximal(width: int) -> Net:
    torch.manual_seed(width)
    net = Net(width, width / BASE)
    with torch.no_grad():
        net.last.weight.mul_((width / BASE) ** 0.5)
    return net


def scaled_sgd(net: Net) -> torch.optim.Optimizer:
    """mup's SGD: vectors and input weights at rate x ratio, the readout too, hidden ones at the
    rate itself.
    """
    ratio = net.second.weight.shape[0] / BASE
    groups = [
        {"params": [net.second.weight], "lr": 0.1},
        {
            "params": [net.first.weight, net.first.bias, net.second.bias, net.last.weight],
            "lr": 0.1 * ratio,
        },
    ]
    return torch.optim.SGD(groups, lr=0.1)


def scaled_adam(net: Net) -> torch.optim.Optimizer:
    """mup's Adam: hidden weights at rate / ratio, all others at the rate."""
    ratio = net.second.weight.shape[0] / BASE
    others = [net.first.weight, net.first.bias, net.second.bias, net.last.weight]
    groups = [{"params": [net.second.weight], "lr": 1e-2 / ratio}, {"params": others, "lr": 1e-2}]
    return torch.optim.Adam(groups, lr=1e-2)


@dataclass(frozen=True)
class Case:
    build: Callable[[int], nn.Module]
    optimiser: Callable[[nn.Module], torch.optim.Optimizer]


CASES = {
    "plain SGD": Case(plain, lambda net: torch.optim.SGD(net.parameters(), lr=0.1)),
    "plain Adam": Case(plain, lambda net: torch.optim.Adam(net.parameters(), lr=1e-2)),
    "maximal SGD": Case(maximal, scaled_sgd),
    "maximal Adam": Case(maximal, scaled_adam),
}


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(0)
    inputs = torch.randn(SAMPLES, FEATURES, generator=draw)
    return inputs, torch.randint(CLASSES, (SAMPLES,), generator=draw)
