"""The guided tours: one per paper, by its bib key."""

from . import allenzhu2018, caron2023, chen2022, li2020, ren2023
from .base import Moment as Moment, Step as Step, Tour as Tour

TOURS: dict[str, Tour] = {
    module.TOUR.paper: module.TOUR
    for module in (caron2023, chen2022, li2020, ren2023, allenzhu2018)
}
