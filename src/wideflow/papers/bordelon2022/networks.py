r"""Finite networks of the field theory: `rescaled(Deep(..., "mean-field"), richness=gamma_0)` under descent.

The mean-field parametrisation has the factors $D^{-1/2}$, $N^{-1/2}$ and $1/N$ before the input, hidden and output weights and multiplies every rate by $N$; the
richness divides outputs by $\gamma_0$ and multiplies rates by $\gamma_0^2$. That is $f = w\cdot\phi(h^L)/(\gamma_0N)$ at rate $\eta\gamma_0^2N$.
"""

import jax.numpy as jnp
import numpy as np

from ..._core.activations import activation as as_activation
from ..._core.architecture import mlp
from ..._core.precision import double
from ..._core.randomness import named_key
from ...data.dataset import Dataset
from ...dynamics.descent import GradientDescent
from ...models.deep import Deep
from ...models.rescaled import rescaled
from ...training.session import Session
from ...training.train import train


def outputs(snapshot):
    """On the training points."""
    return snapshot.objective.outputs(snapshot.model)


@double
def trained_networks(
    key, inputs, targets, *, activation, depth, width, rate, steps, richness, seeds, session=None
):
    """Losses (seed, step), outputs (seed, step, point), and the features' Gram matrices at the end (seed, layer, point, point)."""
    data = Dataset(inputs, targets)
    architecture = mlp(depth, width, activation)
    start = lambda seed: Deep.init(
        named_key(key, "network", seed), architecture, data.inputs.shape[1], "mean-field"
    )
    run = train(
        [rescaled(start(seed), richness=richness) for seed in range(seeds)],
        data,
        GradientDescent(rate),
        steps=steps,
        every=1,
        record=[outputs],
        session=Session() if session is None else session,
    )
    phi = as_activation(activation)

    def grams(model):
        hidden = model.model.preactivations(inputs).values()
        return np.stack([np.asarray(phi(h) @ phi(h).T) / width for h in hidden])

    table = run.table.transpose("seed", "step", ...)
    return (
        jnp.asarray(table["loss"].values),
        jnp.asarray(table["outputs"].values),
        jnp.stack([grams(model) for model in run.model]),
    )
