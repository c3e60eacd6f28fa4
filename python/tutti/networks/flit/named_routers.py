"""Routers that entries of a network name: those with other buffers, or with other clocks."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Protocol

from tutti.base.files.mistakes import did_you_mean
from tutti.networks.errors import NocError

if TYPE_CHECKING:
    from collections.abc import Sequence


class Entry(Protocol):
    """An entry that names routers."""

    @property
    def at(self) -> tuple[str, ...]:
        """Names of routers, or patterns with `*`, `?` and `[...]`."""


def entry_of_each(names: Sequence[str], entries: Sequence[Entry], key: str) -> list[int | None]:
    """Returns the number of the entry that names each router, None for a router in no entry.

    Args:
        names: Names of all routers.
        entries: The entries.
        key: The key of the entries in files: `routers` or `clocks`.

    Raises:
        NocError: No router has a name, or two entries name a router.
    """
    chosen: list[int | None] = [None] * len(names)
    for number, entry in enumerate(entries):
        for index in _matches(names, entry.at, key, number):
            if chosen[index] not in {None, number}:
                problem = f"router `{names[index]}` is also in {key}[{chosen[index]}]"
                raise refused(problem, key, number, "each router in one entry")
            chosen[index] = number
    return chosen


def _matches(names: Sequence[str], patterns: Sequence[str], key: str, number: int) -> list[int]:
    """Returns the indices of the routers with a name that matches."""
    found: set[int] = set()
    for pattern in patterns:
        matched = {i for i, name in enumerate(names) if fnmatchcase(name, pattern)}
        if not matched:
            listed = ", ".join(f"`{name}`" for name in names[:3])
            expected = f"names or patterns of {listed}, ..."
            hint = did_you_mean(pattern, names)
            raise refused(f"no router is named `{pattern}`", key, number, expected, hint)
        if patterns.count(pattern) > 1:
            raise refused(f"`at` names `{pattern}` twice", key, number, "each name once")
        found |= matched
    return sorted(found)


def refused(
    problem: str, key: str, number: int, expected: str, hint: str | None = None
) -> NocError:
    """Returns the error of an entry; the hint replaces that of its kind."""
    kind = {"routers": "router_buffers", "clocks": "router_clocks"}[key]
    message = f"{key}[{number}]: {problem}: expected {expected}"
    return NocError(message, kind=kind, hint=hint, fields={"entry": number})
