"""What experiments on online learning share: the error along simulations of one start."""

import numpy as np

from ..observables.overlaps import GeneralisationError
from ..training.train import train


def simulated_errors(net, population, dynamics, steps, keys, session) -> np.ndarray:
    """The generalisation error at `steps`, (seed, step): `net` trained once for every key, which
    draws its samples.

    Args:
        net: the start, a `Shallow`.
        population: where samples come from, a `MultiIndex`.
        dynamics: an `OnlineSGD`.
        steps: whole numbers, rising from 0.
        keys: one a seed.
        session: that of the experiment.
    """
    run = train(
        [net] * len(keys),
        population,
        dynamics,
        steps=int(steps[-1]),
        every=[int(step) for step in steps],
        record=[GeneralisationError()],
        key=keys,
        session=session,
    )
    return run.table["generalisation_error"].transpose("seed", "step").values
