"""The guided tours: one per paper, by its bib key."""

from .base import Moment as Moment, Step as Step, Tour as Tour

TOURS: dict[str, Tour] = {}
