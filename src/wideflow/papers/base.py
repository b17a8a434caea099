"""What a paper registers: its key, its experiments by name, and by convention the modules beside
them.
"""

import importlib
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType


@dataclass(frozen=True)
class Paper:
    """A paper's folder, as the shell, the lab, `certify` and the book see it. Nothing is imported
    before it is needed.

    Attributes:
        key: the bib key, also the folder's name.
        authors, title: who, and what it is about in a few words.
        link: where the paper can be read, an address or ''.
        package: the folder's dotted name (`__name__` in its `__init__`).
        experiments: module in `experiments/` of each experiment, by the experiment's name, in the
            paper's order.
        prefix: what the experiments' names begin with, where it is not the key.

    A folder may hold `certificate.py` (`STATEMENTS` for `certify`), `tour.py` (an `EXPERIMENT`
    small enough to be watched) with `tour_cards.py` (its `TOUR`), and `theorems/`.
    """

    key: str
    authors: str
    title: str
    package: str
    experiments: Mapping[str, str]
    link: str = ""
    prefix: str = ""

    def __post_init__(self):
        prefix = f"{self.prefix or self.key}-"
        for name in self.experiments:
            if not name.startswith(prefix):
                raise ValueError(f"experiment {name!r} of {self.key} must begin with {prefix!r}.")

    @property
    def year(self) -> str:
        return self.key[-4:]

    @property
    def name(self) -> str:
        """'Caron et al. 2023', 'Li, Ma and Zhang 2020': three authors at most."""
        many = self.authors.count(",") + self.authors.count(" and ") > 2
        first = self.authors.split(",")[0].split(" and ")[0]
        return f"{f'{first} et al.' if many else self.authors} {self.year}"

    def module(self, name: str) -> ModuleType | None:
        """The module of that name in the paper's folder, or None where the paper has none."""
        full = f"{self.package}.{name}"
        return importlib.import_module(full) if importlib.util.find_spec(full) else None

    def experiment(self, name: str):
        """The `Experiment` of that name; only its own module is imported."""
        return importlib.import_module(
            f"{self.package}.experiments.{self.experiments[name]}"
        ).EXPERIMENT
