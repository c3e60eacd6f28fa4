"""A network of routers, made of a topology; and the registries of what it can be told."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tutti import _core
from tutti.errors import NocError
from tutti.noc.settings import Deadlock, NarrowLinks, Router, Trace, Traffic
from tutti.units import Size, Time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.topology import Topology

Supply = Traffic | tuple[Traffic, ...] | Trace
"""Traffic of one class, of several, or recorded."""


@dataclass(frozen=True, kw_only=True)
class Network:
    """Everything but the traffic.

    Every switch and router of the topology is a router, and so is every NPU, unless it hangs on one
    switch or router by one link each way: then it injects and ejects over that link.

    Attributes:
        topology: The graph. Latencies are rounded up to whole cycles; a link whose rate is less
            than a flit per cycle is busy with each flit for as long as that takes.
        routing: Which route packets take, as `name` or `name:argument`; `routings` lists them.
        router: What routers are like.
        cycle: The length of a clock cycle, such as ``"1 ns"``.
        flit: The size of a flit, such as ``"16 B"``.
        grid: The nodes along each dimension, for patterns along a grid; that of a mesh or torus if
            it is left out.
        seed: Of everything that is random.
        narrow_links: What becomes of links that take longer than a cycle for a flit: `serialize`
            has them busy with each for as long as it takes.
        deadlock: What becomes of a routing with a cyclic dependency among its channels: `refuse`
            refuses it, and a network too large to check; `warn` has the command line and `remarks`
            report it.
    """

    topology: Topology
    routing: str = "shortest_path"
    router: Router = field(default_factory=Router)
    cycle: str | Time = "1 ns"
    flit: str | Size = "16 B"
    grid: tuple[int, ...] | None = None
    seed: int = 1
    narrow_links: NarrowLinks = "refuse"
    deadlock: Deadlock = "warn"

    @property
    def cycle_ps(self) -> int:
        """The length of a cycle in picoseconds."""
        return Time.of_any(self.cycle).ps

    def core(self, classes: Sequence[tuple[int, int] | None]) -> _core.FlitNetwork:
        """What the core works with.

        Args:
            classes: For each class of traffic its first and its last VC; None is all.

        Raises:
            NocError: Settings are out of range or clash, the routing does not fit, or it can
                deadlock, or may for all that is known, and that is refused.
        """
        if not 0 <= self.seed < 1 << 64:
            message = f"{self.seed} is no seed: expected a whole number from 0 to 2^64 - 1"
            raise NocError(message, kind="out_of_range")
        made = self._made(classes)
        if self.deadlock == "refuse" and not made.check_deadlock():
            raise NocError(f"{self._unchecked}, and that is to be refused", kind="deadlock_unknown")
        return made

    def remarks(
        self, classes: Sequence[tuple[int, int] | None] = (None,), longest: int = 1
    ) -> list[str]:
        """What a person should know before anything is run: whether the routing can deadlock, and
        whether buffers are too small for the length of a link.

        Args:
            classes: As for `core`.
            longest: Flits of the longest packet.

        Raises:
            NocError: Settings are out of range or clash, or the routing does not fit.
        """
        made = self._made(classes)
        return [*self._deadlocks(made), *self._throttled(made, longest)]

    def _deadlocks(self, made: _core.FlitNetwork) -> list[str]:
        if self.deadlock != "warn":
            return []
        try:
            known = made.check_deadlock()
        except NocError as error:
            if error.kind != "can_deadlock":
                raise
            return [error.problem]
        return [] if known else [f"{self._unchecked}; a run that deadlocks says so"]

    def _throttled(self, made: _core.FlitNetwork, longest: int) -> list[str]:
        found = made.throttled(longest)
        if found is None:
            return []
        source, target, cycles, room, needs, buffer, links = found
        vcs = room // self.router.buffer
        held = f"a VC of {room}" if vcs == 1 else f"{vcs} VCs of {self.router.buffer}"
        sent = f"packets of {longest} flits on {held}" if vcs == 1 else f"packets on {held}"
        others = f", the slowest of {links:,} such links," if links > 1 else ""
        said = f"a credit takes {cycles} cycles round {source} > {target}: {sent} flits fill that"
        most = f"{100 * room // needs} % at most; buffer = {buffer} would let them fill it"
        return [f"{said} link{others} to {most}"]

    @property
    def _unchecked(self) -> str:
        """That nobody knows whether the routing can deadlock, and why."""
        nodes = f"{self.topology.ranks:,} nodes"
        return (
            f"whether routing `{self.routing}` can deadlock is unchecked: between {nodes} it has "
            "too many routes to follow them all"
        )

    def _made(self, classes: Sequence[tuple[int, int] | None]) -> _core.FlitNetwork:
        every = (0, max(self.router.vcs - 1, 0))
        ranges = [every if given is None else given for given in classes]
        return _core.FlitNetwork(
            self.topology.core,
            self.routing,
            self.router.core_settings(ranges, self.seed),
            cycle_ps=self.cycle_ps,
            flit=Size.of_any(self.flit).bytes,
            narrow_links=self.narrow_links == "serialize",
            grid=None if self.grid is None else list(self.grid),
        )


def every(traffic: Traffic | Sequence[Traffic]) -> tuple[Traffic, ...]:
    """Traffic of one class or several, as several."""
    return (traffic,) if isinstance(traffic, Traffic) else tuple(traffic)


def classes_of(traffic: Supply) -> list[tuple[int, int] | None]:
    """For each class of traffic its first and its last VC."""
    if isinstance(traffic, Trace):
        return [None] if traffic.vcs is None else list(traffic.vcs)
    return [load.vcs for load in every(traffic)]


def longest_of(traffic: Supply) -> int:
    """Flits of the longest packet; 1 for a trace, which is not looked through for that."""
    if isinstance(traffic, Trace):
        return 1
    sizes = (
        size for load in every(traffic) for size in str(load.packet).partition("/")[0].split(",")
    )
    return max((int(size) for size in sizes if size.strip().isdecimal()), default=1)


def routings() -> list[_core.FlitRegistryEntry]:
    """Every routing, with what may follow its colon and a sentence."""
    return _core.flit_routings()


def patterns() -> list[_core.FlitRegistryEntry]:
    """Every traffic pattern, with what follows its colon and a sentence."""
    return _core.flit_patterns()
