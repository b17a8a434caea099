r"""Expectations $E[F(h)]$ of analytic functions of at most four Gaussians, by the trapezoid rule
with a spacing that fits their variances.

With $h = St$, $t \sim N(0, I)$, the rule on the lattice $t = \delta k$ errs by the Fourier
transform of the integrand at the points $\frac{2\pi}\delta k$, $k \ne 0$. Two kinds of features
decide how fast that falls:

* poles at distance $y$ from the real axis, as of tanh ($y = \pi/2$): $e^{-2\pi y/(\delta s)}$,
  $s = \max_{ij}|S_{ij}|$;
* Gaussian slopes $e^{-u^2}$, as of erf, two of them along one direction:
  $e^{-2\pi^2/(\delta^2(1 + 4\sigma^2))}$, $\sigma^2$ the largest variance.

The end of the lattice at $|t| = L = n\delta/2$ leaves out $e^{-L^2/2}$ on a line. $\delta$ makes
that end equal to the larger of the other two errors. In four dimensions $S$ is turned by $\frac12$
of a Hadamard matrix, which leaves the law of $h$ as it is and halves $s$ where the Gaussians are
independent; points outside the ball of radius $L$, seven tenths of the cube, are never visited.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

MOST_DIMENSIONS = 4  # a fifth would cost `order` times as much (chosen)
# Nodes a dimension over `order`: four dimensions cost order^4, so fewer dimensions can afford more.
MORE = {1: 4.0, 2: 3.0, 3: 2.0, 4: 1.0}
# In four dimensions the end leaves out L^4 times as much or more. Transforms of poles carry a like
# power, those of Gaussian slopes do not: for them a lattice wider by a tenth restores the balance
# (at errors of 1e-7 to 1e-11).
STRETCH = 1.1
HADAMARD = np.array([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]]) / 2


def spacing(count: int, entry, std, entire: bool):
    r"""$\delta$ for `count` nodes a dimension.

    Args:
        entry: $s$, the largest factor of one coordinate in one Gaussian.
        std: $\sigma$, the largest standard deviation.
        entire: whether slopes like erf's may occur (a function of unknown kind counts as one).
    """
    # where the nodes stand is no part of the value, so derivatives go through the points alone;
    # below 1e-3 the function is as good as linear and `plain` decides
    entry, std = (jax.lax.stop_gradient(jnp.maximum(size, 1e-3)) for size in (entry, std))
    # exp(-(n delta)^2/8), the end, equal to exp(-pi^2/(delta s)): delta^3 = 8 pi^2/(s n^2)
    poles = (8 * np.pi**2 / (entry * count**2)) ** (1 / 3)
    # likewise with exp(-2 pi^2/(delta^2 (1 + 4 sigma^2))): delta^4 = 16 pi^2/((1 + 4 sigma^2) n^2)
    slopes = (16 * np.pi**2 / ((1 + 4 * std**2) * count**2)) ** 0.25
    # without any feature the weight's own transform, e^(-2 pi^2/delta^2), decides
    plain = (16 * np.pi**2 / count**2) ** 0.25
    return jnp.minimum(poles, STRETCH * slopes if entire else plain)


def line_rule(count: int, std, entire: bool = True):
    r"""Nodes and weights for $E[g(t)]$ where $g$ sees $t$ with factors up to `std`."""
    # half integers for an even count: still symmetric, so odd moments are exact
    k = np.arange(count) - (count - 1) / 2
    t = spacing(count, std, std, entire) * k
    weights = jnp.exp(-(t**2) / 2)
    return t, weights / jnp.sum(weights)


def lattice_rule(root, order: int, entire: bool = True):
    r"""Points $h$ (point, unit) and weights with $E[F(h)] \approx \sum_pw_pF(h_p)$, for
    $h \sim N(0, SS^\top)$.

    Args:
        root: $S$, square, of at most four rows.
        order: nodes a dimension where there are four.
    """
    dimensions = root.shape[1]
    count = int(np.ceil(MORE[dimensions] * order))
    if dimensions == 4:
        root = root @ HADAMARD
    std = jnp.sqrt(jnp.max(jnp.sum(root**2, axis=1)))
    delta = spacing(count, jnp.max(jnp.abs(root)), std, entire)
    points = jnp.asarray(_ball(dimensions, count))
    weights = jnp.exp(-(delta**2) / 2 * jnp.sum(points**2, axis=1))
    return points @ (delta * root).T, weights / jnp.sum(weights)


@functools.lru_cache(maxsize=8)
def _ball(dimensions: int, count: int) -> np.ndarray:
    """Half-integer points of the cube with `count` points a side that lie within half a side of its
    centre.
    """
    line = np.arange(count) - (count - 1) / 2
    cube = np.stack(np.meshgrid(*[line] * dimensions, indexing="ij"), -1).reshape(-1, dimensions)
    return cube[np.sum(cube**2, axis=1) <= (count / 2) ** 2]
