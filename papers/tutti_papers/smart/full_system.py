"""Figures 1 and 8: kernels on 64 cores with coherent caches, instead of SPLASH-2 and PARSEC.

The paper runs the parallel sections of SPLASH-2 and PARSEC. tutti runs small kernels of the same
kinds. Only ratios between meshes are compared, not kernels with the programs they resemble.
"""

from __future__ import annotations

import functools
from statistics import fmean
from typing import TYPE_CHECKING

import polars as pl

from tutti.base.progress import watched
from tutti.networks import coherence
from tutti.networks.mesh import SmartMesh
from tutti.networks.mesh.energy import mesh_energy
from tutti_papers import Exhibit, ExhibitResult, looks
from tutti_papers.claims import verdict_line
from tutti_papers.exhibits import COLUMN, PublishedBar, plot_bars
from tutti_papers.smart.conclusions import near_ideal, of_runtimes
from tutti_papers.smart.published import STATED, VAGUE, Row, claims_of
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
    from collections.abc import Mapping
    from pathlib import Path

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

SHOWN = {
    1: ("ht", (PLAIN, BASELINE, SMART, CONNECTED)),
    8: ("tc", (BASELINE, GREEDY, PRIVATE, CONNECTED)),
    9: ("ht", (BASELINE, IN_BYPASS, IN_COMPLETE, IN_COMPLETE_LOCAL, CONNECTED)),
}
"""Protocol and meshes of figures 1, 8a (key 8) and 8b (key 9)."""

_OTHERS = {PLAIN: "baseline", SMART: "smart_1d", CONNECTED: "fully_connected"}
_PROTOCOLS: tuple[coherence.Protocol, coherence.Protocol] = ("tc", "ht")
ALONE = "lu_like"
"""The kernel that shares data and waits for the network least under HT, 8 % of the time. Like most
programs of the paper, it is not bound by bandwidth."""

SCALE: coherence.Scale = "small"


def _mesh(name: str) -> SmartMesh:
    if name in _OTHERS:
        return SmartMesh(design=_OTHERS[name], vcs=VCS, credit_delay=CREDIT_DELAY)
    return mesh(name)


@functools.cache
def ran(protocol: coherence.Protocol, name: str) -> dict[str, CoherenceRun]:
    """Runs every kernel on a mesh; cached."""
    cases = [
        coherence.Case(kernel=kernel, protocol=protocol, mesh=_mesh(name), scale=SCALE)
        for kernel in KERNELS
    ]
    return dict(zip(KERNELS, coherence.run_all(cases), strict=True))


def _found(figure: int) -> dict[str, dict[str, CoherenceRun]]:
    protocol, names = SHOWN[figure]
    return {name: ran(protocol, name) for name in watched(f"kernels, {protocol}", names)}


def _slower(figure: int, name: str, over: str, kernels: tuple[str, ...] = KERNELS) -> float:
    """Returns the mean ratio of runtimes to those on another mesh."""
    protocol, _ = SHOWN[figure]
    mine, other = ran(protocol, name), ran(protocol, over)
    return fmean(mine[kernel].cycles / other[kernel].cycles for kernel in kernels)


def _saved(figure: int, name: str, over: str, kernels: tuple[str, ...] = KERNELS) -> float:
    """Returns the runtime saved over another mesh in per cent."""
    return 100 * (1 - _slower(figure, name, over, kernels))


def _energy(name: str, *, leakage: bool = False) -> float:
    """Returns the mesh energy of all kernels under HT in joules."""
    total = 0.0
    for run in ran("ht", name).values():
        report = mesh_energy(run.counts, run.case.mesh)
        total += (report.total if leakage else report.dynamic).nominal
    return total


def _energy_saved(name: str, *, leakage: bool = False) -> float:
    return 100 * (1 - _energy(name, leakage=leakage) / _energy(BASELINE, leakage=leakage))


def _share(protocol: coherence.Protocol, cast: str) -> float:
    """Returns the percentage of flows of a type, mean over kernels on the baseline."""
    return 100 * fmean(run.share_of(cast) for run in ran(protocol, BASELINE).values())


def _acks_per_flow(name: str) -> float:
    return fmean(run.responses_per_flow for run in ran("ht", name).values())


def rows_of_figure_1() -> list[Row]:
    """Returns row A1."""
    apart = [100 * (_slower(1, name, CONNECTED) - 1) for name in (BASELINE, SMART)]
    return [
        Row(row="A1", quantity="HT, Baseline+Collective: runtime saved, %", published=18.7,
            ours=_saved(1, BASELINE, PLAIN)),
        Row(row="A1", quantity="HT, SMART: runtime saved, %", published=14.0,
            ours=_saved(1, SMART, PLAIN)),
        Row(row="A1", quantity="HT: minimum over fully connected, %", published=26,
            ours=min(apart)),
        Row(row="A1", quantity="HT: maximum over fully connected, %", published=30,
            ours=max(apart)),
    ]  # fmt: skip


def rows_of_tokens() -> list[Row]:
    """Returns rows D1."""
    private, shared = (ran("tc", name) for name in (PRIVATE, GREEDY))
    more = fmean(
        private[kernel].broadcasts.mean - shared[kernel].broadcasts.mean for kernel in KERNELS
    )
    one = (SENSITIVE,)
    return [
        Row(row="D1", quantity="TC: broadcast flows, %", published=52,
            ours=_share("tc", "broadcast")),
        Row(row="D1", quantity="TC, SFO_Greedy: runtime saved, %", published=16,
            ours=_saved(8, GREEDY, BASELINE)),
        Row(row="D1", quantity="TC: runtime on PVT over SVT", published=1.0,
            ours=_slower(8, PRIVATE, GREEDY), confidence=VAGUE),
        Row(row="D1", quantity="TC, water, SVT: runtime saved, %", published=16,
            ours=_saved(8, GREEDY, BASELINE, one)),
        Row(row="D1", quantity="TC, water, PVT: runtime saved, %", published=35,
            ours=_saved(8, PRIVATE, BASELINE, one)),
        Row(row="D1", quantity=f"TC, SFO_Greedy, {ALONE} alone: runtime saved, %", published=16,
            ours=_saved(8, GREEDY, BASELINE, (ALONE,)), confidence=VAGUE),
        Row(row="D1", quantity="TC: broadcast latency, PVT minus SVT, cycles", published=3,
            ours=more),
    ]  # fmt: skip


def _row(name: str, quantity: str, published: float, ours: float, sure: str = STATED) -> Row:
    return Row(row=name, quantity=quantity, published=published, ours=ours, confidence=sure)


def rows_of_home() -> list[Row]:
    """Returns rows D2 to D5, and the abstract's values of them."""
    acks = {name: _acks_per_flow(name) for name in (BASELINE, IN_BYPASS, IN_COMPLETE)}
    tables = fmean(run.table_occupancy for run in ran("ht", IN_COMPLETE).values())
    in_flight = fmean(run.open_reductions for run in ran("ht", IN_COMPLETE).values())
    energy = {name: _energy_saved(name) for name in (IN_COMPLETE, IN_COMPLETE_LOCAL, IN_BYPASS)}
    return [
        *_runtimes_of_home(),
        _row("D3", "HT, baseline: ACKs per flow", 10, acks[BASELINE], VAGUE),
        _row("D3", "HT, SFI_Greedy: ACKs per flow", 5.5, acks[IN_BYPASS], VAGUE),
        _row("D3", "HT, SFI_Complete: ACKs per flow", 1, acks[IN_COMPLETE]),
        _row("D4", "HT, SFI_Complete: energy saved, %", 50, energy[IN_COMPLETE]),
        _row("D4", "HT, SFI_Complete, Prio=Local: energy saved, %", 50, energy[IN_COMPLETE_LOCAL]),
        _row("D4", "HT, SFI_Greedy: energy saved, %", 29, energy[IN_BYPASS]),
        _row("D5", "HT, SFI_Complete: reductions in flight", 20, in_flight, VAGUE),
        _row("D5", "HT, SFI_Complete: ART entries in use per router", 20, tables, VAGUE),
        _row("E", "HT: runtime saved, %", 14, _saved(9, IN_COMPLETE, BASELINE)),
        _row("E", "HT: energy saved, %", 50, energy[IN_COMPLETE]),
    ]


def _runtimes_of_home() -> list[Row]:
    alone = (ALONE,)
    greedy, complete = f"HT, SFI_Greedy, {ALONE} alone", f"HT, SFI_Complete, {ALONE} alone"

    def apart(kernels: tuple[str, ...]) -> float:
        return 100 * (_slower(9, IN_COMPLETE, CONNECTED, kernels) - 1)

    return [
        _row("D2", "HT: broadcast flows, %", 14, _share("ht", "broadcast")),
        _row("D2", "HT: ACK flows, %", 14, _share("ht", "responses")),
        _row("D2", "HT, SFI_Greedy: runtime saved, %", 11, _saved(9, IN_BYPASS, BASELINE)),
        _row("D2", "HT, SFI_Complete: runtime saved, %", 14, _saved(9, IN_COMPLETE, BASELINE)),
        _row("D2", "HT, SFI_Complete, Prio=Local: runtime saved, %", 14,
             _saved(9, IN_COMPLETE_LOCAL, BASELINE)),
        _row("D2", f"{greedy}: runtime saved, %", 11, _saved(9, IN_BYPASS, BASELINE, alone), VAGUE),
        _row("D2", f"{complete}: runtime saved, %", 14,
             _saved(9, IN_COMPLETE, BASELINE, alone), VAGUE),
        _row("D2", "HT, SFI_Complete: over fully connected, %", 12, apart(KERNELS)),
        _row("D2", f"{complete}: over fully connected, %", 12, apart(alone), VAGUE),
    ]  # fmt: skip


def rows() -> list[Row]:
    """Returns all rows of the full system."""
    return [*rows_of_figure_1(), *rows_of_tokens(), *rows_of_home()]


def _frame(figure: int) -> pl.DataFrame:
    """Returns a row per kernel and mesh; runtimes relative to the first mesh."""
    found = _found(figure)
    first = next(iter(found.values()))
    rows = []
    for name, runs in found.items():
        for kernel, run in runs.items():
            rows.append(
                {
                    "mesh": name,
                    "kernel": kernel,
                    "cycles": run.cycles,
                    "over_first": run.cycles / first[kernel].cycles,
                    "instructions": run.instructions,
                    "mpki": run.mpki,
                    "from_caches": run.cache_to_cache,
                    "stalled": run.stall,
                    "by_network": run.network_stall,
                    "broadcast_latency": run.broadcasts.mean,
                    "reduction_latency": run.reductions.mean,
                    "acks_per_flow": run.responses_per_flow,
                    "reductions_in_flight": run.open_reductions,
                    "table_entries": run.table_occupancy,
                }
            )
    return pl.DataFrame(rows)


def by_network_stall() -> pl.DataFrame:
    """Returns the runtime saved by kernel, with the share of time waited for the network."""
    rows = []
    for kernel in KERNELS:
        one = (kernel,)
        tokens, home = (ran(protocol, BASELINE)[kernel] for protocol in _PROTOCOLS)
        rows.append(
            {
                "kernel": kernel,
                "tc_by_network": tokens.network_stall,
                "ht_by_network": home.network_stall,
                "tc_SFO_Greedy_saved_%": _saved(8, GREEDY, BASELINE, one),
                "ht_SFI_Greedy_saved_%": _saved(9, IN_BYPASS, BASELINE, one),
                "ht_SFI_Complete_saved_%": _saved(9, IN_COMPLETE, BASELINE, one),
            }
        )
    return pl.DataFrame(rows).sort("ht_by_network")


def _plot(
    folder: Path,
    figure: str,
    groups: dict[str, dict[str, float]],
    label: str,
    *,
    verdict: str,
    published: Mapping[str, PublishedBar],
) -> Path:
    """Draws the values of each mesh by kernel; published values are means, by mesh."""
    kernels = {
        kernel: {name: {"": values[kernel]} for name, values in groups.items()}
        for kernel in KERNELS
    }
    return plot_bars(
        folder / f"figure_{figure}.svg", kernels, label, verdict=verdict, looks=looks.SMART,
        published={("mean", name): value for name, value in published.items()},
    )  # fmt: skip


def _values(frame: pl.DataFrame, value: str) -> dict[str, dict[str, float]]:
    """Returns a column by mesh and kernel."""
    return {
        str(name): dict(part.select("kernel", value).iter_rows())
        for (name,), part in frame.group_by("mesh", maintain_order=True)
    }


_SOURCE = "the figure's values are not known; sections I and V-C describe them in words"
_KERNELS = "small kernels, not runs of SPLASH-2 or PARSEC; means are over all nine"


def _figure_1(folder: Path) -> ExhibitResult:
    frame = _frame(1)
    runtime = _values(frame, "over_first")
    claims = claims_of(rows_of_figure_1())
    conclusions = (
        of_runtimes("collectives and bypasses reduce the runtime", runtime, (PLAIN, SMART)),
        near_ideal(runtime, BASELINE, CONNECTED),
    )
    drawn = _plot(
        folder, "1", runtime, "runtime over the baseline",
        verdict=verdict_line(claims, conclusions),
        published={BASELINE: (0.813, "text"), SMART: (0.86, "text")},
    )  # fmt: skip
    return ExhibitResult(
        frame=frame,
        published=claims,
        conclusions=conclusions,
        source=_SOURCE,
        figures=(drawn,),
        notes=(_KERNELS,),
    )


def _figure_8(folder: Path) -> ExhibitResult:
    tokens, home = _frame(8), _frame(9)
    of_tokens, of_home = _values(tokens, "over_first"), _values(home, "over_first")
    claims = claims_of([*rows_of_tokens(), *rows_of_home()])
    conclusions = (
        of_runtimes("TC: SFO_Greedy is faster than the baseline", of_tokens, (BASELINE, GREEDY)),
        of_runtimes(
            "HT: SFI_Greedy is faster than the baseline, SFI_Complete faster still",
            of_home,
            (BASELINE, IN_BYPASS, IN_COMPLETE),
        ),
        near_ideal(of_home, IN_COMPLETE, CONNECTED),
    )
    verdict = verdict_line(claims, conclusions)
    label = "runtime over the baseline"

    def drawn(part: str, values: dict[str, dict[str, float]], label: str) -> Path:
        return _plot(folder, f"8{part}", values, label, verdict=verdict, published=MEANS[part])

    return ExhibitResult(
        frame=pl.concat(
            [frame.with_columns(pl.lit(name).alias("protocol"))
             for name, frame in (("tc", tokens), ("ht", home))]
        ),
        source=_SOURCE,
        figures=(
            drawn("a_runtime", of_tokens, label),
            drawn("a_latency", _values(tokens, "broadcast_latency"), "1-to-M latency (cycles)"),
            drawn("b_runtime", of_home, label),
            drawn("b_acks", _values(home, "acks_per_flow"), "ACKs per flow"),
            _drawn_energies(folder, verdict),
        ),
        published=claims,
        conclusions=conclusions,
        tables={"by_network_stall": by_network_stall(), "energy": _energies()},
        notes=(_KERNELS,),
    )  # fmt: skip


MEANS: dict[str, dict[str, PublishedBar]] = {
    "a_runtime": {GREEDY: (0.84, "text"), PRIVATE: (0.84, "words")},
    "a_latency": {},
    "b_runtime": {
        IN_BYPASS: (0.89, "text"),
        IN_COMPLETE: (0.86, "text"),
        CONNECTED: (0.86 / 1.12, "derived"),
    },
    "b_acks": {BASELINE: ((8, 12), "words"), IN_BYPASS: ((5, 6), "words"),
               IN_COMPLETE: (1, "text")},
}  # fmt: skip
"""Published means over the programs, by part of figure 8 and mesh."""


def _drawn_energies(folder: Path, verdict: str) -> Path:
    """Draws the dynamic energy of the mesh under HT, all kernels, over that of the baseline."""
    names = (BASELINE, IN_BYPASS, IN_COMPLETE, IN_COMPLETE_LOCAL)
    bars = {"all kernels": {name: {"": _energy(name) / _energy(BASELINE)} for name in names}}
    return plot_bars(
        folder / "figure_8b_energy.svg", bars, "energy over that of the baseline",
        verdict=verdict, looks=looks.SMART, width=COLUMN, mean=False,
        published={("all kernels", IN_BYPASS): (0.71, "text"),
                   ("all kernels", IN_COMPLETE): (0.5, "text")},
    )  # fmt: skip


def _energies() -> pl.DataFrame:
    """Returns the mesh energy of all kernels under HT, by design."""
    rows = []
    for name in (BASELINE, IN_BYPASS, IN_COMPLETE, IN_COMPLETE_LOCAL):
        dynamic, all_ = _energy(name), _energy(name, leakage=True)
        rows.append(
            {
                "mesh": name,
                "dynamic_uJ": 1e6 * dynamic,
                "with_leakage_uJ": 1e6 * all_,
                "dynamic_saved_%": _energy_saved(name),
                "with_leakage_saved_%": _energy_saved(name, leakage=True),
            }
        )
    return pl.DataFrame(rows)


FIGURES = {
    1: Exhibit(title="runtime saved by collectives and bypasses under HT", make=_figure_1),
    8: Exhibit(title="runtime, latency and ACKs under TC and HT", make=_figure_8),
}
"""The figures of this module, by number."""
