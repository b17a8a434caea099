r"""Information out of randomness (allenzhu2018, Lemma 5.2, corrected): one random second-layer
neuron carries $\phi(\langle w^\star, x\rangle)$.

A second-layer neuron $n_1(x) = \sum_i v_i\,\mathrm{relu}(\langle w_i, x\rangle + b_i)$ with random
weights splits as
$$n_1(x) = \rho\,\phi_\varepsilon(x) + B(x) + R(x), \qquad \rho \sim \mathcal N(0, \tau/(C^2m_2)),$$
$\rho$ independent of $B(x)$ for each $x$, $|\phi_\varepsilon - \phi| \le 2\varepsilon$ and $R$
small. Steps: $y_i = h(\sqrt{m_1}\langle w^\star, w_i\rangle, \sqrt{m_1}b_i)/H$;
$s_i = s(y_i, \sqrt{m_2}v_i)$ from Lemma A.4, $S = \{s_i \ne 0\}$, $u = s/\sqrt{|S|}$;
$\alpha = u^\top W_0e_d$, $\beta = W_0 - \alpha ue_d^\top$; $C = H/x_d = 2H$,
$\rho = \sqrt{\tau m_1}\,\alpha/(C\sqrt{m_2})$; $B = \sum_{i\notin S}v_i\mathrm{relu}(\langle
w_i,x\rangle+b_i) + \sum_{i\in S'}v_i\mathrm{relu}(\langle\beta_i,x\rangle+b_i)$ with $S'$ as $S$
but from $\beta$.

Corrected: $h$ is evaluated at $\sqrt{m_1}w, \sqrt{m_1}b$ (missing in the paper); $C \ge 2\sup|h|$
because $x_d = 1/2$. The claim $|R| = \tilde O(1/\sqrt{m_1m_2})$ holds when $w^\star_d = 0$;
otherwise $S \ne S'$ and $R\sqrt{m_1m_2}$ grows (about $m_1^{0.38}$).
"""

import math
from dataclasses import dataclass

import numpy as np

from ....._core.arrays import real_values
from ....._core.errors import check_count, check_kind, check_positive
from .hermite_functions import HermiteFunction, Numbers
from .intervals import IntervalPartition

__all__ = ["SplitNeuron", "split_neuron"]

_LAST = 0.5  # x_d, the constant coordinate of every input


@dataclass(frozen=True)
class SplitNeuron:
    r"""The parts of Lemma 5.2 for one neuron: `carrier` $\rho$, `chosen` $S$, `chosen_rest` $S'$,
    `rest` $\beta$, and methods for $B$, $R$ on inputs.

    Attributes:
        first: $W_0$, shape (m1, d).
        bias: $b_i$, shape (m1,).
        second: $v$, shape (m1,).
        direction: $w^\star$.
        function: $h$ of Lemma 5.1.
        signs: $s_i$ in $\{-1, 0, 1\}$.
        last_projection: $\alpha = u^\top W_0e_d$.
        scale: $C = H/x_d$.
    """

    first: np.ndarray
    bias: np.ndarray
    second: np.ndarray
    direction: np.ndarray
    function: HermiteFunction
    signs: np.ndarray
    chosen_rest: np.ndarray
    rest: np.ndarray
    last_projection: float
    carrier: float
    scale: float

    @property
    def chosen(self) -> np.ndarray:
        """$S$ as a Boolean mask."""
        return self.signs != 0

    @property
    def mismatch(self) -> int:
        r"""$|S \triangle S'|$, zero when $w^\star_d = 0$."""
        return int(np.sum(self.chosen != self.chosen_rest))

    def neuron(self, inputs: Numbers) -> np.ndarray:
        """$n_1(x)$."""
        return np.maximum(np.asarray(inputs) @ self.first.T + self.bias, 0) @ self.second

    def signal(self, inputs: Numbers) -> np.ndarray:
        r"""$\rho\,\phi_\varepsilon(x)$, with $\phi_\varepsilon$ the left side of (20) at
        $\langle w^\star, x\rangle$.
        """
        return self.carrier * self.function.representation(np.asarray(inputs) @ self.direction)

    def background(self, inputs: Numbers) -> np.ndarray:
        """$B(x)$."""
        inputs = np.asarray(inputs)
        outside, inside = ~self.chosen, self.chosen_rest
        first = (
            np.maximum(inputs @ self.first[outside].T + self.bias[outside], 0)
            @ self.second[outside]
        )
        return (
            first
            + np.maximum(inputs @ self.rest[inside].T + self.bias[inside], 0) @ self.second[inside]
        )

    def residual(self, inputs: Numbers) -> np.ndarray:
        r"""$R(x) = n_1 - \rho\,\phi_\varepsilon - B$."""
        return self.neuron(inputs) - self.signal(inputs) - self.background(inputs)

    def carried(self, inputs: Numbers) -> np.ndarray:
        r"""$T_3 = \alpha x_d\sum_{i\in S}u_iv_i\mathbf 1[\langle w_i,x\rangle + b_i \ge 0]$, close
        to $\rho\,\phi_\varepsilon$.
        """
        chosen = self.chosen
        active = np.asarray(inputs) @ self.first[chosen].T + self.bias[chosen] >= 0
        unit = self.signs[chosen] / math.sqrt(np.sum(chosen))
        return self.last_projection * _LAST * active @ (unit * self.second[chosen])


def split_neuron(
    first: Numbers,
    bias: Numbers,
    second: Numbers,
    direction: Numbers,
    function: HermiteFunction,
    *,
    second_width: int,
    tau: float | int = 0.01,
    sup: float | int | None = None,
) -> SplitNeuron:
    r"""Lemma 5.2 on the neuron with incoming weights `second` $v$ ($\mathcal N(0, 1/m_2)$), first
    layer `first` $W_0$ (m1, d), `bias` $b_1$.

    `direction` is $w^\star$, `function` the $h$ of Lemma 5.1 for $\phi$, `sup` a bound
    $H \ge \sup|h|$ (default: `function.sup()`).

    Args:
        second_width: $m_2$.
        tau: $\tau$, the probability that $s_i \ne 0$.
    """
    first = np.asarray(real_values("first", first, "(width, feature)"), float)
    m1, d = first.shape
    bias = np.asarray(real_values("bias", bias, f"({m1},)"), float)
    second = np.asarray(real_values("second", second, f"({m1},)"), float)
    direction = np.asarray(real_values("direction", direction, f"({d},)"), float)
    check_kind("function", function, HermiteFunction, "what `hermite_function` returns")
    check_count("second_width", second_width)
    bound = function.sup() if sup is None else sup
    check_positive("sup", bound)
    partition = IntervalPartition(tau)
    atom = bias == 0

    def pick(weights: np.ndarray) -> np.ndarray:
        y = function(math.sqrt(m1) * weights @ direction, math.sqrt(m1) * bias, atom) / bound
        return partition.signs(y, math.sqrt(second_width) * second)

    signs = pick(first)
    unit = signs / math.sqrt(max(np.sum(signs != 0), 1))
    alpha = float(unit @ first[:, -1])
    rest = first.copy()
    rest[:, -1] -= alpha * unit
    scale = bound / _LAST
    carrier = math.sqrt(tau * m1 / second_width) / scale * alpha
    return SplitNeuron(
        first,
        bias,
        second,
        direction,
        function,
        signs,
        pick(rest) != 0,
        rest,
        alpha,
        carrier,
        scale,
    )
