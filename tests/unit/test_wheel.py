"""The wheel: installed without extras into an empty virtual environment, it compares algorithms."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest

from tutti.files.extras import EXTRAS

ROOT = Path(__file__).parents[2]
MOST_BYTES = 15_000_000


def run(*command: str | Path, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Runs a command without the variables that lead Python to this checkout."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    kept["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}"
    kept["PYO3_PYTHON"] = sys.executable  # as the Makefile has it: no second build
    kept["VIRTUAL_ENV"] = str(Path(sys.executable).parents[1])
    return subprocess.run(command, cwd=cwd, env=kept, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the command of a wheel without extras in an empty virtual environment."""
    folder = tmp_path_factory.mktemp("wheel")
    built = run("maturin", "build", "--quiet", "--release", "--out", folder)
    assert built.returncode == 0, built.stderr
    (wheel,) = folder.glob("*.whl")
    assert "abi3" in wheel.name
    assert wheel.stat().st_size < MOST_BYTES
    names = {name.partition(".dist-info/")[2] for name in ZipFile(wheel).namelist()}
    assert {"licenses/LICENSE", "licenses/THIRD_PARTY_LICENSES"} <= names
    python = folder / "empty" / "bin" / "python"
    for command in (
        ("uv", "venv", "--quiet", "--python", sys.executable, folder / "empty"),
        ("uv", "pip", "install", "--quiet", "--python", python, "--constraints",
         ROOT / "requirements.txt", wheel),
    ):  # fmt: skip
        done = run(*command)
        assert done.returncode == 0, done.stderr
    return python.parent / "tutti"


def test_wheel_answers_the_question_of_the_demo(installed: Path, tmp_path: Path) -> None:
    file = tmp_path / "experiment.toml"
    demo = (ROOT / "examples/01_which_all_reduce/experiment.toml").read_text(encoding="utf-8")
    file.write_text(demo, encoding="utf-8")
    options = ("--ranks", "16", "--algorithm", "ring", "--algorithm", "recursive_doubling")
    done = run(installed, "compare", file, *options, "--out", tmp_path / "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "recursive_doubling" in done.stdout
    assert "pip install 'tutti[reports]'" in done.stderr
    assert (tmp_path / "out" / "results.parquet").is_file()


def test_missing_extra_is_named_in_one_line(installed: Path, tmp_path: Path) -> None:
    done = run(installed, "schedule", "draw", "ring", "--ranks", "4", cwd=tmp_path)
    assert done.returncode == 2
    message = "the Python package `matplotlib` is not installed: requires"
    assert done.stderr.splitlines()[0] == f"error: {message} `pip install 'tutti[reports]'`"


def test_every_extra_has_its_modules() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    assert set(EXTRAS.values()) == set(extras) - {"all", "dev"}
