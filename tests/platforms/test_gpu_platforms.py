"""GPU platforms: no prediction exceeds the wires, and predictions resemble measurements."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tutti
from tutti.base.errors import ConfigError
from tutti.base.units import Size, Time
from tutti.platforms import platform
from tutti.platforms.files.builder import machine
from tutti.platforms.files.presets import find_platform
from tutti.platforms.files.scaled import scaled, scaled_notation
from tutti.platforms.npus import npu

if TYPE_CHECKING:
    from collections.abc import Iterator

SIZES = ("8 B", "4 KiB", "1 MiB", "64 MiB", "8 GiB")


@dataclass(frozen=True)
class Machine:
    """A platform file: its NPU, the NPUs of a host, and the rank counts to test."""

    npu: str
    host: int
    ranks: tuple[int, ...]


MACHINES = {
    "a3_mega": Machine("h100", 8, (16, 32)),
    "dgx_a100": Machine("a100", 8, (8,)),
    "dgx_a100_cluster": Machine("a100", 8, (16,)),
    "dgx_b200": Machine("b200", 8, (8,)),
    "dgx_b200_cluster": Machine("b200", 8, (16,)),
    "dgx_h100": Machine("h100", 8, (4, 8)),
    "dgx_h100_cluster": Machine("h100", 8, (16,)),
    "gb200_nvl72": Machine("gb200", 72, (8, 72)),
    "gb200_nvl72_cluster": Machine("gb200", 72, (144,)),
    "gb300_nvl72_cluster": Machine("gb300", 72, (144,)),
    "h800_deepep": Machine("h800", 8, (8, 16)),
    "mare_nostrum_5_gpus": Machine("h100", 4, (4, 16)),
    "mi300x": Machine("mi300x", 8, (8,)),
    "rail_only_h100": Machine("h100", 8, (16,)),
}
HALF_ADAPTER = {"a3_mega", "mare_nostrum_5_gpus"}
"""Platforms whose adapters have 200 Gb/s, half of the NPU's usual 400 Gb/s."""


def all_reduce(where: tutti.Platform, algorithm: str, ranks: int, size: str) -> tutti.Run:
    schedule = tutti.schedule(algorithm, ranks=ranks)
    return tutti.simulate(schedule, where, size=size, verify=False)


def bus_bandwidth(where: tutti.Platform, algorithm: str, ranks: int, size: str) -> float:
    """Returns the busbw of nccl-tests in GB/s."""
    run = all_reduce(where, algorithm, ranks, size)
    return 2 * (ranks - 1) / ranks * Size.parse(size).bytes / (run.completion_time / 1e3)


def wires_ps(name: str, ranks: int, size: int) -> float:
    """Returns the time in which raw links carry what any all_reduce must send, in picoseconds."""
    tested = MACHINES[name]
    peaks = npu(tested.npu)
    adapter = peaks.nic_bandwidth.core.bytes_per_second / (2 if name in HALF_ADAPTER else 1)
    hosts = max(1, ranks // tested.host)
    # Some rank sends this much, over NVLink and the adapter; some host over its adapters.
    sent = 2 * (ranks - 1) / ranks * size
    across = 2 * (hosts - 1) / hosts * size / (tested.host * adapter)
    scale_up = peaks.nvlink_bandwidth.core.bytes_per_second
    return 1e12 * max(sent / (scale_up + (adapter if hosts > 1 else 0)), across)


def models_of(name: str) -> Iterator[tutti.Platform]:
    """Yields the platform with each of its models; the routes are built once."""
    base, found = platform(name), find_platform(name, folder=Path())
    bare = found.model_copy(update={"topology": None})
    for model in found.models:
        yield base.model_copy(update={"model": machine(bare, model, source=name).model})


@pytest.mark.parametrize("name", MACHINES)
def test_no_all_reduce_exceeds_the_wires(name: str) -> None:
    for where in models_of(name):
        for ranks in MACHINES[name].ranks:
            small = ranks <= 32
            trees = ["double_binary_tree", "direct:two_step"] if small else []
            for algorithm in ["ring", "recursive_halving_doubling", *trees]:
                for size in SIZES if small else SIZES[-2:]:
                    run = all_reduce(where, algorithm, ranks, size)
                    assert run.of_limit <= 1, (where.model, algorithm, ranks, size)
                    least = wires_ps(name, ranks, Size.parse(size).bytes)
                    assert run.completion_time >= least, (where.model, algorithm, ranks, size)


@pytest.mark.parametrize("name", MACHINES)
def test_links_share_the_default_model_and_carry_less_than_their_raw_rate(name: str) -> None:
    raw = npu(MACHINES[name].npu).nvlink_bandwidth.core.bytes_per_second
    where = platform(name)
    assert where.network == "protocols+flow"
    assert where.routes is not None
    carried = sum(
        link.rate.core.bytes_per_second
        for link in where.routes.topology.links
        if link.source == "npu0" and link.rate.core.bytes_per_second > 100e9
    )
    if name == "mi300x":
        carried = 7 * 48e9
    assert 0.7 * raw < carried < 0.9 * raw


@pytest.mark.parametrize("name", ["a3_mega", "h800_deepep", "rail_only_h100"])
def test_a_platform_without_spines_has_one_pod(name: str) -> None:
    raw = find_platform(name, folder=Path())
    with pytest.raises(ConfigError, match="no spine switches"):
        scaled(raw, 4096, source=name)


def test_the_page_lists_the_platforms() -> None:
    page = (Path(__file__).parents[2] / "docs/machines/gpus.md").read_text(encoding="utf-8")
    for name in MACHINES:
        assert f"\n| `{name}` |" in page


MEASURED = [
    # platform, algorithm, ranks, busbw of nccl-tests at 8 GiB in GB/s
    # NVIDIA/nccl#1712: "close to 240 GB/s" on one host of A100
    ("dgx_a100", "ring", 8, 240),
    # NVIDIA/nccl#1455: 365 to 370 with NCCL_ALGO=RING on 2 to 8 H100
    ("dgx_h100", "ring", 8, 367),
    # NVIDIA/nccl#1807: 830 on 8 B200, with reductions in the switch, which a ring lacks
    ("dgx_b200", "ring", 8, 830),
    # coreweave/nccl-tests, README, GB200, single rack: out of place, reductions in the switch
    ("gb200_nvl72", "ring", 72, 834.57),
    # hisohara/ai-scripts, 01_rccl-smoketest, MI300X on one node
    ("mi300x", "direct:two_step", 8, 315.7),
    # deepseek-ai/DeepEP, README: about 160 GB/s, the most that NVLink of an H800 carries
    ("h800_deepep", "ring", 8, 160),
]


@pytest.mark.parametrize(("name", "algorithm", "ranks", "measured"), MEASURED)
def test_bus_bandwidth_of_a_host_is_within_15_percent(
    name: str, algorithm: str, ranks: int, measured: float
) -> None:
    predicted = bus_bandwidth(platform(name), algorithm, ranks, "8 GiB")
    assert predicted == pytest.approx(measured, rel=0.15)


@pytest.mark.parametrize(
    ("algorithm", "measured_us"),
    # PICO, MareNostrum 5, 4 nodes, 256 B
    [("ring", 42.17), ("double_binary_tree", 22.99)],
)
def test_short_all_reduce_on_mare_nostrum_5(algorithm: str, measured_us: float) -> None:
    run = all_reduce(platform("mare_nostrum_5_gpus"), algorithm, 16, "256 B")
    assert run.completion_time / 1e6 == pytest.approx(measured_us, rel=0.15)


def test_short_all_reduce_on_a3_mega_as_a_tree_in_simple() -> None:
    # lessizzmore/create-a3mega-ztan-fork: 8 B on two hosts, of which the latency is inferred.
    simple = next(one for one in models_of("a3_mega") if one.model.launch == Time.parse("8.4 us"))
    run = all_reduce(simple, "double_binary_tree:nccl,node=8", 16, "8 B")
    assert run.completion_time / 1e6 == pytest.approx(123, rel=0.15)


@pytest.mark.parametrize(
    ("size", "measured_us"),
    # lessizzmore/create-a3mega-ztan-fork: all_reduce on two hosts
    [("64 MiB", 1261.6), ("256 MiB", 2360.9), ("1 GiB", 6759.0), ("8 GiB", 47535.0)],
)
def test_measured_all_reduce_respects_the_bound_of_a3_mega(size: str, measured_us: float) -> None:
    bound = all_reduce(platform("a3_mega"), "ring", 16, size).bound.at_least_ps / 1e6
    assert bound <= measured_us
    assert bound > 0.5 * measured_us or size == "64 MiB"


@pytest.mark.parametrize(
    ("gpus", "each"), [(64, 64), (72, 72), (96, 48), (576, 72), (1024, 64), (2048, 64)]
)
def test_jobs_use_racks_equally(gpus: int, each: int) -> None:
    """1,024 GPUs are 64 of each of 16 racks, since they are no multiple of 72."""
    raw = find_platform("gb200_nvl72_cluster", folder=Path())
    assert f"npus={each},hosts=" in scaled_notation(raw, gpus)
    assert scaled(raw, gpus, source="test").routes.topology.ranks == gpus  # type: ignore[union-attr]
    with pytest.raises(ConfigError, match="does not fit"):
        scaled_notation(raw, 1022)
