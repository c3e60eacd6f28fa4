"""Figures 6, 7 and 8: mappings of flows to bypass links."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import TYPE_CHECKING, Any

import polars as pl

import tutti
from tutti.base.progress import watched
from tutti.base.units import Size
from tutti.bypass import BypassMesh, flows_of, map_flows
from tutti.bypass.bounds import cut_bound
from tutti.bypass.mapping import space_of
from tutti.bypass.package_networks import SIDES, Assumptions, mapped, variants
from tutti.view.quantity import plural
from tutti_papers import Exhibit, ExhibitResult, looks
from tutti_papers.aries.conclusions import (
    CONCENTRATED,
    of_concentration,
    of_rings,
    of_trees,
    with_reasons,
)
from tutti_papers.aries.published import compared
from tutti_papers.claims import verdict_line
from tutti_papers.exhibits import COLUMN, plot_bars

if TYPE_CHECKING:
    from pathlib import Path

    from tutti.bypass import Flow, Muxes

SEARCH = "5 s"
"""Time limit of an exact mapping."""

DERIVED = "counted from the text, or computed by another exact solver; the drawings are not known"


def _row(name: str, mesh: BypassMesh, flows: tuple[Flow, ...], expected: str) -> dict[str, Any]:
    mapping = map_flows(mesh, flows, time_limit=SEARCH)
    configuration = mapping.configuration
    return {
        "flow set": name,
        "muxes": mesh.muxes,
        "wires": mesh.wires,
        "flows": len(flows),
        "dedicated": len(mapping.dedicated),
        "bound": mapping.bound,
        "hops": mapping.hops,
        "hops_bound": mapping.hops_bound,
        "expected": expected,
        "segments": f"{configuration.used_segments}/{configuration.total_segments}",
        "optimal": "proved" if mapping.optimal else f"bound {mapping.bound}",
    }


def _ring(notation: str, side: int, copies: int = 1) -> tuple[Flow, ...]:
    return tuple(flows_of(tutti.schedule(notation, ranks=side * side))) * copies


RINGS = (
    ("ring, twice", 4, "ring:4x4", 2, "32"),
    ("mirrored rings", 4, "mirrored_ring:4x4", 1, "32"),
    ("mirrored rings, both directions", 4, "mirrored_ring:4x4,bidirectional", 1, "64"),
    ("ring, twice", 8, "ring:8x8", 2, "128"),
    ("mirrored rings, 3 levels", 8, "mirrored_ring:8x8", 1, "-"),
)
"""The rings of figure 6, and the expected number of flows with dedicated links."""

STEPS = (
    ("ring:4x4", 16, 15),
    ("mirrored_ring:4x4", 16, 6),
    ("ring:8x8", 64, 63),
    ("mirrored_ring:8x8:4x2,2x4", 64, 14),
    ("mirrored_ring:8x8", 64, 9),
)
"""Steps of the reduction phase: N - 1, and L (N^(1/L) - 1) (section IV-A)."""


def _figure_6(folder: Path) -> ExhibitResult:
    """Returns the mappings of rings."""
    rows = []
    for name, side, notation, copies, expected in RINGS:
        flows = _ring(notation, side, copies)
        rows.append(_row(f"{name}, {side}x{side}", BypassMesh(side=side), flows, expected))
    drawn = []
    for name, side, notation, copies, expected in RINGS:
        mapping = mapped(BypassMesh(side=side), _ring(notation, side, copies))
        title = f"{name}, {side}x{side}: {len(mapping.dedicated)} dedicated"
        title += "" if expected == "-" else f", expected {expected}"
        file = f"figure_6_{name} {side}x{side}.svg".replace(",", "").replace(" ", "_")
        drawn.append(mapping.configuration.draw(folder / file, title=title))
    steps: list[dict[str, Any]] = [
        {
            "schedule": notation,
            "expected": expected,
            "ours": tutti.schedule(notation, ranks=ranks).steps(0) // 2,
        }
        for notation, ranks, expected in STEPS
    ]
    return ExhibitResult(
        frame=pl.DataFrame(rows),
        source=DERIVED,
        conclusions=of_rings(rows, steps),
        published=compared(
            [
                (f"{row['schedule']}: steps of the reduction", row["expected"], row["ours"])
                for row in steps
                if not row["schedule"].startswith("ring")
            ],
            "derived",
            "formula",
        ),
        figures=tuple(drawn),
        tables={"steps": pl.DataFrame(steps)},
        notes=("steps: the values of the plain ring are compared in Table I",),
    )


TREES: tuple[tuple[str, int, Muxes, int, tuple[int, ...], str], ...] = (
    ("reducing", 4, "any", 1, (0,), "30"),
    ("reducing", 4, "sign", 1, (0,), "30"),
    ("reducing", 4, "own", 1, (0,), "22"),
    ("broadcasting", 4, "any", 1, (1,), "30"),
    ("broadcasting", 4, "own", 1, (1,), "22"),
    ("both at once", 4, "any", 1, (0, 1), "44"),
    ("both at once", 4, "any", 2, (0, 1), "52"),
    ("reducing", 8, "any", 1, (0,), "126"),
    ("reducing", 8, "own", 1, (0,), "94"),
    ("broadcasting", 8, "any", 1, (1,), "126"),
    ("both at once", 8, "any", 1, (0, 1), "184 or more"),
    ("both at once", 8, "any", 2, (0, 1), "-"),
    ("reducing", 16, "any", 2, (0,), "-"),
)
"""Phases of the double binary tree, and the number of flows with dedicated links according to an
exact solver."""


def _figure_7(folder: Path) -> ExhibitResult:
    """Returns the mappings of double binary trees."""
    rows = []
    for name, side, muxes, wires, phases, expected in watched("mappings", TREES):
        schedule = tutti.schedule("double_binary_tree:nccl,phased", ranks=side * side)
        flows = tuple(flow for phase in phases for flow in flows_of(schedule, phase=phase))
        mesh = BypassMesh(side=side, wires=wires, muxes=muxes)
        rows.append(_row(f"{name}, {side}x{side}", mesh, flows, expected))
    schedule = tutti.schedule("double_binary_tree:nccl,phased", ranks=16)
    drawn = []
    for phase, name in enumerate(("reducing", "broadcasting")):
        mapping = mapped(BypassMesh(side=4), tuple(flows_of(schedule, phase=phase)))
        title = f"{name}, 4x4: {len(mapping.dedicated)} dedicated, expected 30"
        drawn.append(mapping.configuration.draw(folder / f"figure_7_{name}.svg", title=title))
    hops, sizes = _equation_1(), _by_size()
    return ExhibitResult(
        frame=pl.DataFrame(rows),
        source=DERIVED,
        conclusions=of_trees(
            rows,
            {
                (one["side"], one["wires"]): (one["most"], one["flows"])
                for one in sizes.iter_rows(named=True)
            },
        ),
        published=compared(
            [
                (
                    f"{row['network']}, level {row['level']}: hops saved",
                    row["published"],
                    row["least"],
                )
                for row in hops.rows(named=True)
            ],
            method="formula",
        ),
        figures=tuple(drawn),
        tables={"equation_1": hops, "sizes": sizes},
        notes=("sizes: an upper bound of the edges of a phase with dedicated links, by wires",),
    )


def _by_size() -> pl.DataFrame:
    """Returns an upper bound of the dedicated flows of a phase by size and wires."""
    rows = []
    for side, wires in product((4, 8, 16, 32), (1, 2, 3)):
        schedule = tutti.schedule("double_binary_tree:nccl,phased", ranks=side * side)
        flows = flows_of(schedule, phase=0)
        most = cut_bound(space_of(BypassMesh(side, wires)), Counter(flows))
        rows.append({"side": side, "wires": wires, "flows": len(flows), "most": most})
    return pl.DataFrame(rows)


def _equation_1() -> pl.DataFrame:
    """Returns the hops saved per tree level: published, and the hops of its edges minus one."""
    rows = []
    for side in SIDES:
        ranks = side * side
        schedule = tutti.schedule("double_binary_tree:nccl,phased", ranks=ranks)
        for height in range(1, ranks.bit_length()):
            span = ranks >> height
            published = (side >> height if 1 << height <= side else span) - 1
            apart = [
                abs(a // side - b // side) + abs(a % side - b % side)
                for a, b in flows_of(schedule, phase=0)
                if abs(a - b) == span
            ]
            rows.append(
                {
                    "network": f"{side}x{side}",
                    "level": height,
                    "published": published,
                    "least": min(apart) - 1,
                    "mean": round(sum(apart) / len(apart) - 1, 2),
                    "edges": len(apart),
                    "longer edges": sum(hops > min(apart) for hops in apart),
                }
            )
    return pl.DataFrame(rows)


SIZE_OF_FIGURE_8 = Size.parse("64 MiB")
"""At this size the latency of steps is negligible."""


def _figure_8(folder: Path) -> ExhibitResult:
    """Returns the times of MultiTree with and without concentration."""
    rows: list[dict[str, Any]] = []
    cases = [(side, network, 4, 2) for side in SIDES for network in ("mesh", "torus")]
    cases += [(side, "aries", *which) for side in SIDES for which in product((1, 2, 4), (1, 2))]
    for side, network, accumulators, wires in watched("networks", cases):
        assumptions = Assumptions(accumulators=accumulators, wires=wires, shapes=False)
        for variant in variants(network, "multi_tree", side, assumptions):
            half = variant.run(SIZE_OF_FIGURE_8).completion_ps / 2e12
            rows.append(
                {
                    "network": f"{network} {side}x{side}",
                    "accumulators": accumulators if network == "aries" else None,
                    "wires": wires if network == "aries" else None,
                    "variant": variant.name,
                    "half / G beta": round(half * 68e9 / SIZE_OF_FIGURE_8.bytes, 3),
                    "bound": round((side * side - 1) / (4 * side * side), 3),
                    "bound of groups": _bound_of_groups(side) if network == "aries" else "-",
                }
            )
    groups = {f"{side}x{side}": _fastest(rows, side) for side in SIDES}
    conclusions = of_concentration(
        {
            f"{network} {size}": parts[name][""]
            for size, parts in groups.items()
            for network, name in (("torus", "torus"), ("aries", "aries, 4 accumulators, 2 wires"))
        }
    )
    bound = "links and ports of a mesh of groups allow {} at best"
    conclusions = with_reasons(
        conclusions,
        {CONCENTRATED.format(side): bound.format(_bound_of_groups(side)) for side in SIDES},
    )
    drawn = plot_bars(
        folder / "figure_8.svg", groups, y="time of a phase / G beta", width=COLUMN, mean=False,
        verdict=verdict_line((), conclusions), looks=looks.ARIES,
    )  # fmt: skip
    return ExhibitResult(
        frame=pl.DataFrame(rows),
        conclusions=conclusions,
        figures=(drawn,),
        source="section IV-B: concentration nearly preserves the bandwidth and halves the height",
        notes=(
            "bound: each chiplet receives (N - 1) / N of the payload over its four ports",
            (
                "bound of groups, on a mesh of groups with four accumulators: 3/4 of the payload "
                "over four links in a group, then its share over two links in a corner group"
            ),
            (
                "configured once: groups and the trees between them share links; contention grows "
                "with the number of trees"
            ),
        ),
    )


def _fastest(rows: list[dict[str, Any]], side: int) -> dict[str, dict[str, float]]:
    """Returns the shortest time of a phase of each network, as bars."""
    bars: dict[str, dict[str, float]] = {}
    for row in rows:
        network, size = row["network"].split()
        if size == f"{side}x{side}":
            accumulators, wires = row["accumulators"], row["wires"]
            more = ""
            if network == "aries":
                more = f", {plural(accumulators, 'accumulator')}, {plural(wires, 'wire')}"
            before = bars.get(network + more, {"": float("inf")})
            bars[network + more] = {"": min(before[""], row["half / G beta"])}
    return bars


def _bound_of_groups(side: int) -> str:
    """Returns the least time of a phase over that of the payload on a link."""
    groups = side * side // 4
    return f"{3 / 4 / 4 + (groups - 1) / groups / 4 / 2:.3f}"


FIGURES = {
    6: Exhibit(title="rings on bypass links", make=_figure_6),
    7: Exhibit(title="double binary trees on bypass links", make=_figure_7),
    8: Exhibit(title="MultiTree, concentrated", make=_figure_8),
}
"""The figures of this module, by number."""
