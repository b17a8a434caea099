"""1. Full-batch descent at the papers' sizes: wideflow's `train` against a plain JAX scan and the
bare matrix products (the limit).
"""
# ruff: noqa: B023 (the closures are called at once, inside their loop)

import functools

import jax
import jax.numpy as jnp
import numpy as np
from timing import DESCENT_SIZES, best, network, report

import wideflow as wf


@functools.partial(jax.jit, static_argnames="steps")
def plain_scan(x, y, w, mix, rate, steps):
    """What one would write first: autodiff and a scan, weights (width, feature)."""

    def loss(w):
        return 0.5 * jnp.sum((jax.nn.relu(x @ w.T) @ mix - y) ** 2)

    return jax.lax.scan(lambda w, _: (w - rate * jax.grad(loss)(w), None), w, length=steps)[0]


@functools.partial(jax.jit, static_argnames="steps")
def bare_products(x, w, steps):
    """The two products of a step and nothing else, each depending on the one before."""
    return jax.lax.fori_loop(0, steps, lambda _, w: x.T @ (x @ w), w)


def main():
    rows = []
    with jax.enable_x64(True):
        for dtype in ("float32", "float64"):
            for samples, features, width, steps in DESCENT_SIZES:
                inputs, targets, weights, signs = network(samples, features, width)
                x = jnp.asarray(inputs / np.sqrt(features), dtype)
                w, y = jnp.asarray(weights, dtype), jnp.asarray(targets, dtype)
                mix = jnp.asarray(signs / np.sqrt(width), dtype)
                size = {"samples": samples, "features": features, "width": width, "dtype": dtype}
                seconds = best(lambda: jax.block_until_ready(bare_products(x, w, steps))) / steps
                rows.append({"program": "bare products", "seconds": seconds, **size})
                rows_first = w.T.copy()
                seconds = (
                    best(
                        lambda: jax.block_until_ready(
                            plain_scan(x, y, rows_first, mix, 0.01, steps)
                        )
                    )
                    / steps
                )
                rows.append({"program": "JAX scan", "seconds": seconds, **size})
                net = wf.Shallow(weights.T, signs)
                data = wf.Dataset(inputs, targets)
                rows += measure_train(net, data, dtype, steps, size)
                print(dtype, size, flush=True)
    report(rows)


def measure_train(net, data, dtype, steps, size):
    """`train` itself: without records, with a record every 100 steps, and five seeds together."""
    rows = []
    long = 5 * steps

    def run(model, count, every):
        wf.train(model, data, wf.GradientDescent(0.01), steps=count, every=every, precision=dtype)

    once = best(lambda: run(net, long, long), 3)
    short = best(lambda: run(net, 10, 10), 3)  # what a call costs before its first long stretch
    rows.append(
        {"program": "wideflow", "seconds": (once - short) / (long - 10), "start": short, **size}
    )
    recorded = best(lambda: run(net, long, 100), 3)
    rows.append(
        {
            "program": "wideflow, recording every 100",
            "seconds": (recorded - short) / (long - 10),
            **size,
        }
    )
    if size["width"] >= 2000:
        seeds = [wf.Shallow(np.asarray(net.hidden) + i, net.output) for i in range(5)]
        together = best(lambda: run(seeds, steps, steps), 3)
        begin = best(lambda: run(seeds, 10, 10), 3)
        rows.append(
            {
                "program": "wideflow, five seeds, per seed",
                "seconds": (together - begin) / (steps - 10) / 5,
                **size,
            }
        )
    return rows


main()
