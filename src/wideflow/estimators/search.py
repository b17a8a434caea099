r"""Training with an eye on held-out rows: when to stop, when to lower the rate, and the same path
again on all rows.

**Adam** falls along a cosine, so a run cannot be cut short: its length is chosen instead. Runs from
the same start, each `LONGER` times as long as the one before, the last of `epochs`, are tried until
one brings no gain; the best length is then run once more on all rows.

**The other solvers** have a constant rate. The validation loss is looked at after every epoch at
first and then after every twentieth of what has been done (for the flow, whose steps grow with
time, every half), so that an early minimum is not passed over. Without gain for `patience` epochs
(and for as many as led to the best network) a solver with noise goes on from the best network at a
fifth of the rate, twice; then it ends. What was found, the epochs at each rate, is a plan that is
followed once more from the same start on all rows.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp

from .._core.status import Status
from ..data.dataset import Dataset
from ..dynamics.descent import GradientDescent
from ..dynamics.flow import GradientFlow
from ..dynamics.sgd import SGD
from ..models.shallow import Shallow
from ..training.train import train
from .adam import Adam

GROWTH = {"sgd": 0.05, "descent": 0.05, "flow": 0.5}  # the next look, as a share of the epochs done
CUT, CUTS = 5.0, 2  # the rate is divided by CUT, so many times; for SGD alone
LATER = 0.1  # of the patience, once the rate has been lowered
GAIN = 1e-4  # a smaller relative gain counts as none
LONGER, SHORTEST = (
    4,
    8,
)  # Adam's lengths: each so many times the one before, the first at least so many epochs
# relative fall of the validation loss by the last lengthening beyond which still longer runs are
# worth it
WORTH = 0.1
# relative fall of the loss over the last stretch below which a run at a constant rate is done
SETTLED = 0.01
FITTED = 1e-4  # of the first loss; a run that came this far has nothing left to learn
TAIL = 0.1  # share of a run at a constant rate over which its last fall is measured


class Stage(NamedTuple):
    """So many epochs at one rate."""

    rate: float
    epochs: int


class Found(NamedTuple):
    """A trained network, the stages that led to it, the losses on the way, and whether the cap on
    epochs cut training short.
    """

    net: Shallow
    plan: tuple[Stage, ...]
    losses: list[float]
    validation: list[float]
    cut_short: bool


def follow(settings, net: Shallow, data: Dataset, loss, plan: Sequence[Stage], seed: int):
    """The plan on `data` without looking at anything else; None where it diverged."""
    losses, done, falling = [], 0, True
    for stage in plan:
        if stage.epochs:
            moved = _move(settings, net, data, loss, stage, seed + done)
            if moved is None:
                return None
            net, value, falling = moved
            losses.append(value)
            done += stage.epochs
    return Found(net, tuple(plan), losses, [], done >= settings.epochs and falling)


def search(
    settings, net: Shallow, data: Dataset, test: Dataset, loss, rate: float, seed: int
) -> Found | None:
    """The network with the best loss on `test`, and the plan that leads to it; None where training
    diverged.
    """
    by = _best_length if settings.solver == "adam" else _best_moment
    return by(settings, net, data, test, loss, rate, seed)


def lengths(epochs: int) -> list[int]:
    """Adam's lengths in epochs, shortest first; the last is the cap."""
    chain = [epochs]
    while chain[-1] // LONGER >= SHORTEST:
        chain.append(chain[-1] // LONGER)
    return chain[::-1]


def _best_length(settings, start, data, test, loss, rate, seed) -> Found | None:
    """Runs of growing length from the same start, until one brings no gain on `test`."""
    best, losses, validation = None, [], []
    for epochs in lengths(settings.epochs):
        stage = Stage(rate, epochs)
        moved = _move(settings, start, data, loss, stage, seed)
        if moved is None:
            return None
        value = _value(moved[0], test, loss)
        if not math.isfinite(value):
            return None
        before = min(validation, default=math.inf)
        losses.append(moved[1])
        validation.append(value)
        if value >= before * (1 - GAIN):
            break
        cut_short = epochs == settings.epochs and value < before * (1 - WORTH) and moved[2]
        best = Found(moved[0], (stage,), losses, validation, cut_short)
    return best


def _best_moment(settings, net, data, test, loss, rate, seed) -> Found | None:
    """One run at a constant rate, lowered when the loss on `test` no longer falls."""
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
        value = _value(net, test, loss)
        losses.append(moved[1])
        validation.append(value)
        if not math.isfinite(value):
            return None
        if value < best_loss * (1 - GAIN):
            best, best_loss, best_plan, since = net, value, plan, 0
        elif since >= _patience(settings, plan, best_plan):
            if len(plan) > cuts:
                return Found(best, best_plan, losses, validation, False)
            net, since = best, 0
            plan = (*best_plan, *_lowered(plan, len(best_plan)))
    return Found(best, best_plan, losses, validation, True)


def _value(net: Shallow, data: Dataset, loss) -> float:
    return float(loss(jnp.asarray(net.outputs(data.inputs)), jnp.asarray(data.targets)))


def _epochs(plan: Sequence[Stage]) -> int:
    return sum(stage.epochs for stage in plan)


def _patience(settings, plan, best_plan) -> float:
    if len(plan) > 1:
        return LATER * settings.patience
    return max(settings.patience, _epochs(best_plan))


def _lowered(plan: Sequence[Stage], used: int) -> tuple[Stage, ...]:
    """Empty stages at the rates that brought nothing, and one at the next lower rate."""
    return (*(Stage(s.rate, 0) for s in plan[used:]), Stage(plan[-1].rate / CUT, 0))


def _move(settings, net: Shallow, data: Dataset, loss, stage: Stage, key: int):
    """The network after a stage, its training loss, and whether that loss was still falling; None
    where it diverged.
    """
    length: dict[str, Any]  # in time for a flow, in steps for the rest
    if settings.solver == "flow":
        dynamics, length = GradientFlow(1e-3), {"time": stage.epochs * stage.rate}
    elif settings.solver == "descent":
        dynamics, length = GradientDescent(stage.rate), {"steps": stage.epochs}
    else:
        batch = min(settings.batch, len(data))
        adam = settings.solver == "adam"
        # Adam leaves the rest of a shuffled pass out, SGD takes it as a smaller batch
        steps = stage.epochs * (len(data) // batch if adam else -(-len(data) // batch))
        dynamics = Adam(stage.rate, batch, decay=steps) if adam else SGD(stage.rate, batch)
        length = {"steps": steps}
    (end,) = length.values()
    tail = end * TAIL if settings.solver == "flow" else max(1, int(end * TAIL))
    marks = [0, end - tail, end] if end > tail else [0, end]
    run = train(net, data, dynamics, **length, loss=loss, every=marks, key=key, precision="float32")
    if run.status in (Status.DIVERGED, Status.STALLED):
        return None
    values = run.table["loss"].values
    first, before, last = values[0], values[-2], values[-1]
    # a rate that falls to zero ends every run at rest: only a perfect fit shows that nothing is
    # left
    falling = last > FITTED * first and (settings.solver == "adam" or last < before * (1 - SETTLED))
    return run.model, float(last), bool(falling)
