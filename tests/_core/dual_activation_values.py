"""Writes `dual_activation_values.json`: E[f(u) f(v)] and E[f'(u) f'(v)] by mpmath, for the tests of
the closed forms.

    python tests/_core/dual_activation_values.py            all that are missing (a minute)

Every function and its derivative are written here once more, in mpmath alone. The double integral
runs in whitened coordinates over [-9, 9], split at the kinks of both factors, with mpmath's
functions in double precision; the first fourteen were written with 20 digits by mpmath's own
adaptive quadrature.
"""

import itertools
import json
import math
import pathlib

import numpy as np
from mpmath import fp as mp

COVARIANCES = [(0.7, -0.3, 1.1), (1.3, 1.1, 0.95), (2.0, 0.4, 0.5)]


def he(k, z):
    before, now = mp.mpf(0), mp.mpf(1)
    for j in range(k):
        before, now = now, z * now - j * before
    return now


def step(z):
    return mp.mpf(z > 0)


density = lambda z: mp.exp(-(z**2) / 2) / mp.sqrt(2 * mp.pi)
FUNCTIONS = {  # name -> (f, f')
    "relu": (lambda z: max(z, mp.mpf(0)), step),
    "leaky_relu(0.1)": (
        lambda z: z if z > 0 else z / 10,
        lambda z: mp.mpf(1) if z > 0 else mp.mpf("0.1"),
    ),
    "two_slopes(-0.5,2)": (
        lambda z: 2 * z if z > 0 else -z / 2,
        lambda z: mp.mpf(2) if z > 0 else mp.mpf("-0.5"),
    ),
    "abs": (abs, lambda z: mp.mpf(1 if z > 0 else -1)),
    "erf": (mp.erf, lambda z: 2 / mp.sqrt(mp.pi) * mp.exp(-(z**2))),
    "gelu": (lambda z: z * mp.ncdf(z), lambda z: mp.ncdf(z) + z * density(z)),
    "sin": (mp.sin, mp.cos),
    "cos": (mp.cos, lambda z: -mp.sin(z)),
    "wave(0.5,1.5,0.3)": (
        lambda z: mp.sin(1.5 * z + mp.mpf("0.3")) / 2,
        lambda z: 0.75 * mp.cos(1.5 * z + mp.mpf("0.3")),
    ),
    "exp": (mp.exp, mp.exp),
    "gaussian": (lambda z: mp.exp(-(z**2)), lambda z: -2 * z * mp.exp(-(z**2))),
    "gaussian(0.5)": (lambda z: mp.exp(-(z**2) / 2), lambda z: -z * mp.exp(-(z**2) / 2)),
    "linear": (lambda z: z, lambda z: mp.mpf(1)),
    "square": (lambda z: z**2, lambda z: 2 * z),
    "monomial(3)": (lambda z: z**3, lambda z: 3 * z**2),
    "monomial(5)": (lambda z: z**5, lambda z: 5 * z**4),
    "hermite(4)": (lambda z: he(4, z) / mp.sqrt(24), lambda z: 4 * he(3, z) / mp.sqrt(24)),
    "polynomial(1,-2,0,0.5)": (lambda z: 1 - 2 * z + z**3 / 2, lambda z: -2 + 1.5 * z**2),
    "rectified_power(0)": (step, lambda z: mp.mpf(0)),
    "rectified_power(2)": (lambda z: max(z, mp.mpf(0)) ** 2, lambda z: 2 * max(z, mp.mpf(0))),
    "rectified_power(3)": (lambda z: max(z, mp.mpf(0)) ** 3, lambda z: 3 * max(z, mp.mpf(0)) ** 2),
    "rectified_power(5)": (lambda z: max(z, mp.mpf(0)) ** 5, lambda z: 5 * max(z, mp.mpf(0)) ** 4),
    "sign": (mp.sign, lambda z: mp.mpf(0)),
    "tanh": (mp.tanh, lambda z: 1 - mp.tanh(z) ** 2),
    "sigmoid": (lambda z: 1 / (1 + mp.exp(-z)), lambda z: 1 / (2 + mp.exp(-z) + mp.exp(z))),
    "softplus": (lambda z: mp.log(1 + mp.exp(z)), lambda z: 1 / (1 + mp.exp(-z))),
}


NODES, WEIGHTS = (column.tolist() for column in np.polynomial.legendre.leggauss(48))


def integral(f, edges):
    """Gauss-Legendre with 48 nodes on each interval."""
    total = 0.0
    for low, high in itertools.pairwise(edges):
        middle, half = (low + high) / 2, (high - low) / 2
        total += half * sum(w * f(middle + half * x) for x, w in zip(NODES, WEIGHTS))
    return total


def expectation(f, p, q, r):
    slope, rest = q / math.sqrt(p), math.sqrt(r - q**2 / p)

    def inner(t):
        kink = -slope * t / rest
        edges = sorted({-9.0, 0.0, 9.0, *([kink] if abs(kink) < 9 else [])})
        return integral(lambda z: f(slope * t + rest * z) * density(z), edges)

    return integral(
        lambda t: f(math.sqrt(p) * t) * inner(t) * density(t),
        [-9.0, -2.0, -0.3, 0.0, 0.3, 2.0, 9.0],
    )


if __name__ == "__main__":
    place = pathlib.Path(__file__).with_suffix(".json")
    rows = json.loads(place.read_text()) if place.exists() else []
    there = {row["activation"] for row in rows}
    for name, functions in FUNCTIONS.items():
        for covariance in COVARIANCES if name not in there else ():
            both = [f"{expectation(f, *covariance):.15g}" for f in functions]
            rows.append({"activation": name, "covariance": covariance, "expectations": both})
            print(rows[-1], flush=True)
        place.write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n")
