"""Noise, skew and traffic: random values, files, and errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

import tutti
from tutti.base.errors import ConfigError
from tutti.base.units import Time
from tutti.platforms import recordings
from tutti.platforms.errors import NoiseError

if TYPE_CHECKING:
    from pathlib import Path

MACHINE = tutti.Platform(
    name="demo", model=tutti.PipeliningPostal(alpha_p="1 us", alpha_r="0.5 us")
)


def pair(conditions: tutti.Conditions, seed: int = 0) -> tutti.Run:
    """One exchange between two ranks: 1.5 us, undisturbed."""
    schedule = tutti.schedule("recursive_doubling", collective="all_reduce", ranks=2)
    return tutti.simulate(
        schedule, MACHINE, size="8 B", datatype="int64", conditions=conditions, seed=seed
    )


def ps(text: str) -> int:
    return Time.parse(text).ps


def test_every_distribution_reaches_the_core() -> None:
    for distribution in (
        tutti.platforms.Fixed(time="1 us"),
        tutti.platforms.Uniform(high="1 us"),
        tutti.platforms.Exponential(mean="1 us"),
        tutti.platforms.Normal(mean="1 us", deviation="100 ns"),
        tutti.platforms.Lognormal(median="1 us", sigma=0.5),
        tutti.platforms.Pareto(least="1 us", shape=1.5),
        tutti.platforms.Pareto(least="1 us", shape=1.5, most="1 ms"),
        tutti.platforms.Recorded(times=["1 us", "3 us"]),
        tutti.platforms.Mixture(
            parts=[tutti.platforms.Part(chance=1, distribution=tutti.platforms.Fixed(time="1 us"))]
        ),
    ):
        conditions = tutti.Conditions(noise=tutti.platforms.Noise(message=distribution))
        assert pair(conditions).completion_ps > ps("1.5 us"), distribution


def test_an_aligned_tick_delays_all_ranks() -> None:
    # Detours of 10 us take half of the time: half of the runs start within one.
    ticks = tutti.platforms.Periodic(period="20 us", duration="10 us", aligned=True)
    conditions = tutti.Conditions(noise=tutti.platforms.Noise(detours=ticks))
    times = [pair(conditions, seed).completion_ps for seed in range(200)]
    undisturbed = times.count(ps("1.5 us"))
    assert 60 < undisturbed < 120
    # A run is delayed by at most 10 us, at its start or later.
    assert max(times) <= ps("11.5 us")


def test_a_trace_is_played_as_it_was_recorded() -> None:
    trace = tutti.platforms.NoiseTrace(detours=[("0 ns", "3 us")], cycle="1 s", aligned=True)
    conditions = tutti.Conditions(noise=tutti.platforms.Noise(detours=trace))
    # All ranks start at the same random time of a second: almost surely without a detour.
    assert pair(conditions).completion_ps == ps("1.5 us")
    assert tutti.platforms.NoiseTrace(detours=[("1 us", "3 us"), ("2 us", "4 us")]).length.ps == ps(
        "6 us"
    )


def test_more_random_detours_take_more_time() -> None:
    def mean(interval: str) -> float:
        detours = tutti.platforms.Poisson(
            interval=interval, duration=tutti.platforms.Exponential(mean="2 us")
        )
        conditions = tutti.Conditions(noise=tutti.platforms.Noise(detours=detours))
        return sum(pair(conditions, seed).completion_ps for seed in range(200)) / 200

    means = [mean(interval) for interval in ("100 us", "20 us", "5 us")]
    assert ps("1.5 us") < means[0] < means[1] < means[2]


def test_repetitions_take_arrivals_in_turn() -> None:
    arrival = tutti.platforms.PerRank(times=[["0 ns", "5 us"], ["0 ns", "7 us"]])
    conditions = tutti.Conditions(arrival=arrival)
    assert [pair(conditions, seed).completion_ps for seed in (0, 1, 2)] == [
        ps("6.5 us"),
        ps("8.5 us"),
        ps("6.5 us"),
    ]
    assert tutti.platforms.PerRank(times=["1 us", "2 us"]).times == [
        [Time(ps=10**6), Time(ps=2 * 10**6)]
    ]


def test_arrivals_for_fewer_ranks_are_refused() -> None:
    conditions = tutti.Conditions(arrival=tutti.platforms.PerRank(times=["1 us"]))
    with pytest.raises(NoiseError, match="arrivals are given for 1 ranks, but the run has 2"):
        pair(conditions)


def test_background_traffic_delays_messages() -> None:
    topology = tutti.Topology.build("switch:8", rate="10 GB/s", latency="100 ns")
    machine = MACHINE.model_copy(update={"routes": topology.routes()})
    schedule = tutti.schedule("recursive_doubling", collective="all_reduce", ranks=8)

    def time(load: float, seed: int) -> int:
        conditions = tutti.Conditions(
            background=tutti.platforms.Background(load=load, burst="64 KiB")
        )
        run = tutti.simulate(schedule, machine, size="8 B", conditions=conditions, seed=seed)
        return run.completion_ps

    # Two links of 100 ns, and 8 B at 10 GB/s, which the model itself does not charge.
    quiet = 3 * (ps("1.7 us") + 800)
    assert time(0.0, 1) == quiet
    # Links have bursts of 6.55 us on average, so that at least one of 24 messages waits.
    assert sum(time(0.1, seed) > quiet for seed in range(20)) > 10
    mean = [sum(time(load, seed) for seed in range(50)) / 50 for load in (0.05, 0.2, 0.5)]
    assert mean == sorted(mean)


@pytest.mark.parametrize(
    ("background", "fragment"),
    [
        (tutti.platforms.Background(load=1.0), "invalid load 1:"),
        (tutti.platforms.Background(load=[0.1, 0.2, 0.3]), "3 loads are given: expected one"),
    ],
)
def test_loads_out_of_range_are_refused(
    background: tutti.platforms.Background, fragment: str
) -> None:
    topology = tutti.Topology.build("switch:2", rate="10 GB/s", latency="100 ns")
    machine = MACHINE.model_copy(update={"routes": topology.routes()})
    schedule = tutti.schedule("recursive_doubling", collective="all_reduce", ranks=2)
    conditions = tutti.Conditions(background=background)
    with pytest.raises(NoiseError, match=fragment):
        tutti.simulate(schedule, machine, size="8 B", conditions=conditions)


def test_load_needs_links_and_flows_need_contention() -> None:
    with pytest.raises(NoiseError, match="the platform has no topology"):
        pair(tutti.Conditions(background=tutti.platforms.Background(load=0.1)))
    flow = tutti.platforms.Flow(source=0, destination=1, size="4 KiB")
    with pytest.raises(
        ConfigError, match="background flows need a platform with the flow model or packets"
    ):
        pair(tutti.Conditions(background=tutti.platforms.Background(flows=[flow])))
    with pytest.raises(ConfigError, match="a flow from rank 1 to itself"):
        tutti.platforms.Flow(source=1, destination=1, size="4 KiB")


def test_ranks_can_wait_for_their_sends() -> None:
    schedule = tutti.schedule("recursive_multiplying:c6m2,a2,a2,e6m2", ranks=7)

    def run(*, wait: bool) -> tutti.Run:
        conditions = tutti.Conditions(wait_for_sends=wait)
        return tutti.simulate(schedule, MACHINE, size="8 B", conditions=conditions)

    # Rank 6 exchanges at once, its partner after the collapse. Without waiting, the partner finds
    # the message of rank 6 and continues after its own send. Stages of 1.5 us, sends 0.5.
    assert run(wait=True).completion_ps == ps("6 us")
    assert run(wait=False).completion_ps == ps("6 us")
    assert min(run(wait=True).finish_ps) > min(run(wait=False).finish_ps)


def test_waiting_for_sends_is_the_same_over_links_without_contention() -> None:
    topology = tutti.Topology.build("switch:7", rate="1 TB/s", latency="100 ns")
    links = {"routes": topology.routes(), "contention": tutti.platforms.Free()}
    apart = MACHINE.model_copy(update=links)
    meeting = apart.model_copy(update={"contention": tutti.Packets()})
    schedule = tutti.schedule("recursive_multiplying:c6m2,a2,a2,e6m2", ranks=7).repeated(3)
    conditions = tutti.Conditions(wait_for_sends=True)
    runs = [
        tutti.simulate(schedule, machine, size="8 B", datatype="int64", conditions=conditions)
        for machine in (apart, meeting)
    ]
    assert runs[0].finish_ps == runs[1].finish_ps
    free = tutti.simulate(schedule, meeting, size="8 B", datatype="int64")
    assert min(free.finish_ps) < min(runs[1].finish_ps)


def test_changed_copies_take_effect() -> None:
    quiet = tutti.Conditions()
    assert pair(quiet).completion_ps == ps("1.5 us")
    late = quiet.model_copy(update={"arrival": tutti.platforms.PerRank(times=["0 ns", "1 us"])})
    slow = quiet.model_copy(
        update={"noise": tutti.platforms.Noise(message=tutti.platforms.Fixed(time="1 us"))}
    )
    assert pair(late).completion_ps == pair(slow).completion_ps == ps("2.5 us")


def test_detours_that_take_everything_are_refused() -> None:
    ticks = tutti.platforms.Periodic(period="1 us", duration="1 us")
    with pytest.raises(NoiseError, match="leave no time for work"):
        pair(tutti.Conditions(noise=tutti.platforms.Noise(detours=ticks)))


@pytest.mark.parametrize("seed", [-1, 1 << 63, 1 << 64])
def test_seeds_that_results_cannot_hold_are_refused(seed: int) -> None:
    with pytest.raises(ConfigError, match="expected an integer from 0 to"):
        tutti.compare(MACHINE, collective="all_reduce", ranks=[2], sizes=["8 B"], seed=seed)
    with pytest.raises(ConfigError, match="expected an integer from 0 to"):
        pair(tutti.Conditions(), seed)


@pytest.mark.parametrize("repetitions", [0, -1])
def test_no_repetitions_are_refused(repetitions: int) -> None:
    with pytest.raises(ConfigError, match="expected an integer, 1 or more"):
        tutti.compare(
            MACHINE, collective="all_reduce", ranks=[2], sizes=["8 B"], repetitions=repetitions
        )


def test_a_summary_has_the_quartiles_of_the_repetitions() -> None:
    frame = pl.DataFrame(
        {
            "ranks": [4] * 8 + [2],
            "repetition": [*range(8), 0],
            "time_ps": [8, 1, 7, 2, 6, 3, 5, 4, 9],
        }
    )
    found = tutti.summary(frame).rows(named=True)
    assert found[0] == {
        "ranks": 4,
        "repetitions": 8,
        "least_ps": 1,
        "lower_quartile_ps": 2,
        "median_ps": 4,
        "upper_quartile_ps": 7,
        "most_ps": 8,
    }
    assert (found[1]["ranks"], found[1]["median_ps"]) == (2, 9)


# --- files ---------------------------------------------------------------------------------------


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("noise.csv", "# taken at night\nrank,detour_us\n0,1.5\n\n1,2\n"),
        ("noise.csv", "detour\n1.5 us\n2 us\n"),
        ("noise.txt", "1.5 us\n2us\n"),
        ("noise.dat", "# one per line\n1.5 us\n\n2 us\n"),
    ],
)
def test_durations_are_read(name: str, text: str, tmp_path: Path) -> None:
    recorded = tutti.platforms.Recorded.read(written(tmp_path, name, text))
    assert [time.ps for time in recorded.times] == [1_500_000, 2_000_000]


def test_recorded_values_are_equal_for_any_file(tmp_path: Path) -> None:
    path = str(written(tmp_path, "noise.txt", "1.5 us\n2 us\n"))
    assert tutti.platforms.Recorded(file=path) == tutti.platforms.Recorded(times=["1.5 us", "2 us"])
    trace = str(written(tmp_path, "noise.trace", "1 2\n"))
    assert tutti.platforms.NoiseTrace(file=trace, unit="us") == tutti.platforms.NoiseTrace(
        detours=[("1 us", "2 us")]
    )
    with pytest.raises(ConfigError, match="expected either `times` or `file`"):
        tutti.platforms.Recorded(file=path, times=["1 us"])
    with pytest.raises(ConfigError, match="there is no such file"):
        tutti.platforms.Noise(step={"kind": "recorded", "file": "none.csv"})


def test_mistakes_within_tables_name_the_key_and_what_it_may_be() -> None:
    with pytest.raises(ConfigError, match=r"`step.fixed.tim`: is unknown: expected one of kind"):
        tutti.platforms.Noise(step={"kind": "fixed", "time": "1 us", "tim": "1 us"})


def test_durations_are_read_from_parquet_and_rounded_to_picoseconds(tmp_path: Path) -> None:
    path = tmp_path / "noise.parquet"
    pl.DataFrame({"a": [1.0, 2.0], "b": [0.12345, 3.0]}).write_parquet(path)
    times = recordings.durations(path, column="b", unit="ns")
    assert [time.ps for time in times] == [123, 3000]
    with pytest.raises(ConfigError, match="expected: one column of durations"):
        recordings.durations(path, unit="ns")
    with pytest.raises(ConfigError, match="has no column `c`\\nexpected: one of a, b"):
        recordings.durations(path, column="c", unit="ns")


@pytest.mark.parametrize(
    ("name", "text", "fragment"),
    [
        ("x.csv", "d_us\n1\nabc\n", 'line 3: column d_us is not a time\ngiven: "abc"'),
        ("x.csv", "d_us\n1\n-2\n", "line 3: column d_us is not a time"),
        ("x.csv", "d_us\nnan\n", "line 2: column d_us is not a time"),
        ("x.csv", "# c\nd\n1.5\n", 'such as "1.5 us", or a unit for the column'),
        ("x.csv", "d_us,rank\n1\n", "line 2: 1 values"),
        ("x.csv", "d_us\n", "is empty"),
        ("x.txt", "1 us 2 us\n", "line 1: 2 values"),
        ("x.txt", "", "is empty"),
    ],
)
def test_invalid_durations_are_reported_with_their_line(
    name: str, text: str, fragment: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as caught:
        recordings.durations(written(tmp_path, name, text))
    assert fragment in str(caught.value)
    assert name in str(caught.value)


def test_missing_and_invalid_files_are_refused(tmp_path: Path) -> None:
    for name in ("none.csv", "none.parquet"):
        with pytest.raises(ConfigError, match="there is no such file"):
            recordings.durations(tmp_path / name)
    with pytest.raises(ConfigError, match="cannot be read: parquet"):
        recordings.durations(written(tmp_path, "x.parquet", "PAR1"))


def test_a_trace_of_netgauge_is_read(tmp_path: Path) -> None:
    path = written(tmp_path, "noise.trace", "# start\tduration\n1000 50\n2000\t70.5\n")
    trace = tutti.platforms.NoiseTrace.read(path)
    assert trace.length.ps == 2_070_500
    assert [(start.ps, lost.ps) for start, lost in trace.detours] == [
        (1_000_000, 50_000),
        (2_000_000, 70_500),
    ]
    back = written(tmp_path, "back.trace", "2000 50\n1000 70\n")
    with pytest.raises(ConfigError, match="line 2: a detour starts before the previous one"):
        tutti.platforms.NoiseTrace.read(back)
    one = written(tmp_path, "one.trace", "2000\n")
    with pytest.raises(ConfigError, match="line 1: 1 values"):
        tutti.platforms.NoiseTrace.read(one)


def test_arrivals_are_read_in_each_form(tmp_path: Path) -> None:
    forms = {
        "ranks.csv": "rank,first_us,second_us\n0,1,3\n1,2,4\n",
        "repetitions.csv": "0_us,1_us\n1,2\n3,4\n",
    }
    for name, text in forms.items():
        read = tutti.platforms.PerRank.read(written(tmp_path, name, text)).times
        assert [[time.ps // 10**6 for time in times] for times in read] == [[1, 2], [3, 4]]
    plain = tutti.platforms.PerRank.read(written(tmp_path, "one.txt", "1\n2\n"), unit="us")
    assert plain.times == [[Time(ps=10**6), Time(ps=2 * 10**6)]]
    gap = written(tmp_path, "gap.csv", "rank,a_us\n0,1\n2,2\n")
    with pytest.raises(ConfigError, match='line 3: rank "2" appears instead of rank 1'):
        tutti.platforms.PerRank.read(gap)


def test_flows_are_read(tmp_path: Path) -> None:
    text = "source,destination,bytes,start_us,period_us,count\n0,1,4096,1,2,3\n"
    (flow,) = recordings.flows(written(tmp_path, "flows.csv", text), tutti.platforms.Flow)
    assert (flow.source, flow.destination, flow.size.bytes, flow.count) == (0, 1, 4096, 3)
    assert (flow.start.ps, flow.period.ps) == (10**6, 2 * 10**6)
    for text, fragment in (
        ("source,destination\n0,1\n", "expected: source, destination, bytes"),
        ("source,destination,bytes\n0,x,1\n", "line 2: column destination is not a count"),
        ("source,destination,bytes\n1,1,1\n", "line 2: Flow: a flow from rank 1 to itself"),
    ):
        with pytest.raises(ConfigError) as caught:
            recordings.flows(written(tmp_path, "bad.csv", text), tutti.platforms.Flow)
        assert fragment in str(caught.value)


def test_used_conditions_stay_equal() -> None:
    used, unused = (
        tutti.Conditions(noise=tutti.platforms.Noise(step=tutti.platforms.Fixed(time="1 us")))
        for _ in range(2)
    )
    used.core(ranks=4, seed=0)
    used.background.core(None)
    assert used == unused
    assert used != tutti.Conditions()
