"""RCCL on MI300X: its constants, by hand; its rings on the links; what its library refuses."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING

import polars as pl
import pytest

import tutti
from called import call
from tutti import _core
from tutti.base.errors import ConfigError
from tutti.base.units import Size
from tutti.collectives.library import LibraryPlan
from tutti.collectives.request import ComparisonRequest
from tutti.nccl import Settings, candidates, choose
from tutti.nccl.presets import partial_system, system
from tutti.nccl.rings import cycles, paired, rings
from tutti.platforms import platform
from tutti.platforms.library import Prediction
from tutti.schedules.errors import AlgorithmError

if TYPE_CHECKING:
    from pathlib import Path

GIB = 1 << 30
MEASURED = 316e9, 330e9
"""Busbw of an all_reduce of 8 GiB on 8 MI300X in B/s: hisohara/ai-scripts, and AMD ROCm blogs,
Understanding RCCL bandwidth and xGMI performance on AMD Instinct MI300X (2025), 310 to 330."""


def microseconds(nodes: int, collective: str, size: int, choice: str) -> float:
    rows = candidates(system("mi300x", nodes), collective, size)
    return next(row.time for row in rows if f"{row.algorithm} {row.protocol}" == choice)


@pytest.mark.parametrize(
    ("nodes", "collective", "size", "choice", "latency", "rate"),
    [
        # Corrections are 1, but for the last row. 336 GB/s are 7 links of 48; 14 steps of 2.1 us.
        (1, "all_reduce", GIB, "Ring Simple", 17 + 14 * 2.1, 336 * 8 / 14),
        (1, "all_reduce", 1024, "Ring LL", 12 + 14 * 0.8, 0.08 * 336 * 8 / 14),
        (1, "all_reduce", 4096, "Tree LL", 12 + 2 * 7 * 0.9, 0.06 * 336 / 2),
        (1, "all_gather", GIB, "Ring Simple", 17 + 7 * 2.1, 336 * 8 / 7),
        (1, "broadcast", GIB, "Ring LL", 12 + 0.8, 0.08 * 1.65 * 336),
        # 26 steps with 3 posts of 2 us each, 4 with the network.
        (2, "all_reduce", GIB, "Ring Simple", 17 + 26 * 6 + 4 * 320, 336 * 16 / 30),
        (2, "all_reduce", 1 << 20, "Tree LL", 12 + 2 * (7 * 0.9 + 10.5), 0.06 * 336 / 2),
        (4, "all_reduce", GIB, "Tree Simple", 17 + 2 * (7 * 2.3 + 2 * 25), 0.59 * 336 / 2),
        (4, "all_reduce", 1 << 29, "Ring Simple", 17 + 54 * 6 + 8 * 320, 0.8 * 336 * 32 / 62),
    ],
)  # fmt: skip
def test_times_follow_from_the_constants(
    nodes: int, collective: str, size: int, choice: str, latency: float, rate: float
) -> None:
    expected = latency + size / rate / 1e3
    assert microseconds(nodes, collective, size, choice) == pytest.approx(expected)


def test_the_prediction_is_near_the_measurements_and_within_the_links() -> None:
    size = 8 * GIB
    for nodes, wires in ((1, 7 * 48e9), (2, 8 * 49e9), (16, 8 * 49e9)):
        ranks = 8 * nodes
        time = choose(system("mi300x", nodes), "all_reduce", size).time
        busbw = _core.busbw_factor("all_reduce", ranks) * size / time * 1e6
        assert busbw <= wires
        if nodes == 1:
            assert 1 < busbw / MEASURED[1] < busbw / MEASURED[0] < 1.07


@pytest.mark.parametrize("ranks", [2, 4, 6, 7, 8])
def test_cycles_use_each_link_equally_often(ranks: int) -> None:
    links = [link for order in cycles(ranks) for link in pairwise((*order, order[0]))]
    counts = {link: links.count(link) for link in links}
    assert len(counts) == ranks * (ranks - 1)
    assert len(set(counts.values())) == 1


def test_verbs_have_the_number_of_rccl(tmp_path: Path) -> None:
    explained = call("nccl", "explain", "--system", "mi300x", "-s", "1GiB", "--json", cwd=tmp_path)
    (size,) = json.loads(explained.stdout)["tables"]["sizes"]
    assert size["choice"] == {"algorithm": "Ring", "protocol": "Simple"}
    expected = microseconds(1, "all_reduce", GIB, "Ring Simple") * 1e6
    rows = tutti.compare(platform("mi300x"), collective="all_reduce", ranks=[8], sizes=["1 GiB"],
                         algorithms=["rccl"])  # fmt: skip
    times = dict(rows.select("algorithm", "time_ps").iter_rows())
    assert times["library"] == pytest.approx(expected, abs=1)
    assert times["rccl"] == pytest.approx(expected, rel=0.001)


def test_rings_between_nodes_use_every_adapter_equally() -> None:
    laid_out = rings("all_reduce", paired(8, 2))
    assert laid_out.verify().messages == 8 * 16 * 30
    run = tutti.simulate(laid_out, platform("mi300x_cluster"), size="64 MiB")
    used = run.links.filter(run.links["messages"] > 0)
    assert used.height == 2 * 56 + 2 * 16  # xGMI links, and both directions of the adapters
    assert used["bytes"].n_unique() == 1
    with pytest.raises(AlgorithmError, match="3 nodes without switches"):
        paired(8, 3)


def test_between_nodes_the_difference_of_rings_is_stated() -> None:
    library = LibraryPlan.of(platform("mi300x_cluster"))
    assert library is not None
    size = Size(bytes=8 * GIB)
    request = ComparisonRequest(platform=library.platform, collective="all_reduce", ranks=[16],
                                sizes=[size], algorithms=["rccl"])  # fmt: skip
    (case,) = library.schedules("rccl", request, 16)
    run = tutti.simulate(case.schedule, case.platform or library.platform, size=size)
    text = library.difference(case.name, 16, [(size.bytes, run.completion_ps)], lambda *_: run)
    assert "the model of RCCL 2.21.5 has 49.39 ms (-15%). Of -7.305 ms, mainly transfer" in text
    assert "us for 30 steps of a rank, 1.453 ms in the model)" in text, text
    assert run.of_limit <= 1
    with pytest.raises(AlgorithmError, match=r"trees through 8 GPUs(?s:.*)name `rccl:ring`"):
        library.model.schedule("rccl:tree", "all_reduce", 16, 64 << 20)


def test_refuses_what_rccl_does_not_have(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not modelled for RCCL"):
        candidates(system("mi300x", 1), "all_reduce", GIB, settings=Settings(algo="Ring"))
    with pytest.raises(ConfigError, match=r"RCCL 2.28 is unknown"):
        candidates(system("mi300x", 1), "all_reduce", GIB, "2.28")
    rows = candidates(system("mi300x", 2), "all_to_all", GIB)
    assert all("between nodes" in row.refusal for row in rows)
    explain = ["nccl", "explain", "--system", "mi300x", "--nodes", "2"]
    for words in (explain, ["run", "rccl", "-p", "mi300x_cluster", "-r", "16"]):
        done = call(*words, "-c", "all_to_all", "-s", "1MiB", cwd=tmp_path)
        assert done.returncode == 2
        assert "no latency of sends and receives" in done.stderr
        assert "hint: `direct` simulates its messages" in done.stderr
    done = call("run", "nccl:ring", "-p", "mi300x", "-r", "8", "--size", "1KiB", cwd=tmp_path)
    assert done.returncode == 2
    assert "is not the library of the platform" in done.stderr


def test_parts_of_a_node_use_the_links_to_each_other() -> None:
    time = choose(partial_system("mi300x", 1, 4), "all_reduce", GIB).time
    assert 1.5 * GIB / time / 1e3 <= 3 * 48


def test_sizes_without_a_schedule_are_named_and_the_others_compared(tmp_path: Path) -> None:
    """RCCL selects trees up to 16 MiB, which tutti cannot lay out through GPUs."""
    words = ["compare", "-p", "mi300x_cluster", "--ranks", "16", "-a", "rccl", "-b", "256K"]
    done = call(*words, "-e", "1G", "-f", "64", cwd=tmp_path)
    assert "rccl on 16 ranks has no row at 256 KiB, 16 MiB: tutti has no schedule" in done.stderr
    rows = pl.read_parquet(tmp_path / "out/tutti/results.parquet")
    assert set(rows["size_bytes"]) == {1 << 30}
    with pytest.raises(AlgorithmError, match="no schedule for trees"):
        tutti.compare(platform("mi300x_cluster"), collective="all_reduce", ranks=[16],
                      sizes=["256 KiB"], algorithms=["rccl"])  # fmt: skip


def test_trees_of_two_nodes_have_a_reason() -> None:
    library = platform("dgx_h100_cluster").library
    assert library is not None
    tree = Prediction("Tree", "LL", 0, 1)
    assert "halves the rate of trees" in library.model.reason(tree, 16, "transfer")
    assert library.model.reason(tree, 32, "transfer") == ""
    assert library.model.reason(tree, 16, "latency") == ""


def test_factors_of_tables_are_reasons() -> None:
    for name, algorithm, ranks, size, words in (
        (
            "mi300x_cluster",
            "rccl:ring,simple",
            16,
            1 << 25,
            "multiplies the rate by 0.1 at this size",
        ),
        ("mi300x_cluster", "rccl:ring,simple", 16, 1 << 25, "has 320 us for a step between nodes"),
        ("dgx_h100_cluster", "nccl:tree,ll128", 32, 1 << 20, "multiplies the rate of trees by 0."),
        (
            "dgx_h100_cluster",
            "nccl:ring,simple",
            32,
            1 << 30,
            "latency of rings between nodes by 1.4",
        ),
    ):
        library = platform(name).library
        assert library is not None
        predicted = library.model.predict(algorithm, "all_reduce", ranks, size)
        part = "transfer" if "rate" in words else "latency"
        assert words in library.model.reason(predicted, ranks, part)


def test_messages_of_channels_do_not_beat_the_bound() -> None:
    """8 KiB to each peer at once: the bound has one latency, not one per message."""
    library = LibraryPlan.of(platform("mi300x"))
    assert library is not None
    size = Size(bytes=64 << 10)
    request = ComparisonRequest(platform=library.platform, collective="all_to_all", ranks=[8],
                                sizes=[size], algorithms=["rccl"])  # fmt: skip
    (case,) = library.schedules("rccl", request, 8)
    run = tutti.simulate(case.schedule, case.platform or library.platform, size=size,
                         bound_on=library.platform)  # fmt: skip
    # 12 us of launch, 0.7 us of LL and 0.1 us of the link; the bytes take the rest.
    assert run.bound.at_least_ps == 12_800_000
    assert 0.97 < run.of_limit < 1
