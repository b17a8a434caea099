"""A small ResNet of PyTorch on MNIST: does it learn features while it trains, layer by layer?

The images are pooled to 14 x 14, the network has group norm (batch statistics would tie the inputs
to each other). `Watch` records along an ordinary loop, `wf.probe` compares the two ends, and both
print a verdict.

Run:  python examples/torch_resnet.py [FIGURE.png]      Takes: a few minutes on two busy cores
"""

import pathlib
import sys

import torch
import torch.nn.functional as F
from torch import nn

import wideflow as wf


class Block(nn.Module):
    def __init__(self, inside: int, outside: int, stride: int):
        super().__init__()
        self.first = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList([nn.GroupNorm(4, outside), nn.GroupNorm(4, outside)])
        self.around = (
            nn.Conv2d(inside, outside, 1, stride, bias=False) if stride > 1 else nn.Identity()
        )

    def forward(self, x):
        h = torch.relu(self.norms[0](self.first(x)))
        return torch.relu(self.around(x) + self.norms[1](self.second(h)))


def resnet(channels: int = 16) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(1, channels, 3, 1, 1, bias=False),
        nn.GroupNorm(4, channels),
        nn.ReLU(),
        Block(channels, channels, 1),
        Block(channels, 2 * channels, 2),
        Block(2 * channels, 4 * channels, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(4 * channels, 10),
    )


def mnist(samples: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Images (sample, 1, 14, 14) around zero, and their classes."""
    data = wf.data.mnist("train", count=samples)
    images = torch.tensor(data.inputs, dtype=torch.float32).reshape(-1, 1, 28, 28)
    return F.avg_pool2d(images, 2) - 0.13, torch.tensor(data.targets).argmax(1)


def train(net, images, labels, watch, steps: int, every: int, batch: int = 64, rate: float = 0.05):
    """An ordinary loop; the two lines of `watch` are all that is added."""
    optimiser = torch.optim.SGD(net.parameters(), lr=rate, momentum=0.9)
    draw = torch.Generator().manual_seed(0)
    for step in range(steps):
        if step % every == 0:
            watch.record(step)
        rows = torch.randint(len(images), (batch,), generator=draw)
        optimiser.zero_grad()
        F.cross_entropy(net(images[rows]), labels[rows]).backward()
        optimiser.step()
    watch.record(steps)


def main(samples: int = 2000, steps: int = 300, every: int = 100, watched: int = 32):
    torch.manual_seed(0)
    images, labels = mnist(samples)
    net = resnet()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    watch = wf.torch.Watch(net, images[:watched], labels[:watched])
    train(net, images, labels, watch, steps, every)
    print(watch)
    probe = wf.probe(net, before, net, images[:watched], output=0, features="6")
    print(probe)
    return watch, probe


if __name__ == "__main__":
    watch, _ = main()
    if len(sys.argv) > 1:
        print(wf.save_figure(watch.figure(), pathlib.Path(sys.argv[1]).with_suffix("")))
