"""The data of the generic training experiment: generated sets, UCI tables and CSV files, with rows
set aside for testing.
"""

from typing import TYPE_CHECKING

import jax
import numpy as np

from .. import data
from .._core.randomness import named_key
from ..data.dataset import Dataset

if TYPE_CHECKING:
    from .training import Settings

GENERATED = ("sphere-sines", "random-labels", "wave-1d", "wave-2d")
MOST_HELD_OUT = 3  # at most one row in three of a table is set aside for testing


def training_and_test(s: "Settings", key) -> tuple[Dataset, Dataset | None]:
    """The training set, and the test set where one is asked for; both from one draw or one
    table.
    """
    return _generated(s, key) if s.data in GENERATED else _table(s, key)


def _generated(s: "Settings", key) -> tuple[Dataset, Dataset | None]:
    count, wave = s.samples + s.test_samples, (s.noise, s.frequency, s.amplitude)
    drawn = {
        "sphere-sines": lambda: data.sphere_sines(key, count, s.features, s.noise),
        "random-labels": lambda: data.random_labels(key, count, s.features),
        "wave-1d": lambda: data.waves(key, count, 1, *wave),
        "wave-2d": lambda: data.waves(key, count, 2, *wave),
    }[s.data]()
    training, test = np.split(np.arange(count), [s.samples])
    return drawn.take(training), drawn.take(test) if s.test_samples else None


def _table(s: "Settings", key) -> tuple[Dataset, Dataset | None]:
    """At most `rows` to train on; the rows for testing are drawn from all that are read, and
    prepared together with them.
    """
    table = data.uci(s.data.removeprefix("uci:")) if s.data.startswith("uci:") else None
    table = table or data.read_csv(
        s.data, s.target or None, constant="drop", classes=s.positive or True
    )
    most = s.rows + s.test_samples
    if s.rows and most < len(table):
        rows = jax.random.permutation(named_key(key, "rows"), len(table))[:most]
        table = table.take(np.sort(np.asarray(rows)))
    whole = data.prepare(table).data if s.prepared else table
    count = min(s.test_samples, len(whole) // MOST_HELD_OUT)
    if count == 0:
        return whole, None
    order = np.asarray(jax.random.permutation(named_key(key, "held out"), len(whole)))
    return whole.take(np.sort(order[count:])), whole.take(np.sort(order[:count]))
