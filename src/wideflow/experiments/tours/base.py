"""What a guided tour declares: a preset of an experiment, cards of text, and the moment that is
waited for.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import xarray as xr

from ...figures import FigureSpec
from .moments import Moment as Moment


@dataclass(frozen=True)
class Step:
    """One card of text beside the plots.

    Attributes:
        title, text: a few plain sentences, Markdown.
        look: title of the panel to look at.
        moment: called at every record; says whether what the card describes has happened in the
            table so far.
    """

    title: str
    text: str
    look: str = ""
    moment: Callable[[xr.Dataset], Moment | None] | None = None


@dataclass(frozen=True)
class Tour:
    """A run that is watched with explanations.

    Attributes:
        paper: bib key. title: what one sees.
        experiment: name in the registry.
        steps: the cards, in order.
        settings: changes to the default settings of the experiment.
        live: the figure of a table that may still grow; its panels and marks keep their number and
            order.
    """

    paper: str
    title: str
    experiment: str
    steps: tuple[Step, ...]
    settings: Mapping[str, object]
    live: Callable[[xr.Dataset], FigureSpec]
