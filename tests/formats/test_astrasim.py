"""Files of ASTRA-sim: their meaning, and errors."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from typer.testing import CliRunner

from tutti.base.errors import ConfigError
from tutti.cli.app import app
from tutti.formats.astrasim.networks import AstraSimNetwork, Dimension, load_network
from tutti.formats.astrasim.reader import load_workload, simulate
from tutti.formats.astrasim.systems import System, load_system
from tutti.formats.chakra import reader as chakra
from tutti.formats.chakra.reader import Attribute, ChakraTrace, Node
from tutti.workloads.errors import TraceError
from tutti.workloads.trace import programs

if TYPE_CHECKING:
    from pathlib import Path

NETWORK = """
topology: [ Ring, FullyConnected, Switch ]
npus_count: [ 4, 2, 8 ]
bandwidth: [ 200.0, 100.0, 50 ]  # GB/s
latency: [ 100.0, 500, 1000.0 ]  # ns
"""
SYSTEM: dict[str, Any] = {
    "scheduling-policy": "FIFO",
    "endpoint-delay": 20,
    "active-chunks-per-dimension": 2,
    "preferred-dataset-splits": 4,
    "all-reduce-implementation": ["ring", "ring", "ring"],
    "collective-optimization": "localBWAware",
    "local-mem-bw": 1600,
    "boost-mode": 0,
}


def collective(kind: int, size: int) -> ChakraTrace:
    attributes = {"comm_type": Attribute("int64", kind), "comm_size": Attribute("uint64", size)}
    return ChakraTrace(nodes=(Node(id=1, type="COMM_COLL", attributes=attributes),))


def one(block: Any, npus: int, bandwidth: float = 50, latency: float = 500) -> Dimension:
    return Dimension(block=block, npus=npus, bandwidth=bandwidth, latency=latency)


def time(network: AstraSimNetwork, system: System, kind: int, size: int, *, aware: bool) -> int:
    found = programs([collective(kind, size)] * _product(network.sizes), network.sizes)
    return simulate(network, system, found, aware=aware).total.ps


def _product(sizes: tuple[int, ...]) -> int:
    product = 1
    for size in sizes:
        product *= size
    return product


def transfer(size: int, bandwidth: float) -> int:
    """Picoseconds, rounded up: bandwidth in 2^30 B/s."""
    return -(-size * 10**12 // round(bandwidth * 2**30))


def test_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "n.yml").write_text(NETWORK, encoding="utf-8")
    (tmp_path / "s.json").write_text(json.dumps(SYSTEM), encoding="utf-8")
    network = load_network(tmp_path / "n.yml")
    assert network.sizes == (4, 2, 8)
    assert network.dimensions[2] == one("Switch", 8, 50, 1000)
    system = load_system(tmp_path / "s.json")
    assert (system.order, system.nested, system.delay) == ("fifo", True, 20)
    assert (system.splits, system.active, system.memory, system.peak) == (4, 2, 1600, 0)


@pytest.mark.parametrize("aware", [True, False])
@pytest.mark.parametrize(("block", "hops"), [("Ring", 1), ("FullyConnected", 1), ("Switch", 2)])
def test_an_all_reduce_takes_its_closed_form(block: str, hops: int, *, aware: bool) -> None:
    """2 (N - 1) messages, each a hop and a delay, and N - 1 reductions, for each chunk."""
    part = (1 << 20) // 4 // 8
    sent, folded = transfer(part, 50), -(-3 * part * 1000 // 1600)
    relayed = sent if aware and block == "Switch" else 0
    message = sent + relayed + hops * 500_000 + 10_000
    expected = 4 * (14 * message + 7 * folded)
    system = System(splits=4, memory=1600)
    network = AstraSimNetwork(dimensions=(one(block, 8),))
    assert time(network, system, 0, 1 << 20, aware=aware) == expected


def test_hierarchy_reduces_inwards_and_gathers_outwards() -> None:
    """Reduce-scatter on each dimension but the last, all-reduce there, all-gather back."""
    dimensions = (one("Ring", 4, 200, 100), one("FullyConnected", 2, 100), one("Switch", 8))
    network = AstraSimNetwork(dimensions=dimensions)
    total, size = 0, 1 << 20
    for steps, entry, rate, latency in (
        (3, size, 200, 100),
        (1, size // 4, 100, 500),
        (14, size // 8, 50, 1000),
        (1, size // 4, 100, 500),
        (3, size, 200, 100),
    ):
        part = entry // {3: 4, 1: 2, 14: 8}[steps]
        total += steps * (transfer(part, rate) + latency * 1000 + 10_000)
    found = time(network, System(), 0, size, aware=False)
    assert found == total


def test_chunks_are_pipelined_through_a_hierarchy() -> None:
    """While one chunk is on the second dimension the next is on the first."""
    network = AstraSimNetwork(dimensions=(one("Ring", 4), one("Ring", 4)))
    uncut = time(network, System(splits=1), 0, 64 << 20, aware=True)
    cut = time(network, System(splits=8), 0, 64 << 20, aware=True)
    assert 0.5 * uncut < cut < 0.9 * uncut


def test_a_reduce_scatter_and_an_all_gather_are_an_all_reduce() -> None:
    """The size of an all-gather is that of a part, like in ASTRA-sim."""
    network, system = AstraSimNetwork(dimensions=(one("Ring", 8),)), System(memory=1600)
    parts = [
        time(network, system, kind, size, aware=True) for kind, size in ((7, 1 << 20), (2, 1 << 17))
    ]
    assert sum(parts) == time(network, system, 0, 1 << 20, aware=True)


def test_congestion_makes_chunks_wait() -> None:
    network, system = AstraSimNetwork(dimensions=(one("Ring", 8),)), System(splits=4, active=4)
    aware, unaware = (time(network, system, 0, 64 << 20, aware=aware) for aware in (True, False))
    assert aware > 3.6 * unaware


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("topology:", "topology-name:", ("topology-name", "unknown key")),
        ("FullyConnected", "Mesh", ("topology[1]", "Mesh", "Ring or FullyConnected or Switch")),
        ("[ 4, 2, 8 ]", "[ 4, 2 ]", ("npus_count", "has 2 values")),
        ("[ 4, 2, 8 ]", "[ 4, 2, 0 ]", ("npus_count[2]", "greater than or equal to 1")),
        ("[ 4, 2, 8 ]", "4", ("npus_count", "is not a list")),
        ("200.0", "fast", ("bandwidth[0]", "fast")),
        ("latency: [ 100.0, 500, 1000.0 ]", "", ("latency", "is missing")),
        ("[ 4,", "[ 4", ("not YAML",)),
    ],
)
def test_invalid_networks_are_refused(
    tmp_path: Path, old: str, new: str, words: tuple[str, ...]
) -> None:
    path = tmp_path / "n.yml"
    text = NETWORK.replace(old, new)
    path.write_text(text + "}" if old == "[ 4," else text, encoding="utf-8")
    with pytest.raises(ConfigError) as refused:
        load_network(path)
    for word in ("n.yml", *words):
        assert word in str(refused.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"scheduling-policy": "EXPLICIT"}, ("scheduling-policy", "LIFO or FIFO")),
        ({"all-gather-implementation": ["direct"]}, ("all-gather-implementation[0]", "direct")),
        (
            {"preferred-dataset-splits": 0},
            ("preferred-dataset-splits", "greater than or equal to 1"),
        ),
        ({"collective-optimisation": "baseline"}, ("collective-optimisation", "unknown key")),
        ({"model-shared-bus": 1}, ("model-shared-bus",)),
        ({"scheduling-policy": []}, ("scheduling-policy", "is not text")),
        ({"endpoint-delay": "ring:x"}, ("endpoint-delay", "ring:x", "is not an integer")),
        ({"endpoint-delay": 10**30}, ("endpoint-delay", "too large")),
        ({"all-reduce-implementation": 5}, ("all-reduce-implementation", "is not a list")),
        ({"all-reduce-implementation": []}, ("all-reduce-implementation", "is empty")),
        ({"inter-dimension-scheduling": "themis"}, ("inter-dimension-scheduling", "themis")),
        ({"local-mem-bw": 0}, ("local-mem-bw", "greater than or equal to 1e-09")),
        ({"local-mem-bw": float("inf")}, ("local-mem-bw", "not finite")),
    ],
)
def test_invalid_systems_are_refused(
    tmp_path: Path, change: dict[str, Any], words: tuple[str, ...]
) -> None:
    path = tmp_path / "s.json"
    path.write_text(json.dumps(SYSTEM | change), encoding="utf-8")
    with pytest.raises(ConfigError) as refused:
        load_system(path)
    for word in ("s.json", *words):
        assert word in str(refused.value)


@pytest.mark.parametrize("npus", [2, 4, 8, 16])
@pytest.mark.parametrize("aware", [True, False])
@pytest.mark.parametrize(("block", "hops"), [("Ring", 1), ("FullyConnected", 1), ("Switch", 2)])
def test_an_all_to_all_takes_its_closed_form(
    npus: int, block: str, hops: int, *, aware: bool
) -> None:
    """N (N - 1) / 2 sequential messages of 1/N of each chunk."""
    sent = transfer((1 << 20) // 4 // npus, 50)
    relayed = sent if aware and block == "Switch" else 0
    message = sent + relayed + hops * 500_000 + 10_000
    network = AstraSimNetwork(dimensions=(one(block, npus),))
    found = time(network, System(splits=4), 6, 1 << 20, aware=aware)
    assert found == 4 * (npus * (npus - 1) // 2) * message


@pytest.mark.parametrize("splits", [1, 4])
def test_an_all_to_all_passes_the_dimensions_in_sequence(splits: int) -> None:
    """Each dimension carries the complete chunk, while the next chunk is on the previous one."""
    dimensions = (one("Ring", 4, 200, 100), one("Ring", 8))
    network = AstraSimNetwork(dimensions=dimensions)
    chunk = (1 << 20) // splits
    inner = 6 * (transfer(chunk // 4, 200) + 100_000 + 10_000)
    outer = 28 * (transfer(chunk // 8, 50) + 500_000 + 10_000)
    found = time(network, System(splits=splits), 6, 1 << 20, aware=True)
    assert found == inner + splits * outer


def test_one_npu_represents_all_in_an_all_to_all() -> None:
    network = AstraSimNetwork(dimensions=(one("Ring", 3), one("Ring", 4)))
    system = System(splits=3, active=2)
    alike = programs([collective(6, 999_996)] * 12, network.sizes)
    times = {simulate(network, system, found, aware=True).total.ps for found in (alike, alike * 12)}
    assert len(times) == 1


def test_an_all_to_all_on_a_long_ring_is_refused() -> None:
    network = AstraSimNetwork(dimensions=(one("Ring", 2049),))
    with pytest.raises(TraceError, match="expected at most 2,048 NPUs in a dimension"):
        time(network, System(), 6, 1 << 20, aware=True)


@pytest.mark.parametrize(
    ("listed", "words"),
    [
        (None, ("all-to-all-implementation: is missing, and the workload has an all_to_all",)),
        (["ring"], ("does not list one algorithm for each dimension", 'given: ["ring"]')),
        (["ring"] * 3, ("does not list one algorithm", 'expected: ["ring", "ring"]')),
    ],
)
def test_algorithms_are_required_for_each_dimension(
    tmp_path: Path, listed: list[str] | None, words: tuple[str, ...]
) -> None:
    """ASTRA-sim omits dimensions after the end of the list."""
    (tmp_path / "s.json").write_text(
        json.dumps(SYSTEM | ({"all-to-all-implementation": listed} if listed else {})),
        encoding="utf-8",
    )
    for npu in range(4):
        chakra.write(tmp_path / f"t.{npu}.et", collective(6, 1 << 20))
    network = AstraSimNetwork(dimensions=(one("Ring", 2), one("Ring", 2)))
    system = load_system(tmp_path / "s.json")
    with pytest.raises(ConfigError) as refused:
        load_workload(tmp_path / "t", network, system)
    for word in ("s.json", *words):
        assert word in str(refused.value)


@pytest.mark.parametrize(
    "algorithm",
    [
        *("direct", "direct5", "oneRing", "oneDirect", "oneDirect5", "doubleBinaryTree"),
        *("halvingDoubling", "oneHalvingDoubling", "Ring"),
    ],
)
@pytest.mark.parametrize("collective", ["all-reduce", "all-gather", "reduce-scatter", "all-to-all"])
def test_other_algorithms_of_any_dimension_are_refused(
    tmp_path: Path, collective: str, algorithm: str
) -> None:
    change = {f"{collective}-implementation": ["ring", algorithm, "ring"]}
    (tmp_path / "s.json").write_text(json.dumps(SYSTEM | change), encoding="utf-8")
    expected = rf"{collective}-implementation\[1\]: `{algorithm}` is not modelled: expected ring"
    with pytest.raises(ConfigError, match=expected):
        load_system(tmp_path / "s.json")


@pytest.mark.parametrize(
    "change",
    [
        {"all-to-all-implementation-custom": ["a2a"]},
        {"all-reduce-implementation-custom": ["ar"]},
        {"all-reduce-implementation-chakra": []},
        {"per-node-custom-implementation": "nodes.yml"},
        {"replay-only": 1},
        {"replay-only": False},
        {"model-shared-bus": True},
    ],
)
def test_keys_of_what_is_not_modelled_are_not_unknown(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    """`Sys.cc` compares `replay-only` with 0, so that `false` switches it on."""
    (tmp_path / "s.json").write_text(json.dumps(SYSTEM | change), encoding="utf-8")
    with pytest.raises(ConfigError, match=f"{next(iter(change))}: .* is not modelled|are not"):
        load_system(tmp_path / "s.json")


@pytest.mark.parametrize("aware", [True, False])
def test_links_without_latency_have_a_picosecond(*, aware: bool) -> None:
    """ASTRA-sim permits a latency of 0."""
    none, least, usual = (
        AstraSimNetwork(dimensions=(one("Ring", 4, latency=latency),)) for latency in (0, 0.001, 1)
    )
    times = [time(each, System(), 0, 1 << 20, aware=aware) for each in (none, least)]
    assert times[0] == times[1]
    assert none.remarks == ("latency of 1 ps, the least, instead of 0 in 1 dimension",)
    assert usual.remarks == ()


def test_replay_only_0_has_no_effect(tmp_path: Path) -> None:
    """A system of shuoshuc/astra-sim-artifacts, with the all_reduce of ASTRA-sim 1.0."""
    tables = {
        "preferred-dataset-splits": 4, "collective-optimization": "localBWAware",
        "local-mem-bw": 50, "replay-only": 0, "roofline-enabled": 1, "peak-perf": 400,
        "all-reduce-implementation": ["ring"],
    }  # fmt: skip
    (tmp_path / "s.json").write_text(json.dumps(tables), "utf-8")
    (tmp_path / "w.txt").write_text(
        "MICRO\n1\nconv1 -1 5 NONE 0 5 NONE 0 5 ALLREDUCE 1048576 5\n", "utf-8"
    )
    network, system = (
        AstraSimNetwork(dimensions=(one("Ring", 8),)),
        load_system(tmp_path / "s.json"),
    )
    run = simulate(network, system, load_workload(tmp_path / "w.txt", network, system).programs)
    assert round(run.total.ps / 1e6, 1) == 117.8


def test_keys_without_effect_are_listed(tmp_path: Path) -> None:
    off = {"replay-only": 0, "model-shared-bus": False, "track-local-mem": True, "trace-enabled": 1}
    (tmp_path / "s.json").write_text(json.dumps(SYSTEM | off), encoding="utf-8")
    assert set(load_system(tmp_path / "s.json").unused) == {"boost-mode", *off}
    (tmp_path / "s.json").write_text(json.dumps(SYSTEM | {"local-reduction-delay": [1]}), "utf-8")
    with pytest.raises(ConfigError, match="local-reduction-delay"):
        load_system(tmp_path / "s.json")


def test_all_data_over_all_dimensions_is_refused() -> None:
    network = AstraSimNetwork(dimensions=(one("Ring", 4), one("Ring", 4)))
    with pytest.raises(TraceError, match="expected `localBWAware`"):
        time(network, System(nested=False), 0, 1 << 20, aware=True)


def test_the_command_runs_its_files(tmp_path: Path) -> None:
    network = "topology: [ Switch ]\nnpus_count: [ 2 ]\nbandwidth: [ 1 ]\nlatency: [ 5 ]\n"
    (tmp_path / "n.yml").write_text(network, encoding="utf-8")
    system = SYSTEM | {"all-reduce-implementation": ["ring"]}
    (tmp_path / "s.json").write_text(json.dumps(system), encoding="utf-8")
    for npu in range(2):
        chakra.write(tmp_path / f"t.{npu}.et", collective(0, 1 << 30))
    files = ["--network", str(tmp_path / "n.yml"), "--system", str(tmp_path / "s.json")]
    arguments = ["train", "from-astrasim", str(tmp_path / "t"), *files]
    runner = CliRunner()
    arguments += ["--out", str(tmp_path / "o")]
    times = []
    for more in ([], ["--no-congestion"]):
        result = runner.invoke(app, [*arguments, *more])
        assert result.exit_code == 0, result.output
        assert "2 NPUs: Switch 2" in result.stdout
        assert "ignored keys, which do not affect time: boost-mode" in result.stderr
        assert pl.read_parquet(tmp_path / "o" / "results.parquet")["npus"].item() == 2
        times.append(float(result.stdout.split("\n")[1].split(" ns")[0].replace(",", "")))
    assert times[0] > times[1]
    (tmp_path / "t.0.et").unlink()
    result = runner.invoke(app, arguments)
    assert result.exit_code == 2
    assert "missing file of rank 0" in result.output
