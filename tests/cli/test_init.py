"""`tutti init`, and completion."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from called import call

if TYPE_CHECKING:
    from pathlib import Path


def test_written_experiment_runs(tmp_path: Path) -> None:
    done = call("init", "mine", "--platform", "dgx_h100", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "mine/experiment.toml").read_text().startswith("#:schema ./experiment.")
    assert (tmp_path / "mine/experiment.schema.json").is_file()
    options = ("--ranks", "8", "-e", "4KiB", "--no-report")
    done = call("compare", "mine/experiment.toml", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "all_reduce on dgx_h100" in done.stdout
    assert call("init", "mine", "--platform", "dgx_h100", cwd=tmp_path).returncode == 0
    again = call("init", "mine", cwd=tmp_path)
    assert again.returncode == 2
    assert "experiment.toml: the file exists, and has other content" in again.stderr
    assert "dgx_h100" in (tmp_path / "mine/experiment.toml").read_text()
    assert call("init", "mine", "--force", cwd=tmp_path).returncode == 0
    assert "loggp_cluster" in (tmp_path / "mine/experiment.toml").read_text()


def test_unknown_platform_writes_nothing(tmp_path: Path) -> None:
    done = call("init", "--platform", "dgx_h10", cwd=tmp_path)
    assert done.returncode == 2
    assert "dgx_h100" in done.stderr
    assert not list(tmp_path.iterdir())


def test_shell_completes_commands_and_options() -> None:
    def completed(words: str, index: int) -> list[str]:
        variables = {"COMP_WORDS": words, "COMP_CWORD": str(index)}
        environment = {**os.environ, "_TUTTI_COMPLETE": "complete_bash", **variables}
        program = "import sys; sys.argv = ['tutti']; from tutti.cli import main; main()"
        command = (sys.executable, "-c", program)
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        return done.stdout.split()

    assert completed("tutti compar", 1) == ["compare"]
    assert completed("tutti compare --pl", 2) == ["--platform"]
