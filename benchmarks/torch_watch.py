"""What watching costs: a training loop of a small convolutional network in PyTorch with a record
every 100 steps of 32 inputs, and without.

Both loops alternate in one process on one thread and are timed in processor time, so that their
ratio does not depend on what else the machine does. Asked is at most 10 % more.

Run:  python benchmarks/torch_watch.py [ROUNDS]      Takes: under a minute on one core
"""

import statistics
import sys
import time

import torch
import torch.nn.functional as F
from timing import report
from torch import nn

import wideflow as wf

STEPS, EVERY, BATCH, WATCHED = 200, 100, 64, 32


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 49, 10),
    )


def seconds(watched: bool, images, labels) -> tuple[float, float]:
    """CPU seconds of a loop, and of its records by the watch's own clock."""
    net = network()
    optimiser = torch.optim.SGD(net.parameters(), lr=0.05)
    began = time.process_time()
    watch = wf.torch.Watch(net, images[:WATCHED], labels[:WATCHED]) if watched else None
    for step in range(1, STEPS + 1):
        optimiser.zero_grad()
        F.cross_entropy(net(images), labels).backward()
        optimiser.step()
        if watch is not None and step % EVERY == 0:
            watch.record(step)
    return time.process_time() - began, 0.0 if watch is None else watch.cost


def main(rounds: int) -> None:
    torch.set_num_threads(1)  # threads that wait for each other would count
    draw = torch.Generator().manual_seed(0)
    images = torch.randn(BATCH, 1, 28, 28, generator=draw)
    labels = torch.randint(10, (BATCH,), generator=draw)
    seconds(True, images, labels)  # threads and caches warm
    pairs = [(seconds(False, images, labels), seconds(True, images, labels)) for _ in range(rounds)]
    ratios = [watched[0] / plain[0] for plain, watched in pairs]
    report(
        [
            {
                "program": "wideflow.torch.Watch",
                "ratio": statistics.median(ratios),
                "ratios": ratios,
                "told": statistics.median(watched[1] for _, watched in pairs),
                "seconds": statistics.median(plain[0] for plain, _ in pairs),
            }
        ]
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
