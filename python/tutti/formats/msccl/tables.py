"""Checked access to the values of a JSON execution plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from tutti.base.files.mistakes import mistake, shown

if TYPE_CHECKING:
    from collections.abc import Iterator


class Table:
    """A JSON object with its place in the file."""

    __slots__ = ("key", "source", "values")

    def __init__(self, values: dict[str, Any], source: str, key: str = "") -> None:
        """Wraps a JSON object; `key` is its path in the file."""
        self.values, self.source, self.key = values, source, key

    def __contains__(self, name: str) -> bool:
        return self.values.get(name) is not None

    def text(self, name: str) -> str:
        """Returns a text.

        Raises:
            ConfigError: It is missing or not text.
        """
        value = self.values.get(name)
        return value if isinstance(value, str) else self.refuse(name, "text")

    def flag(self, name: str) -> bool:
        """Returns true or false; false if it is missing.

        Raises:
            ConfigError: It is another value.
        """
        value = self.values.get(name, False)
        return value if isinstance(value, bool) else self.refuse(name, "true or false")

    def count(self, name: str, most: int, default: int | None = None) -> int:
        """Returns an integer from 0 to `most`.

        Raises:
            ConfigError: It is missing and has no default, or is not such an integer.
        """
        value = self.values.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
            self.refuse(name, f"an integer from 0 to {most:,}")
        return value

    def counts(self, name: str, most: int) -> list[int]:
        """Returns a list of integers from 0 to `most`; empty if it is missing.

        Raises:
            ConfigError: It is not such a list.
        """
        values = self.values.get(name, [])
        if not isinstance(values, list) or not all(
            isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most
            for value in values
        ):
            self.refuse(name, f"a list of integers from 0 to {most:,}")
        return list(values)

    def table(self, name: str) -> Table:
        """Returns an object.

        Raises:
            ConfigError: It is missing or not an object.
        """
        value = self.values.get(name)
        if not isinstance(value, dict):
            self.refuse(name, "an object")
        return Table(value, self.source, self.path(name))

    def tables(self, name: str) -> Iterator[Table]:
        """Yields the objects of a list; none if it is missing.

        Raises:
            ConfigError: It is not a list of objects.
        """
        values = self.values.get(name, [])
        if not isinstance(values, list) or not all(isinstance(each, dict) for each in values):
            self.refuse(name, "a list of objects")
        for number, each in enumerate(values):
            yield Table(each, self.source, self.path(f"{name}[{number}]"))

    def path(self, name: str) -> str:
        """Returns the path of a key in the file."""
        return f"{self.key}.{name}" if self.key else name

    def refuse(self, name: str, expected: str) -> NoReturn:
        """Raises the error of a value.

        Raises:
            ConfigError: Always.
        """
        present = name in self.values
        raise mistake(
            "invalid value" if present else "the key is missing",
            source=self.source,
            key=self.path(name),
            value=shown(self.values[name]) if present else "",
            expected=expected,
        )
