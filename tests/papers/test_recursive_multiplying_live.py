"""The live exhibits, from made-up measured blocks: 2 % above the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import tutti
from tutti.mpi.bench import BLOCKS, predict
from tutti.mpi.bench_multicast import MULTICASTS
from tutti_papers.recursive_multiplying_live import PAPER, runs

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tutti_papers import Claim

ABOVE = 1.02
ROUNDS = runs.native
"""The function that a fixture replaces."""


def blocks(
    ranks: int,
    schedules: tuple[str, ...],
    *,
    sizes: tuple[int, ...] = (8,),
    blocks: int = 3,
    each: int = 1,
    per_byte: bool = False,
) -> pl.DataFrame:
    machine = runs.distance(per_byte=per_byte).platform
    rows = []
    for size in sizes:
        for stages in schedules:
            laid_out = tutti.schedule(runs.multiplying(stages), ranks=ranks)
            model = predict(machine, laid_out, size, "int64", 1)
            row: dict[str, Any] = dict.fromkeys(BLOCKS) | {
                "collective": "all_reduce", "schedule": laid_out.name, "implementation": "schedule",
                "ranks": ranks, "size_bytes": size, "each": each, "wrong": 0, "emulated": True,
                "model_ps": model, "model": "a model",
            }  # fmt: skip
            times = [round(model * (ABOVE + place / 1000)) for place in range(blocks)]
            rows += [row | {"block": b, "time_ps": time} for b, time in enumerate(times)]
    return pl.DataFrame(rows, schema=BLOCKS, orient="row")


def native(ranks: int, schedules: tuple[str, ...], blocks: int | None = None) -> pl.DataFrame:
    """The MPI's all_reduce takes 1 us, the schedules 2 and 1.5 us; blocks slow down together."""
    own = dict.fromkeys(BLOCKS) | {
        "collective": "all_reduce", "ranks": ranks, "size_bytes": 8, "each": 10, "wrong": 0,
        "emulated": False, "crowded": ranks > 4,
    }  # fmt: skip
    names = {
        runs.multiplying(stages): time for stages, time in zip(schedules, (2, 1.5), strict=True)
    }
    rows = [
        own | {"schedule": name, "block": block, "time_ps": round(time * 10**6 * (1 + block))}
        for name, time in (names | {"": 1}).items()
        for block in range(blocks or 3)
    ]
    return pl.DataFrame(rows, schema=BLOCKS, orient="row")


def multicasts() -> pl.DataFrame:
    alpha_p, alpha_r = runs.ALPHA_P.ps, runs.ALPHA_R.ps
    row: dict[str, Any] = dict.fromkeys(MULTICASTS) | {"emulated": True, "model": "a model"}
    rows = [
        row | {
            "peers": b, "blocking": blocking, "sample": sample,
            "received_ps": (b * (alpha_p + alpha_r) if blocking else alpha_p + b * alpha_r),
        }
        for b in range(1, runs.PEERS + 1)
        for blocking in (False, True)
        for sample in range(3)
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=MULTICASTS, orient="row")


@pytest.fixture(autouse=True)
def measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "measured", blocks)
    monkeypatch.setattr(runs, "multicasts", multicasts)
    monkeypatch.setattr(runs, "native", native)
    monkeypatch.setattr(runs, "mpi", lambda: "an MPI library")
    monkeypatch.setattr("tutti_papers.recursive_multiplying_live.exhibits.SCATTERED", (4, 8, 12))


def ours(published: Sequence[Claim], quantity: str) -> float:
    (claim,) = (claim for claim in published if quantity in claim.quantity)
    return claim.computed


@pytest.mark.parametrize("number", sorted(set(PAPER.figures) - {16}))
def test_figure_states_emulated_distance(number: int, tmp_path: Path) -> None:
    found = PAPER.figures[number].make(tmp_path)
    assert [path.name for path in found.figures] == [f"figure_{number}.svg"]
    assert found.frame.height > 0
    assert any("distance is emulated" in note for note in found.notes)


def test_real_ranks_compare_schedules_with_the_native_all_reduce(tmp_path: Path) -> None:
    found = PAPER.figures[16].make(tmp_path)
    assert [path.name for path in found.figures] == ["figure_16.svg"]
    assert found.frame["ranks"].unique().to_list() == [4, 8]
    assert [one.holds for one in found.conclusions] == [True, False, False]
    assert "by +25 % on 4 ranks" in found.conclusions[0].why
    assert "by -50 % on 4 ranks" in found.conclusions[1].why
    assert any("without emulated distance" in note for note in found.notes)
    assert "More ranks than cores: N = 8." in found.notes[0]
    assert "quartiles +25 and +25 %" in found.conclusions[0].why, "pairs do not scatter"
    assert found.frame["upper_quartile_us"][0] > found.frame["median_us"][0]


def test_blocks_on_real_ranks_are_an_option(tmp_path: Path) -> None:
    assert PAPER.with_blocks is not None
    more = PAPER.with_blocks(5)
    assert more.figures[16].make(tmp_path).frame["blocks"].to_list() == [5] * 6
    changed = [label for label, one in more.exhibits() if dict(PAPER.exhibits())[label] != one]
    assert changed == ["figure 16"]


def test_rounds_on_real_ranks_stop_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each round takes 10 s; without a number of blocks, none starts after 15 s."""
    now = [0.0]

    def measure(*_: Any) -> pl.DataFrame:
        now[0] += 10
        return pl.DataFrame({"block": list(range(runs.ROUND)) * 3})

    monkeypatch.setattr(runs, "measure", measure)
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    found = ROUNDS(4, ("a2,a2", "a4"))
    assert sorted(found["block"]) == sorted(3 * [*range(2 * runs.ROUND)])
    assert ROUNDS(4, ("a2,a2", "a4"), 5)["block"].max() == 4


def test_table_1_finds_the_parameters_that_are_emulated(tmp_path: Path) -> None:
    found = PAPER.tables[1].make(tmp_path)
    assert found.frame["error_percent"].abs().max() == pytest.approx(0, abs=1e-6)
    assert ours(found.published, "minimum") == pytest.approx(4)


def test_table_2_compares_measured_times_with_the_model(tmp_path: Path) -> None:
    found = PAPER.tables[2].make(tmp_path)
    assert found.frame["N"].to_list() == [4, 6, 8, 12, 16, 24, 32, 48, 64]
    assert found.frame["rm_over_model"].to_list() == pytest.approx([1.021] * 9)
    assert ours(found.published, "largest difference") == pytest.approx(2.1, abs=0.01)
    assert ours(found.published, "share of pairs") == 1
    # N = 8: 60 and 48 ms by the model
    eight = found.frame.filter(pl.col("N") == 8).row(0, named=True)
    assert (eight["rd_model_ms"], eight["rm_model_ms"]) == (60, 48)
    assert eight["model_reduction"] == 20


def test_table_2_detects_reductions_in_another_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slower(ranks: int, schedules: tuple[str, ...], **options: Any) -> pl.DataFrame:
        factor = 1.5 if ranks == 6 and schedules == ("c4m2,a2,a2,e4m2", "a6") else 1
        late = pl.when(pl.col("schedule").str.ends_with(":a6")).then(factor).otherwise(1)
        time = (pl.col("time_ps") * late).cast(pl.Int64)
        return blocks(ranks, schedules, **options).with_columns(time_ps=time)

    monkeypatch.setattr(runs, "measured", slower)
    found = PAPER.tables[2].make(tmp_path)
    assert ours(found.published, "share of pairs") < 1
    assert ours(found.published, "largest difference") > 50
