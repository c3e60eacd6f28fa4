"""Decisions for larger jobs: candidates, ties, confidence, defaults, and what to measure next."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest

from tutti.base.errors import ConfigError
from tutti.formats.measurements import MEASUREMENTS
from tutti.measured.advise import (
    Advice,
    AdviceRequest,
    advise,
    choose_scope,
    classified,
    library_family,
    near_fastest,
)
from tutti.measured.advise.advice import Extrapolation
from tutti.measured.advise.decide import joined_choices
from tutti.measured.advise.questions import candidates, runs_on
from tutti.measured.advise.view import advice_view

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SIZES = (64, 65536)
RD, RING = "recursive_doubling_ompi", "ring_ompi"


def time_us(algorithm: str, ranks: int, size: int) -> float:
    """A machine of 2 us and 1 GB/s."""
    if "ring" in algorithm:
        return 2 * (ranks - 1) * (2 + size / ranks / 1000)
    return math.log2(ranks) * (2 + size / 1000)


def measured(
    *algorithms: str,
    ranks: tuple[int, ...] = (4, 8, 16),
    sizes: tuple[int, ...] = SIZES,
    collective: str = "all_reduce",
    **more: object,
) -> pl.DataFrame:
    constant = {"library": "Open MPI 5.0", "system": "one", "ranks_per_node": 1, "gpu": False,
                "emulated": False, "job": "1", "series": 1, "file": "f", "line": 1}  # fmt: skip
    return pl.DataFrame(
        [
            constant
            | {
                "collective": collective,
                "library_algorithm": name,
                "ranks": count,
                "nodes": count,
                "size_bytes": size,
                "time_us": time_us(name, count, size),
            }
            | more
            for name in algorithms or (RD, RING)
            for count in ranks
            for size in sizes
        ],
        schema=MEASUREMENTS,
    )


@dataclass
class Known:
    """Predicts given times; the errors of all algorithms may be common."""

    times: Mapping[str, float] = field(default_factory=dict)
    spread: float = 0.3
    used: int = 1

    def predict(self, frame: pl.DataFrame) -> pl.DataFrame:
        names, counts, sizes = (frame[one].to_list() for one in
                                ("library_algorithm", "ranks", "size_bytes"))  # fmt: skip
        found = [
            self.times.get(name) or time_us(name, count, size)
            for name, count, size in zip(names, counts, sizes, strict=True)
        ]
        factor = math.exp(1.645 * self.spread)
        return pl.DataFrame(
            {
                "index": list(range(len(found))),
                "predicted_us": found,
                "low_us": [one / factor for one in found],
                "high_us": [one * factor for one in found],
                "choice_us": found,
            }
        )


class Common(Known):
    """A model whose error is the same for all algorithms."""

    def covariance(self, frame: pl.DataFrame) -> np.ndarray:
        return np.full((len(frame), len(frame)), self.spread**2)


def decided(rows: pl.DataFrame, model: Known | None = None, **request: object) -> Advice:
    return advise(rows, AdviceRequest(**request), fit=lambda _: model or Known())  # type: ignore[arg-type]


def test_small_messages_take_fewer_stages_and_large_ones_less_data() -> None:
    found = decided(measured(), ranks=[64])
    assert [(one.size_bytes, one.algorithm) for one in found.decisions] == [(64, RD), (65536, RING)]
    assert [one.predicted_us for one in found.decisions] == pytest.approx(
        [6 * 2.064, 126 * (2 + 65536 / 64000)]
    )
    assert found.extrapolations == [Extrapolation("all_reduce", (4, 8, 16), 64)]
    assert found.extrapolations[0].factor == 4


def test_other_ranks_per_node_than_measured_have_no_confidence() -> None:
    found = decided(measured(), ranks=[64], ranks_per_node=8)
    assert [one.stated_confidence for one in found.decisions] == [None, None]
    assert "no measurement has 8 ranks per node" in found.scope.remarks[0]
    log = advice_view(found).log
    assert f"all_reduce by {RING}: not measured with these ranks per node, no confidence" in log
    # Of one algorithm, a measurement has this placement.
    some = pl.concat([measured(), measured(RD, nodes=8, ranks_per_node=8)])
    placed = decided(some, ranks=[64], ranks_per_node=8).decisions
    assert [one.stated_confidence is None for one in placed] == [False, True]
    assert all(one.is_placed for one in decided(measured(), ranks=[64]).decisions)


def test_common_errors_do_not_lower_the_confidence() -> None:
    alone = decided(measured(), ranks=[64]).decisions[1].confidence
    joint = decided(measured(), Common(), ranks=[64]).decisions[1].confidence
    # ln(405.4 / 381.0) = 0.062 against a standard deviation of 0.3 sqrt(2) of the difference.
    assert 0.5 < alone < 0.7
    assert joint == 1.0


def test_the_probability_is_that_of_the_normal_distribution() -> None:
    near = near_fastest(np.array([1.0, 1.2]), np.diag([0.1**2, 0.1**2]))
    deviation = 0.1 * math.sqrt(2)
    expected = [
        0.5 * math.erfc(-(math.log(1.05) + step) / deviation / math.sqrt(2))
        for step in (math.log(1.2), -math.log(1.2))
    ]
    assert near == pytest.approx(expected, abs=0.02)


def test_a_tie_does_not_split_a_range() -> None:
    assert joined_choices([{"a": 1.0, "b": 1.01}, {"a": 1.01, "b": 1.0}]) == ["a", "a"]
    assert joined_choices([{"a": 1.0, "b": 1.1}, {"a": 1.1, "b": 1.0}]) == ["a", "b"]
    assert joined_choices([{"a": 1.0}, {"b": 1.0}, {"b": 1.0, "a": 1.0}]) == ["a", "b", "b"]
    assert joined_choices([]) == []


def test_the_default_keeps_its_ratio_to_the_best_algorithm_measured() -> None:
    default = measured("default_ompi", ranks=(8, 16), sizes=(64,))
    best = time_us(RD, 16, 64)
    default = default.with_columns(time_us=pl.when(ranks=16).then(1.5 * best).otherwise(99.0))
    found = decided(pl.concat([measured(), default]), ranks=[64])
    assert [one.gain for one in found.decisions] == [pytest.approx(0.5), None]
    assert found.usage.defaults == 2


def test_a_non_blocking_collective_is_not_the_default() -> None:
    rows = pl.concat([measured(), measured("non_blocking_ompi")])
    assert decided(rows, ranks=[64]).ratios == {}


def test_rows_of_no_use_are_counted_by_reason() -> None:
    rows = pl.concat(
        [
            measured(),
            measured("magic_ompi", ranks=(4,)),
            measured(RD, collective="ping_pong", ranks=(2,)),
            measured(RD, sizes=(0,), ranks=(4,)),
            measured(RD, ranks=(1 << 19,), sizes=(8,)),
            measured("recursive_multiplying:a2,a2", ranks=(8,), sizes=(8,)),
            measured(RD, ranks=(4,), sizes=(8,), time_us=0.05),
        ]
    )
    assert decided(rows, ranks=[64]).usage.unused == {
        "all_reduce of 0 B": 1,
        "more than 262,144 ranks": 1,
        "no time above 0.1 us": 1,
        "point-to-point times": 2,
        "recursive_multiplying:a2,a2 of all_reduce has no known stages on 8 ranks": 1,
        "unknown algorithm magic_ompi of all_reduce": 2,
    }


def test_algorithms_of_powers_of_two_are_no_candidates_elsewhere() -> None:
    rows = measured(RD, RING, collective="all_gather")
    found = decided(rows, ranks=[96, 128])
    assert found.missing == [("all_gather", RD, 96)]
    assert set(found.predictions.filter(ranks=96)["algorithm"]) == {RING}
    scope = choose_scope(classified(measured("bine_lat_over", ranks=(4, 200))))
    assert runs_on(scope, "all_reduce", "bine_lat_over", 800)
    assert not runs_on(scope, "all_reduce", "bine_lat_over", 801)
    assert not runs_on(scope, "all_reduce", "bine_bdw_remap_over", 800)


def test_candidates_are_those_measured_of_the_library_or_known() -> None:
    scope = choose_scope(classified(measured(RD, "ring_over", "bine_lat_over")))
    assert candidates(scope, "all_reduce") == ["bine_lat_over", RD, "ring_over"]
    assert candidates(scope, "all_reduce", "library") == [RD]
    known = candidates(scope, "all_reduce", "known")
    assert {"rabenseifner_ompi", "bine_lat_over", "ring_over"} <= set(known)
    assert "ring_ompi" not in known  # it has the stages of ring_over


def test_sizes_of_less_than_a_byte_per_rank_are_not_predicted() -> None:
    found = decided(measured(RING, collective="all_gather"), ranks=[1024])
    assert [one.size_bytes for one in found.decisions] == [65536]
    with pytest.raises(ConfigError, match="no candidate can be predicted"):
        decided(measured(RING, collective="all_gather", sizes=(64,)), ranks=[1024])


def test_the_most_frequent_machine_is_chosen_and_the_others_are_named() -> None:
    rows = pl.concat([measured(), measured(RD, system="two", gpu=True)])
    scope = decided(rows, ranks=[64]).scope
    assert (scope.system, scope.gpu) == ("one", False)
    assert "one (12 rows), two (6 rows)" in scope.remarks[0]
    assert decided(rows, ranks=[64], system="two").scope.gpu
    with pytest.raises(ConfigError, match="no measurement has this system"):
        decided(rows, ranks=[64], system="three")


def test_rows_without_nodes_have_the_ranks_per_node_of_the_request() -> None:
    rows = measured(nodes=None, ranks_per_node=None)
    known = classified(rows, ranks_per_node=4)
    assert known["nodes"].unique().sort().to_list() == [1, 2, 4]
    assert known["assumed"].all()
    assert classified(rows)["ranks_per_node"].unique().to_list() == [1]


def test_a_library_can_be_named_for_rows_that_state_none() -> None:
    scope = decided(measured(library=None), ranks=[64], library="openmpi").scope
    assert scope.library == "openmpi"
    assert library_family("FJMPI 4.0.1") == "fujitsu"
    assert library_family(None) == ""
    assert library_family("mpi") == library_family("libtutti_mpi")


def test_a_torus_needs_its_sides() -> None:
    rows = measured("default-3dtorus", collective="all_gather", shape="2x2x2", ranks=(8,),
                    library="FJMPI 4.0.1")  # fmt: skip
    with pytest.raises(ConfigError, match="sides of the larger job are missing"):
        decided(rows, ranks=[64])
    with pytest.raises(ConfigError, match="differs from the number of nodes"):
        decided(rows, ranks=[65], shapes=["4x4x4"])
    with pytest.raises(ConfigError, match="is not a shape"):
        decided(rows, shapes=["4x4x"])
    found = decided(rows, shapes=["4x4x4"])
    assert {(one.ranks, one.shape) for one in found.decisions} == {(64, "4x4x4")}
    with pytest.raises(ConfigError, match="no measurement states the sides"):
        decided(measured(), shapes=["4x4x4"])


def test_by_default_jobs_are_4_and_16_times_as_large() -> None:
    assert {one.ranks for one in decided(measured()).decisions} == {64, 256}
    rows = measured(nodes=2, ranks_per_node=3, ranks=(6,))
    assert {one.ranks for one in decided(rows).decisions} == {24, 96}


@pytest.mark.parametrize(
    ("request_", "problem"),
    [
        ({"ranks": [1]}, "no prediction for this number of ranks"),
        ({"ranks": [1 << 20]}, "no prediction for this number of ranks"),
        ({"ranks": [6], "ranks_per_node": 4}, "not a multiple of 4"),
        ({"collectives": ["all_redce"]}, "did you mean `all_reduce`"),
        ({"memory": "gpu"}, "no measurement has this memory"),
    ],
)
def test_requests_that_do_not_fit(request_: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        decided(measured(), **request_)


def test_too_many_questions_construct_no_schedule(monkeypatch: pytest.MonkeyPatch) -> None:
    constructed: list[object] = []
    monkeypatch.setattr(
        "tutti.measured.advise.questions.runs_on", lambda *job: constructed.append(job)
    )
    with pytest.raises(ConfigError, match="239,840 predictions are too many"):
        decided(measured(), ranks=list(range(2, 3000)), sizes=list(range(8, 48)))
    assert constructed == []


def test_measurements_of_no_use_are_an_error_with_the_reasons() -> None:
    with pytest.raises(ConfigError, match="4 rows: unknown algorithm magic of all_reduce"):
        decided(measured("magic", ranks=(4, 8)))
    with pytest.raises(ConfigError, match="no algorithm stated"):
        decided(measured(RD, library_algorithm=None))
    emulated = pl.concat([measured(), measured(emulated=True)])
    with pytest.raises(ConfigError, match="emulated distance"):
        decided(emulated)


def test_rows_without_ranks_name_the_options() -> None:
    with pytest.raises(ConfigError, match="number of ranks not stated") as caught:
        advise(measured().with_columns(ranks=None))
    assert "--ranks-per-node" in str(caught.value)


def test_systems_may_have_slashes_in_their_names() -> None:
    rows = pl.concat([measured(system=one) for one in ("cloud/gke", "cloud/aks/gpu")])
    assert advise(rows, AdviceRequest(ranks=[32])).scope.system == "cloud/aks/gpu"


def test_the_wider_of_choice_and_runner_up_is_measured_next() -> None:
    found = decided(measured(), Known({RD: 10.0, RING: 10.5}), ranks=[128]).next
    assert [(one.algorithm, one.ranks, one.cells) for one in found] == [(RD, 32, 2)]
    assert found[0].factor == pytest.approx(math.exp(1.645 * 0.3))
    assert decided(measured(), Known(spread=0.001), ranks=[64]).next == []
    near = decided(measured(), Known({RD: 10.0, RING: 10.5}), ranks=[24]).next
    assert near[0].ranks == 24  # not beyond the job


def test_the_model_that_is_calibrated_finds_the_crossing() -> None:
    rows = measured(sizes=(64, 1024, 16384, 262144, 4194304), ranks=(4, 8, 16, 32))
    found = advise(rows, AdviceRequest(ranks=[128]))
    assert found.usage.used == len(rows)
    by_size = {one.size_bytes: one.algorithm for one in found.decisions}
    assert (by_size[64], by_size[4194304]) == (RD, RING)
    for one in found.decisions:
        assert one.low_us < one.predicted_us < one.high_us
        assert 0 <= one.confidence <= 1


def test_the_order_of_rows_does_not_matter() -> None:
    rows = measured(sizes=(64, 4096, 65536))
    first = advise(rows, AdviceRequest(ranks=[64])).predictions
    second = advise(rows.reverse(), AdviceRequest(ranks=[64])).predictions
    assert first["algorithm"].to_list() == second["algorithm"].to_list()
    assert first["predicted_us"].to_list() == pytest.approx(second["predicted_us"].to_list())


def test_the_hardware_is_that_of_the_system_or_of_a_named_platform() -> None:
    request = AdviceRequest(ranks=[64])
    unknown = advise(measured(), request)
    assert unknown.hardware.platform is None
    assert unknown.hardware.description.startswith(
        "no platform of one known; assumed: latency 2 us"
    )
    by_name = advise(measured(system="Leonardo"), request)
    assert by_name.hardware.platform == "leonardo"
    assert "leonardo (the system's name): latency 1.8 us; 2 interf" in by_name.hardware.description
    assert "gamma 0.0468 ns/B, 0.301 above 1 MiB" in by_name.hardware.description
    named = decided(measured(), ranks=[64], platform="leonardo")
    assert "platform leonardo (--platform)" in named.hardware.description
    assert list(named.hardware.of_systems.values()) == list(by_name.hardware.of_systems.values())
    times = by_name.predictions["predicted_us"].to_list()
    assert unknown.predictions["predicted_us"].to_list() != pytest.approx(times)
    facts = {fact.key: fact.value for fact in advice_view(named).facts}
    assert facts["platform"] == "leonardo"
    assert facts["hardware"] == named.hardware.description


def test_other_systems_have_the_hardware_of_their_platforms() -> None:
    rows = pl.concat([measured(), measured(system="lumi", ranks=(4, 8))])
    assert decided(rows, ranks=[64], platform="lumi").scope.system == "lumi"
    found = decided(rows, ranks=[64], platform="leonardo")
    assert "warning: the measurements are of one; platform leonardo is of leonardo" in str(
        found.hardware.remarks
    )
    assert sorted(found.hardware.of_systems) == ["lumi", "one"]
    assert found.hardware.of_systems["one"].interfaces == 2
    other = decided(rows, ranks=[64], platform="leonardo", system="lumi")
    assert "warning: the measurements are of lumi, which is platform lumi" in str(
        other.hardware.remarks
    )


def test_measurements_faster_than_a_platform_are_not_of_it() -> None:
    fast = measured(sizes=(1 << 30,)).with_columns(pl.lit(9.0).alias("time_us"))
    with pytest.raises(ConfigError, match="not of platform leonardo: 6 measurements faster"):
        decided(fast, ranks=[64], platform="leonardo")
    found = decided(fast.with_columns(pl.lit("leonardo").alias("system")), ranks=[64])
    assert found.hardware.platform is None
    assert "platform leonardo of leonardo is not used: 6 measurements" in found.hardware.remarks[0]
    # Ranks of one host need no interface.
    host = fast.with_columns(
        pl.lit(1, pl.Int64).alias("nodes"), pl.col("ranks").alias("ranks_per_node")
    )
    placed = decided(host, ranks=[64], ranks_per_node=4, platform="leonardo")
    assert placed.hardware.platform == "leonardo"


def test_a_platform_states_the_ranks_per_node_of_rows_that_do_not(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text(
        'name = "own"\n[models.m]\nkind = "postal"\nalpha = "1 us"\nbeta = "9 GB/s"\n[topology]\n'
        'build = "hierarchical:switch:4/switch:8"\nranks_per_node = 4\n'
        'links = [{ rate = "9 GB/s", latency = "1 us" }, { rate = "9 GB/s", latency = "1 us" }]\n'
    )
    rows = measured().with_columns(pl.lit(None, pl.Int64).alias("nodes"))
    known = decided(rows, ranks=[64], platform=str(file))
    assert known.scope.ranks_per_node == 4
    assert known.hardware.platform == "own"
