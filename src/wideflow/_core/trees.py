"""A model's trained arrays as a dictionary, algebra on such dictionaries, and trees of zeros."""

import dataclasses
import re
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp

Model = TypeVar("Model")
Parameters = dict[str, jax.Array]


def parameters(model) -> Parameters:
    """The arrays that dynamics move, by field name (`model.trained` lists them)."""
    return {name: getattr(model, name) for name in model.trained}


def with_parameters(model: Model, new: Parameters) -> Model:
    """The same model with its trained arrays replaced."""
    names = list(new)
    where = lambda m: [getattr(m, name) for name in names]
    return eqx.tree_at(where, model, [new[name] for name in names])


def unlabelled(model):
    """The same model with None in place of its labels (`model.labels` lists them)."""
    if not model.labels:
        return model
    # not by its constructor, which checks its arguments again and wants the labels
    bare = object.__new__(type(model))
    for field in dataclasses.fields(model):
        value = None if field.name in model.labels else getattr(model, field.name)
        object.__setattr__(bare, field.name, value)
    return bare


def dot(left: Parameters, right: Parameters) -> jax.Array:
    """The inner product over all arrays."""
    return sum((jnp.vdot(left[name], right[name]) for name in left), start=jnp.zeros(()))


def norm(tree: Parameters) -> jax.Array:
    return jnp.sqrt(dot(tree, tree))


def axpy(scale, x: Parameters, y: Parameters) -> Parameters:
    """`y + scale * x`; `scale` is a number or a dictionary of one number per name."""
    factor: dict = scale if isinstance(scale, dict) else dict.fromkeys(x, scale)
    return {name: y[name] + factor[name] * x[name] for name in y}


def zeros_of(function, *args):
    """What `function` would return for `args`, with zeros in every array; nothing is computed."""
    arrays, rest = eqx.partition(
        eqx.filter_eval_shape(function, *args), lambda a: isinstance(a, jax.ShapeDtypeStruct)
    )
    return eqx.combine(jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), arrays), rest)


def strongly_typed(tree):
    """The same arrays, none of a weak type: a state that changes its type on the way is compiled
    for twice.
    """
    definite = lambda a: jax.lax.convert_element_type(a, a.dtype) if _is_weak(a) else a
    return jax.tree.map(definite, tree)


def _is_weak(leaf) -> bool:
    return isinstance(leaf, jax.Array) and bool(getattr(leaf, "weak_type", False))


def describe(thing) -> str:
    """A dataclass as 'Name(field=value, ...)' with arrays shown by their shape, the same in every
    process.
    """
    if not dataclasses.is_dataclass(thing):
        return _without_addresses(repr(thing))
    parts = []
    for field in dataclasses.fields(thing):
        value: Any = getattr(thing, field.name, None)
        if eqx.is_array(value) and value.ndim == 0:
            parts.append(f"{field.name}={float(value):g}")
        elif eqx.is_array(value):
            parts.append(f"{field.name}=array{value.shape}")
        elif isinstance(value, str | int | float | bool | tuple | type(None)):
            parts.append(f"{field.name}={_without_addresses(str(value))}")
        else:
            parts.append(f"{field.name}={describe(value)}")
    return f"{type(thing).__name__}({', '.join(parts)})"


def _without_addresses(text: str) -> str:
    """'<function adam>' for '<function adam at 0x7f...>'."""
    return re.sub(r" at 0x[0-9a-f]+", "", text)
