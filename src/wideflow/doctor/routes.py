r"""The self-test: the same number by two routes that share no computation.

Each check returns the difference and what is allowed of it; the allowance is rounding, a stated
order of convergence, or standard errors of a sample.
"""

import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from .._core.activations import activation
from .._core.gaussian import expect_pair, pair
from .._core.precision import double
from .._core.randomness import named_key
from .._core.scalings import Zipf
from .._core.trees import parameters, with_parameters
from ..data.synthetic import sphere, sphere_sines
from ..dynamics.descent import GradientDescent
from ..dynamics.flow import GradientFlow
from ..limits.kernels import mean_ntk
from ..limits.linearised import linearised
from ..models.shallow import Shallow
from ..observables.kernels import tangent_gram
from ..training.train import train
from .findings import Finding

Check = Callable[[jax.Array], tuple[float, float]]


def structured_gram_against_autodiff(key) -> tuple[float, float]:
    """The tangent Gram matrix as a Hadamard product, and as J J^T with J by reverse-mode
    autodiff.
    """
    x = sphere(named_key(key, "inputs"), 12, 5)
    net = Shallow.init(
        named_key(key, "net"), features=5, width=60, scaling=Zipf(0.5, 0.7), activation="tanh"
    )
    jacobian = jax.jacrev(lambda theta: with_parameters(net, theta).respond(net.embed(x)))(
        parameters(net)
    )
    rows = jnp.concatenate([block.reshape(12, -1) for block in jacobian.values()], axis=1)
    expected = rows @ rows.T
    return _relative(tangent_gram(net, x), expected), 1e-12


def closed_form_against_quadrature(key) -> tuple[float, float]:
    """E[s(u) s(v)] for erf and sine over random covariances: the formula and the trapezoid rule."""
    factor = jax.random.normal(key, (20, 2, 2))
    k = factor @ jnp.swapaxes(factor, 1, 2)
    worst = 0.0
    for name in ("erf", "sin"):
        act = activation(name)
        args = (k[:, 0, 0], k[:, 0, 1], k[:, 1, 1])
        worst = max(
            worst,
            float(jnp.max(jnp.abs(pair(act, *args) - expect_pair(act.value, act.value, *args)))),
        )
    return worst, 1e-11


def weights_against_functions(key) -> tuple[float, float]:
    """With a linear activation outputs are linear in the weights: descent on them is r -> (1 - rate
    Gram)^k r.
    """
    data = sphere_sines(named_key(key, "data"), samples=15, features=6)
    net = Shallow.init(named_key(key, "net"), features=6, width=40, activation="linear")
    trained = train(net, data, GradientDescent(0.5), steps=200).model
    gram = tangent_gram(net, data.inputs)
    predicted = linearised(gram, data.targets, [100.0], start=net.outputs(data.inputs), rate=0.5)
    return _relative(trained.outputs(data.inputs), predicted.outputs[-1]), 1e-10


def descent_against_flow(key) -> tuple[float, float]:
    """Descent at rates h and h/2, extrapolated to rate 0 (error of order h^2), and the flow by
    Runge-Kutta.
    """
    data = sphere_sines(named_key(key, "data"), samples=15, features=6)
    net = Shallow.init(named_key(key, "net"), features=6, width=40, activation="tanh")
    ends = [
        train(net, data, GradientDescent(rate), time=2.0).model.outputs(data.inputs)
        for rate in (0.01, 0.005)
    ]
    flow = train(net, data, GradientFlow(1e-10), time=2.0, every=2.0).model.outputs(data.inputs)
    return _relative(2 * ends[1] - ends[0], flow), 1e-3


def wide_network_against_limit(key) -> tuple[float, float]:
    """The tangent Gram of one very wide ReLU network, and its limit, in standard errors of the
    sample of nodes.

    An entry is x.x'/D times the share of nodes that are on at both points: a Bernoulli mean.
    """
    width, x = 20_000, sphere(named_key(key, "inputs"), 6, 4)
    net = Shallow.init(named_key(key, "net"), features=4, width=width)
    limit, products = mean_ntk(x, "relu"), x @ x.T / 4
    share = limit / products
    error = jnp.abs(products) * jnp.sqrt(share * (1 - share) / width)
    return float(jnp.max(jnp.abs(tangent_gram(net, x) - limit) / error)), 5.0


def single_against_double(key) -> tuple[float, float]:
    """The same descent in float32 and float64."""
    data = sphere_sines(named_key(key, "data"), samples=15, features=6)
    net = Shallow.init(named_key(key, "net"), features=6, width=40)
    ends = [
        train(net, data, GradientDescent(0.5), steps=100, precision=precision).model.outputs(
            data.inputs
        )
        for precision in ("float32", "float64")
    ]
    return _relative(*ends), 1e-4


ROUTES: dict[str, Check] = {
    "structured Gram, autodiff": structured_gram_against_autodiff,
    "closed form, quadrature": closed_form_against_quadrature,
    "weight space, function space": weights_against_functions,
    "descent at rate to 0, flow": descent_against_flow,
    "wide networks, limit kernel": wide_network_against_limit,
    "float32, float64": single_against_double,
}


@double
def compare_routes(seed: int = 0) -> list[Finding]:
    """One finding per pair of routes."""
    findings = []
    for name, check in ROUTES.items():
        began = time.perf_counter()
        try:
            difference, allowed = check(jax.random.key(seed))
        except Exception as error:  # the doctor reports what is broken, it does not break
            findings.append(
                Finding(f"self-test: {name}", f"{type(error).__name__}: {error}", "wrong")
            )
            continue
        verdict = "well" if difference <= allowed else "wrong"
        unit = " standard errors" if allowed > 1 else ""
        text = (
            f"differ by {difference:.2g}{unit}, allowed {allowed:g} "
            f"({time.perf_counter() - began:.1f} s)"
        )
        findings.append(Finding(f"self-test: {name}", text, verdict))
    return findings


def _relative(ours, reference) -> float:
    ours, reference = np.asarray(ours, float), np.asarray(reference, float)
    return float(np.max(np.abs(ours - reference)) / np.max(np.abs(reference)))
