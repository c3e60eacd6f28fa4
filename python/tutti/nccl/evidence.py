"""Reads what a user has of an NCCL job: nccl-tests results, debug logs, Inspector output.

A file may have several of them: NCCL writes its debug records between the rows of nccl-tests.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import polars as pl

from tutti.base.files import limits
from tutti.base.files.log_files import read_log
from tutti.base.files.mistakes import mistake, shown
from tutti.base.files.reader import check_frame, read_frame
from tutti.formats.benchmarks import nccl_tests
from tutti.formats.benchmarks.prefixes import without_prefixes
from tutti.formats.measurements import Measurements, parse_log
from tutti.formats.measurements.logs import WRONG
from tutti.formats.measurements.schema import POINT_TO_POINT, concatenated, merging
from tutti.formats.nccl.debug import DebugLog, is_debug_log, parse_debug_log
from tutti.formats.nccl.inspector import is_inspector, parse_inspector
from tutti.formats.nccl.per_process import parse_per_process
from tutti.nccl.tuner_csv import ALGORITHMS, PROTOCOLS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

_EXPECTED: Final = (
    "output of nccl-tests (text or JSON), a log with NCCL_DEBUG=INFO, output of the NCCL "
    "Inspector, or a CSV file with the columns bytes, out_of_place_us and in_place_us"
)
_MOST_REASONS: Final = 3
_COLUMNS: Final = {"bytes": "positive", "out_of_place_us": "number?", "in_place_us": "number?"}
_ECHOED: Final = re.compile(r"\bNCCL_(ALGO|PROTO)=([\w^,;:]{1,60})")
_JSON_DEVICE: Final = re.compile(r'"device_info": ?"([^"\\]{1,80})"')


class Selected(NamedTuple):
    """An algorithm of NCCL, and a protocol if it is known."""

    algorithm: str
    protocol: str | None = None

    def __str__(self) -> str:
        """Returns ``algorithm/protocol``."""
        return self.algorithm if self.protocol is None else f"{self.algorithm}/{self.protocol}"


class Row(NamedTuple):
    """A measured time; `forced` is the choice of the user, None if NCCL chose."""

    file: str
    line: int
    collective: str
    nodes: int | None
    ranks: int
    size_bytes: int
    in_place: bool
    time_us: float
    forced: Selected | None


@dataclass(frozen=True)
class Given:
    """What files do not state.

    Attributes:
        ranks: The number of ranks of rows that do not state it.
        nodes: The number of nodes, likewise.
        collective: The collective, likewise.
        forced: The choices that a user forced, by file; "" for all files that state none.
    """

    ranks: int | None = None
    nodes: int | None = None
    collective: str | None = None
    forced: Mapping[str, Selected] = field(default_factory=dict)


@dataclass
class Evidence:
    """All that the files state.

    Attributes:
        rows: Measured times.
        logs: Debug logs by file.
        operations: Operations of the Inspector.
        gpus: Names of GPUs in headings of nccl-tests.
        wrong: Files, lines and reasons of wrong results.
        omitted: Files, lines and reasons of what was left out.
        measured: What the reader of logs returned, for conflicts and reasons.
        unused: Options that the files contradict, with the contradiction.
    """

    rows: list[Row] = field(default_factory=list)
    logs: dict[str, DebugLog] = field(default_factory=dict)
    operations: list[pl.DataFrame] = field(default_factory=list)
    gpus: set[str] = field(default_factory=set)
    wrong: list[tuple[str, int, str]] = field(default_factory=list)
    omitted: list[tuple[str, int, str]] = field(default_factory=list)
    measured: list[Measurements] = field(default_factory=list)
    unused: list[tuple[str, str]] = field(default_factory=list)

    @property
    def why(self) -> str:
        """The reasons of rows of nccl-tests that were left out; empty without any."""
        reasons = dict.fromkeys(reason for _, _, reason in self.omitted)
        return concatenated(self.measured).why() or "; ".join([*reasons][:_MOST_REASONS])

    @property
    def remarks(self) -> tuple[str, ...]:
        """How many rows were merged, also of several files or datatypes, if any were."""
        cases = {(one.collective, one.nodes, one.ranks, one.size_bytes, one.in_place, one.forced)
                 for one in self.rows}  # fmt: skip
        count = concatenated(self.measured).merged + len(self.rows) - len(cases)
        return (merging(count),) if count else ()


def selected(text: str, source: str) -> Selected:
    """Returns the choice that a text such as ``ring/ll128`` names, in any case.

    Raises:
        ConfigError: The algorithm or the protocol is unknown.
    """
    algorithm, _, protocol = text.lower().partition("/")
    for name, known in ((algorithm, ALGORITHMS), (protocol, ("", *PROTOCOLS))):
        if name not in known:
            raise mistake("unknown choice", source=source, value=shown(text),
                          expected=f"ALGORITHM/PROTOCOL: {', '.join(ALGORITHMS)} and "
                          f"{', '.join(PROTOCOLS)}")  # fmt: skip
    return Selected(algorithm, protocol or None)


def read_evidence(paths: Iterable[str | Path], given: Given) -> Evidence:
    """Reads files, each of any kind.

    Raises:
        ConfigError: A file cannot be read or is of no known kind, the rank count is missing, or a
            file states another one than the user.
    """
    found = Evidence()
    for path in dict.fromkeys(Path(path) for path in paths):
        if path.suffix == ".csv":
            _add_table(found, path, given)
            continue
        text = read_log(path, _EXPECTED, limits.Bytes.TABLE)
        _add_text(found, text, str(path), given)
    measured = concatenated(found.measured)
    measured.require_agreement()
    found.unused = list(_unused(measured, given))
    return found


def _unused(measured: Measurements, given: Given) -> Iterator[tuple[str, str]]:
    """Yields options that no file needs, since the files state something else."""
    if text := measured.without(given.collective):
        yield "--collective", text
    stated = measured.rows["nodes"].drop_nulls().unique().sort().to_list()
    if given.nodes is not None and stated and given.nodes not in stated:
        listed = ", ".join(map(str, stated))
        yield "--nodes", f"{given.nodes} is used only where no nodes are stated; stated: {listed}"


def _add_text(found: Evidence, text: str, source: str, given: Given) -> None:
    if is_inspector(text):
        inspected = parse_inspector(text, source=source)
        found.operations.append(inspected.rows)
        found.omitted += [(source, *one) for one in inspected.omitted]
        return
    lines = without_prefixes(text)
    tests = nccl_tests.is_json(text) or nccl_tests.recognises(lines)
    records = is_debug_log(text)
    if not tests and not records:
        first = next((line for line in lines if line.strip()), "")
        raise mistake("unknown kind of file", source=source, value=shown(first.strip()),
                      expected=_EXPECTED)  # fmt: skip
    if records:
        log = found.logs[source] = parse_debug_log(text, source=source)
        found.omitted += [(source, *one) for one in log.omitted]
    if tests:
        _add_results(found, text, lines, source, given)


def _add_results(
    found: Evidence, text: str, lines: Sequence[str], source: str, given: Given
) -> None:
    log = found.logs.get(source)
    measured = parse_log(text, source=source, ranks=given.ranks, collective=given.collective)
    found.measured.append(measured)
    for one in measured.omitted.iter_rows(named=True):
        to = found.wrong if one["reason"].startswith(WRONG) else found.omitted
        to.append((source, one["line"], one["reason"]))
    if nccl_tests.is_json(text):
        found.gpus |= set(_JSON_DEVICE.findall(text))
        found.operations.append(parse_per_process(text, source=source))
    devices = (nccl_tests.device_of(line) for line in lines)
    found.gpus |= {device.name for device in devices if device is not None and device.name}
    forced = _forced(text, lines, log, source, given)
    for one in measured.rows.iter_rows(named=True):
        nodes = one["nodes"] or given.nodes or (log.nodes.get(one["ranks"]) if log else None)
        if reason := _why_unused(one):
            found.omitted.append((source, one["line"], reason))
            continue
        found.rows.append(
            Row(source, one["line"], one["collective"], nodes, one["ranks"], one["size_bytes"],
                bool(one["in_place"]), one["time_us"], forced)
        )  # fmt: skip


def _why_unused(row: Mapping[str, Any]) -> str:
    """Returns why a row of nccl-tests is of no use; empty if it is of use."""
    if row["ranks"] is None:
        return "no number of ranks: use --ranks N"
    if row["collective"] in POINT_TO_POINT:
        return f"{row['collective']} is not a collective"
    return "" if row["size_bytes"] else f"{row['collective']} of 0 B"


def _forced(
    text: str, lines: Sequence[str], log: DebugLog | None, source: str, given: Given
) -> Selected | None:
    """Returns the choice that the user forced: given, or stated by NCCL or an echoed command."""
    if source in given.forced or "" in given.forced:
        return given.forced.get(source) or given.forced[""]
    runs = sum(nccl_tests.is_heading(line) for line in lines)
    if runs != 1 and not nccl_tests.is_json(text):
        return None  # several runs may have different choices
    values = dict(_ECHOED.findall(text))
    if log is not None:
        for name in ("ALGO", "PROTO"):
            values[name] = log.environment.get(f"NCCL_{name}", values.get(name, ""))
    algorithm, protocol = (values.get(name, "").lower() for name in ("ALGO", "PROTO"))
    if algorithm not in ALGORITHMS:
        return None
    return Selected(algorithm, protocol if protocol in PROTOCOLS else None)


# --- CSV ------------------------------------------------------------------------------------------


def _add_table(found: Evidence, path: Path, given: Given) -> None:
    """Adds a table of sizes and times, which states neither ranks nor the collective."""
    source = str(path)
    read = read_frame(path, _EXPECTED, {name: pl.Float64 for name in _COLUMNS if name != "bytes"})
    frame = check_frame(read, _COLUMNS, source=source, expected=_EXPECTED)
    if given.ranks is None or given.collective is None:
        raise mistake(
            "states neither the number of ranks nor the collective",
            source=source,
            expected="both as options",
            hint="for example --ranks 16 --nodes 2 --collective all_reduce",
        )
    forced = given.forced.get(source) or given.forced.get("")
    for line, one in enumerate(frame.iter_rows(named=True), start=2):
        for in_place, column in ((False, "out_of_place_us"), (True, "in_place_us")):
            if one[column]:
                found.rows.append(
                    Row(source, line, given.collective, given.nodes, given.ranks, one["bytes"],
                        in_place, one[column], forced)
                )  # fmt: skip


def parse_choices(written: Sequence[str], files: Iterable[Path]) -> dict[str, Selected]:
    """Returns the forced choices by file of options ``[FILE=]ALGORITHM/PROTOCOL``.

    Raises:
        ConfigError: A choice is unknown, or names a file that is not given.
    """
    known = {str(path) for path in files}
    found = {}
    for text in written:
        path, _, choice = text.rpartition("=")
        if path and path not in known:
            raise mistake("names a file that is not given", source="--choice", value=shown(text),
                          expected=f"one of {', '.join(sorted(known))}")  # fmt: skip
        found[path] = selected(choice, "--choice")
    return found
