"""A run compiles its step once: what goes into it has the type of what comes out."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import wideflow as wf
from wideflow.training.ensemble import stack

INPUTS = np.random.default_rng(0).normal(size=(6, 4))
DATA = wf.Dataset(INPUTS, INPUTS[:, 0])


class Weak(wf.AbstractModel):
    """A user's model whose parameter is weakly typed."""

    w: jax.Array
    trained = ("w",)

    def embed(self, inputs):
        return inputs

    def respond(self, features):
        return features @ self.w

    def rate_factors(self):
        return {"w": 1.0}

    def pullback(self, features):
        return wf.models.base.pullback_by_autodiff(self, features)


MODELS = {
    "tanh": lambda: wf.Shallow.init(0, width=8, features=4, activation="tanh"),
    "relu": lambda: wf.Shallow.init(0, width=8, features=4),
    "deep": lambda: wf.Deep.init(0, wf.mlp(2, 4, "tanh"), 4),
    "own": lambda: Weak(jnp.full(4, 1.0)),
}


def kind(leaf):
    """What a compiled program is keyed by."""
    if not isinstance(leaf, jax.Array | jax.ShapeDtypeStruct):
        return repr(leaf)
    return leaf.shape, leaf.dtype, getattr(leaf, "weak_type", False)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("method", ["auto", "gram", "descent", "tsit5"])
def test_a_flow_hands_on_what_it_was_given(name, method):
    flow = wf.GradientFlow(method=method)
    members = stack(MODELS[name](), DATA, flow, None, 0, wf.losses.HalfMeanSquares(), None)
    state, now = members.init(), jnp.zeros(())
    move = lambda model, state: flow.advance(model, state, members.objective, now, now + 1, now + 2)
    after = eqx.filter_eval_shape(move, members.start, state)
    shapes = lambda tree: [kind(leaf) for leaf in jax.tree.leaves(tree)]
    assert shapes(after) == shapes((members.start, state))


@pytest.mark.parametrize(
    "dynamics",
    [wf.GradientDescent(0.1), wf.SGD(0.1, batch=2), wf.Optax(optax.adam(0.1), batch=2)],
)
def test_a_step_hands_on_what_it_was_given(dynamics):
    members = stack(MODELS["own"](), DATA, dynamics, None, 0, wf.losses.HalfMeanSquares(), None)
    leaves = jax.tree.leaves((members.start, members.init()))
    assert not any(getattr(leaf, "weak_type", False) for leaf in leaves)
