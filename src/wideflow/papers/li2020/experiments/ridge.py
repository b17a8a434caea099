r"""Kernel ridge regression for the comparison of li2020, Theorem 1.2: kernels, and ridge by
validation.
"""

import math
from collections.abc import Callable

import numpy as np
from scipy.linalg import cho_factor, cho_solve

RIDGES = (1e-5, 1e-4, 1e-3, 1e-2, 0.1, 0.5, 3.0)
"""Candidates, in units of the kernel's mean diagonal."""


def _angles(x, y):
    left, right = np.linalg.norm(x, axis=1), np.linalg.norm(y, axis=1)
    u = np.clip(x @ y.T / np.outer(left, right), -1.0, 1.0)
    return np.outer(left, right), u


def relu_ntk(x, y):
    r"""$\|x\|\|y\|\,[(u(\pi-\theta)+\sqrt{1-u^2})/\pi + u(\pi-\theta)/\pi]$: both layers of a
    two-layer ReLU network, no biases.
    """
    norms, u = _angles(x, y)
    return norms * (2 * u * (math.pi - np.arccos(u)) + np.sqrt(1 - u**2)) / math.pi


def abs_ntk(x, y):
    r"""$\|x\|\|y\|\frac2\pi(\sqrt{1-u^2} + 2u\arcsin u)$: the same for absolute values."""
    norms, u = _angles(x, y)
    return norms * 2 / math.pi * (np.sqrt(1 - u**2) + 2 * u * np.arcsin(u))


def _distances(x, y):
    squares = np.sum(x**2, axis=1)[:, None] + np.sum(y**2, axis=1) - 2 * x @ y.T
    return np.maximum(squares, 0.0)


def gaussian(x, y):
    r"""$\exp(-\|x-y\|^2/(8d))$."""
    return np.exp(-_distances(x, y) / (8 * x.shape[1]))


def laplace(x, y):
    r"""$\exp(-\|x-y\|/\sqrt{8d})$."""
    return np.exp(-np.sqrt(_distances(x, y) / (8 * x.shape[1])))


def polynomial(degree: int) -> Callable:
    r"""$(1 + \langle x,y\rangle/d)^p$."""
    return lambda x, y: (1 + x @ y.T / x.shape[1]) ** degree


def random_features(kind: str, units: int, features: int, rng) -> Callable:
    """The kernel of a fixed random map: `units` ReLUs or absolute values of random directions."""
    w = rng.normal(size=(units, features)) / math.sqrt(features)
    act = np.abs if kind == "abs" else lambda z: np.maximum(z, 0.0)
    return lambda x, y: act(x @ w.T) @ act(y @ w.T).T / units


def kernels(features: int, units: int, rng) -> dict[str, tuple[Callable, bool]]:
    """Every kernel with whether its labels are centred.

    Bias-free tangent kernels and random features are 1-homogeneous: the radial degree-two part of
    the target is theirs only with the mean left in, so they are trained on uncentred labels; the
    others on centred ones.
    """
    return {
        "NTK": (relu_ntk, False),
        "abs-NTK": (abs_ntk, False),
        "RBF": (gaussian, True),
        "Laplace": (laplace, True),
        "poly2": (polynomial(2), True),
        "poly4": (polynomial(4), True),
        "relu features": (random_features("relu", units, features, rng), False),
        "abs features": (random_features("abs", units, features, rng), False),
    }


def ridge_losses(kernel: Callable, centred: bool, train, validation, test) -> np.ndarray:
    """Mean squares on `test` for every target (columns of the labels), each with the ridge that is
    best on `validation`.

    Each set is (inputs, labels) with labels (sample, target).
    """
    (x, y), (xv, yv), (xt, yt) = train, validation, test
    offset = y.mean(axis=0) if centred else np.zeros(y.shape[1])
    gram = kernel(x, x)
    scale = np.trace(gram) / len(x)
    to_validation, to_test = kernel(xv, x), kernel(xt, x)
    best = np.full(y.shape[1], np.inf)
    losses = np.full(y.shape[1], np.nan)
    for ridge in RIDGES:
        factor = cho_factor(gram + ridge * scale * np.eye(len(x)), lower=True)
        weights = cho_solve(factor, y - offset)
        validation_losses = np.mean((to_validation @ weights + offset - yv) ** 2, axis=0)
        better = validation_losses < best
        best[better] = validation_losses[better]
        losses[better] = np.mean((to_test @ weights + offset - yt) ** 2, axis=0)[better]
    return losses
