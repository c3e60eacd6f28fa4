"""The built-in platforms: their values, and the source of each."""

from __future__ import annotations

from pathlib import Path

import pytest

from tutti.platforms.files.builder import machine
from tutti.platforms.files.platform_file import numbers
from tutti.platforms.files.presets import find_platform, platform_names
from tutti.platforms.machine import PipeliningPostal
from tutti.topologies import link_classes

PLATFORMS = platform_names()


@pytest.mark.parametrize("name", PLATFORMS)
def test_every_number_has_a_source(name: str) -> None:
    platform = find_platform(name, folder=Path())
    assert platform.name == name
    assert platform.summary
    assert platform.source
    found = list(numbers(platform))
    assert found
    for key, _, source, _ in found:
        assert source, f"{name}: {key} has no source"


def test_gpu_platforms_name_their_library_with_a_source() -> None:
    for name in PLATFORMS:
        platform = find_platform(name, folder=Path())
        has_gpus = any(model.startswith(("nccl", "rccl")) for model in platform.models)
        assert (platform.library is not None) == has_gpus, name
        assert platform.library is None or platform.library.source
        library = machine(platform, next(iter(platform.models)), source=name).library
        assert library is None or has_gpus


@pytest.mark.parametrize("suffix", ["", "_cluster"])
def test_an_h200_has_the_network_of_an_h100(suffix: str) -> None:
    old, new = (find_platform(f"dgx_{gpu}{suffix}", folder=Path()) for gpu in ("h100", "h200"))
    assert (new.models, new.topology, new.library) == (old.models, old.topology, old.library)
    assert "H200" in new.summary


def test_cray_matches_table_1_of_the_paper() -> None:
    platform = find_platform("cray_xc30", folder=Path())
    values = {key: value for key, value, _, inferred in numbers(platform) if not inferred}
    assert values == {
        "models.minimum.alpha_p": "1.34 us",
        "models.minimum.alpha_r": "340 ns",
        "models.median.alpha_p": "1.51 us",
        "models.median.alpha_r": "380 ns",
    }


def test_inferred_values_are_marked() -> None:
    platform = find_platform("cray_xc30", folder=Path())
    inferred = {key for key, _, _, inferred in numbers(platform) if inferred}
    assert inferred == {"models.minimum.beta", "models.median.beta", "compute.gamma"}


def test_simulated_machine_matches_the_timelines() -> None:
    platform = find_platform("paper_simulator", folder=Path())
    assert [value for _, value, _, _ in numbers(platform)] == [
        "500 ns",
        "100 ns",
        "0.4 ns/B",
        "10 ns",
    ]


@pytest.mark.parametrize("name", PLATFORMS)
def test_every_model_of_every_platform_can_be_run(name: str) -> None:
    platform = find_platform(name, folder=Path())
    for model in platform.models:
        routes = machine(platform, model, source=name).routes
        assert (routes is None) is (platform.topology is None)
        if routes is not None:
            assert routes.pair(0, routes.topology.ranks - 1).hops >= 1


TOPOLOGIES = {
    # NPUs, switches, the most hops
    "a3_mega": (256, 32 + 8, 4),
    "blue_gene_q": (1024, 0, 2 + 2 + 2 + 4 + 1),
    "cray_xc30_dragonfly": (13 * 96 * 4, 13 * 96, 2 + 2 + 1 + 1),
    "dgx_a100": (8, 1, 2),
    "dgx_a100_cluster": (640, 80 + 32 + 20, 4),
    "dgx_b200": (8, 1, 2),
    "dgx_b200_cluster": (1024, 128 + 32 + 16, 4),
    "dgx_h100": (8, 1, 2),
    "dgx_h100_cluster": (1024, 128 + 32 + 16, 4),
    "fugaku": (6144, 0, 1 + 1 + 1 + 4 + 4 + 4),
    "gb200_nvl72": (72, 1, 2),
    "gb200_nvl72_cluster": (576, 8 + 72 + 8, 4),
    "gb300_nvl72_cluster": (576, 8 + 72 + 8, 4),
    "h800_deepep": (256, 32 + 8, 4),
    "infiniband_hdr_fat_tree": (800, 40 + 20, 4),
    "infiniband_qdr_hyperx": (672, 96, 4),
    "leonardo": (20 * 180, 20 * 18 + 20, 5),
    "lumi": (24 * 32 * 16, 24 * 32, 2 + 1 + 2),
    # 16 cables between two groups of 16 switches: each switch has one to every group.
    "lumi_c": (8 * 16 * 16, 8 * 16, 2 + 1 + 1),
    "mare_nostrum_5": (7 * 160, 7 * 10 + 7 + 1, 6),
    "mare_nostrum_5_gpus": (640, 4, 3),
    "mi300x": (8, 0, 1),
    "mare_nostrum_5_gpp": (3 * 2160, 3 * 30 + 3 + 1, 6),
    "rail_only_h100": (1024, 128 + 8, 4),
    # 36 cables between two groups of 32 switches: each switch has one to every group.
    "slingshot_dragonfly": (8192, 512, 2 + 1 + 1),
    "tpu_v4": (4096, 0, 24),
}


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_machine_has_the_published_shape(name: str) -> None:
    platform = find_platform(name, folder=Path())
    assert platform.topology is not None
    assert platform.topology.build is not None
    given = len(platform.topology.links)
    assert given in {1, len(link_classes(platform.topology.build))}
    default = platform.default_model or next(iter(platform.models))
    routes = machine(platform, default, source=name).routes
    assert routes is not None
    facts = routes.topology.facts
    npus, switches, diameter = TOPOLOGIES[name]
    assert (facts.npus, facts.switches, facts.diameter) == (npus, switches, diameter)


def test_cray_by_links_matches_the_measured_latency_within_a_blade() -> None:
    measured = machine(find_platform("cray_xc30", folder=Path()), "minimum", source="")
    laid_out = machine(find_platform("cray_xc30_dragonfly", folder=Path()), "minimum", source="")
    assert laid_out.routes is not None
    assert isinstance(measured.model, PipeliningPostal)
    assert isinstance(laid_out.model, PipeliningPostal)
    hop = laid_out.routes.pair(0, 1).latency.ps
    assert laid_out.model.alpha_p.ps + hop == measured.model.alpha_p.ps
