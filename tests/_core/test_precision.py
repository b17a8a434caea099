"""float64 without touching JAX's global flag, and float32 when asked."""

import subprocess
import sys

import jax
import jax.numpy as jnp

import wideflow as wf

SCRIPT = """
import warnings; warnings.simplefilter("error")
import numpy as np, jax, wideflow as wf
assert not jax.config.jax_enable_x64
net = wf.Shallow(np.array([[1.1, 0.3], [0.2, -0.7]]), np.array([1.0, -1.0]), wf.scalings.NTK(), "tanh")
x = np.array([[0.1, 0.9], [0.5, 0.5]])
expected = (np.tanh(x @ np.array([[1.1, 0.3], [0.2, -0.7]]).T / 2**0.5) @ [1, -1]) / 2**0.5
assert np.abs(np.asarray(net.outputs(x)) - expected).max() < 1e-15
data = wf.Dataset(x, np.array([0.3, -0.2]))
run = wf.train(net, data, wf.GradientDescent(0.1), steps=3, record=[wf.observables.KernelMinEigenvalue()])
assert run.table.loss.dtype == np.float64 and run.model.weights.dtype == np.float64
flow = wf.train(net, data, wf.GradientFlow(), time=1.0)
assert float(flow.table.loss[-1]) < float(flow.table.loss[0])
gram = wf.limits.mean_ntk(x, "tanh")
assert isinstance(gram, np.ndarray) and (2 * gram).dtype == (gram - np.eye(2)).dtype == np.float64
gram[0, 0] = 1.0  # a copy of one's own
assert f"{net(x[0]):.3f}"  # one number formats like one
path = wf.limits.linearised(gram, np.ones(2), [0.0, 1.0])
assert path.losses.mean().dtype == np.float64
assert isinstance(net.weights, jax.Array) and isinstance(run.model.weights, jax.Array)
weights = jax.numpy.asarray(np.eye(2))
assert jax.vmap(net)(weights).shape == (2,) and jax.jit(lambda w: net.outputs(w))(weights).shape == (2,)
with jax.enable_x64(True):  # differentiating is JAX's own work, in JAX's own precision
    loss = lambda w: wf.limits.hermite.population_loss(w, [0.5, 0.5])
    gradient = jax.grad(loss)(np.array([[1.0, 0.2], [0.3, 0.8]]))
    assert isinstance(gradient, jax.Array) and gradient.dtype == np.float64
assert not jax.config.jax_enable_x64
"""


def test_entry_points_give_float64_where_the_flag_is_off():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]


def test_float32_training_stays_in_float32_and_near_float64():
    data = wf.data.sphere_sines(jax.random.key(1), samples=10, features=5)
    net = wf.Shallow.init(jax.random.key(0), features=5, width=30)
    runs = [
        wf.train(net, data, wf.GradientDescent(0.5), steps=20, precision=p)
        for p in ("float32", "float64")
    ]
    assert runs[0].model.weights.dtype == jnp.float32
    difference = jnp.max(jnp.abs(runs[0].model.weights - runs[1].model.weights))
    assert 0 < float(difference) < 1e-4
