"""The expansion of the population loss in tensor orders, and the gradients of the orders."""

from typing import ClassVar

import numpy as np

from ....theorems.base import AbstractTheorem, Citation, Verdict
from ..limits import hermite
from ._common import judged


class HermiteExpansion(AbstractTheorem):
    r"""(2.1):
    $L(W) = \sum_kc_k\|\mathbb E_P\,p\,\bar w^{\otimes k} - \sum_ia_i(w^*_i)^{\otimes k}\|_F^2$ over
    even $k$ (and $k=1$ for ReLU).

    Corrected: $c_k$ is the printed formula for even $k$ only, $c_1$ is 0 (abs), 1 (`relu2`) or 1/4
    (`relu1`), and the printed network (1.2) needs its even tensors halved. Checked on given
    weights: the orders up to `through` plus the tail of coincident directions against the closed
    form; what is left decays geometrically for generic weights.

    Args:
        weights: $w$, shape (width, feature).
        coefficients: $a_i$, one a direction.
        directions: $w^*_i$, orthonormal rows; the basis if None.
        variant: "abs", "relu2" or "relu1".
        tolerance: relative.
    """

    citation: ClassVar[Citation] = Citation("li2020", "Section 2, eq. (2.1)-(2.3)")

    def __call__(
        self,
        weights,
        coefficients,
        directions=None,
        variant: str = "abs",
        through: int = 1200,
        tolerance: float | int = 1e-12,
    ) -> Verdict:
        c = np.asarray(hermite.coefficients(through, variant))
        parts = np.asarray(
            hermite.order_losses(weights, coefficients, range(through + 1), directions, variant)
        )
        slow = float(hermite.coincidence_tail(weights, coefficients, through, directions, variant))
        whole = float(hermite.population_loss(weights, coefficients, directions, variant))
        error = abs(c @ parts + slow - whole) / max(abs(whole), 1e-15)
        numbers = {"loss": whole, "orders": c @ parts, "tail": slow, "relative_error": error}
        return judged(
            tolerance - error,
            f"orders up to {through} and the tail give the loss to {error:.1e}",
            numbers,
        )


class OrderGradients(AbstractTheorem):
    r"""(2.5): $\nabla_{2j,v} = b_{2j}T + b'_{2j}\Pi_{v^\perp}T$ is the gradient of the order-$2j$
    loss.

    $T = \mathbb E_P\langle w,v\rangle\langle\bar w,\bar v\rangle^{2j-2}w - \sum_ia_iv_i\bar
    v_i^{2j-2}e_i$. Corrected: $b_{2j} = 4c_{2j}$ and $b'_{2j} = (4j-4)c_{2j}$; the printed
    $b_{2j} = 4jc_{2j}$ counts the radial part twice. Checked by central differences of
    $c_{2j}\ell_{2j}$ along random directions; "printed_error" is that of the printed constants.

    Args:
        weights: $w$, shape (width, feature).
        coefficients: $a_i$.
        order: $2j$.
        tolerance: relative.
        step: of the central difference.
        seed: of the random direction.
    """

    citation: ClassVar[Citation] = Citation("li2020", "Section 2, eq. (2.4)-(2.5)")

    def __call__(
        self,
        weights,
        coefficients,
        order: int,
        tolerance: float | int = 1e-7,
        step: float | int = 1e-5,
        seed: int = 0,
    ) -> Verdict:
        w = np.asarray(weights, dtype=float)
        m = w.shape[0]
        c = float(hermite.coefficients(order)[order])
        gradient = np.asarray(hermite.order_gradients(w, coefficients, (order,))[0])
        direction = np.random.default_rng(seed).normal(size=w.shape)
        up, down = (
            float(hermite.order_losses(w + s * direction, coefficients, order)[0])
            for s in (step, -step)
        )
        slope = m * c * (up - down) / (2 * step)
        scale = np.linalg.norm(gradient) * np.linalg.norm(direction)
        error = abs(np.sum(gradient * direction) - slope) / scale
        printed = self._printed(w, gradient, order)
        off = abs(np.sum(printed * direction) - slope) / scale
        numbers = {
            "relative_error": error,
            "printed_error": off,
            "b": hermite.gradient_weights(order).b,
            "b_prime": hermite.gradient_weights(order).b_prime,
        }
        return judged(
            tolerance - error, f"order {order}: difference quotient matched to {error:.1e}", numbers
        )

    @staticmethod
    def _printed(w, gradient, order):
        """With b = 4jc: the radial part (gradient's own, 4c T along v) multiplied by j."""
        unit = w / np.linalg.norm(w, axis=1, keepdims=True)
        radial = np.sum(gradient * unit, axis=1, keepdims=True) * unit
        # tangential part: (b + b') T goes from 4j c to (8j - 4) c
        j = order // 2
        return j * radial + (gradient - radial) * (2 * j - 1) / j
