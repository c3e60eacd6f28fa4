"""Builds the `ConfigError` of an invalid configuration: place, problem, expectation and hint."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TypeVar

from tutti.base.errors import ConfigError
from tutti.base.suggestions import meant

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_Word = TypeVar("_Word", bound=str)
_LONGEST_VALUE = 60
"""Most characters of a value in a message."""
_LARGEST_SHOWN = 10**50


def mistake(
    problem: str,
    *,
    source: str,
    key: str = "",
    value: str = "",
    expected: str = "",
    hint: str = "",
) -> ConfigError:
    """Returns a `ConfigError` whose message names place, problem, value and expectation.

    Args:
        problem: What is wrong, as one sentence without its place.
        source: The file or command line option that holds the value.
        key: The path to the key, such as ``models.minimum.alpha_p``; empty for the complete file.
        value: The value as written, shortened; may be empty.
        expected: What is accepted.
        hint: What to try next.
    """
    place = ": ".join(part for part in (source, key) if part)
    lines = [f"{place}: {problem}"]
    if value:
        lines.append(f"given: {value}")
    if expected:
        lines.append(f"expected: {expected}")
    return ConfigError(
        "\n".join(lines),
        kind="invalid",
        hint=hint,
        fields={
            "problem": problem,
            "source": source,
            "key": key,
            "value": value,
            "expected": expected,
        },
    )


def moved(error: ConfigError, *, source: str, key: str) -> ConfigError:
    """Returns the same error for another place.

    Args:
        error: An error that `mistake` returned.
        source: The file or option to name instead.
        key: The key to name instead.
    """
    parts = {name: error.fields[name] for name in ("problem", "value", "expected")}
    return mistake(**parts, source=source, key=key, hint=error.hint)


def shown(value: object) -> str:
    """Returns a value as written in a JSON or TOML file, shortened."""
    if isinstance(value, int) and abs(value) > _LARGEST_SHOWN:
        return f"a number of {value.bit_length():,} bits"
    if isinstance(value, str):
        text = f'"{value[:_LONGEST_VALUE]}"'
    elif value is None or isinstance(value, bool | list | dict):
        text = json.dumps(value, ensure_ascii=False, default=str, skipkeys=True)
    else:
        text = repr(value)
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 3] + "..."


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Returns ``did you mean `ranks`?`` if a known word is close, else ""."""
    close = meant(word, known)
    return f"did you mean `{close}`?" if close else ""


def each_meant(words: Iterable[str], known: Iterable[str]) -> str:
    """Returns the hint of `did_you_mean` for each word that is close to a known one, with the word.

    Examples:
        >>> each_meant(["vc", "x", "buf"], ["vcs", "buffer"])
        'vc: did you mean `vcs`?; buf: did you mean `buffer`?'
    """
    names = list(known)
    hints = {word: did_you_mean(word, names) for word in words}
    return "; ".join(f"{word[:_LONGEST_VALUE]}: {hint}" for word, hint in hints.items() if hint)


def known_word(word: str, known: Sequence[_Word], *, source: str) -> _Word:
    """Returns the value of an option if it is one of a few words.

    Raises:
        ConfigError: It is unknown; the hint is the closest known word.
    """
    for each in known:
        if word == each:
            return each
    expected = f"one of {', '.join(known)}"
    raise mistake("unknown value", source=source, value=shown(word), expected=expected,
                  hint=did_you_mean(word, known))  # fmt: skip


def known_name(
    value: str, known: Iterable[str], *, what: str, source: str, key: str = "", expected: str = ""
) -> str:
    """Returns a name of a file or an option if it is known.

    Args:
        value: The name.
        known: The known names.
        what: What it names.
        source: The file or the option.
        key: The key of the file.
        expected: What is expected; by default one of the known names.

    Raises:
        ConfigError: It is unknown; the hint is the closest known name.
    """
    if value not in (names := list(known)):
        raise mistake(f"unknown {what} `{value}`", source=source, key=key,
                      expected=expected or f"one of {', '.join(names)}",
                      hint=did_you_mean(value, names))  # fmt: skip
    return value
