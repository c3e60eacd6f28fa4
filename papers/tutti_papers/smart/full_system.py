"""Figures 1 and 8: kernels on 64 cores with coherent caches, instead of SPLASH-2 and PARSEC.

The paper runs the parallel sections of SPLASH-2 and PARSEC. tutti runs small kernels of the same
kinds. Only ratios between meshes are compared, not kernels with the programs they resemble.
"""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

import polars as pl

from tutti_papers import Exhibit, ExhibitResult, looks
from tutti_papers.claims import verdict_line
from tutti_papers.exhibits import COLUMN, PublishedBar, plot_bars
from tutti_papers.smart import kernels
from tutti_papers.smart.conclusions import near_ideal, of_runtimes
from tutti_papers.smart.kernels import (
    CONNECTED,
    KERNELS,
    PLAIN,
    SENSITIVE,
    SMART,
    Reading,
    System,
)
from tutti_papers.smart.published import STATED, VAGUE, Row, claims_of
from tutti_papers.smart.system import (
    BASELINE,
    GREEDY,
    IN_BYPASS,
    IN_COMPLETE,
    IN_COMPLETE_LOCAL,
    PRIVATE,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


HOME, TOKENS = System("ht"), System("tc")
"""The protocols by their default readings."""


def _row(
    name: str, quantity: str, published: float, ours: float, sure: str = STATED, *,
    variant: bool = False,
) -> Row:  # fmt: skip
    return Row(
        row=name, quantity=quantity, published=published, ours=ours, confidence=sure,
        variant=variant,
    )  # fmt: skip


ALL_NINE = " (all nine kernels)"
"""Marks rows of means over all kernels, saturated ones too."""


def _both(
    name: str, quantity: str, published: float, ours: Mapping[tuple[str, ...], float],
    sure: str = STATED,
) -> list[Row]:  # fmt: skip
    """Returns a row of the mean over the kernels that do not saturate the mesh, and one of all.

    Args:
        name: The experiment.
        quantity: The quantity, with its unit.
        published: The published value.
        ours: tutti's value by kernels; those that do not saturate the mesh first.
        sure: The confidence of the published value.
    """
    first, *others = ours.values()
    rows = [_row(name, quantity, published, first, sure)]
    return rows + [
        _row(name, quantity + ALL_NINE, published, value, sure, variant=True) for value in others
    ]


def _sets(of: System, *, variants: bool = True) -> tuple[tuple[str, ...], ...]:
    """Returns the kernels that do not saturate the baseline, and with `variants` all."""
    calm = of.calm() or KERNELS
    return (calm, KERNELS) if variants and calm != KERNELS else (calm,)


def rows_of_figure_1(reading: Reading = "footnotes", *, variants: bool = True) -> list[Row]:
    """Returns row A1."""
    of = System("ht", reading)
    sets = _sets(of, variants=variants)

    def left(one: Sequence[str]) -> list[float]:
        return [of.behind(name, one) for name in (BASELINE, SMART)]

    rows = []
    for quantity, published, values in (
        ("HT, Baseline+Collective: runtime saved, %", 18.7,
         {one: of.saved(BASELINE, PLAIN, one) for one in sets}),
        ("HT, SMART: runtime saved, %", 14.0, {one: of.saved(SMART, PLAIN, one) for one in sets}),
        ("HT: minimum left by full connection, %", 26, {one: min(left(one)) for one in sets}),
        ("HT: maximum left by full connection, %", 30, {one: max(left(one)) for one in sets}),
    ):  # fmt: skip
        rows += _both("A1", quantity, published, values)
    return rows


def rows_of_tokens() -> list[Row]:
    """Returns rows D1."""
    of, one = TOKENS, (SENSITIVE,)
    sets = _sets(of)

    def latency(name: str, some: Sequence[str]) -> float:
        return fmean(run.broadcasts.mean for run in of.each(name, some))

    more = {some: latency(PRIVATE, some) - latency(GREEDY, some) for some in sets}
    return [
        *_both("D1", "TC: broadcast flows, %", 52,
               {some: of.share("broadcast", some) for some in sets}),
        *_both("D1", "TC, SFO_Greedy: runtime saved, %", 16,
               {some: of.saved(GREEDY, BASELINE, some) for some in sets}),
        *_both("D1", "TC: runtime on PVT over SVT", 1.0,
               {some: of.ratio(PRIVATE, GREEDY, some) for some in sets}, VAGUE),
        _row("D1", "TC, water, SVT: runtime saved, %", 16, of.saved(GREEDY, BASELINE, one)),
        _row("D1", "TC, water, PVT: runtime saved, %", 35, of.saved(PRIVATE, BASELINE, one)),
        *_both("D1", "TC: broadcast latency, PVT minus SVT, cycles", 3, more),
    ]  # fmt: skip


def rows_of_home(reading: Reading = "footnotes", *, variants: bool = True) -> list[Row]:
    """Returns rows D2 to D5; `variants` adds rows that repeat their published values."""
    of = System("ht", reading)
    sets = _sets(of, variants=variants)
    rows = _runtimes_of_home(of, sets)
    for name, published, sure in ((BASELINE, 10, VAGUE), (IN_BYPASS, 5.5, VAGUE),
                                  (IN_COMPLETE, 1, STATED)):  # fmt: skip
        values = {some: of.acks_per_flow(name, some) for some in sets}
        rows += _both("D3", f"HT, {_SHORT[name]}: ACKs per flow", published, values, sure)
    for name, published in ((IN_COMPLETE, 50), (IN_BYPASS, 29)):
        values = {some: of.energy_saved(name, some) for some in sets}
        rows += _both("D4", f"HT, {_SHORT[name]}: energy saved, %", published, values)
    in_flight = fmean(run.open_reductions for run in of.each(IN_COMPLETE))
    rows.append(
        _row("D5", "HT, SFI_Complete: reductions in flight, all kernels", 20, in_flight, VAGUE)
    )
    return [*rows, *_repeated(of, sets[0])] if variants else rows


def _repeated(of: System, calm: tuple[str, ...]) -> list[Row]:
    """Returns rows that repeat published values: other meshes, and the abstract."""
    entries = fmean(run.table_occupancy for run in of.each(IN_COMPLETE))
    return [
        _row("D2", "HT, SFI_Complete, Prio=Local: runtime saved, %", 14,
             of.saved(IN_COMPLETE_LOCAL, BASELINE, calm), variant=True),
        _row("D4", "HT, SFI_Complete, Prio=Local: energy saved, %", 50,
             of.energy_saved(IN_COMPLETE_LOCAL, calm), variant=True),
        _row("D5", "HT, SFI_Complete: ART entries in use per router, all kernels", 20, entries,
             VAGUE, variant=True),
        _row("E", "HT: runtime saved, %", 14, of.saved(IN_COMPLETE, BASELINE, calm), variant=True),
        _row("E", "HT: energy saved, %", 50, of.energy_saved(IN_COMPLETE, calm), variant=True),
    ]  # fmt: skip


_SHORT = {BASELINE: "baseline", IN_BYPASS: "SFI_Greedy", IN_COMPLETE: "SFI_Complete"}


def _runtimes_of_home(of: System, sets: tuple[tuple[str, ...], ...]) -> list[Row]:
    rows = []
    for quantity, published, values in (
        ("HT: broadcast flows, %", 14, {some: of.share("broadcast", some) for some in sets}),
        ("HT: ACK flows, %", 14, {some: of.share("responses", some) for some in sets}),
        ("HT, SFI_Greedy: runtime saved, %", 11,
         {some: of.saved(IN_BYPASS, BASELINE, some) for some in sets}),
        ("HT, SFI_Complete: runtime saved, %", 14,
         {some: of.saved(IN_COMPLETE, BASELINE, some) for some in sets}),
        ("HT, SFI_Complete: left by full connection, %", 12,
         {some: of.behind(IN_COMPLETE, some) for some in sets}),
    ):  # fmt: skip
        rows += _both("D2", quantity, published, values)
    return rows


def rows(reading: Reading = "footnotes", *, variants: bool = True) -> list[Row]:
    """Returns the rows of the full system.

    Args:
        reading: A reading of `kernels.READINGS`.
        variants: Whether to add rows that repeat a published value, which are not counted.
    """
    return [
        *rows_of_figure_1(reading, variants=variants),
        *rows_of_tokens(),
        *rows_of_home(reading, variants=variants),
    ]


def _frame(figure: int) -> pl.DataFrame:
    """Returns a row per kernel and mesh; runtimes relative to the first mesh."""
    found = kernels.found(figure)
    protocol, _ = kernels.SHOWN[figure]
    first, base = next(iter(found.values())), System(protocol).ran(BASELINE)
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
                    "broadcasts_per_cycle": kernels.rate(run),
                    "saturates_baseline": kernels.is_saturated(base[kernel]),
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
        tokens, home = (of.ran(BASELINE)[kernel] for of in (TOKENS, HOME))
        rows.append(
            {
                "kernel": kernel,
                "tc_by_network": tokens.network_stall,
                "tc_broadcasts_per_cycle": kernels.rate(tokens),
                "tc_saturated": kernels.is_saturated(tokens),
                "tc_SFO_Greedy_saved_%": TOKENS.saved(GREEDY, BASELINE, one),
                "ht_by_network": home.network_stall,
                "ht_broadcasts_per_cycle": kernels.rate(home),
                "ht_saturated": kernels.is_saturated(home),
                "ht_SFI_Greedy_saved_%": HOME.saved(IN_BYPASS, BASELINE, one),
                "ht_SFI_Complete_saved_%": HOME.saved(IN_COMPLETE, BASELINE, one),
                "ht_left_by_full_connection_%": HOME.behind(IN_COMPLETE, one),
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
    values = {
        kernel: {name: {"": of_mesh[kernel]} for name, of_mesh in groups.items()}
        for kernel in KERNELS
    }
    return plot_bars(
        folder / f"figure_{figure}.svg", values, label, verdict=verdict, looks=looks.SMART,
        published={("mean", name): value for name, value in published.items()},
    )  # fmt: skip


def _values(frame: pl.DataFrame, value: str) -> dict[str, dict[str, float]]:
    """Returns a column by mesh and kernel."""
    return {
        str(name): dict(part.select("kernel", value).iter_rows())
        for (name,), part in frame.group_by("mesh", maintain_order=True)
    }


_SOURCE = "the figure's values are not known; sections I and V-C describe them in words"


def _notes() -> tuple[str, ...]:
    calm = {of.protocol: _sets(of)[0] for of in (HOME, TOKENS)}
    return (
        "small kernels, not runs of SPLASH-2 or PARSEC",
        (
            "rows are means over the kernels whose broadcasts and ACKs take less than three times "
            "their zero-load latency on the baseline, since most workloads of the paper are not "
            "limited by bandwidth (section V-C); rows of all nine kernels follow"
        ),
        *(f"{protocol}: {', '.join(names)}" for protocol, names in calm.items()),
        f"HT: {kernels.READINGS['footnotes']}",
    )


def _figure_1(folder: Path) -> ExhibitResult:
    frame = _frame(1)
    runtime = _values(frame, "over_first")
    rows = rows_of_figure_1()
    claims = claims_of(rows)
    conclusions = (
        of_runtimes("collectives and bypasses reduce the runtime", runtime, (PLAIN, SMART)),
        near_ideal(runtime, BASELINE, CONNECTED, _sets(HOME)[0]),
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
        notes=_notes(),
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
        near_ideal(of_home, IN_COMPLETE, CONNECTED, _sets(HOME)[0]),
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
        notes=_notes(),
    )  # fmt: skip


MEANS: dict[str, dict[str, PublishedBar]] = {
    "a_runtime": {GREEDY: (0.84, "text"), PRIVATE: (0.84, "words")},
    "a_latency": {},
    "b_runtime": {
        IN_BYPASS: (0.89, "text"),
        IN_COMPLETE: (0.86, "text"),
        CONNECTED: (0.86 * 0.88, "derived"),
    },
    "b_acks": {BASELINE: ((8, 12), "words"), IN_BYPASS: ((5, 6), "words"),
               IN_COMPLETE: (1, "text")},
}  # fmt: skip
"""Published means over the programs, by part of figure 8 and mesh."""


def _drawn_energies(folder: Path, verdict: str) -> Path:
    """Draws the dynamic energy of the mesh under HT, all kernels, over that of the baseline."""
    names = (BASELINE, IN_BYPASS, IN_COMPLETE, IN_COMPLETE_LOCAL)
    left = {name: 1 - HOME.energy_saved(name) / 100 for name in names}
    bars = {"all kernels": {name: {"": value} for name, value in left.items()}}
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
        runs = HOME.each(name)
        dynamic, all_ = (kernels.energy(runs, leakage=leakage) for leakage in (False, True))
        rows.append(
            {
                "mesh": name,
                "dynamic_uJ": 1e6 * dynamic,
                "with_leakage_uJ": 1e6 * all_,
                "dynamic_saved_%": HOME.energy_saved(name),
                "with_leakage_saved_%": HOME.energy_saved(name, leakage=True),
            }
        )
    return pl.DataFrame(rows)


FIGURES = {
    1: Exhibit(title="runtime saved by collectives and bypasses under HT", make=_figure_1),
    8: Exhibit(title="runtime, latency and ACKs under TC and HT", make=_figure_8),
}
"""The figures of this module, by number."""
