"""Buffers of routers that differ."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from tutti.networks.errors import NocError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.networks.flit.settings import Router, RouterBuffers


def buffers_of(
    names: Sequence[str], router: Router, smaller: Sequence[RouterBuffers]
) -> list[tuple[int, int]]:
    """Returns the VCs of each router, and the flits that each of their buffers holds.

    Args:
        names: Names of all routers.
        router: The parameters of all routers, which have the most VCs and the largest buffers.
        smaller: Routers with fewer VCs or smaller buffers.

    Raises:
        NocError: No router has a name, a router is named by two entries, or an entry has more VCs
            or larger buffers than `router`.
    """
    chosen: dict[int, int] = {}
    found = [(router.vcs, router.buffer)] * len(names)
    for number, entry in enumerate(smaller):
        vcs = _at_most(entry.vcs, "vcs", router.vcs, number)
        buffer = _at_most(entry.buffer, "buffer", router.buffer, number)
        for index in _matches(names, entry.at, number):
            if chosen.setdefault(index, number) != number:
                raise _refused(
                    f"router `{names[index]}` is also in routers[{chosen[index]}]", number,
                    "each router in one entry",
                )  # fmt: skip
            found[index] = (vcs, buffer)
    return found


def _at_most(value: int | None, name: str, most: int, number: int) -> int:
    if value is None:
        return most
    if value > most:
        expected = f"1 to {most}, as `router.{name}` is {most}"
        raise _refused(f"`{name}` is {value}", number, expected)
    return value


def _matches(names: Sequence[str], patterns: Sequence[str], number: int) -> list[int]:
    """Returns the indices of the routers with a name that matches."""
    found: set[int] = set()
    for pattern in patterns:
        matched = {i for i, name in enumerate(names) if fnmatchcase(name, pattern)}
        if not matched:
            listed = ", ".join(f"`{name}`" for name in names[:3])
            raise _refused(
                f"no router is named `{pattern}`", number, f"names or patterns of {listed}, ..."
            )
        found |= matched
    return sorted(found)


def _refused(problem: str, number: int, expected: str) -> NocError:
    message = f"routers[{number}]: {problem}: expected {expected}"
    return NocError(message, kind="router_buffers", fields={"entry": number})
