"""Numbers in the sentence, against values worked out by hand."""

import math

from wideflow.phase.comparisons import Interval
from wideflow.phase.sentence import percent, rounded


def test_a_ratio_of_errors_in_percent():
    # 0.4 times the error is 60 % less; its ends 0.4 e^(+-0.3) lie 0.4 sinh(0.3) = 0.122 off on
    # average
    assert percent(Interval(math.log(0.4), 0.3, 5)) == "60 % ± 10 %"


def test_numbers_are_never_written_as_powers_of_ten():
    assert [rounded(v, 2) for v in (130.0, 0.0123, 7.26)] == ["130", "0.012", "7.3"]
