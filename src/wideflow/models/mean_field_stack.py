r"""Multilayer mean-field networks: two-layer blocks joined by bottlenecks of fixed dimension
(Appendix A).
"""

import math
import re
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from .._core import host
from .._core.activations import Activation, ActivationLike, activation as as_activation
from .._core.arrays import real_array
from .._core.errors import check_between, check_count, check_list, check_positive
from .._core.memory import check_fits
from .._core.precision import double
from .._core.randomness import named_key, normal
from .._core.renamed import renamed
from .._core.types import Key
from .base import AbstractModel, Pullback

__all__ = ["MeanFieldStack"]


class MeanFieldStack(AbstractModel):
    r"""$F^{(0)} = x$, $F^{(l)} = \sum_j p^{(l)}_j A_l[:, j]\, \sigma(W_l[j] \cdot F^{(l-1)})$,
    $f = F^{(L)}$ (Definition A.3).

    A *neuron* of block $l$ is the pair (column $j$ of $A_l$, row $j$ of $W_l$); its measure has
    equal weights $p_j = 1/m_l$ unless given. The bottleneck dimensions stay fixed while the $m_l$
    grow. $L$ counts blocks: two of them are what the paper calls a three-layer network (corrected:
    its example in Appendix A says $L = 3$). Every neuron moves with its mean-field gradient, the
    plain one divided by $p_j$. Trained arrays are called `outer_1`, `inner_1`, ..., `outer_L`,
    `inner_L`.

    Args:
        layers: pairs $(A_l, W_l)$ of shapes ($D_l$, $m_l$) and ($m_l$, $D_{l-1}$).
        activation: $\sigma$, one for all blocks.
        weights: None, or for each block None or the positive weights $p^{(l)}$, ($m_l$,), with
            sum 1.

    Example:
        >>> stack = MeanFieldStack([([[2.0, 4.0]], [[1.0], [-1.0]]), ([[3.0]], [[1.0]])])
        >>> float(stack([5.0])[0])  # F1 = 2 * 5 / 2, f = 3 F1
        15.0
    """

    outers: tuple[Float[Array, "out width"], ...]
    inners: tuple[Float[Array, "width in"], ...]
    masses: tuple[Float[Array, " width"] | None, ...]
    activation: Activation = eqx.field(static=True)

    @double
    def __init__(
        self, layers: Sequence, activation: ActivationLike = "relu", weights: Sequence | None = None
    ):
        blocks = _blocks(layers)
        if weights is not None:
            check_list("weights", weights, "node weights, one entry a block")
        masses: list = [None] * len(blocks) if weights is None else list(weights)
        if len(masses) != len(blocks):
            raise ValueError(
                f"`weights` must have one entry per block ({len(blocks)}), got {len(masses)}."
            )
        for l, (outer, inner) in enumerate(blocks):
            if outer.ndim != 2 or inner.ndim != 2 or outer.shape[1] != inner.shape[0]:
                raise ValueError(
                    f"`layers[{l}]` must be a pair of shapes (out, width) and (width, in), got "
                    f"{outer.shape} and {inner.shape}."
                )
            if l and inner.shape[1] != blocks[l - 1][0].shape[0]:
                raise ValueError(
                    f"`layers[{l}]` reads {inner.shape[1]} numbers, but `layers[{l - 1}]` gives "
                    f"{blocks[l - 1][0].shape[0]}."
                )
            if masses[l] is not None:
                masses[l] = _masses(l, masses[l], inner.shape[0])
        single = all(a.dtype == jnp.float32 for pair in blocks for a in pair)
        dtype = jnp.float32 if single else jnp.float64
        self.outers = tuple(outer.astype(dtype) for outer, _ in blocks)
        self.inners = tuple(inner.astype(dtype) for _, inner in blocks)
        self.masses = tuple(None if p is None else p.astype(dtype) for p in masses)
        self.activation = as_activation(activation)

    @classmethod
    @double
    @renamed(deviation="weight_std")
    def init(
        cls,
        key: int | Key,
        *,
        dimensions: Sequence[int],
        widths: Sequence[int],
        activation: ActivationLike = "relu",
        weight_std: float = 1.0,
        correlation: float = 0.5,
    ) -> "MeanFieldStack":
        r"""Independent neurons, each with normal entries; `dimensions` $(D_0, ..., D_L)$, `widths`
        $(m_1, ..., m_L)$.

        With $s$ = `weight_std` and $D = D_{l-1}$ the rows of $W_l$ are $\mathcal{N}(0, s^2/D)$, the
        entries of $A_l$ are $\mathcal{N}(0, s^2)$, and inside a neuron
        $$A_l[i, j] = s\,(\rho\, u_{ij} + \sqrt{1 - \rho^2}\, \xi_{ij}), \qquad u_{ij} = \pm \sqrt
          D\, W_l[j, i \bmod D] / s, \qquad \xi_{ij} \sim \mathcal{N}(0, 1),$$
        with $\rho$ = `correlation` and the minus sign where $i$ has gone round $D$ an odd number of
        times. By Stein's identity the limit of infinite width starts at $F^{(l)}_i(x) = \pm\rho\,
        \frac{s^2}{\sqrt D}\, E\sigma'(w\cdot F^{(l-1)})\, F^{(l-1)}_{i \bmod D}$, for ReLU
        $\frac{\rho s^2}{2\sqrt D} F^{(l-1)}_{i \bmod D}$: a function that depends on the input and
        can learn.

        `correlation=0` draws the factors $A$ apart from the weights $W$. Then every $F^{(l)}$ has
        mean 0 and vanishes like $m_l^{-1/2}$, so does every gradient below the last block, and the
        limit of infinite width is a stationary point from two blocks on: the wider the network, the
        longer it stands still. An even activation ($E\sigma' = 0$) has that limit for every
        `correlation`.

        Args:
            key: of the draws.
            dimensions, widths: as above.
            activation: $\sigma$.
            weight_std: $s$.
            correlation: $\rho \in [-1, 1]$.
        """
        check_between("correlation", correlation, -1.0, 1.0)
        check_list("dimensions", dimensions, "whole numbers")
        check_list("widths", widths, "whole numbers")
        if len(dimensions) != len(widths) + 1:
            raise ValueError(
                f"`dimensions` must have one entry more than `widths`, got {len(dimensions)} and "
                f"{len(widths)}."
            )
        for name, values in (("dimensions", dimensions), ("widths", widths)):
            for value in values:
                check_count(name, value)
        check_positive("weight_std", weight_std)
        layers = []
        for l, width in enumerate(widths):
            fan, out = dimensions[l], dimensions[l + 1]
            check_fits(widths=width, dimensions=max(fan, out))
            unit = normal(named_key(key, "hidden", l), (width, fan))
            noise = normal(named_key(key, "output", l), (out, width))
            inner = weight_std * unit / math.sqrt(fan)
            if host.on_host(unit):  # a dozen operations, each of which JAX would compile
                unit, noise = np.asarray(unit), np.asarray(noise)
            rounds, entry = np.divmod(np.arange(out), fan)
            along = np.where(rounds % 2 == 0, 1.0, -1.0)[:, None] * unit.T[entry]
            outer = correlation * along + math.sqrt(1 - correlation**2) * noise
            layers.append((weight_std * outer, inner))
        return cls(layers, activation)

    @property
    def blocks(self) -> int:
        """$L$."""
        return len(self.outers)

    @property
    def trained(self) -> tuple[str, ...]:
        return tuple(f"{part}_{l + 1}" for l in range(self.blocks) for part in ("outer", "inner"))

    def __getattr__(self, name: str):
        match = re.fullmatch(r"(outer|inner)_([1-9][0-9]*)", name)
        if match is None or int(match[2]) > len(self.outers):
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}.")
        return (self.outers if match[1] == "outer" else self.inners)[int(match[2]) - 1]

    def _measure(self, l: int):
        mass = self.masses[l]
        return 1 / self.inners[l].shape[0] if mass is None else mass

    @double
    def features(self, x) -> tuple[Float[Array, "*sample feature"], ...]:
        """$F^{(0)}, ..., F^{(L)}$ on one input (feature,) or a batch (sample, feature)."""
        d = self.inners[0].shape[1]
        layer = real_array("x", x, f"({d},)", f"(sample, {d})", finite=False)
        layer = layer.astype(self.inners[0].dtype)
        layers = [layer]
        for l in range(self.blocks):
            layer = (self._measure(l) * self.activation(layer @ self.inners[l].T)) @ self.outers[
                l
            ].T
            layers.append(layer)
        return tuple(layers)

    @double
    def neurons(self, key: Key, widths: Sequence[int]) -> tuple[Int[Array, " width"], ...]:
        """Which neurons a finite network drawn from this one consists of: `widths[l]` of block l,
        with replacement.

        `select` of them is that network; neuron i of its block l starts at neuron `rows[l][i]` of
        this one, so that the two can be compared pair by pair while both are trained
        (`limits.StackPath.coupled_distance`).
        """
        self._one_per_block("widths", widths)
        for width in widths:
            check_count("widths", width)
        draw = lambda l, width: jax.random.choice(
            named_key(key, "neurons", l), self.inners[l].shape[0], (width,), p=self.masses[l]
        )
        return tuple(draw(l, width) for l, width in enumerate(widths))

    @double
    def select(self, rows: Sequence) -> "MeanFieldStack":
        """The network of equal weights that consists of the neurons `rows[l]` of each block l."""
        self._one_per_block("rows", rows)
        layers = []
        for l, neurons in enumerate(rows):
            here = self.inners[l].shape[0]
            neurons = real_array(f"rows[{l}]", neurons)
            if (
                neurons.ndim != 1
                or not neurons.size
                or not jnp.issubdtype(neurons.dtype, jnp.integer)
            ):
                raise ValueError(f"`rows[{l}]` must be a vector of neuron numbers, got {rows[l]}.")
            if not bool(jnp.all((neurons >= 0) & (neurons < here))):
                raise ValueError(f"`rows[{l}]` must lie in [0, {here}), got {rows[l]}.")
            layers.append((self.outers[l][:, neurons], self.inners[l][neurons]))
        return MeanFieldStack(layers, self.activation)

    @double
    def resample(self, key: Key, widths: Sequence[int]) -> "MeanFieldStack":
        """A finite network drawn from this one read as a measure:
        `select(neurons(key, widths))`.
        """
        return self.select(self.neurons(key, widths))

    def _one_per_block(self, name: str, values: Sequence) -> None:
        check_list(name, values, "entries, one a block")
        if len(values) != self.blocks:
            raise ValueError(
                f"`{name}` must have one entry per block ({self.blocks}), got {len(values)}."
            )

    @double
    def embed(self, inputs) -> Float[Array, "sample embedded"]:
        inputs = real_array("inputs", inputs, "(sample, feature)", finite=False)
        if inputs.shape[1] != self.inners[0].shape[1]:
            raise ValueError(
                f"`inputs` have {inputs.shape[1]} features, but the first block expects "
                f"{self.inners[0].shape[1]}."
            )
        return inputs.astype(self.inners[0].dtype)

    def respond(self, features) -> Float[Array, "sample output"]:
        return self.features(features)[-1]

    def rate_factors(self) -> dict:
        r"""$1/p_j$: the width for equal weights, else one factor a neuron."""
        factors = {}
        for l in range(self.blocks):
            mass = self.masses[l]
            factors[f"outer_{l + 1}"] = float(self.inners[l].shape[0]) if mass is None else 1 / mass
            factors[f"inner_{l + 1}"] = (
                float(self.inners[l].shape[0]) if mass is None else 1 / mass[:, None]
            )
        return factors

    def pullback(self, features) -> tuple[Float[Array, "sample output"], Pullback]:
        r"""Back-propagation of $B^{(L)} = c$ through the blocks (corrected form of equation (12)).

        $B^{(l-1)} = \sum_j p_j \langle B^{(l)}, A_l[:, j] \rangle \sigma'(W_l[j] \cdot F^{(l-1)})
        W_l[j]$; the gradient in $A_l[:, j]$ is $p_j \sum B^{(l)} \sigma(W_l[j] \cdot F^{(l-1)})$
        and in $W_l[j]$ it is
        $p_j \sum \langle B^{(l)}, A_l[:, j] \rangle \sigma'(W_l[j] \cdot F^{(l-1)}) F^{(l-1)}$.
        """
        layers, inside = [features], []
        for l in range(self.blocks):
            inside.append(layers[-1] @ self.inners[l].T)
            layers.append((self._measure(l) * self.activation.value(inside[-1])) @ self.outers[l].T)

        def pull(cotangent):
            gradient, back = {}, cotangent
            for l in reversed(range(self.blocks)):
                measure = self._measure(l)
                gradient[f"outer_{l + 1}"] = back.T @ (measure * self.activation.value(inside[l]))
                neuron = measure * (back @ self.outers[l]) * self.activation.slope(inside[l])
                gradient[f"inner_{l + 1}"] = neuron.T @ layers[l]
                back = neuron @ self.inners[l]
            return {name: gradient[name] for name in self.trained}

        return layers[-1], pull


def _blocks(layers) -> list:
    pairs = isinstance(layers, Sequence) and all(
        isinstance(pair, tuple | list) and len(pair) == 2 for pair in layers
    )
    if not pairs or len(layers) == 0:
        raise ValueError(f"`layers` must be a list of pairs (outer, inner), got {layers!r}.")
    return [
        tuple(real_array(f"layers[{l}]", part, "(out, width)") for part in pair)
        for l, pair in enumerate(layers)
    ]


def _masses(l: int, value, width: int):
    mass = real_array(f"weights[{l}]", value).astype(float)
    if mass.shape != (width,) or not bool(jnp.all(mass > 0)) or abs(float(mass.sum()) - 1) > 1e-9:
        raise ValueError(
            f"`weights[{l}]` must be {width} positive numbers with sum 1, got {value}."
        )
    return mass
