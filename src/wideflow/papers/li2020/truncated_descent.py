r"""Truncated gradient descent in two stages (li2020, Algorithm 1)."""

import math

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from ..._core.errors import check_choice, check_count, check_positive
from ..._core.precision import double
from ..._core.trees import parameters, with_parameters
from ...dynamics.base import AbstractDynamics
from ...models.homogeneous import Homogeneous
from ...models.shallow import Shallow

THRESHOLDS = {"1/lambda": 1.0, "1/(2 lambda)": 0.5}
GRADIENT_SCALINGS = ("mean_field", "literal")


class LossBelow(eqx.Module):
    r"""The detected end of stage 1: the first step that starts with the loss at or below `level`.

    `level=None` takes half the degree-two floor, $\frac12(1-\frac3\pi)\sum a^2$, of the population
    objective (the event "half" of the end of the plateau); on samples give a number.

    Args:
        level: of the loss, or None.
    """

    level: float | int | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        if self.level is not None:
            check_positive("level", self.level)


class TruncatedState(eqx.Module):
    """Steps taken, whether stage 2 has begun, and the cap of the stage."""

    count: Int[Array, ""]
    second: Bool[Array, ""]
    cap: Float[Array, ""]


class TruncatedDescent(AbstractDynamics):
    r"""$w_i \leftarrow w_i - \eta\,\mathbb 1\{\|w_i\|^2 \le C\}\,g_i$, with the cap
    $C = 1/\lambda_0$ in stage 1, $1/\lambda_1$ in stage 2.

    The test is made before the step and is inclusive; a frozen neuron keeps contributing to the
    network, only its own update is dropped (dropped, not rescaled), and it stays frozen until the
    stage changes.

    Args:
        rate: $\eta$.
        lambda_0: $\lambda_0$ of stage 1.
        lambda_1: $\lambda_1 \le \lambda_0$ of stage 2; without it there is one stage.
        switch: when stage 2 begins: after that many steps ($n_1$, a schedule), or a `LossBelow`
            (detected).
        threshold: the cap as a function of $\lambda$: "1/lambda" (Algorithm 1, (B.1), (B.2)) or
            "1/(2 lambda)" ((2.6) and the proofs; it keeps $\|w\|^2 \le 1/\lambda$ after the step).
            Corrected: the paper uses both.
        gradient_scaling: "mean_field": $g_i = m\,\partial L/\partial w_i$ (the analysis; any
            model's own neuron factor), or "literal": $g_i = \partial L/\partial w_i$ (Algorithm 1
            as printed). Corrected: the paper equates them;
            $\eta_{literal} = m\,\eta_{mean\ field}$. Time is mean-field time, so a literal step
            takes $\eta/m$.

    Stability at $\mathbb E\|w\|^2 \approx 1$: mean-field rates below $\pi/8 = 0.39$; 0.25 on the
    population and 0.3 on samples work. A larger start needs
    $\eta \le 0.3/\max(1, \mathbb E\|w\|^2)$.
    """

    rate: Float[Array, ""]
    lambda_0: Float[Array, ""]
    lambda_1: Float[Array, ""]
    switch: int | LossBelow | None = eqx.field(static=True)
    threshold: str = eqx.field(static=True)
    gradient_scaling: str = eqx.field(static=True)

    @double
    def __init__(
        self,
        rate: float | int,
        lambda_0: float | int,
        lambda_1: float | int | None = None,
        switch: int | LossBelow | None = None,
        threshold: str = "1/lambda",
        gradient_scaling: str = "mean_field",
    ):
        check_positive("rate", rate)
        check_positive("lambda_0", lambda_0, "Without truncation use `GradientDescent`.")
        check_choice("threshold", threshold, THRESHOLDS)
        check_choice("gradient_scaling", gradient_scaling, GRADIENT_SCALINGS)
        if (lambda_1 is None) != (switch is None):
            raise ValueError(
                "`lambda_1` and `switch` belong together: the cap of stage 2 and when it "
                "begins, got "
                f"{lambda_1} and {switch}."
            )
        if lambda_1 is not None:
            check_positive("lambda_1", lambda_1)
            if lambda_1 > lambda_0:
                raise ValueError(
                    f"`lambda_1` must be at most `lambda_0` = {lambda_0} (stage 2 raises the "
                    f"cap), got {lambda_1}."
                )
        if switch is not None and not isinstance(switch, LossBelow):
            check_count("switch", switch, least=0)
        self.rate = jnp.asarray(float(rate))
        self.lambda_0 = jnp.asarray(float(lambda_0))
        self.lambda_1 = jnp.asarray(float(lambda_0 if lambda_1 is None else lambda_1))
        self.switch, self.threshold, self.gradient_scaling = switch, threshold, gradient_scaling

    @classmethod
    def practical(
        cls, model: Homogeneous, coefficients, rate: float | int = 0.25
    ) -> "tuple[TruncatedDescent, int]":
        r"""Caps and stage lengths that work for $\kappa \le 2$ and $d$ from 10 to 30, and the
        number of steps of both stages.

        The paper gives orders only. Here: cap of stage 1 the larger of $0.6\,m/d$ and
        $1.1\max\|w_i(0)\|^2$; of stage 2 $4m\max_ka_k$ (a lone neuron on direction $k$ ends at
        $\|w\|^2 = ma_k$, so a smaller cap leaves $L > 0$ for ever); stage lengths $1.7d^2/\ln d$
        and $6d\ln d$ in mean-field time. `rate` 0.25 on the population, 0.3 on samples.

        Args:
            model: the network at the start, of width $m$ on $d$ features.
            coefficients: $a_k$ of the target.
            rate: mean-field $\eta$.
        """
        a = np.asarray(coefficients, dtype=float)
        d, m = model.weights.shape[1], model.width
        if d < 2 or a.ndim != 1 or not a.max() > 0:
            raise ValueError(
                "`coefficients` must be a vector with a positive entry and d at least 2, got "
                f"{a} and d = {d}."
            )
        check_positive("rate", rate)
        start = float(np.max(np.sum(np.asarray(model.weights, dtype=np.float64) ** 2, axis=1)))
        first, second = 1.7 * d**2 / math.log(d), 6 * d * math.log(d)
        caps = max(0.6 * m / d, 1.1 * start), 4 * m * a.max()
        switch = math.ceil(first / rate)
        dynamics = cls(rate, 1 / caps[0], 1 / max(caps), switch=switch)
        return dynamics, switch + math.ceil(second / rate)

    def init(self, model, objective, key):
        _neuron_axis(model)
        if isinstance(self.switch, LossBelow):
            _level(self.switch, objective)
        first = jnp.asarray(self.switch == 0)
        return TruncatedState(jnp.zeros((), int), first, self.cap(first))

    def step(self, model, state, objective):
        value, gradient = objective.gradient(model)
        second = state.second
        if isinstance(self.switch, LossBelow):
            second = second | (value <= _level(self.switch, objective))
        elif self.switch is not None:
            second = state.count >= self.switch
        cap = self.cap(second)
        theta, factors = parameters(model), model.rate_factors()
        scale = {
            n: self.rate * (f if self.gradient_scaling == "mean_field" else 1.0)
            for n, f in factors.items()
        }
        active = self.active(model, cap)
        moved = {
            name: theta[name]
            - scale[name].astype(theta[name].dtype) * jnp.where(active, gradient[name], 0.0)
            for name in theta
        }
        return with_parameters(model, moved), TruncatedState(state.count + 1, second, cap)

    def cap(self, second) -> Float[Array, "..."]:
        r"""$C$ of stage 1, or of stage 2 where `second`."""
        return THRESHOLDS[self.threshold] / jnp.where(second, self.lambda_1, self.lambda_0)

    def active(self, model, cap) -> Bool[Array, "..."]:
        r"""$\mathbb 1\{\|w_i\|^2 \le C\}$, shaped to broadcast over the weights."""
        weights = model.weights.astype(jnp.float64)
        return jnp.sum(weights**2, axis=_neuron_axis(model), keepdims=True) <= cap

    def duration(self, state, model):
        if self.gradient_scaling == "mean_field":
            return self.rate
        return self.rate / max(model.rate_factors().values())


def _neuron_axis(model) -> int:
    """The axis of `weights` that runs over a neuron's features."""
    if isinstance(model, Homogeneous):
        return 1
    if isinstance(model, Shallow):
        return 0
    raise ValueError(
        "`TruncatedDescent` drops updates neuron by neuron and knows `Homogeneous` and "
        "`Shallow` networks, got "
        f"{type(model).__name__}."
    )


def _level(switch: LossBelow, objective):
    if switch.level is not None:
        return switch.level
    if not hasattr(objective, "floor"):
        raise ValueError(
            "`switch` needs a level on samples: `LossBelow(level=...)`, for instance half the "
            "floor."
        )
    return 0.5 * objective.floor
