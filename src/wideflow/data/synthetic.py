"""Generators of the experiments' data; every part draws from a key of its own name."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._core.errors import as_key, check_count, check_nonnegative, check_number, check_positive
from .._core.memory import check_fits
from .._core.precision import double
from .._core.randomness import named_key, normal
from .._core.types import Key
from .dataset import Dataset

__all__ = ["random_labels", "sphere", "sphere_sines", "waves"]


@double
def sphere(key: int | Key, samples: int, features: int) -> Float[Array, "sample feature"]:
    """Points uniform on the unit sphere.

    Args:
        samples: the number of points.
        features: the dimension of the space in which the sphere lies.
    """
    check_count("samples", samples)
    check_count("features", features)
    check_fits(samples=samples, features=features)
    gaussian = normal(as_key(key), (samples, features))
    return gaussian / jnp.linalg.norm(gaussian, axis=1, keepdims=True)


@double
def sphere_sines(
    key: int | Key, samples: int = 100, features: int = 50, noise: float = 1.0
) -> Dataset:
    r"""$y_i = \frac5d \sum_j \sin(\pi x_{ij}) + \varepsilon_i$ on the unit sphere (caron2023,
    section 6).

    `noise` is the deviation of $\varepsilon$: 1 in the paper's text, 0.1 in its released code.

    Args:
        samples: $n$.
        features: $d$.
        noise: the deviation of $\varepsilon$.
    """
    check_nonnegative("noise", noise)
    x = sphere(named_key(key, "inputs"), samples, features)
    clean = 5 / features * jnp.sum(jnp.sin(jnp.pi * x), axis=1)
    y = clean + noise * normal(named_key(key, "noise"), (samples,))
    return Dataset(x, y, f"sphere sines (n={samples}, d={features}, noise {noise:g})")


@double
def random_labels(
    key: int | Key, samples: int = 20, features: int = 20, bound: float = 0.5
) -> Dataset:
    """Gaussian inputs with labels uniform on [-bound, bound] (chen2022, Experiment 1).

    Args:
        samples: $n$.
        features: $d$.
        bound: labels lie between minus and plus this number.
    """
    check_count("samples", samples)
    check_count("features", features)
    check_fits(samples=samples, features=features)
    check_positive("bound", bound)
    x = normal(named_key(key, "inputs"), (samples, features))
    y = jax.random.uniform(named_key(key, "labels"), (samples,), minval=-bound, maxval=bound)
    return Dataset(x, y, f"random labels (n={samples}, d={features})")


@double
def waves(
    key: int | Key,
    samples: int = 30,
    inputs: int = 1,
    noise: float = 0.05,
    frequency: float = 1.5,
    amplitude: float = 1.0,
) -> Dataset:
    r"""$y = A \prod_i \sin(\pi f x_i) + \varepsilon$ for $x$ uniform on $[-1, 1]^p$, $p$ =
    `inputs`: a function that one can look at.

    A constant column stands behind the inputs, so that every neuron has its own kink; rows are
    divided by $\sqrt{p + 1}$, so that $|x| \le 1$. `frequency` is $f$, `amplitude` is $A$, `noise`
    the deviation of $\varepsilon$.

    Args:
        samples: $n$.
        inputs: $p$.
        noise: the deviation of $\varepsilon$.
        frequency: $f$, in half periods on $[0, 1]$.
        amplitude: $A$.
    """
    check_count("samples", samples)
    check_count("inputs", inputs)
    check_fits(samples=samples, inputs=inputs + 1)
    check_nonnegative("noise", noise)
    check_number("frequency", frequency)
    check_number("amplitude", amplitude)
    x = jax.random.uniform(named_key(key, "inputs"), (samples, inputs), minval=-1.0, maxval=1.0)
    clean = amplitude * jnp.prod(jnp.sin(jnp.pi * frequency * x), axis=1)
    y = clean + noise * normal(named_key(key, "noise"), (samples,))
    rows = jnp.concatenate([x, jnp.ones((samples, 1))], axis=1) / (inputs + 1) ** 0.5
    names = (*(f"x{i + 1}" for i in range(inputs)), "bias")
    return Dataset(rows, y, f"waves (n={samples}, inputs {inputs}, noise {noise:g})", names)
