"""Traffic of files: `matrix(FILE)` and `trace(FILE)`, which forks of BookSim 2 add.

Both formats are those of github.com/Anmol-S314/veritx-research, `third_party/booksim2`, commit
038fa3b. BookSim 2 itself has neither.

- `matrix(FILE)`: for each source a line of weights of the destinations, as
  `tutti.networks.flit.files.matrix` reads them. Each source that has weights creates packets at
  `injection_rate`; its row selects their destinations.
- `trace(FILE)`: lines of cycle, source, class, destination and flits. The fork ignores the class.
  Packets of a source to itself are not created. Lines that start with `#` or `%` are comments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tutti.base.files import limits
from tutti.base.files.mistakes import mistake, shown
from tutti.base.files.reader import read_text
from tutti.networks.flit.files.matrix import parse_matrix
from tutti.networks.flit.traces import phases_of
from tutti.view.quantity import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.formats.booksim.traffic import BookSimInput

_HEADER = "cycle,source,destination,flits"
_COLUMNS = "cycle, source, class, destination and flits, separated by spaces"
_LAST_CYCLE = (1 << 39) - 1
REPLACED_BY_TRACE = frozenset(
    (
        "injection_process",
        "injection_rate",
        "injection_rate_uses_flits",
        "packet_size",
        "packet_size_rate",
        "class_priority",
        "sample_period",
        "warmup_periods",
    )
)
"""Keys without effect on a trace."""


class Packet(NamedTuple):
    """A line of a trace."""

    line: int
    """Its number, from 1."""
    cycle: int
    source: int
    kind: int
    """The class, which has no effect."""
    destination: int
    flits: int


def matrix_table(given: BookSimInput, argument: str) -> dict[str, Any]:
    """Returns the keys of `matrix(FILE)`, and stores the file in `given.texts`.

    Raises:
        ConfigError: The file cannot be read, is not a matrix, or its diagonal is not 0.
    """
    name, text = _text(given, "matrix", argument)
    rows = parse_matrix(text, source=name)
    own = [source for source, row in enumerate(rows) if row[source]]
    if own:
        raise mistake(
            f"node {own[0]} sends packets to itself",
            source=name,
            expected="0 on the diagonal: versions of the fork send or drop such packets",
        )
    idle = sum(not any(row) for row in rows)
    if idle:
        given.remarks.append(f"{plural(idle, 'node')} of {len(rows)} send nothing: rows of 0")
    if len({sum(row) for row in rows if any(row)}) > 1:
        given.remarks.append(
            "each node sends at `injection_rate`, as in the fork of BookSim: a row of the matrix "
            "selects destinations, and its sum has no effect"
        )
    if given.texts.setdefault(name, text) != text:
        raise given.refused("traffic", "a name per matrix", problem=f"has two files `{name}`")
    return {"matrix": name}


def trace_table(given: BookSimInput, argument: str) -> dict[str, Any]:
    """Returns the keys of `trace(FILE)`, and stores a tutti trace and its window in `given`.

    Raises:
        ConfigError: The file cannot be read, or a line is invalid; the message names the line.
    """
    if given.config.classes != 1:
        raise given.refused("classes", "1: a trace is of one class")
    name, text = _text(given, "trace", argument)
    packets = parse_trace(text, source=name)
    sent = [packet for packet in packets if packet.source != packet.destination]
    if not sent:
        raise mistake("the trace has no packets", source=name, expected="a line per packet")
    if len(sent) < len(packets):
        count = len(packets) - len(sent)
        given.remarks.append(f"{plural(count, 'packet')} from a node to itself: not sent")
    if any(packet.kind for packet in sent):
        given.remarks.append("the class of packets has no effect, as in the fork of BookSim")
    lines = [f"{one.cycle},{one.source},{one.destination},{one.flits}" for one in sent]
    file = f"{name.rpartition('.')[0] or name}.trace.csv"
    given.texts[file] = "\n".join([_HEADER, *lines]) + "\n"
    # Line 1 of the tutti trace is the header.
    given.places.update(enumerate((f"{name}:{packet.line}" for packet in sent), start=2))
    given.window.update(_window(sent))
    given.remarks.append("the measurement window has the packets of the trace, without warm-up")
    return {"trace": file}


def parse_trace(text: str, *, source: str) -> list[Packet]:
    """Reads a trace from text; `source` names it in errors.

    Raises:
        ConfigError: A line is invalid.
    """
    packets = []
    for number, line in enumerate(text.split("\n"), start=1):
        words = line.split()
        if words and not words[0].startswith(("#", "%")):
            packets.append(_packet(words, number, f"{source}:{number}"))
    return packets


def _packet(words: Sequence[str], line: int, place: str) -> Packet:
    if len(words) != len(Packet._fields) - 1:
        raise mistake(
            f"the line has {plural(len(words), 'field')}",
            source=place,
            expected=_COLUMNS,
            hint="other forks of BookSim have other columns; convert them first",
        )
    if not all(word.isascii() and word.isdigit() and len(word) <= limits.DIGITS for word in words):
        raise mistake(
            "the line has a field that is not a number",
            source=place,
            value=shown(" ".join(words)),
            expected=_COLUMNS,
        )
    packet = Packet(line, *map(int, words))
    if packet.flits < 1 or max(packet.source, packet.destination, packet.flits) >= 1 << 32:
        raise mistake(
            "a number is out of range",
            source=place,
            value=shown(" ".join(words)),
            expected="1 to 2^32 - 1 flits, and nodes of the network",
        )
    if packet.cycle > _LAST_CYCLE:
        raise mistake(
            f"cycle {packet.cycle} is too late", source=place, expected=f"at most {_LAST_CYCLE}"
        )
    return packet


def _window(packets: Sequence[Packet]) -> dict[str, int]:
    """Returns a measurement in which all packets are created, and have time to arrive."""
    last = max(packet.cycle for packet in packets)
    return phases_of(last, sum(packet.flits for packet in packets))


def _text(given: BookSimInput, pattern: str, argument: str) -> tuple[str, str]:
    """Returns name and content of the file of a pattern."""
    if not argument or any(mark in argument for mark in "{},"):
        raise given.refused("traffic", f"{pattern}(FILE)", problem="names no file")
    path = given.folder / argument
    text = read_text(path, limits.Bytes.TABLE, f"the {pattern} of `traffic`", line=limits.LINE)
    return path.name, text
