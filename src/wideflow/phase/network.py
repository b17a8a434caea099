r"""A network of the plane, and its training down to a stated loss.

One hidden layer of $m$ nodes whose hidden weights are trained,
$f(x) = \frac{1}{\gamma_0}\sum_j s_j A_j \sigma(\langle w_j, x\rangle/\sqrt D)$ with $A_j = \pm 1$,
or, where `depth` is given, a network of that many hidden layers with all weights trained. The
richness $\gamma_0$ divides the outputs and multiplies the rate by $\gamma_0^2$ (`wf.rescaled`): the
tangent kernel, and so the speed, stays. Under mean-field scaling ($s_j = 1/m$) every $\gamma_0$ has
a limit of infinite width, lazy for $\gamma_0 \to 0$; NTK scaling at width $m$ is
$\gamma_0 = 1/\sqrt m$.

The start is taken off, $f - f_0$, so that training begins at zero and the loss, the share of the
targets' variance that is left, at 1. Descent steps are `rate` times the stability limit
$2/\lambda_{\max}(\Theta_0/n)$; at the default quarter descent follows the flow in all modes but the
fastest.
"""

import math
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from .._core.activations import activation as as_activation
from .._core.architecture import Activate, Chain, Dense
from .._core.errors import (
    check_between,
    check_choice,
    check_count,
    check_positive,
)
from .._core.precision import Precision, double
from .._core.randomness import named_key
from .._core.scalings import NTK, MeanField, Zipf
from .._core.status import Status
from ..data.dataset import Dataset
from ..dynamics.descent import GradientDescent
from ..dynamics.flow import GradientFlow
from ..dynamics.losses import HalfMeanSquares
from ..models.base import AbstractModel
from ..models.deep import Deep
from ..models.rescaled import rescaled
from ..models.shallow import Shallow
from ..observables.kernels import KernelDistance, tangent_gram
from ..observables.laziness import LinearisationGap
from ..observables.movement import ParameterMovement
from ..observables.visual import OutputsAt
from ..training.recorder import Logarithmic
from ..training.session import Session
from ..training.train import train

SCALINGS = ("mean-field", "ntk", "zipf")
DYNAMICS = ("descent", "flow")
LEVELS = (0.8, 0.6, 0.5, 0.4, 0.3, 0.2, 0.15, 0.1, 0.07, 0.05, 0.03, 0.02, 0.01)
STEPS = 20_000  # of descent: at rate 1/4 modes down to 1e-4 of the fastest are fitted
PROBED = 128  # training rows on which kernels are compared (chosen)
SPECTRUM = 600  # training rows on which the fastest rate is measured (chosen)
RECORDS = 12  # a decade of time (chosen)


@dataclass(frozen=True)
class Network:
    """What a network is before training.

    Attributes:
        width: $m$, nodes of every hidden layer.
        richness: $\\gamma_0$, one over the output factor.
        scaling: 'mean-field', 'ntk', or 'zipf' with `share` $\\gamma$ and `tail` $\\alpha$ (see
            `wf.scalings`).
        weight_std: deviation of the initial hidden weights.
        depth: 0 for one hidden layer whose output weights are frozen signs; else hidden layers, all
            trained.
        activation: 'relu', 'tanh' or another of `wf.activations`, by name.
    """

    width: int = 256
    richness: float | int = 1.0
    scaling: str = "mean-field"
    share: float | int = 0.5
    tail: float | int = 0.7
    weight_std: float | int = 1.0
    depth: int = 0
    activation: str = "relu"

    def __post_init__(self):
        check_count("width", self.width)
        check_positive("richness", self.richness, "Its limit 0 is kernel regression.")
        check_choice("scaling", self.scaling, SCALINGS)
        check_between("share", self.share, 0.0, 1.0)
        check_between("tail", self.tail, 0.0, 1.0, open=True)
        check_positive("weight_std", self.weight_std)
        check_count("depth", self.depth, least=0)
        as_activation(self.activation)

    def init(self, key, features: int) -> AbstractModel:
        """The network at time zero, outputs divided by the richness."""
        if self.depth:
            return rescaled(self._deep(key, features), richness=self.richness)
        scaling = {
            "mean-field": MeanField(),
            "ntk": NTK(),
            "zipf": Zipf(self.share, self.tail),
        }[self.scaling]
        net = Shallow.init(
            key,
            features=features,
            width=self.width,
            scaling=scaling,
            activation=self.activation,
            weight_std=self.weight_std,
        )
        return rescaled(net, richness=self.richness)

    def _deep(self, key, features: int) -> Deep:
        nodes = Zipf(self.share, self.tail) if self.scaling == "zipf" else None
        layers = []
        for _ in range(self.depth):
            layers += [
                Dense(self.width, self.weight_std, node_scaling=nodes),
                Activate(self.activation),
            ]
        parametrisation = "mean-field" if self.scaling == "mean-field" else "ntk"
        return Deep.init(key, Chain(*layers, Dense(1)), features, parametrisation)


@dataclass(frozen=True)
class Training:
    """How it is trained.

    Attributes:
        levels: of the training loss at which it is looked at, falling; training stops below the
            last.
        rate: of descent, in units of the stability limit $2/\\lambda_{\\max}$ at the start.
        steps: of descent at most; the flow goes on for as much time.
        dynamics: 'descent' or 'flow', the gradient flow itself, which costs more.
        precision: of training; what is measured is in float64.
    """

    levels: tuple[float | int, ...] = LEVELS
    rate: float | int = 0.25
    steps: int = STEPS
    dynamics: str = "descent"
    precision: Precision = "float32"

    def __post_init__(self):
        levels = tuple(self.levels) if isinstance(self.levels, tuple | list) else ()
        if not levels:
            raise ValueError(
                f"`levels` must be a list of training losses below 1, got {self.levels!r}."
            )
        for level in levels:
            check_between("levels", level, 0.0, 1.0, open=True, remedy="Training starts at 1.")
        if list(levels) != sorted(set(levels), reverse=True):
            raise ValueError(f"`levels` must fall, got {', '.join(map(str, levels))}.")
        object.__setattr__(self, "levels", tuple(map(float, levels)))
        check_positive("rate", self.rate)
        check_count("steps", self.steps)
        check_choice("dynamics", self.dynamics, DYNAMICS)
        check_choice("precision", self.precision, ("float32", "float64"))


def split_settings(settings: dict[str, Any]) -> tuple[Network, Training]:
    """The two parts of a run's settings, by the names of their fields."""
    pick = lambda kind: {f.name: settings[f.name] for f in fields(kind) if f.name in settings}
    return Network(**pick(Network)), Training(**pick(Training))


class Path(NamedTuple):
    """What training gave, record by record; `outputs` are those at the watched inputs, less the
    start's.
    """

    losses: np.ndarray
    times: np.ndarray
    outputs: np.ndarray
    kernel_change: np.ndarray
    linearisation_gap: np.ndarray
    movement: np.ndarray
    status: Status
    steps: int
    start: AbstractModel
    model: AbstractModel


@double
def train_network(
    network: Network,
    training: Training,
    key,
    inputs: np.ndarray,
    targets: np.ndarray,
    watched: np.ndarray,
    session: Session | None = None,
) -> Path:
    """Trains on standardised `inputs` (sample, feature) and `targets` (sample,) until the loss is
    below the last level or the steps are used up.
    """
    start = network.init(named_key(key, "network"), inputs.shape[1])
    # the network less its start on the targets is the network itself on targets moved by its start
    data = Dataset(inputs, targets + np.asarray(start.outputs(inputs)), "training rows")
    gram = np.asarray(tangent_gram(start, inputs[:SPECTRUM]))  # rates included
    fastest = float(np.linalg.eigvalsh(gram)[-1]) / len(gram)
    if not (fastest > 0 and math.isfinite(fastest)):
        raise ValueError(
            f"the tangent kernel of a network of width {network.width} is zero on these rows: "
            "every node is off. Take a larger width."
        )
    rate = training.rate * 2 / fastest
    flow = training.dynamics == "flow"
    length: dict[str, Any] = {"time": training.steps * rate} if flow else {"steps": training.steps}
    run = train(
        start,
        data,
        GradientFlow() if flow else GradientDescent(rate),
        **length,
        every=Logarithmic(RECORDS, rate if flow else 1.0),
        loss=HalfMeanSquares(),
        stop_below=0.5 * training.levels[-1] * float(np.mean(targets**2)),
        record=[
            OutputsAt(watched),
            KernelDistance(samples=PROBED),
            LinearisationGap(PROBED),
            ParameterMovement(),
        ],
        precision="float64" if flow else training.precision,
        session=session,
    )
    table = run.table
    moved = table["learned_function"].values - np.asarray(start.outputs(watched))
    return Path(
        2 * table["loss"].values / float(np.mean(targets**2)),
        table["time"].values,
        moved,
        table["kernel_change"].values,
        table["linearisation_gap"].values,
        table["parameter_movement"].values,
        run.status,
        int(table["step"].values[-1]),
        run.start,
        run.model,
    )
