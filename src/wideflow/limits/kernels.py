r"""Kernels of wide networks: `kernels(architecture)` for every depth and layer, and the shallow
ones of caron2023.

The shallow ones are those of a network whose first layer alone is trained (equations 8 and 9). With
$w \sim \mathcal N(0, I_d)$ the pre-activations $u = \langle w, x\rangle/\sqrt d$,
$v = \langle w, x'\rangle/\sqrt d$ are a centred Gaussian pair of covariance
$\begin{psmallmatrix}|x|^2 & \langle x,x'\rangle\\ \cdot & |x'|^2\end{psmallmatrix}/d$, and

* the mean tangent kernel is
  $\Theta^*(x, x') = \frac{\langle x, x'\rangle}{d}\,\mathbb E[\sigma'(u)\sigma'(v)]$ (equation 9),
* the output covariance at time zero is $K(x, x') = \mathbb E[\sigma(u)\sigma(v)]$.

Neither depends on the width nor on the node scaling; both are closed forms where one is known and
quadrature elsewhere.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from .._core.activations import activation as as_activation
from .._core.arrays import real_array, square_matrix
from .._core.gaussian import pair, pair_derivative
from .._core.precision import double
from .infinite_width.architecture_kernels import kernels

__all__ = [
    "Spectrum",
    "kappa",
    "kernels",
    "mean_ntk",
    "nngp",
    "preactivation_covariance",
    "spectrum",
]


class Spectrum(NamedTuple):
    r"""Extreme eigenvalues of a symmetric matrix, its trace, and the size below which the smallest
    one is rounding.

    Attributes:
        smallest, largest: the extreme eigenvalues.
        trace: the sum of all.
        resolution: $n\,\epsilon\,\mathrm{tr}$, the rounding of the solver.
    """

    smallest: float
    largest: float
    trace: float
    resolution: float

    @property
    def resolved(self) -> bool:
        """Whether the smallest eigenvalue exceeds the rounding of the eigenvalue solver."""
        return self.smallest > self.resolution


def preactivation_covariance(inputs, other=None) -> tuple[Array, Array, Array]:
    r"""$(|x|^2, \langle x, x'\rangle, |x'|^2)/d$ for all pairs, of shapes (left, 1), (left, right),
    (1, right).

    Equal rows give three equal numbers: the norms are read off the diagonal of the product when
    there is one input set.
    """
    left = _rows(inputs, "inputs")
    features = left.shape[1]
    if other is None:
        return _covariance(left, None)
    right = _rows(other, "other")
    if right.shape[1] != features:
        raise ValueError(
            f"`other` must have {features} features like `inputs`, got {right.shape[1]}."
        )
    return _covariance(left, right)


@jax.jit
def _covariance(left, right):
    features = left.shape[1]
    if right is None:
        cross = left @ left.T / features
        # off the same product, so that equal rows give |x|^2 = <x, x'> to the last bit and an angle
        # of 0
        norms = jnp.diagonal(cross)
        return norms[:, None], cross, norms[None, :]
    cross = left @ right.T / features
    return (left**2).sum(1)[:, None] / features, cross, (right**2).sum(1)[None, :] / features


@double
def mean_ntk(inputs, activation, other=None) -> Float[Array, "left right"]:
    r"""Mean tangent kernel
    $\Theta^*(x, x') = \frac{\langle x,x'\rangle}{d}\,\mathbb E[\sigma'(u)\sigma'(v)]$ (caron2023,
    equation 9).

    ReLU: $\mathbb E = (\pi-\vartheta)/(2\pi)$ with $\vartheta$ the angle between the inputs, so the
    diagonal is $|x|^2/(2d)$. It is the expectation at time zero of the tangent Gram matrix for
    every width and node scaling.

    Args:
        inputs: (sample, feature).
        activation: name, `Activation` or callable $\sigma$.
        other: second set of inputs, (right, feature); `inputs` themselves when missing.

    Returns:
        The (left, right) matrix.

    >>> import wideflow as wf
    >>> float(wf.limits.mean_ntk([[3.0, 4.0]], "relu")[0, 0])  # |x|^2 / (2 d)
    6.25
    """
    k11, k12, k22 = preactivation_covariance(inputs, other)
    return k12 * pair_derivative(as_activation(activation), k11, k12, k22)


@double
def nngp(inputs, activation, other=None) -> Float[Array, "left right"]:
    r"""$K(x,x') = \mathbb E[\sigma(u)\sigma(v)]$, the covariance of the outputs at time zero
    (caron2023, section 2).

    It holds at every width and for every node scaling with $\sum_j\lambda_j = 1$; the outputs are
    Gaussian only in the limit of the symmetric scaling, otherwise a mixture with this covariance.
    ReLU: $K = \frac{|x||x'|}{2\pi d}(\sin\vartheta + (\pi-\vartheta)\cos\vartheta)$.

    Args:
        inputs: $x$, shape (left, feature).
        activation: $\sigma$.
        other: $x'$, shape (right, feature); the inputs themselves if None.
    """
    k11, k12, k22 = preactivation_covariance(inputs, other)
    return pair(as_activation(activation), k11, k12, k22)


@double
def spectrum(gram) -> Spectrum:
    r"""Extreme eigenvalues of a symmetric matrix, with the resolution $n\,\epsilon\,\mathrm{tr}$ of
    the smallest.

    Args:
        gram: a symmetric matrix, shape (sample, sample).
    """
    gram = square_matrix("gram", gram)
    values = np.asarray(jnp.linalg.eigvalsh(gram))
    trace = float(np.trace(np.asarray(gram)))
    epsilon = float(jnp.finfo(gram.dtype).eps)
    return Spectrum(
        float(values[0]), float(values[-1]), trace, gram.shape[0] * epsilon * abs(trace)
    )


@double
def kappa(inputs, activation) -> float:
    r"""$\kappa_n = \lambda_{\min}(\widehat\Theta^*)$, the smallest eigenvalue of the mean tangent
    Gram (caron2023, Proposition 3.1).

    Positive when no two inputs are parallel and $\sigma$ is ReLU or analytic and not a polynomial.
    Smooth activations are nearly linear at the pre-activation scale $1/\sqrt d$, so it collapses as
    soon as $n > d$: `spectrum(mean_ntk(...))` tells whether the number is resolved at all.

    Args:
        inputs: shape (sample, feature).
        activation: $\sigma$.
    """
    return spectrum(mean_ntk(inputs, activation)).smallest


def _rows(values, name: str) -> Float[Array, "sample feature"]:
    rows = real_array(name, values)
    if rows.ndim != 2:
        raise ValueError(
            f"`{name}` must have shape (sample, feature), got {rows.shape}. Give one input as "
            "`x[None]`."
        )
    if not jnp.issubdtype(rows.dtype, jnp.floating):
        return rows.astype(jnp.result_type(float))
    if not isinstance(rows, Tracer) and rows.size:
        most = math.sqrt(float(jnp.finfo(rows.dtype).max) / rows.shape[1])
        largest = float(np.abs(np.asarray(rows)).max())
        if largest > most:
            raise ValueError(
                f"`{name}` must be below {most:.3g} in {rows.dtype}, got {largest:.3g}: their "
                "squares overflow. Divide them by their largest."
            )
    return rows
