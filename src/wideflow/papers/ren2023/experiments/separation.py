r"""Two layers against three on the same task (ren2023, Theorem 2.1 and the lower bound that it
cites).

Two-layer networks $f(x) = \sum_i a_i\, \mathrm{ReLU}(w_i\cdot x + b_i) + c$ of growing width,
trained by Adam with warm-up and cosine decay, best of several rates, against the three-layer
learner under the clipped flow; law: the Bessel law given $r \le 3$ (on the whole law a two-layer
network has infinite loss unless its slope vanishes in almost every direction). Loss
$\frac12 E(f_* - f)^2$ on fresh samples against the number of parameters.

The lower bound is asymptotic (accuracy of order $d^{-6}$); nothing at $d \le 100$ can confirm or
refute it. This is an illustration: at equal parameters the learner, which is built for radial
targets, is far ahead, and the two-layer loss falls slowly with width.

Run:  wideflow run ren2023-separation
Takes:  default about 2 min on two cores, paper about 20 min
"""

import functools
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr

from ...._core.precision import double
from ...._core.randomness import named_key
from ....experiments.base import Claim, Experiment
from ....experiments.spread import standard_error
from ....figures import FigureSpec, HLine, Line, Panel, Points
from ....training.train import train
from ..clipped_flow import ClippedFlow
from ..depth_separator import DepthSeparator
from ..estimators import radial_target
from ..laws.base import sphere
from ..laws.bessel import BesselLaw
from ..laws.truncated import Truncated
from ..population import Radial


@dataclass(frozen=True)
class Settings:
    dimensions: tuple[int, ...] = (10,)
    widths: tuple[int, ...] = (64, 256)
    rates: tuple[float, ...] = (1e-2,)  # the best of 1e-3, 3e-3, 1e-2 at every width
    radius: float = 3.0
    batch: int = 512
    steps: int = 3000
    warmup: int = 100
    three_width: int = 256
    three_second: int = 32
    three_rate: float = 0.5
    evaluation: int = 40000
    seeds: int = 1


@double
def run(settings: Settings, key, session) -> xr.Dataset:
    shape = (len(settings.dimensions), settings.seeds)
    two = np.zeros((*shape, len(settings.widths), len(settings.rates)))
    three, constant = np.zeros(shape), np.zeros(len(settings.dimensions))
    total = len(settings.dimensions) * settings.seeds * (1 + len(settings.widths))
    done = 0
    for i, d in enumerate(settings.dimensions):
        law = Truncated(BesselLaw(d), settings.radius)
        mean, square = law.target_moments()
        constant[i] = (square - mean**2) / 2
        test = law.inputs(named_key(key, "test", d), settings.evaluation, stratified=True).astype(
            jnp.float32
        )
        for seed in range(settings.seeds):
            here = named_key(key, "seed", seed, "dimension", d)
            three[i, seed] = _three_layers(law, settings, here, test, session.within(done, total))
            done += 1
            session.progress(done, total, f"d = {d}, three layers")
            for j, width in enumerate(settings.widths):
                start = _two_layer_start(named_key(here, "two", width), width, d)
                for k, rate in enumerate(settings.rates):
                    end = _adam(
                        law,
                        start,
                        rate,
                        named_key(here, "adam"),
                        settings.batch,
                        settings.steps,
                        settings.warmup,
                    )
                    two[i, seed, j, k] = float(_loss(end, test))
                done += 1
                session.progress(done, total, f"d = {d}, two layers, width {width}")
    d = np.asarray(settings.dimensions)
    return xr.Dataset(
        {
            "two": (("dimension", "seed", "width", "rate"), two),
            "three": (("dimension", "seed"), three),
            "constant": ("dimension", constant),
            "two_parameters": (
                ("dimension", "width"),
                np.asarray(settings.widths) * (d[:, None] + 2) + 1,
            ),
            "three_parameters": ("dimension", settings.three_width * d + 2 * settings.three_second),
        },
        {
            "dimension": d,
            "seed": np.arange(settings.seeds),
            "width": list(settings.widths),
            "rate": list(settings.rates),
        },
        {"steps": settings.steps},
    )


def _three_layers(law, settings: Settings, key, test, session) -> float:
    net = DepthSeparator.init(
        named_key(key, "net"),
        features=law.d,
        width=settings.three_width,
        second=settings.three_second,
        radius=1.0,
        deviation=1e-3,
    )
    population = Radial.fresh(law, settings.batch, stratified=True, evaluation=1024)
    flow = ClippedFlow(settings.three_rate)
    end = train(
        net,
        population,
        flow,
        steps=settings.steps,
        every=settings.steps,
        key=named_key(key, "flow"),
        precision="float32",
        session=session,
    ).model
    return float(0.5 * jnp.mean((end.outputs(test) - radial_target(test)) ** 2))


def _two_layer_start(key, width: int, d: int) -> dict:
    normal = lambda name: jax.random.normal(named_key(key, name), (width,), dtype=jnp.float32)
    hidden = sphere(named_key(key, "hidden"), width, d).astype(jnp.float32)
    return {
        "w": hidden.T,
        "b": 0.3 * normal("bias"),
        "a": 0.3 * normal("output") / width**0.5,
        "c": jnp.zeros((), jnp.float32),
    }


def _loss(net: dict, inputs):
    outputs = jnp.maximum(inputs @ net["w"] + net["b"], 0) @ net["a"] + net["c"]
    return 0.5 * jnp.mean((outputs - radial_target(inputs)) ** 2)


def _adam(law, net, rate, key, batch: int, steps: int, warmup: int):
    """Adam on fresh stratified samples: linear warm-up, then cosine decay to zero."""
    return _adam_compiled(batch, steps, warmup)(law, net, jnp.asarray(rate, jnp.float32), key)


@functools.cache
def _adam_compiled(batch: int, steps: int, warmup: int):
    shape = optax.warmup_cosine_decay_schedule(0.0, 1.0, warmup, steps)
    adam = optax.scale_by_adam()

    @eqx.filter_jit
    def train_two(law, net, rate, key):
        def step(carry, k):
            net, state = carry
            inputs = law.inputs(jax.random.fold_in(key, k), batch, stratified=True).astype(
                jnp.float32
            )
            update, state = adam.update(jax.grad(_loss)(net, inputs), state)
            size = (rate * shape(k)).astype(jnp.float32)
            return (jax.tree.map(lambda p, u: p - size * u, net, update), state), None

        return jax.lax.scan(step, (net, adam.init(net)), jnp.arange(steps))[0][0]

    return train_two


def draw(table: xr.Dataset) -> FigureSpec:
    panels = []
    best = table.two.min("rate")
    for i, d in enumerate(table.dimension.values):
        marks = [
            Line(
                table.two_parameters.isel(dimension=i).values,
                best.isel(dimension=i).mean("seed").values,
                group="two layers, best rate",
            ),
            Points(
                table.two_parameters.isel(dimension=i).values,
                best.isel(dimension=i).mean("seed").values,
                "two layers, best rate",
                errors=standard_error(best.isel(dimension=i)).values,
                group="two layers, best rate",
            ),
            Points(
                [float(table.three_parameters[i])],
                [float(table.three.isel(dimension=i).mean())],
                "three layers",
                errors=np.atleast_1d(standard_error(table.three.isel(dimension=i)).values),
            ),
            HLine(float(table.constant[i]), "best constant"),
        ]
        panels.append(
            Panel(
                f"d = {d}",
                "parameters",
                "L = ½ E (f* − f)² given r ≤ 3",
                marks,
                xscale="log",
                yscale="log",
            )
        )
    return FigureSpec(
        "Depth against width",
        panels,
        columns=min(2, len(panels)),
        caption="An illustration, not evidence for the asymptotic lower bound.",
    )


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    best = table.two.min("rate").mean("seed")
    statements = [
        Claim(
            "three-layer loss is below the best constant",
            float((table.three.mean("seed") / table.constant).max()),
            at_most=1.0,
        )
    ]
    if table.attrs["steps"] < 3000:
        return tuple(statements)
    statements.append(
        Claim(
            "two-layer loss (best rate) falls with width: largest ratio",
            float(
                (
                    best.isel(width=slice(1, None)).values / best.isel(width=slice(0, -1)).values
                ).max()
            ),
            at_most=1.0,
        )
    )
    if 10 in table.dimension.values and 256 in table.width.values:
        at = table.sel(dimension=10)
        two = float(at.two.min("rate").sel(width=256).mean())
        statements += [
            Claim(
                "d = 10, about 3000 parameters: three-layer loss over two-layer loss",
                float(at.three.mean()) / two,
                at_most=0.2,
                note="the learner is built for this target; optimisers differ",
            ),
            Claim(
                "d = 10: three-layer loss",
                float(at.three.mean()),
                expected=1.52e-5,
                tolerance=0.06,
                relative=True,
                note="five seeds gave 1.49e-5 to 1.55e-5; three times that range is allowed",
            ),
            Claim(
                "d = 10: two-layer loss at width 256",
                two,
                expected=3.955e-4,
                tolerance=0.042,
                relative=True,
                note="four seeds gave 3.90e-4 to 4.01e-4; three times that range is allowed",
            ),
        ]
    return tuple(statements)


EXPERIMENT = Experiment(
    name="ren2023-separation",
    paper="ren2023",
    title="Two layers against three",
    figure="Theorem 2.1 (separation)",
    settings={
        "smoke": Settings(
            dimensions=(5,),
            widths=(16,),
            batch=64,
            steps=120,
            warmup=10,
            three_width=32,
            three_second=8,
            evaluation=1024,
        ),
        "default": Settings(),
        "paper": Settings(
            dimensions=(10, 30), widths=(64, 256, 1024), rates=(1e-3, 3e-3, 1e-2), seeds=2
        ),
    },
    run=run,
    draw=draw,
    claims=claims,
)
