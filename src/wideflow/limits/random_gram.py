r"""The random tangent Gram matrix of infinite width under asymmetric node scaling (caron2023,
Proposition 3.3, equations 10-12).

With node weights
$\lambda_{m,j} = \gamma/m + (1-\gamma)\tilde\lambda_j/\sum_{k\le m}\tilde\lambda_k$ the Gram matrix
at time zero tends to
$$\widehat\Theta_\infty = \gamma\,\widehat\Theta^* + (1-\gamma)\sum_{j\ge1}\tilde\lambda_j\,\tfrac1d
  XX^\top\odot\sigma'(Z_j)\sigma'(Z_j)^\top,$$
which stays random as soon as $\gamma < 1$: $\mathbb E\widehat\Theta_\infty = \widehat\Theta^*$ and
$\mathbb E\lVert\widehat\Theta_\infty - \widehat\Theta^*\rVert_F^2 =
C_0(X)\,(1-\gamma)^2\sum_j\tilde\lambda_j^2$ (equation 12). At width $m$ the same holds with
$\sum_j\lambda_{m,j}^2$ in place of $(1-\gamma)^2\sum_j\tilde\lambda_j^2$. Zipf sums are values of
the zeta function; their tails are heavy (3 % of the mass beyond $j = 2000$ at $\alpha = 0.7$) and
are never dropped.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.special import zeta

from .._core.activations import Activation, activation as as_activation
from .._core.arrays import real_array
from .._core.errors import as_key, check_between, check_count, check_kind, check_number
from .._core.gaussian import expect_pair, pair_derivative
from .._core.precision import double
from .._core.randomness import named_key
from .._core.scalings import NTK, AbstractScaling, Weights, Zipf
from .kernels import mean_ntk, preactivation_covariance

__all__ = [
    "LimitNodes",
    "departure",
    "gram_variance",
    "limit_nodes",
    "random_ntg",
    "truncation_error",
    "variance_constant",
    "zipf_sum",
    "zipf_tail",
]


class LimitNodes(NamedTuple):
    r"""What a node scaling tends to: the symmetric share $\gamma$, the first $J$ of the
    $\tilde\lambda_j$, and the sums over $j > J$.

    Attributes:
        gamma: $\gamma$.
        head: $\tilde\lambda_1, \dots, \tilde\lambda_J$.
        tail: $\sum_{j>J}\tilde\lambda_j$.
        tail_squares: $\sum_{j>J}\tilde\lambda_j^2$.
    """

    gamma: float
    head: np.ndarray
    tail: float
    tail_squares: float

    @property
    def squares(self) -> float:
        r"""$\sum_{j\ge1}\tilde\lambda_j^2$."""
        return float(np.sum(self.head**2)) + self.tail_squares


@double
def zipf_sum(alpha: float, power: float = 2.0) -> float:
    r"""$\sum_{j\ge1}\tilde\lambda_j^r = \zeta(r/\alpha)/\zeta(1/\alpha)^r$ for $r >\alpha$
    (caron2023, Figure 5 at $r = 2$).

    It falls strictly from 1 ($\alpha\to0$) to 0 ($\alpha\to1$).

    Args:
        alpha: $\alpha$, between 0 and 1.
        power: $r$.

    >>> round(zipf_sum(0.5), 15)  # zeta(4)/zeta(2)^2 = 2/5
    0.4
    """
    check_between("alpha", alpha, 0.0, 1.0, open=True, remedy="Smaller is steeper.")
    check_number("power", power)
    if not power > alpha:
        raise ValueError(
            f"`power` must exceed `alpha` = {alpha} for the sum to converge, got {power}."
        )
    return float(zeta(power / alpha) / zeta(1.0 / alpha) ** power)


@double
def zipf_tail(alpha: float, after: int, power: float = 1.0) -> float:
    r"""$\sum_{j>J}\tilde\lambda_j^r$ with $J$ = `after`, through the Hurwitz zeta function.

    Args:
        alpha: $\alpha$ of $\tilde\lambda_j \propto j^{-1/\alpha}$, between 0 and 1.
        after: $J$.
        power: $r$.
    """
    check_between("alpha", alpha, 0.0, 1.0, open=True, remedy="Smaller is steeper.")
    check_count("after", after, least=0)
    check_number("power", power)
    return Zipf(gamma=0.0, alpha=alpha).limit_tail(after, power)


def limit_nodes(scaling: AbstractScaling, nodes: int) -> LimitNodes:
    r"""The limit of `scaling` as the width grows, its first `nodes` nodes apart.

    `Weights` with a function is taken at its word that the sequence sums to 1; its tail of squares
    is then the bound $\tilde\lambda_J\sum_{j>J}\tilde\lambda_j$. `Weights` with a list ends with
    the list.

    Args:
        scaling: `NTK`, `Zipf` or `Weights`.
        nodes: $J$.
    """
    check_count("nodes", nodes)
    if isinstance(scaling, NTK):
        return LimitNodes(1.0, np.zeros(0), 0.0, 0.0)
    if isinstance(scaling, Zipf):
        if scaling.gamma == 1:
            return LimitNodes(1.0, np.zeros(0), 0.0, 0.0)
        head = scaling.limit_weights(nodes)
        return LimitNodes(
            scaling.gamma, head, scaling.limit_tail(nodes), scaling.limit_tail(nodes, 2.0)
        )
    if isinstance(scaling, Weights):
        if callable(scaling.sequence):
            head = np.array([float(scaling.sequence(j)) for j in range(1, nodes + 1)])
            tail = 1.0 - math.fsum(head)
            # 1e-9: sums of user-given shares, rounded to nine digits, still count as 1
            if not -1e-9 <= tail < 1.0:
                raise ValueError(
                    "`sequence` must sum to 1 over all nodes to have a limit, but its first "
                    f"{nodes} values sum to {1 - tail:.6g}. "
                    "Divide it by its sum."
                )
            tail = max(tail, 0.0)
            return LimitNodes(scaling.gamma, head, tail, float(head[-1]) * tail)
        head = np.asarray(scaling.sequence) / math.fsum(scaling.sequence)
        return LimitNodes(scaling.gamma, head, 0.0, 0.0)
    raise ValueError(
        "`scaling` must be `NTK`, `Zipf` or `Weights` to have a limiting tangent Gram matrix, "
        f"got {type(scaling).__name__}. "
        "Mean-field networks move their features at leading order; see `wf.limits.mean_field`."
    )


@double
def random_ntg(
    key, inputs, scaling: AbstractScaling, activation, *, nodes: int = 400, draws: int | None = None
) -> Float[Array, "*draw sample sample"]:
    r"""One draw of the limiting Gram matrix $\widehat\Theta_\infty$ (caron2023, Proposition 3.3).

    The first $J$ = `nodes` nodes are drawn, the rest is replaced by its mean,
    $$\gamma\widehat\Theta^* + (1-\gamma)\Big[\sum_{j\le J}\tilde\lambda_j\tfrac1d
      XX^\top\odot\sigma'(Z_j)\sigma'(Z_j)^\top
      + \Big(\sum_{j>J}\tilde\lambda_j\Big)\widehat\Theta^*\Big],$$
    which leaves an error of mean zero and root mean square
    `truncation_error(inputs, scaling, activation, nodes)` in Frobenius norm.

    Args:
        key: typed key; draw $k$ of several uses the key folded with $k$.
        inputs: (sample, feature).
        scaling: `NTK`, `Zipf` or `Weights`.
        activation: $\sigma$.
        nodes: how many nodes are drawn.
        draws: number of matrices; one without a leading axis when missing.
    """
    act, key = as_activation(activation), as_key(key)
    inputs = real_array("inputs", inputs, "(sample, feature)").astype(float)
    limit = limit_nodes(scaling, nodes)
    mean = mean_ntk(inputs, act)
    kernel_share = limit.gamma + (1.0 - limit.gamma) * limit.tail
    weights = jnp.asarray((1.0 - limit.gamma) * limit.head)
    products = inputs @ inputs.T / inputs.shape[1]

    # the Hadamard form of a shallow tangent Gram matrix, one product for all nodes
    def one(key):
        hidden = jax.random.normal(
            named_key(key, "hidden"), (weights.shape[0], inputs.shape[1]), dtype=inputs.dtype
        )
        slopes = act.derivative(inputs @ hidden.T / math.sqrt(inputs.shape[1]))
        return kernel_share * mean + products * ((slopes * weights) @ slopes.T)

    if draws is None:
        return one(key)
    check_count("draws", draws)
    return jax.lax.map(lambda k: one(jax.random.fold_in(key, k)), jnp.arange(draws))


@double
def truncation_error(inputs, scaling: AbstractScaling, activation, nodes: int = 400) -> float:
    r"""Root mean square Frobenius error of `random_ntg`:
    $\big(C_0(X)(1-\gamma)^2\sum_{j>J}\tilde\lambda_j^2\big)^{1/2}$.

    Args:
        inputs: $X$, shape (sample, feature).
        scaling: where $\gamma$ and the $\tilde\lambda_j$ come from.
        activation: $\sigma$.
        nodes: $J$, as given to `random_ntg`.
    """
    limit = limit_nodes(scaling, nodes)
    return math.sqrt(variance_constant(inputs, activation) * limit.tail_squares) * (
        1.0 - limit.gamma
    )


@double
def gram_variance(inputs, scaling: AbstractScaling, activation, width: int | None = None) -> float:
    r"""$\mathbb E\lVert\widehat\Theta - \widehat\Theta^*\rVert_F^2$ at time zero:
    $C_0(X)\sum_j\lambda_{m,j}^2$ at width $m$ = `width`, or its limit
    $C_0(X)(1-\gamma)^2\sum_j\tilde\lambda_j^2$ when `width` is missing (caron2023, equation 12).

    Where the node weights fall short of total 1 (`Zipf(released=True)`) it is the variance about
    their own mean $\sum_j\lambda_{m,j}\,\widehat\Theta^*$.

    Args:
        inputs: $X$, shape (sample, feature).
        scaling: where the node weights come from.
        activation: $\sigma$.
        width: $m$; None for the limit.
    """
    return departure(scaling, width) * variance_constant(inputs, activation)


@double
def departure(scaling: AbstractScaling, width: int | None = None) -> float:
    r"""Distance from the kernel regime: $\sum_j\lambda_{m,j}^2$ at width $m$ = `width`, or its
    limit $(1-\gamma)^2\sum_j\tilde\lambda_j^2$.

    0 is a fixed kernel, 1 a single node; caron2023, Figure 5 shows the limit at $\gamma = 0$ as a
    function of $\alpha$.

    Args:
        scaling: where the node weights come from, for instance `Zipf(gamma, alpha)`.
        width: $m$; None for the limit.

    >>> round(departure(Zipf(gamma=0.5, alpha=0.5)), 12)
    0.1
    """
    check_kind("scaling", scaling, AbstractScaling, "one of `wf.scalings`, such as `NTK()`")
    if width is not None:
        return float(jnp.sum(scaling.node_scales(width) ** 4))
    if isinstance(scaling, Zipf) and scaling.gamma < 1:
        return (1.0 - scaling.gamma) ** 2 * zipf_sum(scaling.alpha)
    # the tail of squares beyond is at most lambda_J times the tail of the sum
    limit = limit_nodes(scaling, 100_000)
    return (1.0 - limit.gamma) ** 2 * limit.squares


@double
def variance_constant(inputs, activation) -> float:
    r"""$C_0(X) = \sum_{i,k}\big(\langle x_i,x_k\rangle/d\big)^2\,\mathrm{Var}(\sigma'(u)\sigma'(v))$
    (caron2023, equation 12).

    ReLU: the variance of a coin, $p(1-p)$ with $p = (\pi-\vartheta)/(2\pi)$.

    Args:
        inputs: $X$, shape (sample, feature).
        activation: $\sigma$.
    """
    act = as_activation(activation)
    k11, k12, k22 = preactivation_covariance(inputs)
    means = pair_derivative(act, k11, k12, k22)
    return float(jnp.sum(k12**2 * (_squared_slopes(act, k11, k12, k22) - means**2)))


def _squared_slopes(act: Activation, k11, k12, k22):
    r"""$\mathbb E[\sigma'(u)^2\sigma'(v)^2]$; slopes $\beta_\pm$ on the two sides of a kink give
    $(\beta_+^4+\beta_-^4)p + \beta_+^2\beta_-^2(1-2p)$."""
    if act.degree == 1:
        # both pre-activations are positive with probability p = E[relu' relu'], both negative with
        # p, and they differ in sign with 1 - 2p
        right, left = (float(act.derivative(jnp.asarray(side))) ** 2 for side in (1.0, -1.0))
        both = pair_derivative(as_activation("relu"), k11, k12, k22)
        return (right**2 + left**2) * both + right * left * (1.0 - 2.0 * both)
    square = lambda z: act.derivative(z) ** 2
    return expect_pair(square, square, k11, k12, k22)
