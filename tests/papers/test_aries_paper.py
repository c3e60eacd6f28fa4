"""The exhibits of ARIES: exact values, bounds of every network, and readings of the text."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product
from typing import TYPE_CHECKING

import polars as pl
import pytest

from tutti.base.errors import ConfigError
from tutti.base.units import Size, Time
from tutti.bypass.package_networks import (
    ALGORITHMS,
    DEFAULT,
    ONE_WIRE,
    Assumptions,
    package_of,
    variants,
)
from tutti.energy.package import technologies
from tutti.training.overlap import Overlap
from tutti_papers import find_paper
from tutti_papers.aries import bottlenecks, energy, flits, multi_tree, readings, throughput
from tutti_papers.aries.applications import BATCHES, layers
from tutti_papers.aries.area import added_mm2
from tutti_papers.aries.best import candidates
from tutti_papers.aries.conclusions import BUTTERFLY_SLOWEST
from tutti_papers.aries.iterations import Load, averaging, grid, iteration, iterations, speedups
from tutti_papers.aries.published import ENERGY_SAVED, NETWORKS, SPEEDUPS
from tutti_papers.aries.reading import AXES, DEFAULT_READING, NAMED, described, reading_of

if TYPE_CHECKING:
    from pathlib import Path

EVERY = (*NETWORKS, "aries")
BETA = 1 / 68e9


def fastest(network: str, algorithm: str, side: int, size: Size, its: Assumptions = DEFAULT) -> int:
    """Returns the time of the fastest variant in ps."""
    known = variants(network, algorithm, side, its)
    return min(variant.run(size).completion_ps for variant in known)


def test_table_1_is_exact(tmp_path: Path) -> None:
    frame = find_paper("aries").tables[1].make(tmp_path).frame
    rows = {(row["algorithm"], row["N"]): row for row in frame.iter_rows(named=True)}
    for ranks, side in ((16, 4), (64, 8)):
        for name, links, steps in (
            ("Ring", ranks, ranks - 1),
            ("2D Ring", 2 * ranks, 2 * (side - 1)),
            ("Binary Tree", 2 * (ranks - 1), ranks.bit_length() - 1),
            ("ARIES", 8 * (side - 1) * side, 4 if side == 4 else 9),
        ):
            row = rows[name, ranks]
            assert row["links"] == row["links_counted"] == links, (name, ranks)
            assert row["steps_counted"] == steps, (name, ranks)
        assert rows["Ring", ranks]["latency"] == ranks - 1
        assert rows["Ring", ranks]["G_over_counted"] == ranks
        assert rows["Binary Tree", ranks]["G_over_counted"] == 2
        assert rows["Multi-Tree", ranks]["links_counted"] == 4 * ranks
        for name, bandwidth in (
            ("Ring", 1),
            ("2D Ring", 2),
            ("Binary Tree", ranks - 1),
            ("Multi-Tree", ranks - 1),
            ("ARIES", 8 * (side - 1) / side),
        ):
            assert rows[name, ranks]["links_times_chunk"] == bandwidth, (name, ranks)


@pytest.mark.parametrize(("side", "steps"), [(4, 15), (8, 63)])
def test_a_ring_on_a_mesh_takes_its_closed_form(side: int, steps: int) -> None:
    """Each step: 12 ns, and its chunk's bytes on a link."""
    (variant,) = variants("mesh", "ring", side)
    for size in ("16 KiB", "2 MiB"):
        payload = Size.parse(size)
        expected = 2 * steps * (12e-9 + payload.bytes / side**2 * BETA)
        assert variant.run(payload).completion_ps / 1e12 == pytest.approx(expected, rel=0.002)


def test_four_ports_bound_every_network() -> None:
    """(N - 1) / N of the payload into each chiplet, twice, over four links of 68 GB/s."""
    payload = Size.parse("64 MiB")
    least = 2 * 15 / 16 * payload.bytes * BETA / 4
    for case in product(EVERY, ALGORITHMS):
        assert fastest(*case, 4, payload) / 1e12 >= least * 0.999, case


def test_ring_with_twice_the_links_takes_one_hop_per_step() -> None:
    own = replace(ONE_WIRE, bidirectional=True, switched=False)
    by_name = {variant.name: variant for variant in variants("aries", "ring", 4, own)}
    ring = variants("mesh", "ring", 4)[0]
    for (side, name), expected in throughput.ALPHA_BETA.items():
        for ratio, size in expected:
            if side == 4 and size >= 16384:
                payload = Size(bytes=size)
                faster = ring.run(payload).completion_ps / by_name[name].run(payload).completion_ps
                assert faster == pytest.approx(ratio, rel=0.02), (name, size)


def test_iterations_obey_their_bounds() -> None:
    found = iterations(cases=[(network, "ring", 4) for network in ("mesh", "aries")])
    for step in found.values():
        overlapped = step.overlapped
        assert overlapped.iteration >= overlapped.compute
        assert overlapped.iteration >= overlapped.communication
    for total, communication in speedups(found).values():
        assert 1 <= total <= communication


def test_interpolated_times_are_those_of_a_simulation() -> None:
    """A ring takes a latency and a time per byte, also beyond the largest simulated size."""
    case, load = ("mesh", "ring", 4), Load("vgg16", BATCHES[0])
    (ring,) = variants(*case)
    step = iteration(case, DEFAULT.relevant(*case[:2]), load)
    exact = Overlap(layers(*load[:2])).run(lambda size: ring.run(size).time)
    assert max(size.bytes for size in grid()) < 400e6
    assert step.overlapped.iteration.ps == pytest.approx(exact.iteration.ps, rel=0.002)
    gradients = sum(layer.gradients.bytes for layer in layers(*load[:2]))
    assert sum(step.carried.values()) == gradients


def test_parts_of_an_all_reduce_run_one_after_the_other() -> None:
    """With four parts a ring pays its latency four times: 3 * 30 hops of 12 ns per layer."""
    case = ("mesh", "ring", 4)
    its = DEFAULT.relevant(*case[:2])
    single, parts = (
        iteration(case, its, Load("vgg16", BATCHES[0], splits)).overlapped.communication.ps
        for splits in (1, 4)
    )
    sent = sum(layer.gradients.bytes > 0 for layer in layers("vgg16", BATCHES[0]))
    assert parts - single == pytest.approx(sent * 3 * 30 * 12_000, rel=0.05)


def test_rows_and_columns_of_the_butterfly_exchange_directly() -> None:
    """Per phase 1/8 + 1/64 of the payload over a link of 4/14 of 68 GB/s, and 12 ns twice."""
    size = Size.parse("2 MiB")
    took = fastest("flattened_butterfly", "ring", 8, size) / 1e12
    expected = 2 * (9 / 64 * size.bytes * BETA * 14 / 4 + 2 * 12e-9)
    assert took == pytest.approx(expected, rel=0.01)


def test_a_forest_is_best_for_large_payloads_on_the_butterfly() -> None:
    times = {
        one.name: one.run(Size.parse("2 MiB")).completion_ps
        for one in candidates("flattened_butterfly", 4)
    }
    assert min(times, key=lambda name: times[name]).startswith("forest")


def test_assumptions_that_a_case_does_not_use_are_not_relevant() -> None:
    changed = Assumptions(wires=1, chunks=16, rings="plain", butterfly="wide", switch="0 ns")
    assert changed.relevant("mesh", "multi_tree") == DEFAULT
    assert changed.relevant("torus", "ring") == DEFAULT
    assert changed.relevant("adapt_noc", "ring") == Assumptions(rings="plain")
    relevant = changed.relevant("aries", "double_binary_tree")
    assert relevant == Assumptions(wires=1, chunks=16, switch="0 ns")
    # The time of a switch matters only if there is one.
    once = replace(changed, switched=False).relevant("aries", "double_binary_tree")
    assert once == Assumptions(wires=1, chunks=16, switched=False)


def test_networks_and_readings_share_their_simulations() -> None:
    """Adapt-NoC and ARIES run the schedules of a mesh and a torus, which are simulated once."""
    regular = [variants(network, "multi_tree", 4)[0] for network in ("mesh", "torus")]
    schedules = [one.schedule for one in regular]
    assert [one.schedule for one in variants("adapt_noc", "multi_tree", 4)] == schedules
    every, own = (
        variants("aries", "multi_tree", 4, Assumptions(shapes=shapes, switched=False))
        for shapes in (True, False)
    )
    assert [one.schedule for one in every] == [own[0].schedule, *schedules]


def test_the_default_reading_is_the_first_answer_to_every_question() -> None:
    for axis in AXES:
        assert DEFAULT_READING.answer(axis.name) == axis.values[0], axis.name
        assert len(axis.values) == len(axis.evidence)
    assert described(DEFAULT_READING) == "the default"
    assert averaging("stated", "double_binary_tree", 8) == "maximum"
    assert averaging("stated", "ring", 8) == "arithmetic"
    assert averaging("geometric", "double_binary_tree", 8) == "geometric"


def test_readings_are_given_by_name_or_by_answers() -> None:
    assert reading_of("text") == DEFAULT_READING
    assert reading_of("one-wire").assumptions == ONE_WIRE
    assert set(find_paper("aries").readings) == set(NAMED)
    other = reading_of("wires=1, mean=geometric,splits=4")
    assert described(other) == "wires=1, splits=4, mean=geometric"
    assert (other.assumptions.wires, other.splits, other.mean) == (1, 4, "geometric")
    with pytest.raises(ConfigError, match="unknown reading `wire=1`: expected one of text"):
        reading_of("wire=1")
    with pytest.raises(ConfigError, match="unknown answer `3` to `wires`: expected one of 2, 1"):
        reading_of("wires=3")
    with pytest.raises(ConfigError, match="`wires` has several answers"):
        reading_of("wires=1,wires=2")


def test_speedups_are_compared_with_the_published_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    exact_and_twice = {
        (algorithm, side, network): (value, 2 * value)
        for (algorithm, side), values in SPEEDUPS.items()
        for network, value in zip(NETWORKS, values, strict=True)
    }
    monkeypatch.setattr(readings, "_speedups", lambda *_: exact_and_twice)
    run = readings.runs_of(DEFAULT_READING)[0]
    for time, met, factor in (("iterations", 8, 1), ("all_reduces", 0, 2)):
        reading = DEFAULT_READING.with_answers({"time": time})
        pairs = [pair for _, *pair in readings._of_speedups(run, reading)]
        assert sum(readings.meets(*pair) for pair in pairs) == met
        assert all(ours == factor * published for published, ours in pairs)


def test_36_published_values_need_a_simulation() -> None:
    assert readings.VALUES == 24 + 3 + 8 + 1
    assert readings.Score({"rings": 8, "area": 1}, 1.0).met == 9
    once = [one for one in readings.every_reading() if not one.assumptions.switched]
    assert {one.assumptions.switch for one in once} == {"100 ns"}


def test_muxes_of_the_text_take_less_than_those_of_figure_6() -> None:
    """Published: 0.3 mm2, between the literal muxes with one and with two wires."""
    literal = [added_mm2("sign", wires) for wires in (1, 2)]
    assert literal == pytest.approx([0.186, 0.371], abs=0.001)
    assert added_mm2("any", 1) == pytest.approx(0.431, abs=0.001)


def test_energy_is_proportional_to_bytes_and_time() -> None:
    """The energy of an iteration, compared with that of every all-reduce at its own size."""
    case, load = ("mesh", "ring", 4), Load("dlrm", BATCHES[0])
    its = DEFAULT.relevant(*case[:2])
    (ring,) = variants(*case)
    package = package_of("mesh", 4, technologies()["usual"])
    step = iteration(case, its, load)
    reports = [
        package.energy_of(ring.run(layer.gradients).runs[0])
        for layer in layers(*load[:2])
        if layer.gradients.bytes
    ]
    left = step.overlapped.iteration.ps - step.overlapped.communication.ps
    idle = package.idle(16, Time(ps=left))
    expected = sum(one.total.nominal for one in reports) + idle.total.nominal
    assert sum(energy.joules(case, its, load, "usual")) == pytest.approx(expected, rel=0.01)


def test_published_energies_follow_published_times() -> None:
    rows = energy.power_and_time()
    assert all(row["ratio"] == pytest.approx(1, abs=0.145) for row in rows)
    assert rows[0]["factor"] == 0.73
    assert rows[0]["correlation"] == 0.97


def test_published_values_are_complete() -> None:
    assert len(SPEEDUPS) * len(NETWORKS) == 24
    assert sum(map(len, ENERGY_SAVED.values())) == 8


def test_each_reading_changes_its_times() -> None:
    """Another hop latency, fewer chunks, more accumulators: each changes the times it affects."""
    size = Size.parse("64 KiB")

    def took(algorithm: str, **changed: object) -> int:
        its = replace(DEFAULT, shapes=False, **changed)  # type: ignore[arg-type]
        return fastest("aries", algorithm, 4, size, its)

    assert took("ring", hop="10 ns") < took("ring")
    assert took("double_binary_tree", chunks=1) > took("double_binary_tree")
    counts = [took("multi_tree", accumulators=count) for count in (1, 2, 4)]
    assert all(more >= fewer for more, fewer in pairwise(counts))


def test_packets_and_flits_agree_without_shared_links() -> None:
    rows = {
        (row["algorithm"], row["network"], row["schedule"]): row
        for row in flits.flit_check().iter_rows(named=True)
    }
    ring = rows["ring", "mesh", "ring:4x4"]
    assert ring["flits_over_packets"] == pytest.approx(1, abs=0.05)
    doubled = rows["ring", "aries", "bandwidth"]
    assert doubled["over_mesh_packets"] == pytest.approx(1.91, abs=0.02)
    assert 1.6 < doubled["over_mesh_flits"] < doubled["over_mesh_packets"]


def test_multi_tree_has_a_conclusion_for_each_size() -> None:
    rows = [
        {"side": side, "wires": 2, "configured": f"for each phase, {switch}", "size": str(size),
         "over_mesh": 1.0 + side / 10, "over_torus": over}
        for switch, over in (("100 ns", 0.9), ("0 ns", 0.95))
        for side in (4, 8) for size in multi_tree.SIZES
    ]  # fmt: skip
    found = multi_tree.conclusions(pl.DataFrame(rows), DEFAULT)
    assert [one.holds for one in found] == [True] * 4 + [False] * 4 + [False]
    assert "if a switch between phases took no time, 4x4: 0.95, 8x8: 0.95" in found[4].why


def test_the_butterfly_carries_trees_on_more_links_than_a_mesh() -> None:
    """Its links have 2/3 of the rate on 4x4 (four ports of a mesh among six)."""
    frame = bottlenecks.bottlenecks(DEFAULT)
    rows = {(row["algorithm"], row["side"], row["network"]): row for row in frame.to_dicts()}
    butterfly, mesh, noc = (
        rows["double_binary_tree", 4, one] for one in ("flattened_butterfly", "mesh", "adapt_noc")
    )
    assert (butterfly["payloads"], mesh["payloads"]) == (1.0, 2.5)
    assert (butterfly["busy"], mesh["busy"]) == (1.5, 2.5)
    assert butterfly["time"] < mesh["time"] == noc["time"]
    assert noc["schedule"].endswith("on a mesh")
    assert all(row["busy"] <= row["time"] for row in rows.values())
    assert "carries 1.00 payloads in 1.50" in bottlenecks.reasons(frame)[BUTTERFLY_SLOWEST]
