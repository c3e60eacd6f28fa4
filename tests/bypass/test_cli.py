"""`tutti bypass` from the command line: output, files and errors."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

import pytest

from called import call
from tutti import schedule, simulate
from tutti.bypass import BypassMesh, plan
from tutti.bypass.platform_file import write_platform
from tutti.platforms import platform as tutti_platform

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.timeout(600)
"""Starting many programs is slow on a busy machine."""


EXPERIMENT = """
collective = "all_reduce"
algorithms = ["double_binary_tree:nccl"]
ranks = 16
sizes = ["64 KiB"]
output = "out"
platform = "dbt.toml"
"""


def tutti(*arguments: str, cwd: Path, code: int = 0) -> str:
    done = call(*arguments, cwd=cwd)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_a_mapping_is_printed_drawn_and_run(tmp_path: Path) -> None:
    output = tutti(
        "bypass", "map", "double_binary_tree:nccl", "--out", "dbt.toml", "--draw", "dbt.svg",
        cwd=tmp_path,
    )  # fmt: skip
    assert "52 flows on 4x4" in output
    assert "dedicated     44" in output
    assert "verified optimal: no configuration" in output
    assert max(map(len, output.splitlines())) <= 80
    assert (tmp_path / "dbt.svg").stat().st_size > 1000
    (tmp_path / "experiment.toml").write_text(EXPERIMENT)
    output = tutti("run", "experiment.toml", "--size", "64KiB", cwd=tmp_path)
    assert "on 16 ranks of bypass-4x4" in output


def test_a_platform_file_has_the_rates_of_chiplets_and_links(tmp_path: Path) -> None:
    """The file gives the time that the same rates give in Python, with parallel links."""
    ring = schedule("ring:4x4", collective="all_reduce", ranks=16)
    planned = plan(ring, BypassMesh(4), copies=2)
    links: dict[str, Any] = {"rate": "68 GB/s", "latency": "12 ns"}
    rates: dict[str, Any] = {"chiplets": {5: "34 GB/s"}, "pairs": {(0, 1): "17 GB/s"}}
    tutti(
        "bypass", "map", "ring:4x4", "--copies", "2", "--out", "slow.toml",
        "--chiplet-rate", "5=34 GB/s", "--link-rate", "0>1=17 GB/s", cwd=tmp_path,
    )  # fmt: skip
    (mapping,) = planned.mappings
    expected = mapping.configuration.topology(**links, **rates)
    platform = tutti_platform(str(tmp_path / "slow.toml"))
    assert platform.routes is not None
    read = platform.routes.topology.core.links()
    place = attrgetter("source", "target")
    assert sorted(read, key=place) == sorted(expected.core.links(), key=place)
    uniform = tmp_path / "plain.toml"
    write_platform(uniform, mapping, **links)
    slow, fast = (
        simulate(ring, each, size="256 KiB") for each in (platform, tutti_platform(uniform))
    )
    assert slow.completion_ps > fast.completion_ps


def test_search_finds_a_faster_mapping_and_repeats_it(tmp_path: Path) -> None:
    arguments = ("bypass", "search", "double_binary_tree:nccl", "--trials", "30", "--seed", "1")
    output = tutti(*arguments, cwd=tmp_path)
    assert "30 configurations" in " ".join(output.split())
    assert output == tutti(*arguments, cwd=tmp_path)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["map", "ring", "--mesh", "4"], "expected: the numbers of columns and rows"),
        (["run", "ring", "--chiplet-rate", "5"], "expected: a node and a rate"),
        (["map", "ring", "--link-rate", "5=1 GB/s"], "expected: source, destination and rate"),
        (["map", "ring", "--link-rate", "0>1=1 GB/s"], "expected: also `--out FILE`"),
        (["map", "ring", "--link-rate", "0>9=1 GB/s", "-o", "p.toml"], "from node 0 to node 9"),
        (["map", "ring", "--muxes", "none"], "unknown muxes `none`"),
        (["map", "rnig"], "did you mean `ring`"),
        (["map", "ring", "--method", "gredy"], "did you mean `greedy`"),
        (["map", "ring", "--time-limit", "20"], "20"),
        (["map", "ring", "--phase", "7"], "phase"),
        (["draw", "4x4:0=>5"], "node 0 and node 5 are in different rows and columns"),
        (["draw", "4x4:mesh", "-o", "picture.gif"], "picture.gif"),
    ],
)  # fmt: skip
def test_mistakes_are_reported(arguments: list[str], expected: str, tmp_path: Path) -> None:
    output = tutti("bypass", *arguments, cwd=tmp_path, code=2)
    assert expected in output
    assert "Traceback" not in output


def test_paths_of_a_platform_are_checked(tmp_path: Path) -> None:
    tutti("bypass", "map", "double_binary_tree:nccl", "--out", "dbt.toml", cwd=tmp_path)
    (tmp_path / "experiment.toml").write_text(EXPERIMENT)
    file = tmp_path / "dbt.toml"
    text = file.read_text()
    run = ("run", "experiment.toml", "--size", "64KiB")
    file.write_text(text.replace("paths = [", "paths = [\n    [0, 15],"))
    assert "0" in tutti(*run, cwd=tmp_path, code=2)
    file.write_text(text.replace("paths = [", 'routing = "dimension_order"\npaths = ['))
    assert "expected no `paths`" in tutti(*run, cwd=tmp_path, code=2)
