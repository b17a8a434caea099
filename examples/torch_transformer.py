"""A small transformer of PyTorch: does it move at every width, and what would have to change so
that it does?

The task is to say whether the first token of a sequence comes again. The coordinate check trains
transformers of several widths for a few steps of Adam; for every array it says by which powers of
the width its start and its rate should be multiplied. Then one of them is trained and watched.

Run:  python examples/torch_transformer.py      Takes: a minute or two on two busy cores
"""

import torch
import torch.nn.functional as F
from torch import nn

import wideflow as wf

TOKENS, LENGTH = 8, 6


class Transformer(nn.Module):
    """Embedding, one encoder layer, the mean over positions, a linear output of two classes."""

    def __init__(self, width: int):
        super().__init__()
        self.embed = nn.Embedding(TOKENS, width)
        self.place = nn.Parameter(torch.randn(LENGTH, width))
        self.layer = nn.TransformerEncoderLayer(width, 2, 2 * width, dropout=0.0, batch_first=True)
        self.last = nn.Linear(width, 2)

    def forward(self, tokens):
        return self.last(self.layer(self.embed(tokens) + self.place).mean(1))


def repeats(samples: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    tokens = torch.randint(TOKENS, (samples, LENGTH), generator=torch.Generator().manual_seed(seed))
    return tokens, (tokens[:, 1:] == tokens[:, :1]).any(1).long()


def check(widths=(32, 64, 128), seeds: int = 2):
    tokens, classes = repeats(16)
    return wf.coordinate_check(
        lambda width: Transformer(width),
        widths,
        tokens,
        classes,
        optimiser=torch.optim.Adam,
        rate=1e-3,
        loss=F.cross_entropy,
        steps=2,
        seeds=seeds,
    )


def watched(width: int = 32, steps: int = 200, every: int = 50):
    torch.manual_seed(0)
    net, (tokens, classes) = Transformer(width), repeats(512)
    watch = wf.torch.Watch(net, tokens[:32], classes[:32])
    optimiser = torch.optim.Adam(net.parameters(), lr=1e-3)
    for step in range(steps + 1):
        if step % every == 0:
            watch.record(step)
        optimiser.zero_grad()
        F.cross_entropy(net(tokens), classes).backward()
        optimiser.step()
    return watch


if __name__ == "__main__":
    print(check())
    print(watched())
