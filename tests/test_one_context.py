"""Programs of a test process are lowered in one MLIR context, which `lower_in_one_context`
sees to.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax._src.interpreters import mlir


@pytest.fixture
def contexts(monkeypatch):
    """The contexts in which programs are lowered while the test runs."""
    if not hasattr(mlir, "make_ir_context"):
        pytest.skip("this JAX has no make_ir_context, and tests are only slower")
    seen, shared = [], mlir.make_ir_context
    monkeypatch.setattr(mlir, "make_ir_context", lambda: seen.append(shared()) or seen[-1])
    return seen


def test_two_programs_share_a_context(contexts):
    jax.jit(lambda x: jnp.sin(x) + 1.25)(np.ones(3))
    jax.jit(lambda x: jnp.cos(x) - 2.5)(np.ones(5))
    assert len(contexts) >= 2
    assert all(context is contexts[0] for context in contexts)


def test_a_program_lowered_within_another_has_its_own(contexts):
    outer = mlir.make_ir_context()
    with outer:
        assert mlir.make_ir_context() is not outer
