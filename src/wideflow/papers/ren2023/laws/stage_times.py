"""The stages of training as times of events."""

from typing import Any, NamedTuple


class StageTimes(NamedTuple):
    r"""Times at which training passes its stages; infinite where one is not reached before the
    horizon.

    Attributes:
        t11: $T_{1.1}$, first time with all $w_j \le 0$.
        t12: $T_{1.2}$, first time from $T_{1.1}$ on with $-\bar w = d\, \delta_2(T_{1.1})$.
        t1: $T_1 = T_{1.3}$, first time from $T_{1.2}$ on with $-\bar w = C_1/R_{v_2}$.
        t2: $T_2$, first time from $T_1$ on with $L = \varepsilon$.
        level_time: first time ever with $-\bar w = C_1/R_{v_2}$, whatever the order.
        loss_time: first time from $T_{1.1}$ on (before it the loss is infinite) with
            $L = \varepsilon$.
        state_at_t1: the state at $T_1$ where it is known and reached, else None.
    """

    t11: float
    t12: float
    t1: float
    t2: float
    level_time: float
    loss_time: float
    state_at_t1: Any = None

    @property
    def order_ok(self) -> bool:
        r"""Whether the level of $T_1$ was not passed before $T_{1.2}$, as the paper's tiny
        $\sigma_2$ ensures.
        """
        return self.t12 <= self.level_time
