r"""Which neurons win: basis-like neurons, the sets $S_{good}$, $S_{pot}$, $S_{bad}$, and how
predictable they are (li2020, App. A).

A priori sets are decided by the initial weights and a threshold $\Gamma_i$; a posteriori sets by
the weights at the time of interest. Coordinates are those of the target's basis:
$v_i = \langle w^*_i, v\rangle$ (`directions`, default the axes).
"""

import math
from dataclasses import dataclass

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ...._core.arrays import paired, real_values
from ...._core.errors import check_between, check_flag, check_kind, check_positive
from ....models.homogeneous import Homogeneous
from ....observables.base import AbstractObservable
from .tensors import target

B14 = 2 / (3 * math.pi)  # B_{1,4} = 8 c_4: the growth constant of order 4


def _coordinates(weights, directions, name: str = "weights") -> np.ndarray:
    w = _given_rows(weights, name)
    if directions is None:
        return w
    rows = real_values("directions", directions, f"(direction, {w.shape[1]})")
    return w @ np.asarray(rows, dtype=np.float64).T


def _given_rows(weights, name: str = "weights") -> np.ndarray:
    given = weights.weights if isinstance(weights, Homogeneous) else weights
    return np.asarray(real_values(name, given, "(width, feature)"), dtype=np.float64)


def _coefficients(given) -> np.ndarray:
    return np.asarray(real_values("coefficients", given, "(direction)"), dtype=np.float64)


def winning_threshold(coefficients, time: float | int) -> np.ndarray:
    r"""$\Gamma_i = 1/(2B_{1,4}a_i^2d\,\tau')$, with $\tau'$ = `time` just before the end of stage 1
    and $B_{1,4} = 2/(3\pi)$.

    For $a = 1/d$: $\Gamma = 2.356\,d/\tau'$.

    Args:
        coefficients: $a_i$; there are $d$ of them.
        time: $\tau'$.
    """
    check_positive("time", time)
    a = _coefficients(coefficients)
    return 1 / (2 * B14 * a**2 * a.size * time)


@dataclass(frozen=True)
class NeuronSets:
    r"""Membership by initial weights, boolean arrays (width, direction).

    $S_{i,good}$: $v_i^2 \ge \Gamma_i + \rho$ and $v_j^2 < \Gamma_j - \rho$ for $j \ne i$;
    $S_{i,pot}$: $v_i^2 \ge \Gamma_i - \rho$; $S_{i,bad}$: in $S_{i,pot}$ and in some other
    $S_{r,pot}$.

    Attributes:
        good: $S_{i,good}$.
        pot: $S_{i,pot}$.
        bad: $S_{i,bad}$.
    """

    good: np.ndarray
    pot: np.ndarray
    bad: np.ndarray

    @property
    def any_pot(self) -> np.ndarray:
        r"""$S_{pot} = \cup_iS_{i,pot}$, (width,)."""
        return np.asarray(self.pot.any(axis=1))

    @property
    def any_bad(self) -> np.ndarray:
        return np.asarray(self.bad.any(axis=1))

    def masses(self, weights, directions=None) -> dict[str, np.ndarray]:
        r"""$\gamma_i = \mathbb E[v_i^2\mathbb 1\{S_{i,pot}\setminus S_{bad}\}]$, $\hat\gamma_i$
        over $S_{i,good}$, $\beta_i$ outside $S_{pot}$.

        Expectations run over the whole population, not conditionally.
        """
        squares = _coordinates(weights, directions) ** 2
        return {
            "gamma": np.mean(squares * (self.pot & ~self.any_bad[:, None]), axis=0),
            "gamma_good": np.mean(squares * self.good, axis=0),
            "beta": np.mean(squares * ~self.any_pot[:, None], axis=0),
        }


def neuron_sets(initial, thresholds, rho=None, directions=None) -> NeuronSets:
    r"""The a priori sets from initial weights and thresholds $\Gamma_i$ (see `winning_threshold`).

    $\rho$ defaults to $\Gamma_i/10$ per coordinate: the paper gives it three incompatible sizes.
    The intersection with typical neurons ($S_g$, automatic at infinite width) is not taken; see
    `typical_neurons`.

    Args:
        initial: $v$, shape (width, feature).
        thresholds: $\Gamma_i$, one number or one a direction.
        rho: $\rho$, likewise.
        directions: orthonormal rows; the basis if None.
    """
    squares = _coordinates(initial, directions, "initial") ** 2
    gamma = np.asarray(real_values("thresholds", thresholds), np.float64)
    if gamma.shape not in ((), squares.shape[1:]):
        raise ValueError(
            f"`thresholds` must be one number or one for each of the {squares.shape[1]} "
            f"directions, got shape {gamma.shape}."
        )
    gamma = np.broadcast_to(gamma, squares.shape[1:])
    if not np.all(gamma > 0):
        raise ValueError(f"`thresholds` must be positive, got {thresholds!r}.")
    margin = gamma / 10
    if rho is not None:
        given = np.asarray(real_values("rho", rho, "()", f"({gamma.size},)"), np.float64)
        if not np.all(given >= 0):
            raise ValueError(f"`rho` must not be negative, got {rho!r}.")
        margin = np.broadcast_to(given, gamma.shape)
    pot = squares >= gamma - margin
    others = pot.sum(axis=1, keepdims=True) - pot
    return NeuronSets(
        good=(squares >= gamma + margin) & (others == 0), pot=pot, bad=pot & (others > 0)
    )


def typical_neurons(
    initial, coefficients, directions=None, constant: float | None = None
) -> np.ndarray:
    r"""$S_g$ (Definition A.1, corrected), a boolean per neuron; with `constant` $= C_0$ the smaller
    set $S$.

    $\|w\|_\infty \le 1.5\sqrt{2\ln(md)/d}$, $\|w\|^2$ and $\sum_ia_idw_i^2$ within
    $1 \pm 5\sqrt{2/d}$, at most five coordinates with $w_i^2 \ge 2.5\ln d/d$. Corrected: the
    printed third condition ($O(\log^{0.01}d)$ coordinates above $\log d/d$) fails for almost every
    Gaussian vector. $S$ asks for $\|w\|_\infty^2, \|\bar w\|_\infty^2 \le C_0\ln d/d$ as well.

    Args:
        initial: $w$, shape (width, feature).
        coefficients: $a_i$, one a direction.
        directions: orthonormal rows; the basis if None.
        constant: $C_0$.
    """
    w = _coordinates(initial, directions, "initial")
    m, d = w.shape
    a = _coefficients(coefficients)
    if a.size != d:
        raise ValueError(
            f"`coefficients` must have one entry for each of the {d} directions, got {a.size}."
        )
    squares = w**2
    norms = squares.sum(axis=1)
    spread = 5 * math.sqrt(2 / d)
    inside = np.abs(w).max(axis=1) <= 1.5 * math.sqrt(2 * math.log(m * d) / d)
    inside &= (np.abs(norms - 1) <= spread) & (np.abs(squares @ a * d - 1) <= spread)
    inside &= (squares >= 2.5 * math.log(d) / d).sum(axis=1) <= 5
    if constant is not None:
        check_positive("constant", constant)
        cap = constant * math.log(d) / d
        inside &= (squares.max(axis=1) <= cap) & ((squares / norms[:, None]).max(axis=1) <= cap)
    return inside


def basis_like(
    weights, directions=None, threshold: float | int = 0.9
) -> tuple[np.ndarray, np.ndarray]:
    r"""A posteriori: (which neurons have $\max_i\bar v_i^2 \ge$ `threshold`, their directions
    $\arg\max_i$).

    Args:
        weights: $v$, shape (width, feature).
        directions: orthonormal rows; the basis if None.
        threshold: of $\bar v_i^2$, between 0 and 1.
    """
    check_between("threshold", threshold, 0.0, 1.0)
    shares = _shares(weights, directions)
    return shares.max(axis=1) >= threshold, shares.argmax(axis=1)


def posterior_masses(
    weights, directions=None, threshold: float | int = 0.9
) -> tuple[np.ndarray, np.ndarray]:
    r"""$\gamma_i$, the mass of basis-like neurons on their own direction, and $\beta_i$, that of
    all others.

    Args:
        weights: $v$, shape (width, feature).
        directions: orthonormal rows; the basis if None.
        threshold: as in `basis_like`.
    """
    squares = _coordinates(weights, directions) ** 2
    basis, where = basis_like(weights, directions, threshold)
    own = basis[:, None] & (np.arange(squares.shape[1]) == where[:, None])
    return np.mean(squares * own, axis=0), np.mean(squares * ~basis[:, None], axis=0)


def singletons(weights, directions=None, tolerance: float | int = 0.1) -> np.ndarray:
    r"""$S_{i,singleton}$: $\min_\pm\|\bar v \mp e_i\| \le$ `tolerance`, boolean (width, direction)
    (corrected: both signs).

    Args:
        weights: $v$, shape (width, feature).
        directions: the orthonormal $e_i$; the basis if None.
        tolerance: a distance.
    """
    check_positive("tolerance", tolerance)
    cosines = np.sqrt(_shares(weights, directions))
    return 2 - 2 * np.minimum(cosines, 1.0) <= tolerance**2


def ignored(sets: NeuronSets, weights, directions=None, tolerance: float | int = 0.1) -> np.ndarray:
    r"""$S_{ignore} = S_{pot}\setminus S_{singleton}$, a boolean per neuron.

    Args:
        sets: from `neuron_sets`, by the initial weights.
        weights: at the end, shape (width, feature).
        directions: orthonormal rows; the basis if None.
        tolerance: as in `singletons`.
    """
    check_kind("sets", sets, NeuronSets, "what `neuron_sets` returns")
    return sets.any_pot & ~singletons(weights, directions, tolerance).any(axis=1)


def _shares(weights, directions, name: str = "weights") -> np.ndarray:
    v = _coordinates(weights, directions, name)
    squares = np.sum(_given_rows(weights, name) ** 2, axis=1, keepdims=True)
    return v**2 / np.where(squares > 0, squares, 1.0)  # a zero row has no direction: share 0


def lottery_scores(initial, directions=None, normalised: bool = True) -> np.ndarray:
    r"""The lottery ticket of each neuron: $\max_i\bar v_i(0)^2$ (the better predictor at finite
    $d$), or $\max_iv_i(0)^2$.

    Args:
        initial: $v(0)$, shape (width, feature).
        directions: orthonormal rows; the basis if None.
        normalised: whether to take $\bar v = v/\|v\|$.
    """
    check_flag("normalised", normalised)
    if normalised:
        return _shares(initial, directions, "initial").max(axis=1)
    return (_coordinates(initial, directions, "initial") ** 2).max(axis=1)


def ranking_quality(scores, winners) -> float:
    """AUC: the chance that a random winner outscores a random loser, ties counting half.

    Args:
        scores: one a neuron.
        winners: whether each neuron is one.

    >>> ranking_quality([0.1, 0.4, 0.35, 0.8], [False, False, True, True])
    0.75
    """
    scores = np.asarray(real_values("scores", scores, "(neuron,)"), np.float64)
    winners = paired("winners", winners, "scores", len(scores)).astype(bool)
    if winners.all() or not winners.any():
        return math.nan
    gaps = scores[winners][:, None] - scores[~winners][None, :]
    return float(np.mean(gaps > 0) + 0.5 * np.mean(gaps == 0))


def direction_persistence(initial, final, directions=None, threshold: float | int = 0.9) -> float:
    """The share of basis-like neurons that ended on the direction that was their largest at the
    start.

    Args:
        initial, final: weights at the start and at the end, shape (width, feature).
        directions: orthonormal rows; the basis if None.
        threshold: as in `basis_like`.
    """
    basis, where = basis_like(final, directions, threshold)
    first = _shares(initial, directions, "initial").argmax(axis=1)
    return float(np.mean(first[basis] == where[basis])) if basis.any() else math.nan


class BasisNeurons(AbstractObservable):
    r"""How many neurons are basis-like: $\max_i\bar v_i^2 \ge$ `threshold`.

    Args:
        threshold: between 0 and 1.
    """

    threshold: float | int = eqx.field(static=True)
    name: str = eqx.field(static=True, default="basis_neurons")
    label: str = eqx.field(static=True, default="basis-like neurons")
    axes: tuple[str, ...] = eqx.field(static=True, default=())

    def __init__(self, threshold: float | int = 0.9):
        check_between("threshold", threshold, 0.0, 1.0)
        self.threshold = threshold

    def __call__(self, snapshot):
        return jnp.sum(jnp.max(_cosines(snapshot) ** 2, axis=1) >= self.threshold)


class CoveredDirections(AbstractObservable):
    r"""How many target directions have a neuron with $|\langle w^*_k, u_i\rangle| >$ `alignment`.

    Args:
        alignment: a cosine, between 0 and 1.
    """

    alignment: float | int = eqx.field(static=True)
    name: str = eqx.field(static=True, default="covered_directions")
    label: str = eqx.field(static=True, default="directions found")
    axes: tuple[str, ...] = eqx.field(static=True, default=())

    def __init__(self, alignment: float | int = 0.95):
        check_between("alignment", alignment, 0.0, 1.0)
        self.alignment = alignment

    def __call__(self, snapshot):
        return jnp.sum(jnp.max(jnp.abs(_cosines(snapshot)), axis=0) > self.alignment)


class DirectionMasses(AbstractObservable):
    r"""$\gamma_i$ (row 0) and $\beta_i$ (row 1) by the a posteriori sets, axes (`part`,
    `direction`).

    Args:
        threshold: a neuron is basis-like where $\max_i\bar v_i^2$ is at least this.
    """

    threshold: float | int = eqx.field(static=True)
    name: str = eqx.field(static=True, default="direction_masses")
    label: str = eqx.field(static=True, default="mass of basis-like (0) and of other neurons (1)")
    axes: tuple[str, ...] = eqx.field(static=True, default=("part", "direction"))

    def __init__(self, threshold: float | int = 0.9):
        check_between("threshold", threshold, 0.0, 1.0)
        self.threshold = threshold

    def __call__(self, snapshot):
        cosines = _cosines(snapshot)
        shares = cosines**2
        squares = shares * _sizes(snapshot.model)[:, None]
        basis = jnp.max(shares, axis=1, keepdims=True) >= self.threshold
        own = basis & (jnp.arange(shares.shape[1]) == jnp.argmax(shares, axis=1)[:, None])
        return jnp.stack([jnp.mean(squares * own, axis=0), jnp.mean(squares * ~basis, axis=0)])


class NeuronShares(AbstractObservable):
    r"""$\max_i\bar v_i^2$ of every neuron: the share of its squared norm on its best direction; at
    the start, its lottery ticket.
    """

    name: str = eqx.field(static=True, default="neuron_shares")
    label: str = eqx.field(static=True, default="share of a neuron on its best direction")
    axes: tuple[str, ...] = eqx.field(static=True, default=("width",))

    def __call__(self, snapshot):
        return jnp.max(_cosines(snapshot) ** 2, axis=1)


class NeuronSizes(AbstractObservable):
    r"""$\|w_i\|^2$ of every neuron."""

    name: str = eqx.field(static=True, default="neuron_sizes")
    label: str = eqx.field(static=True, default="squared norm of a neuron")
    axes: tuple[str, ...] = eqx.field(static=True, default=("width",))

    def __call__(self, snapshot):
        return _sizes(snapshot.model)


class LargestNeuron(AbstractObservable):
    r"""$\max_i\|w_i\|^2$."""

    name: str = eqx.field(static=True, default="largest_neuron")
    label: str = eqx.field(static=True, default="largest squared norm of a neuron")
    axes: tuple[str, ...] = eqx.field(static=True, default=())

    def __call__(self, snapshot):
        return jnp.max(_sizes(snapshot.model))


class FrozenNeurons(AbstractObservable):
    r"""How many neurons have $\|w_i\|^2 > C$ and are not updated by a truncated descent.

    Args:
        cap: $C$; without it the cap of the stage in which the run's own `TruncatedDescent` is.
            Several caps are counted side by side, along the table's axis `cap`.
        name: of the table's variable, where two of them are recorded.
    """

    cap: float | int | tuple[float | int, ...] | None = eqx.field(static=True)
    name: str = eqx.field(static=True)
    axes: tuple[str, ...] = eqx.field(static=True)
    label: str = eqx.field(static=True, default="frozen neurons")

    def __init__(self, cap=None, name: str = "frozen_neurons"):
        caps: tuple = tuple(cap) if isinstance(cap, tuple | list) and cap else (cap,)
        for one in caps if cap is not None else ():
            check_positive("cap", one, "Without a number it is the dynamics' own.")
        several = isinstance(cap, tuple | list)
        self.cap = caps if several else caps[0]
        self.name, self.axes = name, ("cap",) if several else ()

    @property
    def coordinates(self) -> dict[str, tuple[float | int, ...]]:
        return {"cap": self.cap} if isinstance(self.cap, tuple) else {}

    def __call__(self, snapshot):
        cap = getattr(snapshot.state, "cap", None) if self.cap is None else jnp.asarray(self.cap)
        if cap is None:
            raise ValueError(
                "`FrozenNeurons()` counts by the cap of a `TruncatedDescent`, and these dynamics "
                "have none; "
                "give `cap=` a number."
            )
        squares = _sizes(snapshot.model)
        return jnp.sum(squares[:, None] > jnp.atleast_1d(cap), axis=0).reshape(jnp.shape(cap))


def _rows(model):
    r"""$w_i$, one a row, whichever axis of `weights` runs over the neurons."""
    return jnp.moveaxis(model.weights.astype(jnp.float64), model.neuron_axes["weights"], 0)


def _sizes(model):
    r"""$\|w_i\|^2$ of every neuron."""
    return jnp.sum(_rows(model) ** 2, axis=1)


def _cosines(snapshot):
    _, v = target(snapshot)
    w = _rows(snapshot.model)
    return (w @ v.T) / jnp.sqrt(jnp.sum(w**2, axis=1, keepdims=True))
