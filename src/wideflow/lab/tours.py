"""The guided tours: one per paper, by its bib key."""

from ..experiments.tours.base import Moment, Step, Tour
from ..papers import papers

__all__ = ["TOURS", "Moment", "Step", "Tour"]

TOURS: dict[str, Tour] = {
    key: cards.TOUR
    for key, paper in papers().items()
    if (cards := paper.module("tour_cards")) is not None
}
