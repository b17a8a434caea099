"""Online learning: the equations against a simulation at d = 1000, a step of `OnlineSGD` against
its bare products, trajectories at d = 4000.

Run:  python benchmarks/online.py              times (a minute on two quiet cores)
      python benchmarks/online.py trajectory   simulations at d = 4000 against the equations,
                                               in standard errors (a minute)
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np
from timing import best, report

import wideflow as wf

RATE, NOISE = 0.5, 0.01


def problem(features: int, width: int = 2, seed: int = 0):
    """A network with `width` units erf, its population with as many indices, and the equations of
    the same numbers.
    """
    rng = np.random.default_rng(seed)
    weights, indices = rng.standard_normal((width, features)), np.eye(width, features)
    net = wf.Shallow(weights, np.ones(width), activation="erf")
    population = wf.populations.MultiIndex("erf", indices, noise=NOISE)
    start = wf.limits.Overlaps.of_weights(weights / features**0.5, indices, np.ones(width))
    equations = wf.limits.OnlineEquations("erf", "erf", rate=RATE, scale=width**-0.5, noise=NOISE)
    return net, population, start, equations


def equations_against_simulation(features: int = 1000, tau: int = 50):
    net, population, start, equations = problem(features)
    times = np.linspace(0.0, tau, 11)
    solve = lambda: wf.limits.order_parameters(equations, start, times)
    steps = tau * features
    simulate = lambda: wf.train(net, population, wf.OnlineSGD(RATE), steps=steps, every=steps // 10)
    size = {"features": features, "tau": tau}
    return [
        {
            "program": "equations",
            "seconds": best(lambda: jax.block_until_ready(solve().M), 3),
            **size,
        },
        {
            "program": "simulation",
            "seconds": best(lambda: jax.block_until_ready(simulate().model.weights), 2),
            **size,
        },
    ]


def step_against_products(features: int, width: int, batch: int, steps: int):
    """A step draws its samples, takes the pre-activations and moves the weights; the bare one has
    nothing else. So many steps that the call itself, some 15 ms, is no part of one.
    """
    net, population, _, _ = problem(features, width)
    dynamics = wf.OnlineSGD(RATE, batch)
    whole = lambda: wf.train(net, population, dynamics, steps=steps, every=steps).model.weights
    weights, indices = net.weights, population.directions
    erf, factor = jax.scipy.special.erf, (features * width) ** -0.5

    @jax.jit
    def bare(weights, key):
        def step(weights, number):
            draw = jax.random.fold_in(key, number)
            x = jax.random.normal(draw, (batch, features))
            h = x @ weights * features**-0.5
            y = jnp.sum(erf(x @ indices.T), axis=1) + NOISE**0.5 * jax.random.normal(draw, (batch,))
            e = jnp.sum(erf(h), axis=1) * width**-0.5 - y
            pull = (2 / jnp.pi**0.5) * jnp.exp(-(h**2)) * e[:, None]
            return weights - RATE * factor / batch * (x.T @ pull), None

        return jax.lax.scan(step, weights, jnp.arange(steps))[0]

    with jax.enable_x64(True):
        key = jax.random.key(0)
        bare_seconds = best(lambda: jax.block_until_ready(bare(weights, key)), 3)
    seconds = best(lambda: jax.block_until_ready(whole()), 3)
    size = {"features": features, "width": width, "batch": batch}
    return [
        {"program": "OnlineSGD, a step", "seconds": seconds / steps, **size},
        {"program": "bare products, a step", "seconds": bare_seconds / steps, **size},
    ]


def trajectory(features: int = 4000, tau: int = 5, seeds: int = 10):
    """The largest distance of means over seeds from the equations, in standard errors, over
    overlaps and the error at every unit of time.
    """
    net, population, start, equations = problem(features)
    names = ("teacher_overlap", "student_overlap", "generalisation_error")
    run = wf.train(
        [net] * seeds,
        population,
        wf.OnlineSGD(RATE),
        steps=tau * features,
        every=features,
        key=list(range(seeds)),
        record=[
            wf.observables.TeacherOverlap(),
            wf.observables.StudentOverlap(),
            wf.observables.GeneralisationError(),
        ],
    )
    path = wf.limits.order_parameters(equations, start, np.arange(1.0, tau + 1))
    rows = []
    for name, predicted in zip(names, (path.M, path.Q, path.error), strict=True):
        sample = run.table[name].transpose("seed", "step", ...).values[:, 1:]
        error = sample.std(axis=0, ddof=1) / seeds**0.5
        off = np.abs(sample.mean(axis=0) - np.asarray(predicted)) / error
        rows.append(
            {
                "program": name,
                "features": features,
                "most_errors": off.max(),
                "share_within_three": np.mean(off < 3),
            }
        )
    return rows


if __name__ == "__main__":
    if "trajectory" in sys.argv:
        report(trajectory())
    else:
        sizes = ((1000, 2, 1, 20_000), (1000, 16, 16, 4000), (20_000, 4, 1, 2000))
        steps = [row for size in sizes for row in step_against_products(*size)]
        report([*equations_against_simulation(), *steps])
