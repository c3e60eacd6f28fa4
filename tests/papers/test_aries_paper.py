"""The exhibits of ARIES: exact values, and bounds of every network."""

from __future__ import annotations

from itertools import pairwise, product
from typing import TYPE_CHECKING

import pytest

from tutti.base.units import Size
from tutti.bypass.package_networks import ALGORITHMS, DEFAULT, Assumptions, variants
from tutti_papers import find_paper
from tutti_papers.aries import energy, readings, throughput
from tutti_papers.aries.applications import BATCHES
from tutti_papers.aries.best import candidates
from tutti_papers.aries.iterations import interpolated, speedups
from tutti_papers.aries.published import ENERGY_SAVED, NETWORKS, SPEEDUPS
from tutti_papers.aries.system import fastest

if TYPE_CHECKING:
    from pathlib import Path

EVERY = (*NETWORKS, "aries")
BETA = 1 / 68e9


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
    cases = [(network, algorithm, 4) for network, algorithm in product(EVERY, ALGORITHMS)]
    least = 2 * 15 / 16 * payload.bytes * BETA / 4
    for case, run in fastest(cases, [payload]).items():
        assert run.completion_ps / 1e12 >= least * 0.999, case


def test_ring_with_twice_the_links_takes_one_hop_per_step() -> None:
    by_name = {
        variant.name: variant
        for variant in variants("aries", "ring", 4, Assumptions(bidirectional=True))
    }
    ring = variants("mesh", "ring", 4)[0]
    for (side, name), expected in throughput.ALPHA_BETA.items():
        for ratio, size in expected:
            if side == 4 and size >= 16384:
                payload = Size(bytes=size)
                faster = ring.run(payload).completion_ps / by_name[name].run(payload).completion_ps
                assert faster == pytest.approx(ratio, rel=0.02), (name, size)


def test_iterations_obey_their_bounds() -> None:
    cases = [(network, "ring", 4) for network in ("mesh", "aries")]
    found = interpolated(Assumptions(), BATCHES[0], cases)
    for step in found.values():
        overlapped = step.overlapped
        assert overlapped.iteration >= overlapped.compute
        assert overlapped.iteration >= overlapped.communication
    for total, communication in speedups(found).values():
        assert 1 <= total <= communication


def test_rows_and_columns_of_the_butterfly_exchange_directly() -> None:
    """Per phase 1/8 + 1/64 of the payload over a link of 4/14 of 68 GB/s, and 12 ns twice."""
    size = Size.parse("2 MiB")
    case = ("flattened_butterfly", "ring", 8)
    took = fastest([case], [size])[case, size].completion_ps / 1e12
    expected = 2 * (9 / 64 * size.bytes * BETA * 14 / 4 + 2 * 12e-9)
    assert took == pytest.approx(expected, rel=0.01)


def test_a_forest_is_best_for_large_payloads_on_the_butterfly() -> None:
    times = {
        one.name: one.run(Size.parse("2 MiB")).completion_ps
        for one in candidates("flattened_butterfly", 4)
    }
    assert min(times, key=lambda name: times[name]).startswith("forest")


def test_assumptions_that_a_case_does_not_use_are_not_relevant() -> None:
    changed = Assumptions(wires=2, chunks=16, rings="plain", butterfly="wide")
    assert changed.relevant("mesh", "multi_tree") == DEFAULT
    assert changed.relevant("torus", "ring") == DEFAULT
    assert changed.relevant("adapt_noc", "ring") == Assumptions(wires=2, rings="plain")
    assert changed.relevant("aries", "double_binary_tree") == Assumptions(wires=2, chunks=16)


def test_speedups_are_compared_with_the_published_ones() -> None:
    exact_and_twice = {
        (algorithm, side, network): (value, 2 * value)
        for (algorithm, side), values in SPEEDUPS.items()
        for network, value in zip(NETWORKS, values, strict=True)
    }
    assert readings.met(exact_and_twice, 0) == dict.fromkeys(ALGORITHMS, 8)
    assert readings.met(exact_and_twice, 1) == dict.fromkeys(ALGORITHMS, 0)
    assert readings.distance(exact_and_twice, 1) == pytest.approx(2)


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

    def took(algorithm: str, assumptions: Assumptions) -> int:
        case = ("aries", algorithm, 4)
        return fastest([case], [size], assumptions)[case, size].completion_ps

    assert took("ring", Assumptions(hop="10 ns")) < took("ring", Assumptions())
    assert took("double_binary_tree", Assumptions(chunks=1)) > took(
        "double_binary_tree", Assumptions()
    )
    counts = [took("multi_tree", Assumptions(accumulators=count)) for count in (1, 2, 4)]
    assert all(more >= fewer for more, fewer in pairwise(counts))
