r"""Losses of allenzhu2018's class, each a mean over samples of a convex $L(f, y)$.

Corrected: the paper asks for convex, 1-Lipschitz, 1-smooth
$L(\cdot, y)\colon \mathbb R^k \to [0, 1]$; a convex function bounded on all of $\mathbb R^k$ is
constant, so that class is empty of interest. The class used here is: convex, nonnegative,
1-Lipschitz, 1-smooth (Euclidean norm) and $L(0, y) \le 1$. `loss_class(loss, targets)` checks it.
With $r = f - y$ and $n = \lVert r\rVert_2$ per sample.
"""

import abc
import math
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._core.arrays import real_array
from .._core.errors import check_kind
from .._core.precision import double
from .losses import AbstractLoss, check_shares, check_signs, check_targets

__all__ = [
    "AbstractPointwiseLoss",
    "DeadZoneHuber",
    "Huber",
    "LogCosh",
    "Logistic",
    "LossClass",
    "PseudoHuber",
    "ScaledCrossEntropy",
    "loss_class",
]


class AbstractPointwiseLoss(AbstractLoss):
    """A mean over samples of one convex function of output and target, with its two constants."""

    @abc.abstractmethod
    def pointwise(
        self, outputs: Float[Array, "sample output"], targets: Float[Array, "sample output"]
    ) -> tuple[Array, Array]:
        """Values (sample,) and gradients (sample, output) for each sample."""

    @abc.abstractmethod
    def lipschitz(self, outputs: int) -> float:
        """Lipschitz constant in $f$ with that many outputs; infinite where there is none."""

    @abc.abstractmethod
    def smoothness(self, outputs: int) -> float:
        """Lipschitz constant of the gradient; infinite where there is none."""

    @double
    def value_and_gradient(self, outputs, targets):
        outputs, targets = jnp.asarray(outputs), jnp.asarray(targets)
        check_targets(outputs, targets)
        columns = (outputs, targets) if outputs.ndim == 2 else (outputs[:, None], targets[:, None])
        values, gradients = self.pointwise(*columns)
        samples = outputs.shape[0]
        return jnp.sum(values) / samples, gradients.reshape(outputs.shape) / samples


def _norm(r: Array) -> tuple[Array, Array]:
    """The norm of each row, and the same made safe to divide by.

    Where a target is met exactly the root is not taken: autodiff would multiply its infinite slope
    by 0.
    """
    squares = jnp.sum(r**2, axis=1)
    safe = jnp.sqrt(jnp.where(squares > 0, squares, 1.0))
    return jnp.where(squares > 0, safe, 0.0), safe[:, None]


class Huber(AbstractPointwiseLoss):
    r"""$n^2/2$ for $n \le 1$, else $n - 1/2$ (radial Huber). In the class when
    $\lVert y\rVert \le 3/2$.
    """

    formula: ClassVar[str] = "mean radial Huber loss"

    def pointwise(self, outputs, targets):
        r = outputs - targets
        n, safe = _norm(r)
        # r for n <= 1 and r/n beyond are one formula
        return jnp.where(n <= 1, n**2 / 2, n - 0.5), r / jnp.maximum(safe, 1.0)

    def lipschitz(self, outputs):
        return 1.0

    def smoothness(self, outputs):
        return 1.0


class PseudoHuber(AbstractPointwiseLoss):
    r"""$\sqrt{1 + n^2} - 1$. In the class when $\lVert y\rVert \le \sqrt3$."""

    formula: ClassVar[str] = "mean pseudo-Huber loss, sqrt(1 + |f - y|^2) - 1"

    def pointwise(self, outputs, targets):
        r = outputs - targets
        root = jnp.sqrt(1 + jnp.sum(r**2, axis=1))
        return root - 1, r / root[:, None]

    def lipschitz(self, outputs):
        return 1.0

    def smoothness(self, outputs):
        return 1.0


class LogCosh(AbstractPointwiseLoss):
    r"""$\sum_i\log\cosh r_i$. Lipschitz constant $\sqrt k$; with one output in the class when
    $|y| \le \mathrm{arccosh}\,e = 1.657$.
    """

    formula: ClassVar[str] = "mean of sum log cosh(f - y)"

    def pointwise(self, outputs, targets):
        r = outputs - targets
        size = jnp.abs(r)
        # log cosh r = |r| + log(1 + exp(-2 |r|)) - log 2: cosh itself overflows from |r| = 710 on
        return jnp.sum(size + jnp.log1p(jnp.exp(-2 * size)) - math.log(2), axis=1), jnp.tanh(r)

    def lipschitz(self, outputs):
        return math.sqrt(outputs)

    def smoothness(self, outputs):
        return 1.0


class Logistic(AbstractPointwiseLoss):
    r"""$\log(1 + e^{-yf})$ for one output and labels $y = \pm1$; always in the class
    ($L(0, y) = 0.693$).
    """

    formula: ClassVar[str] = "mean logistic loss, log(1 + exp(-y f))"

    def check_data(self, targets) -> None:
        check_signs(targets)

    def pointwise(self, outputs, targets):
        if outputs.shape[1] != 1:
            raise ValueError(
                f"`Logistic` needs one output, got {outputs.shape[1]}. For classes use "
                "`ScaledCrossEntropy`."
            )
        margin = targets * outputs
        # log(1 + exp(-m)) without overflow for large negative margins
        return jnp.logaddexp(0.0, -margin)[:, 0], -targets * jax.nn.sigmoid(-margin)

    def lipschitz(self, outputs):
        return 1.0

    def smoothness(self, outputs):
        return 0.25


class ScaledCrossEntropy(AbstractPointwiseLoss):
    r"""$-\sum_ky_k\log\mathrm{softmax}(f)_k$ divided by $\max(\sqrt2, \log k)$, which puts it into
    the class; one-hot targets.
    """

    formula: ClassVar[str] = "mean softmax cross-entropy / max(sqrt 2, log k)"

    def check_data(self, targets) -> None:
        check_shares(targets)

    def pointwise(self, outputs, targets):
        # |softmax - one-hot| <= sqrt 2, so dividing by sqrt 2 makes it 1-Lipschitz; L(0, y) = log k
        # needs log k
        factor = max(math.sqrt(2), math.log(outputs.shape[1]))
        logs = jax.nn.log_softmax(outputs, axis=1)
        mass = jnp.sum(targets, axis=1, keepdims=True)
        return -jnp.sum(targets * logs, axis=1) / factor, (jnp.exp(logs) * mass - targets) / factor

    def lipschitz(self, outputs):
        return math.sqrt(2) / max(math.sqrt(2), math.log(outputs))

    def smoothness(self, outputs):
        # the Hessian diag(p) - p p^T has the norm 1/2 at most, reached by two equal shares
        return 0.5 / max(math.sqrt(2), math.log(outputs))


class DeadZoneHuber(AbstractPointwiseLoss):
    r"""Huber of $\max(n - 1, 0)$: no loss within distance 1. In the class when
    $\lVert y\rVert \le 5/2$.
    """

    formula: ClassVar[str] = "mean dead-zone Huber loss, Huber of max(|f - y| - 1, 0)"

    def pointwise(self, outputs, targets):
        r = outputs - targets
        n, safe = _norm(r)
        far = jnp.maximum(n - 1, 0)
        return jnp.where(far <= 1, far**2 / 2, far - 0.5), jnp.minimum(far, 1.0)[:, None] * r / safe

    def lipschitz(self, outputs):
        return 1.0

    def smoothness(self, outputs):
        return 1.0


@dataclass(frozen=True)
class LossClass:
    """Whether a loss with given targets belongs to the class, and by which numbers.

    Attributes:
        member: whether all conditions are met.
        lipschitz, smoothness: the loss's constants in the outputs.
        at_zero: the largest $L(0, y)$.
        reasons: one sentence for each condition that fails.
    """

    member: bool
    lipschitz: float
    smoothness: float
    at_zero: float
    reasons: tuple[str, ...]


@double
def loss_class(loss: AbstractLoss, targets) -> LossClass:
    r"""Checks convex, 1-Lipschitz, 1-smooth, $L(0, y) \le 1$ for these `targets` ((sample,) or
    (sample, output)).

    Squares are not Lipschitz, absolute and hinge losses are not smooth: neither qualifies.

    Args:
        loss: $L$, one of `wideflow.losses`.
        targets: the $y$.
    """
    check_kind("loss", loss, AbstractLoss, "one of `wf.losses`, such as `Huber()`")
    targets = real_array("targets", targets, "(sample,)", "(sample, output)")
    outputs = 1 if targets.ndim == 1 else targets.shape[1]
    if not isinstance(loss, AbstractPointwiseLoss):
        reason = f"{type(loss).__name__} has no finite Lipschitz constant in the outputs"
        return LossClass(False, math.inf, math.nan, math.nan, (reason,))
    columns = targets.reshape(len(targets), outputs)
    at_zero = float(np.max(loss.pointwise(jnp.zeros_like(columns), columns)[0]))
    lipschitz, smoothness = loss.lipschitz(outputs), loss.smoothness(outputs)
    reasons = []
    if not lipschitz <= 1 + 1e-12:
        reasons.append(f"Lipschitz constant {lipschitz:.4g} exceeds 1: divide the loss by it")
    if not smoothness <= 1 + 1e-12:
        reasons.append(f"smoothness {smoothness:.4g} exceeds 1")
    if not at_zero <= 1 + 1e-12:
        reasons.append(f"L(0, y) reaches {at_zero:.4g} > 1: rescale the targets")
    return LossClass(not reasons, lipschitz, smoothness, at_zero, tuple(reasons))
