"""Claims of chen2022-figure1 on draws of the data that converge slowly: a share of seeds can fail,
"every seed" is declared where one is slow.
"""

import numpy as np
import pytest

from wideflow.papers.chen2022.experiments.figure1 import _in_most_seeds


@pytest.mark.parametrize(
    ("slow", "verdicts"),
    [
        (0, ["holds"]),
        (1, ["holds", "does not reproduce (declared)"]),
        (2, ["FAILS", "does not reproduce (declared)"]),
    ],
)
def test_four_seeds_of_five_are_asked_for(slow, verdicts):
    good = np.arange(5) >= slow
    assert [claim.verdict for claim in _in_most_seeds("linear", good)] == verdicts
