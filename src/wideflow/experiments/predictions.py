r"""What the limits predict of a run: the dashed lines beside its curves.

The lazy prediction freezes the kernel $\Theta_0$ of the network at hand, $\dot r = -\Theta_0 r$;
the infinite-width limit at time zero is $\widehat\Theta^*$, or under a node scaling with
$\gamma < 1$ a random matrix of that mean (caron2023, Proposition 3.3), of which some are drawn. A
deep network is compared with its own linearisation here, and with its limit in `deep_theory`.
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

DRAWS = 8  # of a random limit kernel (chosen)


def awaited(network, samples: int, times: np.ndarray, grid) -> xr.Dataset:
    """The predictions before they are computed: the same variables without numbers, so that figures
    keep their marks.
    """
    empty = lambda *shape: np.full(shape, np.nan)
    known = {
        "time_ahead": ("ahead", np.asarray(times)),
        "linearised_loss": ("ahead", empty(len(times))),
    }
    if grid is not None:
        known["linearised_function"] = ("grid", empty(len(grid)))
    if isinstance(network, Shallow):
        known["limit_spectrum"] = ("eigenvalue", empty(samples))
        known["limit_spectra"] = (("draw", "eigenvalue"), empty(_draws(network), samples))
    return xr.Dataset(known)


def predict(
    network,
    training: Dataset,
    times: np.ndarray,
    rate: float | None,
    factor: float,
    grid,
    key,
) -> xr.Dataset:
    """Loss over `times` and outputs on `grid` at their end with the kernel frozen; spectra of the
    limit kernel.

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
    known = {
        "time_ahead": ("ahead", np.asarray(times)),
        "linearised_loss": (
            "ahead",
            factor * np.asarray(lazy.losses),
            {"label": "loss, linearised"},
        ),
    }
    if lazy.test_outputs is not None:
        known["linearised_function"] = ("grid", np.asarray(lazy.test_outputs)[-1])
    return xr.Dataset(
        known | (_limit(network, inputs, key) if isinstance(network, Shallow) else {})
    )


def _limit(network: Shallow, inputs, key) -> dict:
    """Eigenvalues of the mean limit kernel, and of several draws where the limit is random."""
    mean = _node_factor(network) * np.asarray(mean_ntk(inputs, network.activation))
    drawn = mean[None]
    if _draws(network) > 1:
        drawn = random_ntg(
            named_key(key, "limit"), inputs, network.scaling, network.activation, draws=DRAWS
        )
    return {
        "limit_spectrum": (
            "eigenvalue",
            np.linalg.eigvalsh(mean),
            {"label": "eigenvalues of the limit kernel"},
        ),
        "limit_spectra": (("draw", "eigenvalue"), np.linalg.eigvalsh(np.asarray(drawn))),
    }


def _node_factor(network: Shallow) -> float:
    r"""$c\sum_j\lambda_jA_j^2$: 1 for NTK, node scalings and mean field with signs as output
    weights.
    """
    return float(network.rate_factor * np.sum(np.asarray(network.scales * network.output) ** 2))


def _draws(network: Shallow) -> int:
    """How many draws show the limit: one where it is not random."""
    scaling = network.scaling
    return DRAWS if isinstance(scaling, Zipf | Weights) and scaling.gamma < 1 else 1
