r"""Lemma 1 beside real gradient flows, and how large output weights make the network lazy
(chen2022, Lemma 1 and Theorem 1).

One small tanh network at several magnitudes $\hat c$ of the output weights. Time is shown as
$\hat c^2 t$, since $K = \hat c^2\, G \circ A$. For each the two sides of
$(\eta^t)^{3/2} \ge (\tilde\eta^0)^{3/2} - \kappa (\sqrt{L^0} - \sqrt{L^t}) / \hat c$ are drawn with
the corrected and the sharp $\kappa$: at $\hat c = 1$ the right side is soon negative (vacuous), at
large $\hat c$ it certifies convergence, and there the features hardly move.

Run:  wideflow run chen2022-dashboard      Takes:  smoke 5 s, default 30 s on two cores
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from .... import data
from ...._core.randomness import named_key
from ...._core.scalings import MeanField
from ....dynamics.flow import GradientFlow
from ....experiments.base import Claim, Experiment
from ....figures import FigureSpec, HLine, Line, Panel, Points
from ....models.shallow import Shallow
from ....observables.movement import FeatureMovement
from ....training.recorder import Logarithmic
from ....training.train import train
from .. import theorems as chen2022
from .common import slope

VARIANTS = ("corrected", "sharp")


@dataclass(frozen=True)
class Settings:
    samples: int = 3
    features: int = 6
    width: int = 400
    magnitudes: tuple[float, ...] = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
    scaled_time: float = 20.0
    seeds: int = 1


def run(settings: Settings, key, session) -> xr.Dataset:
    sample = data.random_labels(named_key(key, "data"), settings.samples, settings.features)
    tables = []
    for i, magnitude in enumerate(settings.magnitudes):
        session.progress(i, len(settings.magnitudes), f"chat = {magnitude:g}")
        net = Shallow.init(
            named_key(key, "net"),
            features=settings.features,
            width=settings.width,
            scaling=MeanField(),
            activation="tanh",
            output_scale=magnitude,
            symmetric=True,
        )
        problem = chen2022.gather(net, sample)
        time = settings.scaled_time / magnitude**2
        flow = train(
            net,
            sample,
            GradientFlow(1e-10),
            time=time,
            record=(*chen2022.record(), FeatureMovement()),
            every=Logarithmic(8, time / 1e3),
            session=session.within(i, len(settings.magnitudes), f"chat = {magnitude:g}"),
        )
        table = flow.table
        out: dict[str, Any] = {
            name: ("record", table[name].values) for name in ("sum_loss", "eta", "feature_movement")
        }
        out["scaled_time"] = ("record", table["time"].values * magnitude**2)
        for variant in VARIANTS:
            kappa = chen2022.kappa(
                problem.smallest,
                problem.largest,
                problem.most,
                problem.floor,
                problem.interval,
                variant,
            )
            fallen = np.sqrt(table.sum_loss.values[0]) - np.sqrt(table.sum_loss.values)
            out[f"right_{variant}"] = (
                "record",
                problem.eta_tilde**1.5 - kappa / magnitude * fallen,
            )
            verdict = chen2022.Lemma1()(net, sample, table, variant=variant)
            out[f"slack_{variant}"], out[f"share_{variant}"] = (
                verdict.numbers["smallest_slack"],
                verdict.numbers["share_not_vacuous"],
            )
        certificate = chen2022.Certificate()(net, sample, table)
        theorem = chen2022.Theorem1()(net, sample)
        out["beta"], out["needed_chat"] = (
            certificate.numbers["beta"],
            theorem.numbers["needed_chat"],
        )
        out["certified_rate"] = certificate.numbers.get("certified_rate", np.nan) / magnitude**2
        out["certificate_holds"] = float(certificate.holds)
        tables.append(xr.Dataset(out))
    joined = xr.concat(tables, xr.DataArray(list(settings.magnitudes), dims="chat", name="chat"))
    attributes = {
        "loss": flow.table.attrs["loss"],
        "y_norm": float(np.linalg.norm(sample.targets)),
        "figure": "chen2022, Lemma 1",
    }
    return joined.assign_attrs(attributes)


def draw(table: xr.Dataset) -> FigureSpec:
    panels, shown = [], sorted({0, len(table.chat) // 2, len(table.chat) - 1})
    for i in shown:
        one = table.isel(chat=i)
        time = one.scaled_time.values[1:]
        lines = [Line(time, one.eta.values[1:] ** 1.5, "η^{3/2}")]
        lines += [
            Line(
                time,
                np.maximum(one[f"right_{v}"].values[1:], -0.2),
                f"lower bound, {v} κ",
                dash="dashed",
            )
            for v in VARIANTS
        ]
        panels.append(
            Panel(
                f"Lemma 1 at ĉ = {float(one.chat):g}",
                "ĉ² t",
                "both sides (cut at −0.2)",
                [*lines, HLine(0.0, "")],
                xscale="log",
            )
        )
    moved = table.feature_movement.isel(record=-1).values
    panels.append(
        Panel(
            "Feature movement at the end",
            "ĉ",
            "mean |h(T) − h(0)|",
            [Points(table.chat.values, moved, "measured")],
            xscale="log",
            yscale="log",
        )
    )
    betas = [
        Points(table.chat.values, table.beta.values, "β of the certificate"),
        HLine(1.0, "certified below"),
    ]
    panels.append(Panel("Certificate", "ĉ", "β", betas, xscale="log", yscale="log"))
    return FigureSpec(
        "When Lemma 1 says something", panels, columns=3, caption="loss: " + table.attrs["loss"]
    )


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    large = table.chat.values >= 30 * table.attrs["y_norm"]
    trend = slope(
        np.log(table.chat.values[large]),
        np.log(table.feature_movement.isel(record=-1).values[large]),
    )[0]
    statements = [
        Claim(
            f"Lemma 1, {v} κ: smallest slack over all magnitudes",
            float(table[f"slack_{v}"].min()),
            at_least=-1e-9,
        )
        for v in VARIANTS
    ]
    statements += [
        Claim(
            "movement falls like 1/ĉ once ĉ is far above ‖y‖: log-log slope",
            trend,
            expected=-1.0,
            tolerance=0.1,
        ),
        Claim(
            "at ĉ = 1 the corrected bound is vacuous on most of the run",
            float(table.share_corrected.isel(chat=0)),
            at_most=0.5,
        ),
        Claim(
            "at the largest ĉ it guarantees something throughout",
            float(table.share_corrected.isel(chat=-1)),
            at_least=1.0,
        ),
        Claim(
            "wherever β < 1 the certificate holds along the run",
            holds=bool((table.certificate_holds.values[table.beta.values < 1] == 1).all()),
        ),
        Claim("β of the largest ĉ", float(table.beta.isel(chat=-1)), at_most=1.0),
    ]
    return tuple(statements)


EXPERIMENT = Experiment(
    name="chen2022-dashboard",
    paper="chen2022",
    title="Lemma 1, the certificate and the lazy limit",
    figure="Lemma 1",
    settings={
        "smoke": Settings(width=100, magnitudes=(1.0, 30.0, 300.0, 3000.0), scaled_time=5.0),
        "default": Settings(),
        "paper": Settings(
            width=8192, magnitudes=(1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0)
        ),
    },
    run=run,
    draw=draw,
    claims=claims,
)
