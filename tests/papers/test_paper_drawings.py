"""Exhibits whose runs take minutes, from made-up runs: verdicts, conclusions and drawings."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from tutti.bypass.package_networks import ALGORITHMS, SIDES
from tutti_papers import ExhibitResult, find_paper
from tutti_papers.ace.conclusions import (
    of_activity,
    of_background,
    of_designs,
    of_ideal,
    of_iterations,
    of_links,
    of_sensitivity,
    of_silicon,
)
from tutti_papers.aries import energy, performance
from tutti_papers.aries.applications import APPLICATIONS
from tutti_papers.aries.conclusions import (
    faster,
    of_concentration,
    of_rings,
    of_speedups,
    of_throughput,
    of_trees,
    with_reasons,
)
from tutti_papers.aries.published import NETWORKS, SPEEDUPS
from tutti_papers.aries.reading import JointReading
from tutti_papers.smart import kernels, readings, synthetic, system, tables
from tutti_papers.smart.conclusions import near_ideal, of_fan_in, of_fan_out, of_runtimes
from tutti_papers.smart.published import Row
from tutti_papers.smart.system import (
    ALL,
    BASELINE,
    COMPLETE,
    CORNERS,
    GREEDY,
    IN_BYPASS,
    IN_COMPLETE,
    IN_LOCAL,
    INTERVALS,
    PRIVATE,
    REDUCTIONS,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def holding(result: ExhibitResult) -> list[bool]:
    return [one.holds for one in result.conclusions]


def drawn_with_verdict(result: ExhibitResult) -> None:
    for path in result.figures:
        text = path.read_text("utf-8")
        assert "published values within 15 %" in text, path.name


# --- ARIES ---------------------------------------------------------------------------------------


def overlapped(network: str, application: str) -> Any:
    """Computes 100 us; a network exposes twice the communication of ARIES."""
    exposed = 0 if application == "transformer" else 100 if "aries" in network else 200
    total = 100 + exposed
    return SimpleNamespace(
        overlapped=SimpleNamespace(
            iteration=SimpleNamespace(ps=total * 10**6),
            compute=SimpleNamespace(ps=100 * 10**6),
            communication=SimpleNamespace(ps=(exposed + 10) * 10**6),
            exposed=SimpleNamespace(ps=exposed * 10**6),
        ),
    )


STEPS = {
    key: overlapped(key[0], key[3])
    for key in product((*NETWORKS, "aries"), ALGORITHMS, SIDES, APPLICATIONS)
}


def test_aries_figure_10_compares_every_speedup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(JointReading, "iterations", lambda _: STEPS)
    monkeypatch.setattr(performance, "sensitivity", lambda _: {})
    monkeypatch.setattr(performance, "readings", lambda: ({}, ()))
    monkeypatch.setattr(performance, "best_schedules", dict)
    monkeypatch.setattr(performance, "bottlenecks", lambda _: pl.DataFrame())
    monkeypatch.setattr(performance, "reasons", lambda _: {faster("multi_tree"): "links"})
    made = find_paper("aries").figures[10].make(tmp_path)
    assert len(made.published) == 24 + 3
    # 300 over 200 us in three applications, 1 in the Transformer; the maximum of 8x8 trees.
    assert made.published[0].computed == pytest.approx((3 * 1.5 + 1) / 4, abs=0.01)
    trees = next(one for one in made.published if "tree 8x8" in one.quantity)
    assert trees.computed == 1.5
    # All networks are alike, so that none is the slowest or faster than a mesh.
    assert holding(made)[:5] == [True] * 5
    assert not holding(made)[5]
    assert len(made.figures) == 6
    drawn_with_verdict(made)
    assert "rings on 8x8: 2 of 4 published values" in made.figures[1].read_text("utf-8")


def test_aries_figure_11_derives_published_means(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    joules = {key: (0.5 if key[0] == "aries" else 1.0, 0.1) for key in STEPS}
    monkeypatch.setattr(JointReading, "iterations", lambda _: STEPS)
    monkeypatch.setattr(energy, "_joules", lambda *_: joules)
    monkeypatch.setattr(energy, "_of_traffic", lambda case, *_: 0.1 if case[0] == "aries" else 0.2)
    made = find_paper("aries").figures[11].make(tmp_path)
    assert [claim.published for claim in made.published][:2] == [30.5, 28.9]
    assert holding(made) == [True, False, True], "equal savings are in no order"
    assert made.tables["parts"].row(0) == ("mesh", 4, 50.0, 44.4)
    assert "traffic on wires and in routers saves 4x4: 50 %" in made.conclusions[1].why
    drawn_with_verdict(made)


def test_words_on_throughput_become_conclusions() -> None:
    words = [
        ("a", "above 1", 1.2),
        ("b", "about 1", 1.2),
        ("c", "more", 0.9),
        ("d", "about 1", 1.1),
    ]
    found = of_throughput(words)
    assert [one.holds for one in found] == [True, False, False, True]
    explained = with_reasons(found, {"b is about 1": "hops", "a is above 1": "none"})
    assert [one.why for one in explained] == ["1.20", "1.20. Reason: hops", "0.90", "1.10"]
    assert found[2].statement == "c is above 1"
    half = {"aries 4x4": 0.3, "torus 4x4": 0.3, "aries 8x8": 0.4, "torus 8x8": 0.3}
    assert [one.holds for one in of_concentration(half)] == [True, False]


def test_mappings_become_conclusions() -> None:
    def row(name: str, wires: int, dedicated: int, flows: int) -> dict[str, Any]:
        found = {"dedicated": dedicated, "flows": flows, "bound": flows}
        return {"flow set": name, "muxes": "any", "wires": wires, **found}

    rings = [row("ring, twice, 4x4", 1, 32, 32), row("ring, twice, 8x8", 1, 127, 128)]
    steps = [{"schedule": "ring:4x4", "ours": 15}, {"schedule": "mirrored_ring:4x4", "ours": 6}]
    assert [one.holds for one in of_rings(rings, steps)] == [False, True]
    trees = [
        row("reducing, 4x4", 1, 30, 30),
        row("broadcasting, 4x4", 1, 30, 30),
        row("both at once, 4x4", 2, 52, 60),
        row("both at once, 8x8", 2, 252, 252),
        row("reducing, 16x16", 2, 510, 510),
    ]
    most = {(32, 2): (1918, 2046), (16, 1): (446, 510)}
    assert [one.holds for one in of_trees(trees, most)] == [True, False, True]
    most[32, 2] = (2046, 2046)
    assert not of_trees(trees, most)[2].holds


def test_published_speedups_support_every_conclusion() -> None:
    published = {
        (algorithm, side, network): value
        for (algorithm, side), values in SPEEDUPS.items()
        for network, value in zip(NETWORKS, values, strict=True)
    }
    found = of_speedups(published, {"transformer": 1.1, "resnet50": 3.0})
    assert [one.holds for one in found] == [True] * 11


# --- SMART ---------------------------------------------------------------------------------------


def kernel(cycles: int, latency: float = 30.0) -> Any:
    return SimpleNamespace(
        cycles=cycles, instructions=1, mpki=1.0, cache_to_cache=1.0, stall=0.5, network_stall=0.5,
        broadcasts=SimpleNamespace(mean=latency), reductions=SimpleNamespace(mean=5.0), flows=(),
        chip={"snoop_cycles": 4},
        responses_per_flow=1.0, open_reductions=1.0, table_occupancy=1.0,
        share_of=lambda _: 0.14, counts={}, case=SimpleNamespace(mesh=None),
    )  # fmt: skip


def test_smart_figures_1_and_8_have_published_means(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cycles = {kernels.PLAIN: 120, kernels.CONNECTED: 75, BASELINE: 100, IN_BYPASS: 90}
    saturated = kernels.KERNELS[0]

    def ran(_: kernels.System, name: str, some: Sequence[str] = kernels.KERNELS) -> dict[str, Any]:
        return {
            one: kernel(cycles.get(name, 85), 300.0 if one == saturated else 30.0) for one in some
        }

    monkeypatch.setattr(kernels, "ran", ran)
    monkeypatch.setattr(kernels, "energy", lambda runs, **_: float(len(runs)))
    paper = find_paper("smart")
    first, eighth = (paper.figures[number].make(tmp_path) for number in (1, 8))
    assert first.published[0].computed == pytest.approx(100 * (1 - 100 / 120))
    assert first.published[4].quantity == "A1 HT: minimum left by full connection, %"
    assert first.published[4].computed == pytest.approx(100 * (1 - 75 / 85))
    assert holding(first) == [True, True]
    assert holding(eighth) == [True, True, True]
    assert len(eighth.figures) == 5
    assert any(saturated not in note and "ht: lu_like" in note for note in eighth.notes)
    for made in (first, eighth):
        drawn_with_verdict(made)
    assert near_ideal({"a": {"k": 2.0}, "b": {"k": 1.0}}, "a", "b").holds is False


def test_tables_of_readings_and_of_work_per_miss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "energy", lambda runs, **_: float(len(runs)))
    monkeypatch.setattr(
        kernels, "ran", lambda of, _, some: dict.fromkeys(some, kernel(100 + of.work_per_miss))
    )
    monkeypatch.setattr(system, "reductions", lambda *_: None)
    work = readings.by_work()
    assert work["work_per_miss"].to_list() == list(readings.WORK)
    assert work["ht_SFI_Greedy_saved_%"].to_list() == [0.0] * len(readings.WORK)
    one = Row(row="C1", quantity="x", published=10, ours=10)
    for name in ("corners", "all_nodes", "some", "to_one"):
        monkeypatch.setattr(tables, name, lambda *_: [one])
    monkeypatch.setattr(tables, "abstract", lambda *_: [one] * 4)
    found = readings.joint_readings()
    parts = found["part"].to_list()
    assert parts.count("reductions") == len(REDUCTIONS)
    assert parts.count("full system") == 2
    default, best, values = readings.totals(found)
    assert 8 < default == best <= values


def test_a_mean_that_rests_on_one_kernel_does_not_support_a_conclusion() -> None:
    slow = {"one": 1.0, "two": 1.0, "three": 1.0}
    fast = {"one": 0.4, "two": 1.1, "three": 1.05}
    found = of_runtimes("faster", {"slow": slow, "fast": fast}, ("slow", "fast"))
    assert not found.holds
    assert found.why == "slow 1.00, fast 0.85; faster on 1 of 3 kernels; not without one"
    both = of_runtimes("faster", {"slow": slow, "fast": fast | {"two": 0.8}}, ("slow", "fast"))
    assert both.holds
    worse = {"one": 2.0, "two": 0.9, "three": 0.9}
    against = of_runtimes("faster", {"slow": slow, "fast": worse}, ("slow", "fast"))
    assert against.why.endswith("faster on 2 of 3 kernels; holds without one")
    kernels_left = {"mesh": {"one": 2.0, "two": 1.0}, "full": {"one": 0.4, "two": 0.9}}
    left = near_ideal(kernels_left, "mesh", "full")
    assert left.why.endswith("one alone leaves 80 %, the others 10 %")


def test_latencies_are_drawn_up_to_the_first_load_that_saturates() -> None:
    """Short runs beyond saturation may seem stable again."""
    runs: Any = [SimpleNamespace(load=load, is_stable=load != 3) for load in (1, 2, 4, 3)]
    assert [run.load for run in synthetic._until_saturation(runs)] == [1, 2, 3]
    assert [run.load for run in synthetic._until_saturation(runs[:2])] == [1, 2]


def saturation(rate: float, arrivals: float = 1.0, latencies: tuple[float, float] = (5, 6)) -> Any:
    """A curve with runs at the two loads at which latencies are compared."""
    part = SimpleNamespace(arrivals=SimpleNamespace(mean=arrivals))
    runs = [
        SimpleNamespace(loads=[part], load=load, latency=SimpleNamespace(mean=latency))
        for load, latency in zip((system.LOW, system.MIDDLE), latencies, strict=True)
    ]
    return SimpleNamespace(by_throughput=rate, runs=runs)


def test_conclusions_of_meshes_follow_their_saturation() -> None:
    fan_in = {
        BASELINE: saturation(0.44),
        IN_LOCAL: saturation(0.45),
        IN_BYPASS: saturation(0.8),
        IN_COMPLETE: saturation(1.0),
    }
    assert [one.holds for one in of_fan_in(fan_in)] == [True] * 4
    fan_in[IN_COMPLETE] = saturation(0.7, arrivals=1.2)
    assert [one.holds for one in of_fan_in(fan_in)] == [False, False, True, False]
    fan_in[IN_LOCAL] = saturation(0.45, latencies=(5, 5))
    like = of_fan_in(fan_in)[2]
    assert not like.holds, "1 / 1.2 is beyond the tolerance of values"
    assert "0.83 times at 0.35 flows per cycle" in like.why
    slots = {COMPLETE.format(i): saturation(min(4, i - 2) / i / 4) for i in INTERVALS}
    every = {name: saturation(rate / 64) for name, rate in
             ((BASELINE, 0.6), (GREEDY, 0.6), (PRIVATE, 0.9))}  # fmt: skip
    assert [one.holds for one in of_fan_out({CORNERS: slots, ALL: every})] == [True, False]


# --- ACE -----------------------------------------------------------------------------------------


def test_conclusions_of_iterations_name_their_exceptions() -> None:
    """ACE is the fastest; comp_opt exposes more on the large system, and ACE computes slower."""
    names = ("no_overlap", "comm_opt", "comp_opt", "ace", "ideal")
    time, exposed = {}, {}
    for size, index in product(("small", "large"), range(5)):
        case = ("gnmt", size, names[index])
        time[case] = 10.0 - index + (size == "large" and names[index] != "ace")
        exposed[case] = 1.0 + (names[index] == "comp_opt") + (size == "large")
    found = of_iterations(time, exposed)
    assert [one.holds for one in found] == [True, True, True, True, False, True, False, True, True]
    no_overlap = found[4]
    assert no_overlap.statement == "no_overlap is faster than comm_opt"
    assert no_overlap.why == "in 0 of 2 cases; not in gnmt small, gnmt large"
    assert found[6].why == "in none of 0 cases"
    exposed["gnmt", "small", "ace"] = 0.0
    slower = of_iterations(time, exposed)[2]
    assert slower.why == "in 1 of 2 cases; not in gnmt small"
    assert of_ideal(time).holds
    assert not of_ideal(time | {("gnmt", "small", "ideal"): 8.0}).holds


def test_conclusions_of_designs_cover_every_size() -> None:
    """A knee on one size is not the paper's knee."""
    knee = {("2 MiB", 16): 0.7, ("4 MiB", 12): 0.8, ("4 MiB", 16): 1.0, ("4 MiB", 20): 1.05,
            ("8 MiB", 16): 1.01, ("8 MiB", 24): 1.06}  # fmt: skip
    ample = dict.fromkeys(knee, 1.0)
    small = knee | {("4 MiB", 20): 1.2, ("8 MiB", 24): 1.35}
    sizes = {"4x4x4": knee, "4x2x2": ample}
    speed = {(size, *design): one for size, of in sizes.items() for design, one in of.items()}
    assert [one.holds for one in of_designs(speed)] == [True, True, True]
    speed |= {("4x8x4", *design): one for design, one in small.items()}
    found = of_designs(speed)
    assert [one.holds for one in found] == [True, False, False]
    assert found[2].why == "in 2 of 3 cases; not in 4x8x4 (35.0 %)"


def test_conclusions_of_links_activity_and_tables() -> None:
    used = {("resnet50_libra", "comm_opt"): (0.2, 0.5), ("gnmt", "ace"): (0.6, 0.5)}
    assert [one.holds for one in of_links(used, {"resnet50_libra": 0.4, "gnmt": 0.6})] == [
        False,
        True,
        True,
    ]
    active = {"gnmt": (0.0, 90.0), "dlrm_libra": (3.0, 100.0)}
    assert [one.holds for one in of_activity(active)] == [True, False]
    assert not of_activity({"gnmt": (3.0, 90.0)})[0].holds
    compute = {"ace": (100.0, 90.0), "comp_opt": (100.0, 110.0)}
    found = of_background({"ace": 1.2, "comp_opt": 1.05}, compute)
    assert [one.holds for one in found] == [True, True, False]
    assert of_sensitivity({"gnmt": 1.7, "dlrm": 1.1}).holds
    assert not of_sensitivity({"gnmt": 1.08, "dlrm": 1.1}).holds
    area = {"scratchpad": 3.0, "ALUs": 1.0}
    assert [one.holds for one in of_silicon(area, (1.0, 3.0))] == [True, False]
