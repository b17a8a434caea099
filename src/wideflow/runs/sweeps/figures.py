"""A sweep drawn over one of its axes: means with confidence bands, and slopes where both scales are
logarithmic.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import xarray as xr

from ..._core.errors import did_you_mean, listing
from ...figures import FigureSpec, Line, Panel, Points
from .collect import MISSING, STATUS
from .plan import short
from .spec import PLOT_KEYS

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Slope:
    """y ~ x^exponent, least squares in logarithms over all runs, with its standard error from their
    scatter.
    """

    exponent: float
    error: float
    constant: float

    @property
    def text(self) -> str:
        return f"slope {self.exponent:.2f}" + (
            f" ± {self.error:.2f}" if np.isfinite(self.error) else ""
        )


def parse_plot(words: Iterable[str]) -> dict[str, str]:
    """`y=loss x=width hue=scaling` as a dictionary; `at` picks a value of `step` or `time`, default
    the last.
    """
    options: dict[str, str] = {}
    for word in (part for text in words for part in text.split()):
        name, sign, value = word.partition("=")
        if not sign or name not in PLOT_KEYS or not value:
            raise ValueError(
                "`--plot` takes y=, x=, hue= and at=, got "
                f"{word!r}.{did_you_mean(name, PLOT_KEYS)} For example: --plot y=loss x=width "
                "hue=scaling"
            )
        options[name] = value
    for needed in ("y", "x"):
        if needed not in options:
            raise ValueError(
                f"`--plot` needs {needed}=..., got "
                f"{' '.join(f'{k}={v}' for k, v in options.items()) or 'nothing'}."
            )
    return options


def draw(table: xr.Dataset, plot: Mapping[str, str]) -> FigureSpec:
    """The figure that `plot` asks of a collected table."""
    y, x, hue = plot["y"], plot["x"], plot.get("hue")
    axes = table[STATUS].dims
    numbers = [str(n) for n, v in table.data_vars.items() if np.issubdtype(v.dtype, np.number)]
    _known("y", y, numbers)
    values = table[y]
    _known(
        "x",
        x,
        [str(n) for n in (*table.coords, *values.dims, *(n for n in ("time",) if n in table))],
    )
    if hue is not None:
        _known(
            "hue",
            hue,
            [str(n) for n in table.coords if table[n].dims and set(table[n].dims) <= set(axes)],
        )
    along = _dimension(table, x, values)
    by = table[hue].dims[0] if hue else None
    values = _at(values, table, plot.get("at"), keep=along)
    averaged = [d for d in values.dims if d not in (along, by)]
    positions = _positions(table, x, along)
    numeric = np.issubdtype(positions.dtype, np.number)
    place = positions.astype(float) if numeric else np.arange(len(positions), dtype=float)
    finite = values.values[np.isfinite(values.values)]
    if not finite.size:
        raise ValueError(
            f"`--plot` finds no values of {y!r} yet; `wideflow sweep SPEC --status` shows what "
            "is done."
        )
    # logarithmic from a factor of 4 on along x and of 10 along y (chosen); a power law needs both
    log_x = numeric and bool(np.all(place > 0)) and place.max() >= 4 * place.min()
    log_y = bool(np.all(finite > 0)) and (log_x or finite.max() >= 10 * finite.min())
    marks = []
    for i in range(table.sizes[by] if by else 1):
        part = (values.isel({by: i}) if by else values).transpose(along, ...)
        label = f"{hue} = {short(table[hue].values[i].item())}" if by else ""
        samples = part.values.reshape(part.sizes[along], -1)
        band = confidence_band(samples, logarithmic=log_y)
        power_law = log_x and log_y and along in axes
        slope = (
            fit_slope(np.repeat(place, samples.shape[1]), samples.ravel()) if power_law else None
        )
        marks += _marks(place, label, band, slope)
    names = f" ({', '.join(f'{i}: {short(v.item())}' for i, v in enumerate(positions))})"
    panel = Panel(
        y.replace("_", " "),
        x.replace("_", " ") + ("" if numeric else names),
        str(values.attrs.get("label", y.replace("_", " "))),
        marks,
        "log" if log_x else "linear",
        "log" if log_y else "linear",
    )
    missing = int((table[STATUS] == MISSING).sum())
    kind = "Geometric means" if log_y else "Means"
    caption = (
        f"{kind} over {', '.join(map(str, averaged)) or 'one run each'} with {CONFIDENCE:.0%} bands"
    )
    verb = "is" if missing == 1 else "are"
    caption += f"; {missing} of {table[STATUS].size} runs {verb} missing." if missing else "."
    return FigureSpec(str(table.attrs["sweep"]), [panel], columns=1, caption=caption)


def fit_slope(x: np.ndarray, y: np.ndarray) -> Slope | None:
    """The exponent of a power law; None with fewer than two usable points."""
    good = np.isfinite(x) & np.isfinite(y) & (x > 0) & (y > 0)
    if good.sum() < 2 or np.ptp(x[good]) == 0:
        return None
    u, v = np.log(x[good]), np.log(y[good])
    spread = np.sum((u - u.mean()) ** 2)
    exponent = np.sum((u - u.mean()) * (v - v.mean())) / spread
    rest = v - v.mean() - exponent * (u - u.mean())
    error = np.sqrt(np.sum(rest**2) / (good.sum() - 2) / spread) if good.sum() > 2 else np.nan
    return Slope(float(exponent), float(error), float(np.exp(v.mean() - exponent * u.mean())))


def _known(name: str, value: str, options: list[str]) -> None:
    if value not in options:
        raise ValueError(
            f"`{name}` of --plot must be {listing(dict.fromkeys(options))}, got "
            f"{value!r}.{did_you_mean(value, options)}"
        )


def _dimension(table: xr.Dataset, x: str, values: xr.DataArray) -> str:
    """The dimension along which `x` lies; time lies along the steps."""
    if x in values.dims:
        return x
    dims = table[x].dims
    along = "step" if x == "time" and "step" in dims else dims[0] if dims else ""
    if along not in values.dims:
        raise ValueError(
            f"`x` of --plot must lie along one of {', '.join(map(str, values.dims))}, got {x!r}."
        )
    return str(along)


def _positions(table: xr.Dataset, x: str, along: str) -> np.ndarray:
    if x not in table.variables:
        return np.arange(table.sizes[along])
    places = table[x]
    others = [d for d in places.dims if d != along]
    return (places.mean(others) if others else places).values


def _at(values: xr.DataArray, table: xr.Dataset, at: str | None, keep: str) -> xr.DataArray:
    """The values at the requested step, or at each run's last one, unless the steps are what is
    drawn over.
    """
    if "step" not in values.dims or keep == "step":
        return values
    if at is not None:
        try:
            return values.sel(step=float(at), method="nearest")
        except (TypeError, ValueError) as error:
            raise ValueError(f"`at` of --plot must be a step, got {at!r}.") from error
    return _last(values)


def _last(values: xr.DataArray) -> xr.DataArray:
    """The last value along the steps that is not missing."""
    filled = values.transpose(..., "step").values
    index = filled.shape[-1] - 1 - np.argmax(np.isfinite(filled[..., ::-1]), axis=-1)
    last = np.take_along_axis(filled, index[..., None], axis=-1)[..., 0]
    template = values.transpose(..., "step").isel(step=-1)
    return template.copy(data=last)


def confidence_band(
    samples: np.ndarray, logarithmic: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean and its confidence interval (Student's t) along the second axis, of what is not missing.

    `logarithmic` takes both of the logarithms: the geometric mean, and a band that stays positive.
    """
    from scipy.special import stdtrit

    if logarithmic:
        mean, low, high = confidence_band(np.log(samples))
        return np.exp(mean), np.exp(low), np.exp(high)
    good = np.isfinite(samples)
    count = good.sum(1)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(good, samples, 0.0).sum(1) / count
        rest = np.where(good, samples - mean[:, None], 0.0)
        error = np.sqrt((rest**2).sum(1) / (count - 1) / count)
        half = stdtrit(np.maximum(count - 1, 1), 0.5 + CONFIDENCE / 2) * error
    half = np.where(count > 1, half, 0.0)
    return mean, mean - half, mean + half


def _marks(x, label: str, band, slope: Slope | None) -> list:
    middle, low, high = band
    group = label or "mean"
    marks: list = [Line(x, middle, label, low, high, group=group), Points(x, middle, group=group)]
    if slope is not None:
        text = ": ".join(part for part in (label, slope.text) if part)
        marks.append(Line(x, slope.constant * x**slope.exponent, text, dash="dashed", group=group))
    return marks
