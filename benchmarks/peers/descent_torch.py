"""Full-batch descent in PyTorch: eager autograd, and torch.compile of a hand-written gradient in
both layouts. float32 and float64.
"""
# ruff: noqa: B023 (the closures are called at once, inside their loop)

import math
import pathlib
import sys
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from timing import DESCENT_SIZES, best, network, report

torch.set_num_threads(2)


def eager(x, y, w, mix, rate, steps):
    w = w.T.contiguous().requires_grad_(True)
    for _ in range(steps):
        loss = 0.5 * ((torch.relu(x @ w.T) @ mix - y) ** 2).sum()
        (gradient,) = torch.autograd.grad(loss, w)
        with torch.no_grad():
            w -= rate * gradient


def rows_step(x, y, w, mix, rate):
    z = x @ w.T
    residual = torch.relu(z) @ mix - y
    return w - rate * (((z > 0) * (residual[:, None] * mix)).T @ x)


def columns_step(x, y, w, mix, rate):
    z = x @ w
    residual = torch.relu(z) @ mix - y
    return w - rate * (x.T @ ((z > 0) * (residual[:, None] * mix)))


def main():
    rows = []
    for dtype, name in ((torch.float32, "float32"), (torch.float64, "float64")):
        for samples, features, width, steps in DESCENT_SIZES:
            inputs, targets, weights, signs = network(samples, features, width)
            x = torch.tensor(inputs / math.sqrt(features), dtype=dtype)
            y, w = torch.tensor(targets, dtype=dtype), torch.tensor(weights, dtype=dtype)
            mix = torch.tensor(signs / math.sqrt(width), dtype=dtype)
            size = {"samples": samples, "features": features, "width": width, "dtype": name}
            few = max(10, steps // 3)
            seconds = best(lambda: eager(x, y, w, mix, 0.01, few), 3) / few
            rows.append({"program": "torch eager", "seconds": seconds, **size})
            for layout, step, start in (
                ("(m, d)", rows_step, w.T.contiguous()),
                ("(d, m)", columns_step, w),
            ):
                try:
                    compiled = torch.compile(step)
                    compiled(x, y, start, mix, 0.01)
                except (
                    Exception
                ) as fault:  # no C++ compiler on this machine: say so instead of a number
                    rows.append(
                        {
                            "program": f"torch.compile {layout}",
                            "fault": str(fault).strip().splitlines()[0][:200],
                            **size,
                        }
                    )
                    continue

                def run(compiled=compiled, start=start):
                    now = start
                    for _ in range(steps):
                        now = compiled(x, y, now, mix, 0.01)

                rows.append(
                    {"program": f"torch.compile {layout}", "seconds": best(run, 3) / steps, **size}
                )
            print(name, size, time.strftime("%X"), flush=True)
    report(rows)


main()
