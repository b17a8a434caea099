r"""Embeddings $\Phi : \mathbb{R}^d \to \mathbb{R}^D$ that stand before the trained layer (chen2022,
equations 2-5, Appendix H).

A shallow network acts on $\Phi(x)$ instead of $x$; nothing inside an embedding is ever trained. Its
Gram matrix is $G_{ab} = \Phi(x_a) \cdot \Phi(x_b) / D$ (equation 12).
"""

import abc
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._core.activations import Activation, ActivationLike, activation as as_activation
from .._core.arrays import real_array
from .._core.errors import check_callable, check_count, check_list, check_takes
from .._core.normal_rows import square_root
from .._core.precision import DoubleModule, double
from .._core.randomness import named_key, normal

__all__ = [
    "AbstractEmbedding",
    "DeepRandomFeatures",
    "Function",
    "Identity",
    "Quadratic",
    "RandomFeatures",
    "virtual_inputs",
]


class AbstractEmbedding(DoubleModule):
    """A fixed map of one input to its features; `embed` maps a batch."""

    @abc.abstractmethod
    def __call__(self, x) -> Float[Array, " feature"]:
        """Features of one input."""

    @abc.abstractmethod
    def features(self, input_dimension: int) -> int:
        """Number $D$ of features of an input of dimension `input_dimension`."""

    @double
    def embed(self, inputs) -> Float[Array, "sample feature"]:
        """Features of a batch of inputs, one row each."""
        inputs = real_array("inputs", inputs, finite=False)
        if inputs.ndim != 2:
            raise ValueError(
                f"`inputs` must have shape (sample, feature), got {inputs.shape}. Embed one "
                "input by calling the embedding."
            )
        return jax.vmap(self.__call__)(inputs)

    @double
    def gram(self, inputs, other=None) -> Float[Array, "left right"]:
        r"""$G_{ab} = \Phi(x_a) \cdot \Phi(x'_b) / D$ (chen2022, equation 12); `other` defaults to
        `inputs`.
        """
        left = self.embed(inputs)
        right = left if other is None else self.embed(other)
        return left @ right.T / left.shape[1]


class Identity(AbstractEmbedding):
    r"""$\Phi(x) = x$, $D = d$: the plain shallow network (chen2022, equation 1),
    $G_0 = X X^\top / d$.
    """

    def __call__(self, x):
        return jnp.asarray(x)

    def features(self, input_dimension: int) -> int:
        return input_dimension


class Quadratic(AbstractEmbedding):
    r"""$\Phi(x) = \mathrm{vec}(x x^\top)$, $D = d^2$, row by row, both triangles:
    $\Phi(x) \cdot \Phi(x') / D = (x \cdot x' / d)^2$.
    """

    def __call__(self, x):
        x = jnp.asarray(x)
        return jnp.outer(x, x).reshape(-1)

    def features(self, input_dimension: int) -> int:
        return input_dimension**2


class RandomFeatures(AbstractEmbedding):
    r"""$\phi_j(x) = \sigma(z_j \cdot x / \sqrt d)$, the frozen first layer of a P-3L network
    (chen2022, equations 4-5).

    `weights` are the $z_j$, shape (feature, input). The paper takes the same $\sigma$ here and in
    the trained layer.

    Args:
        weights: the $z_j$.
        activation: $\sigma$.
    """

    weights: Float[Array, "feature input"]
    activation: Activation = eqx.field(static=True)

    @double
    def __init__(self, weights, activation: ActivationLike = "relu"):
        self.weights = _matrix("weights", weights)
        self.activation = as_activation(activation)

    @classmethod
    @double
    def init(
        cls, key, input_dimension: int, features: int, activation: ActivationLike = "relu"
    ) -> "RandomFeatures":
        r"""Draws $z_j \sim \mathcal{N}(0, I_d)$.

        Args:
            input_dimension: $d$.
            features: $D$, the number of $z_j$.
            activation: $\sigma$.
        """
        _check_counts(input_dimension=input_dimension, features=features)
        return cls(normal(named_key(key, "first"), (features, input_dimension)), activation)

    @double
    def __call__(self, x):
        x = _input(x, self.weights)
        return self.activation(self.weights @ x / jnp.sqrt(jnp.asarray(x.shape[0], x.dtype)))

    def features(self, input_dimension: int) -> int:
        _check_dimension(input_dimension, self.weights)
        return self.weights.shape[0]


class DeepRandomFeatures(AbstractEmbedding):
    r"""The frozen layers of a P-L network, $L \ge 3$ (chen2022, Appendix H).

    $h^1_j = z_j \cdot x / \sqrt d$, $h^{l+1}_i = D^{-1/2} \sum_j \bar W^l_{ij} \sigma(h^l_j)$ for
    $l = 1, \dots, L - 3$, and $\phi_j = \sigma(h^{L-2}_j)$. With no `inner` weights ($L = 3$) this
    is `RandomFeatures`.

    `first` is (feature, input); `inner` is a sequence of the $L - 3$ matrices $\bar W^l$, each
    (feature, feature).

    Args:
        first: the $z_j$, shape (feature, input).
        inner: the $\bar W^l$, each (feature, feature).
        activation: $\sigma$.
    """

    first: Float[Array, "feature input"]
    inner: tuple[Float[Array, "feature feature"], ...]
    activation: Activation = eqx.field(static=True)

    @double
    def __init__(self, first, inner=(), activation: ActivationLike = "relu"):
        self.first = _matrix("first", first)
        check_list("inner", inner, "matrices")
        self.inner = tuple(_matrix("inner", weights) for weights in inner)
        self.activation = as_activation(activation)
        features = self.first.shape[0]
        for weights in self.inner:
            if weights.shape != (features, features):
                raise ValueError(
                    f"`inner` must hold matrices of shape {(features, features)} to fit `first`, "
                    f"got {weights.shape}."
                )

    @classmethod
    @double
    def init(
        cls,
        key,
        input_dimension: int,
        features: int,
        layers: int = 3,
        activation: ActivationLike = "relu",
    ) -> "DeepRandomFeatures":
        r"""Draws all frozen weights from $\mathcal{N}(0, 1)$; `layers` is the paper's $L$, which
        counts the trained and output layers too.

        Args:
            input_dimension: $d$.
            features: $D$, of every frozen layer.
            layers: $L \ge 3$.
            activation: $\sigma$.
        """
        _check_counts(input_dimension=input_dimension, features=features)
        check_count("layers", layers, least=3, remedy="For two layers use `Identity`.")
        first = normal(named_key(key, "first"), (features, input_dimension))
        inner = tuple(
            normal(named_key(key, f"inner-{l}"), (features, features)) for l in range(1, layers - 2)
        )
        return cls(first, inner, activation)

    @property
    def layers(self) -> int:
        """The paper's $L$: the frozen layers, the trained layer and the output layer."""
        return len(self.inner) + 3

    @double
    def __call__(self, x):
        x = _input(x, self.first)
        values = self.activation(self.first @ x / jnp.sqrt(jnp.asarray(x.shape[0], x.dtype)))
        for weights in self.inner:
            values = self.activation(
                weights @ values / jnp.sqrt(jnp.asarray(values.shape[0], values.dtype))
            )
        return values

    def features(self, input_dimension: int) -> int:
        _check_dimension(input_dimension, self.first)
        return self.first.shape[0]


class Function(AbstractEmbedding):
    r"""Any function of one input to a vector of features, written with `jax.numpy`.

    Args:
        function: $\phi$, from shape (input,) to shape (feature,).
    """

    function: Callable = eqx.field(static=True)

    def __check_init__(self):
        check_callable("function", self.function, "callable on one input")
        check_takes("function", self.function, ("x",))

    @double
    def __call__(self, x):
        return _vector(self.function(jnp.asarray(x)))

    @double
    def features(self, input_dimension: int) -> int:
        one = jax.ShapeDtypeStruct((input_dimension,), jnp.result_type(float))
        try:
            return jax.eval_shape(lambda x: _vector(self.function(x)), one).shape[0]
        except (IndexError, TypeError, AttributeError) as error:
            raise ValueError(
                f"`function` must map one input of shape ({input_dimension},) to a vector, but "
                "it raises "
                f"{type(error).__name__}: {error}"
            ) from error


@double
def virtual_inputs(gram) -> Float[Array, "point point"]:
    r"""Inputs $\sqrt q\, G^{1/2}$, one row a point, $q$ the number of points: their Gram matrix
    under `Identity` is $G$ itself.

    A `Shallow` network with $W_{ij} \sim \mathcal{N}(0, 1)$ on them starts from pre-activations
    whose rows are exactly $\mathcal{N}(0, G)$ and then trains exactly like any network of Gram
    matrix $G$: an embedding of infinitely many features ($G$ = `limits.hidden_gram`), or one too
    large to store. Give training and test points together and split the rows.

    Args:
        gram: $G$, symmetric and positive semi-definite, shape (point, point).
    """
    root = square_root(gram)
    # (sqrt q G^1/2)(sqrt q G^1/2)^T / q = G: the Gram matrix divides by the number q of columns
    return jnp.sqrt(jnp.asarray(root.shape[0], root.dtype)) * root


def _vector(value):
    value = jnp.asarray(value)
    if value.ndim != 1:
        raise ValueError(
            f"`function` must return a vector of features, got shape {value.shape}. Flatten it "
            "with `.reshape(-1)`."
        )
    return value


def _matrix(name, value):
    value = real_array(name, value, "(feature, input)")
    if not jnp.issubdtype(value.dtype, jnp.floating):
        value = value.astype(jnp.result_type(float))
    return value


def _input(x, weights):
    x = jnp.asarray(x)
    if x.shape != (weights.shape[1],):
        raise ValueError(
            f"`x` must be one input of {weights.shape[1]} coordinates, got shape {x.shape}. Use "
            "`embed` for a batch."
        )
    return x


def _check_dimension(input_dimension, weights):
    if input_dimension != weights.shape[1]:
        raise ValueError(
            f"`input_dimension` must be {weights.shape[1]}, as the drawn weights have, got "
            f"{input_dimension}."
        )


def _check_counts(**counts):
    for name, count in counts.items():
        check_count(name, count)
