"""Networks of other libraries as wideflow models: Equinox, Flax NNX, Flax Linen, or any function of
parameters and inputs.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array, Float, PyTree

from .._core.errors import check_count, check_flag
from .._core.precision import double
from .base import AbstractModel, Pullback, pullback_by_autodiff
from .deep import single_output

__all__ = ["Wrapped", "wrap"]

MIXED = 1e-3  # of an output, between an input alone and in a batch: far beyond rounding in float32


@dataclasses.dataclass(frozen=True)
class Slot:
    """Where a trained array stands in its network's tree."""

    name: str


class Wrapped(AbstractModel):
    """A network of another library; see `wrap`. Trained arrays go by their path, such as
    `layers.0.weight`.

    `network` gives the network back in the form in which it came, with its arrays as they are now.
    """

    arrays: dict[str, Array]
    tree: PyTree  # the network's own tree, with a `Slot` for every trained array
    names: tuple[str, ...] = eqx.field(static=True)  # in the tree's order; dictionaries are sorted
    library: Any = eqx.field(static=True)
    shape: tuple[int, ...] | None = eqx.field(static=True)

    @property
    def trained(self) -> tuple[str, ...]:
        return self.names

    @property
    def input_shape(self) -> tuple[int, ...] | None:
        return self.shape

    def __getattr__(self, name: str):
        if name != "arrays" and name in self.arrays:
            return self.arrays[name]
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}.")

    def filled(self) -> PyTree:
        """The tree with the trained arrays in their places."""
        fill = lambda leaf: self.arrays[leaf.name] if isinstance(leaf, Slot) else leaf
        return jax.tree.map(fill, self.tree)

    @property
    def network(self):
        """The network in its library's own form: module, module, variables, or parameters."""
        return self.library.restore(self.filled())

    @double
    def embed(self, inputs) -> Float[Array, "sample embedded"]:
        inputs = jnp.asarray(inputs)
        dtype = jnp.result_type(*self.arrays.values())
        features = inputs.reshape(len(inputs), -1).astype(dtype)
        if not any(isinstance(leaf, Tracer) for leaf in (features, *self.arrays.values())):
            self._check_rows(features)
        return features

    def _check_rows(self, features) -> None:
        """A model is a function of one input: what it gives for a row must not depend on the
        others, or the tangent kernel and every batch would be of something else.
        """
        if len(features) < 2:
            return
        together, alone = self.respond(features[:3])[0], self.respond(features[:1])[0]
        size = float(jnp.abs(together).max()) if together.size else 0.0
        if float(jnp.abs(together - alone).max(initial=0.0)) > MIXED * size:
            raise ValueError(
                "the wrapped network gives another output for an input alone than in a batch of "
                "three: it mixes the inputs of a batch. Take out what does (a mean or a norm over "
                "the batch), or, if it takes one input, wrap it with `batched=False`."
            )

    def respond(self, features) -> Float[Array, " sample *output"]:
        x = features
        if self.shape is not None:
            if features.shape[1] != math.prod(self.shape):
                raise ValueError(
                    f"`inputs` have {features.shape[1]} numbers each, but `features` "
                    f"{self.shape} needs {math.prod(self.shape)}."
                )
            x = features.reshape(len(features), *self.shape)
        outputs = self.library.outputs(self.filled(), x)
        if outputs.ndim == 0 or outputs.shape[0] != features.shape[0]:
            raise ValueError(
                f"the wrapped network gives shape {outputs.shape} for {features.shape[0]} "
                "inputs, without a leading sample axis. "
                "If it takes one input, wrap it with `batched=False`."
            )
        return single_output(outputs)

    def rate_factors(self) -> dict[str, float]:
        return dict.fromkeys(self.names, 1.0)

    def pullback(self, features) -> tuple[Float[Array, " sample *output"], Pullback]:
        outputs, back = pullback_by_autodiff(self, features)
        if outputs.dtype != features.dtype:
            raise ValueError(
                f"the wrapped network answers {features.dtype} with {outputs.dtype}: its arrays "
                "decide the precision, so it must not cast. Take the cast out, and give "
                "`precision` to `train`."
            )
        return outputs, back


@double
def wrap(
    network, params=None, *, features: int | Sequence[int] | None = None, batched: bool = True
) -> Wrapped:
    """A network of another library as a model that trains, and is looked at, like any other.

    Args:
        network: an Equinox module (called on one input), a Flax NNX module, a Flax Linen module
            with its variables in `params`, or a function `apply(params, inputs)` with its
            parameters in `params`; a pair `(apply, params)` may come as one argument.
        params: variables of a Linen module, or parameters of a function. All floating-point arrays
            in them are trained.
        features: shape of one input where the network wants more axes than one, such as (28, 28,
            1); inputs may then come flat.
        batched: whether a function takes a batch (the default) or one input.

    Refused: state that changes while training (batch statistics) and active dropout, as a model
    here is a function of its parameters alone.

    >>> import jax.numpy as jnp
    >>> import wideflow as wf
    >>> net = wf.wrap(lambda p, x: x @ p["w"], {"w": jnp.array([1.0, 2.0])})
    >>> net.trained, float(net([3.0, 4.0]))
    (('w',), 11.0)
    """
    if isinstance(network, tuple) and len(network) == 2 and params is None:
        network, params = network
    if isinstance(network, AbstractModel):
        raise ValueError(f"`network` is a wideflow model already: {type(network).__name__}.")
    check_flag("batched", batched)
    library, tree = _library(network, params, batched)
    arrays, leaves = {}, []
    for path, leaf in jax.tree.leaves_with_path(tree):
        name = jax.tree_util.keystr(path, simple=True, separator=".")
        if eqx.is_array(leaf) and jnp.iscomplexobj(leaf):
            raise ValueError(
                f"`network` holds a complex array, {name!r}; descent here is along real arrays. "
                "Keep real and imaginary part as two."
            )
        trained = eqx.is_inexact_array(leaf)
        if trained:
            arrays[name] = leaf
        leaves.append(Slot(name) if trained else leaf)
    if not arrays:
        raise ValueError("`network` holds no floating-point array: there is nothing to train.")
    slots = jax.tree.unflatten(jax.tree.structure(tree), leaves)
    return Wrapped(arrays, slots, tuple(arrays), library, _shape(features))


def _shape(features) -> tuple[int, ...] | None:
    if features is None:
        return None
    shape = tuple(features) if isinstance(features, Sequence) else (features,)
    for size in shape:
        check_count("features", size)
    return shape


def _library(network, params, batched: bool):
    """The adapter of the library that `network` comes from, and the tree of its arrays."""
    kind = _flax_kind(network)
    if kind == "nnx":
        return _Nnx.take(network)
    if kind == "linen":
        return _Linen.take(network, params)
    if isinstance(network, eqx.Module) and params is None:
        return _Equinox.take(network)
    if not callable(network):
        raise ValueError(
            "`network` must be an Equinox module, a Flax module or a function `apply(params, "
            f"inputs)`, got {network!r}."
        )
    if params is None:
        raise ValueError("`params` must hold the parameters of the function `network`, got None.")
    tree = jax.tree.map(lambda leaf: jnp.asarray(leaf) if hasattr(leaf, "dtype") else leaf, params)
    return _Function(network, batched), tree


def _flax_kind(network) -> str:
    """'nnx' or 'linen' for a module of Flax, without importing it for others."""
    if not any(kind.__module__.startswith("flax.") for kind in type(network).__mro__):
        return ""
    from flax import linen, nnx

    if isinstance(network, nnx.Module):
        return "nnx"
    return "linen" if isinstance(network, linen.Module) else ""


@dataclasses.dataclass(frozen=True)
class _Equinox:
    """One input at a time; the tree is the module itself."""

    @staticmethod
    def take(network):
        special = (eqx.nn.Dropout, eqx.nn.StateIndex)
        for leaf in jax.tree.leaves(network, is_leaf=lambda x: isinstance(x, special)):
            if isinstance(leaf, eqx.nn.StateIndex):
                raise ValueError(_state_sentence("an `equinox.nn.StateIndex`"))
            if isinstance(leaf, eqx.nn.Dropout) and not leaf.inference and leaf.p > 0:
                raise ValueError(_dropout_sentence("`equinox.nn.inference_mode(network)`"))
        return _Equinox(), network

    def restore(self, tree):
        return tree

    def outputs(self, tree, x):
        return jax.vmap(tree)(x)


@dataclasses.dataclass(frozen=True)
class _Nnx:
    """A batch at a time; the graph is fixed, the state is the tree."""

    graph: Any

    @staticmethod
    def take(network):
        from flax import nnx

        for _, module in nnx.iter_modules(network):
            if isinstance(module, nnx.Dropout) and not module.deterministic and module.rate > 0:
                raise ValueError(_dropout_sentence("`network.eval()`"))
        graph, state = nnx.split(network)
        statistics = nnx.filter_state(state, nnx.BatchStat)
        if jax.tree.leaves(statistics):
            raise ValueError(_state_sentence("`BatchStat` variables"))
        return _Nnx(graph), nnx.to_pure_dict(state)

    def restore(self, tree):
        from flax import nnx

        return nnx.merge(self.graph, tree)

    def outputs(self, tree, x):
        return self.restore(tree)(x)


@dataclasses.dataclass(frozen=True)
class _Linen:
    """A batch at a time; every collection but the parameters is fixed."""

    module: Any

    @staticmethod
    def take(network, variables):
        if not isinstance(variables, dict) or "params" not in variables:
            raise ValueError(
                "`params` must be the variables of the Linen module, as `module.init(key, "
                "inputs)` gives them."
            )
        if "batch_stats" in variables:
            raise ValueError(_state_sentence("a collection 'batch_stats'"))
        return _Linen(network), variables

    def restore(self, tree):
        return tree

    def outputs(self, tree, x):
        from flax.errors import InvalidRngError

        try:
            return self.module.apply(tree, x)
        except InvalidRngError as error:
            raise ValueError(_dropout_sentence("`deterministic=True`")) from error


@dataclasses.dataclass(frozen=True)
class _Function:
    """A function of parameters and a batch, or of parameters and one input."""

    apply: Callable
    batched: bool

    def restore(self, tree):
        return tree

    def outputs(self, tree, x):
        if not self.batched:
            return jax.vmap(lambda one: self.apply(tree, one))(x)
        try:
            return jnp.asarray(self.apply(tree, x))
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"the wrapped function fails on a batch of shape {x.shape}: {error} "
                "If it takes one input, wrap it with `batched=False`."
            ) from error


def _state_sentence(what: str) -> str:
    return (
        f"`network` holds {what}, a state that changes while training; a model here is a "
        "function of its parameters alone. "
        "Use layer or group normalisation instead of batch normalisation."
    )


def _dropout_sentence(remedy: str) -> str:
    return (
        "`network` has active dropout, which needs a key at every call; a model here is a "
        "function of its parameters alone. "
        f"Switch it off with {remedy}."
    )
