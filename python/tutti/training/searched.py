"""The collectives of a training step whose algorithms are searched, and the candidates of each."""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tutti.base.errors import TuttiError
from tutti.collectives.request import lay_out
from tutti.platforms.library import is_library
from tutti.schedules.ir import algorithms as registry
from tutti.schedules.ir import candidates
from tutti.workloads.errors import WorkloadError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.topologies import Routes
    from tutti.training.endpoint import Configuration
    from tutti.training.step import Step

_ON_GRIDS = (
    "blue_connect:{grid}:ring",
    "direct:{grid}",
    "hierarchical:{grid}:direct",
    "hierarchical:{grid}:ring",
    "hierarchical_local:{grid}:ring",
    "mirrored_ring:{grid}",
    "multi_ring:{grid}",
    "multi_ring:{grid}:all_dimensions:bidirectional",
    "ring:{grid}",
    "swing:{grid}",
)
"""Notations for groups along several dimensions."""

_IN_RINGS = ("ring:bidirectional", "ring:backward")


@dataclass(frozen=True)
class SearchedCollective:
    """A collective of a step on the groups along some dimensions.

    Attributes:
        key: Its key in `algorithms` of the step, such as ``all_reduce:data``.
        name: The collective.
        group: The dimensions of its groups, such as ``local+vertical``.
        sizes: The NPUs along these dimensions.
        bytes: The bytes of one of each of its transfers of different sizes, summed.
        candidates: The notations to try.
    """

    key: str
    name: str
    group: str
    sizes: tuple[int, ...]
    bytes: int
    candidates: tuple[str, ...]

    @property
    def ranks(self) -> int:
        """The NPUs of a group."""
        return math.prod(self.sizes)


def collectives_of(
    step: Step, configuration: Configuration, given: Sequence[str] | None
) -> list[SearchedCollective]:
    """Returns the collectives of a step, those with the most bytes first.

    Raises:
        AlgorithmError: A given algorithm performs none of them.
        WorkloadError: The step has no collectives.
    """
    network = step.network
    programs = step.programs(configuration)
    transfers = sorted({one for program in programs for one in program.transfers})
    moved: dict[tuple[str, int], int] = defaultdict(int)
    for transfer in transfers:
        for collective, mask in network.largest([transfer]):
            moved[collective, mask] += transfer.size
    found = []
    for (collective, mask), size in sorted(moved.items(), key=lambda item: (-item[1], item[0])):
        sizes = tuple(n for at, n in enumerate(network.sizes) if n > 1 and mask >> at & 1)
        ranks = network.group_size(mask)
        routes = network.routes_of(ranks)
        names = tuple(_candidates(collective, sizes, ranks, routes) if given is None else given)
        key, group = network.key(collective, mask), network.group_name(mask)
        found.append(SearchedCollective(key, collective, group, sizes, size, names))
    if not found:
        message = "the step has no collective to choose an algorithm for"
        raise WorkloadError(message, kind="no_such_collective")
    for notation in given or ():
        _check_fits(notation, found, step)
    return found


def steps_of(collective: SearchedCollective, notation: str, step: Step) -> str:
    """Returns a hash of all that the time of an algorithm depends on, in a step."""
    ranks, routes = collective.ranks, step.network.routes_of(collective.ranks)
    found = lay_out(notation, collective=collective.name, ranks=ranks, root=0, routes=routes)
    found.verify()  # an invalid schedule is refused, not timed as its equal
    return hashlib.sha256(found.data_flow().encode()).hexdigest()


def _candidates(
    collective: str, sizes: tuple[int, ...], ranks: int, routes: Routes | None
) -> list[str]:
    """Returns the notations of the registry for a group, and those for its dimensions."""
    found = candidates(collective, ranks, routes=routes)
    supports = {one.name: collective in one.collectives for one in registry()}
    grid = "x".join(map(str, sizes))
    more = [one.format(grid=grid) for one in _ON_GRIDS] if len(sizes) > 1 else list(_IN_RINGS)
    return found + [one for one in more if supports[one.partition(":")[0]]]


def _check_fits(notation: str, collectives: Sequence[SearchedCollective], step: Step) -> None:
    """Refuses an algorithm that performs none of the collectives.

    Whether one of the platform's library does depends on the size, which trials report.
    """
    if is_library(notation) and step.platform is not None and step.platform.library is not None:
        return
    for one in collectives:
        routes = step.network.routes_of(one.ranks)
        try:
            lay_out(notation, collective=one.name, ranks=one.ranks, root=0, routes=routes)
        except TuttiError as error:
            refusal = error
        else:
            return
    raise refusal
