"""Transfer: an external network trained on the most important hidden features (caron2023, section
6.2).
"""

import itertools
import math
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float

from ...._core.precision import double
from ...._core.randomness import named_key
from ....data.dataset import Dataset
from ....dynamics.descent import GradientDescent
from ....dynamics.losses import MeanSquares
from ....models.base import AbstractModel, pullback_by_autodiff
from ....models.pruning import features
from ....observables.risks import Accuracy, Risk, TestRisk
from ....training.train import train

LAYERS = {"released": 2, "paper": 1}
"""Hidden layers of the external network: the text has one, the released code two."""


class Perceptron(AbstractModel):
    r"""A plain ReLU network with biases, all layers trained; weights and biases start uniform on
    $\pm1/\sqrt{\text{fan in}}$.

    All parameters lie in one vector, layer after layer, each layer's weights (in, out) before its
    biases.
    """

    trained: ClassVar[tuple[str, ...]] = ("theta",)

    theta: Float[Array, " parameter"]
    sizes: tuple[int, ...] = eqx.field(static=True)

    @classmethod
    @double
    def init(cls, key, sizes: tuple[int, ...], used: int) -> "Perceptron":
        """`sizes` counts the units from input to output; a last 0 means one output without an axis.

        Only the first `used` inputs are ever non-zero: the first layer starts with their number as
        its fan-in.
        """
        parts = []
        for layer, (fan_in, fan_out) in enumerate(itertools.pairwise(sizes)):
            reach, count = 1 / math.sqrt(fan_in if layer else used), (fan_in + 1) * max(fan_out, 1)
            parts.append(
                jax.random.uniform(named_key(key, layer), (count,), minval=-reach, maxval=reach)
            )
        return cls(jnp.concatenate(parts), sizes)

    def embed(self, inputs):
        return jnp.asarray(inputs).astype(self.theta.dtype)

    def respond(self, features):
        position, value = 0, features
        for layer, (fan_in, fan_out) in enumerate(itertools.pairwise(self.sizes)):
            out = max(fan_out, 1)
            weights = self.theta[position : position + fan_in * out].reshape(fan_in, out)
            biases = self.theta[position + fan_in * out : position + (fan_in + 1) * out]
            position += (fan_in + 1) * out
            value = (jax.nn.relu(value) if layer else value) @ weights + biases
        return value[:, 0] if self.sizes[-1] == 0 else value

    def rate_factors(self):
        return {"theta": 1.0}

    def pullback(self, features):
        return pullback_by_autodiff(self, features)


def transfer_members(
    settings, key, nets, names, train_set: Dataset, test_set: Dataset, session
) -> xr.Dataset:
    """Risk (and accuracy) of the external network on the `top` features of every trained network.

    All numbers of features, settings and seeds run in one program: fewer features are padded with
    zeros, which neither act nor learn. The ranking of the nodes is that of the convention.
    """
    classes = 0 if train_set.targets.ndim == 1 else train_set.targets.shape[1]
    record = [Risk(), TestRisk(), *((Accuracy(),) if classes else ())]
    sizes = (max(settings.tops), *(settings.hidden,) * LAYERS[settings.convention], classes)
    members, trains, tests = [], [], []
    ranked = [
        [
            tuple(_ranked(net, dataset, sizes[0], settings) for dataset in (train_set, test_set))
            for net in row
        ]
        for row in nets
    ]
    for top in settings.tops:
        for row in ranked:
            for seed, pair in enumerate(row):
                members.append(Perceptron.init(named_key(key, "external", seed, top), sizes, top))
                for target, activations, dataset in zip(
                    (trains, tests), pair, (train_set, test_set), strict=True
                ):
                    target.append(
                        Dataset(
                            np.where(np.arange(sizes[0]) < top, activations, 0.0),
                            dataset.targets,
                            dataset.name,
                        )
                    )
    result = train(
        members,
        trains,
        GradientDescent(settings.external_rate),
        steps=settings.external_steps,
        every=settings.external_steps,
        record=record,
        loss=MeanSquares(),
        test=tests,
        precision=settings.precision,
        axis="member",
        # it asks what the features are worth, however they were trained: never a flow
        session=session.descending().within(0, 1.0, "transfer"),
    )
    end = result.table.isel(step=-1, drop=True).drop_vars("loss")
    shape = (len(settings.tops), len(names), len(nets[0]))
    return xr.Dataset(
        {
            f"transfer_{name}": (("top", "setting", "seed"), values.values.reshape(shape))
            for name, values in end.data_vars.items()
        },
        {"top": list(settings.tops), "setting": list(names), "seed": np.arange(shape[2])},
    )


def _ranked(net, dataset: Dataset, top: int, settings) -> np.ndarray:
    return np.asarray(features(net, dataset.inputs, top, convention=settings.convention))
