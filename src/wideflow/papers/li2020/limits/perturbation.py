r"""First-order propagation of errors $\xi_w = \tilde w - w$ between finite and infinite width
(li2020, App. B).

$\tilde P$ is the uniform law on pairs $(w, \xi_w)$, given as two arrays of equal shape (neuron,
feature); the target's directions are the axes.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from ...._core.arc_cosine import abs_hermite_squares
from ...._core.precision import double

__all__ = ["error_forms", "sixteen_terms"]


def _pairs(weights, errors):
    w, xi = (jnp.asarray(x).astype(jnp.float64) for x in (weights, errors))
    if w.ndim != 2 or w.shape != xi.shape:
        raise ValueError(
            "`weights` and `errors` must be two arrays of one shape (neuron, feature), got "
            f"{w.shape}, {xi.shape}."
        )
    return w, xi, jnp.sqrt(jnp.sum(w**2, axis=1))


@double
def error_forms(weights, errors, half: int = 2) -> dict[str, Float[Array, ""]]:
    r"""The quadratic forms that Claims B.1, B.2 and B.3 say are not negative (order $2j$, $j$ =
    `half`).

    "zeroth": $(\mathbb E\langle w,\xi\rangle)^2$. "second": $\mathbb E_{v,w}[\langle
    w,\xi_v\rangle\langle\xi_w,v\rangle + \langle\xi_w,\xi_v\rangle\langle w,v\rangle]$. "first":
    $\mathbb E_v\langle\tilde\nabla_{1,v,1},\xi_v\rangle/b_1$ and "first_square" the norm it equals,
    $\|\mathbb E(\|w\|\xi_w + w\langle\bar w,\xi_w\rangle)\|^2$ (corrected: Claim B.2 needs the mean
    over $v$, and its first term $\bar v$). "higher_1", "higher_2": the two forms of Claim B.3.
    """
    w, xi, r = _pairs(weights, errors)
    u = w / r[:, None]
    cross = w @ xi.T  # <w_i, xi_j>
    gram, errors_gram = w @ w.T, xi @ xi.T
    cosines = (u @ u.T) ** (2 * half - 2)
    radial = jnp.sum(u * xi, axis=1)
    # rows v, columns w: <grad_{1,v,1}, xi_v> = <wbar,xi_w><w,v><vbar,xi_v> +
    # |w|<vbar,xi_w><v,xi_v> + <wbar,xi_w>|v|<w,xi_v>
    #                                           + |w||v|<xi_w,xi_v>
    first = (
        radial[None, :] * gram * radial[:, None]
        + r[None, :] * (u @ xi.T) * jnp.sum(w * xi, axis=1)[:, None]
        + radial[None, :] * r[:, None] * cross.T
        + r[None, :] * r[:, None] * errors_gram
    )
    mean = jnp.mean(r[:, None] * xi + radial[:, None] * w, axis=0)
    return {
        "zeroth": jnp.mean(jnp.sum(w * xi, axis=1)) ** 2,
        "second": jnp.mean(cross.T * cross + errors_gram * gram),
        "first": jnp.mean(first),
        "first_square": jnp.sum(mean**2),
        "higher_1": jnp.mean(cosines * (cross * cross.T + cross.T**2)),
        "higher_2": jnp.mean(gram * cosines * errors_gram),
    }


@double
def sixteen_terms(
    particle, error, weights, errors, coefficients, half: int
) -> Float[Array, "term feature"]:
    r"""$\tilde\nabla_{2j,v,p}$, $p = 1..16$ (B.2.1): their sum is the differential of
    $\nabla_{2j,v}$ in $(v, w)$ along $(\xi_v, \xi_w)$.

    With $b + b' = 4jc_{2j}$ and $b' = (4j-4)c_{2j}$. Corrected: the expansion of the normalised
    vector is $\xi/\|v\| - \langle\xi,\bar v\rangle\bar v/\|v\|$; the printed sixteen terms
    themselves are right.
    """
    w, xi_w, r = _pairs(weights, errors)
    v, xi, a = (jnp.asarray(x).astype(jnp.float64) for x in (particle, error, coefficients))
    j = half
    c = float(abs_hermite_squares(2 * j)[2 * j])
    both, only = 4 * j * c, (4 * j - 4) * c
    length = jnp.sqrt(v @ v)
    vb, wb = v / length, w / r[:, None]
    s = wb @ vb
    power = s ** (2 * j - 2)
    wv, wvb, xv, wx = w @ v, w @ vb, xi_w @ v, w @ xi  # <w,v>, <w,vbar>, <xi_w,v>, <w,xi_v>
    xw, xvb = jnp.sum(xi_w * wb, axis=1), xi @ vb  # <xi_w,wbar>, <xi_v,vbar>

    def mean(factor, vector):
        return jnp.mean(factor[:, None] * vector, axis=0)

    e = jnp.sum(a * vb ** (2 * j))
    return jnp.stack(
        [
            (2 * j - 1) * both * (mean(xv * power, w) + mean(wx * power, w)),
            both * mean(wv * power, xi_w),
            -(2 * j - 2) * both * mean(wb @ v * power * xw, w),
            -(2 * j - 2) * both * mean(wvb * power, w) * xvb,
            -2 * j * only * jnp.mean(xv * power * wvb) * vb,
            -2 * j * only * jnp.mean(wx * power * wvb) * vb,
            (2 * j - 2) * only * jnp.mean(xw * s ** (2 * j - 1) * wv) * vb,
            (2 * j - 1) * only * xvb * jnp.mean(power * wvb**2) * vb,
            -only * jnp.mean(power * wvb**2) * xi,
            only * jnp.mean(power * wvb**2) * xvb * vb,
            -(2 * j - 1) * both * a * xi * vb ** (2 * j - 2),
            (2 * j - 2) * both * a * xvb * vb ** (2 * j - 1),
            2 * j * only * jnp.sum(a * xi * vb ** (2 * j - 1)) * vb,
            -(2 * j - 1) * only * xvb * e * vb,
            only * e * xi,
            -only * e * xvb * vb,
        ]
    )
