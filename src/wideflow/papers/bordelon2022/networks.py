r"""Finite networks of the field theory: `rescaled(Deep(..., "mean-field"), richness=gamma_0)` under
descent.

The mean-field parametrisation has the factors $D^{-1/2}$, $N^{-1/2}$ and $1/N$ before the input,
hidden and output weights and multiplies every rate by $N$; the richness divides outputs by
$\gamma_0$ and multiplies rates by $\gamma_0^2$. That is $f = w\cdot\phi(h^L)/(\gamma_0N)$ at rate
$\eta\gamma_0^2N$.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._core.architecture import Activate, mlp
from ..._core.precision import double
from ..._core.randomness import named_key
from ...data.dataset import Dataset
from ...dynamics.descent import GradientDescent
from ...models.deep import Deep
from ...models.rescaled import Rescaled, rescaled
from ...training.session import Session
from ...training.train import train


def outputs(snapshot):
    """On the training points."""
    return snapshot.objective.outputs(snapshot.model)


@eqx.filter_jit
def last_kernels(model: Rescaled, inputs) -> Float[Array, "kind layer point other"]:
    r"""$\Phi^l = \phi(h^l)\cdot\phi(h^l)/N$ and $G^l = g^l\cdot g^l/N$ with
    $g^l = \gamma_0N\,\partial f/\partial h^l$, for every hidden layer $l$.

    A shift of the preactivations is differentiated, so that no formula of backward passes is
    written twice.
    """
    net = model.model
    assert isinstance(net, Deep)
    between = net.architecture.layers[1]
    assert isinstance(between, Activate)
    phi = between.activation
    features = net.embed(inputs)
    hidden = list(net.hidden(features).values())
    width = hidden[0].shape[1]

    def shifted(shifts):
        weigh = lambda number, layer, x: (
            net.weigh(number, layer, x) + (shifts[number] if number < len(shifts) else 0)
        )
        return net.respond_through(
            features, weigh
        ).sum()  # a point's output knows its own shift only

    signals = jax.grad(shifted)([jnp.zeros_like(h) for h in hidden])
    gram = lambda rows: rows @ rows.T / width
    return jnp.stack(
        [
            jnp.stack([gram(phi(h)) for h in hidden]),
            jnp.stack([gram(width * g) for g in signals]),
        ]
    )


@double
def trained_networks(
    key,
    inputs,
    targets,
    *,
    activation,
    depth,
    width,
    rate,
    steps,
    richness,
    seeds,
    together=None,
    session=None,
):
    """Losses (seed, step), outputs (seed, step, point), and `last_kernels` at the end (seed, kind,
    layer, point, point).

    Args:
        together: networks in one program; all of them without it.
    """
    data = Dataset(inputs, targets)
    architecture = mlp(depth, width, activation)
    start = lambda seed: rescaled(
        Deep.init(
            named_key(key, "network", seed), architecture, data.inputs.shape[1], "mean-field"
        ),
        richness=richness,
    )
    session = Session() if session is None else session
    tables, kernels = [], []
    for first in range(0, seeds, together or seeds):
        members = range(first, min(first + (together or seeds), seeds))
        run = train(
            [start(seed) for seed in members],
            data,
            GradientDescent(rate),
            steps=steps,
            every=1,
            record=[outputs],
            session=session.within(first, seeds, f"network {first}", weight=len(members)),
        )
        tables.append(run.table.transpose("seed", "step", ...))
        kernels += [np.asarray(last_kernels(model, data.inputs)) for model in run.model]
    stacked = lambda name: np.concatenate([table[name].values for table in tables])
    return stacked("loss"), stacked("outputs"), np.stack(kernels)
