"""The collectives of a training step by the library of the platform.

A collective takes at least the time that the library's own model predicts for its group, as `tutti
nccl explain` prints it. It takes longer where its flows share links with others. The flows are
those of the library's schedule.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from tutti.collectives.request import lay_out
from tutti.schedules.errors import AlgorithmError
from tutti.schedules.ir import Schedule

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tutti import _core
    from tutti.platforms.library import LibraryModel, Prediction
    from tutti.platforms.machine import Platform
    from tutti.training.fabric import StepNetwork

_MOST_MESSAGES = 300_000
"""Most messages of a schedule that no notation generates; beyond, rings stand for its flows."""


class LibraryCollective(NamedTuple):
    """A collective by the library.

    Attributes:
        channels: Its schedule.
        least: Its transfers, each with the time in ps after the launch.
    """

    channels: list[Schedule]
    least: list[tuple[_core.Transfer, int]]


def members(sizes: Sequence[int], mask: int) -> list[tuple[int, ...]]:
    """Returns the ranks of each group along the dimensions of a mask, innermost first."""
    import numpy as np  # steps without a library do not load it

    axes = len(sizes)
    numbers = np.arange(int(np.prod(sizes))).reshape(tuple(sizes)[::-1])
    inside = [axis for axis in range(axes) if mask >> (axes - 1 - axis) & 1]
    outside = [axis for axis in range(axes) if axis not in inside]
    count = int(np.prod([numbers.shape[axis] for axis in outside], initial=1))
    rows = numbers.transpose(outside + inside).reshape(count, -1)
    return [tuple(row) for row in rows.tolist()]


def predicted(network: StepNetwork, notation: str, transfer: _core.Transfer) -> Prediction:
    """Returns what the library of the platform predicts for a collective of a step.

    Raises:
        AlgorithmError: The platform has no such library, its model has no answer, or the groups lie
            differently on nodes.
    """
    model = _library(network.platform, notation)
    group = group_of(network.sizes, transfer.mask, model)
    return model.predict(notation, transfer.collective, group, transfer.size)


def by_library(
    network: StepNetwork,
    notation: str,
    largest: _core.Transfer,
    transfers: Sequence[_core.Transfer],
) -> LibraryCollective:
    """Returns a collective by an algorithm of the library of the platform.

    Args:
        network: The network of the step.
        notation: The algorithm, such as `nccl` or `nccl:ring`.
        largest: The largest transfer of the collective; its schedule is that of all.
        transfers: The transfers of the step.

    Raises:
        AlgorithmError: As :func:`predicted`, or no schedule fits.
    """
    platform = network.platform
    model = _library(platform, notation)
    assert platform is not None  # noqa: S101 - it has a library
    collective, mask = largest.collective, network.dimensions_of(largest.mask)
    group, launch = group_of(network.sizes, mask, model), platform.model.launch.ps
    least = [
        (each, max(0, model.predict(notation, collective, group, each.size).time_ps - launch))
        for each in transfers
        if each.collective == collective and network.dimensions_of(each.mask) == mask
    ]
    laid_out = _schedule(model, notation, collective, group, largest.size)
    laid_out.verify()
    return LibraryCollective([laid_out], least)


def lines(network: StepNetwork, transfers: Sequence[_core.Transfer]) -> Iterator[str]:
    """Yields what the library selects for each collective that it executes, or why it does not.

    What the predictions infer follows, each sentence once.
    """
    notes: dict[str, None] = {}
    for (collective, mask), transfer in network.largest(transfers).items():
        notation = network.library_of(collective, mask)
        if not notation:
            continue
        key, ranks = network.key(collective, mask), network.group_size(mask)
        model = _library(network.platform, notation)
        try:
            found = predicted(network, notation, transfer)
        except AlgorithmError as error:
            yield f"{key} on {ranks} ranks uses rings: {error.problem}"
            continue
        yield f"{model.title} selects for {key} on {ranks} ranks: {found.choice}"
        if note := model.note(group_of(network.sizes, mask, model)):
            notes[note] = None
    yield from notes


def _library(platform: Platform | None, notation: str) -> LibraryModel:
    library = platform.library if platform else None
    if library is None or library.name != notation.partition(":")[0].strip():
        where = f"platform {platform.name}" if platform else "a torus"
        raise AlgorithmError(
            f"{notation} is an algorithm of a library that {where} does not have", kind="argument"
        )
    return library.model


def group_of(sizes: Sequence[int], mask: int, model: LibraryModel) -> tuple[int, ...]:
    """Returns the ranks of the first group along a mask; the others lie alike on nodes.

    Raises:
        AlgorithmError: They lie differently.
    """
    groups = members(sizes, mask)
    per_node = max(1, model.ranks_per_node)
    counts = (Counter(rank // per_node for rank in one) for one in groups)
    shapes = {tuple(count for _, count in sorted(each.items())) for each in counts}
    if len(shapes) > 1:
        problem = f"groups of {len(groups[0])} ranks lie differently on nodes of {per_node} GPUs"
        raise AlgorithmError(problem, kind="wrong_ranks")
    return groups[0]


def _schedule(
    model: LibraryModel, notation: str, collective: str, group: tuple[int, ...], size: int
) -> Schedule:
    """Returns the schedule of an algorithm; rings for one that has none or too many messages."""
    ranks = len(group)
    try:
        found = model.schedule(notation, collective, group, size).schedule
        if isinstance(found, Schedule) and 2 * found.chunks * ranks > _MOST_MESSAGES:
            found = model.schedule(f"{model.name}:ring", collective, group, size).schedule
    except AlgorithmError:
        if notation != model.name:
            raise
        found = model.schedule(f"{model.name}:ring", collective, group, size).schedule
    if isinstance(found, Schedule):
        return found
    return lay_out(found, collective=collective, ranks=ranks, root=0, routes=None)
