r"""Departure from the kernel regime: $\sum_j\tilde\lambda_j^2 = \zeta(2/\alpha)/\zeta(1/\alpha)^2$
(caron2023, Figure 5).

The variance of the limiting Gram matrix is $C_0(X)(1-\gamma)^2\sum_j\tilde\lambda_j^2$ (equation
12); it is checked by draws of the limit at one $\alpha$.

Run:  wideflow run caron2023-figure5            Takes:  seconds at every size
"""

from dataclasses import dataclass

import numpy as np
import xarray as xr

from ...._core.randomness import named_key
from ...._core.scalings import Zipf
from ....data.synthetic import sphere
from ....experiments.base import Claim, Experiment
from ....figures import FigureSpec, Line, Panel, Points
from ....limits.kernels import mean_ntk
from ....limits.random_gram import gram_variance, random_ntg, truncation_error, zipf_sum
from .members import numbers


@dataclass(frozen=True)
class Settings:
    points: int = 200
    alphas: tuple[float, ...] = (0.4, 0.5, 0.7)
    gamma: float = 0.5
    samples: int = 5
    features: int = 4
    draws: int = 2000
    nodes: int = 400
    seeds: int = 1


def run(settings: Settings, key, session) -> xr.Dataset:
    grid = np.linspace(0.05, 0.99, settings.points)  # below 1/50 the sum is 1 to rounding
    inputs = sphere(named_key(key, "data"), settings.samples, settings.features)
    mean = np.asarray(mean_ntk(inputs, "relu"))
    rows = []
    for i, alpha in enumerate(settings.alphas):
        session.progress(i, len(settings.alphas), f"limit at alpha = {alpha:g}")
        scaling = Zipf(settings.gamma, alpha)
        grams = np.asarray(
            random_ntg(
                named_key(key, "limit", i),
                inputs,
                scaling,
                "relu",
                nodes=settings.nodes,
                draws=settings.draws,
            )
        )
        squares = ((grams - mean) ** 2).sum((1, 2))
        law = gram_variance(inputs, scaling, "relu")
        error = truncation_error(inputs, scaling, "relu", settings.nodes)
        rows.append((law, squares.mean(), squares.std(ddof=1) / np.sqrt(settings.draws), error))
    law, drawn, standard, truncation = np.transpose(rows)
    return xr.Dataset(
        {
            "departure": (
                "alpha",
                [zipf_sum(a) for a in grid],
                {"label": "sum of squared node weights"},
            ),
            "variance": ("drawn_alpha", law),
            "drawn_variance": ("drawn_alpha", drawn),
            "drawn_error": ("drawn_alpha", standard),
            "truncation_error": ("drawn_alpha", truncation),
        },
        {"alpha": grid, "drawn_alpha": list(settings.alphas)},
        {"gamma": settings.gamma, "half": zipf_sum(0.5)},
    )


def draw(table: xr.Dataset) -> FigureSpec:
    curve = Panel(
        "Departure from the kernel regime",
        "α",
        "Σ λ̃²",
        [Line(numbers(table["alpha"]), numbers(table["departure"]), "ζ(2/α)/ζ(1/α)²")],
    )
    drawn = Panel(
        "Variance of the limiting Gram matrix",
        "α",
        "E ‖Θ∞ − Θ*‖²_F",
        [
            Points(
                numbers(table["drawn_alpha"]),
                numbers(table["drawn_variance"]),
                "draws",
                errors=numbers(2 * table["drawn_error"]),
            ),
            Line(
                numbers(table["drawn_alpha"]),
                numbers(table["variance"]),
                "equation 12",
                dash="dashed",
            ),
        ],
    )
    return FigureSpec(
        "How far asymmetric scaling is from a fixed kernel",
        [curve, drawn],
        caption="Compare caron2023, Figure 5 (left panel).",
    )


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    values = table["departure"].values
    misses = np.abs(table["drawn_variance"] - table["variance"]) - table["truncation_error"] ** 2
    return (
        Claim("the curve falls strictly in α", holds=bool(np.all(np.diff(values) < 0))),
        Claim(
            "α = .05: nearly the whole weight on one node, 1 − 2·2^(−20)",
            float(values[0]),
            expected=1 - 2.0**-19,
            tolerance=1e-8,
        ),
        Claim("α = 1/2: ζ(4)/ζ(2)²", float(table.attrs["half"]), expected=0.4, tolerance=1e-12),
        Claim("α = .99: nearly the kernel regime", float(values[-1]), at_most=2e-3),
        Claim(
            "equation 12 against draws, worst deviation in standard errors",
            float((misses / table["drawn_error"]).max()),
            at_most=4.0,
        ),
    )


EXPERIMENT = Experiment(
    name="caron2023-figure5",
    paper="caron2023",
    title="Departure from the kernel regime",
    figure="Figure 5",
    settings={"smoke": Settings(draws=300), "default": Settings(), "paper": Settings(draws=20_000)},
    run=run,
    draw=draw,
    claims=claims,
)
