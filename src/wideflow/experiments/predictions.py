r"""What the limits predict of a run before it begins: the dashed lines beside its curves.

The lazy prediction freezes the kernel $\Theta_0$ of the network at hand, $\dot r = -\Theta_0 r$; the infinite-width limit at time zero is
$\widehat\Theta^*$, or under a node scaling with $\gamma < 1$ a random matrix of that mean (caron2023, Proposition 3.3), of which some are drawn.
"""

import numpy as np
import xarray as xr

from .._core.randomness import named_key
from .._core.scalings import Weights, Zipf
from ..data.dataset import Dataset
from ..limits.kernels import mean_ntk
from ..limits.linearised import linearised
from ..limits.random_gram import random_ntg
from ..models.shallow import Shallow
from ..observables.kernels import tangent_gram

DRAWS = 8


def predict(
    network: Shallow,
    training: Dataset,
    times: np.ndarray,
    rate: float | None,
    factor: float,
    grid,
    key,
) -> xr.Dataset:
    """Loss over `times` and outputs on `grid` at their end with the kernel frozen; spectrum and gap of the limit kernel.

    Args:
        rate: of descent, None for the flow.
        factor: of the loss, relative to the half sum of squares.
        grid: inputs at which the function is shown, or None.
    """
    inputs, targets = training.inputs, training.targets
    kernel = tangent_gram(network, inputs)
    more = {}
    if grid is not None:
        more = {
            "test_kernel": factor * tangent_gram(network, grid, inputs),
            "test_start": network.outputs(grid),
        }
    lazy = linearised(
        factor * kernel, targets, times, start=network.outputs(inputs), rate=rate, **more
    )
    limit = np.linalg.eigvalsh(
        _node_factor(network) * np.asarray(mean_ntk(inputs, network.activation))
    )
    found = {
        "linearised_loss": ("ahead", factor * np.asarray(lazy.losses), {"label": "loss, linearised"}),
        "time_ahead": ("ahead", np.asarray(times)),
        "limit_spectrum": ("eigenvalue", limit, {"label": "eigenvalues of the limit kernel"}),
        "limit_gap": ("draw", _limit_gaps(network, inputs, limit, key), {"label": "gap of the limit kernel"}),
    }  # fmt: skip
    if lazy.test_outputs is not None:
        found["linearised_function"] = ("grid", np.asarray(lazy.test_outputs)[-1])
    return xr.Dataset(found)


def _node_factor(network: Shallow) -> float:
    r"""$c\sum_j\lambda_jA_j^2$: 1 for NTK, node scalings and mean field with signs as output weights."""
    return float(network.rate_factor * np.sum(np.asarray(network.scales * network.output) ** 2))


def _limit_gaps(network: Shallow, inputs, limit: np.ndarray, key) -> np.ndarray:
    """Smallest eigenvalues of the limit kernel, of several draws where it is random."""
    scaling = network.scaling
    if isinstance(scaling, Zipf | Weights) and scaling.gamma < 1:
        drawn = random_ntg(
            named_key(key, "limit"), inputs, scaling, network.activation, draws=DRAWS
        )
        return np.linalg.eigvalsh(np.asarray(drawn))[:, 0]
    return limit[:1]
