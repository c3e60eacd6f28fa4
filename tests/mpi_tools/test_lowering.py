"""Ranks that are predicted to have the code of another have the code that their ops give."""

from __future__ import annotations

import pytest

from tutti import algorithms, schedule
from tutti.mpi import lowering
from tutti.mpi.lowering import Lowering
from tutti.mpi.relative import Relations
from tutti.mpi.symmetry import Prediction


@pytest.mark.parametrize("ranks", [16, 18, 21])
def test_predicted_code_is_that_of_the_ops(ranks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for algorithm in algorithms():
        for collective in algorithm.collectives:
            if algorithm.claims(collective, ranks):
                one = schedule(algorithm.name, collective=collective, ranks=ranks)
                monkeypatch.setattr(lowering, "_MANY", ranks + 1)
                read = Lowering(one)
                monkeypatch.setattr(lowering, "_MANY", ranks)
                predicted = Lowering(one)
                assert predicted.codes == read.codes, one.name
                assert predicted.moves_chunks == read.moves_chunks
                assert predicted.writes_data == read.writes_data


@pytest.mark.parametrize(
    ("name", "collective", "ranks", "fitting"),
    [
        ("ring", "all_reduce", 18, 18),
        ("pairwise", "all_to_all", 16, 16),
        ("bruck", "all_to_all", 16, 1),
        ("binomial", "broadcast", 16, 8),  # odd ranks only receive
    ],
)
def test_only_ranks_with_the_same_relative_ops_fit(
    name: str, collective: str, ranks: int, fitting: int
) -> None:
    one = schedule(name, collective=collective, ranks=ranks)
    prediction = Prediction(one, Relations.of(one))
    assert sum(map(prediction.fits, range(ranks))) == fitting
