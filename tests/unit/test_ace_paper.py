"""The ACE paper: values derived by hand from its parameters, and its exhibits."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tutti.alone import Alone
from tutti.endpoint import AceSettings, Npu, configurations
from tutti.energy import Interval
from tutti.papers import find_paper
from tutti.papers.ace import endpoints, published, steps, system
from tutti.silicon import Process, Value, cost
from tutti.training import Step
from tutti.units import Size, Time
from tutti.workload import build

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("size", "sent", "peak"),
    [
        ("4x2x2", 2.0, 400.0),
        ("4x4x2", 2.125, 283.33),
        ("4x4x4", 2.25, 300.0),
        ("4x8x4", 2.3125, 264.29),
    ],
)
def test_peaks_are_those_derived_from_the_topology(size: str, sent: float, peak: float) -> None:
    """X = 2 (L-1)/L + 2 (V-1)/(VL) + 2 (H-1)/(HL), over the slowest of its parts."""
    assert endpoints._peak(size) == pytest.approx((sent, peak), rel=1e-4)
    run = system.alone(endpoints.IDEAL, size)
    assert run.sent == sent * system.PAYLOAD.bytes
    assert 0.97 * 0.94 * peak < run.rate / 1e9 <= 0.94 * peak


def test_the_baseline_needs_three_and_a_half_times_the_memory() -> None:
    """1.5 reads per byte sent, against one per 2.25 bytes: 3.375, and pipeline losses."""
    found = {
        kind: endpoints._required_memory(curve, 0.9 * 275.8)
        for kind, curve in endpoints._swept("4x4x4").items()
    }
    baseline, ample = found["baseline"], found["ace_ample"]
    assert baseline is not None
    assert ample is not None
    assert baseline / ample == pytest.approx(3.5, rel=0.05)


def test_knee_is_at_4_mib_and_16_fsms() -> None:
    """Little's law: 2.03 chunks per microsecond stay 2.64 us in each slow phase."""

    def rate(sram: str, fsms: int) -> float:
        return system.alone(system.ace(sram=Size.parse(sram), fsms=fsms), "4x4x4").rate

    chosen = rate("4 MiB", 16)
    assert rate("2 MiB", 16) < 0.8 * chosen
    assert rate("4 MiB", 12) < 0.8 * chosen
    assert rate("8 MiB", 16) < 1.03 * chosen
    assert rate("4 MiB", 24) < 1.1 * chosen


def test_bounding_resource_is_named() -> None:
    rings = system.rings("4x4x4")
    alone = Alone(size=Size.parse("8 MiB"), rings=rings, efficiency=system.EFFICIENCY)
    run = alone.run(configurations()["comp_opt"])
    limit = run.limit
    assert limit.time == limit.servers["memory"]
    assert limit.time <= run.time
    assert run.stalls["memory"] > run.stalls["bus_out"]
    # 1.5 reads of 2.25 bytes sent for each of the payload, at 128 GB/s.
    assert limit.time.ps == round(1.5 * 2.25 * (8 << 20) / 128e9 * 1e12)


def test_fsms_go_to_the_phase_with_all_to_alls() -> None:
    """FSMs of the last phase also handle all-to-alls; with all-to-alls it gets more."""
    from tutti.endpoint import torus

    fabric = torus(system.rings("4x4x4"), 0.94)
    ace, chunk = configurations()["ace"], Size.parse("64 KiB")
    without = ace.endpoint(Npu(), fabric, chunk=chunk, message=chunk)
    exchange = [("all_to_all", 7, 1, 0)]
    with_them = ace.endpoint(Npu(), fabric, chunk=chunk, message=chunk, transfers=exchange)
    assert without.fsms == [2, 6, 6, 2]
    assert sum(with_them.fsms) == 16
    assert with_them.fsms[3] > 2


def test_no_endpoint_beats_computing_alone() -> None:
    """Best baseline over computing alone is the upper bound of the speedup; ACE is below it."""
    known = configurations()
    small = {
        ("resnet50", "4x2x2", name): Step(
            model=build("resnet50"),
            batch=4,
            rings=system.rings("4x2x2"),
            efficiency=system.EFFICIENCY,
            window=Time.parse("20 us"),
        ).run(known[name])
        for name in steps.CONFIGURATIONS
    }
    gain = steps.speedup(small, "resnet50", "4x2x2")
    assert 1 < gain < steps.ceiling(small, "resnet50", "4x2x2")
    forward, backward = steps.active_percent(small["resnet50", "4x2x2", "ace"])
    assert forward < backward <= 100


def test_exhibit_states_the_confidence_of_each_value(tmp_path: Path) -> None:
    paper = find_paper("ace")
    assert sorted(paper.figures) == [5, 6, 9, 10, 11, 12]
    table = paper.tables[4].make(tmp_path)
    assert {claim.certainty for claim in table.published} == {"recalled"}
    assert paper.tables[5].make(tmp_path).frame.height > 15
    left = paper.tables[6].make(tmp_path).frame
    assert left.filter(left["configuration"] == "comm_opt")["tflops_left"].item() == 111


def test_ratios_are_relative_to_published_values() -> None:
    (claim,) = published.compared([(published.Published("a", 2.0, "V"), 1.5)])
    assert (claim.ratio, claim.certainty, claim.verdict) == (0.75, "text", "differs")


def test_area_follows_cells_and_filling() -> None:
    """4 MiB of 0.1 um2 cells, half filled: 33.55 Mb x 0.2 um2."""
    half, cell = Value(Interval(0.5, 0.5, 0.5), "1", "made up"), Interval(0.1, 0.1, 0.1)
    process = replace(Process(), cell=Value(cell, "um2", "made up"), filling=half)
    found = cost(AceSettings(), Npu(), links=6, bytes_per_second=1e11, process=process)
    assert found["scratchpad"].area_mm2.nominal == pytest.approx(8 * 4 * 2**20 * 0.2e-6)
    double = cost(AceSettings(), Npu(), links=6, bytes_per_second=2e11, process=process)
    dynamic = double["ALUs"].power_w.nominal / found["ALUs"].power_w.nominal
    assert dynamic == pytest.approx(2)
    for component in found.values():
        assert component.power_w.low <= component.power_w.nominal <= component.power_w.high
