"""Unhandled exceptions end in one message, exit code 70 and a file for the developers."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

import pytest

from tutti.base.errors import TuttiError, capped
from tutti.cli import main
from tutti.cli.internal import VARIABLE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class PanicError(BaseException):
    """Like PyO3's PanicException, which is a BaseException."""


def raising(error: BaseException) -> Callable[..., None]:
    def verb(**_: object) -> None:
        raise error

    return verb


@pytest.mark.parametrize(
    "error",
    [PanicError("index out of bounds"), RecursionError(), MemoryError(), ValueError("a\nb")],
    ids=lambda error: type(error).__name__,
)
def test_unexpected_exceptions_are_reported(
    error: BaseException,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(sys.modules["tutti.cli.app"], "app", raising(error))
    monkeypatch.setattr(sys, "argv", ["tutti", "compare", "my file.toml"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 70
    output = capsys.readouterr().err
    assert output.startswith(
        f"error: internal error in `tutti compare 'my file.toml'`: {type(error).__name__}"
    )
    assert "please report it" in output
    assert "Traceback" not in output
    (file,) = tmp_path.iterdir()
    assert str(file) in output
    text = file.read_text("utf-8")
    assert "in verb" in text
    assert re.match(r"tutti \S+, commit .*, Python 3", text)


def test_traceback_is_shown_on_request(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    monkeypatch.setattr(sys.modules["tutti.cli.app"], "app", raising(KeyError("x")))
    monkeypatch.setenv(VARIABLE, "1")
    with pytest.raises(SystemExit):
        main()
    printed = capsys.readouterr().err
    assert "Traceback" in printed
    assert f"the output of {VARIABLE}=1" in printed


@pytest.mark.parametrize(
    "error",
    [
        KeyboardInterrupt(),
        ValueError('Error building "model" validator:\n  KeyboardInterrupt: '),
    ],
    ids=["Python", "pydantic"],
)
def test_interrupt_is_no_internal_error(
    error: BaseException, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.modules["tutti.cli.app"], "app", raising(error))
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_exit_is_no_internal_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["tutti.cli.app"], "app", raising(SystemExit(3)))
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 3


def test_long_values_in_errors_are_shortened() -> None:
    output = str(TuttiError(f"`{'x' * 10_000}` is unknown: expected one of {'a ' * 10_000}"))
    assert len(output) < 1_100
    assert output.startswith("`xxx")
    assert "...xxx" in output.replace("x" * 50, "xxx")
    lines = capped("\n".join("line" for _ in range(10_000)))
    assert len(lines) <= 4_003
    assert capped("short") == "short"


def test_full_disk_is_no_internal_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", str(tmp_path / "results.parquet"))

    monkeypatch.setattr("tutti.cli.platforms.platform_names", full)
    monkeypatch.setattr(sys, "argv", ["tutti", "platforms"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "results.parquet: cannot be used: No space left on device" in capsys.readouterr().err
