"""Kernels on 64 cores with coherent caches: readings of the protocol, and ratios of meshes."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING, Literal

from tutti.base.progress import watched
from tutti.networks import coherence
from tutti.networks.mesh import SmartMesh
from tutti.networks.mesh.energy import mesh_energy
from tutti_papers.smart.system import (
    BASELINE,
    CREDIT_DELAY,
    GREEDY,
    IN_BYPASS,
    IN_COMPLETE,
    IN_COMPLETE_LOCAL,
    PRIVATE,
    VCS,
    mesh,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.networks.coherence import CoherenceRun

PLAIN, SMART, CONNECTED = "baseline without collectives", "SMART", "fully connected"
KERNELS = (
    "fft_like",
    "lu_like",
    "radix_like",
    "ocean_like",
    "barnes_like",
    "water_like",
    "blackscholes_like",
    "swaptions_like",
    "canneal_like",
)
SENSITIVE = "water_like"
"""Replaces water-nsq, the program that the paper names as bound by bandwidth."""

SHOWN: dict[int, tuple[coherence.Protocol, tuple[str, ...]]] = {
    1: ("ht", (PLAIN, BASELINE, SMART, CONNECTED)),
    8: ("tc", (BASELINE, GREEDY, PRIVATE, CONNECTED)),
    9: ("ht", (BASELINE, IN_BYPASS, IN_COMPLETE, IN_COMPLETE_LOCAL, CONNECTED)),
}
"""Protocol and meshes of figures 1, 8a (key 8) and 8b (key 9)."""

PROTOCOLS: tuple[coherence.Protocol, coherence.Protocol] = ("tc", "ht")

Reading = Literal["footnotes", "corners"]
READINGS: dict[Reading, str] = {
    "footnotes": "every node is a home and collects the ACKs (footnote 3: a distributed directory "
    "that broadcasts all requests and collects all ACKs); ACKs bypass, and other flits have "
    "Prio=Local (footnote 12: better throughput; section IV-A.1: path requests carry is_ACK)",
    "corners": "four homes at the corners, the requester collects the ACKs, and all flits of "
    "SFI_Greedy and SFI_Complete have Prio=Bypass",
}
"""Readings of the protocol HT and its priorities; the first is the default."""
_CHIPS = {
    "footnotes": coherence.Chip(homes=tuple(range(64)), collector="home"),
    "corners": coherence.Chip(),
}

_OTHERS = {PLAIN: "baseline", SMART: "smart_1d", CONNECTED: "fully_connected"}

SCALE: coherence.Scale = "small"
_SATURATED = 3.0
"""A kernel saturates a mesh if its broadcasts or its ACKs take this multiple of their zero-load
latency on average, the criterion of figures 6 and 7."""
_ZERO_LOAD = 22.0
"""Zero-load latency of a broadcast or a reduction on the baseline: two cycles for each of the 11
hops to the farthest node, on average over the roots."""


def mesh_of(name: str, reading: Reading) -> SmartMesh:
    """Returns a mesh of figures 1 and 8."""
    if name in _OTHERS:
        return SmartMesh(design=_OTHERS[name], vcs=VCS, credit_delay=CREDIT_DELAY)
    made = mesh(name)
    if reading == "footnotes" and made.priority == "bypass":
        return replace(made, priority="bypass_responses")
    return made


@dataclass(frozen=True, slots=True)
class System:
    """A protocol with its reading, and kernels that run under it.

    Attributes:
        protocol: HT or TC.
        reading: The reading of HT and of priorities.
        work_per_miss: Cycles that cores compute after each miss.
    """

    protocol: coherence.Protocol
    reading: Reading = "footnotes"
    work_per_miss: int = 0

    @property
    def chip(self) -> coherence.Chip:
        """The caches and homes."""
        chip = _CHIPS[self.reading] if self.protocol == "ht" else coherence.Chip()
        return replace(chip, work_per_miss=self.work_per_miss)

    def ran(self, name: str, kernels: Sequence[str] = KERNELS) -> dict[str, CoherenceRun]:
        """Returns the run of some kernels on a mesh, all by default."""
        return ran(self, name, kernels)

    def each(self, name: str, kernels: Sequence[str] = KERNELS) -> list[CoherenceRun]:
        """Returns the runs of some kernels on a mesh."""
        return list(self.ran(name, kernels).values())

    def calm(self) -> tuple[str, ...]:
        """Returns the kernels that do not saturate the baseline.

        Section V-C: most workloads of the paper are not limited by network bandwidth.
        """
        runs = self.ran(BASELINE)
        return tuple(kernel for kernel in KERNELS if not is_saturated(runs[kernel]))

    def ratio(self, name: str, over: str, kernels: Sequence[str] = KERNELS) -> float:
        """Returns the mean ratio of runtimes to those on another mesh."""
        pairs = zip(self.each(name, kernels), self.each(over, kernels), strict=True)
        return fmean(mine.cycles / other.cycles for mine, other in pairs)

    def saved(self, name: str, over: str, kernels: Sequence[str] = KERNELS) -> float:
        """Returns the runtime saved over another mesh in per cent."""
        return 100 * (1 - self.ratio(name, over, kernels))

    def behind(self, name: str, kernels: Sequence[str] = KERNELS) -> float:
        """Returns the performance left by full connection in per cent.

        Performance is the inverse of the runtime. Only this metric is consistent with the text: a
        runtime of 0.813 with 26 % left, and one of 0.860 with 30 % left, both give 0.602 for full
        connection.
        """
        return self.saved(CONNECTED, name, kernels)

    def share(self, cast: str, kernels: Sequence[str] = KERNELS) -> float:
        """Returns the percentage of flows of a type, mean over kernels on the baseline."""
        return 100 * fmean(run.share_of(cast) for run in self.each(BASELINE, kernels))

    def acks_per_flow(self, name: str, kernels: Sequence[str] = KERNELS) -> float:
        """Returns the ACKs that arrive per reduction, mean over kernels."""
        return fmean(run.responses_per_flow for run in self.each(name, kernels))

    def energy_saved(
        self, name: str, kernels: Sequence[str] = KERNELS, *, leakage: bool = False
    ) -> float:
        """Returns the mesh energy saved over the baseline in per cent."""
        mine, base = (energy(self.each(one, kernels), leakage=leakage) for one in (name, BASELINE))
        return 100 * (1 - mine / base)


def ran(of: System, name: str, kernels: Sequence[str] = KERNELS) -> dict[str, CoherenceRun]:
    """Runs kernels on a mesh, each once."""
    known, made = _known(of, name), mesh_of(name, of.reading)
    # The last kernel takes the longest: the other thread then has the rest to do.
    missing = [kernel for kernel in reversed(kernels) if kernel not in known]
    cases = [
        coherence.Case(kernel=kernel, protocol=of.protocol, mesh=made, scale=SCALE, chip=of.chip)
        for kernel in missing
    ]
    known.update(zip(missing, coherence.run_all(cases), strict=True))
    return {kernel: known[kernel] for kernel in kernels}


@functools.cache
def _known(of: System, name: str) -> dict[str, CoherenceRun]:
    """The runs on a mesh so far, by kernel."""
    del of, name
    return {}


def found(figure: int) -> dict[str, dict[str, CoherenceRun]]:
    """Returns the runs of a figure by mesh and kernel."""
    protocol, names = SHOWN[figure]
    return {name: ran(System(protocol), name) for name in watched(f"kernels, {protocol}", names)}


def rate(run: CoherenceRun) -> float:
    """Returns the broadcasts per cycle of a run."""
    return sum(one.count for one in run.flows if one.cast == "broadcast") / run.cycles


def is_saturated(run: CoherenceRun) -> bool:
    """Returns whether a run on the baseline saturates it."""
    one_to_many = run.broadcasts.mean
    # The latency of reductions starts with their broadcast.
    many_to_one = run.reductions.mean - one_to_many - run.chip["snoop_cycles"]
    return bool(max(one_to_many, many_to_one) > _SATURATED * _ZERO_LOAD)


def energy(runs: Sequence[CoherenceRun], *, leakage: bool = False) -> float:
    """Returns the mesh energy of runs in joules."""
    reports = (mesh_energy(run.counts, run.case.mesh) for run in runs)
    return sum((report.total if leakage else report.dynamic).nominal for report in reports)
