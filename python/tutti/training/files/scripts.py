"""Captures of scripts, `script:FILE`: made once for each set of arguments, and stored.

A stored capture is used while the script, the modules that it imports from its folder, PyTorch and
tutti are those that made it.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
import sys
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from tutti.base.errors import TuttiError
from tutti.base.files.mistakes import mistake, shown
from tutti.study.console import remark
from tutti.training.capture.capturing import capture_script
from tutti.training.capture.files import is_captured, write_step

if TYPE_CHECKING:
    from tutti.training.files.tables import CaptureTable

__all__ = ["arguments_of", "captured_script"]

SOURCES = "sources.json"
_CHOSEN = 16
"""Digits of the name of a folder."""


def captured_script(script: Path, table: CaptureTable, source: str) -> Path:
    """Returns the folder of the captured step of a script; captures it unless it is stored.

    Args:
        script: The Python file.
        table: The number of ranks, the arguments of the script, and where captures are stored.
        source: The file of the training step, for messages.

    Raises:
        ConfigError: PyTorch is not installed, there is no such script, or a rank is not of the job.
        CaptureError: The script cannot be captured.
    """
    if not script.is_file():
        raise mistake("there is no such file", source=source, key="model", value=shown(str(script)),
                      hint="paths are relative to the file of the training step")  # fmt: skip
    words = arguments_of(table)
    folder = Path(table.store) / _name(script, words, table)
    if not _is_current(folder):
        try:
            _capture(folder, script, words, table)
        except TuttiError as error:
            raise error.reworded(f"{source}: {error.problem}") from None
    return folder


def arguments_of(table: CaptureTable) -> list[str]:
    """Returns the arguments of the script: `--name value`, a flag for true, nothing for false."""
    words = list(table.words)
    for name, value in table.arguments.items():
        flag = f"--{name}" if len(name) > 1 else f"-{name}"
        if value is True:
            words.append(flag)
        elif value is not False:
            words += [flag, str(value)]
    return words


def _name(script: Path, words: list[str], table: CaptureTable) -> str:
    """Returns the name of a folder: the script, and a hash of what selects the capture."""
    chosen = [str(script.resolve()), words, table.world_size, list(table.ranks), table.step,
              table.values, table.gpus_per_node]  # fmt: skip
    text = json.dumps(chosen, ensure_ascii=True)
    return f"{script.stem}-{hashlib.sha256(text.encode()).hexdigest()[:_CHOSEN]}"


def _capture(folder: Path, script: Path, words: list[str], table: CaptureTable) -> None:
    """Captures a script and stores the step, complete or not at all."""
    step = capture_script(script, words, table.world_size, ranks=table.ranks, step=table.step,
                          values=table.values, node=table.gpus_per_node)  # fmt: skip
    partial = folder.with_name(f"{folder.name}.{os.getpid()}")
    write_step(partial, step)
    imported = sorted({script.resolve(), *_imported(script.resolve().parent)})
    files = {str(path): _hash(path) for path in imported}
    text = json.dumps({**_versions(), "files": files}, indent=1) + "\n"
    (partial / SOURCES).write_text(text, encoding="utf-8")
    shutil.rmtree(folder, ignore_errors=True)
    try:
        partial.replace(folder)
    except OSError:
        # Another process has stored the same capture in between.
        shutil.rmtree(partial, ignore_errors=True)
    remark(f"captured {step.script} in {step.seconds:,.1f} s, stored in {folder}")


def _imported(folder: Path) -> list[Path]:
    """Returns the files of imported modules in a folder, without installed packages."""
    files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    paths = [Path(file) for file in files if isinstance(file, str) and file.endswith(".py")]
    return [path for path in paths if path.is_relative_to(folder) and path.is_file()
            and "site-packages" not in path.parts]  # fmt: skip


def _is_current(folder: Path) -> bool:
    """Returns whether a stored capture is of the current script and versions."""
    if not is_captured(folder):
        return False
    try:
        stored = json.loads((folder / SOURCES).read_text(encoding="utf-8"))
        files = dict(stored.pop("files"))
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return False
    return bool(stored == _versions()) and all(
        Path(file).is_file() and _hash(Path(file)) == known for file, known in files.items()
    )


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@functools.cache
def _versions() -> dict[str, str]:
    """Returns the version of PyTorch, and a hash of the code that captures."""
    try:
        torch = metadata.version("torch")
    except metadata.PackageNotFoundError:
        torch = ""
    code = hashlib.sha256()
    for path in sorted((Path(__file__).parents[1] / "capture").glob("*.py")):
        code.update(path.read_bytes())
    return {"torch": torch, "tutti": code.hexdigest()}
