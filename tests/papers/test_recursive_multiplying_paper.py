"""The recursive-multiplying paper: values of its text, of the simulation, and by hand."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from tutti_papers import ExhibitResult, find_paper
from tutti_papers import command as paper
from tutti_papers.recursive_multiplying import archer, measured
from tutti_papers.recursive_multiplying.published import TABLE_1, TABLE_2, doubling

if TYPE_CHECKING:
    from pathlib import Path

    from rich.table import Table

FIGURES = (3, 4, 17, 18, 19, 20, 21, 22, 23)

# Per schedule: completion and skew at the finish in ns, by hand. A message occupies its sender for
# 100 + 8 x 0.4 = 103.2 ns, arrives 500 ns after that, and a fold takes 10 ns.
BY_HAND = {
    18: (3 * 613.2, 0),
    19: (500 + 7 * 103.2 + 10, 0),
    # Rank 4 receives last; rank 1 finishes once it has sent its result to rank 0.
    20: (3 * 613.2 + 603.2, 1000),
    # Two stages; in the first the remainder's third message, in the second the second one, is last.
    21: (2 * 510 + 4 * 103.2, 103.2),
    22: (2 * 510 + 4 * 103.2, 206.4),
    23: (3 * 613.2, 510),
}


def made(number: int, folder: Path) -> ExhibitResult:
    return find_paper("recursive-multiplying").figures[number].make(folder)


@pytest.mark.parametrize("number", FIGURES)
def test_every_figure_is_drawn_with_its_values(number: int, tmp_path: Path) -> None:
    result = made(number, tmp_path)
    assert result.frame.height > 0
    assert all(drawn.stat().st_size > 1000 for drawn in result.figures)


@pytest.mark.parametrize("number", BY_HAND)
def test_timelines_match_the_derivation(number: int, tmp_path: Path) -> None:
    shown = made(number, tmp_path).frame.row(0, named=True)
    assert (shown["completion_ns"], shown["finish_skew_ns"]) == pytest.approx(BY_HAND[number])


@pytest.mark.parametrize(
    ("number", "within"), [(3, 0.01), (4, 0.0), (17, 0.0), (21, 0.04), (22, 0.04)]
)
def test_values_of_the_text_are_reproduced(number: int, within: float, tmp_path: Path) -> None:
    claims = made(number, tmp_path).published
    assert claims
    for claim in claims:
        assert claim.computed == pytest.approx(claim.published, rel=within, abs=1e-9), claim


def test_skew_of_splitting_encloses_the_value_of_the_text(tmp_path: Path) -> None:
    issued, arrived = (claim.computed for claim in made(20, tmp_path).published)
    assert arrived == pytest.approx(603.2)
    assert arrived < 700 < issued


# --- what the paper measured ---------------------------------------------------------------------


@pytest.fixture
def few_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """One block in each allocation: enough to test that exhibits are built."""
    monkeypatch.setattr(measured, "BLOCKS", 1)
    monkeypatch.setattr(measured, "FEW_BLOCKS", 1)
    monkeypatch.setattr(measured, "SCATTERED", (4, 6, 8))
    monkeypatch.setattr(measured, "UNSEEN", measured.UNSEEN[:1])


@pytest.mark.usefixtures("few_blocks")
@pytest.mark.parametrize("number", [9, 10, 11, 12, 14, 15])
def test_every_measured_figure_is_drawn_with_its_values(number: int, tmp_path: Path) -> None:
    result = made(number, tmp_path)
    assert result.frame.height > 0
    assert result.published or result.conclusions
    assert all(drawn.stat().st_size > 1000 for drawn in result.figures)


@pytest.mark.usefixtures("few_blocks")
def test_table_2_has_every_row_and_marks_fitted_ones(tmp_path: Path) -> None:
    result = find_paper("recursive-multiplying").tables[2].make(tmp_path)
    assert result.frame["N"].to_list() == [row.ranks for row in TABLE_2]
    assert result.frame.filter(fit="yes")["N"].to_list() == [4, 8, 16]
    names = ["alpha_p", "alpha_r", "hop", "interval", "detour", "spread"]
    assert result.tables["parameters"]["parameter"].to_list() == names
    changed = result.tables["sensitivity"]["parameter"].to_list()
    assert changed == [*(name for name in names for _ in range(2)), "(as fitted)"]
    for table in result.tables.values():
        assert len(shown := paper.tables(table, "table", 80)) == 1
        assert widest_line(shown) <= 80
    shown = paper.tables(result.frame, "table 2", 80)
    assert len(shown) == 1
    assert widest_line(shown) <= 80
    words = " ".join(lines_of(shown)).split(" ")
    headings = " ".join(result.frame.columns).replace("_", " ").split(" ")
    assert set(headings) <= set(words), "no word is broken"


def lines_of(tables: list[Table]) -> list[str]:
    """The lines of tables on a terminal of unlimited width."""
    console = Console(width=1000, record=True, file=io.StringIO())
    console.print(*tables)
    return [line.rstrip() for line in console.export_text().splitlines()]


def widest_line(tables: list[Table]) -> int:
    """The width of tables in columns."""
    return max(map(len, lines_of(tables)))


def test_published_reductions_match_published_times() -> None:
    # The times have three digits, so a reduction is good to about half a point.
    for row in TABLE_2:
        times = archer.published(row)
        for which, published in zip(("minimum", "median"), row.reductions, strict=True):
            assert measured.reduction(times, which) == pytest.approx(published, abs=1.0), row


def test_recursive_doubling_matches_mpich() -> None:
    assert doubling(8) == "a2,a2,a2"
    assert doubling(6) == "c4m2,a2,a2,e4m2"
    assert doubling(96) == "c64m2,a2,a2,a2,a2,a2,a2,e64m2"


def test_models_match_the_table_in_the_notes() -> None:
    # N = 64: a8,a8 is 2 alpha_p + 14 alpha_r = 2.68 + 4.76 us.
    assert measured._model("a8,a8", "minimum") == pytest.approx(7.44)
    alpha_p, alpha_r = TABLE_1["minimum"]
    assert measured._model(doubling(6), "minimum") == pytest.approx(4 * (alpha_p + alpha_r))


def test_all_factored_schedules_are_listed() -> None:
    assert measured.factored(8) == ["a2,a2,a2", "a2,a4", "a4,a2", "a8"]
    # Ordered factorisations of 2^5, less the one that is wider than 16.
    assert len(measured.factored(32)) == 2**4 - 1


def test_start_values_reproduce_row_4_without_noise() -> None:
    import tutti

    quiet = tutti.Conditions(wait_for_sends=True)
    for name, published in (("a2,a2", 2.36), ("a4", 1.87)):
        schedule = tutti.schedule(f"recursive_multiplying:{name}", ranks=4)
        run = tutti.simulate(
            schedule, archer.START.platform(), size="8 B", datatype="int64", conditions=quiet
        )
        # The link of the node gives the cost per byte: 0.8 ns for 8 bytes in each stage.
        assert run.completion_ps / 1e6 == pytest.approx(published, abs=0.002)
