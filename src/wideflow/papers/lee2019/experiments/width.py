r"""Empirical tangent kernels of random networks against their limit, over width and depth (lee2019,
supplement: kernel convergence).

Over draws of a ReLU network of width $n$ with two or more hidden layers, $\hat\Theta(x, x')$
fluctuates by $O(n^{-1/2})$ around its mean, and the mean lies $O(n^{-1})$ off the limit. The inputs
are the corners of a regular simplex, so that every pair has one and the same limit and all pairs
are averaged; both numbers are shares of $\Theta(x, x)$. Pairs $x \ne x'$ alone are looked at: on
the diagonal a ReLU network's mean is the limit at every width, since its layers are homogeneous.
Slopes on log-log axes with standard errors by the jackknife over independent groups of networks.

Run:  wideflow run kernels-width            Takes:  default about 2 min of one core
"""

from dataclasses import dataclass

import jax
import numpy as np
import xarray as xr

from ...._core.architecture import Chain, mlp
from ...._core.errors import check_count
from ...._core.precision import double
from ...._core.randomness import named_key
from ....experiments.base import Claim, Experiment
from ....experiments.slopes import log_log_slope
from ....experiments.spread import deviation
from ....figures import FigureSpec, Line, Panel
from ....limits.kernels import kernels
from ....models.deep import Deep
from ....observables.kernels import tangent_gram
from ....training.session import Session


@dataclass(frozen=True)
class Settings:
    widths: tuple[int, ...] = (8, 16, 32, 64)
    depths: tuple[int, ...] = (2, 3)
    corners: int = 3
    seeds: int = 20  # independent groups of networks
    draws: int = 2000  # networks in a group

    def __post_init__(self):
        check_count("corners", self.corners, least=2)
        check_count("seeds", self.seeds, least=2, remedy="The jackknife needs two.")
        check_count("draws", self.draws, least=2)


def simplex(corners: int) -> np.ndarray:
    r"""Inputs of norm $\sqrt d$ in $d$ = `corners` dimensions with equal angles, of cosine
    $-1/(d - 1)$.
    """
    centred = np.eye(corners) - 1 / corners
    return np.sqrt(corners) * centred / np.linalg.norm(centred, axis=1, keepdims=True)


@double
def run(settings: Settings, key, session: Session) -> xr.Dataset:
    x = simplex(settings.corners)
    pairs = np.triu_indices(len(x), 1)
    cases = [(depth, width) for depth in settings.depths for width in settings.widths]
    shift, fluctuation = np.zeros((2, len(cases), settings.seeds))
    for case, (depth, width) in enumerate(cases):
        chain = mlp(depth, width, "relu", weight_std=2**0.5)
        limit = np.asarray(kernels(chain).ntk(x))
        grams = _sampler(chain, x)
        for group in range(settings.seeds):
            session(case * settings.seeds + group, shift.size, f"depth {depth}, width {width}")
            keys = jax.random.split(named_key(key, depth, width, group), settings.draws)
            away = (np.asarray(grams(keys)) - limit)[:, *pairs] / limit[0, 0]
            shift[case, group] = away.mean()
            fluctuation[case, group] = np.sqrt(np.mean(away.var(axis=0, ddof=1)))
    axes, shape = ("depth", "width", "seed"), (len(settings.depths), len(settings.widths), -1)
    return xr.Dataset(
        {
            "shift": (axes, shift.reshape(shape), {"label": "shift of the mean"}),
            "fluctuation": (axes, fluctuation.reshape(shape), {"label": "standard deviation"}),
        },
        {"depth": list(settings.depths), "width": list(settings.widths)},
        {"draws": settings.draws, "corners": settings.corners},
    )


def _sampler(chain: Chain, x: np.ndarray):
    """Keys to tangent Gram matrices, all networks of a group in one program."""
    return jax.jit(jax.vmap(lambda key: tangent_gram(Deep.init(key, chain, x.shape[1]), x)))


def slope(table: xr.Dataset, name: str, depth: int) -> tuple[float, float]:
    """The slope in the width of the groups' mean on log-log axes, and its standard error by the
    jackknife.

    Each width counts by the inverse square of its relative standard error, as least squares of
    logarithms asks.
    """
    values = table[name].sel(depth=depth).values
    groups = values.shape[1]
    relative = values.std(axis=1, ddof=1) / np.sqrt(groups) / np.abs(values.mean(axis=1))
    return log_log_slope(table["width"].values, values, 1 / relative)


def draw(table: xr.Dataset) -> FigureSpec:
    width, panels = table["width"].values, []
    for name, title, power in (
        ("fluctuation", "Fluctuation over networks", -0.5),
        ("shift", "Shift of the mean", -1.0),
    ):
        marks, first = [], 0.0
        for depth in table["depth"].values:
            mean = np.abs(table[name].sel(depth=depth).mean("seed").values)
            error = deviation(table[name].sel(depth=depth)).values
            error = np.minimum(error / np.sqrt(table.sizes["seed"]), 0.9 * mean)  # log axis
            label, first = f"depth {depth}", max(first, mean[0])
            marks.append(Line(width, mean, label, low=mean - error, high=mean + error, group=label))
        guide = 1.5 * first * (width / width[0]) ** power
        marks.append(Line(width, guide, f"slope {power:g}", dash="dashed"))
        panels.append(Panel(title, "width n", "share of the limit Θ(x, x)", marks, "log", "log"))
    caption = (
        "Empirical tangent kernels of random ReLU networks, mean over groups with standard errors."
    )
    return FigureSpec("Empirical kernels against their limit", panels, caption=caption)


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    judged = []
    for depth in table["depth"].values:
        for name, text, power, tolerance in (
            ("fluctuation", "fluctuation", -0.5, 0.05),
            ("shift", "shift of the mean", -1.0, 0.2),
        ):
            value, error = slope(table, name, depth)
            title = f"depth {depth}: {text}, slope in the width"
            judged.append(
                Claim(
                    title,
                    value,
                    expected=power,
                    tolerance=tolerance,
                    note=f"standard error {error:.2g}",
                )
            )
            # a slope whose error is as large as the tolerance would say nothing
            judged.append(Claim(f"{title}: standard error", error, at_most=tolerance / 2))
    return tuple(judged)


EXPERIMENT = Experiment(
    name="kernels-width",
    paper="lee2019",
    title="Empirical kernels against their limit",
    figure="supplement, kernel convergence",
    settings={
        "smoke": Settings(widths=(8, 16), depths=(2,), seeds=2, draws=20),
        "default": Settings(),
        "paper": Settings(
            widths=(8, 16, 32, 64, 128, 256), depths=(2, 3, 4), seeds=50, draws=20_000
        ),
    },
    run=run,
    draw=draw,
    claims=claims,
    claims_from_size="default",
)
