r"""Importance, pruning and features of a trained shallow network (caron2023, sections 6.2 and 6.3).

Nodes with a large share of the node scaling learn features, the others hardly move; the important
nodes alone then carry the function. Two definitions of importance exist and both are offered:

* ``"paper"``: $I_j = \lambda_j\,|w_j|^2$, as the text says;
* ``"released"``: $I_j = \lambda_j\sum_kA_{kj}^2$, as the authors' code computes it (for signs, a
  multiple of $\lambda_j$ alone).

Ties, such as every node under the symmetric scaling with ``"released"``, are broken by the node's
index, which makes that ranking arbitrary: pruning removes the lowest index first, the features keep
the lowest index first.
"""

import functools
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from .._core.arrays import real_array, real_values
from .._core.errors import check_between, check_choice, check_count, check_flag
from .._core.memory import tile_rows
from .._core.precision import double
from .shallow import Shallow

__all__ = [
    "PruningCurve",
    "effective_nodes",
    "features",
    "importance",
    "importance_share",
    "prune",
    "pruning_curve",
]

CONVENTIONS = ("paper", "released")


class PruningCurve(NamedTuple):
    r"""Losses after removing the `removed` least important nodes, without retraining.

    `risk` is the mean of squares over samples and outputs; `accuracy` (share of samples whose
    largest output is the right one) and `cross_entropy` are None for a single output.
    """

    removed: Int[np.ndarray, " level"]
    risk: Float[Array, " level"]
    accuracy: Float[Array, " level"] | None
    cross_entropy: Float[Array, " level"] | None


@double
def importance(model, convention: str = "paper") -> Float[Array, " width"]:
    r"""Importance of every node: $\lambda_j|w_j|^2$ (``"paper"``) or $\lambda_j\sum_kA_{kj}^2$
    (``"released"``).

    Args:
        model: a `Shallow` network, with node weights $\lambda_j$ and hidden weights $w_j$.
        convention: which of the two formulas.
    """
    _check_shallow(model)
    check_choice("convention", convention, CONVENTIONS)
    weights = model.scales.astype(float) ** 2
    if convention == "paper":
        return weights * jnp.sum(model.weights.astype(float) ** 2, axis=0)
    return weights * jnp.sum(jnp.atleast_2d(model.output).astype(float) ** 2, axis=0)


@double
def effective_nodes(model, convention: str = "paper") -> float:
    r"""$(\sum_jI_j)^2/\sum_jI_j^2$: how many nodes carry the importance, between 1 and the
    width.
    """
    values = importance(model, convention)
    return float(jnp.sum(values) ** 2 / jnp.sum(values**2))


@double
def importance_share(model, top: int, convention: str = "paper") -> float:
    """Share of the whole importance that the `top` most important nodes carry."""
    values = importance(model, convention)
    check_count("top", top)
    return float(jnp.sum(jnp.sort(values)[::-1][:top]) / jnp.sum(values))


@double
def prune(model, keep: int | float, *, convention: str = "paper") -> Shallow:
    """The network of the `keep` most important nodes, in their old order, everything else
    unchanged.

    Args:
        model: a `Shallow` network.
        keep: number of nodes, or the share of them as a fraction below 1.
        convention: which importance, see `importance`.

    Returns:
        A `Shallow` of smaller width. Node scales, pre-activation factor and neuron factor stay
            those of the full network, so the
        outputs are the full ones less the removed nodes' contributions, and training can go on.
    """
    _check_shallow(model)
    if isinstance(keep, float):
        check_between(
            "keep",
            keep,
            0.0,
            1.0,
            open=True,
            remedy="As a fraction; give whole numbers for a count.",
        )
        keep = max(1, round(keep * model.width))
    check_count("keep", keep)
    if keep > model.width:
        raise ValueError(f"`keep` must not exceed the width {model.width}, got {keep}.")
    removed_first = jnp.argsort(importance(model, convention), stable=True)
    nodes = jnp.sort(removed_first[model.width - keep :])
    return eqx.tree_at(
        lambda m: (m.weights, m.output, m.scales),
        model,
        (model.weights[:, nodes], model.output[..., nodes], model.scales[nodes]),
    )


@double
def features(
    model, inputs, top: int | None = None, *, scaled: bool = True, convention: str = "paper"
) -> Float[Array, "sample node"]:
    r"""Hidden features $h_j(x) = \sqrt{\lambda_j}\,\sigma(Z_j(x))$ of the `top` most important
    nodes, most important first.

    Args:
        model: a `Shallow` network.
        inputs: (sample, feature).
        top: how many nodes; all when missing.
        scaled: with the factor $\sqrt{\lambda_j}$, as in the released code; the paper only says
            "output of the hidden layer".
        convention: which importance ranks the nodes.
    """
    _check_shallow(model)
    check_flag("scaled", scaled)
    top = model.width if top is None else top
    check_count("top", top)
    if top > model.width:
        raise ValueError(f"`top` must not exceed the width {model.width}, got {top}.")
    nodes = jnp.argsort(-importance(model, convention), stable=True)[:top]
    inputs = real_array("inputs", inputs, "(sample, feature)")
    hidden = model.activation(model.embed(inputs) @ model.weights[:, nodes])
    return hidden * model.scales[nodes] if scaled else hidden


@double
def pruning_curve(
    model, inputs, targets, *, convention: str = "paper", levels=None, memory=None
) -> PruningCurve:
    """Losses of the network with its k least important nodes removed, for all k at once.

    One pass over the nodes: contributions are summed from the most important node down, so every
    level costs one addition. At k = width the output is zero, the risk exactly the mean of squared
    targets.

    Args:
        model: a `Shallow` network.
        inputs, targets: (sample, feature) and (sample,) or (sample, output).
        convention: which importance ranks the nodes.
        levels: the numbers k to report; all of 0..width when missing.
        memory: byte budget of one tile of samples.
    """
    _check_shallow(model)
    embedded, targets = model.embed(inputs), real_array("targets", targets)
    single = model.output.ndim == 1
    columns = (targets[:, None] if single else targets).astype(embedded.dtype)
    if (
        targets.ndim != model.output.ndim
        or columns.shape[1] != jnp.atleast_2d(model.output).shape[0]
    ):
        raise ValueError(
            f"`targets` of shape {targets.shape} do not fit a network of "
            f"{jnp.atleast_2d(model.output).shape[0]} outputs."
        )
    if len(targets) != len(embedded):
        raise ValueError(
            f"`targets` must have one row for each of the {len(embedded)} `inputs`, got "
            f"{len(targets)}."
        )
    if levels is None:
        levels = np.arange(model.width + 1)
    else:
        given = np.asarray(real_values("levels", levels))
        levels = given.astype(int)
        if not np.array_equal(levels, given):
            raise ValueError(f"`levels` must hold whole numbers of removed nodes, got {given}.")
    if levels.ndim != 1 or levels.size == 0 or levels.min() < 0 or levels.max() > model.width:
        raise ValueError(
            f"`levels` must hold numbers of removed nodes between 0 and {model.width}, got "
            f"{levels}."
        )
    # the exact reverse of the order in which nodes are removed, ties included: with k removed, the
    # first width - k remain
    best_first = jnp.argsort(importance(model, convention), stable=True)[::-1]
    weights = model.weights[:, best_first]
    mixed = (model.scales * jnp.atleast_2d(model.output))[:, best_first]
    bytes_a_row = 4 * model.width * columns.shape[1] * embedded.dtype.itemsize
    rows = tile_rows(embedded.shape[0], bytes_a_row, memory if memory is not None else 256 << 20)
    totals = [
        _tile(
            model.activation,
            weights,
            mixed,
            embedded[i : i + rows],
            columns[i : i + rows],
            jnp.asarray(levels),
        )
        for i in range(0, embedded.shape[0], rows)
    ]
    squares, right, entropy = (sum(part) / embedded.shape[0] for part in zip(*totals, strict=True))
    return PruningCurve(
        levels, squares / columns.shape[1], None if single else right, None if single else entropy
    )


@functools.partial(jax.jit, static_argnums=0)
def _tile(activation, weights, mixed, embedded, targets, levels):
    """Summed squares, hits and cross-entropy over a tile of samples at every level; nodes come most
    important first.
    """
    hidden = activation.value(embedded @ weights)
    sums = jnp.cumsum(hidden[:, None, :] * mixed, axis=-1)  # (sample, output, nodes kept - 1)
    outputs = jnp.concatenate([jnp.zeros_like(sums[..., :1]), sums], axis=-1)[
        ..., weights.shape[1] - levels
    ]
    squares = jnp.sum((outputs - targets[..., None]) ** 2, axis=(0, 1), dtype=float)
    # "right" counts a sample whose outputs are all equal (nothing left) as class 0, like argmax
    # does.
    right = jnp.sum(
        jnp.argmax(outputs, axis=1) == jnp.argmax(targets, axis=1)[:, None], axis=0, dtype=float
    )
    logs = jax.nn.log_softmax(outputs, axis=1)
    return squares, right, -jnp.sum(targets[..., None] * logs, axis=(0, 1), dtype=float)


def _check_shallow(model) -> None:
    if not isinstance(model, Shallow):
        raise ValueError(
            f"`model` must be a `Shallow` network, got {type(model).__name__}: importance needs "
            "its node scales."
        )
