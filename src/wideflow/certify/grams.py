r"""The spectrum of a tangent Gram matrix, with an error bar on its smallest eigenvalue."""

import math
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from .._core.precision import double
from ..limits.kernels import Spectrum, mean_ntk, spectrum
from ..models.embeddings import Identity
from ..models.shallow import Shallow
from ..observables.block_kernels import block_gram


@dataclass(frozen=True)
class GramReport:
    r"""Of a symmetric $n \times n$ matrix.

    Attributes:
        eigenvalues: ascending.
        bar: $n\,\epsilon\,\mathrm{tr}$, the rounding of the eigenvalue solver; a smallest
            eigenvalue below it is not resolved.
        effective_rank: $(\mathrm{tr})^2/\lVert\cdot\rVert_F^2$.
    """

    eigenvalues: np.ndarray
    bar: float
    effective_rank: float

    @property
    def smallest(self) -> float:
        return float(self.eigenvalues[0])

    @property
    def largest(self) -> float:
        return float(self.eigenvalues[-1])

    @property
    def trace(self) -> float:
        return float(np.sum(self.eigenvalues))

    @property
    def resolved(self) -> bool:
        return bool(self.smallest > self.bar)

    @property
    def condition(self) -> float:
        """Largest over smallest eigenvalue; where that is not resolved, a lower bound from its
        error bar.
        """
        return (
            self.largest / self.smallest
            if self.resolved
            else self.largest / self.bar
            if self.bar > 0
            else math.inf
        )

    def smallest_text(self) -> str:
        if self.resolved:
            return f"{self.smallest:.4g} ± {self.bar:.1g}"
        return f"not resolved (below its error bar {self.bar:.1g})"

    def condition_text(self) -> str:
        return (
            f"{self.condition:.4g}"
            if self.resolved
            else f"above {self.condition:.2g} (not resolved)"
        )

    def to_dict(self) -> dict:
        return {
            "smallest": self.smallest,
            "error_bar": self.bar,
            "resolved": self.resolved,
            "largest": self.largest,
            "trace": self.trace,
            "condition": self.condition,
            "effective_rank": self.effective_rank,
            "eigenvalues": self.eigenvalues.tolist(),
        }


@double
def report_gram(gram) -> GramReport:
    gram = np.asarray(gram, dtype=float)
    values = np.asarray(jnp.linalg.eigvalsh(gram))
    trace = float(np.trace(gram))
    square = float(np.sum(gram**2))
    bar = len(values) * float(np.finfo(float).eps) * abs(trace)
    return GramReport(values, bar, trace**2 / square if square > 0 else 0.0)


def spectrum_of(report: GramReport) -> Spectrum:
    """The extreme eigenvalues of a reported matrix, as theorems take them."""
    return Spectrum(report.smallest, report.largest, report.trace, report.bar)


@double
def mean_spectra(model: Shallow, inputs, report: GramReport) -> tuple[Spectrum, Spectrum]:
    """Spectra of `mean_ntk` on the inputs and on the embedded inputs; `report`, that of
    `mean_gram`, serves for both where it is the same matrix.
    """
    features = model.embedding.embed(jnp.asarray(inputs)).astype(float)
    if gram_factors(model, features.shape[1]) == (1.0, 1.0):
        embedded = spectrum_of(report)
    else:
        embedded = spectrum(mean_ntk(features, model.activation))
    if isinstance(model.embedding, Identity):
        return embedded, embedded
    return spectrum(mean_ntk(inputs, model.activation)), embedded


def gram_factors(model: Shallow, features: int) -> tuple[float, float]:
    r"""$p\sqrt D\,s$ and $s$: by what the embedded inputs are multiplied, and the deviation of the
    weights.
    """
    deviation = model.scaling.initial_deviation(model.width)
    size = model.hidden_scale * math.sqrt(features) * deviation
    return (1.0 if math.isclose(size, 1.0, rel_tol=1e-14) else size), deviation


@double
def mean_gram(model: Shallow, inputs):
    r"""$\widehat\Theta^*$: the mean over Gaussian hidden weights of the tangent Gram at time zero,
    for signs and total node weight 1.

    On embedded inputs $\phi$ with pre-activation factor $p$ and weights of deviation $s$ it is
    `mean_ntk` of $p\sqrt D\,s\,\phi$ over $s^2$; for NTK and Zipf networks on plain inputs,
    `mean_ntk` of the inputs themselves, whose smallest eigenvalue is $\kappa_n$.
    """
    features = model.embedding.embed(jnp.asarray(inputs)).astype(float)
    size, deviation = gram_factors(model, features.shape[1])
    return mean_ntk(size * features, model.activation) / deviation**2


@double
def node_factor(model: Shallow):
    r"""$C_{kl} = c\sum_j \lambda_j A_{kj} A_{lj}$, (output, output): the mean over hidden weights
    of this network's Gram matrix is $\widehat\Theta^*\otimes C$.

    For signs its diagonal is 1 under NTK, Zipf and mean-field scaling; off the diagonal it is small
    where no few nodes carry the weight.
    """
    mixed = np.asarray(model.scales, float) * np.atleast_2d(np.asarray(model.output, float))
    return np.asarray(model.rate_factor) * mixed @ mixed.T


@double
def own_gram(model, inputs):
    """The tangent Gram matrix of the model itself over all samples and outputs, in float64."""
    return block_gram(model, inputs).astype(float)
