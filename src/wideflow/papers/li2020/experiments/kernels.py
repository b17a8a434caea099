r"""Kernels stay near the degree-two floor, the network goes far below it (li2020, Theorem 1.2).

Kernel ridge (two tangent kernels, RBF, Laplace, polynomials, random features; ridge by validation)
against the trained network on the same number of samples. The statement needs
$d^2 \lesssim n \ll d^4$ and a network that does not overfit, $n \gtrsim 11d^2$ (and $3md$): at the
default $d = 16$ that is $n = 2816$, at paper size $d = 30$, $n = 10^4$. With fewer samples the
network fits them and stays on the plateau, about where the kernels are. And the quantitative lower
bound $(1 - N/H)C_4/d$ over a hard family of targets, for exact least squares on absolute-value
features and for ridge regression with every kernel.

Run:  wideflow run li2020-kernels
Takes:  default 2 min on two cores, smoke 5 s, paper (n to 10⁴, d to 40) 2 h
"""

import math
from dataclasses import dataclass

import jax
import numpy as np
import xarray as xr

from ...._core.randomness import named_key
from ....dynamics.descent import GradientDescent
from ....dynamics.losses import MeanSquares
from ....experiments.base import Claim, Experiment
from ....figures import FigureSpec, HLine, Line, Panel, Points
from ....models.homogeneous import Homogeneous
from ....training.train import train
from ..limits.kernel_floor import (
    block_directions,
    degree_floor,
    feature_loss,
    hard_family,
    kernel_floor,
)
from ..theorems.kernels import KernelLowerBound
from .ridge import kernels, ridge_losses
from .stage_runs import teacher_of

HARD = 8  # dimension of the hard family: all 35 splits into two blocks of four
RATIOS = {(30, 10000): 50.0, (16, 2816): 40.0}
"""By (d, n), how far below the best kernel the network must be. 50: the specification's. 40: half
of what other seeds gave (81).
"""
LEVELS = {
    (30, 1000): (0.040, 0.050),
    (30, 3000): (0.040, 0.050),
    (16, 1000): (0.036, 0.050),
    (16, 2816): (0.028, 0.040),
}
"""By (d, n), the range of d × loss of the NTK: at d = 30 the specification's, at d = 16 15 % around
other seeds' 0.042 and 0.034.
"""


@dataclass(frozen=True)
class Settings:
    dimensions: tuple[int, ...] = (16,)
    samples: tuple[int, ...] = (352, 1000, 2816)
    units: int = 1000
    tests: int = 3000
    network_time: float = 1200.0
    network_rate: float = 0.3
    counts: tuple[int, ...] = (0, 5, 10, 20, 30, 34)
    seeds: int = 1


def run(settings: Settings, key, session) -> xr.Dataset:
    names = list(kernels(2, 1, np.random.default_rng(0)))
    shape = (len(settings.dimensions), len(settings.samples), settings.seeds)
    kernel_loss, network_loss = np.full((*shape, len(names)), np.nan), np.full(shape, np.nan)
    total, done = math.prod(shape[:2]) + 1, 0
    for i, d in enumerate(settings.dimensions):
        for j, n in enumerate(settings.samples):
            session.progress(done, total, f"d = {d}, n = {n}")
            for seed in range(settings.seeds):
                part = named_key(key, "kernels", d, n, seed)
                kernel_loss[i, j, seed] = _kernels(settings, part, d, n)
                network_loss[i, j, seed] = _network(
                    settings, part, d, n, session.within(done, total)
                )
            done += 1
    session.progress(done, total, "hard family")
    feature_mean, family_mean = _hard(settings, named_key(key, "hard"))
    return xr.Dataset(
        {
            "kernel_loss": (
                ("dimension", "samples", "seed", "kernel"),
                kernel_loss,
                {"label": "test loss of kernel ridge"},
            ),
            "network_loss": (
                ("dimension", "samples", "seed"),
                network_loss,
                {"label": "population loss of the network"},
            ),
            "feature_mean": (
                "count",
                feature_mean,
                {"label": "mean best loss over the family, |·| features"},
            ),
            "family_mean": (
                ("count", "kernel"),
                family_mean,
                {"label": "mean test loss over the family, kernel ridge"},
            ),
            "family_floor": ("count", [kernel_floor(HARD, 4, n, 35) for n in settings.counts]),
        },
        {
            "dimension": list(settings.dimensions),
            "samples": list(settings.samples),
            "seed": np.arange(settings.seeds),
            "kernel": names,
            "count": list(settings.counts),
        },
        {"loss": "mean of squares", "network_time": settings.network_time, "width": "4 d"},
    )


def _draws(settings: Settings, key, d: int, sizes) -> list[np.ndarray]:
    return [
        np.asarray(jax.random.normal(named_key(key, "inputs", i), (n, d)), dtype=np.float64)
        for i, n in enumerate(sizes)
    ]


def _kernels(settings: Settings, key, d: int, n: int) -> list[float]:
    teacher = teacher_of(d)
    inputs = _draws(settings, key, d, (n, settings.tests // 2, settings.tests))
    sets = [(x, np.asarray(teacher.targets(x))[:, None]) for x in inputs]
    rng = np.random.default_rng(np.asarray(jax.random.key_data(named_key(key, "features"))))
    return [
        float(ridge_losses(k, centred, *sets)[0])
        for k, centred in kernels(d, settings.units, rng).values()
    ]


def _network(settings: Settings, key, d: int, n: int, session) -> float:
    """The population loss of a network of width 4d after full-batch descent on as many samples."""
    teacher = teacher_of(d)
    net = Homogeneous.init(named_key(key, "net"), features=d, width=4 * d)
    steps = math.ceil(settings.network_time / settings.network_rate)
    run = train(
        net,
        teacher.sample(named_key(key, "data"), n),
        GradientDescent(settings.network_rate),
        steps=steps,
        every=steps,
        loss=MeanSquares(),
        precision="float32",
        session=session,
    )
    return float(teacher.objective().value(run.model))


def _hard(settings: Settings, key) -> tuple[list[float], list[list[float]]]:
    """Mean over the family of the best loss with so many features, and of every kernel's ridge with
    so many samples.
    """
    a = np.full(HARD, 1 / HARD)
    targets = [block_directions(blocks) for blocks in hard_family(HARD, 4)]
    (units,) = _draws(settings, named_key(key, "units"), HARD, (max(settings.counts),))
    exact = [
        float(np.mean([feature_loss(units[:n], a, v) for v in targets])) for n in settings.counts
    ]
    rng = np.random.default_rng(np.asarray(jax.random.key_data(named_key(key, "features"))))
    methods = kernels(HARD, settings.units, rng)
    ridge = []
    for n in settings.counts:
        sizes = (max(n, 1), settings.tests // 2, settings.tests)
        inputs = _draws(settings, named_key(key, "ridge", n), HARD, sizes)
        sets = [(x, np.stack([np.abs(x @ v.T) @ a for v in targets], axis=1)) for x in inputs]
        losses = [float(ridge_losses(k, centred, *sets).mean()) for k, centred in methods.values()]
        ridge.append(losses if n else [exact[0]] * len(methods))
    return exact, ridge


def _enough(d: float, n: float) -> bool:
    """Samples from which the network of width 4d leaves the plateau: 11 d² (the paper's figures
    have 11.1 d²).
    """
    return n >= 11 * d**2


def draw(table: xr.Dataset) -> FigureSpec:
    panels = [_against_samples(table, float(d)) for d in table.dimension.values]
    if table.sizes["dimension"] > 1:
        panels.append(_against_dimension(table))
    panels.append(_family(table))
    return FigureSpec("Kernels against the network", panels, caption=_caption(table))


def _against_samples(table: xr.Dataset, d: float) -> Panel:
    n = table.samples.values
    network = d * table.network_loss.sel(dimension=d).mean("seed").values
    lines = [
        _line(n, d * table.kernel_loss.sel(dimension=d, kernel=k).mean("seed").values, str(k))
        for k in table.kernel.values
    ]
    floors = [
        HLine(d * degree_floor(np.full(int(d), 1 / d), p), f"degree-{p} floor") for p in (2, 4)
    ]
    marks = [
        Line(n, network, "network, m = 4d", dash="dashed", group="network"),
        Points(n, network, "network, m = 4d", size=8.0, group="network"),
    ]
    return Panel(f"d = {int(d)}", "samples n", "d × loss", [*marks, *lines, *floors], "log", "log")


def _line(x, y, kernel: str) -> Line:
    """The curve of a kernel; the two kinds of random features share a colour, so that eight colours
    do.
    """
    random = kernel.endswith("features")
    return Line(
        x,
        y,
        "random features (relu, abs)" if random else kernel,
        group="random" if random else kernel,
    )


def _against_dimension(table: xr.Dataset) -> Panel:
    dims, n = table.dimension.values, table.samples.values
    middle = max(int(np.searchsorted(n, 1000, side="right")) - 1, 0)
    curves = [
        Line(
            dims,
            dims * table.kernel_loss.isel(samples=middle).sel(kernel=k).mean("seed").values,
            str(k),
        )
        for k in ("NTK", "RBF", "Laplace", "poly4")
    ]
    title = f"Against the dimension, n = {int(n[middle])}"
    floor = HLine(1 - 3 / np.pi, "degree-two floor")
    return Panel(title, "dimension d", "d × loss", [*curves, floor])


def _family(table: xr.Dataset) -> Panel:
    count = table["count"].values
    kernel_lines = [
        _line(count, table.family_mean.sel(kernel=k).values, str(k)) for k in table.kernel.values
    ]
    bound = [
        Line(count, table.feature_mean.values, "best |·| features (exact)", dash="dashed"),
        Line(
            count,
            np.maximum(table.family_floor.values, 1e-7),
            "floor (1 − N/H) C₄/d",
            dash="dotted",
        ),
    ]
    title = f"Hard family of 35 targets, d = {HARD}"
    return Panel(
        title, "functions N", "mean loss over the family", [*kernel_lines, *bound], yscale="log"
    )


def _caption(table: xr.Dataset) -> str:
    """What this run shows at its largest dimension, in numbers."""
    d, n = float(table.dimension.values[-1]), int(table.samples.values[-1])
    floor = degree_floor(np.full(int(d), 1 / d), 2)
    best = float(table.kernel_loss.sel(dimension=d, samples=n).mean("seed").min()) / floor
    network = float(table.network_loss.sel(dimension=d, samples=n).mean("seed")) / floor
    return (
        f"d = {d:g}, n = {n}: the best kernel is at {best:.2g} of the degree-two floor, the "
        f"network at {network:.2g}. "
        "The floor is what degree two attains, not a strict bound on kernels; the dotted line on "
        "the right is one. "
        "With fewer than about 11 d² samples the network fits them and stays on its plateau, "
        "about where the kernels are."
    )


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    return (*_family_claims(table), *_ratio_claims(table), *_level_claims(table))


def _family_claims(table: xr.Dataset) -> list[Claim]:
    counts = table["count"].values.tolist()
    excess = (table.family_mean - table.family_floor).min("count")
    worst = str(excess.kernel.values[int(np.argmin(excess.values))])
    exact = [
        KernelLowerBound()([table.feature_mean.sel(count=n)], n, HARD, family=35).margin
        for n in counts
        if n < 35
    ]
    return [
        Claim(
            "Theorem 1.2: no set of |·| features beats the floor of the hard family (smallest "
            "relative excess)",
            min(exact),
            at_least=0.0,
        ),
        Claim(
            f"nor does ridge regression with any of the eight kernels (smallest excess, {worst})",
            float(excess.min()),
            at_least=0.0,
        ),
    ]


def _ratio_claims(table: xr.Dataset) -> list[Claim]:
    """The network against the best kernel where it has samples enough; 50 at d = 30, n = 10⁴ is the
    specification's.
    """
    claims = []
    for d in table.dimension.values.astype(float):
        for n in table.samples.values.tolist():
            if d < 16 or not _enough(d, n):
                continue
            loss = table.kernel_loss.sel(dimension=d, samples=n).mean("seed")
            network = table.network_loss.sel(dimension=d, samples=n)
            bound = RATIOS.get((int(d), int(n)), 5.0)
            claims.append(
                Claim(
                    f"d = {d:g}, n = {n}: the best kernel's loss over the network's (worst seed)",
                    float(loss.min() / network.max()),
                    at_least=bound,
                )
            )
    return claims


def _level_claims(table: xr.Dataset) -> list[Claim]:
    """d × loss of the tangent kernel for n well above d and well below d⁴."""
    loss, claims = table.kernel_loss.mean("seed"), []
    for (d, n), (low, high) in LEVELS.items():
        if d in table.dimension.values and n in table.samples.values:
            value = d * float(loss.sel(dimension=d, samples=n, kernel="NTK"))
            text = f"d = {d}, n = {n}: d × loss of the NTK"
            claims.append(Claim(text, value, at_least=low, at_most=high))
    return claims


EXPERIMENT = Experiment(
    name="li2020-kernels",
    paper="li2020",
    title="Kernels against the network",
    figure="Theorem 1.2",
    settings={
        "smoke": Settings(
            dimensions=(8,),
            samples=(50, 200),
            units=200,
            tests=1000,
            network_time=250.0,
            counts=(0, 10, 30),
        ),
        "default": Settings(),
        "paper": Settings(
            dimensions=(20, 30, 40),
            samples=(1000, 3000, 10000),
            tests=10000,
            network_time=9000.0,
            seeds=2,
        ),
    },
    run=run,
    draw=draw,
    claims=claims,
)
