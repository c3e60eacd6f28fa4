"""Reads the arguments of Megatron-LM from a script, a file or a text.

A word that starts with `--` is an argument; the words up to the next one are its values. Comments,
line continuations, arrays and assignments of the shell are understood. Variables that the file
assigns are replaced.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tutti.base.files import limits
from tutti.base.files.limits import parse_count
from tutti.base.files.mistakes import mistake, shown
from tutti.base.files.reader import read_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tutti.base.errors import ConfigError

__all__ = ["Arguments", "read_arguments"]

EXPECTED = "arguments of Megatron-LM, such as --num-layers 32 --hidden-size 4096"
_ASSIGNED = re.compile(
    r"(?m)^[ \t]*(?:export[ \t]+)?([A-Za-z_]\w*)="
    r"""("[^"]*"|'[^']*'|[^\s(#;"']+)"""
)
_VARIABLE = re.compile(r"\$\{?([A-Za-z_]\w*)(?::?-([^}]*))?\}?")
_DEFAULT = re.compile(r"\$\{\w+:?-([^}]*)\}")
_MOST = (1 << 32) - 1
_MOST_REPLACED = 1 << 20
_ON = ("true", "1")


def read_arguments(notation: str, folder: Path) -> Arguments:
    """Returns the arguments of a file, or of the text itself if it starts with `--`.

    Args:
        notation: The path of a file, relative to `folder`, or a text.
        folder: The base of a relative path.

    Raises:
        ConfigError: The file cannot be read, or has no arguments.
    """
    if notation.lstrip().startswith("--"):
        source, text = "megatron:", notation
    else:
        path = folder / notation
        source, text = str(path), read_text(path, limits.Bytes.CONFIG, EXPECTED)
    values = _values(text, source)
    if not values:
        raise mistake("has no arguments", source=source, expected=EXPECTED)
    return Arguments(source, values)


def _values(text: str, source: str) -> dict[str, list[str]]:
    """Returns the values of each argument; of a repeated one the last."""
    text = text.replace("\\\n", " ")
    known = {
        name: _DEFAULT.sub(r"\1", value.strip("\"'")) for name, value in _ASSIGNED.findall(text)
    }

    grown = 0

    def replaced(found: re.Match[str]) -> str:
        nonlocal grown
        value = known.get(found[1], found[2] or found[0])
        grown += len(value)
        if grown > _MOST_REPLACED:
            raise mistake("variables of the shell grow the text", source=source,
                          value=shown(found[0]),
                          expected=f"at most {_MOST_REPLACED:,} characters")  # fmt: skip
        return value

    for _ in range(2):
        # A value may name another variable.
        text = _VARIABLE.sub(replaced, text)
    try:
        lexer = shlex.shlex(text.replace("=(", "=( "), posix=True)
        lexer.whitespace_split, lexer.commenters = True, "#"
        words = list(lexer)
    except ValueError as error:
        raise mistake(f"not a command line: {error}", source=source, expected=EXPECTED) from None
    values: dict[str, list[str]] = {}
    name = ""
    for word in words:
        if word.startswith("--"):
            name, equal, value = word[2:].partition("=")
            name = name.replace("_", "-")
            values[name] = [value] if equal else []
        elif word == ")" or word.endswith("=("):
            name = ""
        elif name:
            # The end of an array of the shell; patterns of layers have their own parentheses.
            values[name].append(word if "(" in word else word.rstrip(")"))
    return values


@dataclass
class Arguments:
    """The arguments of a run.

    Attributes:
        source: The file, for messages.
        values: The values of each argument, without `--`.
        used: The arguments that have been read.
    """

    source: str
    values: dict[str, list[str]]
    used: set[str] = field(default_factory=set)

    def has(self, name: str) -> bool:
        """Whether a flag is set."""
        self.used.add(name)
        given = self.values.get(name)
        return given is not None and (not given or given[0].lower() in _ON)

    def text(self, name: str, known: Sequence[str] = ()) -> str | None:
        """Returns a value, in lower case if it is one of some words; None without the argument.

        Raises:
            ConfigError: The value is missing, or is not known.
        """
        self.used.add(name)
        if name not in self.values:
            return None
        given = self.values[name]
        if not given:
            raise self.mistake(name, "has no value", "a value")
        value = given[0]
        if known and value.lower() not in known:
            raise self.mistake(name, "is not modelled", f"one of {', '.join(known)}")
        return value.lower() if known else value

    def count(
        self, name: str, default: int | None = None, *, least: int = 1, most: int = _MOST
    ) -> int:
        """Returns an integer.

        Raises:
            ConfigError: It is missing without a default, or is not an integer from `least` to
                `most`.
        """
        value = self.text(name)
        if value is None:
            if default is None:
                problem, expected = "is missing", f"--{name} N"
                raise mistake(problem, source=self.source, key=f"--{name}", expected=expected)
            return default
        number = parse_count(value, most)
        if number is None or number < least:
            problem = "is a variable of the shell" if "$" in value else "is not valid"
            raise self.mistake(name, problem, f"an integer from {least} to {most:,}")
        return number

    def optional(self, name: str) -> int | None:
        """Returns an integer, or None without the argument."""
        return self.count(name) if name in self.values else None

    def mistake(self, name: str, problem: str, expected: str, hint: str = "") -> ConfigError:
        """Returns the error of an argument."""
        value = " ".join(self.values.get(name, []))
        return mistake(problem, source=self.source, key=f"--{name}", value=value and shown(value),
                       expected=expected, hint=hint)  # fmt: skip
