r"""The field with radius and directions both integrated: no samples at all.

On the ray with $\varphi = F(\bar x)$ every radial expectation is a function $g(\varphi)$, and over
the directions $\varphi$ has mean $\alpha$ and variance $\alpha^2 e_2^2$, both in closed form. So
$E_{\bar x}\, g(\varphi) \approx g(\alpha) + \frac12 g''(\alpha)\, \alpha^2 e_2^2$, and the first
layer needs $g'(\alpha)$ besides.

The derivatives are those of a table on Chebyshev nodes over the range of $\varphi$, not those at
the point $\alpha$: the moments $M_k(\rho)$ at the cut-off $\rho = b/(|w|\varphi)$ carry the wave of
the Bessel function, of half period $\pi/\kappa$ in $\rho$, while $\rho$ varies by $e_2\rho$ over
the directions, often many waves. What the mean over directions sees is the trend. The Chebyshev
series is cut at degree 4, which averages the wave over the 16 nodes; interpolation at all of them
would follow it.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.polynomial import chebyshev

from ...._core.polar import polar
from ..laws.base import AbstractRadialLaw
from ..laws.rays import Pieces, cut, largest, projected, ray_integrals, steepest
from ..laws.thresholds import Thresholds
from .directions import alpha_of, direction_error, direction_pull
from .samples import Field

NODES, DEGREE = 16, 4
RANGE = 3.0  # half the table, in deviations of F; chosen on 6 states at d = 4, 10, 30 (2 to 4 do)


@eqx.filter_jit
def integrated_field(law: AbstractRadialLaw, first, w, b, clip: Thresholds) -> Field:
    r"""The mean-field velocity without samples.

    With the pull $s(\varphi) = E_r\{S r\}$ a first-layer neuron $v$ moves by
    $E_{\bar x}\, s(\varphi)\, k_v(\bar x)$,
    $k_v = \bar v\,\mathrm{ReLU}(v\cdot\bar x) + \lVert v\rVert 1\{v\cdot\bar x > 0\}\bar x$. Taking
    $s(\varphi) = p + s'(\alpha)(\varphi - \alpha)$, both means are closed forms
    ($E_{\bar x} k_v = 2 g v$, and $E_{\bar x} F k_v$ = `direction_pull`). The constant $p$ is the
    one with
    $E_{\bar x}\{\varphi (p + s'(\alpha)(\varphi - \alpha))\} = E_{\bar x}\{\varphi s(\varphi)\}$:
    to second order it is $s(\alpha) + \frac12 s''(\alpha)\alpha^2 e_2^2$, and with it
    $\mathrm{mean}\lVert w_1\rVert^2 - 2\,\mathrm{mean}\, w_2^2$ is conserved exactly, as it is by
    the true flow.

    The second layer is projected. The first layer's projection is not carried out; `pairs` counts
    the neurons whose gradient exceeds its bound somewhere on the mean ray, for the first layer all
    of them if the sufficient bound does not exclude it.
    """
    alpha, error = alpha_of(first), direction_error(first)

    def ray(phi):
        free = ray_integrals(law, phi, w, b)
        if clip.off:
            return free.pull, phi * free.pull, phi * free.first, free.zeroth, free.loss
        pieces = cut(phi, w, b)
        args = (pieces.p, pieces.q, pieces.low, pieces.high)
        weight = pieces.active.T @ projected(law, phi, *args, clip.weight, 1)
        bias = pieces.active.T @ projected(law, 1.0, *args, clip.bias, 0)
        return free.pull, phi * free.pull, weight, bias, free.loss

    means, (slope, *_) = _over_directions(ray, alpha, error)
    _, work, weight, bias, loss = means
    steady = work / alpha - slope * alpha * error
    symmetric = 2 * law.gain * first
    first_speed = steady * symmetric + slope * (direction_pull(first) - alpha * symmetric)
    pairs = _exceeding(cut(alpha, w, b), alpha, first, w, clip)
    totals = jnp.array([first.shape[0], w.shape[0], w.shape[0]], pairs.dtype)
    return Field(first_speed, weight, bias, pairs, pairs / totals, loss)


def integrated_loss(law: AbstractRadialLaw, first, w, b):
    r"""$\ell(\alpha) + \frac12 \ell''(\alpha)\, \alpha^2 e_2^2$ for the loss $\ell(\varphi)$ of one
    ray, $\ell''$ from the table.
    """
    ray = lambda phi: ray_integrals(law, phi, w, b).loss
    return _over_directions(ray, alpha_of(first), direction_error(first))[0]


def _functionals() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    r"""The nodes in (-1, 1), and the weights on them of value, slope and curvature at 0 of the
    series cut at `DEGREE`.

    On the Chebyshev nodes the discrete least-squares polynomial is that series; all three are
    linear in the table.
    """
    nodes = np.cos(np.pi * (np.arange(NODES) + 0.5) / NODES)
    series = np.linalg.pinv(
        chebyshev.chebvander(nodes, DEGREE)
    )  # values at the nodes -> coefficients
    at_zero = lambda order: np.asarray(chebyshev.chebval(0.0, chebyshev.chebder(series, order)))
    return nodes, at_zero(0), at_zero(1), at_zero(2)


_POSITIONS, _VALUE, _SLOPE, _CURVATURE = _functionals()


def _over_directions(ray, alpha, error):
    r"""Mean over directions, and slope at $\alpha$, of what `ray` gives; `error` is $e_2^2$."""
    # a narrow layer must not reach phi <= 0, and an exact one needs a table of some length
    half = jnp.clip(RANGE * jnp.sqrt(error), 1e-3, 0.9)
    table = jax.vmap(ray)(alpha * (1 + half * _POSITIONS))
    weights = _VALUE + 0.5 * error / half**2 * _CURVATURE
    mean = jax.tree.map(lambda values: jnp.tensordot(weights, values, 1), table)
    slope = jax.tree.map(lambda values: jnp.tensordot(_SLOPE, values, 1) / (alpha * half), table)
    return mean, slope


def _exceeding(pieces: Pieces, alpha, first, w, clip: Thresholds):
    """How many neurons of first layer, weights and biases exceed their bounds on the mean ray."""
    pull = steepest(pieces, pieces.active @ w / w.shape[0])
    acts = 2 * jnp.max(polar(first)[0]) * pull > clip.first
    reach = jax.vmap(lambda on: steepest(pieces, alpha * on), in_axes=1)(pieces.active)
    height = jax.vmap(lambda on: largest(pieces, on), in_axes=1)(pieces.active)
    counts = [first.shape[0] * acts, (reach > clip.weight).sum(), (height > clip.bias).sum()]
    return jnp.stack(counts).astype(first.dtype)
