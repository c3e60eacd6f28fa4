"""Kinds of files, and the verbs that read them: for files that are given to another verb.

The kinds are the formats of `tutti convert`, logs of benchmarks and of NCCL, and files of tutti.
Only an error needs them.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tutti.base.bundled import bundled
from tutti.base.errors import ConfigError
from tutti.base.files.kinds import kind_of_tables
from tutti.base.files.mistakes import mistake
from tutti.formats.formats import head, recognised

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.base.errors import TuttiError
    from tutti.formats.formats import Format


class FileKind(NamedTuple):
    """A kind of file.

    Attributes:
        what: What the file is, after its name.
        verbs: The verbs that read it.
        hint: What to do with it.
        is_referred_to: Whether options of other verbs name such files.
    """

    what: str
    verbs: tuple[str, ...]
    hint: str
    is_referred_to: bool = False


def _kind(table: dict[str, Any]) -> FileKind:
    return FileKind(**{**table, "verbs": tuple(table["verbs"])})


_TABLES: Final = bundled("formats/file_kinds.toml")
_CONTENTS: Final = {name: _kind(table) for name, table in _TABLES["content"].items()}
_OF_FORMATS: Final = {name: _kind(table) for name, table in _TABLES["format"].items()}
_OTHERS: Final = [(re.compile(one.pop("start").encode()), _kind(one)) for one in _TABLES["other"]]
_READ_TOML: Final = (
    *("run", "compare", "search", "sweep", "explore", "noc", "coherence", "train", "moe", "tune"),
    *("platforms", "energy", "bypass", "init", "schema", "mpi", "paper", "workload", "glossary"),
)
"""Verbs whose own checks distinguish TOML files."""


def kind_of_file(path: Path) -> FileKind | None:
    """Returns the kind of a file, with its hint; None if it is unknown or cannot be read."""
    if not path.is_file():
        return None
    try:
        start = head(path)
        kind = (
            _of_toml(path)
            if path.suffix == ".toml"
            else _of_start(start) or _of_format(path, start)
        )
    except ConfigError:
        return None
    if kind is None:
        return None
    prefix = re.sub(r"\.[0-9]+$", "", path.stem)
    return kind._replace(hint=kind.hint.format(file=path, stem=path.stem, prefix=prefix))


def _of_toml(path: Path) -> FileKind | None:
    try:
        kind = kind_of_tables(tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return None
    if kind is None:
        return None
    return FileKind(f"looks like {kind.what}", _READ_TOML, kind.verb)


def _of_start(start: bytes) -> FileKind | None:
    return next((kind for pattern, kind in _OTHERS if pattern.search(start)), None)


def _of_format(path: Path, start: bytes) -> FileKind | None:
    found: Format = recognised(path, start, option="--from")
    kind = _OF_FORMATS.get(found.name) or _CONTENTS[found.content]
    return kind._replace(what=f"has the format {found.name}, which holds {kind.what}")


_A_PLATFORM = "looks like a platform"


def misplaced(error: TuttiError, words: Sequence[str]) -> ConfigError | None:
    """Returns the error for a file that another verb reads, or None.

    Args:
        error: An error of a verb.
        words: The command line.
    """
    if not isinstance(error, ConfigError):
        return None
    number = next((at for at, word in enumerate(words) if _names(error, word)), None)
    if not number:
        return None
    verb = " ".join(word for word in words[: min(number, 2)] if not word.startswith("-"))
    kind = kind_of_file(Path(words[number]))
    if kind is None or any(f"{verb} ".startswith(f"{each} ") for each in kind.verbs):
        return None
    option = words[number - 1]
    if kind.is_referred_to and option.startswith("-") and option not in {"-p", "--platform"}:
        return None
    expected = str(error.fields.get("expected", ""))
    if option in {"-p", "--platform"}:
        if kind.what == _A_PLATFORM:  # in its place, but with a mistake
            return None
        expected = "a platform: its name, a path that ends in .toml, or a topology such as ring:8"
    elif expected.startswith(("lines such as", "--from")):  # of a file of the right kind
        expected = f"a file that `tutti {verb}` reads"
    return mistake(kind.what, source=words[number], expected=expected, hint=kind.hint)


def _names(error: ConfigError, word: str) -> bool:
    """Returns whether an error is about a file of the command line."""
    source, path = str(error.fields.get("source", "")), Path(word)
    if any(source == name or source.startswith((f"{name}, line", f"{name}:"))
           for name in (word, str(path))):  # fmt: skip
        return True
    if "." not in word or not path.is_file():
        return False
    return any(f"`{name}`" in error.problem for name in (word, path.resolve()))
