r"""The rate equations of stage 2 (li2020, Claim A.10, Lemma A.6) and the potential that they
decrease.

$\gamma_i$ is the mass of basis-like neurons on coordinate $i$, $\beta_i$ that of all others. To
errors $O(1/d^2)$,
$$\gamma_i' = \gamma_i[-\Delta + C_1(a_i - \beta_i - \gamma_i) + C_2(a_i - \gamma_i)], \quad
  \beta_i' = \beta_i[-\Delta + C_1(a_i - \beta_i - \gamma_i)], \quad \Delta =
  2b_0\big(\textstyle\sum(\gamma+\beta) - \sum a\big).$$
The paper's "fixed constants" are $C_1 = 2b_2 = 8/\pi$ and
$C_2 = 2\sum_{j\ge2}(B_{1,2j} - B_{2,2j}) = 8(1-3/\pi)$, and $b_0 = 8/\pi$. (Stage 1 defines
$\Delta = b_0(\dots)$, half of this one.)
"""

import math

import jax.numpy as jnp
from jaxtyping import Array, Float

from ...._core.arrays import increasing, real_array
from ...._core.errors import check_number, check_positive
from ...._core.precision import double

__all__ = ["B0", "B2", "C1", "C2", "potential", "stage_flow", "stage_rates"]

B0 = 8 / math.pi
B2 = 4 / math.pi
C1 = 2 * B2
C2 = 8 * (1 - 3 / math.pi)


def _masses(gamma, beta, coefficients) -> tuple[Array, Array, Array]:
    """The three, checked: one number a direction each."""
    a = real_array("coefficients", coefficients, "(feature)").astype(jnp.float64)
    gamma, beta = (
        real_array(name, value, f"({a.shape[0]},)").astype(jnp.float64)
        for name, value in (("gamma", gamma), ("beta", beta))
    )
    return gamma, beta, a


@double
def stage_rates(
    gamma, beta, coefficients
) -> tuple[Float[Array, " feature"], Float[Array, " feature"]]:
    r"""$(\gamma', \beta')$.

    Args:
        gamma, beta: $\gamma_i$ and $\beta_i$, shape (feature,).
        coefficients: $a_i$.

    >>> grow, fade = stage_rates([0.25, 0.25], [0.0, 0.0], [0.5, 0.5])
    >>> round(float(grow[0]), 6)  # 0.25 (2 b0 / 2 + (C1 + C2) / 4)
    0.81831
    """
    gamma, beta, a = _masses(gamma, beta, coefficients)
    shared = -2 * B0 * (jnp.sum(gamma + beta) - jnp.sum(a)) + C1 * (a - beta - gamma)
    return gamma * (shared + C2 * (a - gamma)), beta * shared


@double
def stage_flow(
    gamma, beta, coefficients, times
) -> tuple[Float[Array, "time feature"], Float[Array, "time feature"]]:
    r"""$\gamma(t)$ and $\beta(t)$ at `times` (increasing; the first is where the given values
    stand).

    Args:
        gamma, beta: $\gamma_i$ and $\beta_i$ at the first of `times`.
        coefficients: $a_i$.
        times: when the path is wanted.
    """
    from ...._core.solvers import diffrax

    gamma, beta, a = _masses(gamma, beta, coefficients)
    times = jnp.asarray(increasing("times", times))
    if times.shape[0] < 2:
        raise ValueError(
            f"`times` must hold a start and at least one later time, got {times.shape[0]} number."
        )
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(lambda t, y, args: stage_rates(y[0], y[1], args)),
        diffrax.Tsit5(),
        times[0],
        times[-1],
        None,
        (gamma, beta),
        args=a,
        saveat=diffrax.SaveAt(ts=times),
        stepsize_controller=diffrax.PIDController(rtol=1e-8, atol=1e-12),
        max_steps=100_000,
    )
    assert solution.ys is not None  # `saveat` asks for them
    return solution.ys


@double
def potential(
    gamma, beta, coefficients, slack: float | int = 0.1, constant: float | int = 1.0
) -> dict[str, Float[Array, ""]]:
    r"""$\Phi$ of Lemma A.6 and its parts: "delta_minus", "delta_plus", "Delta_plus", "Delta_minus",
    "beta_plus", "Phi".

    $\delta_- = \max_i\{C_1(a_i-\beta_i-\gamma_i) +
    C_2\frac{\gamma_i}{\beta_i+\gamma_i}(a_i-\gamma_i)\}^+$, $\delta_+$ with reversed signs,
    $\Delta_\pm = [\pm\Delta]^+$ of stage 2,
    $\Phi_\pm = \max\{\delta_\pm, (1+\text{slack})\Delta_\mp\}$ with slack for the paper's
    $1/\mathrm{poly}\,\kappa$, $\beta_+ = \max_i\beta_i/C$ with $C$ = `constant`, and
    $\Phi = \max\{\Phi_+, \Phi_-, \beta_+\}$.

    Args:
        gamma, beta: $\gamma_i$ and $\beta_i$, shape (feature,).
        coefficients: $a_i$.
        slack: in place of $1/\mathrm{poly}\,\kappa$.
        constant: $C$.
    """
    gamma, beta, a = _masses(gamma, beta, coefficients)
    check_number("slack", slack)
    check_positive("constant", constant)
    total = beta + gamma
    share = jnp.where(total > 0, gamma / jnp.where(total > 0, total, 1.0), 0.0)
    inner = C1 * (a - total) + C2 * share * (a - gamma)
    delta = 2 * B0 * (jnp.sum(total) - jnp.sum(a))
    parts = {
        "delta_minus": jnp.maximum(jnp.max(inner), 0.0),
        "delta_plus": jnp.maximum(jnp.max(-inner), 0.0),
        "Delta_plus": jnp.maximum(delta, 0.0),
        "Delta_minus": jnp.maximum(-delta, 0.0),
        "beta_plus": jnp.max(beta) / constant,
    }
    plus = jnp.maximum(parts["delta_plus"], (1 + slack) * parts["Delta_minus"])
    minus = jnp.maximum(parts["delta_minus"], (1 + slack) * parts["Delta_plus"])
    return parts | {"Phi": jnp.maximum(jnp.maximum(plus, minus), parts["beta_plus"])}
