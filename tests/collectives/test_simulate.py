"""Runs and comparisons: results, and their independence of threads."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import tutti
from tutti import _core, errors
from tutti.collectives.frames import MEASUREMENTS

MACHINE = tutti.Platform(
    name="demo",
    model=tutti.PipeliningPostal(
        alpha_p="1.34 us", alpha_r="0.34 us", beta="0.1 ns/B", gamma="0.05 ns/B"
    ),
)


def ring(ranks: int = 4) -> tutti.Schedule:
    return tutti.schedule("ring", collective="all_reduce", ranks=ranks)


def test_recursive_multiplying_meets_its_closed_form() -> None:
    schedule = tutti.schedule("recursive_multiplying:a8,a4", collective="all_reduce", ranks=32)
    run = tutti.simulate(schedule, MACHINE, size="8 B", datatype="int64")
    # Stage of b messages: alpha_p + b (alpha_r + 8 B beta) + b folds of 8 B gamma, in ns:
    # 1340 + 7 (340 + 0.8) + 7 x 0.4 and 1340 + 3 (340 + 0.8) + 3 x 0.4.
    assert run.completion_ps == run.completion_time == 6_092_000
    assert run.closed_form_ps == 6_092_000
    assert run.finish_ps == [6_092_000] * 32
    assert (run.messages, run.message_bytes) == (32 * 10, 32 * 10 * 8)
    assert run.algbw == pytest.approx(8 / 6.092e-6)
    assert run.busbw == pytest.approx(8 / 6.092e-6 * 2 * 31 / 32)


def test_a_timeline_has_the_activities_of_every_rank() -> None:
    run = tutti.simulate(ring(), MACHINE, size="4 KiB")
    timeline = run.timeline
    assert timeline.columns == [
        *("rank", "channel", "step", "name", "kind", "start_ps", "end_ps", "peer", "bytes")
    ]
    assert set(timeline["kind"]) <= set(_core.activities())
    assert timeline["name"][0] == "reduce_scatter 0"
    assert timeline.filter(kind="reduce")["peer"].null_count() == 4 * 3
    assert timeline.filter(kind="send")["peer"].null_count() == 0
    spans = timeline.group_by("rank").agg(pl.max("end_ps")).sort("rank")
    assert spans["end_ps"].to_list() == run.finish_ps


def test_messages_arrive_after_they_are_sent_and_before_they_are_received() -> None:
    run = tutti.simulate(ring(), MACHINE, size="4 KiB")
    messages = run.messages_frame
    assert messages.height == run.messages == 4 * 6
    assert messages["bytes"].sum() == run.message_bytes == 24 * 1024
    assert messages.filter(pl.col("arrival_ps") <= pl.col("sent_ps")).is_empty()
    assert messages.filter(pl.col("received_ps") < pl.col("arrival_ps")).is_empty()


def test_noise_depends_only_on_the_seed() -> None:
    noisy = tutti.Conditions(
        noise=tutti.platforms.Noise(step=tutti.platforms.Exponential(mean="1 us"))
    )

    def time(seed: int) -> int:
        run = tutti.simulate(ring(8), MACHINE, size="1 KiB", conditions=noisy, seed=seed)
        assert run.closed_form_ps is None
        return run.completion_ps

    assert time(1) == time(1)
    assert time(1) != time(2)


def test_slow_ranks_and_late_ranks_take_longer() -> None:
    quiet = tutti.simulate(ring(), MACHINE, size="4 KiB").completion_ps
    slow = tutti.Conditions(speed={2: 0.5})
    assert tutti.simulate(ring(), MACHINE, size="4 KiB", conditions=slow).completion_ps > quiet
    late = tutti.Conditions(arrival=tutti.platforms.Fixed(time="1 ms"))
    run = tutti.simulate(ring(), MACHINE, size="4 KiB", conditions=late)
    assert run.completion_ps == quiet  # all are equally late
    assert run.frame["start_ps"].to_list() == [10**9] * 4
    with pytest.raises(errors.NoiseError, match="rank 4 has a speed"):
        tutti.simulate(ring(), MACHINE, size="8 B", conditions=tutti.Conditions(speed={4: 2.0}))


def test_a_run_that_cannot_finish_names_the_waiting_ranks() -> None:
    builder = tutti.ScheduleBuilder("all_reduce", ranks=3)
    builder.rank(0).send(1)
    builder.rank(1).recv(0, slot=1).recv(2, slot=2)
    with pytest.raises(errors.DeadlockError, match="rank 1 in step 0 waits for rank 2") as caught:
        tutti.simulate(builder.build(), MACHINE, size="8 B", verify=False)
    assert caught.value.waiting == [(1, 0, [2])]
    assert caught.value.exit_code == errors.ExitCode.FAILED


@pytest.mark.parametrize(
    ("size", "datatype", "error"),
    [
        ("10 B", "float32", errors.LayoutError),
        ("8 B", "complex", errors.LayoutError),
        ("8", "float32", errors.UnitError),
        (8, "float32", errors.UnitError),
    ],
)
def test_bad_sizes_are_refused(size: str, datatype: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        tutti.simulate(ring(), MACHINE, size=size, datatype=datatype)


def test_a_comparison_of_all_leaves_out_what_needs_equal_parts() -> None:
    def compared(collective: str, size: str, algorithms: list[str] | None = None) -> set[str]:
        frame = tutti.compare(
            MACHINE, collective=collective, ranks=[5], sizes=[size], algorithms=algorithms
        )
        return set(frame["algorithm"])

    assert "bruck" in compared("all_gather", "40 B")
    assert "bruck" not in compared("all_gather", "44 B")
    assert "ring" in compared("all_gather", "44 B")
    with pytest.raises(errors.LayoutError, match="of all_gather on 5 ranks needs equal parts"):
        compared("all_gather", "44 B", ["ring", "bruck"])
    with pytest.raises(errors.LayoutError, match="of all_to_all on 5 ranks needs equal") as refused:
        compared("all_to_all", "44 B")
    assert "nearest: 40 B and 60 B" in refused.value.hint


def test_a_comparison_has_a_row_per_measurement() -> None:
    frame = tutti.compare(
        MACHINE,
        collective="all_reduce",
        ranks=[4, 6],
        sizes=["8 B", "1 KiB"],
        algorithms=["ring", "recursive_multiplying:a2,a2"],
        repetitions=2,
        seed=5,
    )
    assert dict(frame.schema) == {name: dtype() for name, dtype in MEASUREMENTS.items()}
    assert frame.height == (2 + 1) * 2 * 2  # a2,a2 fits four ranks alone
    assert frame["seed"].to_list() == [5, 6] * 6
    assert frame.select("ranks", "algorithm", "size_bytes").unique(maintain_order=True).rows() == [
        (4, "ring", 8),
        (4, "ring", 1024),
        (4, "recursive_multiplying", 8),
        (4, "recursive_multiplying", 1024),
        (6, "ring", 8),
        (6, "ring", 1024),
    ]
    assert frame["config_hash"].n_unique() == 1
    assert frame["version"].to_list() == [tutti.__version__] * 12
    held = frame.filter(pl.col("closed_form_ps").is_not_null())
    assert held["closed_form_ps"].to_list() == held["time_ps"].to_list()


def test_no_time_is_below_the_lower_bound() -> None:
    for collective in ("all_reduce", "all_gather", "broadcast", "gather"):
        frame = tutti.compare(
            MACHINE, collective=collective, ranks=[2, 6, 16], sizes=["192 B", "1536 KiB"]
        )
        assert (frame["time_ps"] >= frame["bound_ps"]).all()
        assert (frame["bound_ps"] > 0).all()
        assert max(frame["of_limit"]) > 0.5
        share = frame["bound_ps"] / frame["time_ps"]
        assert frame["of_limit"].to_list() == pytest.approx(share.to_list())


def test_a_run_has_the_parts_of_its_bound() -> None:
    run = tutti.simulate(ring(), MACHINE, size="4 MiB")
    # 2 x 3/4 x 4 MiB at 0.1 ns/B and alpha_p + alpha_r; the folds of 3/4 of it at 0.05 ns/B.
    sent = 6 * 2**20 * 100
    assert run.bound.bandwidth_ps == 1_680_000 + sent
    assert run.bound.links_ps == 0
    assert run.bound.folding_ps == sent + 340_000 + 3 * 2**20 * 50 - 1
    assert run.bound.at_least_ps == run.bound.folding_ps < run.completion_ps
    assert run.of_limit == run.bound.at_least_ps / run.completion_ps
    fast = tutti.Conditions(speed={0: 2.0})
    faster = tutti.simulate(ring(), MACHINE, size="4 MiB", conditions=fast)
    assert faster.bound.at_least_ps == faster.bound.bandwidth_ps


def test_graph_gives_a_lower_bound_by_links() -> None:
    torus = tutti.Topology.build("torus:4x4", rate="50 GB/s", latency="300 ns")
    a_megabyte = tutti.Size.parse("1 MB")
    # 30/64 of a link's 20 ps per byte; four links leave the root.
    assert torus.bound_by_links("all_reduce").of(a_megabyte).ps == 9_375_000
    assert torus.bound_by_links("broadcast", ranks=3, root=2).of(a_megabyte).ps == 5_000_000
    with pytest.raises(errors.TopologyError, match="rank 16 is not one of"):
        torus.bound_by_links("all_gather", ranks=17)
    with pytest.raises(errors.AlgorithmError, match="unknown collective"):
        torus.bound_by_links("all_gathering")
    machine = MACHINE.model_copy(update={"routes": torus.routes()})
    run = tutti.simulate(ring(16), machine, size="64 B")
    # The farthest two are four hops apart; four bytes are a message's least.
    assert run.bound.latency_ps >= 1_680_400 + 4 * 300_000


def test_topology_aware_algorithms_use_the_graph_of_the_platform() -> None:
    torus = tutti.Topology.build("torus:4x4", rate="50 GB/s", latency="300 ns")
    routes = torus.routes()
    gathered = "all_gather"
    trees = tutti.schedule("multi_tree", ranks=16, collective=gathered, topology=torus)
    forest = tutti.schedule("forest", ranks=16, collective=gathered, topology=routes)
    a_megabyte = tutti.Size.parse("1 MB")
    limit = torus.bound_by_links("all_gather").of(a_megabyte).ps
    assert routes.most_loaded(trees).of(a_megabyte).ps >= limit
    assert routes.most_loaded(forest).of(a_megabyte).ps < 1.02 * limit
    machine = MACHINE.model_copy(update={"routes": routes})
    frame = tutti.compare(machine, ranks=[16], collective=gathered, sizes=["64 KiB"])
    assert {"multi_tree", "forest"} <= set(frame["schedule"])
    assert frame.filter(schedule="forest")["closed_form_ps"].to_list() == [None]
    flat = tutti.compare(MACHINE, ranks=[16], collective=gathered, sizes=["64 KiB"])
    assert not {"multi_tree", "forest"} & set(flat["schedule"])


@settings(max_examples=10)
@given(threads=st.integers(1, 4), ranks=st.lists(st.integers(2, 20), min_size=1, max_size=3))
def test_threads_change_nothing(threads: int, ranks: list[int]) -> None:
    def frame(threads: int) -> pl.DataFrame:
        noisy = tutti.Conditions(
            noise=tutti.platforms.Noise(message=tutti.platforms.Uniform(high="1 us"))
        )
        return tutti.compare(
            MACHINE,
            collective="all_reduce",
            ranks=ranks,
            sizes=["64 B"],
            conditions=noisy,
            threads=threads,
        )

    assert_frame_equal(frame(1), frame(threads))


def test_an_algorithm_that_fits_nowhere_is_refused() -> None:
    with pytest.raises(errors.AlgorithmError):
        tutti.compare(
            MACHINE,
            collective="all_reduce",
            ranks=[4, 8],
            sizes=["8 B"],
            algorithms=["ring", "recursive_multiplying:a3"],
        )


def test_a_callback_can_stop_a_comparison() -> None:
    class StopError(Exception):
        pass

    def stop(finished: int, total: int) -> None:
        assert total == 2
        raise StopError(finished)

    with pytest.raises(StopError):
        tutti.compare(
            MACHINE,
            collective="all_reduce",
            ranks=[4],
            sizes=["8 B", "16 B"],
            algorithms=["ring"],
            done=stop,
        )


@pytest.mark.parametrize("name", [entry.name for entry in tutti.algorithms()])
@settings(max_examples=15)
@given(ranks=st.integers(2, 40), elements=st.integers(1, 300), data=st.data())
def test_closed_forms_hold_where_they_exist(
    name: str, ranks: int, elements: int, data: st.DataObject
) -> None:
    entry = next(entry for entry in tutti.algorithms() if entry.name == name)
    claimed = [c for c in entry.collectives if c != "barrier" and entry.claims(c, ranks)]
    if not claimed:
        return
    schedule = tutti.schedule(name, collective=data.draw(st.sampled_from(claimed)), ranks=ranks)
    size = tutti.Size(bytes=4 * elements * ranks)
    run = tutti.simulate(schedule, MACHINE, size=size)
    assert run.closed_form_ps in (None, run.completion_ps)


def test_names_instead_of_objects_are_refused_with_a_hint() -> None:
    ring = tutti.schedule("ring", ranks=4)
    machine = tutti.Platform(name="m", model=tutti.LogP(L="1 us", o="1 us", g="1 us"))
    with pytest.raises(errors.ConfigError, match=r"not a platform\nhint: .*platforms.platform"):
        tutti.simulate(ring, "cray_xc30", size="8 B")  # type: ignore[arg-type]
    with pytest.raises(errors.ConfigError, match=r"not a schedule\nhint: .*tutti.schedule"):
        tutti.simulate("ring", machine, size="8 B")  # type: ignore[arg-type]
