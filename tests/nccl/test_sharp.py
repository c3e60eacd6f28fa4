"""SHARP: NCCL's algorithms whose switches between nodes reduce, in every verb."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import tutti
from called import call
from tutti.base.units import Size
from tutti.collectives.library import LibraryPlan
from tutti.collectives.request import ComparisonRequest
from tutti.nccl import candidates
from tutti.nccl.presets import system
from tutti.nccl.schedules import Layout
from tutti.nccl.sharp import SHARP, sharp
from tutti.platforms import platform
from tutti.schedules.errors import AlgorithmError

if TYPE_CHECKING:
    from pathlib import Path

GIB = 1 << 30
NOTATIONS = {"NVLS": "nvls", "CollNetDirect": "collnet_direct", "CollNetChain": "collnet_chain"}


@pytest.mark.parametrize("algorithm", SHARP)
@pytest.mark.parametrize(
    ("width", "nodes", "pieces"), [(1, 4, 2), (2, 2, 1), (4, 3, 2), (3, 2, 5), (8, 2, 4)]
)
def test_is_an_all_reduce(algorithm: str, width: int, nodes: int, pieces: int) -> None:
    proof = sharp(algorithm, Layout(width, nodes), pieces).verify()
    ranks = width * nodes
    in_node = ranks * pieces * nodes if algorithm == "NVLS" and width > 1 else 0
    assert proof.multicasts == ranks * pieces + in_node // nodes
    if algorithm != "NVLS":
        assert proof.combines == ranks * pieces


def test_refuses_too_many_ops() -> None:
    with pytest.raises(AlgorithmError, match="expected at most"):
        sharp("NVLS", Layout(8, 512), 64)


@pytest.mark.parametrize("algorithm", SHARP)
def test_the_simulation_is_near_nccl_and_within_the_links(algorithm: str) -> None:
    where = platform("dgx_h100_sharp_cluster")
    library = LibraryPlan.of(where)
    assert library is not None
    size = Size(bytes=GIB)
    notation = f"nccl:{NOTATIONS[algorithm]}"
    request = ComparisonRequest(platform=where, collective="all_reduce", ranks=[16], sizes=[size],
                                algorithms=[notation])  # fmt: skip
    (case,) = library.schedules(notation, request, 16)
    rows = candidates(system("h100_sharp", 2), "all_reduce", GIB, "2.28")
    expected = next(row.time for row in rows if row.algorithm == algorithm and row.considered)
    predicted = library.predicted[case.name, 16, GIB].time_ps
    assert predicted == pytest.approx(expected * 1e6, abs=1)
    run = tutti.simulate(case.schedule, case.platform or where, size=size)
    assert run.completion_ps == pytest.approx(predicted, rel=0.16)
    assert run.of_limit <= 1


def test_all_algorithms_of_a_comparison_include_those_of_sharp() -> None:
    model = platform("dgx_h100_sharp_cluster").library
    assert model is not None
    names = set(model.model.notations("all_reduce", 16))
    assert {f"nccl:{word}" for word in NOTATIONS.values()} <= names


def test_a_key_of_a_named_platform_enables_sharp(tmp_path: Path) -> None:
    common = ("-p", "dgx_h100_cluster", "--ranks", "32", "-b", "1MiB", "-e", "1MiB", "-a", "ring",
              "--no-report", "--json")  # fmt: skip
    explained = call("nccl", "explain", "--system", "h100_sharp", "--nodes", "4", "-s", "1MiB",
                     "--json", cwd=tmp_path)  # fmt: skip
    (size,) = json.loads(explained.stdout)["tables"]["sizes"]
    assert size["choice"]["algorithm"] == "NVLS"
    change = "platform.library.system=h100_sharp"
    compared = json.loads(call("compare", *common, "--set", change, cwd=tmp_path).stdout)
    (fastest,) = compared["tables"]["fastest"]
    own = next(row["time_us"] for row in size["candidates"]
               if (row["algorithm"], row["protocol"]) == ("NVLS", "Simple"))  # fmt: skip
    assert fastest["library"].endswith("NVLS Simple")
    assert fastest["library_time_ps"] == pytest.approx(own * 1e6, rel=1e-5)
    without = json.loads(call("compare", *common, cwd=tmp_path).stdout)
    assert without["tables"]["fastest"][0]["library"].endswith("Tree LL128")
