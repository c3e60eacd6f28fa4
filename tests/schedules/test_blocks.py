"""all_to_all_v: sizes of blocks in schedules, networks, bounds, files and experiments."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import tutti
from tutti import errors
from tutti.cli import app
from tutti.collectives.files.resolve import resolve
from tutti.mpi import PlannedSchedule

if TYPE_CHECKING:
    from pathlib import Path

ALGORITHMS = ("direct", "pairwise", "scatter_destination:2")
SKEWED = [[9, 4, 0, 1], [0, 0, 800, 2], [7, 0, 0, 0], [0, 50, 30, 0]]
LINKS = [{"rate": "10 GB/s", "latency": "1 us"}]


def machine(**network: Any) -> tutti.Platform:
    routes = tutti.topologies.Topology.build("ring:4", links=LINKS).routes()
    model = tutti.Postal(alpha="1 us", beta="0.1 ns/B")
    return tutti.Platform(name="ring", model=model, routes=routes, **network)


NETWORKS = {
    "model": tutti.Platform(name="any", model=tutti.Postal(alpha="1 us", beta="1 ns/B")),
    "flows": machine(),
    "packets": machine(contention=tutti.Packets()),
}


def unequal(algorithm: str, blocks: Any = SKEWED) -> tutti.Schedule:
    return tutti.schedule(algorithm, ranks=len(blocks), collective="all_to_all_v", blocks=blocks)


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_network_carries_the_blocks_and_none_beats_the_bound(
    algorithm: str, network: str
) -> None:
    schedule = unequal(algorithm)
    run = tutti.simulate(schedule, NETWORKS[network], size="802 B", datatype="int8")
    assert (run.messages, run.message_bytes) == (7, 894)
    assert not run.not_verified
    assert 0 < run.bound.at_least_ps <= run.completion_ps
    # Rank 2 receives 830 B.
    if network != "model":
        assert run.bound.links_ps >= 830 // 2 * 100


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_equal_blocks_take_as_long_as_an_all_to_all(algorithm: str, network: str) -> None:
    times = {
        tutti.simulate(
            tutti.schedule(algorithm, ranks=4, collective=collective),
            NETWORKS[network],
            size="64 KiB",
        ).completion_ps
        for collective in ("all_to_all", "all_to_all_v")
    }
    assert len(times) == 1


@settings(max_examples=30)
@given(
    st.integers(2, 6).flatmap(
        lambda n: st.lists(
            st.lists(st.sampled_from([0, 0, 1, 3, 1000, 10**9]), min_size=n, max_size=n),
            min_size=n,
            max_size=n,
        )
    ),
    st.sampled_from(ALGORITHMS),
)
def test_random_blocks_are_verified_written_and_read(blocks: list[list[int]], name: str) -> None:
    if not any(map(any, blocks)):
        return
    schedule = unequal(name, blocks)
    proof = schedule.verify()
    sent = sum(size > 0 for s, row in enumerate(blocks) for d, size in enumerate(row) if s != d)
    assert proof.messages == sent
    again = tutti.Schedule.from_text(schedule.to_text())
    assert again.blocks == schedule.blocks == blocks
    assert again.to_text() == schedule.to_text()
    assert again.verify() == proof


@pytest.mark.parametrize(
    ("blocks", "kind", "match"),
    [
        ([[1, 2, 3], [4, 5, 6]], "not_square", "2 rows and 3 columns: expected 2 x 2"),
        ([[1, 2], [3]], "not_square", "1 columns"),
        ([[1, 2], [3, -4]], "block_size", "from rank 1 to rank 1 has the size -4"),
        ([[1, 2.5], [3, 4]], "block_size", "2.5: expected an integer"),
        ([[1, 1 << 64], [3, 4]], "block_size", "rank 0 to rank 1"),
        ([[1 << 63, 1 << 63], [3, 4]], "too_large", "more than"),
        (np.zeros((2, 2), dtype=int), "all_empty", "empty"),
    ],
)
def test_invalid_blocks_are_refused(blocks: Any, kind: str, match: str) -> None:
    with pytest.raises(errors.LayoutError, match=match) as caught:
        tutti.schedule("direct", ranks=2, collective="all_to_all_v", blocks=blocks)
    assert caught.value.kind == kind


def test_algorithms_that_forward_blocks_are_refused() -> None:
    with pytest.raises(errors.AlgorithmError, match="bruck does not perform all_to_all_v"):
        unequal("bruck")
    with pytest.raises(errors.AlgorithmError, match="all_reduce has equal chunks"):
        tutti.schedule("ring", ranks=2, blocks=[[0, 1], [1, 0]])
    with pytest.raises(errors.PlanError, match="sizes of blocks: plans hold none"):
        PlannedSchedule.of(unequal("direct"))


def test_an_incorrect_schedule_is_refused() -> None:
    build = tutti.ScheduleBuilder("all_to_all_v", ranks=2, result=1, blocks=[[0, 5], [0, 0]])
    with pytest.raises(errors.VerificationError, match="nothing was written to chunk 1"):
        build.build().verify()
    build.rank(0).send(1, chunk=1)
    build.rank(1).recv(0, chunk=2, slot=1)
    with pytest.raises(errors.VerificationError, match="expected the same positions") as caught:
        build.build().verify()
    assert caught.value.kind == "block_moved"


def experiment(folder: Path, **changes: Any) -> Any:
    tables = {
        "platform": "cray_xc30",
        "collective": "all_to_all_v",
        "ranks": [4],
        "sizes": ["4 KiB"],
    }
    return resolve(tables | changes, source="e.toml", folder=folder)


def test_experiments_name_a_distribution_or_a_file(tmp_path: Path) -> None:
    (tmp_path / "blocks.csv").write_text("\n".join(",".join(map(str, row)) for row in SKEWED))
    found = experiment(tmp_path, blocks="blocks.csv")
    assert found.inputs["blocks"] == [list(itertools.chain(*SKEWED))]
    shares = np.array(experiment(tmp_path, blocks="zipf:1.0").inputs["blocks"][0]).reshape(4, 4)
    assert (shares == shares[0]).all()
    assert sorted(shares[0] / shares[0].max()) == pytest.approx([1 / 4, 1 / 3, 1 / 2, 1])
    frame = tutti.compare(
        NETWORKS["model"],
        collective="all_to_all_v",
        ranks=[4],
        sizes=["8 KiB"],
        blocks=str(tmp_path / "blocks.csv"),
    )
    assert set(frame["algorithm"]) == {"direct", "pairwise", "scatter_destination"}
    assert frame["verified"].all()


@pytest.mark.parametrize(
    ("blocks", "changes", "match"),
    [
        ("few.csv", {}, "2 rows and 2 columns: expected 4 x 4"),
        ("bad.csv", {}, "bad.csv, line 2"),
        ("none.csv", {}, "none.csv"),
        ("zipf:x", {}, "zipf:x"),
        ("uniform", {"collective": "all_reduce"}, "all_reduce has equal chunks"),
    ],
)
def test_invalid_blocks_of_experiments(
    tmp_path: Path, blocks: str, changes: dict[str, Any], match: str
) -> None:
    (tmp_path / "few.csv").write_text("1,2\n3,4\n")
    (tmp_path / "bad.csv").write_text("1,2,3,4\n1,2,-3,4\n1,2,3,4\n1,2,3,4\n")
    with pytest.raises(errors.ConfigError, match=match):
        experiment(tmp_path, blocks=blocks, **changes)


def test_the_command_shows_blocks() -> None:
    arguments = ["schedule", "show", "pairwise", "-r", "3", "-c", "all_to_all_v"]
    found = CliRunner().invoke(app, [*arguments, "--blocks", "uniform"])
    assert "blocks 1 1 1; 1 1 1; 1 1 1\n" in found.stdout
