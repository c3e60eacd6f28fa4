"""The base class of all errors, exit codes, and errors that every package can raise."""

from __future__ import annotations

import enum
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

if TYPE_CHECKING:
    from collections.abc import Mapping


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


class _Kinds:
    """The kinds of a class, or of the first base class that has some."""

    def __get__(self, _instance: object, owner: type[TuttiError]) -> Mapping[str, Kind]:
        tables = (_kinds_of(base.__module__).get(base.__name__) for base in owner.__mro__)
        return next(filter(None, tables), {})


@cache
def _kinds_of(module: str) -> Mapping[str, Mapping[str, Kind]]:
    """Returns the kinds by class from the file `errors.toml` of a module's package."""
    package, _, name = module.rpartition(".")
    if not package.startswith("tutti.") or name != "errors":
        return {}
    from tutti.base.bundled import bundled

    tables = bundled(f"{package.removeprefix('tutti.').replace('.', '/')}/errors.toml")
    return {
        name: {kind: Kind(**entry) for kind, entry in kinds.items()}
        for name, kinds in tables.items()
    }


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
    kinds: ClassVar[_Kinds] = _Kinds()

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

    def reworded(self, problem: str, *, hint: str | None = None, **fields: Any) -> Self:  # noqa: ANN401 - as in `fields`
        """Returns the error with another problem, such as one that names the file."""
        hint = self.hint if hint is None else hint
        return type(self)(problem, kind=self.kind, hint=hint, fields={**self.fields, **fields})

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


class ConfigError(TuttiError, ValueError):
    """Raised for an invalid configuration; the fields give file, key, value and expectation."""


class SimulationError(TuttiError):
    """Raised for a simulation that gives no result."""

    exit_code: ClassVar[ExitCode] = ExitCode.FAILED


class DeadlockError(SimulationError):
    """Raised for a simulation that deadlocks; ``waiting`` lists rank, step and awaited ranks."""
