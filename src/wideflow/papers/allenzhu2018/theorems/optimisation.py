"""Lemma 5.3 (a descent direction always exists), its printed form that fails, Lemma 5.4 and Lemma
G.4.
"""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ...._core.errors import check_choice
from ...._core.precision import double
from ...._core.trees import describe, with_parameters
from ....data.dataset import Dataset
from ....dynamics.losses import AbstractLoss
from ....dynamics.sgd import SGD
from ....theorems.arguments import checked
from ....theorems.base import AbstractTheorem, Citation, Verdict
from ....theorems.of_runs import AbstractRunTheorem
from ....theorems.recorded_run import run_fault
from ..models.biased_two_layer import BiasedTwoLayer
from ..observables.pseudo import pseudo_outputs, signs
from ..observables.smoothed_objective import DescentTriple
from ..smoothed_sgd import SmoothedSGD, SmoothedState
from .judging import judge, unmet


class Lemma53(AbstractTheorem):
    r"""As long as $L' \in [(1+\gamma)\varepsilon_0 + \tilde\Omega(\varepsilon), 2]$ and $\lambda_t$
    is not too small there are $W^\star, V^\star$ such that for small $\eta$ $\min\{\mathbb E_\Sigma
    L'(\lambda_t, W_t+\sqrt\eta\Sigma W^\star, V_t+\sqrt\eta V^\star\Sigma), L'((1-\eta)\lambda_t,
    W_t, V_t)\} \le (1-\eta\gamma/4)L'(\lambda_t, W_t, V_t)$ (30).

    Judged on measured values $c_1, c_2, c_3$ (`observables.descent_triple`) along given
    $W^\star, V^\star$, so that VIOLATED says that these are no witness: (30), and the inequality
    behind it, $[c_1 - (1-\eta)(2c_3-c_2)]/\eta \le \varepsilon_0$ + `slack` (360).
    Corrected: true with the regulariser $R(\sqrt\lambda W, \sqrt\lambda V)$; false as printed, see
    `Lemma53Printed`. (29) must read $\lambda_t \ge (\varepsilon')^{O(1)}$. The second-order term of
    the move is $\eta\lambda_taD_vV^\star D_wW^\star x$ ((332) lacks $\lambda_t$), so
    $W^\star, V^\star$ must represent $F^\star/\lambda_t$.
    """

    citation: ClassVar = Citation("allenzhu2018", "Lemma 5.3")

    def __call__(
        self,
        triple: DescentTriple,
        rate: float | int,
        *,
        floor: float | int = 0.0,
        gamma: float | int = 0.25,
        slack: float | int = 0.1,
    ) -> Verdict:
        r"""`floor` is $\varepsilon_0$.

        Args:
            triple: $c_1$, $c_2$, $c_3$.
            rate: $\eta$.
        """
        c1, c2, c3 = float(triple.moved), float(triple.shrunk), float(triple.here)
        excess = (c1 - (1 - rate) * (2 * c3 - c2)) / rate
        numbers = {
            "c1": c1,
            "c2": c2,
            "c3": c3,
            "excess": excess,
            "moved": (c1 - c3) / rate,
            "shrunk": (c2 - c3) / rate,
        }
        if not (1 + gamma) * floor < c3 <= 2:
            return unmet(
                f"the objective {c3:.3g} is outside ({(1 + gamma) * floor:.3g}, 2]", numbers
            )
        bound = (1 - rate * gamma / 4) * c3
        margins = {"descent": (bound - min(c1, c2)) / (rate * c3), "excess": floor + slack - excess}
        text = (
            f"c1 changes by {numbers['moved']:.3g} eta, c2 by {numbers['shrunk']:.3g} eta, excess "
            f"{excess:.3g}"
        )
        return judge({name: 1 - margin for name, margin in margins.items()}, text, numbers)


class Lemma53Printed(AbstractTheorem):
    r"""The counterexample to the printed Lemma 5.3: where the data loss is 0 and $R = 1$, no move
    lowers $L' = R$.

    $\mathbb E_\Sigma\lVert V+\sqrt\eta V^\star\Sigma\rVert_F^2 = \lVert V\rVert_F^2 + \eta\lVert
    V^\star\rVert_F^2$, and by (336) $\mathbb E_\Sigma\lVert W+\sqrt\eta\Sigma
    W^\star\rVert_{2,4}^4 = \sum\lVert w\rVert^4 + 4\eta\langle w,w^\star\rangle^2 + 2\eta\lVert
    w\rVert^2\lVert w^\star\rVert^2 + \eta^2\lVert w^\star\rVert^4$: neither decreases, and
    shrinking $\lambda$ does not touch the printed $R$. With $R(\sqrt\lambda W, \sqrt\lambda V)$
    shrinking lowers it at rate at least 1. The verdict says whether
    $\min(c_1, c_2) \le (1-\eta\gamma/4)c_3$: VIOLATED for "printed", HOLDS for "lambda".
    """

    citation: ClassVar = Citation("allenzhu2018", "Lemma 5.3 as printed; (336)")

    def __call__(
        self,
        first,
        second,
        first_star,
        second_star,
        *,
        first_penalty: float | int,
        second_penalty: float | int,
        rate: float | int = 1e-3,
        gamma: float | int = 0.25,
        scaling: str = "printed",
        scale: float | int = 1.0,
    ) -> Verdict:
        """Increments, directions, and the two penalties; `scaling` as in `SmoothedSGD`.

        Args:
            first, second: the increments $W$ and $V$.
            first_star, second_star: $W^*$ and $V^*$.
            first_penalty, second_penalty: of the regulariser.
            rate: the step.
            scale: the network's factor before the step.
        """
        check_choice("scaling", scaling, ("printed", "lambda"))
        w, v, ws, vs = (np.asarray(m, float) for m in (first, second, first_star, second_star))
        quartic, square = float(np.sum(np.sum(w**2, axis=1) ** 2)), float(np.sum(v**2))
        moved_quartic, moved_square = (
            signed_quartic(w, ws, rate),
            square + rate * float(np.sum(vs**2)),
        )

        def penalty(fourth: float | int, second: float | int, lam: float | int) -> float:
            factors = (lam**2, lam) if scaling == "lambda" else (1.0, 1.0)
            return first_penalty * factors[0] * fourth + second_penalty * factors[1] * second

        c3 = penalty(quartic, square, scale)
        c2 = penalty(quartic, square, (1 - rate) * scale)
        c1 = penalty(moved_quartic, moved_square, scale)
        bound = (1 - rate * gamma / 4) * c3
        numbers = {"c1": c1, "c2": c2, "c3": c3, "bound": bound}
        return judge(
            {"descent": 1 + (min(c1, c2) - bound) / (rate * c3)},
            f"min(c1, c2) = {min(c1, c2):.8g} against {bound:.8g}",
            numbers,
        )


@checked
def signed_quartic(first, first_star, rate: float | int) -> float:
    r"""(336): $\mathbb E_\Sigma\lVert W+\sqrt\eta\Sigma W^\star\rVert_{2,4}^4$ in closed form.

    Args:
        first: $W$, shape (m1, d).
        first_star: $W^\star$, likewise.
        rate: $\eta$.
    """
    w, ws = np.asarray(first, float), np.asarray(first_star, float)
    a, b, c = np.sum(w**2, axis=1), np.sum(ws**2, axis=1), np.sum(w * ws, axis=1)
    return float(np.sum(a**2 + 4 * rate * c**2 + rate**2 * b**2 + 2 * rate * a * b))


class Lemma54(AbstractRunTheorem):
    r"""Convergence of Algorithm 2: in time $\mathrm{poly}(m_1, m_2)$ it reaches
    $(1+\gamma)\varepsilon_0 + \varepsilon$ with probability 99/100.

    What is checkable on a run: the schedule (between $T/(2T_w)$ and $T/T_w + 1$ shrinks,
    $\lambda_T \ge (1-\eta)^{T/T_w+1}$) and that the objective went down. Not checkable: "most
    iterations of a window are approximate second-order points" (the cited theorem gives one such
    point).
    """

    citation: ClassVar = Citation("allenzhu2018", "Lemma 5.4")
    of_flow: ClassVar[bool] = False

    def evaluate(self, dynamics: SmoothedSGD, state: SmoothedState, table) -> Verdict:
        """Judges a run of `SmoothedSGD`.

        Args:
            dynamics: Algorithm 2 as it ran.
            state: its state at the end.
            table: what was recorded; its loss at both ends is compared.
        """
        known = str(table.attrs.get("dynamics", ""))
        if known != describe(dynamics) or int(table["step"][-1]) != int(state.count):
            return unmet("the table is not that of these dynamics; judge the `Run` itself", {})
        fault = run_fault(table, ("loss",))
        if fault:
            return unmet(fault, {})
        first_loss, last_loss = (float(table["loss"].values[end]) for end in (0, -1))
        steps, shrinks, window, rate = (
            int(state.count),
            int(state.shrinks),
            dynamics.window,
            float(dynamics.rate),
        )
        least, most = steps / (2 * window), steps / window + 1
        floor = (1 - rate) ** most
        numbers = {
            "shrinks": float(shrinks),
            "least": least,
            "most": most,
            "scale": float(state.scale),
            "scale_floor": floor,
            "first_loss": first_loss,
            "last_loss": last_loss,
        }
        if not dynamics.shrink:
            return unmet("the run was made without shrinking", numbers)
        ratios = {
            "too_few": least / max(shrinks, 1e-9),
            "too_many": shrinks / most,
            "scale": floor / float(state.scale) * (1 - 1e-5),
            "loss": last_loss / first_loss,
        }
        return judge(
            ratios,
            f"{shrinks} shrinks in {steps} steps of window {window}, loss {first_loss:.3g} to "
            f"{last_loss:.3g}",
            numbers,
        )


class LemmaG4(AbstractRunTheorem):
    r"""Regret of Algorithm 1 against any $\tilde W$, from convexity of $L_G$ (422)-(431):
    $\frac1T\sum_tL_G(W_t) - L_G(\tilde W) \le
    \overline{\Delta_t\lVert W_t-\tilde W\rVert_{2,\infty}} +
    \frac{\lVert\tilde W\rVert_F^2}{2\eta T} + \frac\eta2\overline{\lVert\nabla_t\rVert_F^2} +
    \text{martingale}$, $\Delta_t = \lVert\nabla L_G - \nabla L_F\rVert_{2,1}$ at $W_t$ and
    $\nabla_t$ the stochastic gradient.

    Corrected: the paper replaces the full gradient by the stochastic one without the martingale
    term $\overline{\langle\nabla L_F(W_t) - \nabla_t, W_t-\tilde W\rangle}$; (430) has a wrong
    index.
    """

    citation: ClassVar = Citation("allenzhu2018", "Lemma G.4")
    of_flow: ClassVar[bool] = False

    @double
    def evaluate(
        self,
        start: BiasedTwoLayer,
        data: Dataset,
        loss: AbstractLoss,
        order=None,
        rate: float | int | None = None,
        comparator=None,
        *,
        dynamics=None,
    ) -> Verdict:
        r"""Replays Algorithm 1 from `start` and measures every term. A run must say which sample
        each step took: `SGD(rate, batch=1, order=...)`.

        Args:
            start: at $W_0$.
            data: the training set.
            loss: $L$.
            order: the sample of each step, shape (step,).
            rate: $\eta$.
            comparator: $\tilde W$, an increment; $W_0$'s own if None.
            dynamics: gives `order` and `rate` of a run.
        """
        if order is None or rate is None:
            if not isinstance(dynamics, SGD) or dynamics.replayed is None or dynamics.batch != 1:
                return unmet("needs a run of `SGD(rate, batch=1, order=...)`", {})
            order, rate = dynamics.replayed[1][:, 0], float(dynamics.rate)
        start = jax.tree.map(lambda v: v.astype(float), start)  # the replay of a run in float32
        comparator = start.increment if comparator is None else comparator
        terms = {
            name: float(value)
            for name, value in _regret(
                start, data, loss, jnp.asarray(order), jnp.asarray(rate), jnp.asarray(comparator)
            ).items()
        }
        bound = terms["coupling"] + terms["distance"] + terms["gradient"] + terms["martingale"]
        scale = abs(terms["coupling"]) + terms["distance"] + terms["gradient"]
        text = f"regret {terms['regret']:.3g} against {bound:.3g}"
        return judge(
            {"regret": 1 + (terms["regret"] - bound) / scale},
            text,
            {**terms, "bound": bound},
            tolerance=1e-9,
        )


@eqx.filter_jit
def _regret(start, data, loss, order, rate, comparator):
    inputs, targets = data.inputs, data.targets
    frozen = signs(start, inputs)
    objective = data.objective(loss, start)

    def pseudo_loss(w):
        return loss(
            pseudo_outputs(with_parameters(start, {"increment": w}), inputs, frozen), targets
        )

    def step(w, index):
        model = with_parameters(start, {"increment": w})
        full = objective.gradient(model)[1]["increment"]
        value, pseudo = jax.value_and_grad(pseudo_loss)(w)
        single = objective.batch(index[None]).gradient(model)[1]["increment"]
        away = w - comparator
        delta = jnp.sum(jnp.linalg.norm(pseudo - full, axis=1)) * jnp.max(
            jnp.linalg.norm(away, axis=1)
        )
        return w - rate * single, (value, delta, jnp.sum(single**2), jnp.vdot(full - single, away))

    _, (values, deltas, squares, martingale) = jax.lax.scan(step, start.increment, order)
    best = pseudo_loss(comparator)
    return {
        "regret": jnp.mean(values) - best,
        "comparator_loss": best,
        "coupling": jnp.mean(deltas),
        "distance": jnp.sum((start.increment - comparator) ** 2) / (2 * rate * order.size),
        "gradient": rate / 2 * jnp.mean(squares),
        "martingale": jnp.mean(martingale),
    }
