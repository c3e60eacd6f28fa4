"""A design of a sweep that is a network of routers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import fsum
from typing import TYPE_CHECKING

from tutti.base.files import limits
from tutti.base.files.kinds import validated_file
from tutti.base.files.mistakes import mistake
from tutti.base.files.reader import read_text
from tutti.base.units import Size
from tutti.networks.flit.files.network_file import resolve_noc
from tutti.networks.flit.files.tables import RawNoc
from tutti.networks.flit.network import classes_of
from tutti.networks.flit.placement import placed
from tutti.sweeps.design_row import energies, number

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from tutti.networks.flit import NocRun, Traffic
    from tutti.networks.flit.files.network_file import Noc
    from tutti.sweeps.worker import Row


@dataclass(frozen=True)
class FlitDesign:
    """A network of routers with its traffic.

    Attributes:
        raw: The tables of its file.
        noc: The resolved network.
        folder: The base of relative paths.
        traffic: The traffic, which has an offered load.
    """

    raw: RawNoc
    noc: Noc
    folder: Path
    traffic: tuple[Traffic, ...]

    @classmethod
    def of(cls, tables: dict[str, Any], source: str, folder: Path) -> FlitDesign:
        """Returns the design that the tables of a network file describe.

        Raises:
            ConfigError: The network or its traffic is invalid, or has no offered load.
        """
        raw = validated_file(RawNoc, tables, source=source)
        noc = resolve_noc(tables, source=source, folder=folder)
        return cls(raw, noc, folder, _open_loop(noc))

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return self.noc.network.topology.ranks

    @property
    def work(self) -> int:
        """Cycles of a run, times nodes."""
        return self.nodes * (self.noc.plan.warmup + self.noc.plan.measure)

    def label(self) -> Row:
        """Returns what is known without a simulation."""
        network = self.noc.network
        return {
            "topology": network.topology.name,
            "routing": network.routing,
            "nodes": self.nodes,
            "cycle_ps": network.cycle_ps,
            "flit_bytes": Size.of_any(network.flit).bytes,
            "load": fsum(load.rate for load in self.traffic),
        }

    def deadlock(self) -> str | None:
        """Returns how packets can form a cyclic dependency, or None."""
        return self.noc.network.can_deadlock(classes_of(self.traffic))

    def inputs(self, *, at_load: bool) -> tuple[object, ...]:
        """Returns what a measurement depends on; a search does not depend on the total load."""
        traffic = self.traffic
        if not at_load:
            total = fsum(load.rate for load in traffic)
            traffic = tuple(replace(load, rate=load.rate / total) for load in traffic)
        file = self.raw.topology.file
        graph = read_text(self.folder / file, limits.Bytes.TABLE, "a graph") if file else None
        settings = self.raw.model_dump_json(exclude={"title", "output", "traffic"})
        return (settings, graph, repr(traffic))

    def search(self, tolerance: float | None) -> Row:
        """Returns the saturation load, the latency at zero load and the area."""
        found = placed(self.noc.network, self.traffic, self.noc.plan, tolerance)
        saturation, zero_load, ideal = found.saturation, found.zero_load, found.ideal
        row: Row = {
            "saturation": saturation.load,
            "unstable_load": saturation.below,
            "too_short": saturation.too_short or None,
            "tolerance": found.tolerance,
            "capacity": ideal.load if ideal else None,
            "bottleneck": ideal.bottleneck if ideal else None,
            "zero_load_latency": number(zero_load.latency.mean) if zero_load.is_stable else None,
            "zero_load_latency_half_width": (
                number(zero_load.latency.half_width) if zero_load.is_stable else None
            ),
            "hops": number(zero_load.hops.mean) if zero_load.is_stable else None,
            "runs": len(saturation.runs),
        }
        if self.noc.technology is not None:
            area = zero_load.area(self.noc.technology).total_um2
            row |= {
                "area_mm2": area.nominal / 1e6,
                "area_low_mm2": area.low / 1e6,
                "area_high_mm2": area.high / 1e6,
            }
        return row

    def run(self) -> Row:
        """Returns latency, throughput and energy at the load."""
        run = self.noc.run()
        row: Row = {"state": run.ending, "reason": run.too_short or None}
        if run.ending == "deadlocked":
            return row
        row |= {"accepted": run.accepted.mean}
        if run.is_stable:
            row |= {
                "latency": run.latency.mean,
                "latency_half_width": number(run.latency.half_width),
                "latency_99": run.quantiles["99"],
            }
        return row | _energy(self.noc, run)


def _open_loop(noc: Noc) -> tuple[Traffic, ...]:
    """Returns the traffic, which has an offered load.

    Raises:
        ConfigError: It is a trace, a closed loop or a batch, or has no load.
    """
    traffic = noc.scalable
    key = "traffic[0]" if len(traffic) > 1 else "traffic"
    for load in traffic:
        for name in ("outstanding", "requests"):
            if getattr(load, name) is not None:
                raise mistake(
                    "closed loops and batches have no offered load to sweep", source=noc.source,
                    key=f"{key}.{name}", expected="traffic with a `rate` only",
                )  # fmt: skip
    if not fsum(load.rate for load in traffic) > 0:
        raise mistake(
            "the load is 0", source=noc.source, key=f"{key}.rate",
            expected="the load at which latency and energy are compared, above 0",
        )  # fmt: skip
    return traffic


def _energy(noc: Noc, run: NocRun) -> Row:
    """Returns mean power, and energy per bit that arrives."""
    if noc.technology is None:
        return {}
    total = run.energy(noc.technology).total
    network = noc.network
    seconds = run.window * network.cycle_ps * 1e-12
    flits = run.accepted.mean * network.topology.ranks * run.window
    bits = flits * 8 * Size.of_any(network.flit).bytes
    return energies(total, seconds, bits)
