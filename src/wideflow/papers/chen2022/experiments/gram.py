r"""How fast a random embedding's Gram matrix reaches its limit, and what depth does to the limit
(chen2022, Lemma 4 and Appendix H).

$\lVert G - \bar G \rVert_2 \sqrt D$ is constant in $D$; the explicit $D_{\min}$ of Lemma 4 lies
many orders above what is needed. With depth the smallest eigenvalue of $\bar G^{(L-2)}$ shrinks,
since the inputs' images become parallel.

Run:  wideflow run chen2022-gram      Takes:  smoke 3 s, default 20 s on two cores
"""

from dataclasses import dataclass

import jax
import numpy as np
import xarray as xr

from ...._core.precision import double
from ...._core.randomness import named_key
from ....experiments.base import Claim, Experiment
from ....experiments.spread import deviation
from ....figures import FigureSpec, HLine, Panel, Points
from ....limits.deep import hidden_gram
from ....models.embeddings import RandomFeatures
from ..theorems.constants import features_for_gram, sub_gaussian_bound

ACTIVATIONS = ("relu", "tanh", "erf")


@dataclass(frozen=True)
class Settings:
    samples: int = 20
    input_dimension: int = 5
    features: tuple[int, ...] = (400, 1600, 6400)
    draws: int = 40
    layers: tuple[int, ...] = (3, 4, 5, 6)
    seeds: int = 1


@double
def run(settings: Settings, key, session) -> xr.Dataset:
    inputs = jax.random.normal(
        named_key(key, "inputs"), (settings.samples, settings.input_dimension)
    )
    limit = np.asarray(hidden_gram(inputs, "relu"))
    distances = np.empty((len(settings.features), settings.draws))
    for i, features in enumerate(settings.features):
        session.progress(i, len(settings.features), f"D = {features}")
        for draw_number in range(settings.draws):
            embedding = RandomFeatures.init(
                named_key(key, "embedding", features, draw_number),
                settings.input_dimension,
                features,
            )
            distances[i, draw_number] = np.linalg.norm(
                np.asarray(embedding.gram(inputs)) - limit, 2
            )
    gaps = np.array(
        [
            [
                np.linalg.eigvalsh(np.asarray(hidden_gram(inputs, a, layers - 2)))[[0, -1]]
                for layers in settings.layers
            ]
            for a in ACTIVATIONS
        ]
    )
    smallest = float(np.linalg.eigvalsh(limit)[0])
    needed = features_for_gram(sub_gaussian_bound(inputs, 1.0), settings.samples, 0.1, smallest / 2)
    return xr.Dataset(
        {
            "distance": (("features", "draw"), distances),
            "gap": (("activation", "layers"), gaps[..., 0]),
            "top": (("activation", "layers"), gaps[..., 1]),
        },
        {
            "features": list(settings.features),
            "layers": list(settings.layers),
            "activation": list(ACTIVATIONS),
        },
        {
            "limit_gap": smallest,
            "needed_features": float(needed),
            "figure": "chen2022, Lemma 4 and Appendix H",
            "loss": "none: nothing is trained",
        },
    )


def draw(table: xr.Dataset) -> FigureSpec:
    mean = table.distance.mean("draw").values
    marks = [
        Points(
            table.features.values, mean, "mean over draws", deviation(table.distance, "draw").values
        ),
        HLine(table.attrs["limit_gap"] / 2, "½ λ_min of the limit"),
    ]
    depth = [
        Points(table.layers.values, np.maximum(table.gap.sel(activation=a).values, 1e-18), str(a))
        for a in table.activation.values
    ]
    panels = [
        Panel(
            "Distance to the limiting Gram matrix, ReLU",
            "D",
            "‖G − limit‖₂",
            marks,
            xscale="log",
            yscale="log",
        ),
        Panel("Smallest eigenvalue of the limit", "layers L", "λ_min", depth, yscale="log"),
    ]
    return FigureSpec(
        "Gram matrices of random embeddings",
        panels,
        caption=f"Lemma 4 requires D ≥ {table.attrs['needed_features']:.2g}.",
    )


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    scaled = table.distance.mean("draw") * np.sqrt(table.features)
    relu = table.gap.sel(activation="relu").values
    return (
        Claim(
            "‖G − limit‖ √D, largest over smallest across D",
            float(scaled.max() / scaled.min()),
            at_most=1.15 if table.sizes["draw"] >= 40 else 1.4,
        ),
        Claim(
            "the distance falls with D",
            holds=bool((table.distance.mean("draw").diff("features") < 0).all()),
        ),
        Claim(
            "ReLU: the smallest eigenvalue falls with depth", holds=bool((np.diff(relu) < 0).all())
        ),
    )


EXPERIMENT = Experiment(
    name="chen2022-gram",
    paper="chen2022",
    title="Random embeddings and their limit",
    figure="Lemma 4",
    settings={
        "smoke": Settings(samples=8, features=(100, 400), draws=20, layers=(3, 4)),
        "default": Settings(),
        "paper": Settings(features=(400, 1600, 6400, 25_600), draws=100),
    },
    run=run,
    draw=draw,
    claims=claims,
)
