"""The argument of `tutti run` and `tutti compare`: an experiment, an algorithm or a schedule."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tutti import _core
from tutti.base.files.mistakes import did_you_mean, mistake
from tutti.base.files.reader import read_toml
from tutti.collectives.files.definition import DEFAULTS
from tutti.platforms.files.presets import platform_names
from tutti.platforms.library import is_library
from tutti.schedules.mpi_names import is_alias
from tutti.schedules.text import SCHEDULE_SUFFIX, read_schedule
from tutti.study.console import remark

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.schedules.ir import Schedule

_EXPECTED = "an experiment file (TOML), or an algorithm"


def tables_of(
    file: Path | str | None, algorithms: Sequence[str]
) -> tuple[Path | None, dict[str, Any], dict[str, Any]]:
    """Returns the path and the keys of an experiment; without a path, those of `DEFAULTS`.

    The last value has the keys that schedule files state.

    Args:
        file: An experiment file, or as text also an algorithm or a schedule file, or None.
        algorithms: The algorithms of options. Without an experiment file, the collective and the
            rank counts are those of the schedule files among them.

    Raises:
        ConfigError: The file cannot be read, or is not an experiment file.
    """
    if file is None:
        stated = _of_schedules(algorithms)
        return None, DEFAULTS | stated, stated
    if isinstance(file, Path):
        return file, _read(file), {}
    path, name = Path(file), file
    if path.suffix == SCHEDULE_SUFFIX and path.is_file():
        stated = _of_schedules([name, *algorithms])
        return None, DEFAULTS | stated | {"algorithms": [str(path.resolve())]}, stated
    base = name.partition(":")[0]
    if (base in _algorithm_names() or is_alias(base) or is_library(base)) and not path.exists():
        stated = _of_schedules(algorithms)
        return None, DEFAULTS | stated | {"algorithms": [name]}, stated
    return path, _read(path), {}


def _of_schedules(algorithms: Sequence[str]) -> dict[str, Any]:
    """Returns the collective, root and rank counts of the schedule files among algorithms.

    Raises:
        ConfigError: A file cannot be read, or two files have different collectives or roots.
    """
    files = [name for name in algorithms if name.endswith(SCHEDULE_SUFFIX)]
    if not files:
        return {}
    read = [read_schedule(Path(file)) for file in files]
    first = _collective(read[0])
    for file, schedule in zip(files, read, strict=True):
        if _collective(schedule) != first:
            raise mistake(
                f"is {_called(schedule)}, but {files[0]} is {_called(read[0])}",
                source=f"-a {file}",
                expected="schedules of one collective and root",
            )
    ranks = sorted({schedule.ranks for schedule in read})
    counts = ", ".join(map(str, ranks))
    remark(f"of {', '.join(files)}: collective {_called(read[0])}; ranks {counts}")
    return first | {"ranks": ranks}


def _collective(schedule: Schedule) -> dict[str, Any]:
    named: dict[str, Any] = {"collective": schedule.collective}
    return named if schedule.root is None else named | {"root": schedule.root}


def _called(schedule: Schedule) -> str:
    root = "" if schedule.root is None else f" with root {schedule.root}"
    return f"{schedule.collective}{root}"


def _read(path: Path) -> dict[str, Any]:
    """Reads an experiment file.

    Raises:
        ConfigError: The file is missing or not TOML.
    """
    return read_toml(path, _EXPECTED, hint="" if path.is_file() else _hint(path))


def _hint(path: Path) -> str:
    """Returns a hint for a path that is missing."""
    from tutti.workloads import models

    name = str(path)
    if name in platform_names():
        return f"{path} is a platform: set `platform` in the file, or --platform {path}"
    if name.partition(":")[0] in {entry.name for entry in models()}:
        return f"{path} is a model: `tutti train list` lists models, `tutti train -h` commands"
    if name in _core.collectives():
        return f"{path} is a collective: use --collective {path}"
    known = did_you_mean(name, _algorithm_names())
    return known or "`tutti schema experiment` prints the keys of an experiment file"


def _algorithm_names() -> list[str]:
    return [entry.name for entry in _core.algorithms()]
