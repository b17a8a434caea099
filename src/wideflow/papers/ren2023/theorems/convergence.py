"""Convergence of the reduced system and its step size: Lemma 4.3 with Lemmas D.20 to D.22, Appendix
E.
"""

import math
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from ...._core.precision import double
from ....theorems.base import AbstractTheorem, Citation, Verdict
from ..laws.base import AbstractRadialLaw
from ..laws.step_bound import step_bound
from ..laws.thresholds import Thresholds
from ..limits.field import ReducedState, reduced_field, reduced_loss
from ..limits.flow import ReducedPath
from .judge import judge, not_applicable


class Lemma43(AbstractTheorem):
    r"""With $A^2 = \alpha^2 + (4 C_\Gamma/\sqrt d) w^2 \alpha$, $\tilde\nabla = (A\,A_1, A_0)$ and
    $\hat\nabla = (-1 - \alpha w, A(1 - b))$, while $w < 0$ and the neuron is active on the unit
    ball: $\lVert\tilde\nabla\rVert\,\lVert\hat\nabla\rVert \ge 2 A L$ (D.20, D.21), hence
    $1/L(T) - 1/L(t_0) \ge \int_{t_0}^T 4 A^2/\lVert\hat\nabla\rVert^2\, dt$ (D.22), which the paper
    weakens to $T_2 - T_1 = O(d^3/\varepsilon)$.

    The path must be one of the unprojected flow on `law`: its losses are those of `law`, and it
    conserves $\alpha - (2 C_\Gamma/\sqrt d) w^2$, which neither long Euler steps nor projections do.

    Corrected: D.21 prints $C_F$ for $C_\Gamma$ and D.16 lacks the radius of its restricted
    expectation.
    """

    citation: ClassVar = Citation("ren2023", "Lemma 4.3 and Lemmas D.20 to D.22")

    @double
    def __call__(
        self, law: AbstractRadialLaw, path: ReducedPath, *, floor: float = 1e-10
    ) -> Verdict:
        """`path` is a `ReducedPath` of one neuron; records with a loss below `floor` are left out
        as rounding.

        Near the end the ratio tends to 1 from above, while $L$ is a difference of moments of size
        $E f_*^2$: what rounding leaves open there is granted.

        Args:
            law: of the radius.
        """
        alpha, w, b, loss, t = (
            np.asarray(x, float) for x in (path.alpha, path.w, path.b, path.loss, path.time)
        )
        if w.ndim != 1:
            return not_applicable("it requires a path of one second-layer neuron")
        keep = loss > floor
        alpha, w, b, loss, t = alpha[keep], w[keep], b[keep], loss[keep], t[keep]
        if not (np.all(w < 0) and np.all(b + w * alpha >= 0)) or not len(t):
            return not_applicable(
                "it requires w < 0 and a neuron active on the unit ball along the path"
            )
        size = np.sqrt(alpha**2 + 4 * law.gain * w**2 * alpha)
        states = ReducedState(jnp.asarray(alpha), jnp.asarray(w)[:, None], jnp.asarray(b)[:, None])
        fault = _another_path(law, states, alpha, w, loss)
        if fault:
            return not_applicable(fault)
        field = jax.vmap(lambda s: reduced_field(law, s, Thresholds()))(states)
        first, zeroth = np.asarray(field.w[:, 0]) / alpha, np.asarray(field.b[:, 0])
        gradient = np.hypot(size * first, zeroth)
        reach = np.hypot(1 + alpha * w, size * (1 - b))
        ratio = gradient * reach / (2 * size * loss)
        open_digits = 8 * np.finfo(float).eps * law.target_moments()[1] / loss
        speed = 4 * size**2 / reach**2
        integral = np.sum(
            np.minimum(speed[1:], speed[:-1]) * np.diff(t)
        )  # a lower sum where speed is monotone
        gained = 1 / loss[-1] - 1 / loss[0]
        numbers = {
            "smallest_ratio": ratio.min(),
            "gained": gained,
            "integral": integral,
            "paper_bound": law.d**3 / loss[-1],
        }
        margin = min(
            (ratio + open_digits).min() - 1, gained / integral - 1 if integral > 0 else 0.0
        )
        return judge(
            margin,
            f"smallest ratio {ratio.min():.4f}; 1/L grew by {gained:.3g}, at least "
            f"{integral:.3g} required",
            numbers,
        )


# of losses and of the conserved quantity, relative; the solver at its defaults keeps both to 1e-7
SAME = 1e-5


def _another_path(law, states: ReducedState, alpha, w, losses) -> str:
    """Why the path is none of the unprojected flow on `law`; empty where it is."""
    own = np.asarray(jax.vmap(lambda state: reduced_loss(law, state))(states))
    if not np.all(np.abs(own - losses) <= SAME * losses + 1e-14):
        return "the losses of the path are not those of this law"
    conserved, scale = alpha - 2 * law.gain * w**2, alpha + 2 * law.gain * w**2
    if not np.all(np.abs(conserved - conserved[0]) <= SAME * scale.max()):
        return "alpha - (2 C / sqrt d) w^2 drifts: this is no path of the unprojected flow"
    return ""


class TimeToLoss(AbstractTheorem):
    r"""$T_2 - T_1 \le d^3/\varepsilon$, the paper's bound $O(d^3/\varepsilon)$ with constant one.

    Args:
        d: the dimension of the inputs.
        epsilon: $\varepsilon$.
        time: $T_2 - T_1$.
    """

    citation: ClassVar = Citation("ren2023", "Theorem 2.1 and Lemma 4.3")

    @double
    def __call__(self, d: int, epsilon: float, time: float) -> Verdict:
        bound = d**3 / epsilon
        if not math.isfinite(time):
            return not_applicable("the level was not reached")
        return judge(
            1 - time / bound, f"{time:.4g} against {bound:.3g}", {"time": time, "bound": bound}
        )


class StepSize(AbstractTheorem):
    r"""Appendix E asks for small enough steps; usable is $\eta \le 1/(2\lambda)$ with
    $\lambda = M_0(\rho) + A^2 M_2(\rho)$, $\rho = b/(|w|\alpha)$, which bounds the fastest rate of
    the reduced system. Checked against the eigenvalues of the Jacobian at the state.

    Args:
        law: of the radius, with moments $M_k$.
        alpha, w, b: the state of one second-layer neuron.
        rate: $\eta$; None to judge $\lambda$ alone.
    """

    citation: ClassVar = Citation("ren2023", "Appendix E")

    @double
    def __call__(
        self, law: AbstractRadialLaw, alpha: float, w: float, b: float, rate: float | None = None
    ) -> Verdict:
        if not (w < 0 < b):
            return not_applicable("it requires w < 0 < b")

        def field(point):
            state = ReducedState(point[0], point[1:2], point[2:])
            speed = reduced_field(law, state, Thresholds())
            return jnp.concatenate([speed.alpha[None], speed.w, speed.b])

        point = jnp.array([alpha, w, b], float)
        jacobian = np.asarray(jax.jacfwd(field)(point))
        fastest = float(np.max(np.abs(np.linalg.eigvals(jacobian))))
        bound = float(step_bound(law, alpha, w, b))
        numbers = {
            "lambda": bound,
            "fastest": fastest,
            "largest_rate": 0.5 / bound,
            "loss": reduced_loss(law, ReducedState(point[0], point[1:2], point[2:])),
        }
        margin = bound - fastest
        if rate is not None:
            margin = min(margin, 0.5 / bound - rate)
        return judge(
            margin,
            f"fastest rate {fastest:.4f}, lambda {bound:.4f}: steps up to {0.5 / bound:.3g}",
            numbers,
        )
