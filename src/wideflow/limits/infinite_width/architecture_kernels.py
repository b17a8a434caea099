r"""`kernels(architecture)`: the output covariance and the tangent kernel of an infinitely wide
network.

With $\Sigma^0 = x \cdot x'/d$ the recursion over the layers is
$$\Sigma^{l+1} = \sigma_w^2\,E[\phi(u)\phi(v)] + \sigma_b^2, \qquad
  \Theta^{l+1} = \Sigma^{l+1} + \sigma_w^2\,\Theta^l\,E[\phi'(u)\phi'(v)],\qquad (u, v) \sim N(0,
  \Sigma^l),$$
without the first term where a layer is frozen (jacot2018; lee2018; `layer_maps.py` for every
layer).
"""

import dataclasses
import functools
from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from ..._core.architecture import AbstractLayer, Chain
from ..._core.arrays import check_finite, real_values
from ..._core.dual_activations import dual
from ..._core.errors import check_choice, check_progress
from ..._core.memory import budget
from ..._core.precision import Precision, double
from .blocks import assemble, block_rows
from .covariances import entries, samples_first
from .layer_maps import (
    Rates,
    activations_of,
    pairs_before,
    run_layers,
    start,
    weighted_layers,
)

PARAMETRISATIONS = ("ntk", "standard")


class KernelPair(NamedTuple):
    r"""Both kernels at the same inputs.

    Attributes:
        nngp: $K$.
        ntk: $\Theta$.
    """

    nngp: Float[Array, "left right *position"]
    ntk: Float[Array, "left right *position"]


class LayerKernel(NamedTuple):
    """Both kernels after one layer; `ntk` is that of this layer's units as outputs.

    Attributes:
        layer: its description.
        nngp: the covariance of its units.
        ntk: their tangent kernel.
    """

    layer: AbstractLayer
    nngp: Float[Array, "left right *position"]
    ntk: Float[Array, "left right *position"]


@dataclass(frozen=True)
class Kernels:
    """The kernels of one architecture; build it with `kernels`.

    Every method takes inputs of shape (sample, *shape of one input); the second set defaults to the
    first, and then half of the symmetric matrix is computed. An architecture that ends with
    positions gives (left, right, *position).

    Attributes:
        architecture: the layers.
        parametrisation: "ntk" or "standard".
        rates: a learning rate for each layer with weights.
        memory: the budget for blocks of samples.
        precision: "float64" or "float32".
    """

    architecture: Chain
    parametrisation: str = "ntk"
    rates: tuple[float, ...] = ()
    memory: int | str | None = None
    precision: Precision = "float64"

    @double
    def nngp(self, x, x2=None, *, progress=None) -> Float[Array, "left right *position"]:
        r"""$K(x, x')$: the covariance of an output over random networks, which are a Gaussian
        process.
        """
        return self._matrix("nngp", x, x2, progress)[0]

    @double
    def ntk(self, x, x2=None, *, progress=None) -> Float[Array, "left right *position"]:
        r"""$\Theta(x, x') = \langle\nabla_\theta f(x), \nabla_\theta f(x')\rangle$, each layer
        weighted by its rate.
        """
        return self._matrix("ntk", x, x2, progress)[0]

    @double
    def both(self, x, x2=None, *, progress=None) -> KernelPair:
        """Both kernels in one pass."""
        return KernelPair(*self._matrix("both", x, x2, progress))

    @double
    def nngp_diagonal(self, x) -> Float[Array, " sample *position"]:
        """$K(x, x)$ for each input alone, at a cost that is linear in the samples."""
        return self._diagonal("nngp", x)

    @double
    def ntk_diagonal(self, x) -> Float[Array, " sample *position"]:
        r"""$\Theta(x, x)$ for each input alone, at a cost that is linear in the samples."""
        return self._diagonal("ntk", x)

    @double
    def layers(self, x, x2=None) -> list[LayerKernel]:
        """Both kernels after each layer of the architecture, the first to the last (all held at
        once).
        """
        x, x2 = self._inputs(x, x2)
        nngps, ntks = self._call("layers", x, x if x2 is None else x2)
        return [
            LayerKernel(layer, k, t) for layer, k, t in zip(self.architecture.layers, nngps, ntks)
        ]

    @double
    def share(self, layer: int, x, x2=None) -> Float[Array, "left right *position"]:
        r"""What the `layer`-th layer with weights adds to the tangent kernel; over all layers the
        shares sum to it.

        Layers with weights are counted from 0 in the order of the description, a residual's body
        before its shortcut.
        """
        count = len(self.rates)
        whole = isinstance(layer, Integral) and not isinstance(layer, bool)
        if not (whole and -count <= layer < count):
            raise ValueError(
                f"`layer` must be a layer with weights, from 0 to {count - 1}, got {layer!r}."
            )
        # the tangent kernel is linear in the rates
        alone = tuple(rate if k == layer % count else 0.0 for k, rate in enumerate(self.rates))
        return dataclasses.replace(self, rates=alone).ntk(x, x2)

    @double
    def shares(self, x, x2=None) -> Float[Array, "layer left right *position"]:
        """The share of every layer with weights, stacked."""
        return jnp.stack([self.share(k, x, x2) for k in range(len(self.rates))])

    def _matrix(self, what: str, x, x2, progress) -> Any:
        x, x2 = self._inputs(x, x2)
        check_progress(progress)
        if isinstance(x, Tracer) or isinstance(x2, Tracer):
            return self._call(what, x, x if x2 is None else x2)
        rows = block_rows(self._entries(x.shape[1:]), x.dtype.itemsize, self.memory)
        return assemble(functools.partial(self._call, what), x, x2, rows, progress)

    def _diagonal(self, what: str, x):
        x, _ = self._inputs(x, None)
        return self._call(what, x, None)[0]

    def _call(self, what: str, x, x2) -> Any:
        rates = jnp.asarray(self.rates, x.dtype)
        # quadrature chooses its nodes by the variances it meets, which are no numbers inside a
        # program
        closed = all(dual(act).closed for act in activations_of(self.architecture))
        call = _compiled if closed else _propagate
        return call(self.architecture, self.parametrisation, what, rates, x, x2)

    def _inputs(self, x, x2):
        x = _samples("x", x, self.precision)
        self.architecture.output_shape(x.shape[1:])  # raises where a layer does not fit
        if x2 is not None:
            x2 = _samples("x2", x2, self.precision)
            if x2.shape[1:] != x.shape[1:]:
                raise ValueError(
                    f"`x2` must hold inputs of shape {x.shape[1:]} like `x`, got {x2.shape[1:]}."
                )
        return x, x2

    def _entries(self, shape: tuple[int, ...]) -> int:
        """The most numbers that a pair of samples holds in any layer."""
        layers, largest = self.architecture.layers, 1
        for k, after in enumerate(self.architecture.shapes(shape)):
            rest = layers[k:]
            pairs = bool(rest) and pairs_before(Chain(*rest), False)
            largest = max(largest, entries(after, pairs))
        return largest


def kernels(
    architecture: AbstractLayer,
    *,
    parametrisation: str = "ntk",
    rates=None,
    memory: int | str | None = None,
    precision: Precision = "float64",
) -> Kernels:
    r"""The kernels of an infinitely wide network, from its description.

    Args:
        architecture: a layer or chain of layers, such as `mlp(depth=3)`.
        parametrisation: 'ntk' ($h = \sigma_w n^{-1/2}Wx + \sigma_b b$ with unit normal $W$, $b$),
            or 'standard' ($h = Wx + b$ with $W \sim N(0, \sigma_w^2/n)$,
            $b \sim N(0, \sigma_b^2)$), whose tangent kernel grows with the widths given in the
            description.
        rates: a learning rate for each layer with weights, in the order of the description (a
            residual's body before its shortcut), which multiplies the layer's share of the tangent
            kernel; 1 for each if None.
        memory: bytes that a block may take (`WIDEFLOW_MEMORY` if None).
        precision: 'float64' or 'float32'.

    Returns:
        An object with `nngp`, `ntk`, `both`, `nngp_diagonal`, `ntk_diagonal`, `layers`, `share` and
            `shares`.

    >>> import wideflow as wf
    >>> k = wf.limits.kernels(wf.architecture.mlp(depth=1, activation="relu"))
    >>> float(k.nngp([[3.0, 4.0]])[0, 0])  # |x|^2 / d, halved by the ReLU
    6.25
    >>> float(k.ntk([[3.0, 4.0]])[0, 0])  # the output layer's 6.25 and the hidden layer's 12.5 / 2
    12.5
    """
    if not isinstance(architecture, AbstractLayer):
        raise ValueError(
            "`architecture` must be a layer such as `Chain(...)` or `mlp(...)`, got "
            f"{architecture!r}."
        )
    chain = Chain(architecture)
    check_choice("parametrisation", parametrisation, PARAMETRISATIONS)
    check_choice("precision", precision, ("float32", "float64"))
    count = len(weighted_layers(chain))
    budget(memory)
    if rates is None:
        rates = (1.0,) * count
    else:
        given = np.asarray(real_values("rates", rates, "(layer)"), float)
        if len(given) != count or given.min() < 0:
            raise ValueError(
                f"`rates` must be {count} non-negative numbers, one for each layer with weights, "
                f"got {rates}."
            )
        rates = tuple(given.tolist())
    return Kernels(chain, parametrisation, rates, memory, precision)


def _propagate(architecture: Chain, parametrisation: str, what: str, rates, x, x2):
    """The wanted kernels of `x` against `x2`; of each input with itself where `x2` is None."""
    matched = x2 is None
    batch = 1 if matched else 2
    trained = None if what == "nngp" else rates
    state, rest, done = start(architecture.layers, x, x2, matched=matched)
    states = []
    for k in range(done if what == "layers" else 0):
        before = Chain(*architecture.layers[: k + 1])
        states.append(start((before,), x, x2, matched=matched)[0].without_pairs())

    def shaped(state):
        state = state.without_pairs()
        zero = jnp.zeros_like(state.cross)
        arrays = (state.cross, zero if state.tangent is None else state.tangent)
        return tuple(samples_first(a, state.spatial, batch) for a in arrays)

    record = (lambda _, state: states.append(state)) if what == "layers" else None
    last = run_layers(rest, state, Rates(trained, parametrisation), False, record)
    if what == "layers":
        return tuple(zip(*(shaped(state) for state in states)))
    nngp, ntk = shaped(last)
    return {"nngp": (nngp,), "ntk": (ntk,), "both": (nngp, ntk)}[what]


_compiled = functools.partial(jax.jit, static_argnums=(0, 1, 2))(_propagate)


def _samples(name: str, values, precision: Precision):
    try:
        values = jnp.asarray(values)
        if jnp.iscomplexobj(values):
            raise TypeError("it holds complex numbers")
        values = values.astype(jnp.dtype(precision))
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"`{name}` must be an array of numbers with one row per sample: {error}."
        ) from None
    if values.ndim < 2:
        raise ValueError(
            f"`{name}` must have shape (sample, *shape of one input), got {values.shape}. Give "
            f"one input as `{name}[None]`."
        )
    if values.size == 0:
        raise ValueError(f"`{name}` must not be empty, got shape {values.shape}.")
    check_finite(name, values)
    return values


__all__ = ["KernelPair", "Kernels", "LayerKernel", "kernels"]
