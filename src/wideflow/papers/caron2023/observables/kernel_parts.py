r"""The two parts of the tangent Gram matrix, one for each part of the node weights (caron2023,
Lemma D.2).

With $\lambda = \lambda^{(1)} + \lambda^{(2)}$, $\lambda^{(1)}_j = \gamma/m$, also
$\widehat\Theta = \widehat\Theta^{(1)} + \widehat\Theta^{(2)}$ with
$\widehat\Theta^{(k)} = \frac1dXX^\top\odot S\,\mathrm{diag}(\lambda^{(k)})\,S^\top$. The proofs of
Theorems 4.1 and 4.2 rest on the first: it hardly moves in wide networks, so that its smallest
eigenvalue stays near that of the start, and $\lambda_{\min}(\widehat\Theta) \ge
\lambda_{\min}(\widehat\Theta^{(1)})$, for both parts are positive semi-definite. The second is the
one that learns features.
"""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...._core.arrays import real_array
from ...._core.errors import check_between, check_choice, check_kind
from ...._core.precision import double
from ...._core.scalings import NTK, Weights, Zipf
from ....models.shallow import Shallow
from ....observables.base import (
    AbstractObservable,
    ShallowSnapshot,
    check_samples,
    probe_features,
)
from ....observables.kernels import spectral_norm

PARTS = ("symmetric", "asymmetric")


class KernelParts(NamedTuple):
    r"""The parts of the tangent Gram matrix; their sum is `tangent_gram`.

    Attributes:
        symmetric: $\widehat\Theta^{(1)}$, of the equal shares $\gamma/m$ of the node weights.
        asymmetric: $\widehat\Theta^{(2)}$, of the rest.
    """

    symmetric: Float[Array, "sample sample"]
    asymmetric: Float[Array, "sample sample"]


@double
def kernel_parts(model, inputs) -> KernelParts:
    r"""Both parts of the tangent Gram matrix of a network under `Zipf`, `Weights` or `NTK` (which
    is $\gamma = 1$).

    Args:
        model: a `Shallow` network with one output.
        inputs: $X$, shape (sample, feature).

    >>> import wideflow as wf
    >>> half = wf.scalings.Zipf(gamma=0.5, alpha=0.5)  # node weights 1/4 + 2/5 and 1/4 + 1/10
    >>> net = wf.Shallow([[1.0], [-1.0]], [1.0, 1.0], half)  # the first is on at x = 1
    >>> [round(float(part[0, 0]), 9) for part in wf.observables.kernel_parts(net, [[1.0]])]
    [0.25, 0.4]
    """
    check_kind("model", model, Shallow, "a `Shallow` network")
    features = model.embed(real_array("inputs", inputs, "(sample, feature)"))
    gamma = _gamma_of(model.scaling)
    return KernelParts(*(_part(model, features, gamma, part) for part in PARTS))


class _WatchedPart(eqx.Module):
    """Which part, at which points."""

    gamma: float = eqx.field(static=True)
    part: str = eqx.field(static=True)
    samples: int | None = eqx.field(static=True)

    def __check_init__(self):
        check_between("gamma", self.gamma, 0.0, 1.0, remedy="That of the network's scaling.")
        check_choice("part", self.part, PARTS)
        check_samples(self.samples)

    def gram(self, model, snapshot):
        features = probe_features(snapshot, self.samples)
        return _part(model, features, self.gamma, self.part).astype(jnp.float64)


class KernelPart(AbstractObservable):
    r"""$\widehat\Theta^{(1)}_t$ or $\widehat\Theta^{(2)}_t$, the table's `symmetric_kernel` or
    `asymmetric_kernel`.

    Args:
        gamma: $\gamma$ of the network's scaling, which the programs of `train` do not know.
        part: "symmetric" or "asymmetric".
        samples: only the first so many training inputs.
    """

    watched: _WatchedPart
    name: str = eqx.field(static=True)
    label: str = eqx.field(static=True)
    axes: tuple[str, ...] = eqx.field(static=True, default=("left", "right"))

    def __init__(self, gamma: float, part: str = "symmetric", samples: int | None = None):
        self.watched = _WatchedPart(gamma, part, samples)
        self.name, self.label = f"{part}_kernel", _symbol(part)

    def __call__(self, snapshot: ShallowSnapshot):
        return self.watched.gram(snapshot.model, snapshot)


class KernelPartMinEigenvalue(AbstractObservable):
    r"""$\lambda_{\min}(\widehat\Theta^{(k)}_t)$, the table's `symmetric_gap` or `asymmetric_gap`;
    that of the symmetric part is below `KernelMinEigenvalue` at every moment.

    Args:
        gamma: $\gamma$ of the network's scaling.
        part: "symmetric" or "asymmetric".
        samples: only the first so many training inputs.
    """

    watched: _WatchedPart
    name: str = eqx.field(static=True)
    label: str = eqx.field(static=True)
    axes: tuple[str, ...] = eqx.field(static=True, default=())

    def __init__(self, gamma: float, part: str = "symmetric", samples: int | None = None):
        self.watched = _WatchedPart(gamma, part, samples)
        self.name, self.label = f"{part}_gap", f"smallest eigenvalue of {_symbol(part)}"

    def __call__(self, snapshot: ShallowSnapshot):
        return jnp.linalg.eigvalsh(self.watched.gram(snapshot.model, snapshot))[0]


class KernelPartDistance(AbstractObservable):
    r"""$\lVert\widehat\Theta^{(k)}_t - \widehat\Theta^{(k)}_0\rVert_2$, the table's
    `symmetric_drift` or `asymmetric_drift`: what Lemmas D.2 and D.4 bound.

    Args:
        gamma: $\gamma$ of the network's scaling.
        part: "symmetric" or "asymmetric".
        samples: only the first so many training inputs.
    """

    watched: _WatchedPart
    name: str = eqx.field(static=True)
    label: str = eqx.field(static=True)
    axes: tuple[str, ...] = eqx.field(static=True, default=())

    def __init__(self, gamma: float, part: str = "symmetric", samples: int | None = None):
        self.watched = _WatchedPart(gamma, part, samples)
        self.name, self.label = f"{part}_drift", f"‖{_symbol(part)}(t) − {_symbol(part)}(0)‖₂"

    def __call__(self, snapshot: ShallowSnapshot):
        now, start = (self.watched.gram(m, snapshot) for m in (snapshot.model, snapshot.start))
        return spectral_norm(now - start)


def part_gram(
    model: Shallow, features: Float[Array, "sample embedded"], weights: Float[Array, " width"]
) -> Float[Array, "sample sample"]:
    r"""$\frac1dXX^\top\odot S\,\mathrm{diag}(\lambda^{(k)})\,S^\top$ for the node weights given.

    Args:
        model: whose slopes $S$ are taken.
        features: embedded inputs, $X/\sqrt d$.
        weights: $\lambda^{(k)}$.
    """
    slopes = model.activation.slope(features @ model.weights.astype(float))
    return (features @ features.T) * ((slopes * weights) @ slopes.T)


def _part(model: Shallow, features, gamma: float, part: str):
    if model.output.ndim != 1:
        raise ValueError(
            "the parts of the kernel are about a network of one output, got "
            f"{model.output.shape[0]}."
        )
    equal = jnp.full(model.width, gamma / model.width)
    share = equal if part == "symmetric" else model.scales**2 - equal
    # signs square to 1; other output weights count
    return part_gram(model, features, model.rate_factor * share * model.output**2)


def _gamma_of(scaling) -> float:
    if isinstance(scaling, NTK):
        return 1.0
    if not isinstance(scaling, Zipf | Weights):
        raise ValueError(
            "`model` must have node weights with an equal share, by `Zipf`, `Weights` or `NTK`, "
            f"got {scaling}."
        )
    return scaling.gamma


def _symbol(part: str) -> str:
    return "Θ⁽¹⁾" if part == "symmetric" else "Θ⁽²⁾"
