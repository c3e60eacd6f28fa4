"""`tutti calibrate`: what it prints, writes and refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tutti.cli import app
from tutti.platforms import platform

EXAMPLE = Path(__file__).parents[3] / "examples" / "19_calibrate_and_tune"
FILES = [str(EXAMPLE / "osu_latency.txt"), str(EXAMPLE / "osu_bw.txt")]
OUTPUTS = Path(__file__).parents[1] / "interop" / "outputs"


def calibrate(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["calibrate", *arguments])


def test_the_example_is_found_again(tmp_path: Path) -> None:
    done = calibrate(*FILES, "--name", "made", "--out", str(tmp_path), "--machine", "made up")
    assert done.exit_code == 0, done.output
    assert max(map(len, done.stdout.splitlines())) <= 80
    model = platform(tmp_path / "made.toml").model
    assert model.kind == "pipelining_postal"
    for name, true in {"alpha_p": 1_340_000, "alpha_r": 340_000}.items():
        assert getattr(model, name).ps == pytest.approx(true, rel=0.02)
    text = (tmp_path / "made.toml").read_text()
    assert "# Machine: made up." in text
    assert "[models.loggp]" not in text
    assert {path.name for path in tmp_path.iterdir()} == {
        "made.toml", "calibration.parquet", "calibration.csv", "fit.svg"
    }  # fmt: skip


def test_collectives_need_their_algorithm(tmp_path: Path) -> None:
    file = str(OUTPUTS / "nccl.txt")
    done = calibrate(file, "--out", str(tmp_path))
    assert done.exit_code == 2
    assert "not used: 4 times of all_reduce: --algorithm says" in done.output
    done = calibrate(file, "-a", "ring", "--model", "postal", "--out", str(tmp_path))
    assert done.exit_code == 0, done.output
    done = calibrate(str(OUTPUTS / "osu_full.txt"), "-a", "ring", "--out", str(tmp_path))
    assert done.exit_code == 2
    assert "--ranks N" in done.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "nothing to fit to"),
        ([FILES[0], "--model", "loggp"], "what was measured does not tell loggp"),
        ([FILES[0], "--model", "loggps"], "did you mean `loggp`?"),
        (["nowhere.txt"], "no such file"),
        (["nowhere.parquet"], "cannot be read"),
        ([FILES[0], "-b", "2M"], "nothing that was measured"),
    ],
)
def test_mistakes(arguments: list[str], said: str, tmp_path: Path) -> None:
    done = calibrate(*arguments, "--out", str(tmp_path))
    assert done.exit_code == 2, done.output
    assert said in done.output
