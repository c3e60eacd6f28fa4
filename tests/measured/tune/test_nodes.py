"""Ranks per node in `tutti tune`: predictions, rules, and what a platform does not support."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from called import call
from tutti.base.errors import ConfigError
from tutti.measured.tune import Question, TuningDecision, by_model, mpich, openmpi
from tutti.measured.tune.files import Writer
from tutti.measured.tune.nodes import check_full_nodes, placement_cautions, platform_cautions
from tutti.platforms.files.builder import machine
from tutti.platforms.files.platform_file import RawPlatform
from tutti.platforms.files.presets import find_platform
from tutti.platforms.nodes import build_of, with_ranks_per_node

MODEL: dict[str, Any] = {
    "kind": "pipelining_postal", "alpha_p": "300 ns", "alpha_r": "200 ns", "beta": "0.05 ns/B"
}  # fmt: skip
NODES: dict[str, Any] = {
    "name": "cluster",
    "models": {"model": MODEL},
    "topology": {
        "build": build_of("switch", 4, 16),
        "ranks_per_node": 4,
        "links": [
            {"rate": "0.05 ns/B", "latency": "0 ps"},
            {"rate": "0.08 ns/B", "latency": "550 ns"},
        ],
    },
    "calibration": {"error": "16 %", "hosts": 2, "cores": 4},
}


def read(tables: dict[str, Any]) -> RawPlatform:
    return RawPlatform.model_validate(tables)


@pytest.mark.parametrize(
    ("per_node", "fastest"), [(1, "recursive_doubling"), (4, "hierarchical:4x4")]
)
def test_a_hierarchical_algorithm_pays_with_several_ranks_per_node(
    per_node: int, fastest: str
) -> None:
    """Recursive doubling sends each rank's 64 KiB over the link that the ranks of a node share."""
    raw = with_ranks_per_node(read(NODES), per_node, source="")
    names = ["recursive_doubling", "hierarchical:4x4"]
    times = by_model(Question("all_reduce", 16, [1 << 16]), machine(raw, "model", source=""), names)
    assert times.filter(method="model").sort("time_ps")["schedule"][0] == fastest


def test_other_platforms_have_their_ranks_per_node() -> None:
    flat = find_platform("cray_xc30", folder=Path())
    assert with_ranks_per_node(flat, 8, source="") is flat
    rails = NODES | {
        "topology": {"build": "rail_optimized:npus=4,hosts=4", "ranks_per_node": 4,
                     "links": [{"rate": "10 GB/s", "latency": "1 us"}]}
    }  # fmt: skip
    with pytest.raises(ConfigError, match="another number of ranks per node"):
        with_ranks_per_node(read(rails), 2, source="--ranks-per-node")
    odd = NODES | {"topology": NODES["topology"] | {"ranks_per_node": 7}}
    with pytest.raises(ConfigError, match="do not divide the 64 NPUs"):
        machine(read(odd), "model", source="")


def test_limits_of_a_platform_are_reported() -> None:
    assert list(platform_cautions(read(NODES), [16], 4)) == []
    (crowded,) = platform_cautions(read(NODES), [16], 8)
    assert "8 ranks on a node of 4 cores" in crowded
    on_one = NODES | {"calibration": {"error": "3 %", "hosts": 1}, "topology": None}
    nodeless, one_host = platform_cautions(read(on_one), [16], 8)
    assert "has no nodes" in nodeless
    assert "was measured within one host" in one_host
    with pytest.raises(ConfigError, match="not a multiple of 4 ranks per node"):
        check_full_nodes([2, 6], 4)


def test_measurements_with_other_ranks_per_node_are_reported() -> None:
    spread = "Open MPI 5.0.11, 4 hosts, rank 0 on a"
    assert list(placement_cautions([spread], 8, 2)) == []
    (caution,) = placement_cautions(["Open MPI 5.0.11, a"], 8, 2)
    assert "8 ranks were measured with 8 per node, not 2" in caution


def decision(per_node: int | None) -> TuningDecision:
    return TuningDecision("all_reduce", 8, 0, 4095, "ring", 1, "model", ranks_per_node=per_node)


def test_mpich_has_conditions_on_the_ranks_per_node() -> None:
    names = ("allreduce", "bcast", "reduce", "allgather", "alltoall", "reduce_scatter_block",
             "barrier")  # fmt: skip
    stock: dict[str, Any] = {
        f"collective={name}": {"comm_type=intra": {"comm_size=any": {}}} for name in names
    }
    tree = json.loads(mpich.merged(stock, [decision(4)]))["collective=allreduce"]
    rules = tree["comm_type=intra"]["comm_size<=8"]
    assert list(rules) == ["comm_avg_ppn<=3", "comm_avg_ppn<=4", "comm_avg_ppn=any"]
    ruled = [key for key, below in rules.items() if "_ring" in json.dumps(below)]
    assert ruled == ["comm_avg_ppn<=4"]
    assert "comm_avg_ppn" not in mpich.merged(stock, [decision(None)])


def test_fewer_ranks_than_a_node_are_on_a_single_one(tmp_path: Path) -> None:
    written = Writer(tmp_path, {}, ranks_per_node=16).write("openmpi6", [decision(None)])
    assert written.path is not None
    (rule,) = json.loads(written.path.read_text())["collectives"]["allreduce"]
    assert rule["comm_rank_distribution"] == "single-node"
    assert openmpi.unstated("openmpi6", written.decisions) == []


def test_the_margin_is_the_larger_of_10_percent_and_the_error_of_the_platform(
    tmp_path: Path,
) -> None:
    """Where no rule beats the default by the margin, rules of an earlier run are removed."""
    file = tmp_path / "cluster.toml"
    text = """name = "cluster"
[models.postal]
kind = "postal"
alpha = "1 us"
beta = "1 ns/B"
[calibration]
error = "{} %"
"""
    arguments = ("tune", "--ranks", "6", "-b", "96000", "-e", "96000", "-a", "ring", "--platform",
                 "cluster.toml", "--for", "openmpi", "--out", "o")  # fmt: skip
    outputs = []
    for error, code in (("5", 0), ("99", 2)):
        file.write_text(text.format(error))
        done = call(*arguments, cwd=tmp_path)
        assert done.returncode == code, done.stderr
        outputs.append(" ".join((done.stdout + done.stderr).split()))
    assert "wrote o/openmpi.rules" in outputs[0]
    assert (
        "openmpi: no schedule is predicted to beat the library's default by 99%; "
        "removed files of an earlier run: openmpi.rules, openmpi.han, openmpi.env"
    ) in outputs[1]
    assert not list((tmp_path / "o").glob("openmpi.*"))


@pytest.mark.parametrize(
    ("ranks", "problem"),
    [("8192", "8192 ranks exceed the platform's topology"), ("1,4", "one rank has no messages")],
)
def test_impossible_rank_counts_are_refused_first(tmp_path: Path, ranks: str, problem: str) -> None:
    done = call("tune", "-p", "torus:4x4", "--ranks", ranks, "-b", "8", "-e", "8", cwd=tmp_path)
    assert done.returncode == 2
    assert problem in " ".join(done.stderr.split())
    assert not (tmp_path / "out").exists()
