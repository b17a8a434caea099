r"""Training with an eye on held-out rows: when to stop, when to lower the rate, and the same path again on all rows.

The validation loss is looked at after every epoch at first and then after every twentieth of what has been done (for the flow, whose steps grow with time,
every half), so that an early minimum is not passed over. Without gain for `patience` epochs (and for as many as led to the best network) a solver with noise goes on from the best network at a fifth of
the rate, twice; then it ends. What was found, the epochs at each rate, is a plan that is followed once more from the same start on all rows.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp

from .._core.status import Status
from ..data.dataset import Dataset
from ..dynamics.descent import GradientDescent
from ..dynamics.flow import GradientFlow
from ..dynamics.sgd import SGD
from ..models.shallow import Shallow
from ..training.train import train

GROWTH = {"sgd": 0.05, "descent": 0.05, "flow": 0.5}  # the next look, as a share of the epochs done
CUT, CUTS = 5.0, 2  # the rate is divided by CUT, so many times; for SGD alone
LATER = 0.1  # of the patience, once the rate has been lowered
GAIN = 1e-4  # a smaller relative gain counts as none


class Stage(NamedTuple):
    """So many epochs at one rate."""

    rate: float
    epochs: int


class Found(NamedTuple):
    """A trained network, the stages that led to it, and the losses on the way."""

    net: Shallow
    plan: tuple[Stage, ...]
    losses: list[float]
    validation: list[float]


def follow(settings, net: Shallow, data: Dataset, loss, plan: Sequence[Stage], seed: int):
    """The plan on `data` without looking at anything else; None where it diverged."""
    losses, done = [], 0
    for stage in plan:
        if stage.epochs:
            moved = _move(settings, net, data, loss, stage, seed + done)
            if moved is None:
                return None
            net, value = moved
            losses.append(value)
            done += stage.epochs
    return Found(net, tuple(plan), losses, [])


def search(
    settings, net: Shallow, data: Dataset, test: Dataset, loss, rate: float, seed: int
) -> Found | None:
    """The network with the best loss on `test`, and the plan that leads to it; None where training diverged."""
    best, best_loss, best_plan = net, math.inf, (Stage(rate, 0),)
    plan, since, done = best_plan, 0, 0
    losses, validation = [], []
    cuts = CUTS if settings.solver == "sgd" else 0
    while done < settings.epochs:
        count = max(1, math.ceil(GROWTH[settings.solver] * _epochs(plan)))
        count = min(count, settings.epochs - done)
        moved = _move(settings, net, data, loss, Stage(plan[-1].rate, count), seed + done)
        if moved is None:
            return None
        net, done, since = moved[0], done + count, since + count
        plan = (*plan[:-1], Stage(plan[-1].rate, plan[-1].epochs + count))
        value = float(loss(jnp.asarray(net.outputs(test.inputs)), jnp.asarray(test.targets)))
        losses.append(moved[1])
        validation.append(value)
        if not math.isfinite(value):
            return None
        if value < best_loss * (1 - GAIN):
            best, best_loss, best_plan, since = net, value, plan, 0
        elif since >= _patience(settings, plan, best_plan):
            if len(plan) > cuts:
                break
            net, since = best, 0
            plan = (*best_plan, *_lowered(plan, len(best_plan)))
    return Found(best, best_plan, losses, validation)


def _epochs(plan: Sequence[Stage]) -> int:
    return sum(stage.epochs for stage in plan)


def _patience(settings, plan, best_plan) -> float:
    if len(plan) > 1:
        return LATER * settings.patience
    return max(settings.patience, _epochs(best_plan))


def _lowered(plan: Sequence[Stage], kept: int) -> tuple[Stage, ...]:
    """Empty stages at the rates that brought nothing, and one at the next lower rate."""
    return (*(Stage(s.rate, 0) for s in plan[kept:]), Stage(plan[-1].rate / CUT, 0))


def _move(settings, net: Shallow, data: Dataset, loss, stage: Stage, key: int):
    """The network after a stage and its training loss; None where it diverged."""
    if settings.solver == "flow":
        dynamics, how = GradientFlow(1e-3), {"time": stage.epochs * stage.rate}
    elif settings.solver == "descent":
        dynamics, how = GradientDescent(stage.rate), {"steps": stage.epochs}
    else:
        batch = min(settings.batch, len(data))
        dynamics = SGD(stage.rate, batch)
        how = {"steps": stage.epochs * -(-len(data) // batch)}
    run = train(
        net, data, dynamics, **how, loss=loss, every=next(iter(how.values())), key=key, precision="float32",
    )  # fmt: skip
    if run.status in (Status.DIVERGED, Status.STALLED):
        return None
    return run.model, float(run.table["loss"].values[-1])
