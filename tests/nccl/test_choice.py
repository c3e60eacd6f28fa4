"""Settings, channels and errors of the choice."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tutti.base.errors import ConfigError
from tutti.measured.errors import TuningError
from tutti.nccl import Graph, NcclSystem, Settings, candidates, choose, known_versions
from tutti.nccl.channels import channel_counts
from tutti.nccl.presets import partial_system, preset_names, system
from tutti.nccl.settings import ALGORITHMS, enabled
from tutti.nccl.versions import version

MIB = 1 << 20
H100 = system("dgx_h100", 2)


def test_channels_equal_those_of_public_logs() -> None:
    # deepseek-ai/DeepEP issue 106: 2 nodes, 16 coll channels, 16 nvls channels.
    counts = channel_counts(H100, version("2.20"), Settings())
    assert (counts.collective, counts.nvls) == (16, 16)
    alone = channel_counts(system("dgx_h100", 1), version("2.28"), Settings())
    assert alone.collective == 24


def test_limits_on_channels() -> None:
    rules = version("2.28")
    assert channel_counts(H100, rules, Settings(max_nchannels=4)).collective == 4
    assert channel_counts(H100, rules, Settings(min_nchannels=20, max_nchannels=4)).collective == 20
    counts = channel_counts(H100, rules, Settings(max_ctas=8))
    assert (counts.collective, counts.nvls) == (8, 8)
    assert channel_counts(replace(H100, channels=10), rules, Settings()).collective == 10


@pytest.mark.parametrize(
    ("text", "collective", "expected"),
    [
        ("", "all_reduce", None),
        ("ring,TREE", "all_reduce", {"Ring", "Tree"}),
        ("^NVLS,Ring", "all_reduce", set(ALGORITHMS) - {"NVLS", "Ring"}),
        ("Ring;allreduce:Tree", "all_reduce", {"Tree"}),
        ("Ring;allreduce:Tree", "all_gather", {"Ring"}),
        ("AllGather:^Ring", "all_gather", set(ALGORITHMS) - {"Ring"}),
        ("AllGather:^Ring", "all_reduce", None),
    ],
)
def test_lists(text: str, collective: str, expected: set[str] | None) -> None:
    assert enabled(text, "NCCL_ALGO", ALGORITHMS, collective, version("2.28")) == expected


@pytest.mark.parametrize(
    ("text", "nccl", "problem"),
    [
        ("Rong", "2.28", "unknown name `Rong`"),
        ("allreduc:Ring", "2.28", "unknown collective `allreduc`"),
        ("Ring;Tree", "2.28", "only the first list"),
        ("allreduce:Ring", "2.23", "has no lists for one collective"),
        ("PAT", "2.20", "unknown name `PAT`"),
        ("allgather:Rong", "2.28", "unknown name `Rong`"),
    ],
)
def test_refuses_lists(text: str, nccl: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        choose(H100, "all_reduce", MIB, nccl, Settings(algo=text))


def test_reads_variables_and_refuses_other_numbers() -> None:
    read = Settings.from_environment({"NCCL_ALGO": "Tree", "NCCL_NTHREADS": "128", "HOME": "/"})
    assert read == Settings(algo="Tree", nthreads=128)
    with pytest.raises(ConfigError, match="NCCL_NTHREADS: is not a number"):
        Settings.from_environment({"NCCL_NTHREADS": "many"})


def test_old_versions_fall_back_to_ring_and_new_ones_refuse() -> None:
    settings = Settings(algo="NVLS", nvls_enable=0)
    one = system("dgx_h100", 1)
    for nccl in ("2.20", "2.23"):
        chosen = choose(one, "all_reduce", MIB, nccl, settings)
        assert (chosen.algorithm, chosen.fallback) == ("Ring", True)
    with pytest.raises(TuningError, match="no algorithm for all_reduce"):
        choose(one, "all_reduce", MIB, "2.28", settings)


def test_states_why_not() -> None:
    why = {(row.algorithm, row.protocol): row.refusal for row in candidates(H100, "all_reduce", 8)}
    assert why["Ring", "LL"] == ""
    assert why["NVLS", "Simple"].startswith("NVLS between nodes needs CollNet")
    assert why["NVLS", "LL"] == "NVLS supports Simple only"
    far = Graph(8, 48.0, 48.0, "NVL", "PHB")
    phb = replace(H100, graphs={"ring": far, "tree": far}, nvls=False)
    ll128 = {
        row.algorithm: row.refusal
        for row in candidates(phb, "all_reduce", 8)
        if row.protocol == "LL128"
    }
    assert ll128["Ring"] == "LL128 is disabled: paths to the network are PHB"


def test_sharp_offers_collnet_between_nodes_only() -> None:
    for nodes, refused in ((1, True), (4, False)):
        rows = candidates(system("h100_sharp", nodes), "all_reduce", MIB)
        simple = {row.algorithm: row.refusal for row in rows if row.protocol == "Simple"}
        assert [bool(simple[name]) for name in ("CollNetDirect", "CollNetChain")] == [refused] * 2
        assert simple["NVLS"] == ""


@pytest.mark.parametrize("name", preset_names())
@pytest.mark.parametrize("nccl", known_versions())
def test_presets_have_a_choice(name: str, nccl: str) -> None:
    where = system(name, 1)
    problem = ""
    if where.gfx:
        problem = "RCCL .* is unknown"
    elif where.architecture == "blackwell" and nccl < "2.25":
        problem = "does not support compute capability 10"
    if problem:
        with pytest.raises(ConfigError, match=problem):
            choose(where, "all_reduce", MIB, nccl)
        return
    assert choose(where, "all_reduce", MIB, nccl).time > 0


@pytest.mark.parametrize("name", ["gb200_nvl72", "gb300_nvl72"])
def test_parts_of_a_domain_have_the_graphs_of_their_search(name: str) -> None:
    adapter = {"gb200_nvl72": 48.0, "gb300_nvl72": 96.0}[name]
    for width in (1, 2, 4, 8, 10, 16, 18, 20, 32, 36, 64, 72):
        found = partial_system(name, 2, width)
        ring = found.graph("ring")
        # Rings use the adapters of the GPUs, or all NVLinks of a GPU: 18 of 40.1 GB/s. Within a
        # node, a GPU forwards all rings but those that leave at it.
        assert ring.channels * ring.inter <= adapter * width
        limit = 721.8 * width / max(1, width - 1)
        assert width == 1 or ring.channels * ring.intra <= limit
        assert ring.channels * ring.inter > min(adapter * width, 721.8) * 0.92


def test_refuses_other_input() -> None:
    ring = {"ring": Graph(1, 1.0, 1.0), "tree": Graph(1, 1.0, 1.0)}
    for call, problem in (
        (lambda: choose(H100, "all_redce", 8), "unknown collective"),
        (lambda: choose(H100, "all_reduce", 0), "is not a size"),
        (lambda: choose(H100, "all_reduce", 8, "1.0"), "NCCL 1.0 is unknown"),
        (lambda: system("dgx", 1), "unknown system"),
        (lambda: system("dgx_h100", 0), "2 GPUs or more"),
        (lambda: NcclSystem("x", 1, 1, 90, graphs=ring), "2 GPUs or more"),
        (lambda: NcclSystem("x", 1, 2, 90), "1 channel or more"),
        (lambda: Graph(1, -1.0, 1.0), "intra: is invalid"),
        (lambda: Graph(1, 1.0, 1.0, "NVX"), "unknown value `NVX`"),
    ):
        with pytest.raises(ConfigError, match=problem):
            call()
