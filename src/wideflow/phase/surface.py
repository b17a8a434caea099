r"""A smooth surface through noisy points of the plane: Gaussian-process regression.

With $k(u, v) = a\,(1 + \sqrt5 r + \tfrac53 r^2)e^{-\sqrt5 r}$ (Matérn 5/2),
$r^2 = \sum_i (u_i-v_i)^2/\ell_i^2$ on the unit square, a constant mean $c$ and known noise
variances $N$, the posterior at new places is $c + k_*^\top (K+N)^{-1}(y - c)$ with covariance
$k_{**} - k_*^\top (K+N)^{-1} k_*$. Lengths $\ell$ and amplitude $a$ are those of the largest
marginal likelihood on a grid, so that the same points give the same surface on every machine.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

LENGTHS = (0.12, 0.25, 0.5, 1.0, 2.0)  # of the unit square's side (chosen: from two cells to flat)
AMPLITUDES = (0.25, 1.0, 4.0)  # times the points' own variance (chosen)
LEAST = 1e-10  # variance of noise, beside the points' own, that keeps the factor regular


class Surface(NamedTuple):
    """Posterior mean and covariance at the places asked for, and the lengths they rest on."""

    mean: np.ndarray
    covariance: np.ndarray
    lengths: tuple[float, float]

    @property
    def deviation(self) -> np.ndarray:
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))


def matern(left: np.ndarray, right: np.ndarray, lengths) -> np.ndarray:
    """The correlation (left, right) between places (place, 2)."""
    gaps = (left[:, None, :] - right[None, :, :]) / np.asarray(lengths)
    r = np.sqrt(5.0 * np.sum(gaps**2, axis=-1))
    return (1 + r + r**2 / 3) * np.exp(-r)


def surface(places: np.ndarray, values: np.ndarray, noise: np.ndarray, new_places) -> Surface:
    """The posterior at `new_places` (place, 2), from `values` at `places` (point, 2) with variances
    `noise` (point,).
    """
    spread = max(float(np.var(values)), LEAST)
    best = (-np.inf, (LENGTHS[0], LENGTHS[0], spread))
    for first in LENGTHS:
        for second in LENGTHS:
            correlation = matern(places, places, (first, second))
            for factor in AMPLITUDES:
                covariance = factor * spread * correlation
                likelihood = _log_likelihood(covariance, values, noise + LEAST * spread)
                if likelihood > best[0]:
                    best = (likelihood, (first, second, factor * spread))
    first, second, amplitude = best[1]
    return _posterior(
        places,
        values,
        noise + LEAST * spread,
        np.asarray(new_places, float),
        (first, second),
        amplitude,
    )


def _centred(factor, values: np.ndarray) -> tuple[float, np.ndarray]:
    """The constant of generalised least squares, and $(K+N)^{-1}(y - c)$."""
    ones = np.ones_like(values)
    weights = cho_solve(factor, np.stack([values, ones], axis=1))
    constant = float(ones @ weights[:, 0] / (ones @ weights[:, 1]))
    return constant, weights[:, 0] - constant * weights[:, 1]


def _log_likelihood(covariance, values, noise) -> float:
    factor = cho_factor(covariance + np.diag(noise), lower=True)
    constant, weights = _centred(factor, values)
    return float(-0.5 * (values - constant) @ weights - np.sum(np.log(np.diag(factor[0]))))


def _posterior(places, values, noise, new_places, lengths, amplitude) -> Surface:
    factor = cho_factor(amplitude * matern(places, places, lengths) + np.diag(noise), lower=True)
    constant, weights = _centred(factor, values)
    across = amplitude * matern(new_places, places, lengths)
    covariance = amplitude * matern(new_places, new_places, lengths) - across @ cho_solve(
        factor, across.T
    )
    return Surface(constant + across @ weights, covariance, lengths)
