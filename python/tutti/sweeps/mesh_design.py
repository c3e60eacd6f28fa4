"""A design of a sweep that is a mesh with single-cycle multi-hop links (SMART)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import fsum
from typing import TYPE_CHECKING

from tutti.base.files.kinds import validated_file
from tutti.base.files.mistakes import mistake
from tutti.networks.mesh.energy import mesh_energy
from tutti.networks.mesh.files import RawSmart, resolve_smart
from tutti.networks.mesh.placement import placed
from tutti.networks.mesh.traffic import UNITS, sources_of
from tutti.sweeps.design_row import energies, number

if TYPE_CHECKING:
    from typing import Any

    from tutti.networks.mesh import MeshRun
    from tutti.networks.mesh.files import Smart
    from tutti.sweeps.worker import Row

FLIT_BITS, TILE, CYCLE_PS = 128, "1 mm", 1000
"""Flit width, link length and cycle time of energies: mesh files do not state them."""


@dataclass(frozen=True)
class MeshDesign:
    """A mesh with its traffic.

    Attributes:
        raw: The tables of its file.
        smart: The resolved mesh.
    """

    raw: RawSmart
    smart: Smart

    @classmethod
    def of(cls, tables: dict[str, Any], source: str) -> MeshDesign:
        """Returns the design that the tables of a mesh file describe.

        Raises:
            ConfigError: The mesh or its traffic is invalid, or has no offered load.
        """
        raw = validated_file(RawSmart, tables, source=source)
        smart = resolve_smart(tables, source=source)
        first = smart.traffic[0]
        key = "traffic[0]" if len(smart.traffic) > 1 else "traffic"
        if not first.rate > 0:
            raise mistake(
                "the load is 0", source=source, key=f"{key}.rate",
                expected="the load at which latency and energy are compared, above 0 "
                f"{UNITS[first.kind]}",
            )  # fmt: skip
        return cls(raw, smart)

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return self.smart.network.nodes

    @property
    def work(self) -> int:
        """Cycles of a run, times nodes and replications."""
        plan = self.smart.plan
        return self.nodes * plan.seeds * (plan.warmup + plan.measure)

    def label(self) -> Row:
        """Returns what is known without a simulation; the load is the rate of the first traffic."""
        mesh, first = self.smart.network, self.smart.traffic[0]
        return {
            "topology": f"mesh:{mesh.columns}x{mesh.rows}",
            "routing": "yx" if mesh.settings["yx"] else "xy",
            "mesh_design": mesh.design,
            "nodes": self.nodes,
            "load": first.rate,
            "load_unit": UNITS[first.kind],
        }

    def deadlock(self) -> str | None:
        """Returns None: XY routing has no cyclic dependency, and runs report deadlocks."""
        return None

    def inputs(self, *, at_load: bool) -> tuple[object, ...]:
        """Returns what a measurement depends on; a search depends on proportions of rates."""
        traffic = self.smart.traffic
        if not at_load:
            first = traffic[0].rate
            traffic = tuple(replace(each, rate=each.rate / first) for each in traffic)
        settings = self.raw.model_dump_json(exclude={"title", "output", "traffic"})
        return ("mesh", settings, repr(traffic))

    def search(self, tolerance: float | None) -> Row:
        """Returns the saturation load and the latency at zero load."""
        found = placed(self.smart.network, self.smart.traffic, self.smart.plan, tolerance)
        row: Row = {
            "saturation": found.saturation,
            "unstable_load": found.unstable,
            "too_short": found.too_short or None,
            "tolerance": found.tolerance,
            "capacity": found.capacity,
            "runs": found.runs,
        }
        if found.zero_load.is_stable:
            latency = found.zero_load.latency
            row["zero_load_latency"] = number(latency.mean)
            row["zero_load_latency_half_width"] = number(latency.half_width)
        return row

    def run(self) -> Row:
        """Returns latency, throughput and energy at the load."""
        from tutti.networks.mesh import run as run_mesh

        mesh, traffic = self.smart.network, self.smart.traffic
        run = run_mesh(mesh, traffic, self.smart.plan, threads=1)
        row: Row = {"state": run.ending, "reason": run.too_short or None}
        if run.ending == "deadlocked":
            return row
        row["accepted"] = number(run.accepted.mean / sources_of(mesh, traffic[0]))
        if run.is_stable and run.loads[0].messages:
            row |= {
                "latency": run.latency.mean,
                "latency_half_width": number(run.latency.half_width),
                "latency_99": round(run.loads[0].quantiles["99"]),
            }
        return row | _energy(run)


def _energy(run: MeshRun) -> Row:
    """Returns mean power, and energy per bit of each destination or response.

    A mesh without routers has no energy model.
    """
    settings = run.mesh.settings
    if str(settings["design"]).startswith("fully_connected"):
        return {}
    classes = 1 + max(traffic.message_class for traffic in run.traffic)
    total = mesh_energy(
        run.counts, run.mesh, flit_bits=FLIT_BITS, tile=TILE, cycle=f"{CYCLE_PS} ps",
        classes=[(settings["vcs"], settings["depth"], True)] * classes,
    ).total  # fmt: skip
    cycles = run.counts["cycles"]
    per_cycle = fsum(load.accepted.mean * load.parts.mean for load in run.loads if load.messages)
    return energies(total, cycles * CYCLE_PS * 1e-12, per_cycle * cycles * FLIT_BITS)
