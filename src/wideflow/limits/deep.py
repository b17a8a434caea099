r"""Limiting Gram matrices of random embeddings, for every activation and depth (chen2022, equations
22-23, Appendix H).

With $z \sim \mathcal{N}(0, I_d)$ the pair $(z \cdot x_a, z \cdot x_b) / \sqrt d$ is Gaussian with
covariance from $K_0 = X X^\top / d$. One frozen layer of infinite width maps a covariance $K$ to
$\mathrm{Dual}_\sigma(K)_{ab} = E[\sigma(u) \sigma(v)]$; there is no normalisation between the
layers, so ReLU halves the diagonal and tanh shrinks it.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np

from .._core.activations import activation as as_activation
from .._core.arrays import gram_matrix, real_array
from .._core.errors import as_key, check_callable, check_count, check_nonnegative
from .._core.gaussian import pair, pair_derivative
from .._core.polar import root
from .._core.precision import double

__all__ = ["hidden_gram", "largest_cosine", "lazy_kernel", "sampled_gram", "slope_gram"]


@double
def hidden_gram(inputs, activation, depth: int = 1, other=None):
    r"""$\bar G^{(l)}$ at $l$ = `depth`: $\bar G^{(0)} = X X^\top / d$ and
    $\bar G^{(l+1)} = \mathrm{Dual}_\sigma(\bar G^{(l)})$.

    A P-L network of chen2022 has $L - 2$ frozen layers, hence `depth` $= L - 2$: 1 for P-3L, 0 for
    the plain shallow network.

    Args:
        inputs: (sample, feature).
        activation: name or object, the $\sigma$ of the frozen layers.
        depth: number of frozen layers.
        other: further inputs; then the result is the (sample, other) cross matrix.

    Returns:
        $\bar G$, the limit of $G_{ab} = \Phi(x_a) \cdot \Phi(x_b) / D$ as all frozen widths grow;
            the error is $O(D^{-1/2})$.
    """
    return _layers(inputs, activation, depth, other)[1]


@double
def slope_gram(gram, activation):
    r"""$\mathrm{Dual}_{\sigma'}(G)_{ab} = E[\sigma'(u) \sigma'(v)]$ for
    $(u, v) \sim \mathcal{N}(0, G_{\{a, b\}})$.

    Args:
        gram: $G$, shape (point, point).
        activation: $\sigma$.
    """
    gram = gram_matrix("gram", gram)
    diagonal = jnp.diagonal(gram)
    return pair_derivative(as_activation(activation), diagonal[:, None], gram, diagonal[None, :])


@double
def lazy_kernel(inputs, activation, depth: int = 1, magnitude: float | int = 1.0, other=None):
    r"""$\bar K = \hat c^2\, \bar G \circ \mathrm{Dual}_{\sigma'}(\bar G)$: the constant kernel of
    the NTK scaling at $m, D = \infty$.

    Only the last hidden layer is trained, on top of `depth` frozen layers; $\hat c$ = `magnitude`
    is the common size of the output weights. It is also the kernel of the mean-field scaling at
    time zero.

    Args:
        inputs: shape (left, feature).
        activation: $\sigma$ of all layers.
        depth: how many frozen layers.
        magnitude: $\hat c$.
        other: shape (right, feature); the inputs themselves if None.
    """
    act = as_activation(activation)
    check_nonnegative("magnitude", magnitude)
    left, cross, right = _layers(inputs, act, depth, other)
    return magnitude**2 * cross * pair_derivative(act, left[:, None], cross, right[None, :])


def _layers(inputs, activation, depth, other):
    """The diagonals and the cross matrix after `depth` layers."""
    check_count("depth", depth, least=0)
    act = as_activation(activation)
    rows = _points("inputs", inputs)
    columns = rows if other is None else _points("other", other)
    features = rows.shape[1]
    if columns.shape[1] != features:
        raise ValueError(
            f"`other` must have {features} features like `inputs`, got {columns.shape[1]}."
        )
    cross = rows @ columns.T / features
    left = jnp.sum(rows * rows, axis=1) / features
    right = jnp.sum(columns * columns, axis=1) / features
    for _ in range(int(depth)):
        cross = pair(act, left[:, None], cross, right[None, :])
        left, right = pair(act, left, left, left), pair(act, right, right, right)
        # a diagonal rounded through the cross term would differ in the last digits
        if other is None:
            cross = jnp.where(jnp.eye(len(left), dtype=bool), left[:, None], cross)
    return left, cross, right


@double
def sampled_gram(key, inputs, activation, draw=jax.random.normal, samples: int = 100_000):
    r"""$\bar G^{(1)}$ for any law of the first-layer weights, by Monte Carlo, with its standard
    error.

    Args:
        key: random key.
        inputs: (sample, feature).
        activation: name or object.
        draw: `draw(key, shape)`, independent centred entries of $z$ (or rows, for shape (samples,
            feature)).
        samples: number of draws of $z$.

    Returns:
        `(gram, error)`, both (sample, sample); `error` is the standard error of each entry.
    """
    check_count("samples", samples, least=2, remedy="A standard error needs two.")
    key = as_key(key)
    check_callable("draw", draw, "a function of (key, shape)")
    act = as_activation(activation)
    rows = _points("inputs", inputs)
    chunk = max(1, min(samples, 20_000))
    count, total, squares = 0, 0.0, 0.0
    while count < samples:
        size = min(chunk, samples - count)
        key, now = jax.random.split(key)
        values = act(draw(now, (size, rows.shape[1])) @ rows.T / math.sqrt(rows.shape[1]))
        total = total + values.T @ values
        squares = squares + (values**2).T @ values**2
        count += size
    mean = total / samples
    # of sums over all draws: chunks bound the memory and not the statistics
    variance = jnp.maximum(squares / samples - mean**2, 0) * samples / (samples - 1)
    return mean, root(variance / samples)


@double
def largest_cosine(inputs) -> float:
    r"""$\max_{a \ne b} |\cos(x_a, x_b)|$; at 1 two inputs lie on one line and the limiting Gram
    matrix may be singular.

    Where no two inputs are parallel, $\bar G^{(1)}$ is positive definite for ReLU and for analytic
    non-polynomial activations (chen2022, Assumption 4). Antipodal pairs can make the ReLU matrix
    singular, since $\mathrm{relu}(u) - \mathrm{relu}(-u) = u$.

    Args:
        inputs: shape (sample, feature); a zero row counts as parallel to all.
    """
    rows = np.asarray(_points("inputs", inputs))
    norms = np.linalg.norm(rows, axis=1)
    if not np.all(norms > 0):
        return 1.0  # the zero input lies on every line
    if len(rows) < 2:
        return 0.0
    cosines = np.abs(rows @ rows.T) / np.outer(norms, norms)
    np.fill_diagonal(cosines, 0.0)
    return float(cosines.max())


def _points(name, value):
    return real_array(name, value, "(sample, feature)")
