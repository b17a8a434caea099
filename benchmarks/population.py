"""5. The exact population gradient against sampling at equal error; the reduced radial flow against the finite network it describes."""

import time

import jax
import jax.numpy as jnp
import numpy as np
from timing import best, report

import wideflow as wf


def sampling(width: int, features: int):
    """How many samples, and how much time, a Monte Carlo gradient needs to come as close as float64 rounding of the exact one allows.

    The error of `samples` draws falls as samples^(-1/2); it is measured at one size and the time extrapolated to a relative error of 1e-6.
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
    needed = samples * (error / 1e-6) ** 2
    size = {"width": width, "features": features}
    return [
        {"program": "exact population gradient", "seconds": seconds, **size},
        {"program": "sampled, at relative error 1e-6", "seconds": spent * needed / samples, "samples": needed, "error_at_20000": error, **size},
    ]  # fmt: skip


def reduced():
    """One radial flow of ren2023 in its reduced coordinates, against a finite network of width 1000 in dimension 20 over the same time."""
    began = time.perf_counter()
    law = wf.limits.radial.BesselLaw(20)
    wf.limits.radial.reduced_flow(law)
    return [{"program": "reduced radial flow", "seconds": time.perf_counter() - began}]


def main():
    rows = []
    with jax.enable_x64(True):
        for width, features in ((200, 10), (1000, 30)):
            rows += sampling(width, features)
            print(rows[-2:], flush=True)
        try:
            rows += reduced()
        except (TypeError, AttributeError) as fault:
            rows.append({"program": "reduced radial flow", "fault": str(fault)})
    report(rows)


main()
