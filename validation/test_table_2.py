"""Table 2 of the recursive-multiplying paper: fitted to three rows, judged on the other eight."""

from __future__ import annotations

import pytest

from tutti_papers.recursive_multiplying.archer import predicted
from tutti_papers.recursive_multiplying.fitting import FITTED, HELD_BACK, errors
from tutti_papers.recursive_multiplying.measured import FEW_BLOCKS


@pytest.mark.timeout(900)
def test_unseen_rows_are_predicted_within_the_aims() -> None:
    # The aims were set before anything was fitted: minima to 20 %, their reductions to 8 points.
    # Medians aim at the trend; the bound is the error of two thirds of the true value.
    found = errors(HELD_BACK, lambda row: predicted(FITTED, row, FEW_BLOCKS))
    assert found["minima, %"] <= 20
    assert found["reductions of minima, points"] <= 8
    assert found["medians, %"] <= 34
