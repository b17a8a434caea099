"""Generators of the experiments' data; every part draws from a key of its own name."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._core.errors import check_count
from .._core.precision import double
from .._core.randomness import named_key
from .._core.types import Key
from .dataset import Dataset


@double
def sphere(key: Key, samples: int, features: int) -> Float[Array, "sample feature"]:
    """Points uniform on the unit sphere."""
    check_count("samples", samples)
    check_count("features", features)
    gaussian = jax.random.normal(key, (samples, features))
    return gaussian / jnp.linalg.norm(gaussian, axis=1, keepdims=True)


@double
def sphere_sines(key: Key, samples: int = 100, features: int = 50, noise: float = 1.0) -> Dataset:
    r"""$y_i = \frac5d \sum_j \sin(\pi x_{ij}) + \varepsilon_i$ on the unit sphere (caron2023, section 6).

    `noise` is the deviation of $\varepsilon$: 1 in the paper's text, 0.1 in its released code.
    """
    if not noise >= 0:
        raise ValueError(f"`noise` must not be negative, got {noise}.")
    x = sphere(named_key(key, "inputs"), samples, features)
    clean = 5 / features * jnp.sum(jnp.sin(jnp.pi * x), axis=1)
    y = clean + noise * jax.random.normal(named_key(key, "noise"), (samples,))
    return Dataset(x, y, f"sphere sines (n={samples}, d={features}, noise {noise:g})")


@double
def random_labels(key: Key, samples: int = 20, features: int = 20, bound: float = 0.5) -> Dataset:
    """Gaussian inputs with labels uniform on [-bound, bound] (chen2022, Experiment 1)."""
    check_count("samples", samples)
    check_count("features", features)
    x = jax.random.normal(named_key(key, "inputs"), (samples, features))
    y = jax.random.uniform(named_key(key, "labels"), (samples,), minval=-bound, maxval=bound)
    return Dataset(x, y, f"random labels (n={samples}, d={features})")
