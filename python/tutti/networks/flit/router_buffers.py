"""Buffers of routers that differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.networks.flit.named_routers import entry_of_each, refused
from tutti.view.quantity import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.networks.flit.settings import Router, RouterBuffers


def buffers_of(
    names: Sequence[str],
    router: Router,
    smaller: Sequence[RouterBuffers],
    classes: Sequence[tuple[int, int]],
) -> list[tuple[int, int]]:
    """Returns a bit for each VC of each router, and the flits that each of their buffers holds.

    Args:
        names: Names of all routers.
        router: The parameters of all routers, which have the most VCs and the largest buffers.
        smaller: Routers with fewer VCs or smaller buffers.
        classes: The first and the last VC of each traffic class.

    Raises:
        NocError: No router has a name, a router is named by two entries, or an entry has more VCs
            or larger buffers than `router`.
    """
    found = _of_entries(router, smaller, classes)
    chosen = entry_of_each(names, smaller, "routers")
    full = (_first(router.vcs), router.buffer)
    return [full if number is None else found[number] for number in chosen]


def entries_like_all(
    router: Router, smaller: Sequence[RouterBuffers], classes: Sequence[tuple[int, int]]
) -> list[int]:
    """Returns the numbers of entries that state the VCs and buffers of all routers.

    Args:
        router: The parameters of all routers.
        smaller: The entries.
        classes: The first and the last VC of each traffic class.

    Raises:
        NocError: An entry has more VCs or larger buffers than `router`.
    """
    used = 0
    for first, last in classes:
        used |= _first(last - first + 1) << first
    full = ({_first(router.vcs), used}, router.buffer)
    found = _of_entries(router, smaller, classes)
    return [number for number, (vcs, buffer) in enumerate(found)
            if vcs in full[0] and buffer == full[1]]  # fmt: skip


def _of_entries(
    router: Router, smaller: Sequence[RouterBuffers], classes: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Returns a bit for each VC of the routers of each entry, and the flits of their buffers."""
    return [
        (_kept(_vcs(entry, router, classes, number), entry, router, classes, number),
         _at_most(entry.buffer, "buffer", router.buffer, f"`router.buffer` is {router.buffer}",
                  number))
        for number, entry in enumerate(smaller)
    ]  # fmt: skip


def _vcs(
    entry: RouterBuffers, router: Router, classes: Sequence[tuple[int, int]], number: int
) -> int:
    """Returns a bit for each VC of the routers of an entry."""
    if entry.vcs_per_class is None:
        reason = f"`router.vcs` is {router.vcs}"
        return _first(_at_most(entry.vcs, "vcs", router.vcs, reason, number))
    most = max(last - first + 1 for first, last in classes)
    reason = f"the traffic classes have {plural(most, 'VC')} or fewer"
    each = _at_most(entry.vcs_per_class, "vcs_per_class", most, reason, number)
    vcs = 0
    for first, last in classes:
        vcs |= _first(min(each, last - first + 1)) << first
    return vcs


def _kept(
    vcs: int,
    entry: RouterBuffers,
    router: Router,
    classes: Sequence[tuple[int, int]],
    number: int,
) -> int:
    """Returns the VCs of an entry, a bit for each, if each traffic class has one of them."""
    for index, (first, last) in enumerate(classes):
        if not first <= last < router.vcs or vcs >> first << first & _first(last + 1):
            continue  # the core refuses a class without VCs on all routers
        problem = (
            f"`vcs` is {entry.vcs}: its routers have the VCs 0 to {vcs.bit_length() - 1}, and "
            f"class {index} has {first} to {last}"
        )
        hint = "`vcs_per_class = 1` in place of `vcs` leaves the first VC of each class"
        error = refused(problem, "routers", number, f"at least {first + 1}", hint)
        raise error.reworded(error.problem, hint=hint, **{"class": index})
    return vcs


def _first(vcs: int) -> int:
    return (1 << vcs) - 1


def _at_most(value: int | None, name: str, most: int, reason: str, number: int) -> int:
    if value is None:
        return most
    if value > most:
        raise refused(f"`{name}` is {value}", "routers", number, f"1 to {most}, as {reason}")
    return value
