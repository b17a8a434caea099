r"""Where the random numbers of `SmoothedSGD` come from: drawn from a key, or replayed from arrays.

The order of draws in iteration $t$ is: index, $W^\rho$, $V^\rho$, $\xi_w$, $\xi_v$, signs $s$, next
shrink time $t'$. Each is drawn from a key of its own name folded with $t$, so leaving one out
changes none of the others.
"""

import abc

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ..._core.arrays import real_array
from ..._core.precision import DoubleModule, double
from ..._core.randomness import named_key
from ..._core.types import Key


class AbstractNoise(DoubleModule):
    """A source of the randomness of Algorithm 2; `step` counts iterations from 0."""

    @abc.abstractmethod
    def index(
        self, key: Key, step: Int[Array, ""], samples: int, batch: int
    ) -> Int[Array, " batch"]:
        """The samples of this iteration, uniform with replacement."""

    @abc.abstractmethod
    def matrix(
        self, name: str, key: Key, step: Int[Array, ""], like: Array, std: float | int
    ) -> Array:
        r"""Noise with the shape of `like` and deviation `std`, called "first smoothing" ($W^\rho$),
        "second smoothing" ($V^\rho$), "first noise" ($\xi_w$) or "second noise" ($\xi_v$).
        """

    @abc.abstractmethod
    def signs(self, key: Key, step: Int[Array, ""], bias: Array) -> Array:
        r"""$s \in \{\pm1\}^{m_1}$, in the shape of the first layer's `bias`."""

    @abc.abstractmethod
    def next_shrink(
        self, key: Key, step: Int[Array, ""], shrinks: Int[Array, ""], low: Array, high: Array
    ) -> Int[Array, ""]:
        r"""$t'$ uniform on {low, ..., high}; `shrinks` counts the draws made before."""


class DrawnNoise(AbstractNoise):
    """Random numbers from the run's key."""

    def index(self, key, step, samples, batch):
        return jax.random.randint(
            jax.random.fold_in(named_key(key, "index"), step), (batch,), 0, samples
        )

    def matrix(self, name, key, step, like, std):
        if std == 0:
            return jnp.zeros_like(like)
        return std * jax.random.normal(
            jax.random.fold_in(named_key(key, name), step), like.shape, like.dtype
        )

    def signs(self, key, step, bias):
        return jax.random.rademacher(
            jax.random.fold_in(named_key(key, "signs"), step), bias.shape, bias.dtype
        )

    def next_shrink(self, key, step, shrinks, low, high):
        return jax.random.randint(
            jax.random.fold_in(named_key(key, "shrink"), step), (), low, high + 1
        )


def _whole(name: str, values):
    whole = values.astype(int)
    if not bool(jnp.all(whole == values)):
        raise ValueError(f"`{name}` must hold whole numbers, got {values}.")
    return whole


class ReplayedNoise(AbstractNoise):
    r"""Given random numbers, one row an iteration; what is left out is zero (noise), all ones
    (signs), never (shrink).

    Args:
        indices: sample indices, (step,) or (step, batch).
        first_smoothing, second_smoothing: $W^\rho$ (step, m1, d) and $V^\rho$ (step, m2, m1), with
            their deviation already in them.
        first_noise, second_noise: $\xi_w$, $\xi_v$ likewise.
        signs: $s$, (step, m1).
        shrink_times: the successive $t'$, in the order in which the algorithm draws them; after the
            last there is no further shrink.
    """

    indices: Int[Array, "step batch"]
    first_smoothing: Float[Array, "step first feature"] | None
    second_smoothing: Float[Array, "step second first"] | None
    first_noise: Float[Array, "step first feature"] | None
    second_noise: Float[Array, "step second first"] | None
    sign_rows: Float[Array, "step first"] | None
    shrink_times: Int[Array, " shrink"]

    @double
    def __init__(
        self,
        indices,
        *,
        first_smoothing=None,
        second_smoothing=None,
        first_noise=None,
        second_noise=None,
        signs=None,
        shrink_times=(),
    ):
        indices = _whole("indices", real_array("indices", indices, "(step,)", "(step, batch)"))
        self.indices = indices[:, None] if indices.ndim == 1 else indices
        draws = dict(
            first_smoothing=first_smoothing,
            second_smoothing=second_smoothing,
            first_noise=first_noise,
            second_noise=second_noise,
            signs=signs,
        )
        arrays = {
            name: None if value is None else real_array(name, value).astype(float)
            for name, value in draws.items()
        }
        for name, value in arrays.items():
            if value is not None and len(value) != len(self.indices):
                raise ValueError(
                    f"`{name}` must have one row per iteration ({len(self.indices)}), got "
                    f"{len(value)}."
                )
        self.first_smoothing, self.second_smoothing = (
            arrays["first_smoothing"],
            arrays["second_smoothing"],
        )
        self.first_noise, self.second_noise = arrays["first_noise"], arrays["second_noise"]
        self.sign_rows = arrays["signs"]
        never = jnp.iinfo(jnp.int32).max
        times = real_array("shrink_times", shrink_times, "(shrink,)", empty=True)
        self.shrink_times = jnp.append(_whole("shrink_times", times), never)

    def index(self, key, step, samples, batch):
        if self.indices.shape[1] != batch:
            raise ValueError(
                f"`indices` must have {batch} columns, one per sample of the batch, got "
                f"{self.indices.shape[1]}."
            )
        return self.indices[step]

    def matrix(self, name, key, step, like, std):
        rows = getattr(self, name.replace(" ", "_"))
        if rows is None:
            return jnp.zeros_like(like)
        if rows.shape[1:] != like.shape:
            raise ValueError(
                f"`{name.replace(' ', '_')}` must have rows of shape {like.shape}, got "
                f"{rows.shape[1:]}."
            )
        return rows[step].astype(like.dtype)

    def signs(self, key, step, bias):
        if self.sign_rows is None:
            return jnp.ones_like(bias)
        if self.sign_rows.shape[1:] != bias.shape:
            raise ValueError(
                f"`signs` must have rows of shape {bias.shape}, got {self.sign_rows.shape[1:]}."
            )
        return self.sign_rows[step].astype(bias.dtype)

    def next_shrink(self, key, step, shrinks, low, high):
        return self.shrink_times[jnp.minimum(shrinks, self.shrink_times.size - 1)].astype(low.dtype)
