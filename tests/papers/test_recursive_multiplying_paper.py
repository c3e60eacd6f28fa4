"""The recursive-multiplying paper: values of its text, of the simulation, and by hand."""

from __future__ import annotations

import io
import math
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

import tutti
from tutti_papers import ExhibitResult, find_paper
from tutti_papers import command as paper
from tutti_papers.recursive_multiplying import (
    archer,
    conclusions,
    fitting,
    measured,
    multicasts,
    schedules,
    simulated,
    sizes,
)
from tutti_papers.recursive_multiplying.archer import Archer
from tutti_papers.recursive_multiplying.published import (
    TABLE_1,
    TABLE_2,
    doubling,
    modelled,
    reduction,
    times_of,
)

if TYPE_CHECKING:
    from pathlib import Path

    from rich.table import Table

    from tutti_papers.recursive_multiplying.published import Table2Row

FIGURES = (3, 4, 17, 18, 19, 20, 21, 22, 23)

# Per schedule: completion and skew at the finish in ns, by hand. A message occupies its sender for
# 100 + 8 x 0.4 = 103.2 ns, arrives 500 ns after that, and a fold takes 10 ns.
BY_HAND = {
    18: (3 * 613.2, 0),
    19: (500 + 7 * 103.2 + 10, 0),
    # Rank 4 receives last; rank 6 finishes a message earlier, as it sends no result.
    20: (3 * 613.2 + 603.2, 603.2),
    # Two stages; in the first the remainder's third message, in the second the second one, is last.
    # Ranks that send no second message in the last stage finish one message earlier.
    21: (2 * 510 + 4 * 103.2, 103.2),
    22: (2 * 510 + 4 * 103.2, 103.2),
    # All ranks wait for a last message; two of them also reduce it: 10 ns.
    23: (3 * 613.2, 10),
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


@pytest.mark.parametrize(("number", "within"), [(3, 0.01), (4, 0.0), (17, 0.0), (21, 0.04)])
def test_values_of_the_text_are_reproduced(number: int, within: float, tmp_path: Path) -> None:
    claims = made(number, tmp_path).published
    assert claims
    for claim in claims:
        assert claim.computed == pytest.approx(claim.published, rel=within, abs=1e-9), claim


def test_no_reading_of_the_simulated_machine_meets_all_values() -> None:
    published = [one.published for n in (20, 21, 22) for one in simulated.SIMULATED[n].claims]
    met = []
    for row in simulated.readings().drop("receiver", "finish").rows():
        pairs = zip(row, published, strict=True)
        met.append(sum(abs(ours / theirs - 1) <= 0.15 for ours, theirs in pairs))
    assert met == [4, 4, 4, 2]


def test_readings_of_the_simulated_machine_match_the_derivation() -> None:
    rows = {(row["receiver"], row["finish"]): row for row in simulated.readings().to_dicts()}
    assert len(rows) == 4
    skews = {
        case: next(value for name, value in row.items() if name.startswith("figure_20"))
        for case, row in rows.items()
    }
    # A message takes 603.2 ns, and 100 ns more if its receiver pays; LogGP counts 7 gaps, not 8.
    assert skews["free", "put arrived"] == pytest.approx(603.2)
    assert skews["pays 100 ns", "put arrived"] == pytest.approx(702.8)
    assert skews["free", "put issued"] == pytest.approx(1000)


# --- what the paper measured ---------------------------------------------------------------------


@pytest.fixture
def few_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """One block in each of four allocations: enough to test that exhibits are built."""
    for module in (archer, measured, schedules, sizes):
        monkeypatch.setattr(module, "BLOCKS", 1)
    for module in (archer, multicasts, sizes):
        monkeypatch.setattr(module, "ALLOCATIONS", 4)
    monkeypatch.setattr(measured, "FEW_BLOCKS", 1)
    monkeypatch.setattr(schedules, "FEW_BLOCKS", 1)
    monkeypatch.setattr(schedules, "SCATTERED", (4, 6, 8))
    monkeypatch.setattr(schedules, "BLOCK_SIZES", (1, 2, 10))
    monkeypatch.setattr(sizes, "FINE", sizes.ELEMENTS)
    monkeypatch.setattr(sizes, "RATES", sizes.RATES[:1])
    monkeypatch.setattr(measured, "HELD_BACK", fitting.HELD_BACK[:1])
    monkeypatch.setattr(measured, "FITS", {"exponential": fitting.EXPONENTIAL})
    monkeypatch.setattr(fitting, "JITTERS", fitting.JITTERS[:1])


@pytest.mark.usefixtures("few_blocks")
@pytest.mark.parametrize("number", [8, 9, 10, 11, 12, 13, 14, 15, 16])
def test_every_measured_figure_is_drawn_with_its_values(number: int, tmp_path: Path) -> None:
    result = made(number, tmp_path)
    assert result.frame.height > 0
    assert result.published or result.conclusions
    assert all(one.why for one in result.conclusions)
    assert all(drawn.stat().st_size > 1000 for drawn in result.figures)


@pytest.mark.usefixtures("few_blocks")
def test_table_2_has_every_row_and_marks_fitted_ones(tmp_path: Path) -> None:
    result = find_paper("recursive-multiplying").tables[2].make(tmp_path)
    assert result.frame["N"].to_list() == [row.ranks for row in TABLE_2]
    assert result.frame.filter(fit="yes")["N"].to_list() == [4, 8, 16]
    names = ["alpha_p", "alpha_r", "hop", "interval", "detour", "spread", "shape"]
    assert result.tables["parameters"]["parameter"].to_list() == names
    names = names if fitting.FITTED.shape else names[:-1]
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
        times = times_of(row)
        for which, published in zip(("minimum", "median"), row.reductions, strict=True):
            assert reduction(times, which) == pytest.approx(published, abs=1.0), row


def test_recursive_doubling_matches_mpich() -> None:
    assert doubling(8) == "a2,a2,a2"
    assert doubling(6) == "c4m2,a2,a2,e4m2"
    assert doubling(96) == "c64m2,a2,a2,a2,a2,a2,a2,e64m2"


def test_models_match_the_table_in_the_notes() -> None:
    # N = 64: a8,a8 is 2 alpha_p + 14 alpha_r = 2.68 + 4.76 us.
    assert modelled("a8,a8", 1.34, 0.34) == pytest.approx(7.44)
    alpha_p, alpha_r = TABLE_1["minimum"]
    assert modelled(doubling(6), alpha_p, alpha_r) == pytest.approx(4 * (alpha_p + alpha_r))


def test_all_factored_schedules_are_listed() -> None:
    assert schedules.factored(8) == ["a2,a2,a2", "a2,a4", "a4,a2", "a8"]
    # Ordered factorisations of 2^5, less the one that is wider than 16.
    assert len(schedules.factored(32)) == 2**4 - 1


def test_start_values_reproduce_row_4_without_noise() -> None:
    quiet = tutti.Conditions(wait_for_sends=True)
    for name, published in (("a2,a2", 2.36), ("a4", 1.87)):
        schedule = tutti.schedule(f"recursive_multiplying:{name}", ranks=4)
        run = tutti.simulate(
            schedule, fitting.START.platform(), size="8 B", datatype="int64", conditions=quiet
        )
        # The link of the node gives the cost per byte: 0.8 ns for 8 bytes in each stage.
        assert run.completion_ps / 1e6 == pytest.approx(published, abs=0.002)


def test_duration_of_a_detour_has_the_stated_mean() -> None:
    machine = Archer(1, 1, 1, 30, detour=4, spread=0, shape=2)
    # A Pareto distribution has the mean least x shape / (shape - 1).
    assert str(machine.duration) == "pareto(2 us, 2.0)"
    assert str(fitting.START.duration) == "exponential(5 us)"


def test_fit_returns_to_the_parameters_that_made_the_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The misfit is replaced by a distance in one parameter."""
    monkeypatch.setattr(fitting, "misfit", lambda machine, _blocks: abs(machine.hop - 0.2))
    found = fitting.calibrate(fitting.START)
    assert found.hop == pytest.approx(0.2, rel=0.02)
    assert (found.alpha_p, found.shape) == (fitting.START.alpha_p, None)


def test_errors_and_agreement_are_those_of_the_published_times() -> None:
    rows = fitting.HELD_BACK
    assert len(rows) == 8
    assert set(fitting.errors(rows, times_of).values()) == {0}
    assert fitting.agreeing(rows, times_of) == 32

    def twice_the_medians(row: Table2Row) -> dict[str, float]:
        return {n: t * (2 if n.endswith("median") else 1.1) for n, t in times_of(row).items()}

    off = fitting.errors(rows, twice_the_medians)
    assert off["minima, %"] == pytest.approx(10)
    assert off["medians, %"] == pytest.approx(100)
    assert off["reductions of medians, points"] == pytest.approx(0, abs=1e-9)
    assert fitting.agreeing(rows, twice_the_medians) == 16


# --- conclusions: the published values support them ---------------------------------------------


def test_published_times_support_the_conclusions_on_scaling() -> None:
    found = {row.ranks: times_of(row) | {"rd_lower_quartile": row.median[1]} for row in TABLE_2}
    assert [one.statement for one in conclusions.of_scaling(found) if not one.holds] == []
    for times in found.values():
        times["rm_median"] = times["rm_minimum"] = 1.2 * times["rd_median"]
    failed = [one for one in conclusions.of_scaling(found) if not one.holds]
    assert "recursive multiplying reduces times by 8 to 40 %" in {one.statement for one in failed}
    assert all("would need" in one.why for one in failed if "reduces" in one.statement)


def test_published_times_support_the_conclusions_on_the_model() -> None:
    minima, medians = (
        {
            row.ranks: times_of(row)[f"rm_{which}"] / modelled(row.schedule, *TABLE_1[which]) - 1
            for row in TABLE_2
        }
        for which in ("minimum", "median")
    )
    assert all(one.holds for one in conclusions.of_differences(minima, medians))
    flat = dict.fromkeys(medians, 1.0) | {4: 2.0}
    assert not any(one.holds for one in conclusions.of_differences(flat, flat))


def test_conclusions_on_sizes_name_the_fastest_schedules() -> None:
    minima = {("a2,a2,a2", 1): 5.0, ("a2,a4", 1): 4.0, ("a2,a2,a2", 512): 9.0, ("a2,a4", 512): 8.0}
    best, equivalent = conclusions.of_eight_ranks(minima, minima)
    assert best.holds
    assert equivalent.holds
    best, _ = conclusions.of_eight_ranks(minima | {("a8", 1): 3.0}, minima)
    assert "1 elements (a8)" in best.why
    times = {("a2,a2", 1): 1.0, ("a4", 1): 2.0, ("a2,a2", 512): 9.0, ("a4", 512): 8.0}
    assert all(one.holds for one in conclusions.of_64_ranks(times))
    small, *_ = conclusions.of_64_ranks(times | {("a4", 1): 0.5})
    assert not small.holds
    assert "alpha_p below alpha_r" in small.why


def test_onset_is_the_first_size_that_takes_longer() -> None:
    times = {("a2", 1): 100.0, ("a2", 8): 104.0, ("a2", 16): 106.0}
    assert sizes.onset(times, "a2") == 16
    assert math.isnan(sizes.onset(times, "a2", 0.1))


def test_conclusions_on_real_ranks_compare_the_native_all_reduce() -> None:
    def near(ratio: float) -> conclusions.Quartiles:
        return conclusions.Quartiles(ratio - 0.1, ratio, ratio + 0.1)

    ratios = {
        4: {"rm/rd": near(0.8), "rm/own": near(1.14), "own/rd": near(0.7)},
        8: {"rm/rd": near(0.95), "rm/own": near(0.85), "own/rd": near(0.95)},
    }
    faster, native, same = conclusions.of_native(ratios)
    assert faster.why.endswith("Not at N = 8"), "not in three of four pairs"
    assert "by +20 % on 4 ranks (quartiles +10 and +30 %)" in faster.why
    assert not native.holds
    assert "by -14 % on 4 ranks" in native.why
    assert "0.70 times on 4 ranks (0.60 to 0.80)" in same.why
    assert not same.holds
    assert faster.holds is False
