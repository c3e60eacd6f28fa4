"""Buffers of routers that differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.networks.flit.named_routers import entry_of_each, refused

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
    found = [
        (_at_most(entry.vcs, "vcs", router.vcs, number),
         _at_most(entry.buffer, "buffer", router.buffer, number))
        for number, entry in enumerate(smaller)
    ]  # fmt: skip
    chosen = entry_of_each(names, smaller, "routers")
    full = (router.vcs, router.buffer)
    return [full if number is None else found[number] for number in chosen]


def _at_most(value: int | None, name: str, most: int, number: int) -> int:
    if value is None:
        return most
    if value > most:
        expected = f"1 to {most}, as `router.{name}` is {most}"
        raise refused(f"`{name}` is {value}", "routers", number, expected)
    return value
