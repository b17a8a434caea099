r"""Algorithm 2 of allenzhu2018: SGD on a smoothed, regularised, slowly shrinking three-layer
network, in both variants.

Lines 7-11 are damaged in print; the schedule here follows the update rule under (13), the surviving
fragments and the proof of Lemma 5.4. Line 15 is used with its missing $\lambda_T$, as in (391).
"""

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ..._core.arrays import real_array
from ..._core.errors import (
    as_key,
    check_between,
    check_choice,
    check_count,
    check_flag,
    check_kind,
    check_positive,
)
from ..._core.precision import double
from ..._core.randomness import named_key
from ..._core.types import Key, Scalar
from ...data.dataset import Dataset, DatasetObjective
from ...dynamics.base import AbstractDynamics
from ...dynamics.losses import AbstractLoss
from .models.biased_three_layer import BiasedThreeLayer
from .smoothing_noise import AbstractNoise, DrawnNoise, ReplayedNoise


class SmoothedState(eqx.Module):
    r"""Where Algorithm 2 is after `count` iterations.

    `scale` is $\lambda_{t+1}$, the value that the next iteration will use (the model carries
    $\lambda_t$, the one last used); `next_shrink` is $t_0$; `shrinks` how many there were;
    `objective` is $L_R$ of the last iteration, at $W_{t-1}, V_{t-1}$ and its draws, before the
    update.
    """

    count: Int[Array, ""]
    scale: Float[Array, ""]
    next_shrink: Int[Array, ""]
    shrinks: Int[Array, ""]
    objective: Float[Array, ""]
    key: Key


class Selection(NamedTuple):
    r"""The end of Algorithm 2: `model` is $\lambda_TF(\cdot; W_{out}, V_{out})$, `chosen` is
    $j^\star$, `losses` the training loss of every candidate.
    """

    model: BiasedThreeLayer
    chosen: Int[Array, ""]
    losses: Float[Array, " candidate"]


class SmoothedSGD(AbstractDynamics):
    r"""$W_t = W_{t-1} - \eta\,\partial_WL_R + \eta\,\xi_w$,
    $V_t = V_{t-1} - \eta\,\partial_VL_R + \eta\,\xi_v$ with, for one random sample $(x, y)$,

    $L_1 = L(\lambda_tF(x; W_0+W^\rho+W, V_0+V^\rho+V), y) + R(W, V)$ (13), or
    $L_2 = L(\lambda_tF(x; W_0+W^\rho+\Sigma W, V_0+V^\rho+V\Sigma), y) + R(W, V)$ (14),
    $\Sigma = \mathrm{diag}(s)$ with fresh signs,

    $R = \lambda_w\lVert W\rVert_{2,4}^4 + \lambda_v\lVert V\rVert_F^2$. In iteration $t = t_0$
    ($t_0 = 1$ at first) the scale shrinks, $\lambda_{t+1} = (1-\eta)\lambda_t$, and the next $t_0$
    is uniform on $\{t+T_w, \dots, t+2T_w\}$, $T_w = \lceil K_w\eta T/\log(1/\varepsilon)\rceil$.

    Corrected (`regulariser_scaling="lambda"`): $R(\sqrt{\lambda_t}W, \sqrt{\lambda_t}V)$, that is
    $\lambda_w\lambda_t^2\lVert W\rVert_{2,4}^4 + \lambda_v\lambda_t\lVert V\rVert_F^2$, with which
    Lemma 5.3 is true; "printed" (default) leaves $\lambda_t$ out.

    Args:
        rate: $\eta$. The loss is a mean over the batch, so batch 1 is the paper's algorithm.
        horizon: $T$; sets $T_w$ together with `error` and `window_constant`.
        variant: 1 or 2.
        first_smoothing, second_smoothing, gradient_noise: deviations $\sigma_w$, $\sigma_v$,
            $\sigma_n$.
        first_penalty, second_penalty: $\lambda_w$, $\lambda_v$.
        power: the exponent 4 of $\lVert W\rVert_{2,4}^4$; any $2 + \alpha > 2$ is allowed.
        error: $\varepsilon$, entering $T_w$ and the default number of candidates alone.
        window_constant: $K_w$.
        window: $T_w$ itself, overriding the formula.
        shrink: False keeps $\lambda = 1$ throughout.
        noise: where the random numbers come from; `ReplayedNoise(...)` injects them all.
        batch: samples a step, drawn with replacement.
    """

    rate: Float[Array, ""]
    window: int = eqx.field(static=True)
    variant: int = eqx.field(static=True)
    first_smoothing: float = eqx.field(static=True)
    second_smoothing: float = eqx.field(static=True)
    gradient_noise: float = eqx.field(static=True)
    first_penalty: float = eqx.field(static=True)
    second_penalty: float = eqx.field(static=True)
    power: float = eqx.field(static=True)
    error: float = eqx.field(static=True)
    regulariser_scaling: str = eqx.field(static=True)
    shrink: bool = eqx.field(static=True)
    batch: int = eqx.field(static=True)
    noise: AbstractNoise

    @double
    def __init__(
        self,
        rate: float | int,
        horizon: int | None = None,
        *,
        variant: int = 1,
        first_smoothing: float | int = 0.0,
        second_smoothing: float | int = 0.0,
        gradient_noise: float | int = 0.0,
        first_penalty: float | int = 0.0,
        second_penalty: float | int = 0.0,
        power: float | int = 4.0,
        error: float | int = 0.01,
        window_constant: float | int = 8.0,
        window: int | None = None,
        regulariser_scaling: str = "printed",
        shrink: bool = True,
        batch: int = 1,
        noise: AbstractNoise | None = None,
    ):
        check_positive("rate", rate)
        check_flag("shrink", shrink)
        check_between(
            "rate", rate, 0, 1, open=True, remedy="A shrink multiplies the scale by 1 - rate."
        ) if shrink else None
        check_choice("variant", str(variant), ("1", "2"))
        check_choice("regulariser_scaling", regulariser_scaling, ("printed", "lambda"))
        check_between("error", error, 0, 1, open=True)
        check_positive("window_constant", window_constant)
        check_count("batch", batch)
        levels = dict(
            first_smoothing=first_smoothing,
            second_smoothing=second_smoothing,
            gradient_noise=gradient_noise,
            first_penalty=first_penalty,
            second_penalty=second_penalty,
        )
        for name, level in levels.items():
            check_between(name, level, 0, math.inf)
        if not power > 2:
            raise ValueError(f"`power` must exceed 2, got {power}. The paper's is 4.")
        if shrink and window is None:
            if horizon is None:
                raise ValueError(
                    "`horizon` must be given (it sets the shrink window), got None. Or give "
                    "`window`, or `shrink=False`."
                )
            check_count("horizon", horizon)
            window = math.ceil(window_constant * rate * horizon / math.log(1 / error))
        self.rate = jnp.asarray(float(rate))
        self.window = 1 if window is None else int(window)
        check_count("window", self.window)
        self.variant = int(variant)
        self.first_smoothing, self.second_smoothing = (
            float(first_smoothing),
            float(second_smoothing),
        )
        self.gradient_noise = float(gradient_noise)
        self.first_penalty, self.second_penalty = float(first_penalty), float(second_penalty)
        self.power, self.error = float(power), float(error)
        self.regulariser_scaling, self.shrink, self.batch = regulariser_scaling, shrink, batch
        if noise is not None:
            check_kind("noise", noise, AbstractNoise, "`DrawnNoise()` or a `ReplayedNoise`")
        self.noise = DrawnNoise() if noise is None else noise

    @classmethod
    def practical(
        cls,
        width: int,
        horizon: int,
        output_std: float | int = 0.3,
        *,
        first_ball: float | int = 200.0,
        second_ball: float | int = 30.0,
        **options,
    ) -> "SmoothedSGD":
        r"""Parameters that work for widths of 100 to 4000, where the theory's own are out of reach
        (`limits.complexity.theory_parameters`).

        Batch 1, $\eta = 1/(4\varepsilon_a^2m)$ (the squared gradient norm of $F$ is about
        $\frac34\varepsilon_a^2m$), $\sigma_w = m^{-0.99}/2$, $\sigma_v = 0.05/\sqrt m$,
        $\sigma_n = 10^{-4}/m$; penalties $\lambda_w = 2/\tau_w'^4$, $\lambda_v = 2/\tau_v^2$ from
        the balls $\tau'_w = c_wm^{-3/4}$ (`first_ball` $= c_w$) and $\tau_v$ = `second_ball`.
        Smaller balls make the regulariser dominate the loss and stall learning. `options` override
        any argument of the class; a mean over 4 or 20 samples a step bears two or four times the
        rate, which is not raised by itself.

        Args:
            width: $m = m_1 = m_2$.
            horizon: $T$.
            output_std: $\varepsilon_a$ of the network.
        """
        check_count("width", width)
        check_positive("output_std", output_std)
        defaults = {
            "rate": 0.25 / (output_std**2 * width),
            "first_smoothing": 0.5 * width**-0.99,
            "second_smoothing": 0.05 * width**-0.5,
            "gradient_noise": 1e-4 / width,
            "first_penalty": 2 * width**3 / first_ball**4,
            "second_penalty": 2 / second_ball**2,
        }
        return cls(horizon=horizon, **{**defaults, **options})

    @property
    def replayed(self) -> tuple[str, np.ndarray] | None:
        """The explicit indices and what they are called, for `train` to check against its steps and
        samples.
        """
        if not isinstance(self.noise, ReplayedNoise):
            return None
        return "indices", np.asarray(self.noise.indices)

    def init(self, model, objective, key):
        if not isinstance(model, BiasedThreeLayer):
            raise ValueError(
                f"`SmoothedSGD` moves a `BiasedThreeLayer`, got {type(model).__name__}. For "
                "others use `SGD`."
            )
        if not hasattr(objective, "batch"):
            raise ValueError(
                "`SmoothedSGD` needs a dataset to draw samples from, got an exact population."
            )
        start = jnp.asarray(1 if self.shrink else jnp.iinfo(jnp.int32).max)
        zero = jnp.zeros((), int)
        return SmoothedState(
            zero,
            jnp.ones((), model.first.dtype),
            start,
            zero,
            jnp.asarray(jnp.nan, model.first.dtype),
            key,
        )

    def step(self, model: BiasedThreeLayer, state, objective: DatasetObjective):
        drawn, key, t = self.noise, state.key, state.count
        sample = objective.batch(drawn.index(key, t, objective.samples, self.batch))
        rho_w = drawn.matrix("first smoothing", key, t, model.first, self.first_smoothing)
        rho_v = drawn.matrix("second smoothing", key, t, model.second, self.second_smoothing)
        xi_w = drawn.matrix("first noise", key, t, model.first, self.gradient_noise)
        xi_v = drawn.matrix("second noise", key, t, model.second, self.gradient_noise)
        signs = drawn.signs(key, t, model.first_bias) if self.variant == 2 else None
        value, gradient = self.objective(model, sample, state.scale, rho_w, rho_v, signs)
        rate = self.rate.astype(model.first.dtype)
        w = model.first_increment - rate * (gradient["first_increment"] - xi_w)
        v = model.second_increment - rate * (gradient["second_increment"] - xi_v)
        model = _replace(model, first_increment=w, second_increment=v, scale=state.scale)
        iteration = t + 1
        hit = iteration == state.next_shrink
        following = drawn.next_shrink(
            key, t, state.shrinks, iteration + self.window, iteration + 2 * self.window
        )
        state = SmoothedState(
            iteration,
            jnp.where(hit, (1 - rate) * state.scale, state.scale),
            jnp.where(hit, following, state.next_shrink).astype(state.next_shrink.dtype),
            state.shrinks + hit,
            value.astype(state.objective.dtype),
            key,
        )
        return model, state

    def duration(self, state, model):
        return self.rate

    @double
    def objective(
        self, model: BiasedThreeLayer, sample, scale, first_smoothing, second_smoothing, signs=None
    ):
        r"""$L_R$ of (13)/(14) on `sample` (an objective), and its gradient in $W$ and $V$ by name.

        $\lambda_t$ = `scale`, $W^\rho$, $V^\rho$ the smoothing; `signs` $s$ for variant 2, None for
        variant 1.
        """
        s = jnp.ones_like(model.first_bias) if signs is None else jnp.asarray(signs)
        w, v = model.first_increment, model.second_increment
        moved = _replace(
            model,
            first=model.first + first_smoothing,
            second=model.second + second_smoothing,
            first_increment=s[:, None] * w,
            second_increment=v * s,
            scale=jnp.asarray(scale, w.dtype),
        )
        value, gradient = sample.gradient(moved)
        penalty, (penalty_w, penalty_v) = self.regulariser(w, v, scale)
        return value + penalty, {
            "first_increment": s[:, None] * gradient["first_increment"] + penalty_w,
            "second_increment": gradient["second_increment"] * s + penalty_v,
        }

    @double
    def regulariser(
        self, first, second, scale: float | Array = 1.0
    ) -> tuple[Scalar, tuple[Array, Array]]:
        r"""$R(W, V)$ and its gradients: row $i$ gets
        $(2+\alpha)\lambda_w\lVert w_i\rVert^\alpha w_i$, $V$ gets $2\lambda_vV$.
        """
        factor_w, factor_v = self.first_penalty, self.second_penalty
        if self.regulariser_scaling == "lambda":
            factor_w, factor_v = factor_w * scale ** (self.power / 2), factor_v * scale
        first, second = jnp.asarray(first), jnp.asarray(second)
        squares = jnp.sum(first**2, axis=1)
        # a power below 1 of exactly zero has no gradient; the row norm's own power is what is
        # needed
        powers = jnp.where(
            squares > 0, jnp.where(squares > 0, squares, 1.0) ** (self.power / 2 - 1), 0.0
        )
        value = factor_w * jnp.sum(powers * squares) + factor_v * jnp.sum(second**2)
        return value, (self.power * factor_w * powers[:, None] * first, 2 * factor_v * second)

    @double
    def finish(
        self,
        model: BiasedThreeLayer,
        data: Dataset,
        loss: AbstractLoss,
        *,
        key: int | Key = 0,
        candidates: int | None = None,
        signs=None,
        first_candidates=None,
        second_candidates=None,
    ) -> Selection:
        r"""Lines 14-16: variant 2 fixes a fresh $\Sigma$; of $n_c$ noise draws the one with the
        least training loss is kept.

        Args:
            model: the model at the end of training; its `scale` is $\lambda_T$.
            candidates: $n_c$; default $\lceil1/\varepsilon^2\rceil$ up to 25.
            signs, first_candidates, second_candidates: replayed $s$ (m1,), $W^{\rho,j}$ (candidate,
                m1, d), $V^{\rho,j}$ (candidate, m2, m1).
        """
        key = named_key(as_key(key), "selection")
        if self.variant == 2:
            drawn = jax.random.rademacher(
                named_key(key, "signs"), model.first_bias.shape, model.first.dtype
            )
            shape = f"({model.widths[0]},)"
            s = drawn if signs is None else real_array("signs", signs, shape).astype(drawn.dtype)
            model = _replace(
                model,
                first_increment=s[:, None] * model.first_increment,
                second_increment=model.second_increment * s,
            )
        if (first_candidates is None) != (second_candidates is None):
            raise ValueError("`first_candidates` and `second_candidates` must be given together.")
        if first_candidates is not None:
            (m1, features), m2 = model.first.shape, model.widths[1]
            first_rows = real_array("first_candidates", first_candidates, f"(n, {m1}, {features})")
            count = len(first_rows)
            shape = (
                f"({count}, {m2}, {m1})"  # as many: JAX clips an index, and the last would repeat
            )
            second_rows = real_array("second_candidates", second_candidates, shape)
        else:
            count = min(25, math.ceil(1 / self.error**2)) if candidates is None else candidates
        check_count("candidates", count)
        objective = data.objective(loss, model)

        def candidate(j) -> BiasedThreeLayer:
            if first_candidates is not None:
                first, second = first_rows[j], second_rows[j]
            else:
                draw = jax.random.fold_in(key, j)
                first = self.first_smoothing * jax.random.normal(
                    named_key(draw, "first"), model.first.shape, model.first.dtype
                )
                second = self.second_smoothing * jax.random.normal(
                    named_key(draw, "second"), model.second.shape, model.second.dtype
                )
            return _replace(
                model,
                first=model.first + first.astype(model.first.dtype),
                second=model.second + second.astype(model.second.dtype),
            )

        losses = jax.lax.map(lambda j: objective.value(candidate(j)), jnp.arange(count))
        best = jnp.argmin(losses)
        return Selection(candidate(best), best, losses)


def _replace(model: BiasedThreeLayer, **fields) -> BiasedThreeLayer:
    names = list(fields)
    return eqx.tree_at(
        lambda m: [getattr(m, name) for name in names], model, [fields[name] for name in names]
    )
