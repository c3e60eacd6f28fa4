"""A simulated collective: figures, timeline, links and energy."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from tutti import _core
from tutti.energy.errors import EnergyError
from tutti.platforms.library import with_schedule

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

    from tutti.base.units import Size
    from tutti.energy.link_classes import Technologies
    from tutti.energy.package import Package
    from tutti.energy.technology import AreaReport, EnergyReport
    from tutti.networks.flit import Events
    from tutti.networks.flit.events import Powered
    from tutti.platforms.contention import MeshFlits
    from tutti.platforms.machine import Platform
    from tutti.schedules.ir import Schedule


class Run:
    """A simulated collective.

    Attributes:
        schedule: The schedule.
        name: The name in results: that of the schedule, or of the library's algorithm.
        launch: What a rank does before its first op: `launch`, or `latency` if it is the latency of
            all messages in the library's model.
        platform: The platform.
        size: The payload, by the collective's convention.
        datatype: The datatype of the elements.
        completion_ps: The time from the first rank's entry to the last rank's end.
        finish_skew_ps: The time from the first rank's end to the last rank's end.
        messages: The number of messages sent; a forked message counts once.
        message_bytes: Bytes in these messages.
        delivered: The number of messages received: one per receiver of a forked message, one for
            several that the network combined. Equals `messages` without multicast and reduction.
        delivered_bytes: Bytes in these messages.
        not_verified: The reason why the schedule was not verified before the run; None if it was
            verified.
    """

    def __init__(
        self,
        case: _core.Case,
        *,
        bound_case: Callable[[], _core.Case],
        schedule: Schedule,
        platform: Platform,
        size: Size,
        datatype: str,
        not_verified: str | None,
        record: bool,
        bound_on: Platform | None = None,
    ) -> None:
        """Runs the case; use :func:`simulate`. The bound is that of another case, on the platform
        of lower bounds.
        """
        self._case = case
        self._bound_case = bound_case
        self._bound_on = bound_on or platform
        self._run = _core.simulate(case, record=record)
        self._has_record = record
        self.schedule = schedule
        self.name = schedule.name
        self.launch = "launch"
        self.platform = platform
        self.size = size
        self.datatype = datatype
        self.not_verified = not_verified
        self.completion_ps = self._run.completion_ps
        self.finish_skew_ps = self._run.finish_skew_ps
        self.messages = self._run.messages
        self.message_bytes = self._run.message_bytes
        self.delivered = self._run.delivered
        self.delivered_bytes = self._run.delivered_bytes

    @property
    def title(self) -> str:
        """The name in results, and that of the schedule if it differs."""
        return with_schedule(self.name, self.schedule.name)

    @cached_property
    def closed_form_ps(self) -> int | None:
        """The completion time of the algorithm's closed form, or None."""
        return self._case.closed_form_ps()

    @cached_property
    def bound(self) -> _core.LowerBound:
        """The lower bound of the platform, and its parts; empty for a phase of a schedule."""
        return self._bound_case().bound()

    @cached_property
    def bound_without_multicast_ps(self) -> int | None:
        """The lower bound of an all_gather if switches do not multicast, in ps.

        None if it is the same, or if the schedule multicasts.
        """
        from tutti.collectives.bounds import bound_without_multicast

        given = (self.schedule, self._bound_on, self.size, self.datatype)
        bound = bound_without_multicast(*given) if self.messages == self.delivered else None
        return bound if bound and bound > self.bound.at_least_ps else None

    @property
    def completion_time(self) -> int:
        """The completion time in picoseconds."""
        return self.completion_ps

    @property
    def algbw(self) -> float:
        """Algorithm bandwidth in bytes per second: the size over the completion time."""
        return _core.algbw(self.size.bytes, self.completion_ps)

    @property
    def busbw(self) -> float:
        """Bus bandwidth in bytes per second: comparable with a link's rate (nccl-tests)."""
        collective, ranks = self.schedule.collective, self.schedule.ranks
        return _core.busbw(collective, ranks, self.size.bytes, self.completion_ps)

    @property
    def of_limit(self) -> float:
        """The lower bound divided by the completion time; 1 is optimal."""
        return self.bound.at_least_ps / self.completion_ps

    @property
    def finish_ps(self) -> list[int]:
        """The time of each rank's last op."""
        return self.frame["finish_ps"].to_list()

    @cached_property
    def frame(self) -> pl.DataFrame:
        """When each rank entered and left: columns rank, start_ps, finish_ps."""
        from tutti.collectives.frames import rank_frame

        return rank_frame(self._run)

    @cached_property
    def timeline(self) -> pl.DataFrame:
        """The activities of every rank: see :func:`tutti.collectives.frames.timeline_frame`."""
        from tutti.collectives.frames import timeline_frame

        return timeline_frame(self._recorded, self.schedule, self.launch)

    @cached_property
    def messages_frame(self) -> pl.DataFrame:
        """Every message: see :func:`tutti.collectives.frames.messages_frame`."""
        from tutti.collectives.frames import messages_frame

        return messages_frame(self._recorded)

    @cached_property
    def critical_path(self) -> _core.CriticalPath:
        """The critical path: its parts from the first start to the last end, and the time of each
        cause in ps, the sum of which is the completion time.

        The causes are latency, bandwidth, contention, reduction, endpoint and other, which is
        noise, arrival and computation. The core's `critical_path` defines them.
        """
        return self._recorded.critical_path(self._case)

    @cached_property
    def links(self) -> pl.DataFrame:
        """The traffic of each link: see :func:`tutti.collectives.frames.link_frame`."""
        from tutti.collectives.frames import link_frame

        return link_frame(self._run, self.platform)

    @cached_property
    def channels(self) -> pl.DataFrame:
        """The traffic of each channel of a router network: see
        `tutti.networks.flit.NocRun.channels`.

        Raises:
            EnergyError: The platform has no flits.
        """
        from tutti.networks.flit.events import channel_frame

        return channel_frame(self._powered.channels)

    @cached_property
    def events(self) -> Events:
        """Counts of the events in routers.

        Raises:
            EnergyError: The platform has no flits.
        """
        from tutti.networks.flit.events import events_of

        return events_of(self._powered.channels, self._powered.vc_grants)

    @cached_property
    def mesh_counts(self) -> dict[str, Any]:
        """Counts of the events in a mesh with multicast and reduction; see docs/models/smart.md.

        They include `injected` and `ejected` flits, their `link_hops`, `bypasses` of routers,
        responses `merged` into others, path `requests`, and `beyond`: reductions that started
        although the tables were full.

        Raises:
            EnergyError: The platform has no such mesh.
        """
        used = self._run.mesh_use()
        if used is None:
            raise EnergyError("the platform has no mesh", kind="no_flits")
        counts, beyond = used
        return {**counts, "beyond": beyond}

    def energy(self, technology: Technologies | None = None) -> EnergyReport:
        """Returns the energy of routers and links: of events, and of leakage until the last rank's
        end.

        With packets, the energy follows from the bytes that links carried (`tutti.energy.package`).

        Args:
            technology: The technology; that of the platform's flits, mesh or package by default.

        Raises:
            EnergyError: The technology is missing, the platform has neither flits, a mesh nor
                packets, or a link has no length.
        """
        if self._has_packets:
            return self._package(technology).energy_of(self)
        contention = self.platform.effective_contention
        if contention.kind == "mesh":
            return self._mesh_energy(contention, technology)
        return self._powered.energy(self._technology(technology))

    def area(self, technology: Technologies | None = None) -> AreaReport:
        """Returns the area of routers and links.

        Args:
            technology: The technology; that of the platform's flits or package by default.

        Raises:
            EnergyError: The technology is missing, the platform has neither flits nor packets, or a
                link has no length.
        """
        if self._has_packets and self.platform.routes is not None:
            return self._package(technology).area_of(self.platform.routes.topology)
        return self._powered.area(self._technology(technology))

    def _mesh_energy(self, contention: MeshFlits, given: Technologies | None) -> EnergyReport:
        from tutti.energy.link_classes import ClassTechnologies
        from tutti.networks.mesh.energy import mesh_energy

        technology = given or contention.technology
        if technology is None or isinstance(technology, ClassTechnologies):
            message = "the technology of the routers and links of the mesh is missing"
            raise EnergyError(message, kind="no_technology")
        return mesh_energy(
            self.mesh_counts, contention.carrying, technology,
            flit_bits=8 * contention.flit.bytes, tile=contention.tile, cycle=contention.cycle,
        )  # fmt: skip

    @property
    def _has_packets(self) -> bool:
        return self.platform.effective_contention.kind == "packet"

    def _package(self, technology: Technologies | None) -> Package:
        from tutti.energy.link_classes import ClassTechnologies
        from tutti.energy.package import Package

        if isinstance(technology, ClassTechnologies):
            message = "packages have `technology` and `on_chip` instead of link classes"
            raise EnergyError(message, kind="no_technology")
        contention = self.platform.effective_contention
        known = contention.package if contention.kind == "packet" else None
        if known is None and technology is None:
            message = "the technology of the package is missing"
            raise EnergyError(message, kind="no_technology")
        known = known or Package()
        return known.model_copy(update={"technology": technology}) if technology else known

    def _technology(self, given: Technologies | None) -> Technologies:
        contention = self.platform.effective_contention
        known = given or (contention.technology if contention.kind == "flit" else None)
        if known is None:
            message = "the technology of the routers and links is missing"
            raise EnergyError(message, kind="no_technology")
        return known

    @cached_property
    def _powered(self) -> Powered:
        from tutti.networks.flit.events import Powered, sent_by_channel

        used, made = self._run.flit_use(), self.platform.routers
        contention, routes = self.platform.effective_contention, self.platform.routes
        if used is None or made is None or contention.kind != "flit" or routes is None:
            message = "events of routers and links require a platform with flits"
            raise EnergyError(message, kind="no_flits")
        sent, vc_grants = used
        cycle = contention.cycle.ps
        cycles = -(-self.completion_ps // cycle)
        channels = sent_by_channel(made, sent, cycle=cycle, window=cycles)
        return Powered(contention.network(routes), made, channels, cycles, vc_grants)

    @cached_property
    def _recorded(self) -> _core.Run:
        """The run with a record, which is repeated on first use unless the run recorded one."""
        return self._run if self._has_record else _core.simulate(self._case, record=True)

    def __repr__(self) -> str:
        time = _core.format_time(self.completion_ps)
        name = f"{self.title} on {self.schedule.ranks} ranks"
        proof = "" if self.not_verified is None else ", schedule not verified"
        return f"<Run of {name}, {self.size}: {time}{proof}>"

    def _repr_html_(self) -> str:
        """The HTML for notebooks: figures, and the timeline of a small run."""
        from tutti.collectives.view.run import run_view
        from tutti.view.notebook import view_html

        return view_html(run_view(self))
