"""One model or several of equal shape: the same program, with a leading member axis where
needed.
"""

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from .._core import host
from .._core.errors import as_key
from .._core.precision import Precision, cast
from .._core.randomness import named_key
from .._core.trees import parameters, strongly_typed, unlabelled
from ..data.dataset import Dataset, DatasetObjective
from ..data.objective import AbstractObjective
from ..dynamics.base import AbstractDynamics, AbstractFlow
from ..models.base import AbstractModel
from .devices import gather, replicate, spread
from .identity import digest

# bytes; more pre-activations than this are worked off one member after the other (measured: beyond
# it five seeds in one program took longer than five runs)
CACHE = 6_000_000


@dataclass(frozen=True)
class Ensemble:
    """What runs together. Stacked parts carry the member axis first; shared ones do not.

    Attributes:
        start: the models at step 0, without their labels (see `AbstractModel.labels`).
        objective, test, dynamics, keys: what belongs to them.
        count, several: how many models, and whether they came as a list.
        shared: whether objective, test and dynamics are one for all.
        title, factors, precision: the model's class, its learning-rate multipliers (numbers, or one
            a neuron), its dtype.
        statics: structure and fixed part of each model as it was given, labels included.
        code: what the compiled programs do beside their arguments, as `code_of` tells it.
        mesh: the devices over which neurons are spread, or None.
    """

    start: Any
    objective: Any
    test: Any
    dynamics: Any
    keys: Any
    count: int
    several: bool
    shared: tuple[bool, bool, bool]  # objective, test, dynamics
    title: str
    factors: dict[str, Any]
    precision: str
    statics: tuple
    code: str
    mesh: Mesh | None = None

    def placed(self, mesh: Mesh | None) -> "Ensemble":
        """The same members with their neurons spread over the devices of `mesh`."""
        if mesh is None:
            return self
        parts = {name: getattr(self, name) for name in ("objective", "test", "dynamics", "keys")}
        placed = {name: replicate(part, mesh) for name, part in parts.items()}
        return replace(self, start=spread(self.start, mesh, self.several), mesh=mesh, **placed)

    def call(self, function, roles: tuple[str, ...], *args):
        """`function` compiled once per shape and mapped over the member axis.

        `roles` says what each argument is: "member" (always stacked), "objective", "test",
        "dynamics" (stacked unless shared) or "plain".
        """
        if not self.several:
            return _alone(function)(self.code, *args)
        return _compiled(function, roles, self.shared, False)(self.code, *args)

    def move(self, function, roles: tuple[str, ...], *args):
        """The same for a stretch of a run; on a CPU one member after the other where that is
        faster.

        A flow's members take steps of their own, and pre-activations that leave the cache cost more
        than a call saves.
        """
        turns = self.several and self.mesh is None and jax.default_backend() == "cpu"
        if turns and (isinstance(self.dynamics, AbstractFlow) or self._footprint() > CACHE):
            return _compiled(function, roles, self.shared, True)(self.code, *args)
        return self.call(function, roles, *args)

    def _footprint(self) -> int:
        """Bytes of all members' pre-activations at the training points, where there are such;
        else 0.
        """
        axes, features = self.start.neuron_axes, getattr(self.objective, "features", None)
        if not axes or features is None:
            return 0
        name, axis = next(iter(axes.items()))
        # members come first
        width = getattr(self.start, name).shape[axis + 1 if axis >= 0 else axis]
        return self.count * features.shape[-2] * width * features.dtype.itemsize

    def init(self):
        """The dynamics' state at the start."""
        if isinstance(self.dynamics, AbstractDynamics) and self.dynamics.stateless:
            return None
        roles = ("member", "objective", "dynamics", "member")
        return self.call(_init, roles, self.start, self.objective, self.dynamics, self.keys)

    def constant(self, value: float):
        array = jnp.full(self.count, value) if self.several else jnp.asarray(value)
        return array if self.mesh is None else replicate(array, self.mesh)

    def whole(self, tree):
        """`tree` for the host to read: where neurons are spread over processes, gathered."""
        return tree if self.mesh is None else gather(tree, self.mesh)

    def split(self, tree):
        """A stacked tree as a tuple of trees; a single one as it is."""
        if not self.several:
            return tree
        arrays, static = eqx.partition(tree, eqx.is_array)
        leaves, structure = jax.tree.flatten(arrays)
        if not leaves:
            return (tree,) * self.count
        members = zip(*map(host.unstack, leaves), strict=True)
        return tuple(eqx.combine(static, jax.tree.unflatten(structure, own)) for own in members)

    def split_models(self, model):
        """The same for models, each with the fixed part it came with, labels included."""
        models = self.split(model) if self.several else (model,)
        own = tuple(
            eqx.combine(
                jax.tree.unflatten(structure, jax.tree.leaves(eqx.filter(one, eqx.is_array))),
                static,
            )
            for (structure, static), one in zip(self.statics, models, strict=True)
        )
        return own if self.several else own[0]

    def split_status(self, status):
        return tuple(status) if self.several else status[0]


NUMBERS = itertools.count()


def code_of(thing) -> str:
    """A key for programs that `thing` is compiled into, its arrays aside: JAX knows a function by
    its place in memory, and would go on with the globals that it read when it was compiled.

    What has no identity gets a key of its own each time, and is compiled anew.
    """
    return digest(eqx.filter(thing, eqx.is_array, inverse=True), code=True) or f"{next(NUMBERS)}"


def _of_code(function):
    """`function` with the key of its code as a first argument, which it is compiled for."""

    def keyed(code, *args):
        return function(*args)

    keyed.__name__ = getattr(function, "__name__", "sequentially")
    return keyed


@functools.cache
def _alone(function):
    return eqx.filter_jit(_of_code(function))


@functools.cache
def _compiled(function, roles: tuple[str, ...], shared: tuple[bool, bool, bool], sequential: bool):
    common = {"member": False, "plain": True}
    common |= zip(("objective", "test", "dynamics"), shared, strict=True)
    own = tuple(not common[role] for role in roles)
    if sequential:
        return eqx.filter_jit(_of_code(functools.partial(_sequentially, function, own)))
    axes = tuple(eqx.if_array(0) if mine else None for mine in own)
    return eqx.filter_jit(_of_code(eqx.filter_vmap(function, in_axes=axes)))


def _sequentially(function, own: tuple[bool, ...], *args):
    """`function` on each member's slice of the arguments that are its own, in one loop."""
    theirs = tuple(arg if mine else None for arg, mine in zip(args, own, strict=True))
    arrays, fixed = eqx.partition(theirs, eqx.is_array)
    left = {}

    def one(slices):
        parts = eqx.combine(slices, fixed)
        arguments = (
            part if mine else arg for part, arg, mine in zip(parts, args, own, strict=True)
        )
        # `map` returns arrays alone; the fixed part is the same for every member and is noted while
        # tracing
        moved, left["fixed"] = eqx.partition(function(*arguments), eqx.is_array)
        return moved

    return eqx.combine(jax.lax.map(one, arrays), left["fixed"])


def _init(model, objective, dynamics, key):
    return strongly_typed(dynamics.init(model, objective, key))


def stack(model, data, dynamics, test, key, loss, precision: Precision | None) -> Ensemble:
    """Checks that the parts fit each other and stacks what differs between members."""
    several = isinstance(model, Sequence)
    models = list(model) if several else [model]
    if not models:
        raise ValueError("`model` must be a model or a non-empty list of models.")
    for one in models:
        if not isinstance(one, AbstractModel):
            raise ValueError(
                "`model` must be a wideflow model such as `Shallow.init(...)`, got "
                f"{type(one).__name__}. "
                "Wrap a network of Equinox or Flax, or a function of parameters and inputs, with "
                "`wideflow.wrap`."
            )
        _check_trained(one)
    count = len(models)
    if precision is not None:
        models = [cast(one, precision) for one in models]
    dtype = str(jax.tree.leaves(parameters(models[0]))[0].dtype)
    shared_data, datas = _each("data", data, count, several)
    shared_test, tests = _each("test", test, count, several)
    shared_dynamics, all_dynamics = _each("dynamics", dynamics, count, several)
    for one in all_dynamics:
        if not isinstance(one, AbstractDynamics | AbstractFlow):
            raise ValueError(
                "`dynamics` must be one of wideflow's, for instance "
                f"`GradientDescent(rate=0.1)`, got {one!r}."
            )
    same_features = shared_data and all(_same_embedding(models[0], one) for one in models[1:])
    objectives = [_objective(d, loss, m, dtype) for d, m in zip(datas, models, strict=True)]
    test_objectives = [
        None if t is None else _objective(t, loss, m, dtype)
        for t, m in zip(tests, models, strict=True)
    ]
    for objective, one in zip(objectives[: 1 if same_features else count], models, strict=False):
        eqx.filter_eval_shape(objective.value, one)  # a wrong shape fails here, with its reason
    for test_objective, one in zip(test_objectives, models, strict=True):
        if isinstance(test_objective, DatasetObjective):
            outputs = jax.eval_shape(one.respond, test_objective.features).shape
            if outputs != test_objective.targets.shape:
                raise ValueError(
                    f"`test` must have targets of the shape of the model's outputs, {outputs}, "
                    f"got {test_objective.targets.shape}."
                )
    keys = _keys(key, count, several)
    parts = [eqx.partition(one, eqx.is_array) for one in models]
    statics = tuple((jax.tree.structure(arrays), static) for arrays, static in parts)
    # labels off and types strong: models that differ in neither numbers nor shapes share a program
    models = [strongly_typed(unlabelled(one)) for one in models]
    if not several:
        return Ensemble(
            models[0],
            objectives[0],
            test_objectives[0],
            all_dynamics[0],
            keys,
            1,
            False,
            (True, True, True),
            type(models[0]).__name__,
            models[0].rate_factors(),
            dtype,
            statics,
            code_of((models[0], objectives[0], test_objectives[0], all_dynamics[0])),
        )
    shared = (same_features, shared_test and same_features, shared_dynamics)
    return Ensemble(
        _stack("model", models),
        objectives[0] if shared[0] else _stack("data", objectives),
        test_objectives[0] if shared[1] else _stack("test", test_objectives),
        all_dynamics[0] if shared[2] else _stack("dynamics", all_dynamics),
        keys,
        count,
        True,
        shared,
        type(models[0]).__name__,
        models[0].rate_factors(),
        dtype,
        statics,
        code_of((models, objectives, test_objectives, all_dynamics)),
    )


def _check_trained(model: AbstractModel) -> None:
    """Refuses a model of the user's own whose `trained` and `rate_factors()` do not fit its
    fields.
    """
    kind = type(model).__name__
    if not getattr(model, "trained", ()):
        raise ValueError(
            f"`model` {kind} must name the fields that are trained: write "
            '`trained = ("weights",)` in the class.'
        )
    for name in model.trained:
        if not eqx.is_inexact_array_like(getattr(model, name, None)):
            raise ValueError(
                f"`model` {kind} names {name!r} in `trained`, which must be a field with an array "
                "of real numbers."
            )
    missing = [name for name in model.trained if name not in model.rate_factors()]
    if missing:
        raise ValueError(
            f"`model` {kind} must give a number for {', '.join(missing)} in `rate_factors()`: 1.0 "
            "for plain gradients."
        )


def _each(name: str, value, count: int, several: bool):
    if isinstance(value, list | tuple):
        if not several:
            raise ValueError(
                f"`{name}` is a list, but there is one model; give a list of models too."
            )
        if len(value) != count:
            raise ValueError(f"`{name}` must have one entry per model ({count}), got {len(value)}.")
        return False, list(value)
    return True, [value] * count


def _objective(data, loss, model, dtype):
    if isinstance(data, AbstractObjective):
        return data
    if not hasattr(data, "objective"):
        raise ValueError(
            "`data` must be a `Dataset` or one of `wideflow.populations`, got "
            f"{type(data).__name__}. "
            "Build one from arrays with `wideflow.Dataset(inputs, targets)`."
        )
    objective = data.objective(loss, model)
    return (
        cast(objective, "float32")
        if dtype == "float32" and isinstance(data, Dataset)
        else objective
    )


def _same_embedding(first, other) -> bool:
    """Whether both models see a dataset through the same embedded features."""
    left, right = (getattr(m, "embedding", None) for m in (first, other))
    if getattr(first, "hidden_scale", None) != getattr(other, "hidden_scale", None):
        return False
    return bool(eqx.tree_equal(left, right))


def _keys(key, count: int, several: bool):
    if not several:
        return as_key(key)
    if isinstance(key, Sequence):
        if len(key) != count:
            raise ValueError(f"`key` must have one entry per model ({count}), got {len(key)}.")
        return jnp.stack([as_key(one) for one in key])
    return jnp.stack([named_key(as_key(key), i) for i in range(count)])


def _stack(name: str, items):
    if all(item is None for item in items):
        return None
    arrays, statics = zip(*(eqx.partition(item, eqx.is_array) for item in items), strict=True)
    structures = {jax.tree.structure(a) for a in arrays}
    shapes = {tuple(np.shape(leaf) for leaf in jax.tree.leaves(a)) for a in arrays}
    if len(structures) > 1 or len(shapes) > 1:
        raise ValueError(
            f"the members' `{name}` differ in shape or in fixed settings and cannot run together; "
            "train them one after the other."
        )
    merged = jax.tree.map(lambda *leaves: host.stack(leaves), *arrays)
    return eqx.combine(merged, statics[0])
