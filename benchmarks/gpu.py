"""7. The accelerator: descent at n=1000, d=100, m=1e6, the largest network, and Figure 1's seeds
and settings in one batch.

Run:  python benchmarks/gpu.py            on a machine with a GPU; prints JSON

Only `wideflow` from this checkout, JAX with its CUDA plugin and Equinox are used.
"""
# ruff: noqa: B023 (the closures are called at once, inside their loop)

import functools
import json
import pathlib
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "src"))
import wideflow as wf

PRECISIONS = {"float32": "highest", "tf32": "default"}


def best(call, repeats=3):
    jax.block_until_ready(call())
    spent = []
    for _ in range(repeats):
        began = time.perf_counter()
        jax.block_until_ready(call())
        spent.append(time.perf_counter() - began)
    return min(spent)


def problem(samples, features, width):
    keys = jax.random.split(jax.random.key(0), 4)
    x = jax.random.normal(keys[0], (samples, features), jnp.float32)
    x = x / jnp.linalg.norm(x, axis=1, keepdims=True)
    y = jax.random.normal(keys[1], (samples,), jnp.float32)
    w = jax.random.normal(keys[2], (features, width), jnp.float32)
    a = jnp.where(jax.random.bernoulli(keys[3], shape=(width,)), 1.0, -1.0).astype(jnp.float32)
    return x, y, w, a


@functools.partial(jax.jit, static_argnames="steps", donate_argnums=())
def bare(x, w, steps):
    return jax.lax.fori_loop(0, steps, lambda _, w: x.T @ (x @ w), w)


@functools.partial(jax.jit, static_argnames="steps")
def plain(x, y, w, mix, rate, steps):
    def loss(w):
        return 0.5 * jnp.sum((jax.nn.relu(x @ w.T) @ mix - y) ** 2)

    return jax.lax.scan(lambda w, _: (w - rate * jax.grad(loss)(w), None), w, length=steps)[0]


def per_step(call, steps):
    """Seconds a step: a long call less a short one, so that what a call costs once drops out."""
    return (best(lambda: call(6 * steps)) - best(lambda: call(steps))) / (5 * steps)


def descent(samples=1000, features=100, width=1_000_000, steps=20):
    rows = []
    x, y, w, a = problem(samples, features, width)
    flops = 4.0 * samples * features * width
    for name, precision in PRECISIONS.items():
        with jax.default_matmul_precision(precision):
            scaled = x / features**0.5
            mix = a / width**0.5
            step = trainer(x, y, w, a)
            times = {
                "bare products": per_step(lambda count: bare(scaled, w, count), steps),
                "plain scan": per_step(
                    lambda count: plain(scaled, y, w.T, mix, 1e-3, count), steps
                ),
                "wideflow": per_step(step, steps),
            }
        for program, seconds in times.items():
            rows.append(
                {
                    "what": "descent",
                    "precision": name,
                    "program": program,
                    "ms": 1e3 * seconds,
                    "tflops": flops / seconds / 1e12,
                }
            )
    return rows


def trainer(x, y, w, a):
    """`train`'s own compiled stretch on a network that is built once, as a function of the number
    of steps.
    """
    from wideflow.training.train import _many_steps

    net = wf.Shallow(w.T, a)
    with jax.enable_x64(True):
        objective = wf.Dataset(np.asarray(x), np.asarray(y)).objective(
            wf.losses.HalfSumSquares(), net
        )
    dynamics = wf.GradientDescent(1e-3)

    def steps(count):
        with jax.enable_x64(True):
            out = _stretch(_many_steps)(
                net, None, objective, dynamics, jnp.zeros(()), np.asarray(count)
            )
            return out[0].weights

    return steps


@functools.cache
def _stretch(function):
    import equinox as eqx

    return eqx.filter_jit(function)


def largest(features=16, samples=32):
    """One run of ten steps at growing widths, until memory ends."""
    rows = []
    for width in (10**6, 10**7, 3 * 10**7, 10**8, 2 * 10**8, 3 * 10**8):
        try:
            x, y, w, a = problem(samples, features, width)
            began = time.perf_counter()
            out = trainer(x, y, w, a)(10)
            jax.block_until_ready(out)
            rows.append(
                {
                    "what": "largest",
                    "width": width,
                    "seconds for 10 steps, with compilation": time.perf_counter() - began,
                    "finite": bool(jnp.all(jnp.isfinite(out[:, :1000]))),
                }
            )
            del out, w, a
        except Exception as fault:
            rows.append(
                {"what": "largest", "width": width, "fault": str(fault).splitlines()[0][:160]}
            )
            break
        print(json.dumps(rows[-1]), flush=True)
    return rows


def figure1(seeds=5, steps=50_000):
    """Four settings times `seeds` networks of Figure 1, m=2000, in one program."""
    data = wf.data.sphere_sines(jax.random.key(0), samples=100, features=50)
    settings = [
        wf.scalings.NTK(),
        wf.scalings.Zipf(0.5, 0.7),
        wf.scalings.Zipf(0.5, 0.5),
        wf.scalings.Zipf(0.0, 0.4),
    ]
    nets = [
        wf.Shallow.init(jax.random.key(s), features=50, width=2000, scaling=scaling)
        for scaling in settings
        for s in range(seeds)
    ]
    began = time.perf_counter()
    run = wf.train(
        nets, data, wf.GradientDescent(0.02), steps=steps, every=1000, precision="float32"
    )
    return [
        {
            "what": "figure 1",
            "networks": len(nets),
            "steps": steps,
            "seconds": time.perf_counter() - began,
            "last loss": float(np.mean(run.table.loss[:, -1])),
        }
    ]


if __name__ == "__main__":
    table = {"device": jax.devices()[0].device_kind, "jax": jax.__version__}
    rows = descent()
    print(json.dumps(rows), flush=True)
    rows += figure1()
    print(json.dumps(rows[-1]), flush=True)
    rows += largest()
    print("RESULT " + json.dumps({**table, "rows": rows}))
