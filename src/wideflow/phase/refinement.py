r"""Where to run next.

The first round is a coarse lattice, each point on two folds. From then on every run goes where it
tells most, by turns:

- *the best*: a draw from the posterior of the error surface (Thompson sampling) is minimised. A
  place that may well be the best is drawn often, so that runs gather there, on new points first and
  then on further folds of the same;
- *the borders*: where the kernel change may cross lazy | between | rich, the place of largest
  $1.96\,\sigma - |\mu - \log b|$ (the straddle rule for level sets), $b$ the nearer border.

The last runs complete the folds of the best points, over all and of each regime, so that what is
said of them rests on all folds.

Draws are seeded by the round, so that a plane that was killed asks for the same runs again and
finds them.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from ..observables.regime import LAZY, RICH
from .axes import Axis
from .measurements import Measurements, error_surface, regime_surface

FIRST_FOLDS = 2  # of every new point: the fewest that say anything about noise
BORDERS = 4  # every fourth new run goes to the borders of the regimes (chosen)
COARSE = 0.5  # share of the runs that the first round may take (chosen)
Place = tuple[int, int]
RunAt = tuple[Place, int]  # a place of the lattice and a fold


def coarse(axes: tuple[Axis, Axis], runs: int) -> list[Place]:
    """The first round: as fine an even lattice as half of the runs allow, ends and corners
    included.
    """
    most = max(4, int(COARSE * runs) // FIRST_FOLDS)
    sizes = [len(axis.values) for axis in axes]
    counts = [2, 2]
    while True:
        longer = [i for i in (0, 1) if counts[i] < sizes[i]]
        longer.sort(key=lambda i: (counts[i] - 1) / (sizes[i] - 1))  # the coarser axis first
        axis = next((i for i in longer if (counts[i] + 1) * counts[1 - i] <= most), None)
        if axis is None:
            break
        counts[axis] += 1
    first, second = (
        np.unique(np.round(np.linspace(0, size - 1, count)).astype(int))
        for size, count in zip(sizes, counts, strict=True)
    )
    return [(int(i), int(j)) for i in first for j in second]


def first_round(axes: tuple[Axis, Axis], runs: int) -> list[RunAt]:
    """The coarse lattice on the first folds."""
    return [(place, fold) for fold in range(FIRST_FOLDS) for place in coarse(axes, runs)]


def next_round(
    axes: tuple[Axis, Axis],
    measured: Measurements,
    done: Sequence[RunAt],
    count: int,
    folds: int,
    seed: int,
) -> list[RunAt]:
    """At most `count` further runs; fewer, or none, where nothing is left to ask.

    Args:
        measured: what the runs so far gave.
        done: all that was asked so far, whatever became of it.
        folds: runs that one point may have.
    """
    places = [(i, j) for i in range(len(axes[0].values)) for j in range(len(axes[1].values))]
    unit = np.array([[axes[0].unit[i], axes[1].unit[j]] for i, j in places])
    generator = np.random.default_rng([seed, len(done)])
    errors, changes = error_surface(measured, unit), regime_surface(measured, unit)
    used = Counter(place for place, _ in done)
    open_ = np.array([used[place] < folds for place in places])
    factor = _root(errors.covariance)
    batch: list[RunAt] = []
    turn = 0
    while len(batch) < count and open_.any():
        turn += 1
        if turn % BORDERS == 0:
            merit = _straddle(changes, batch_places=[places.index(place) for place, _ in batch])
            merit[[used[place] > 0 for place in places]] = -np.inf  # borders need no further folds
        else:
            draw = errors.mean + factor @ generator.standard_normal(factor.shape[1])
            merit = -draw
        merit = np.where(open_, merit, -np.inf)
        if not np.isfinite(merit).any():
            if turn > 4 * count:  # neither search finds an open point any more (chosen)
                break
            continue
        at = int(np.argmax(merit))
        place = places[at]
        new = FIRST_FOLDS if used[place] == 0 else 1
        if len(batch) + new > count:
            break
        for _ in range(new):
            batch.append((place, used[place]))
            used[place] += 1
        open_[at] = used[place] < folds
    return batch


def closing_runs(folds: int) -> int:
    """How many runs are kept for the end: all folds of the best point, and of the best lazy and
    rich ones.
    """
    return 3 * (folds - FIRST_FOLDS)


def closing_round(
    points: Sequence[Place], measured: Measurements, done: Sequence[RunAt], count: int, folds: int
) -> list[RunAt]:
    """At most `count` runs that complete the folds of the best points: over all, then lazy, then
    rich, then the next best.
    """
    levels = measured.best_levels()
    smooth = np.where(levels >= 0, error_surface(measured, measured.places).mean, np.inf)
    change = np.exp(regime_surface(measured, measured.places).mean)
    order = np.argsort(smooth)
    first = [
        order[:1],
        [i for i in order if change[i] < LAZY][:1],
        [i for i in order if change[i] > RICH][:1],
    ]
    used = Counter(place for place, _ in done)
    pending: list[RunAt] = []
    for i in dict.fromkeys(int(i) for group in (*first, order[1:]) for i in group):
        if np.isfinite(smooth[i]):
            pending += [(points[i], fold) for fold in range(used[points[i]], folds)]
    return pending[:count]


def _straddle(changes, batch_places: list[int]) -> np.ndarray:
    """How much a run would tell of the regimes' borders; runs already chosen in this round tell as
    much as they will.
    """
    borders = np.log([LAZY, RICH])
    covariance = changes.covariance
    for at in batch_places:  # condition on a run there: only variances change
        column = covariance[:, at]
        covariance = covariance - np.outer(column, column) / max(column[at], 1e-12)
    deviation = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    away = np.min(np.abs(changes.mean[:, None] - borders), axis=1)
    return 1.96 * deviation - away


def _root(covariance: np.ndarray) -> np.ndarray:
    """A square root of a covariance that rounding may have left slightly indefinite."""
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    return vectors * np.sqrt(np.maximum(values, 0.0))
