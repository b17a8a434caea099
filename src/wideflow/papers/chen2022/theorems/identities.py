"""What is true on every trajectory: the loss identity, the movement bound, and the PL
inequality.
"""

import math
from typing import ClassVar

import jax.numpy as jnp
import numpy as np

from ...._core.precision import double
from ....models.maps import common_magnitude
from ....models.shallow import Shallow
from ....theorems.base import AbstractTheorem, Citation, Outcome, Verdict
from ....theorems.of_runs import AbstractRunTheorem
from ....theorems.recorded_run import unjudged
from .problem import gather, trajectory


class MonotoneLoss(AbstractRunTheorem):
    r"""Gradient flow (13)-(14): $\dot f = -K r$ (corrected: the left side is the derivative) and
    $\dot L = -r^\top K r \le -\hat c^2 \lambda_{\min}(G) \sum_a r_a^2 A_{aa}$,
    $A_{aa} = \frac1m \sum_i \sigma'(h_i(x_a))^2$. So $L$ never rises.
    """

    citation: ClassVar[Citation] = Citation("chen2022", "Equations 13 and 14")

    @double
    def evaluate(self, start: Shallow, data, table) -> Verdict:
        problem = gather(start, data)
        unmet = None if problem.magnitude > 0 else problem.unmet()
        if unmet is not None:
            return unmet
        path = trajectory(table, start, data, problem, ("loss_slope", "weighted_residual"))
        if path.fault:
            return unjudged(path.fault, problem.numbers())
        slope = path.recorded["loss_slope"]
        scale = 1e-10 * (1 + path.losses) + 100 * path.rounding * np.abs(slope)
        gap = max(problem.smallest, 0.0)  # below rounding the bound is dL/dt <= 0
        # time runs in the units of MeanField(); K of another scaling carries its own factor
        bound = -(_kernel_factor(start) * gap) * path.recorded["weighted_residual"]
        margin = float(np.min(bound + scale - slope))
        rise = float(np.max(np.diff(path.losses), initial=-math.inf)) if path.flow else -math.inf
        resolved = 1e-9 * (1 + path.losses[0]) + 10 * path.rounding * path.losses[0]
        numbers = {**problem.numbers(), "largest_rise": rise}
        holds = margin >= 0 and rise <= resolved
        outcome = Outcome.HOLDS if holds else Outcome.VIOLATED
        return Verdict(
            outcome, margin, f"dL/dt stays below its bound by at least {margin:.3g}", numbers
        )


def _kernel_factor(start: Shallow) -> float:
    r"""$\hat c^2$ times what the scaling makes of it, relative to $G = \Phi \Phi^\top / D$; the
    least over the nodes where their scales differ.
    """
    mixed = float(jnp.min(jnp.abs(start.scales * start.output)))
    return (
        start.rate_factor * start.width * mixed**2 * start.hidden_scale**2 * start.weights.shape[0]
    )


class MovementBound(AbstractTheorem):
    r"""(15): with $1/m$ outside,
    $\frac1m \sum_i |h^t_i(x) - h^s_i(x)| \ge |f^t(x) - f^s(x)| / (\hat c L_\sigma)$ for every input
    and any two times, under every dynamics: a function that is learnt needs features that move.
    With node scale $s$ the right side is divided by $m s$, so that it is $m^{-1/2}$ times smaller
    for NTK.

    Args:
        first, second: the network at the times $s$ and $t$.
        inputs: shape (sample, feature).
    """

    citation: ClassVar[Citation] = Citation("chen2022", "Equation 15")

    @double
    def __call__(self, first: Shallow, second: Shallow, inputs) -> Verdict:
        if not math.isfinite(first.activation.lipschitz):
            return Verdict(
                Outcome.NOT_APPLICABLE,
                math.nan,
                f"{first.activation.name!r} has no known Lipschitz constant",
            )
        if not bool(jnp.all(jnp.isfinite(second.weights))):
            return unjudged("the weights of `second` are not finite: its run diverged", {})
        if not _one_network(first, second):
            return Verdict(
                Outcome.NOT_APPLICABLE,
                math.nan,
                "`first` and `second` differ in more than their trained weights; give one network "
                "at two times",
            )
        magnitude = common_magnitude(first)
        if float(jnp.ptp(first.scales)) > 1e-12 * float(jnp.max(first.scales)):
            return Verdict(Outcome.NOT_APPLICABLE, math.nan, "the node scales differ")
        moved = np.mean(
            np.abs(np.asarray(second.preactivations(inputs) - first.preactivations(inputs))), axis=1
        )
        factor = first.width * float(first.scales[0]) * magnitude * first.activation.lipschitz
        needed = np.abs(np.asarray(second.outputs(inputs) - first.outputs(inputs))) / factor
        margin = float(np.min(moved - needed))
        outcome = Outcome.HOLDS if margin >= -1e-12 else Outcome.VIOLATED
        numbers = {
            "movement": float(moved.mean()),
            "needed": float(needed.mean()),
            "largest_ratio": float(np.max(needed / np.maximum(moved, 1e-300))),
        }
        return Verdict(
            outcome,
            margin,
            f"features moved by {moved.mean():.3g}, the outputs require {needed.mean():.3g}",
            numbers,
        )


def _one_network(first: Shallow, second: Shallow) -> bool:
    """Whether nothing but the trained weights, and the precision, tells the two apart."""
    same = lambda a, b: a.shape == b.shape and np.allclose(a, b, rtol=1e-6, atol=0.0)
    return (
        first.activation == second.activation
        and type(first.embedding) is type(second.embedding)
        and first.weights.shape == second.weights.shape
        and same(first.output, second.output)
        and same(first.scales, second.scales)
        and first.hidden_scale == second.hidden_scale
    )


class PolyakLojasiewicz(AbstractRunTheorem):
    r"""(16): if $|\sigma'| \ge K_s > 0$ on all of $\mathbb{R}$, $\lambda_{\min}(G) > 0$ and
    $|c_i| = \hat c$, then $\dot L \le -2 \hat c^2 \lambda_{\min}(G) K_s^2 L$ and
    $L^t \le L^0 e^{-2 \hat c^2 \lambda_{\min}(G) K_s^2 t}$, at every width. Holds for linear, leaky
    ReLU and smoothed leaky ReLU; not for the cubic that the paper names, since $\sigma'(0) = 0$
    there (corrected). For descent 5 % of the exponent is allowed.
    """

    citation: ClassVar[Citation] = Citation("chen2022", "Equation 16")

    @double
    def evaluate(self, start: Shallow, data, table) -> Verdict:
        problem = gather(start, data)
        floor = global_slope_floor(start.activation)
        rate = 2 * problem.magnitude**2 * problem.smallest * floor**2
        numbers = {**problem.numbers(), "global_slope_floor": floor, "rate": rate}
        faults = [f for f in problem.faults if "Assumption 2" not in f]
        if math.isnan(floor):
            faults.append(
                f"whether |sigma'| of {start.activation.name!r} is bounded away from 0 on the "
                "whole line is unknown"
            )
        elif not floor > 0:
            faults.append(
                f"|sigma'| of {start.activation.name!r} is not bounded away from 0 on the whole "
                "line"
            )
        if faults:
            return Verdict(Outcome.NOT_APPLICABLE, math.nan, "; ".join(faults), numbers)
        path = trajectory(table, start, data, problem)
        if path.fault:
            return unjudged(path.fault, numbers)
        allowed = rate if path.flow else 0.95 * rate
        margin = path.below(allowed)
        numbers["measured_rate"] = measured_rate(path.times, path.losses)
        outcome = Outcome.HOLDS if margin >= 0 else Outcome.VIOLATED
        return Verdict(
            outcome,
            margin,
            f"guaranteed rate {rate:.3g}, measured {numbers['measured_rate']:.3g}",
            numbers,
        )


def global_slope_floor(activation) -> float:
    r"""$\inf_{\mathbb{R}} |\sigma'|$; NaN for a user's own function, of which it is unknown.

    It is 0 for |z|: a neuron that sticks to the kink has any slope between -1 and 1.
    """
    if activation.name == "custom":
        return math.nan
    if activation.name == "linear":
        return 1.0
    if activation.name in ("leaky_relu", "smoothed_leaky_relu"):
        return float(activation.parameters[0])
    return 0.0


def measured_rate(times, losses) -> float:
    r"""The decay rate over the whole run, $-\log(L^T / L^0) / T$, up to where the loss reaches the
    rounding floor.
    """
    above_floor = losses > 1e-22 * losses[0]
    last = len(losses) - 1 if above_floor.all() else int(np.argmin(above_floor)) - 1
    return float(-np.log(losses[last] / losses[0]) / times[last]) if last > 0 else math.nan
