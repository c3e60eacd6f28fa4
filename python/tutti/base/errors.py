"""The base class of all errors, exit codes, and errors that every package can raise."""

from __future__ import annotations

import enum
from typing import Any, ClassVar, NamedTuple


class ExitCode(enum.IntEnum):
    """Exit codes of the command line; 0 only on success."""

    OK = 0
    UNPROVED = 1
    MISTAKE = 2
    FAILED = 3
    INTERNAL = 70
    INTERRUPTED = 130

    @property
    def meaning(self) -> str:
        """The meaning of the code, for the reference page."""
        return _MEANINGS[self]


_MEANINGS = {
    ExitCode.OK: "success",
    ExitCode.UNPROVED: "not everything could be verified",
    ExitCode.MISTAKE: "invalid input: one message, and no side effects",
    ExitCode.FAILED: (
        "verification failed, the simulation cannot finish, or the network saturates or deadlocks"
    ),
    ExitCode.INTERNAL: (
        "an internal error of tutti: please report it, with the file that the message names; "
        "`TUTTI_TRACEBACK=1` prints its traceback"
    ),
    ExitCode.INTERRUPTED: "Ctrl-C: finished results are stored",
}


class Kind(NamedTuple):
    """An entry of the reference: when an error of this kind is raised, and what helps."""

    when: str
    hint: str = ""


_WORD = 200
_LINE = 1_000
_MESSAGE = 4_000
"""Most characters of a word, a line and a message: a value may be an entire file."""


def capped(text: str) -> str:
    """Returns the message with words, lines and total length limited."""
    if len(text) <= _WORD:
        return text
    lines = []
    for line in text[: 4 * _MESSAGE].splitlines():
        if len(line) > _WORD:
            words = (_shortened(word, _WORD) for word in line.split(" "))
            lines.append(_shortened(" ".join(words), _LINE))
        else:
            lines.append(line)
    return _shortened("\n".join(lines), _MESSAGE)


def _shortened(text: str, most: int) -> str:
    """Returns the text, or its start and end if it is too long."""
    return text if len(text) <= most else f"{text[: most // 2]}...{text[-most // 2 :]}"


class TuttiError(Exception):
    """The base class of all errors of tutti.

    Attributes:
        kind: A key of ``kinds``, which names the problem.
        problem: The message without hint and anchor.
        hint: What to try; empty if the message suffices.
        fields: The values that the message names; each is also an attribute.
    """

    exit_code: ClassVar[ExitCode] = ExitCode.MISTAKE
    kinds: ClassVar[dict[str, Kind]] = {}

    def __init__(
        self,
        problem: str,
        *,
        kind: str = "other",
        hint: str | None = None,
        fields: dict[str, Any] | None = None,
    ) -> None:
        """Stores the parts of the message; ``hint`` replaces the hint of the kind."""
        super().__init__(problem)
        self.problem = problem
        self.kind = kind
        entry = self.kinds.get(kind)
        self.fields: dict[str, Any] = fields or {}
        if hint is None:
            hint = " ".join(part for part in (self._meant, entry.hint if entry else "") if part)
        self.hint = hint

    @property
    def anchor(self) -> str:
        """The file and anchor of the reference that explain the error."""
        return f"docs/reference/errors.md#{type(self).__name__.lower()}-{self.kind}"

    @property
    def _meant(self) -> str:
        """A hint at the known name that is closest to the unknown one."""
        name, known = self.fields.get("name"), self.fields.get("known")
        if not isinstance(name, str) or not isinstance(known, str):
            return ""
        from tutti.base.suggestions import meant

        close = meant(name, known.split(", "))
        return f"did you mean `{close}`?" if close else ""

    @property
    def pointer(self) -> str:
        """The argument with a caret below the character at fault; empty if unknown."""
        argument, at = self.fields.get("argument"), self.fields.get("at")
        if not isinstance(argument, str) or not isinstance(at, int) or not argument.isprintable():
            return ""
        if len(argument) > _WORD:
            return ""
        before = argument.encode()[:at].decode(errors="ignore")
        return f"    {argument}\n    {' ' * len(before)}^"

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a field has the type of its value
        try:
            return self.__dict__["fields"][name]
        except KeyError:
            message = f"{type(self).__name__} ({self.__dict__.get('kind')}) has no field {name!r}"
            raise AttributeError(message) from None

    def __str__(self) -> str:
        lines = [self.problem]
        if self.pointer:
            lines.append(self.pointer)
        if self.hint:
            lines.append(f"hint: {self.hint}")
        if self.kind in self.kinds:
            lines.append(f"see {self.anchor}")
        return capped("\n".join(lines))

    def __reduce__(self) -> tuple[Any, ...]:
        return (_restore, (type(self), self.problem, self.kind, self.hint, self.fields))


def _restore(
    cls: type[TuttiError], problem: str, kind: str, hint: str, fields: dict[str, Any]
) -> TuttiError:
    return cls(problem, kind=kind, hint=hint, fields=fields)


class UnitError(TuttiError, ValueError):
    """Raised for a quantity that cannot be parsed; ``text`` is the input."""

    kinds: ClassVar[dict[str, Kind]] = {
        "malformed": Kind(
            "The text is not a number followed by a unit.",
            'write a number and a unit, such as "1.34 us"',
        ),
        "missing_unit": Kind(
            "A number has no unit. Bare numbers are rejected, as their unit cannot be checked.",
            "add the unit, inside the quotes",
        ),
        "unknown_unit": Kind(
            "The unit is unknown, or belongs to another quantity. Units are case-sensitive.",
            "GB is 10^9 bytes, GiB 2^30 bytes; B is bytes, b bits; us is microseconds",
        ),
        "too_fine": Kind(
            "The value is finer than the resolution; nothing is rounded silently.",
            "times are integers of picoseconds, sizes integers of bytes",
        ),
        "too_large": Kind("The value exceeds the largest that can be stored.", "check the unit"),
        "zero": Kind(
            "The value is zero where it must be positive, such as a rate.",
            "give a positive value",
        ),
        "negative": Kind("The quantity is negative.", "give a positive value, or zero"),
    }


class ConfigError(TuttiError, ValueError):
    """Raised for an invalid configuration; the fields give file, key, value and expectation."""

    kinds: ClassVar[dict[str, Kind]] = {
        "invalid": Kind("A key or a value of the configuration is invalid."),
        "missing_extra": Kind(
            "A Python package of an extra is not installed; the message names the extra."
        ),
    }


class SimulationError(TuttiError):
    """Raised for a simulation that gives no result."""

    exit_code: ClassVar[ExitCode] = ExitCode.FAILED
    kinds: ClassVar[dict[str, Kind]] = {
        "trace_unreceived": Kind(
            "A message of a trace is never received.",
            "add a receive with its source and tag to the destination",
        ),
        "unreceived": Kind(
            "Messages are sent that no rank receives.",
            "verify() names the schedule's error",
        ),
        "in_network": Kind(
            "A training step with packets has a schedule that the network performs.",
            'detail = "flows" performs multicasts and combines in the network',
        ),
        "no_such_rank": Kind(
            "A message is sent to a rank that does not exist.",
            "verify() names the schedule's error",
        ),
        "no_path": Kind(
            "No path of live links connects the sender and the receiver of a message.",
            "the configuration lacks a link: add it, fill idle ports with mesh links, or use "
            "a schedule between ranks that are connected",
        ),
        "nothing_moved": Kind("The schedule sends no message.", "is this the intended schedule?"),
        "wrong_layout": Kind(
            "The chunks of the payload differ from those of the schedule.",
            "compute the layout of the payload for this schedule",
        ),
        "no_plan": Kind(
            "The collective has no default schedule in a training step.", "choose an algorithm"
        ),
        "wrong_group": Kind("The schedule is for groups of another size."),
        "wrong_sizes": Kind("The dimensions do not have as many NPUs as the network."),
        "other_unreserved": Kind(
            "The programs with the complete memory bandwidth differ from those without it.",
        ),
        "no_memory_server": Kind(
            "The endpoint of a work-conserving reservation has no memory server.",
            "use a static reservation",
        ),
        "dataflow": Kind("A schedule of a training step has no data flow.", "verify the schedule"),
        "not_symmetric": Kind("One NPU cannot represent all.", "simulate every NPU"),
        "too_many_packets": Kind("The number of packets exceeds the limit.", "make them larger"),
        "too_many_chunks": Kind("The number of chunks exceeds the limit.", "make chunks larger"),
        "wrong_programs": Kind(
            "The programs do not match the NPUs.",
            "give one program for each NPU",
        ),
        "no_flows": Kind(
            "The network has no flows for a step in flows.",
            "use a platform with a topology",
        ),
        "no_windows": Kind("Utilisation over time is recorded with packets only."),
        "no_time": Kind("The time of a transfer is missing."),
        "other_messages": Kind(
            "A message is sent and not received, or received and not sent.",
            "messages from one NPU to another are matched in order, by tag",
        ),
        "self_message": Kind("An NPU sends a message to itself."),
        "other_collectives": Kind(
            "NPUs issue different collectives, or in a different order.",
            "collectives are matched by their number",
        ),
        "empty_chunk": Kind("The chunk size is zero.", "use chunks of at least 1 B"),
        "endpoint": Kind("The endpoint model does not support the collective."),
        "stuck": Kind("Tasks of a program wait forever."),
        "other_chunks": Kind(
            "NPUs started chunks of different collectives, and wait for each other.",
            'set `order = "fifo"`',
        ),
        "stopped": Kind("The run was interrupted before it finished.", "run it again"),
        "too_late": Kind("A run exceeds the latest time that its caller allows."),
        "saturated": Kind(
            "The network saturates at this load, so its latency is unbounded.",
            "lower the rate, or measure longer: near saturation queues fill slowly",
        ),
        "deadlocked": Kind(
            "Packets form a cyclic dependency, so nothing is measured.",
            "use a deadlock-free routing, or more VCs and buffers",
        ),
        "time_overflow": Kind("The run is longer than the largest time.", "check the units"),
    }


class DeadlockError(SimulationError):
    """Raised for a simulation that deadlocks; ``waiting`` lists rank, step and awaited ranks."""

    kinds: ClassVar[dict[str, Kind]] = {
        "deadlock": Kind(
            "Ranks wait for messages that no rank sends.",
            "verify() names the schedule's error",
        ),
        "trace_deadlock": Kind(
            "Ranks of a trace wait for messages that no rank sends.",
            "compare the sources and tags of the receives with those of the sends",
        ),
        "network_deadlock": Kind(
            "Packets in the network form a cyclic dependency.",
            "use a deadlock-free routing, or more VCs and buffers",
        ),
    }
