"""Options that replace keys of a file, as `--set` does: each carries the path of its key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_type_hints

from tutti.base.files.mistakes import mistake

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class Key:
    """The key of a file that an option replaces; it follows `typer.Option` in the annotation."""

    def __init__(
        self, *paths: str, read: Callable[[Any], Any] = lambda value: value, hint: str = ""
    ) -> None:
        """Stores the paths.

        Args:
            paths: The path in each kind of file that the command reads, or one for all; empty where
                the option does not apply.
            read: Converts the value of the option to that of the key.
            hint: The hint of the error if the option does not apply.
        """
        self.paths, self.read, self.hint = paths, read, hint


def keyed(*groups: object, kind: int = 0) -> dict[str, tuple[str, Any]]:
    """Returns name and value of the options that are given, by key path.

    Args:
        groups: Dataclasses whose fields are options of the same name.
        kind: The kind of file, an index of the paths.

    Raises:
        ConfigError: An option does not apply to this kind of file, or two replace the same key, or
            a key and its table.
    """
    values: dict[str, tuple[str, Any]] = {}
    for name, value, key in _given(groups):
        path = key.paths[kind % len(key.paths)]
        if not path:
            raise mistake("does not apply to this file", source=name, hint=key.hint)
        for other, (option, _) in values.items():
            if f"{path}.".startswith(f"{other}.") or other.startswith(f"{path}."):
                raise mistake(f"conflicts with {option}", source=name, expected="one of both")
        values[path] = name, key.read(value)
    return values


def _given(groups: Iterable[object]) -> Iterable[tuple[str, Any, Key]]:
    for group in groups:
        for field, hint in get_type_hints(type(group), include_extras=True).items():
            metadata: tuple[Any, ...] = getattr(hint, "__metadata__", ())
            value = getattr(group, field)
            if value is not None and len(metadata) > 1:
                yield metadata[0].default, value, metadata[1]  # the first name of the option
