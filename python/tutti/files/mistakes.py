"""The one error that a configuration can end in: where, what, what was expected, and a hint."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.errors import ConfigError
from tutti.errors.meant import meant

if TYPE_CHECKING:
    from collections.abc import Iterable

_LONGEST_VALUE = 60
"""Values are shown, but not a whole file's worth of them."""
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
    """A `ConfigError` of one form.

    Args:
        problem: What is wrong, as one sentence without its place.
        source: The file or command line option it stands in.
        key: The path to the key, such as ``models.minimum.alpha_p``; empty for the whole file.
        value: The value as it was written, shortened; empty when there is none.
        expected: What would have been accepted.
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
    """The same mistake, told of another place.

    Args:
        error: Made by `mistake`.
        source: Instead of its file or option.
        key: Instead of its key.
    """
    said = {name: error.fields[name] for name in ("problem", "value", "expected")}
    return mistake(**said, source=source, key=key, hint=error.hint)


def shown(value: object) -> str:
    """A value as a person would recognise it in their file, shortened."""
    if isinstance(value, int) and abs(value) > _LARGEST_SHOWN:
        return f"a number of {value.bit_length():,} bits"
    text = f'"{value[:_LONGEST_VALUE]}"' if isinstance(value, str) else repr(value)
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 3] + "..."


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``did you mean `ranks`?`` when a known word is close, else nothing."""
    close = meant(word, known)
    return f"did you mean `{close}`?" if close else ""
