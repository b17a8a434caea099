"""One call that trains and puts every statement of chen2022 beside the run."""

from dataclasses import dataclass

import jax.numpy as jnp
import xarray as xr

from ...._core.precision import double
from ....dynamics.descent import GradientDescent
from ....dynamics.flow import GradientFlow
from ....models.embeddings import DeepRandomFeatures, RandomFeatures
from ....models.shallow import Shallow
from ....theorems.base import Verdict
from ....training.recorder import Logarithmic
from ....training.train import train
from ..observables.activity import safe_rate
from .constants import suggested_interval
from .convergence import Corollary1, Lemma4, Theorem1, Theorem2, Theorem3
from .identities import MonotoneLoss, MovementBound, PolyakLojasiewicz
from .initial import Lemma2, Lemma3
from .lemma1 import Certificate, Lemma1, Lemma1Steps
from .problem import record


@dataclass(frozen=True)
class FullCheck:
    """The run's table and the verdict on every statement, by name.

    Attributes:
        table: everything recorded.
        verdicts: by the name of the lemma or theorem.
    """

    table: xr.Dataset
    verdicts: dict[str, Verdict]

    def __str__(self) -> str:
        return "\n".join(f"{name:22} {verdict}" for name, verdict in self.verdicts.items())


@double
def full_check(
    start: Shallow,
    data,
    *,
    time: float | int,
    failure_probability: float | int = 0.1,
    interval=None,
) -> FullCheck:
    """Trains `start` on the half sum of squares up to `time` and judges every lemma and theorem on
    that run.

    `interval` is by default the one that minimises $\\beta$ for the mean variance of the
    pre-activations. Smooth activations run by gradient flow; for kinked ones descent with a
    twentieth of the stable rate stands for the flow.

    Args:
        data: the training set.
        failure_probability: $p$, allowed to each statement about random starts.
    """
    if interval is None:
        variance = float(jnp.mean(jnp.diagonal(start.embedding.gram(data.inputs))))
        interval = suggested_interval(start.activation, variance)
    if start.activation.kinks:
        dynamics = GradientDescent(safe_rate(start, data, 0.05))
        first = max(1.0, float(time / dynamics.rate) / 1e4)
    else:
        dynamics, first = GradientFlow(1e-10), time / 1e4
    run = train(
        start, data, dynamics, time=time, record=record(interval), every=Logarithmic(15, first)
    )
    table, options = run.table, {"failure_probability": failure_probability, "interval": interval}
    verdicts = {
        "MonotoneLoss": MonotoneLoss()(start, data, table),
        "MovementBound": MovementBound()(start, run.model, data.inputs),
        "PolyakLojasiewicz": PolyakLojasiewicz()(start, data, table),
        "Lemma1": Lemma1()(start, data, table, interval=interval),
        "Lemma1 sharp": Lemma1()(start, data, table, interval=interval, variant="sharp"),
        "Lemma1Steps": Lemma1Steps()(start, data, table, interval=interval),
        "Certificate": Certificate()(start, data, table, interval=interval),
        "Lemma2": Lemma2()(start, data, failure_probability=failure_probability),
        "Lemma3": Lemma3()(start, data, **options),
        "Theorem1": Theorem1()(start, data, table, **options),
        "Corollary1": Corollary1()(start, data, table, **options),
    }
    embedding = start.embedding
    if isinstance(embedding, RandomFeatures | DeepRandomFeatures):
        verdicts["Theorem2"] = Theorem2()(start, data, table=table, **options)
    if isinstance(embedding, RandomFeatures):
        verdicts["Lemma4"] = Lemma4()(start, data, failure_probability=failure_probability)
        verdicts["Theorem3"] = Theorem3()(start, data, table, **options)
    return FullCheck(table, verdicts)
