"""A training step of `wf.Deep` (three hidden layers of 1024, batch 128, Adam, float32) against a
hand-written jitted Optax loop.

python deep_training.py                          takes about two minutes on two cores
python deep_training.py --width 64 --steps 20    a small one

The hand-written loop is what a careful user writes: one jitted step that gets a batch by its rows,
with the parameters and the optimiser's state donated. Programs take turns, and the fastest of
several rounds counts, so that a busy moment hits both.
"""

import argparse
import functools
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax
from timing import report

import wideflow as wf


def by_hand(x, y, width, depth, batch, steps, rate):
    """A function that runs `steps` steps of plain JAX with Optax."""
    sizes = [x.shape[1], *[width] * depth, 1]
    keys = jax.random.split(jax.random.key(0), depth + 1)
    weights = [
        jax.random.normal(k, (m, n), jnp.float32) * np.sqrt(2 / m)
        for k, m, n in zip(keys, sizes, sizes[1:])
    ]
    adam = optax.adam(rate)
    state = adam.init(weights)

    def loss(weights, x, y):
        for w in weights[:-1]:
            x = jax.nn.relu(x @ w)
        return 0.5 * jnp.mean(((x @ weights[-1])[:, 0] - y) ** 2)

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def step(weights, state, rows):
        gradient = jax.grad(loss)(weights, x[rows], y[rows])
        update, state = adam.update(gradient, state)
        return optax.apply_updates(weights, update), state

    order = np.random.default_rng(0)

    def run():
        nonlocal weights, state
        rows = order.permutation(len(x))
        for k in range(steps):
            at = (k * batch) % (len(x) - batch + 1)
            weights, state = step(weights, state, rows[at : at + batch])
        jax.block_until_ready(weights)

    return run


def by_wideflow(x, y, width, depth, batch, steps, rate):
    """The same by `wf.train`, from a network of the same layers."""
    net = wf.Deep.init(0, wf.mlp(depth, width, "relu", weight_std=2**0.5), x.shape[1], "standard")
    data = wf.Dataset(np.asarray(x), np.asarray(y), "random")
    adam = wf.Optax(optax.adam(1.0), batch, rate=rate)
    loss = wf.losses.HalfMeanSquares()

    def run():
        wf.train(net, data, adam, steps=steps, every=steps, loss=loss, precision="float32")

    return run


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--depth", type=int, default=3)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=4)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.standard_normal((4096, 256)), jnp.float32)
    y = jnp.asarray(np.sin(np.asarray(x[:, 0])), jnp.float32)
    shape = (options.width, options.depth, options.batch, options.steps, 1e-3)
    programs = {"hand-written": by_hand(x, y, *shape), "wideflow": by_wideflow(x, y, *shape)}
    spent = {name: [] for name in programs}
    for run in programs.values():
        run()  # compiles
    for _ in range(options.rounds):
        for name, run in programs.items():
            began = time.perf_counter()
            run()
            spent[name].append(time.perf_counter() - began)
    case = f"{options.depth} layers of {options.width}, batch {options.batch}"
    rows = [
        {"program": name, "case": case, "milliseconds_a_step": 1e3 * min(times) / options.steps}
        for name, times in spent.items()
    ]
    for row in rows:
        print(row, flush=True)
    report(rows)


if __name__ == "__main__":
    main()
