"""`certify`: every applicable theorem, evaluated."""

import warnings

import numpy as np

from .._core.errors import (
    as_key,
    check_between,
    check_count,
    check_flag,
    check_kind,
    check_list,
    check_positive,
)
from .._core.precision import cast, double
from .._core.renamed import renamed
from ..data.dataset import Dataset
from ..limits.kernels import Spectrum
from ..models.base import AbstractModel
from ..models.shallow import Shallow
from ..papers.chen2022.certificate import interval_of
from .certificate import Certificate
from .checks import check_dataset
from .grams import mean_gram, mean_spectra, node_factor, own_gram, report_gram
from .laziness import laziness
from .promises import follow, judge_all
from .registry import Case
from .several_outputs import single
from .timing import predict_times

MOST, MOST_TRAINED = 2000, 200  # rows whose Gram matrix is worked with: without and with a run


@double
@renamed(delta="failure_probability")
def certify(
    model,
    data,
    train: bool = False,
    *,
    failure_probability: float = 0.1,
    samples: int | None = None,
    time: float | None = None,
    key: int | object = 0,
    notes: tuple[str, ...] = (),
) -> Certificate:
    r"""What theory says about `model` at time zero on `data`.

    Checks the data, takes the spectra of the mean tangent Gram matrix $\widehat\Theta^*$ (whose
    smallest eigenvalue is $\kappa_n$) and of the network's own, evaluates every registered
    statement with its hypotheses, required width and promised rate, predicts from the linearised
    dynamics when which loss is reached, and says how lazy the network is. The data are taken as
    they are; `prepare` brings raw tables into the form that theorems ask for.

    Args:
        model: the network at time zero, a `Shallow` for all theorems; any other model gets the
            parts that need no structure.
        data: a `Dataset` whose targets fit the model's outputs. With several outputs the Gram
            matrix is that of all pairs (sample, output), which moves all residuals together;
            theorems about one output say so, the others are judged on each output.
        train: also run the flow and compare every promise with what happened.
        failure_probability: the allowed probability of failure in probabilistic statements.
        samples: at most so many rows (drawn without replacement, with a warning); default 2000, or
            200 with `train`, divided by the number of outputs. By interlacing, $\kappa$ of a sample
            is an upper bound of $\kappa_n$ of all rows.
        time: how long to run the flow; default until the linearised loss is at 1 %, or 2000 fastest
            time scales.
        key: for the sample and for redrawn networks of other widths.
        notes: sentences about the data or the network that the certificate repeats.

    Returns:
        A `Certificate`: prints as a table, `.to_dict()`, `.figure()`.

    >>> import jax, wideflow as wf
    >>> data = wf.data.sphere_sines(jax.random.key(0), samples=5, features=8)
    >>> cert = wf.certify(wf.Shallow.init(0, features=8, width=64), data)
    >>> cert.mean.resolved
    True
    """
    if not isinstance(model, AbstractModel):
        raise ValueError(
            f"`model` must be a wideflow model, got {type(model).__name__}. For any other "
            "network use `wf.probe`."
        )
    if not isinstance(data, Dataset):
        raise ValueError(
            f"`data` must be a `Dataset`, got {type(data).__name__}. Build one with "
            "`wf.Dataset(inputs, targets)`."
        )
    check_between("failure_probability", failure_probability, 0.0, 1.0, open=True)
    key = as_key(key)
    model, data = _without_idle_axis(cast(model, "float64"), data)
    count = data.targets.size // len(data)
    largest = float(np.abs(data.inputs).max())
    if not 0 < largest < 1e150:
        raise ValueError(
            "`data` must have inputs that are not all zero and below 1e150, whose squares do not "
            f"overflow, got a largest one of {largest:.3g}. Rescale them."
        )
    if not np.abs(data.targets).max() < 1e150:
        raise ValueError(
            "`data` must have targets below 1e150, whose squares do not overflow, got a largest "
            f"one of {np.abs(data.targets).max():.3g}. Rescale them."
        )
    check_flag("train", train)
    if time is not None:
        check_positive("time", time)
    check_list("notes", notes, "sentences")
    for note in notes:
        check_kind("notes", note, str, "sentences, as text")
    most = samples if samples is not None else max(1, (MOST_TRAINED if train else MOST) // count)
    check_count("samples", most)
    total, data = len(data), sampled(data, most, key)
    if len(data) < total:
        text = (
            f"{len(data)} of {total} rows were drawn: kappa of a sample is an upper bound of that "
            "of all rows"
        )
        warnings.warn(text, stacklevel=3)
        notes = (*notes, text)
    outputs, targets = _flat(model, data)
    checks, _ = check_dataset(data)
    own = own_gram(model, data.inputs)
    mixed = factor = mean_report = interval = None
    spectra: tuple[Spectrum, ...] = ()
    if isinstance(model, Shallow):
        mean, factor = mean_gram(model, data.inputs), node_factor(model)
        mixed, mean_report = np.kron(mean, factor), report_gram(mean)
        interval = interval_of(model, data)
        spectra = mean_spectra(model, data.inputs, mean_report)
    timing = predict_times(own, mixed, outputs, targets)
    own_report = report_gram(own)
    followed = follow(model, data, timing, own_report.largest, interval, time) if train else None
    case = Case(
        model,
        data,
        failure_probability,
        None if followed is None else followed.table,
        None if followed is None else followed.model,
        interval,
        *spectra,
    )
    by_output = np.linalg.eigvalsh(factor) if factor is not None and len(factor) > 1 else None
    promises, later = judge_all(case)
    return Certificate(
        _subject(model, data, total),
        notes,
        checks,
        mean_report,
        own_report,
        promises,
        later,
        timing,
        laziness(model, data, key, shares=timing.shares),
        followed,
        by_output,
    )


def sampled(data: Dataset, most: int, key) -> Dataset:
    """At most `most` rows, drawn without replacement by `key`, in their old order."""
    if len(data) <= most:
        return data
    import jax

    seed = np.asarray(jax.random.key_data(key)).astype(np.uint32)
    rows = np.random.default_rng(seed).choice(len(data), most, replace=False)
    return data.take(np.sort(rows))


def _without_idle_axis(model: AbstractModel, data: Dataset) -> tuple[AbstractModel, Dataset]:
    """One output with an axis of its own is one output."""
    if not (isinstance(model, Shallow) and model.output.ndim == 2 and len(model.output) == 1):
        return model, data
    if data.targets.ndim == 2 and data.targets.shape[1] == 1:
        data = Dataset(data.inputs, data.targets[:, 0], data.name, data.features)
    return single(model, 0), data


def _flat(model, data: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Outputs and targets, sample by sample and output by output."""
    outputs = np.asarray(model.outputs(data.inputs), dtype=float)
    targets = np.asarray(data.targets, dtype=float)
    if outputs.shape != targets.shape:
        raise ValueError(
            f"`data` has targets of shape {targets.shape}, but the model gives {outputs.shape}. "
            "Build the model with that many outputs."
        )
    return outputs.reshape(-1), targets.reshape(-1)


def _subject(model, data: Dataset, total: int) -> dict:
    subject = {
        "data": data.name,
        "samples": len(data),
        "rows in all": total,
        "features": data.dimension,
        **({"outputs": data.targets.shape[1]} if data.targets.ndim == 2 else {}),
        "model": type(model).__name__,
    }
    if isinstance(model, Shallow):
        subject |= {
            "width": model.width,
            "scaling": repr(model.scaling),
            "activation": model.activation.name,
            "embedding": type(model.embedding).__name__,
        }
    return subject
