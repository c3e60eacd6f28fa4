"""Figure 9: throughput of an all_reduce over sizes."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import product
from typing import TYPE_CHECKING

import polars as pl

from tutti.base.progress import at_once
from tutti.base.units import Size
from tutti.bypass.package_networks import ALGORITHMS, SIDES, variants
from tutti_papers import Exhibit, ExhibitResult, looks
from tutti_papers.aries import multi_tree
from tutti_papers.aries.conclusions import of_throughput, with_reasons
from tutti_papers.aries.flits import flit_check
from tutti_papers.aries.multi_tree import by_size
from tutti_papers.aries.reading import DEFAULT_READING
from tutti_papers.claims import verdict_line
from tutti_papers.exhibits import plot_curves

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from tutti.bypass.package_networks import Assumptions, Variant
    from tutti_papers import Conclusion
    from tutti_papers.aries.reading import JointReading

SIZES = tuple(Size(bytes=1024 << power) for power in range(12))
"""1 KiB to 2 MiB (section V-A)."""
SHOWN = ("mesh", "torus", "aries")
"""The compared networks."""
DBT = "double_binary_tree"
LABELS = {"ring": "ring", DBT: "DBT", "multi_tree": "MT"}
"""The names in files."""
NAMES = {"ring": "rings", DBT: "double trees", "multi_tree": "concentrated MultiTree"}
"""The names in conclusions."""

ALPHA_BETA = {
    (4, "bandwidth"): ((1.04, 1024), (1.39, 16384), (1.72, 65536), (1.99, 2097152)),
    (4, "latency"): ((2.25, 1024), (1.36, 16384), (1.11, 65536), (1.00, 2097152)),
    (4, "latency and bandwidth"): ((2.46, 1024), (2.19, 16384), (2.07, 65536), (2.00, 2097152)),
    (8, "bandwidth"): ((1.01, 1024), (1.14, 16384), (1.39, 65536), (1.95, 2097152)),
    (8, "latency"): ((6.28, 1024), (2.88, 16384), (1.61, 65536), (1.02, 2097152)),
}
"""Speedup over the ring with steps of 12 ns and 68 GB/s, one hop each (D)."""


def _curves(
    side: int, algorithm: str, assumptions: Assumptions
) -> dict[str, list[tuple[Size, float]]]:
    """Returns GB/s over sizes, by network and variant; ARIES runs its own schedules only."""
    cases: list[tuple[str, Variant]] = []
    for network in SHOWN:
        known = variants(network, algorithm, side, replace(assumptions, shapes=False))
        cases += [(f"{network}, {one.name}" if len(known) > 1 else network, one) for one in known]
    points = [(index, size) for index in range(len(cases)) for size in SIZES]
    runs = at_once(lambda point: cases[point[0]][1].run(point[1]).algbw / 1e9, points)
    curves: dict[str, list[tuple[Size, float]]] = {}
    for (index, size), rate in runs.items():
        curves.setdefault(cases[index][0], []).append((size, rate))
    return curves


def _figure_9(folder: Path, reading: JointReading = DEFAULT_READING) -> ExhibitResult:
    """Returns throughput of three algorithms on two sizes."""
    its = reading.assumptions
    found = {part: _curves(*part, its) for part in product(SIDES, ALGORITHMS)}
    rows = [
        {
            "side": side,
            "algorithm": algorithm,
            "variant": variant,
            "size": size.bytes,
            "GB/s": rate,
        }
        for (side, algorithm), curves in found.items()
        for variant, points in curves.items()
        for size, rate in points
    ]
    words, sizes = _words(found), by_size()
    conclusions = (
        *with_reasons(of_throughput(words.rows()), _reasons(its)),
        *multi_tree.conclusions(sizes, its),
    )
    figures = tuple(
        plot_curves(
            folder / f"figure_9_{LABELS[algorithm]}_{side}x{side}.svg",
            {
                variant: ([s.bytes for s, _ in p], [r for _, r in p])
                for variant, p in curves.items()
            },
            x="size (B)",
            y=f"{LABELS[algorithm]} {side}x{side}, throughput (GB/s)",
            doubling=True,
            verdict=_verdict(conclusions, algorithm, side),
            looks=looks.ARIES,
        )
        for (side, algorithm), curves in found.items()
    )
    return ExhibitResult(
        frame=pl.DataFrame(rows),
        source="the figure's values are not known; section V-A describes them in words",
        figures=figures,
        conclusions=conclusions,
        tables={
            "alpha_beta": _alpha_beta(found) if its.bidirectional else pl.DataFrame(),
            "words": words,
            "multi_tree": sizes,
            "flits": flit_check(),
        },
        notes=(
            "multi_tree: concentrated MultiTree over MultiTree on a mesh and a torus, by size",
            "flits: the packet model of all exhibits, and the same schedules flit by flit",
        ),
    )


def _verdict(conclusions: Sequence[Conclusion], algorithm: str, side: int) -> str:
    """Returns the verdict of an algorithm on a size; conclusions on MultiTree have both sizes."""
    starts = NAMES[algorithm] + ("" if algorithm == "multi_tree" else f" {side}x{side}")
    of_part = [one for one in conclusions if one.statement.startswith(starts)]
    return verdict_line((), of_part)


def _alpha_beta(found: dict[tuple[int, str], dict[str, list[tuple[Size, float]]]]) -> pl.DataFrame:
    """Returns tutti's throughput compared with steps of one hop each."""
    rows = []
    for (side, variant), expected in ALPHA_BETA.items():
        curves = found[side, "ring"]
        ring, ours = dict(curves["mesh"]), dict(curves[f"aries, {variant}"])
        for ratio, size in expected:
            faster = ours[Size(bytes=size)] / ring[Size(bytes=size)]
            rows.append(
                {
                    "network": f"{side}x{side}",
                    "variant": variant,
                    "size": size,
                    "one_hop_per_step": ratio,
                    "ours": round(faster, 2),
                    "ratio": round(faster / ratio, 3),
                }
            )
    return pl.DataFrame(rows)


def _words(found: dict[tuple[int, str], dict[str, list[tuple[Size, float]]]]) -> pl.DataFrame:
    """Returns the claims of section V-A on the figure, and tutti's values."""

    def at(side: int, algorithm: str, variant: str, size: int) -> float:
        return dict(found[side, algorithm][variant])[Size(bytes=size)]

    def best(side: int, algorithm: str, size: int) -> float:
        names = (name for name in found[side, algorithm] if name.startswith("aries"))
        return max(at(side, algorithm, name, size) for name in names)

    def gain(side: int, algorithm: str, over: str, size: int) -> float:
        return best(side, algorithm, size) / at(side, algorithm, over, size)

    small, large = SIZES[0].bytes, SIZES[-1].bytes
    rows = []
    for side in SIDES:
        latency, bandwidth = (
            [at(side, "ring", f"aries, {variant}", size) for size in (small, large)]
            for variant in ("latency", "bandwidth")
        )
        name = f"{side}x{side}"
        rows += [
            (f"rings {name}: speedup of LT over BW at 1 KiB", "above 1", latency[0] / bandwidth[0]),
            (f"rings {name}: speedup of BW over LT at 2 MiB", "above 1", bandwidth[1] / latency[1]),
        ]
        for over, (size, text, word) in product(
            ("mesh", "torus"),
            (
                (small, "1 KiB", "about 1"),
                (8 * small, "8 KiB", "about 1"),
                (large, "2 MiB", "more"),
            ),
        ):
            claim = _of_trees(side, over, text)
            rows.append((claim, word, gain(side, DBT, over, size)))
    return pl.DataFrame(
        [
            {"claim": claim, "published": published, "ours": round(ours, 2)}
            for claim, published, ours in rows
        ]
    )


def _of_trees(side: int, over: str, size: str) -> str:
    """Returns the quantity of a comparison of double trees."""
    return f"{NAMES[DBT]} {side}x{side}: speedup over a {over} at {size}"


NO_HOP = "1 ps"
"""A latency that leaves transfers only."""


def _reasons(its: Assumptions) -> dict[str, str]:
    """Returns what ARIES saves on trees with small payloads: in hops, and in transfers."""
    found = {}
    for side, (over, size) in product(SIDES, product(("mesh", "torus"), ("1 KiB", "8 KiB"))):
        saved, transfers = (
            took[over] - took["aries"]
            for hop in (its.hop, NO_HOP)
            for took in [_trees(side, (over, "aries"), replace(its, hop=hop), Size.parse(size))]
        )
        found[f"{_of_trees(side, over, size)} is about 1"] = (
            f"ARIES saves {saved:.0f} ns, {saved - transfers:.0f} of them in hops"
        )
    return found


def _trees(side: int, networks: Iterable[str], its: Assumptions, size: Size) -> dict[str, float]:
    """Returns the time of an all-reduce on double trees in ns, by network."""
    own = replace(its, shapes=False)
    return {
        network: min(one.run(size).completion_ps for one in variants(network, DBT, side, own)) / 1e3
        for network in networks
    }


def figures(reading: JointReading) -> dict[int, Exhibit]:
    """Returns the figure of this module, by number."""
    return {9: Exhibit(title="throughput over sizes", make=partial(_figure_9, reading=reading))}
