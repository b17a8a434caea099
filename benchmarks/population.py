"""5. The exact population gradient against sampling at equal error; the reduced radial flow against
the finite network it describes.
"""

import time

import jax
import jax.numpy as jnp
import numpy as np
from timing import best, report

import wideflow as wf


def sampling(width: int, features: int):
    """The exact gradient, and the time a Monte Carlo gradient needs for a relative error of one per
    cent.

    The error of `samples` draws falls as samples^(-1/2); it is measured at 20,000 and the time
    extrapolated. The exact one errs by rounding.
    """
    teacher = wf.populations.GaussianAbsTeacher(np.full(features, 1 / features))
    net = wf.Homogeneous.init(jax.random.key(0), features=features, width=width)
    loss = wf.losses.MeanSquares()
    exact_of = teacher.objective(loss, net)
    exact_call = jax.jit(lambda m: exact_of.gradient(m)[1]["weights"])
    exact = exact_call(net)
    seconds = best(lambda: jax.block_until_ready(exact_call(net)), 3)
    samples = 20_000
    drawn = teacher.sample(jax.random.key(1), samples).objective(loss, net)
    sampled_call = jax.jit(lambda m: drawn.gradient(m)[1]["weights"])
    error = float(jnp.linalg.norm(sampled_call(net) - exact) / jnp.linalg.norm(exact))
    spent = best(lambda: jax.block_until_ready(sampled_call(net)), 3)
    needed = samples * (error / 1e-2) ** 2
    size = {"width": width, "features": features}
    return [
        {"program": "exact population gradient", "seconds": seconds, **size},
        {
            "program": "sampled, at relative error 1e-2",
            "seconds": spent * needed / samples,
            "samples": needed,
            "error_at_20000": error,
            **size,
        },
    ]


def reduced(width: int = 1000, features: int = 10, end: float = 40.0):
    """The radial flow of ren2023 in three reduced coordinates, against the finite network that it
    describes, over the same time.
    """
    law = wf.limits.radial.BesselLaw(features)
    alpha, weight, bias, rate = 0.2, -0.8, 0.5, 0.1
    steps = round(end / rate)
    path = wf.limits.radial.reduced_flow(law, alpha, weight, bias, end, rate=rate)
    seconds = best(
        lambda: jax.block_until_ready(
            wf.limits.radial.reduced_flow(law, alpha, weight, bias, end, rate=rate).alpha
        ),
        3,
    )
    first = np.random.default_rng(0).standard_normal((width, features))
    first *= np.sqrt(alpha / law.gain) / np.linalg.norm(first, axis=1, keepdims=True)
    net = wf.DepthSeparator(first, np.full(4, weight), np.full(4, bias))
    population = wf.populations.Radial.fresh(
        law, 1024, stratified=True, antithetic=True, evaluation=256
    )

    def run():
        return wf.train(net, population, wf.ClippedFlow(rate), steps=steps, every=steps).model

    run()
    began = time.perf_counter()
    end_alpha = float(run().alpha)
    spent = time.perf_counter() - began
    return [
        {"program": "reduced radial flow", "features": features, "seconds": seconds},
        {
            "program": "finite network, same time",
            "width": width,
            "features": features,
            "seconds": spent,
            "difference": end_alpha / float(path.alpha[-1]) - 1,
        },
    ]


def main():
    rows = []
    with jax.enable_x64(True):
        for width, features in ((200, 10), (1000, 30)):
            rows += sampling(width, features)
            print(rows[-2:], flush=True)
        rows += reduced()
    report(rows)


main()
