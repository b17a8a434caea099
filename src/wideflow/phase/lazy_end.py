r"""The lazy end of the plane without a network: kernel regression with the mean tangent kernel,
stopped at the same training losses.

For $\gamma_0 \to 0$ and then $m \to \infty$ the outputs follow $\dot f = -\Theta^*(f - y)$ from
zero (time of the half sum of squares), so that with $\Theta^* = V\Lambda V^\top$ the loss at time
$t$ is $\sum_i (v_i^\top y)^2 e^{-2\lambda_i t}$ over $|y|^2$ and
$f_t(x) = \Theta^*(x, X)\, V \frac{1 - e^{-\Lambda t}}{\Lambda} V^\top y$. Times at which the loss
is at a level are roots of a falling function.
"""

import numpy as np

from .._core.precision import double
from ..data.dataset import Dataset
from ..limits.kernels import mean_ntk
from ..limits.time_to_loss import times_to_loss
from .errors_of_predictions import error_of, two_classes
from .splits import Standard, split_rows


@double
def lazy_errors(
    data: Dataset,
    key,
    fold: int,
    folds: int,
    samples: int,
    activation: str,
    levels,
    weight_std: float | int = 1.0,
) -> dict[str, np.ndarray]:
    """Validation and test error of the limit at every level, on the rows of that fold.

    Hidden weights of deviation s see inputs s times as large; the factor 1/s^2 of their kernel
    changes times, not what is reached at a level.
    """
    rows = split_rows(key, len(data), fold, folds, samples)
    standard = Standard.of(data.inputs[rows.train], data.targets[rows.train])
    y = standard.targets(data.targets)
    border = float(np.mean(np.unique(y))) if two_classes(data.targets) else None
    network_inputs = lambda part: weight_std * standard.inputs(data.inputs[part])
    inputs = network_inputs(rows.train)
    kernel = np.asarray(mean_ntk(inputs, activation))
    times = times_to_loss(kernel, -y[rows.train], levels)
    values, vectors = np.linalg.eigh(kernel)
    values = np.maximum(values, values[-1] * len(values) * np.finfo(float).eps)
    modes = vectors.T @ y[rows.train]
    fitted_share = -np.expm1(-np.outer(times, values)) / values  # (level, mode)
    weights = (fitted_share * modes) @ vectors.T
    errors = {}
    for name, part in (("validation", rows.validation), ("test", rows.test)):
        across = np.asarray(mean_ntk(network_inputs(part), activation, inputs))
        error = error_of(weights @ across.T, y[part], border)
        errors[name] = np.where(np.isfinite(times), error, np.inf)
    return errors
