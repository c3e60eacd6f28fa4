"""What all errors have in common, and the exit codes of the command line."""

from __future__ import annotations

import enum
from typing import Any, ClassVar, NamedTuple


class ExitCode(enum.IntEnum):
    """What the command line returns; 0 only on success."""

    OK = 0
    UNPROVED = 1
    MISTAKE = 2
    FAILED = 3
    INTERNAL = 70
    INTERRUPTED = 130

    @property
    def meaning(self) -> str:
        """What it says, for the reference."""
        return _MEANINGS[self]


_MEANINGS = {
    ExitCode.OK: "success",
    ExitCode.UNPROVED: "what was to be proved could not be inspected, or not all of it",
    ExitCode.MISTAKE: "the user's mistake: one message, nothing done",
    ExitCode.FAILED: (
        "a schedule that cannot be proved, a simulation that cannot finish, or a network that "
        "saturates or deadlocks"
    ),
    ExitCode.INTERNAL: (
        "an internal error of tutti: please report it, with the file that the message names; "
        "`TUTTI_TRACEBACK=1` prints what is in it"
    ),
    ExitCode.INTERRUPTED: "Ctrl-C: what was finished until then is kept",
}


class Kind(NamedTuple):
    """One entry of the reference: when an error of this kind is raised, and what helps."""

    when: str
    hint: str = ""


_WORD = 200
_LINE = 1_000
_MESSAGE = 4_000
"""Characters of a word, a line and a message: a value may be a whole file."""


def capped(text: str) -> str:
    """A message in which words, lines and the whole are of a length that a person reads."""
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
    """Beginning and end, where it is too long."""
    return text if len(text) <= most else f"{text[: most // 2]}...{text[-most // 2 :]}"


class TuttiError(Exception):
    """The root of all errors of tutti.

    Attributes:
        kind: what went wrong, as one of the keys of ``kinds``.
        problem: the message without hint and anchor.
        hint: what to try; empty where the message says it all.
        fields: the values that the message names; each is also an attribute.
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
        """Keeps the message's parts; ``hint`` replaces the one of the kind."""
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
        """Where the reference explains it."""
        return f"docs/reference/errors.md#{type(self).__name__.lower()}-{self.kind}"

    @property
    def _meant(self) -> str:
        """The name that is close to the one that is not known."""
        name, known = self.fields.get("name"), self.fields.get("known")
        if not isinstance(name, str) or not isinstance(known, str):
            return ""
        from tutti.errors.meant import meant

        close = meant(name, known.split(", "))
        return f"did you mean `{close}`?" if close else ""

    @property
    def pointer(self) -> str:
        """What was given and a mark below its character where it goes wrong; empty if unknown."""
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
