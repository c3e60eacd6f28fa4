"""The ACE paper: values derived by hand from its parameters, and its exhibits."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tutti import _core
from tutti.base.units import Size, Time, TimePerByte
from tutti.energy.technology import Interval
from tutti.training.collective import Alone
from tutti.training.endpoint import AceSettings, Npu, configurations
from tutti.training.endpoint_area import PUBLISHED, Component, Process, Value, cost
from tutti.training.step import Step
from tutti.workloads import Roofline, build
from tutti_papers import find_paper
from tutti_papers.ace import endpoints, published, readings, steps, system, timing, tori, workloads
from tutti_papers.ace.conclusions import of_sensitivity

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tutti.training.endpoint import Configuration


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
    run = system.alone(tori.IDEAL, size)
    assert run.sent == sent * system.PAYLOAD.bytes
    assert 0.97 * 0.94 * peak < run.rate / 1e9 <= 0.94 * peak


def test_the_baseline_needs_three_and_a_half_times_the_memory() -> None:
    """1.5 reads per byte sent, against one per 2.25 bytes: 3.375, and pipeline losses."""

    def needed(memories: tuple[int, int], make: Callable[[str], Configuration]) -> float | None:
        runs = [(float(m), system.alone(make(f"{m} GB/s"), "4x4x4").rate / 1e9) for m in memories]
        return endpoints._required_memory(runs, 0.9 * 275.8)

    baseline = needed((384, 420), system.baseline)
    ample = needed((96, 128), lambda memory: system.ace(memory, **tori.AMPLE))
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
    """All FSMs also process all-to-alls; if only those of the last phase do, it gets more."""
    from tutti.training.endpoint import torus

    fabric = torus(system.rings("4x4x4"), 0.94)
    ace, chunk = configurations()["ace"], Size.parse("64 KiB")
    without = ace.endpoint(Npu(), fabric, chunk=chunk, message=chunk)
    exchange = [_core.Transfer("all_to_all", 7, 1)]

    def fsms(configuration: Configuration) -> list[int]:
        endpoint = configuration.endpoint(
            Npu(), fabric, chunk=chunk, message=chunk, transfers=exchange
        )
        return endpoint.fsms

    of_phase = fsms(system.ace(exchanges="of_phase"))
    assert without.fsms == fsms(ace) == [2, 6, 6, 2]
    assert sum(of_phase) == 16
    assert of_phase[3] > 2


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
    forward, backward = timing.active_percent(small["resnet50", "4x2x2", "ace"])
    assert forward < backward <= 100


def test_workloads_of_the_group_decode() -> None:
    """Public files: weights, bytes of gradients and all-to-alls, cycles of some passes."""
    reading = workloads.Reading(scaling="fixed", lookups="recorded")
    dlrm = workloads.model_of("dlrm_libra", reading)
    assert dlrm.tables is not None
    assert dlrm.parameters == 57_411_584
    assert dlrm.tables.exchanged(512, 2) == 4_194_304
    assert dlrm.tables.lookup(512, 2).bytes == 1 << 25
    assert dlrm.tables.lookup_time == Time.parse("419431 ns")
    compute = workloads.compute_of("dlrm_libra", reading)
    left = Npu().without(6, TimePerByte.parse("450 GB/s"))
    times = [compute.time(layer, "forward", 512, 2, left) // 1000 for layer in dlrm.layers]
    assert times == [27962, *[17896] * 5, 1118, 145403, *[71583] * 10, 35]
    resnet = workloads.model_of("resnet50_libra", reading)
    assert [resnet.parameters * one for one in readings.GRADIENTS] == [102_011_648, 51_005_824]


def test_cycles_of_resnet50_are_those_of_one_image() -> None:
    """The input gradient of the first layer streams 112 x 112 pixels, later ones 56 x 56."""
    compute = workloads.compute_of("resnet50_libra", workloads.Reading(scaling="fixed"))
    layers = build("resnet50").layers
    cycles = [
        compute.time(layers[index], "input_gradient", 32, 2, Npu().without(0, None)) // 1000
        for index in (0, 2)
    ]
    assert cycles == [112 * 112 + 320, 56 * 56 + 320]


@pytest.mark.parametrize(
    ("scaling", "factor"), [("fixed", 1), ("sms", 80 / 74), ("memory", 2), ("bounding", 2)]
)
def test_times_scale_with_what_is_left(scaling: workloads.Scaling, factor: float) -> None:
    """74 of 80 SMs and half of the memory bandwidth are left; conv2_1_1 is bound by memory."""
    reading = workloads.Reading(scaling=scaling)
    layer = workloads.model_of("resnet50_libra", reading).layers[2]
    left = Npu().without(6, TimePerByte.parse("450 GB/s"))
    time = workloads.compute_of("resnet50_libra", reading).time(layer, "forward", 32, 2, left)
    assert time == pytest.approx(3_456_000 * factor, rel=1e-3)


@pytest.mark.parametrize("scaling", workloads.SCALINGS)
def test_readings_apply_to_computed_models(scaling: workloads.Scaling) -> None:
    """On a complete NPU every reading of GNMT takes a quarter of the roofline."""
    full = Npu().without(0, None)
    left = Npu().without(6, TimePerByte.parse("450 GB/s"))
    reading = workloads.Reading(scaling=scaling)
    layer = workloads.model_of("gnmt", reading).layers[3]
    compute = workloads.compute_of("gnmt", reading)
    complete = compute.time(layer, "forward", 128, 2, full)
    assert complete == round(0.25 * Roofline().time(layer, "forward", 128, 2, full))
    slower = compute.time(layer, "forward", 128, 2, left) / complete
    expected = {"fixed": 1, "sms": 80 / 74, "memory": 2, "bounding": 2}
    assert slower == pytest.approx(expected[scaling], rel=1e-3)


def test_gnmt_is_sensitive_to_memory_bandwidth_if_each_step_reads_its_weights() -> None:
    left = configurations()["comm_opt"].compute(Npu())
    slow = {model: workloads.slowdown_of(model, left) for model in published.SPEEDUPS}
    assert slow["gnmt"] > 1.5
    assert slow["dlrm_libra"] == pytest.approx(80 / 74, rel=0.02)
    assert of_sensitivity(slow).holds


@pytest.mark.parametrize(
    ("name", "lookup"), [("no_overlap", 37.3), ("comm_opt", 74.6), ("ace", 43.5)]
)
def test_lookups_take_the_memory_bandwidth_left(name: str, lookup: float) -> None:
    """2^25 B at 900, 450 and 772 GB/s; one SM at 80 GB/s takes the recorded 419 us."""
    known = configurations()[name]
    assert _lookup_us(known, workloads.Reading()) == pytest.approx(lookup, abs=0.05)
    assert _lookup_us(known, workloads.Reading(lookups="recorded")) == pytest.approx(419.4, abs=0.1)
    background = replace(known, background=True)
    assert _lookup_us(background, workloads.Reading()) == pytest.approx(419.4, abs=0.1)


def _lookup_us(configuration: Configuration, reading: workloads.Reading) -> float:
    step = Step(
        model=workloads.model_of("dlrm_libra", reading), batch=512, rings=system.rings("4x2x2")
    )
    tables = step._embedding(configuration, configuration.compute(step.npu))
    assert tables is not None
    return tables.lookup_ps / 1e6


@pytest.mark.parametrize(("gradient", "gain"), [(2, 1.067), (4, 1.233)])
def test_the_recorded_resnet_gains_from_ace(gradient: int, gain: float) -> None:
    """A golden of the grid of readings: compute scales with memory bandwidth, 16 NPUs.

    With 4 B no_overlap, the best baseline, takes 1.095 ms of compute and 0.538 of communication,
    twice 102 MB at 376 GB/s at least; ACE computes for 900/772 of 1.095 ms and exposes 0.048.
    """
    reading = workloads.Reading(gradient=gradient)
    times = {
        name: readings.run(
            readings.case_of("resnet50_libra", "4x2x2", configurations()[name], reading)
        ).time
        for name in (*timing.BASELINES, "ace")
    }
    best = min(times[name] for name in timing.BASELINES)
    assert best / times["ace"] == pytest.approx(gain, abs=0.001)


def test_equal_runs_of_readings_are_one_case() -> None:
    known = configurations()
    cases = {
        readings.case_of("resnet50_libra", "4x4x4", known["ace"], workloads.Reading(scaling=one))
        for one in workloads.SCALINGS
    }
    assert {case.reading.scaling for case in cases} == {"fixed", "memory", "bounding"}
    gnmt = {
        readings.case_of("gnmt", "4x4x4", known["ace"], workloads.Reading(clock=clock, gradient=2))
        for clock in readings.CLOCKS
    }
    assert len(gnmt) == 1
    parts = {
        readings.case_of("gnmt", "4x4x4", known["ace"], workloads.Reading(part=part))
        for part in (0.25, 1)
    }
    assert len(parts) == 2


def made_up(joint: readings.Joint) -> readings.Row:
    """ACE is 1.2 times as fast as comp_opt; tables in the background gain a fifth."""
    seconds = {"no_overlap": 3.0, "comm_opt": 4.0, "comp_opt": 2.4, "ace": 2.0}

    def outcome(case: readings.Case) -> readings.Outcome:
        time = seconds[case.configuration.name] / (1.2 if case.configuration.background else 1)
        return readings.Outcome(time=time, exposed=0.5, period=time, active=90.0)

    found = {case: outcome(case) for case in readings._cases(joint)}
    values, conclusions = readings.values_of(joint, found), readings._conclusions(joint, found)
    return readings.Row(joint, values, conclusions)


def test_values_and_conclusions_of_a_joint_reading() -> None:
    row = made_up(readings.joints()[0])
    values = {name: ours for name, (_, ours) in row.values.items()}
    assert values["gnmt"] == values["gnmt_most"] == pytest.approx(1.2)
    assert values["utilisation"] == pytest.approx((1.5 + 2 + 1.2) / 3)
    assert values["utilisation_most"] == pytest.approx(2)
    assert values["background_ace"] == pytest.approx(1.2)
    assert len(values) == 13
    assert row.met(0.15) == 11, "all but the maxima of ResNet-50 and of the utilisation"
    assert row.shown()["ace_fastest"] == "12 of 12"
    assert row.shown()["within_15"] == "11 of 13"


def test_score_counts_values_of_endpoints_and_of_the_paper_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The last joint reading, of an ample ACE, meets everything and is not the best."""
    rows = [made_up(joint) for joint in readings.joints()]
    met = {name: (one, one.value) for name, (one, _) in rows[-1].values.items()}
    assert rows[-1].joint.engine == "near ideal"
    rows[-1] = replace(rows[-1], values=met)
    one = published.Published("a rate", 2.0, "V")
    monkeypatch.setattr(readings, "rows", lambda: tuple(rows))
    monkeypatch.setattr(readings, "memory_values", lambda: [(one, 2.0)])
    monkeypatch.setattr(readings, "sm_values", lambda: [(one, 1.0)])
    monkeypatch.setattr(readings, "silicon_values", list)
    shown = readings.score()
    assert shown["within_15"].to_list() == ["12 of 15"] * 4
    assert shown["choices"][0] == shown["choices"][1]
    assert shown["choices"][0].startswith("cycles of files at 1 GHz, gradients of 4 B")


def test_the_grid_starts_with_the_reading_of_the_exhibits() -> None:
    first, *others = readings.joints()
    assert first == readings.Joint("", system.READING)
    assert readings.Joint("", system.READING, "8 banks, 24 FSMs") in others
    assert len({first, *others}) == 1 + len(others)


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


def test_the_published_process_sums_to_the_synthesis() -> None:
    """Recalled: 5,339,031 um2 and 4,254.5 mW for 4 MiB, 16 FSMs and 4 ALUs, at any data rate."""

    def synthesised(ace: AceSettings) -> dict[str, Component]:
        return cost(ace, Npu(), links=6, bytes_per_second=3e11, process=PUBLISHED)

    found = synthesised(AceSettings())
    assert sum(one.area_mm2.nominal for one in found.values()) == pytest.approx(5.339031)
    assert sum(one.power_w.nominal for one in found.values()) == pytest.approx(4.2545)
    cells = 8 * (4 << 20) * 0.127e-6
    assert cells / found["scratchpad"].area_mm2.nominal == pytest.approx(0.83, abs=0.005)
    double = synthesised(AceSettings(fsms=32))
    assert double["state machines"].power_w.nominal == pytest.approx(0.256)
