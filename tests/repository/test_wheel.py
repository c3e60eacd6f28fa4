"""The wheel: installed into empty virtual environments, it compares algorithms."""

from __future__ import annotations

import functools
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import ZipFile

import pytest

from pages import blocks, commands, missing_lines, outputs
from tutti.base.files.extras import EXTRAS

if TYPE_CHECKING:
    from collections.abc import Callable

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
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a wheel of this checkout; TUTTI_WHEEL names one that exists."""
    if given := os.environ.get("TUTTI_WHEEL"):
        return Path(given)
    folder = tmp_path_factory.mktemp("wheel")
    built = run("maturin", "build", "--quiet", "--release", "--out", folder)
    assert built.returncode == 0, built.stderr
    (found,) = folder.glob("*.whl")
    assert "abi3" in found.name
    assert found.stat().st_size < MOST_BYTES
    names = {name.partition(".dist-info/")[2] for name in ZipFile(found).namelist()}
    assert {"licenses/LICENSE", "licenses/THIRD_PARTY_LICENSES"} <= names
    return found


def install(wheel: Path, folder: Path, extras: str = "") -> Path:
    """Installs a wheel into an empty virtual environment; returns its command."""
    python = folder / "bin" / "python"
    package = f"{wheel}[{extras}]" if extras else wheel
    for command in (
        ("uv", "venv", "--quiet", "--python", sys.executable, folder),
        ("uv", "pip", "install", "--quiet", "--python", python, "--constraints",
         ROOT / "requirements.txt", package),
    ):  # fmt: skip
        done = run(*command)
        assert done.returncode == 0, done.stderr
    return python.parent / "tutti"


@pytest.fixture(scope="module")
def with_extras(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Returns a function that installs the wheel with extras, each combination once."""
    return functools.cache(lambda extras: install(wheel, tmp_path_factory.mktemp("e"), extras))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the command of a wheel without extras."""
    return install(wheel, tmp_path_factory.mktemp("empty"))


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


RESULTS = {
    "mpi": ("out/calibrate/cluster.toml", "out/calibrate/library.csv", "out/compare/report.html"),
    "ml-systems": ("out/compare/report.html",),
    "noc": ("out/noc/report.html", "out/noc/latency.svg", "out/transpose/report.html"),
}
"""The files that the commands of each page in docs/start write, among others."""

PIP = re.compile(r"^pip install .*\[([a-z,]+)\]\"$", re.MULTILINE)


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("page", RESULTS)
def test_first_path_of_a_user(
    page: str, with_extras: Callable[[str], Path], tmp_path: Path
) -> None:
    """From the installation to the last command of a page, as a new user follows it."""
    text = (ROOT / "docs" / "start" / f"{page}.md").read_text("utf-8")
    (extras,) = PIP.findall(text)
    tutti = with_extras(extras)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for block in blocks(text, "console"):
        shown = outputs(block)
        for line, command in commands(block):
            done = run(tutti, *shlex.split(command)[1:], cwd=tmp_path)
            assert done.returncode == 0, done.stderr
            missing = missing_lines(shown[line], done.stdout + done.stderr)
            assert not missing, f"{page}.md:{line}: {done.stdout}"
    assert [name for name in RESULTS[page] if not (tmp_path / name).is_file()] == []


def test_every_extra_has_its_modules() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    assert set(EXTRAS.values()) == set(extras) - {"all", "dev"}
