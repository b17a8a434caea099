r"""The shallow network: embedding x node scaling x activation, one or many outputs; its products in
the form that each platform does fastest.

On a GPU a step is bound by reading and writing the n x m array of pre-activations: a product with
one column is done as a sum, which fuses with the activation, and the output weights leave the
second product. Slopes that are only 0 or 1 are exact in bfloat16, so float32 products with them run
on the matrix units in three exact pieces of 8 bits, as accurate as plain float32 and faster.

On a CPU an n x m array that does not fit the cache is worked off block by block: going through the
memory costs more there than computing the pre-activations of a block a second time, so a gradient
keeps nothing of that size.
"""

import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._core import host
from .._core.activations import Activation, ActivationLike, activation as as_activation
from .._core.arrays import real_array
from .._core.errors import as_key, check_count, check_flag, check_kind, check_positive
from .._core.memory import check_fits
from .._core.node_products import spread
from .._core.precision import double, jax_flag
from .._core.randomness import named_key, normal, signs
from .._core.renamed import renamed
from .._core.scalings import ABC, NTK, AbstractScaling
from .._core.types import Key
from .base import AbstractModel, Pullback
from .embeddings import AbstractEmbedding, Identity

__all__ = ["Shallow"]

PIECES = 3  # of 8 bits: all 24 of a float32
FULL = ("highest", "float32", "F32_F32_F32")
WORTH = 1.7  # blocks that a whole must be, at least, to be cut
# bytes of pre-activations in a block of a gradient (measured: descent beyond the cache became 1.6
# to 5 times as fast)
BLOCK = 7_000_000


class Shallow(AbstractModel):
    r"""$f_k(x) = \sum_j s_j A_{kj}\, \sigma(h_j(x))$, $h_j(x) = p\,\langle w_j, \phi(x)\rangle$.

    $s_j$ and $p$ come from `scaling` (see `wideflow.scalings`), $\phi$ from `embedding`. Only the
    hidden weights $w_j$ are trained; $A$ is frozen (caron2023, eq. 2; chen2022, eq. 2-3).

    Weights live transposed, (feature, width), the fast layout; `hidden` shows them as (width,
    feature).

    Args:
        hidden: $w$, shape (width, D) with $D$ the number of embedded features.
        output: $A$, shape (width,) for one output or (outputs, width).
        scaling: where $s_j$ and $p$ come from; `NTK()` if None.
        activation: $\sigma$: a name, an `Activation` or an elementwise JAX function.
        embedding: $\phi$; `Identity()` if None.

    >>> net = Shallow([[2.0, 0.0], [0.0, 1.0]], [1.0, -1.0])
    >>> net([1.0, 1.0])  # (2 - 1) / sqrt(2) in each factor: NTK scaling, D = 2
    Array(0.5, dtype=float64)
    """

    trained: ClassVar[tuple[str, ...]] = ("weights",)
    neuron_axes: ClassVar[Mapping[str, int]] = MappingProxyType(
        {"weights": 1, "output": -1, "scales": 0}
    )
    labels: ClassVar[tuple[str, ...]] = ("label",)

    weights: Float[Array, "feature width"]
    output: Float[Array, "*output width"]
    scales: Float[Array, " width"]
    embedding: AbstractEmbedding
    activation: Activation = eqx.field(static=True)
    label: AbstractScaling | None = eqx.field(static=True)
    hidden_scale: float = eqx.field(static=True)
    rate_factor: float = eqx.field(static=True)

    @double
    def __init__(
        self, hidden, output, scaling=None, activation: ActivationLike = "relu", embedding=None
    ):
        hidden = real_array("hidden", hidden, "(width, feature)")
        output = real_array("output", output)
        width, features = hidden.shape
        if output.ndim not in (1, 2) or output.shape[-1] != width:
            raise ValueError(
                f"`output` must have shape ({width},) or (outputs, {width}) to fit `hidden` of "
                "shape "
                f"{hidden.shape}, got {output.shape}."
            )
        scaling = NTK() if scaling is None else scaling
        if not isinstance(scaling, AbstractScaling):
            raise ValueError(
                "`scaling` must be one of `wideflow.scalings`, such as `wf.scalings.NTK()`, got "
                f"{scaling!r}. For explicit node weights use `scalings.Weights(...)`."
            )
        embedding = Identity() if embedding is None else embedding
        _check_embedding(embedding)
        # whole numbers and half precision become 64 bit; float32 is taken as meant
        dtype = jnp.result_type(hidden, float) if hidden.dtype != jnp.float32 else jnp.float32
        self.weights = host.transpose(hidden).astype(dtype)
        self.output = output.astype(dtype)
        self.scales = scaling.node_scales(width).astype(dtype)
        self.embedding = embedding
        self.activation = as_activation(activation)
        self.label = scaling
        self.hidden_scale = float(scaling.hidden_scale(width, features))
        self.rate_factor = float(scaling.rate_factor(width, features))

    @classmethod
    @double
    @renamed(deviation="weight_std", magnitude="output_scale")
    def init(
        cls,
        key: int | Key,
        *,
        features: int,
        width: int,
        scaling: AbstractScaling | None = None,
        activation: ActivationLike = "relu",
        outputs: int | None = None,
        embedding: AbstractEmbedding | None = None,
        weight_std: float = 1.0,
        output_scale: float = 1.0,
        symmetric: bool = False,
    ) -> "Shallow":
        r"""A random start: $w \sim N(0, \text{weight\_std}^2)$, $A = \pm$ `output_scale` with equal
        chance.

        Args:
            features: dimension of the inputs (before the embedding).
            outputs: None for one output without an axis, else the number of outputs.
            weight_std: standard deviation of the hidden weights (1 in both papers, $\sqrt2$ in
                caron2023's code).
            output_scale: absolute value of every output weight.
            symmetric: rows $j$ and $j + m/2$ are equal with opposite output weights, so that the
                network starts at exactly zero; needs an even width and equal node scales in pairs.
            width: $m$, the number of neurons.
            scaling: where $s_j$ and $p$ come from; `NTK()` if None.
            activation: $\sigma$: a name, an `Activation` or an elementwise JAX function.
            embedding: $\phi$; `Identity()` if None.
        """
        key = as_key(key)
        check_count("features", features)
        check_count("width", width)
        check_fits(
            "For very wide networks use their limit, `wideflow.limits`.",
            width=width,
            features=features,
        )
        check_flag("symmetric", symmetric)
        check_positive("weight_std", weight_std)
        check_positive("output_scale", output_scale)
        scaling = NTK() if scaling is None else scaling
        if isinstance(scaling, ABC):
            weight_std = weight_std * scaling.initial_deviation(width)
            output_scale = output_scale * scaling.output_deviation(width)
        embedding = Identity() if embedding is None else embedding
        _check_embedding(embedding)
        if outputs is not None:
            check_count("outputs", outputs)
        draw = width
        if symmetric:
            if width % 2:
                raise ValueError(f"`width` must be even for a symmetric start, got {width}.")
            if len(set(scaling.node_scales(width).tolist())) > 1:
                raise ValueError(
                    f"a symmetric start needs equal node scales, but {scaling} has different ones. "
                    "Use `scalings.NTK()` or `scalings.MeanField()`."
                )
            draw = width // 2
        embedded = embedding.features(features)
        hidden = host.scale(weight_std, normal(named_key(key, "hidden"), (draw, embedded)))
        shape = (draw,) if outputs is None else (outputs, draw)
        output = host.scale(output_scale, signs(named_key(key, "output"), shape))
        if symmetric:
            hidden = jnp.concatenate([hidden, hidden])
            output = jnp.concatenate([output, -output], axis=-1)
        return cls(hidden, output, scaling, activation, embedding)

    @property
    def hidden(self) -> Float[Array, "width feature"]:
        """The hidden weights, one row a node."""
        return self.weights.T

    @property
    def scaling(self) -> AbstractScaling:
        """The scaling that the network was built with; not known inside the programs that `train`
        compiles.
        """
        if self.label is None:
            raise ValueError(
                "`scaling` is not known inside `train`, whose compiled program serves networks "
                "of all scalings. "
                "Read `scales`, `node_weights`, `hidden_scale` or `rate_factor`, or close over "
                "the scaling itself."
            )
        return self.label

    @property
    def width(self) -> int:
        return self.weights.shape[1]

    @property
    @double
    def node_weights(self) -> Float[Array, " width"]:
        r"""$\lambda_j = s_j^2$."""
        return self.scales**2

    @double
    def embed(self, inputs) -> Float[Array, "sample embedded"]:
        if not (isinstance(inputs, jax.Array) and jnp.issubdtype(inputs.dtype, jnp.floating)):
            inputs = real_array("inputs", inputs, finite=False)
        features = inputs
        rows = inputs.ndim == 2 and jnp.issubdtype(inputs.dtype, jnp.floating)
        if not (rows and isinstance(self.embedding, Identity)):  # which has nothing to compute
            features = self.embedding.embed(inputs)
        if features.shape[1] != self.weights.shape[0]:
            raise ValueError(
                f"`inputs` have {features.shape[1]} features after the embedding, but the hidden "
                f"weights expect {self.weights.shape[0]}."
            )
        return (self.hidden_scale * features).astype(self.weights.dtype)

    @double
    def preactivations(self, inputs) -> Float[Array, "sample width"]:
        r"""$h_j(x_i)$."""
        return self.embed(inputs) @ self.weights

    def respond(self, features) -> Float[Array, " sample *output"]:
        return self.activation(features @ self.weights) @ (self.scales * self.output).T

    def rate_factors(self) -> dict[str, float]:
        return {"weights": self.rate_factor}

    def pullback(self, features) -> tuple[Float[Array, " sample *output"], Pullback]:
        r"""$J^\top c = \Phi^\top (\sigma'(Z) \odot c\,(s \odot A))$: two matrix products in all."""
        mixed, sigma = self.scales * self.output, self.activation
        count = block_count(features, self.weights, BLOCK)
        if count > 1:
            outputs, gradient = block_pullback(sigma, features, self.weights, mixed, count)
            return outputs, lambda cotangent: {"weights": gradient(cotangent)}
        z = features @ self.weights
        if mixed.ndim == 1:
            return node_sum(sigma, z, mixed), lambda cotangent: {
                "weights": node_gradient(sigma, features, z, cotangent, mixed)
            }
        return sigma.value(z) @ mixed.T, lambda cotangent: {
            "weights": features.T @ (sigma.slope(z) * spread(cotangent, mixed))
        }


def _check_embedding(embedding) -> None:
    check_kind(
        "embedding",
        embedding,
        AbstractEmbedding,
        "one of `wideflow.embeddings`, built",
        "For instance `embeddings.Quadratic()`; any function goes through `embeddings.Function`.",
    )


@double
def has_own_scales(model: Shallow) -> bool:
    """Whether the node scales are those that the model's scaling gives at its width, to single
    precision; pruning keeps the larger network's.
    """
    expected = model.scaling.node_scales(model.width)
    return np.allclose(model.scales, expected, rtol=1e-6, atol=0.0)


def node_sum(
    sigma: Activation, z: Float[Array, "sample width"], mixed: Float[Array, " width"]
) -> Float[Array, " sample"]:
    r"""$\sum_j \sigma(z_{ij}) c_j$."""
    return jax.lax.platform_dependent(
        z,
        mixed,
        cuda=lambda z, c: jnp.sum(sigma.value(z) * c, axis=1),
        default=lambda z, c: sigma.value(z) @ c,
    )


def node_gradient(
    sigma: Activation,
    features: Float[Array, "sample feature"],
    z: Float[Array, "sample width"],
    cotangent: Float[Array, " sample"],
    mixed: Float[Array, " width"],
) -> Float[Array, "feature width"]:
    r"""$\sum_i \phi_{ik} \sigma'(z_{ij}) r_i c_j$."""
    # where JAX may round float32 products to TF32 anyway, pieces would only cost time
    exact = sigma.switch and z.dtype == jnp.float32 and _full_precision()
    on_gpu, on_cpu = (
        functools.partial(form, sigma) for form in (in_pieces if exact else mixed_last, mixed_first)
    )
    return jax.lax.platform_dependent(features, z, cotangent, mixed, cuda=on_gpu, default=on_cpu)


def _full_precision() -> bool:
    return jax_flag("jax_default_matmul_precision") in FULL


def mixed_first(sigma, features, z, cotangent, mixed):
    # r c is of rank one and fuses with the slope: one n x m array is written, then one product
    return features.T @ (sigma.slope(z) * (cotangent[:, None] * mixed))


def mixed_last(sigma, features, z, cotangent, mixed):
    # r is put on the small side (feature, sample) and c behind the product: the n x m factor is the
    # slope alone, which fuses with the activation
    return (features.T * cotangent) @ sigma.slope(z) * mixed


def in_pieces(sigma, features, z, cotangent, mixed):
    # slopes of 0 and 1 are exact in 8 bits, so every product is exact and only the float32 sums
    # round, as in a plain float32 product
    left = jnp.concatenate(pieces(features.T * cotangent))
    product = jax.lax.dot(
        left, sigma.slope(z).astype(jnp.bfloat16), preferred_element_type=jnp.float32
    )
    return sum(jnp.split(product, PIECES)) * mixed


def pieces(values: Float[Array, "..."]) -> list[Array]:
    """bfloat16 arrays whose sum is `values`, in float32, exactly."""
    parts, rest = [], values
    for _ in range(PIECES):
        # the leading 8 bits of what is left; taking them away is exact, so three pieces hold 24
        # bits
        piece = jax.lax.reduce_precision(rest, exponent_bits=8, mantissa_bits=7)
        parts.append(piece.astype(jnp.bfloat16))
        rest = rest - piece
    return parts


def block_count(features: Float[Array, "sample feature"], weights, block: int) -> int:
    """How many blocks with `block` bytes of pre-activations are faster than all at once; 1 where
    they are few, with an accelerator, and where neurons may be spread over devices.
    """
    # a static count: shapes decide, so the choice is made while tracing
    size = features.shape[0] * weights.shape[-1] * weights.dtype.itemsize
    alone = jax.default_backend() == "cpu" and jax.device_count() == 1
    return -(-size // block) if alone and size > WORTH * block else 1


def block_pullback(
    sigma: Activation,
    features: Float[Array, "sample feature"],
    weights: Float[Array, "feature width"],
    mixed: Float[Array, "*output width"],
    count: int,
) -> tuple[Array, Callable[[Array], Array]]:
    r"""$\sigma(\Phi W) c^\top$ and the map of a cotangent to
    $\Phi^\top(\sigma'(\Phi W) \odot r c)$, in `count` blocks of neurons and a rest.
    """
    width = weights.shape[1]
    size = width // count
    whole = size * count

    def part(first, size):
        cut = jax.lax.dynamic_slice_in_dim
        return features @ cut(weights, first, size, 1), cut(mixed, first, size, -1)

    def outputs(first, size):
        z, mix = part(first, size)
        return sigma.value(z) @ mix.T

    # pre-activations are computed a second time: through the cache that is cheaper than to read
    # them back from memory
    def gradient(cotangent, first, size):
        z, mix = part(first, size)
        return features.T @ (sigma.slope(z) * spread(cotangent, mix))

    def pull(cotangent):
        def one(k, gradients):
            return _put(gradients, gradient(cotangent, k * size, size), k * size)

        gradients = jax.lax.fori_loop(0, count, one, jnp.zeros_like(weights))
        return _put(gradients, gradient(cotangent, whole, width - whole), whole)

    # fewer neurons than blocks are left over (none, as a rule): slices of a fixed size cannot take
    # them along
    rest = outputs(whole, width - whole)
    return jax.lax.fori_loop(0, count, lambda k, f: f + outputs(k * size, size), rest), pull


def _put(whole, part, first):
    return jax.lax.dynamic_update_slice_in_dim(whole, part, first, 1)
