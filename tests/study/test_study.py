"""The driver of commands: what is finished after Ctrl-C, and how a command ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import typer

from called import call
from tutti.base.errors import ConfigError, ExitCode
from tutti.study.study import Study

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def cycles(result: int) -> int:
    return 10 * result


def test_results_are_collected_and_their_duration_is_remarked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = Study[int](tmp_path / "out", "load", cycles)

    def compute(done: Callable[[int], None]) -> str:
        done(1)
        done(2)
        return "value"

    assert study.several("loads", compute, planned=2) == ([1, 2], "value")
    assert "2 loads, 30 cycles in " in capsys.readouterr().err
    study.end(2, 2)
    assert (tmp_path / "out").is_dir()


def test_finished_results_remain_after_an_interruption(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = Study[int](tmp_path, "run", cycles)

    def compute(done: Callable[[int], None]) -> None:
        done(1)
        raise KeyboardInterrupt

    assert study.several("runs", compute, planned=3) == ([1], None)
    assert study.is_interrupted
    with pytest.raises(typer.Exit) as ended:
        study.end(1, 3)
    assert ended.value.exit_code == ExitCode.INTERRUPTED
    assert capsys.readouterr().err == "interrupted: 1 of 3 runs finished\n"


def test_an_output_folder_that_cannot_be_created_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot create the output folder"):
        Study[int](tmp_path / "file", "load", cycles)


def test_named_files_are_written_into_new_folders_and_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def write(path: Path) -> list[Path]:
        paths = [path, *(path.with_name(f"part.{rank}.et") for rank in range(3))]
        for each in paths:
            each.write_text("")
        return paths

    Study().write(tmp_path / "new" / "all.json", write)
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        f"wrote {tmp_path}/new/all.json",
        f"wrote {tmp_path}/new/part.0.et to part.2.et, 3 files",
    ]


def test_named_files_that_cannot_be_written_are_refused(tmp_path: Path) -> None:
    def write(path: Path) -> Path:
        path.write_text("")
        return path

    with pytest.raises(ConfigError, match="Is a directory"):
        Study().write(tmp_path, write)


def test_a_named_file_with_other_content_is_replaced_with_force_only(tmp_path: Path) -> None:
    line = ("convert", "ring", "t", "--to", "chakra", "--ranks", "2")
    assert call(*line, "--size", "1KiB", cwd=tmp_path).returncode == 0
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert sorted(before) == ["t.0.et", "t.1.et"]
    again = call(*line, "--size", "1KiB", cwd=tmp_path)
    assert (again.returncode, "replaced" in again.stderr) == (0, False)
    refused = call(*line[:-1], "3", "--size", "2KiB", cwd=tmp_path)
    assert refused.returncode == 2
    assert "t.0.et: the file exists, and has other content" in refused.stderr
    assert "hint: --force replaces it" in refused.stderr
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    forced = call(*line, "--size", "2KiB", "--force", cwd=tmp_path)
    assert forced.returncode == 0
    assert "the earlier content of t.0.et, t.1.et was replaced" in forced.stderr


def test_files_without_a_name_of_the_user_are_replaced_with_a_remark(tmp_path: Path) -> None:
    assert call("schedule", "draw", "ring", "--ranks", "2", cwd=tmp_path).returncode == 0
    again = call("schedule", "draw", "ring", "--ranks", "3", cwd=tmp_path)
    assert again.returncode == 0
    assert "the earlier content of schedule.svg was replaced" in again.stderr
    named = ("schedule", "draw", "ring", "--ranks", "2", "--out", "schedule.svg")
    assert call(*named, cwd=tmp_path).returncode == 2


def test_results_of_an_earlier_run_are_replaced_with_a_remark(tmp_path: Path) -> None:
    line = ("run", "ring", "--ranks", "2", "--out", "out", "--size")
    for size, text in (("8", ""), ("8", ""), ("16", "the earlier content of ranks.parquet, ")):
        done = call(*line, size, cwd=tmp_path)
        assert done.returncode == 0
        assert ("replaced" in done.stderr) == bool(text)
        assert text in done.stderr
