r"""When the loss should have fallen how far, by the linearised dynamics
$\dot r = -\widehat\Theta_0 r$, and what that is worth.

The times are exact for the linearised dynamics. Training itself leaves that path; what the times
are worth to it, the path itself tells (`certify.laziness.time_spans`).
"""

from dataclasses import dataclass

import numpy as np

from .._core.precision import double
from ..limits.linearised import linearised
from ..limits.time_to_loss import times_to_loss

SHARES = (0.5, 0.1, 0.01, 0.001)  # of the initial loss, whose times are predicted (chosen)
POINTS = 80  # of the curve that is drawn (chosen)


@dataclass(frozen=True)
class Timing:
    """Times to reach shares of the initial loss, and the predicted curve.

    `times` come from the kernel of the network as given, `mean_times` from the mean kernel (NaN
    where there is none).
    """

    initial_loss: float
    shares: tuple[float, ...]
    times: tuple[float, ...]
    mean_times: tuple[float, ...]
    curve_times: np.ndarray
    curve_losses: np.ndarray

    def to_dict(self) -> dict:
        return {
            "initial_loss": self.initial_loss,
            "shares": list(self.shares),
            "times": list(self.times),
            "mean_times": list(self.mean_times),
            "curve": {"time": self.curve_times.tolist(), "loss": self.curve_losses.tolist()},
        }


@double
def predict_times(kernel, mean_kernel, outputs, targets) -> Timing:
    """`outputs` and `targets` are (sample,); kernels (sample, sample)."""
    outputs, targets = np.asarray(outputs, float), np.asarray(targets, float)
    residual = outputs - targets
    times = tuple(float(t) for t in times_to_loss(kernel, residual, SHARES))
    if mean_kernel is None:
        mean_times = (float("nan"),) * len(SHARES)
    else:
        mean_times = tuple(float(t) for t in times_to_loss(mean_kernel, residual, SHARES))
    finite = [t for t in times if np.isfinite(t) and t > 0]
    top = float(np.linalg.eigvalsh(np.asarray(kernel, float))[-1])
    last = 3 * max(finite) if finite else 100.0 / max(top, 1e-300)
    grid = np.concatenate(
        [[0.0], np.geomspace(min(0.01 / max(top, 1e-300), last / 10), last, POINTS)]
    )
    path = linearised(kernel, targets, grid, start=outputs)
    return Timing(
        0.5 * float(residual @ residual), SHARES, times, mean_times, grid, np.asarray(path.losses)
    )
