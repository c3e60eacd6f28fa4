"""The scoreboard of measured GPU clusters, from synthetic measurements."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import endpoint_page
import gpu_page
import polars as pl
import pytest
import score_gpu

ROOT = Path(__file__).parent.parent
HEAD = "nodes,bytes,algorithm,median_us\n"


def line(nodes: int, size: int, algorithm: str) -> str:
    """A machine with steps of 1 us and 90 GB/s."""
    steps = 2 * (4 * nodes - 1) if algorithm == "ring" else 4 * nodes.bit_length()
    message = size / (4 * nodes) if algorithm == "ring" else size / 8
    return f"{nodes},{size},{algorithm},{10 + steps * (1 + message / 90e3)}\n"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    runs = [(size, name) for size in (1 << 10, 1 << 20, 1 << 27) for name in ("ring", "tree")]
    rows = [line(nodes, *run) for nodes in (4, 8) for run in runs]
    (folder / "nccl_train.csv").write_text(HEAD + "".join(rows))
    requested = [f"{number},16,{size},{name}\n" for number, (size, name) in enumerate(runs)]
    questions = "question,nodes,bytes,algorithm\n" + "".join(requested)
    (folder / "nccl_questions.csv").write_text(questions)
    return folder


def test_every_question_has_a_prediction_and_an_interval(data: Path, tmp_path: Path) -> None:
    parts = score_gpu.parts_of(data)
    score_gpu.write(parts, page=tmp_path / "page.md", folder=tmp_path)
    found = pl.read_csv(tmp_path / "nccl_predictions.csv")
    assert found.columns == ["question", "predicted_us", "low_us", "high_us"]
    assert found["question"].to_list() == list(range(6))
    assert (found["low_us"] <= found["predicted_us"]).all()
    assert (found["predicted_us"] <= found["high_us"]).all()
    page = (tmp_path / "page.md").read_text()
    assert "## NCCL: ring or tree" in page
    assert "6 runs and 6 questions were predicted" in page


def test_figures_are_those_of_the_rows() -> None:
    rows = pl.DataFrame(
        {
            "run": ["a", "b", "c"],
            "measured": [1.0, 2.0, 4.0],
            "predicted": [2.0, 2.0, 4.0],
            "low": [1.5, 1.0, 3.0],
            "high": [2.5, 3.0, 5.0],
        }
    )
    choices = pl.DataFrame({"cell": ["x", "x"], "measured": [1.0, 1.5], "predicted": [3.0, 2.0]})
    found = gpu_page.figures(score_gpu.Part("nccl", rows, choices=choices))
    assert found["factor"] == 1
    assert found["worst"] == pytest.approx(2)
    assert found["inside"] == pytest.approx(2 / 3)
    assert found["winner"] == 0
    assert found["regret"] == pytest.approx(0.5)


def test_a_folder_without_measurements_is_refused(tmp_path: Path) -> None:
    script = ROOT / "validation" / "score_gpu.py"
    run = subprocess.run(
        [sys.executable, script, tmp_path], capture_output=True, text=True, check=False
    )
    assert run.returncode == 1
    assert "has none of nccl_train.csv" in run.stderr


def test_a_damaged_row_is_named(tmp_path: Path) -> None:
    (tmp_path / "nccl_train.csv").write_text(HEAD + "4,8,ring,fast\n")
    script = ROOT / "validation" / "score_gpu.py"
    run = subprocess.run(
        [sys.executable, script, tmp_path], capture_output=True, text=True, check=False
    )
    assert run.returncode == 1
    assert "line 2: median_us is not valid" in run.stderr
    assert "Traceback" not in run.stderr


def test_page_of_the_measured_endpoint_is_current() -> None:
    assert endpoint_page.text() == endpoint_page.PAGE.read_text("utf-8")


def test_captured_programs_are_near_published_steps() -> None:
    """The stored comparison of `captured_steps.py`, as the page of GPUs shows it."""
    rows = pl.read_csv(ROOT / "validation" / "gpu" / "captured_steps.csv")
    assert ((rows["ratio"] - rows["predicted"] / rows["measured"]).abs() < 1e-3).all()
    near = rows.filter(pl.col("ratio").is_between(1 / 1.15, 1.15))
    assert (near.height, rows.height) == (12, 14)
    assert near.select("model", "system").n_unique() == 4
    page = (ROOT / "docs" / "machines" / "gpus.md").read_text("utf-8")
    for row in rows.iter_rows(named=True):
        values = f"{row['measured']:,.0f} | {row['predicted']:,.0f} | {row['ratio']:.2f}"
        assert f"| {row['precision']} " in page
        assert f"| {row['container']} | {values} |" in page
