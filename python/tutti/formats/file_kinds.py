"""Kinds of files, and the verbs that read them: for files that are given to another verb.

The kinds are the formats of `tutti convert`, logs of benchmarks and of NCCL, and files of tutti.
Only an error needs them.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

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


_MEASUREMENTS: Final = ("calibrate", "advise")
_ASTRA_SIM: Final = "train from-astrasim"
_CONTENTS: Final = {
    "schedule": FileKind(
        "a schedule",
        ("convert",),
        "`tutti convert {file} {stem}.schedule`, then use `{stem}.schedule`",
    ),
    "trace": FileKind("a trace", ("convert", "trace"), "`tutti trace run {file}` simulates it"),
    "topology": FileKind(
        "a topology",
        ("convert",),
        "`tutti convert {file} {stem}.json`, then set `file` in [platform.topology]",
        is_referred_to=True,
    ),
    "messages": FileKind("messages", ("convert",), "`tutti convert --list` lists the formats"),
}
_OF_FORMATS: Final = {
    "schedule": FileKind(
        "a schedule",
        ("convert", "schedule", "run", "compare", "mpi", "explore", "tune", "train", "moe"),
        "`tutti run {file}` simulates it, `tutti schedule verify {file}` verifies it",
    ),
    "chakra": FileKind(
        "a trace",
        ("convert", "trace", _ASTRA_SIM),
        '`tutti trace run {file}`, or `tutti train run` with model = "chakra:{prefix}" in the file',
    ),
    **dict.fromkeys(
        ("graphml", "node-link"),
        FileKind(
            "a topology",
            ("convert",),
            "set `file` in [platform.topology] of an experiment or a platform",
            is_referred_to=True,
        ),
    ),
    "nccl-topology-xml": FileKind(
        "a topology",
        ("convert", "nccl topology"),
        "`tutti nccl topology {file}` shows it, and writes its platform",
        is_referred_to=True,
    ),
}
"""Formats that other verbs than `convert` read, too."""

_OTHERS: Final = (
    (
        re.compile(rb"\ATUTTIPLN"),
        FileKind("is a plan", ("mpi",), "`tutti mpi show {file}` shows it"),
    ),
    (
        re.compile(rb"\APAR1"),
        FileKind(
            "is a table of results",
            ("plot", *_MEASUREMENTS),
            "`tutti plot {file}` plots results of `tutti compare` and `tutti sweep`",
        ),
    ),
    (
        re.compile(rb"# nThread \d+|#\s+size\s+count\s+type\b"),
        FileKind(
            "is output of nccl-tests",
            (*_MEASUREMENTS, "nccl doctor"),
            "`tutti nccl doctor {file}` diagnoses it, `tutti calibrate {file}` fits a model",
        ),
    ),
    (
        re.compile(rb"# OSU [A-Z]"),
        FileKind(
            "is output of OSU micro-benchmarks",
            _MEASUREMENTS,
            "`tutti calibrate {file}` fits a model, `tutti advise {file}` chooses algorithms",
        ),
    ),
    (
        re.compile(rb"# Benchmarking \S"),
        FileKind(
            "is output of IMB",
            _MEASUREMENTS,
            "`tutti calibrate {file}` fits a model, `tutti advise {file}` chooses algorithms",
        ),
    ),
    (
        re.compile(rb"NCCL INFO "),
        FileKind("is a log of NCCL_DEBUG", ("nccl doctor",), "`tutti nccl doctor {file}` reads it"),
    ),
    (
        re.compile(rb"(?m)(?:^|;)\s*(?:topology|routing_function|num_vcs|traffic)\s*=[^;\n]+;"),
        FileKind(
            "is a configuration of BookSim",
            ("noc from-booksim",),
            "`tutti noc from-booksim {file}` runs it",
        ),
    ),
    (
        re.compile(rb"\A\s*(?:MICRO|DATA|MODEL|HYBRID_[A-Z_]+)\b[^\n]*\n\s*\d+\s*\n"),
        FileKind(
            "is a text workload of ASTRA-sim",
            (_ASTRA_SIM,),
            "`tutti train from-astrasim {file} --network FILE --system FILE` runs it",
        ),
    ),
    (
        re.compile(rb"(?ms)^topology:.*^npus_count:|^npus_count:.*^topology:"),
        FileKind(
            "is a network of ASTRA-sim",
            (_ASTRA_SIM,),
            "`tutti train from-astrasim WORKLOAD --network {file} --system FILE` uses it",
        ),
    ),
    (
        re.compile(rb'"(?:scheduling-policy|all-reduce-implementation)"\s*:'),
        FileKind(
            "is a system of ASTRA-sim",
            (_ASTRA_SIM,),
            "`tutti train from-astrasim WORKLOAD --network FILE --system {file}` uses it",
        ),
    ),
    (
        re.compile(rb"\A[^\n]*\bcollective\b[^\n]*\b(?:vector_bytes|median_us)\b"),
        FileKind(
            "is a table of measurements",
            _MEASUREMENTS,
            "`tutti advise {file}` chooses algorithms, `tutti calibrate {file}` fits a model",
        ),
    ),
)
"""Files that `tutti convert` does not read, by their first bytes."""
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
