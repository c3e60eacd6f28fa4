"""Files of NCCL's example tuner plugin (``nccl_tuner.conf``).

A line is a rule: ``collective,minBytes,maxBytes,algorithm,protocol,channels,nNodes,nRanks``, and
optionally ``numPipeOps,regBuff``. The plugin applies the first rule that matches and that NCCL does
not exclude, by setting its cost to 0. It reads files without any check: an unknown collective is
all_reduce, an unknown algorithm ring, an unknown protocol simple, and a line with fewer fields is
skipped. The reader refuses all of these.

**Channels.** The plugin sets the number of channels to 1 before it searches, and NCCL then uses one
channel: also for operations that no rule matches, and for rules whose channels are -1. Rules
therefore need channels, and a file should match every size of a collective that the job uses.

Source: ``plugins/tuner/example/plugin.c`` and ``ncclGetAlgoInfo`` in ``src/enqueue.cc`` of NCCL
2.30.7.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tutti.base.files import limits
from tutti.base.files.limits import parse_count
from tutti.base.files.mistakes import did_you_mean, mistake, shown
from tutti.base.files.reader import read_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

COLLECTIVES: Final = {
    "broadcast": "broadcast",
    "reduce": "reduce",
    "all_gather": "allgather",
    "reduce_scatter": "reducescatter",
    "all_reduce": "allreduce",
}
"""Names of the plugin by those of tutti, in the order of NCCL's numbers."""
ALGORITHMS: Final = (
    "tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat",
)  # fmt: skip
"""Names of the algorithms, in the order of NCCL's numbers."""
PROTOCOLS: Final = ("ll", "ll128", "simple")
"""Names of the protocols, in the order of NCCL's numbers."""
ANY: Final = -1
"""Matches any number of nodes, ranks or grouped operations, and any registration."""
NO_LIMIT: Final = 2**64 - 1
"""The largest size of a rule."""
_FIELDS: Final = (
    "collective", "minBytes", "maxBytes", "algorithm", "protocol", "channels", "nNodes", "nRanks",
    "numPipeOps", "regBuff",
)  # fmt: skip
_REQUIRED: Final = 8
_LINE: Final = 254
"""Characters of a line without its end: the plugin reads lines into 256 bytes."""
_MOST: Final = 2**31 - 1
_EXPECTED: Final = "a file of NCCL's example tuner plugin"
_HEADER: Final = f"# {','.join(_FIELDS)}"


@dataclass(frozen=True, kw_only=True)
class TunerRule:
    """A choice for a range of sizes.

    Attributes:
        collective: A collective of `COLLECTIVES`, in tutti's words.
        first_bytes: The smallest size; sizes are those of nccl-tests.
        last_bytes: The largest size, itself included.
        algorithm: One of `ALGORITHMS`.
        protocol: One of `PROTOCOLS`.
        channels: The number of channels; `ANY` is one channel, see above.
        nodes: The number of nodes of the communicator, or `ANY`.
        ranks: The number of ranks of the communicator, or `ANY`.
        grouped: The number of operations in a group (``numPipeOps``), or `ANY`.
        registered: 1 for registered buffers, 0 for others, or `ANY`.
    """

    collective: str
    first_bytes: int = 0
    last_bytes: int = NO_LIMIT
    algorithm: str
    protocol: str
    channels: int
    nodes: int = ANY
    ranks: int = ANY
    grouped: int = ANY
    registered: int = ANY

    @property
    def line(self) -> str:
        """The line of the file; the optional fields only if they restrict the rule."""
        fields = [
            COLLECTIVES[self.collective], self.first_bytes, self.last_bytes, self.algorithm,
            self.protocol, self.channels, self.nodes, self.ranks, self.grouped, self.registered,
        ]  # fmt: skip
        used = len(fields) if self.registered != ANY else 9 if self.grouped != ANY else _REQUIRED
        return ",".join(map(str, fields[:used]))

    def matches(self, operation: Operation) -> bool:
        """Returns whether the plugin considers the rule for an operation."""
        return (
            self.collective == operation.collective
            and self.first_bytes <= operation.size_bytes <= self.last_bytes
            and self.nodes in {ANY, operation.nodes}
            and self.ranks in {ANY, operation.ranks}
            and self.grouped in {ANY, operation.grouped}
            and self.registered in {ANY, int(operation.registered)}
        )

    def _hides(self, other: TunerRule) -> bool:
        """Returns whether every operation that matches the other rule matches this one."""
        mine = (self.nodes, self.ranks, self.grouped, self.registered)
        theirs = (other.nodes, other.ranks, other.grouped, other.registered)
        return (
            self.collective == other.collective
            and self.first_bytes <= other.first_bytes
            and other.last_bytes <= self.last_bytes
            and all(a in {ANY, b} for a, b in zip(mine, theirs, strict=True))
            and (self.algorithm, self.protocol) == (other.algorithm, other.protocol)
        )


@dataclass(frozen=True, kw_only=True)
class Operation:
    """An operation for which NCCL calls the plugin."""

    collective: str
    size_bytes: int
    nodes: int
    ranks: int
    grouped: int = 1
    registered: bool = False


def find_rule(
    rules: Sequence[TunerRule],
    operation: Operation,
    excluded: Iterable[tuple[str, str]] = (),
) -> TunerRule | None:
    """Returns the rule that the plugin applies; None if NCCL's own choice stays, on one channel.

    Args:
        rules: The rules, in the order of the file.
        operation: The operation.
        excluded: Pairs of algorithm and protocol that NCCL excludes for it (cost -1).
    """
    refused = set(excluded)
    return next(
        (
            rule
            for rule in rules
            if rule.matches(operation) and (rule.algorithm, rule.protocol) not in refused
        ),
        None,
    )


# --- writing --------------------------------------------------------------------------------------


def tuner_csv(rules: Sequence[TunerRule], *, notes: Sequence[str] = ()) -> str:
    """Returns the text of a file.

    Args:
        rules: The rules; the first that matches is applied.
        notes: Lines of comments, without ``#``.

    Raises:
        ConfigError: A rule is invalid or can never apply, or a line is too long.
    """
    for place, rule in enumerate(rules, start=1):
        source = f"rule {place}"
        _check_rule(rule, source)
        for other, earlier in enumerate(rules[: place - 1], start=1):
            if earlier._hides(rule):
                problem = f"can never apply: rule {other} matches all of its operations"
                raise mistake(
                    problem, source=source, value=shown(rule.line), expected="other sizes"
                )
    lines = [*(f"# {note}" for note in notes), _HEADER, *(rule.line for rule in rules)]
    for number, line in enumerate(lines, start=1):
        _check_line(line, number, "tuner file")
    return "\n".join(lines) + "\n"


def write_tuner_csv(
    rules: Sequence[TunerRule], path: str | Path, *, notes: Sequence[str] = ()
) -> Path:
    """Writes a file, as :func:`tuner_csv`; use it with ``NCCL_TUNER_CONFIG_FILE``."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(tuner_csv(rules, notes=notes), encoding="utf-8")
    return path


def _check_rule(rule: TunerRule, source: str) -> None:
    known = {
        "collective": (rule.collective, COLLECTIVES),
        "algorithm": (rule.algorithm, ALGORITHMS),
        "protocol": (rule.protocol, PROTOCOLS),
    }
    for key, (value, names) in known.items():
        _check_name(value, tuple(names), source, key)
    if not 0 <= rule.first_bytes <= rule.last_bytes <= NO_LIMIT:
        value = f"{rule.first_bytes} to {rule.last_bytes}"
        raise mistake("invalid range of sizes", source=source, value=value,
                      expected="0 to 2^64 - 1, the smaller size first")  # fmt: skip
    least = {"channels": 1, "nodes": 1, "ranks": 1, "grouped": 1, "registered": 0}
    for key, first in least.items():
        value = getattr(rule, key)
        last = 1 if key == "registered" else _MOST
        if value != ANY and not first <= value <= last:
            raise mistake("invalid number", source=source, key=key, value=str(value),
                          expected=f"{first} to {last}, or -1 for any")  # fmt: skip


def _check_name(value: str, names: Sequence[str], source: str, key: str) -> None:
    if value not in names:
        hint = did_you_mean(value, names)
        expected = f"one of {', '.join(names)}"
        raise mistake("unknown name", source=source, key=key, value=shown(value),
                      expected=expected, hint=hint)  # fmt: skip


def _check_line(line: str, number: int, source: str) -> None:
    if len(line.encode()) > _LINE:
        raise mistake(
            f"the line has {len(line.encode())} bytes, and the plugin divides it",
            source=f"{source}, line {number}",
            expected=f"at most {_LINE} bytes",
        )


# --- reading --------------------------------------------------------------------------------------


def read_tuner_csv(path: str | Path) -> tuple[TunerRule, ...]:
    """Reads a file.

    Raises:
        ConfigError: The file cannot be read, or the plugin would read a line otherwise than
            written; the message has file, line, and what was expected.
    """
    text = read_text(Path(path), limits.Bytes.CONFIG, _EXPECTED, line=limits.LOG_LINE)
    return parse_tuner_csv(text, source=str(path))


def parse_tuner_csv(text: str, *, source: str) -> tuple[TunerRule, ...]:
    """Reads rules from text, as :func:`read_tuner_csv`."""
    rules = []
    for number, line in enumerate(text.split("\n"), start=1):
        _check_line(line, number, source)
        if line.startswith("#") or not line:
            continue
        place = f"{source}, line {number}"
        cells = [cell.strip(" \t\r") for cell in line.split(",")]
        if not _REQUIRED <= len(cells) <= len(_FIELDS) or not all(cells):
            raise mistake(
                f"has {len(cells)} fields" if all(cells) else "has an empty field",
                source=place,
                value=shown(line),
                expected=f"{_REQUIRED} to {len(_FIELDS)}: {', '.join(_FIELDS)}",
                hint="comments start with # in the first column",
            )
        rule = _rule(cells, place)
        _check_rule(rule, place)
        rules.append(rule)
    return tuple(rules)


def _rule(cells: list[str], place: str) -> TunerRule:
    ours = {name: key for key, name in COLLECTIVES.items()}
    _check_name(cells[0], tuple(ours), place, _FIELDS[0])
    numbers = [_number(cells[at], place, at) for at in range(len(cells)) if at not in {0, 3, 4}]
    first, last, channels, nodes, ranks = numbers[:5]
    grouped, registered = [*numbers[5:], ANY, ANY][:2]
    return TunerRule(
        collective=ours[cells[0]],
        first_bytes=first,
        last_bytes=last,
        algorithm=cells[3],
        protocol=cells[4],
        channels=channels,
        nodes=nodes,
        ranks=ranks,
        grouped=grouped,
        registered=registered,
    )


def _number(cell: str, place: str, at: int) -> int:
    """Returns a number; the plugin would read text as 0, and 64K as 64."""
    is_size = at in {1, 2}
    value = parse_count(cell, NO_LIMIT if is_size else _MOST)
    if value is None and cell == "-1" and not is_size:
        return ANY
    if value is None:
        expected = "bytes, 0 to 2^64 - 1" if is_size else "an integer, or -1 for any"
        raise mistake("is not a number that the plugin reads", source=place, key=_FIELDS[at],
                      value=shown(cell), expected=expected)  # fmt: skip
    return value
