"""The scoreboard of measured machines, from the committed sample."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import machines_page
import machines_worst
import polars as pl
import pytest
import score_machines

from tutti.measured.predict.model import usable
from tutti.measured.predict.score import GROUP

ROOT = Path(__file__).parent.parent
COMMAND = "make machines DATA=path/to/measured"

pytestmark = pytest.mark.timeout(300)


def small() -> tuple[pl.DataFrame, pl.DataFrame]:
    """Two machines and two collectives of the sample, which is faster."""
    rows, questions = score_machines.sampled()
    kept = pl.col("system").is_in(["leonardo", "lumi"]) & pl.col("collective").is_in(
        ["all_reduce", "reduce_scatter"]
    )
    return rows.filter(kept), questions.filter(kept)


@pytest.fixture(scope="module")
def board() -> score_machines.Scoreboard:
    return score_machines.scoreboard(*small())


def written(board: score_machines.Scoreboard, folder: Path) -> dict[str, bytes]:
    score_machines.write(board, page=folder / "README.md", folder=folder, command=COMMAND)
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_output_does_not_depend_on_the_order_of_rows(
    board: score_machines.Scoreboard, tmp_path: Path
) -> None:
    rows, questions = small()
    again = score_machines.scoreboard(
        rows.sample(fraction=1.0, shuffle=True, seed=1),
        questions.sample(fraction=1.0, shuffle=True, seed=2),
    )
    first, second = written(board, tmp_path / "a"), written(again, tmp_path / "b")
    assert list(first) == [
        "README.md",
        "calibration/leonardo.csv",
        "calibration/lumi.csv",
        "predictions.csv",
    ]
    del first["README.md"], second["README.md"]  # the worst of equal errors depends on the order
    assert first == second


def test_predictions_have_an_interval_per_question(
    board: score_machines.Scoreboard, tmp_path: Path
) -> None:
    written(board, tmp_path)
    found = pl.read_csv(tmp_path / "predictions.csv")
    columns = ["question", "predicted_us", "low_us", "high_us", "choice_us", "chosen"]
    assert found.columns == columns
    _, questions = score_machines.sampled()
    groups = questions.join(found, on="question").group_by(GROUP)
    fastest = pl.col("choice_us").filter("chosen") == pl.col("choice_us").min()
    assert groups.agg(fastest.alias("right"))["right"].to_list() == [[True]] * len(groups.len())
    assert found["question"].is_sorted()
    assert found["question"].is_unique().all()
    assert (found["low_us"] < found["predicted_us"]).all()
    assert (found["predicted_us"] < found["high_us"]).all()
    targets = set(board.questions["question"]) - set(found["question"])
    lacking = board.questions.filter(pl.col("question").is_in(list(targets)))
    assert lacking["reason"].null_count() == 0


def test_reasons_name_what_cannot_be_predicted() -> None:
    rows, questions = small()
    odd = questions.head(1)
    names = ["default_ompi", "sorcery_ompi", "binary_ompi"]
    targets = pl.concat([odd] * 3).with_columns(
        pl.Series("library_algorithm", names),
        pl.Series("collective", ["all_reduce", "all_reduce", "broadcast"]),
        pl.Series("question", [0, 1, 2]),
    )
    board = score_machines.scoreboard(rows, targets)
    reasons = board.questions["reason"].to_list()
    assert reasons[:2] == [score_machines.CHOICE, score_machines.UNKNOWN]
    assert reasons[2] in {None, score_machines.NO_FORM}


def test_page_reports_every_part(board: score_machines.Scoreboard) -> None:
    page = machines_page.page(board, command=COMMAND)
    headings = re.findall(r"^## (.*)$", page, re.MULTILINE)
    assert headings == [
        "Aims and results",
        "Machines and collectives",
        "Comparison with carrying over",
        "Model selection",
        "Choices under uncertainty",
        "Worst groups",
        "Questions",
        "Calibrated parameters",
        "Definitions",
        "Reproduction",
        "Sources",
    ]
    assert max(map(len, page.splitlines())) <= 100
    assert COMMAND in page
    assert "MIT" in page


def test_worst_groups_name_the_term_that_failed(board: score_machines.Scoreboard) -> None:
    found = machines_worst.worst(board.rows, board.validated)
    assert {"leonardo"} <= set(found["system"]) <= {"leonardo", "lumi"}
    for _, some in found.group_by("system"):
        assert some.height <= machines_worst.SHOWN
        assert some["regret"].is_sorted(descending=True)
        assert (some["regret"] > 0).all()
    assert set(found["term"]) <= set(machines_worst.TERMS)
    assert not found.select(GROUP).is_duplicated().any()
    either = (pl.col("failed") == pl.col("chosen")) | (pl.col("failed") == pl.col("fastest"))
    assert found.select(either.all()).item()


def test_calibration_files_state_what_is_determined(board: score_machines.Scoreboard) -> None:
    for table in score_machines.parameters(board.model).values():
        assert (table["low"] <= table["value"]).all()
        assert (table["value"] <= table["high"]).all()
        assert table["determined"].any()


def test_sample_has_every_machine_and_its_licence() -> None:
    rows, _ = score_machines.sampled()
    assert rows.height <= 400
    assert rows.select("system", "nodes").n_unique() >= 10
    assert usable(rows).height > 200
    readme = (ROOT / "validation" / "machines" / "README.md").read_text("utf-8")
    assert "HLC-Lab/pico" in readme
    assert "The above copyright notice and this permission notice shall be included" in readme


def test_committed_predictions_and_page_belong_together() -> None:
    found = pl.read_csv(ROOT / "validation" / "machines" / "predictions.csv")
    page = (ROOT / "docs" / "machines" / "README.md").read_text("utf-8")
    assert f"has {found.height:,} of the" in page


def test_missing_folder_is_an_error(tmp_path: Path) -> None:
    program = [sys.executable, str(ROOT / "validation" / "score_machines.py"), str(tmp_path / "no")]
    found = subprocess.run(program, check=False, capture_output=True, text=True)
    assert found.returncode == 1
    assert "train.csv" in found.stderr
    assert "Traceback" not in found.stderr
