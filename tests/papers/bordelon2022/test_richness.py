"""The settings of bordelon2022-richness."""

import pytest

from wideflow.papers.bordelon2022.experiments.richness import Settings


def test_growth_needs_two_values_of_richness():
    with pytest.raises(ValueError, match=r"^`richness` must have at least two values, got"):
        Settings(richness=(0.2,))
