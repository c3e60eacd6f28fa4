"""One question, one answer: the verbs that price a collective agree with `nccl explain`.

`trace run`, and `train run` in isolation, take its number. `train run` with flows is at least that
number, and within `ABOVE` of it without other traffic. `sweep` and `explore` have the rows of
`compare`, whose agreement test_one_answer.py tests.
"""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pytest

import tutti
from called import call
from tutti import _core
from tutti.base.units import Size
from tutti.collectives.lowering import timed
from tutti.collectives.trace_run import simulate_trace
from tutti.explore.engine import Engine, Point
from tutti.explore.state import Base, default_algorithms
from tutti.measured.tune.library_defaults import LIBRARIES
from tutti.measured.tune.targets import TARGETS, library_of
from tutti.nccl import choose, libraries
from tutti.nccl.of_platform import LibraryTimes
from tutti.nccl.presets import partial_system
from tutti.platforms import platform
from tutti.platforms.files.presets import find_platform
from tutti.platforms.files.scaled import scaled
from tutti.training.endpoint import Npu, configurations
from tutti.training.experts import Links
from tutti.training.fabric import Dimension, StepNetwork
from tutti.training.library import by_library, lines, members, predicted
from tutti.workloads.experts import ExpertLayer
from tutti.workloads.operations import CollectiveCall, Kind, Operations, Trace

if TYPE_CHECKING:
    import polars as pl

    from tutti.platforms.machine import Platform

SIZES = ("1 MiB", "16 MiB", "256 MiB", "1 GiB", "8 GiB")
ABOVE = 0.05
"""The most by which flows without other traffic exceed NCCL's model."""


class Question(NamedTuple):
    """A platform, its NCCL system, and a group along some dimensions of its GPUs.

    Attributes:
        platform: The platform.
        system: The NCCL system.
        dimensions: The dimensions of the GPUs, innermost first.
        mask: The dimensions of the group, a bit each.
        layout: The nodes of the group, and its GPUs on each.
    """

    platform: str
    system: str
    dimensions: tuple[int, ...]
    mask: int
    layout: tuple[int, int]

    @property
    def gpus(self) -> int:
        return int(np.prod(self.dimensions))

    @property
    def where(self) -> Platform:
        found = platform(self.platform)
        if found.routes is not None and found.routes.topology.ranks == self.gpus:
            return found
        raw = find_platform(self.platform, folder=Path())
        return scaled(raw, self.gpus, source="test")

    @property
    def group(self) -> tuple[int, ...]:
        return members(self.dimensions, self.mask)[0]

    def network(self, where: Platform) -> StepNetwork:
        rings = tuple(Dimension(f"d{at}", size) for at, size in enumerate(self.dimensions))
        return StepNetwork(rings=rings, platform=where, library=True)


QUESTIONS = [
    Question("dgx_a100", "dgx_a100", (8,), 1, (1, 8)),
    Question("dgx_a100_cluster", "dgx_a100", (16,), 1, (2, 8)),
    Question("dgx_h100", "dgx_h100", (8,), 1, (1, 8)),
    Question("dgx_h100_cluster", "dgx_h100", (16,), 1, (2, 8)),
    Question("dgx_h100_cluster", "dgx_h100", (32,), 1, (4, 8)),
    Question("dgx_h100_cluster", "dgx_h100", (8, 4), 2, (4, 1)),
    Question("dgx_h100_cluster", "dgx_h100", (4, 2, 2), 5, (2, 4)),
    Question("dgx_h100_sharp_cluster", "h100_sharp", (16,), 1, (2, 8)),
    Question("dgx_h100_sharp_cluster", "h100_sharp", (8, 4), 2, (4, 1)),
    Question("rail_only_h100", "dgx_h100", (16,), 1, (2, 8)),
    Question("mare_nostrum_5_gpus", "mare_nostrum_5", (16, 40), 1, (4, 4)),
    Question("dgx_b200", "dgx_b200", (8,), 1, (1, 8)),
    Question("dgx_b200_cluster", "dgx_b200", (16,), 1, (2, 8)),
    Question("gb200_nvl72", "gb200_nvl72", (72,), 1, (1, 72)),
    Question("gb200_nvl72", "gb200_nvl72", (8, 9), 1, (1, 8)),
    Question("gb200_nvl72_cluster", "gb200_nvl72", (4, 36), 2, (2, 18)),
    Question("gb200_nvl72_cluster", "gb200_nvl72", (144,), 1, (2, 72)),
    Question("gb200_nvl72_cluster", "gb200_nvl72", (128,), 1, (2, 64)),
    Question("gb300_nvl72_cluster", "gb300_nvl72", (32, 2, 2), 5, (2, 32)),
    Question("gb300_nvl72_cluster", "gb300_nvl72", (72, 4), 2, (4, 1)),
    Question("mi300x", "mi300x", (8,), 1, (1, 8)),
]
NAMES = [f"{one.platform}-{one.layout[0]}x{one.layout[1]}" for one in QUESTIONS]


def explained_ps(question: Question, collective: str, size: int) -> int:
    """Returns the time of `nccl explain`."""
    system = partial_system(question.system, *question.layout)
    return round(choose(system, collective, size).time * 1e6)


def of_trace(question: Question, collective: str, size: int) -> int:
    """Returns the time of a trace with one collective, as `trace run` has it."""
    where, group = question.where, question.group
    empty = np.zeros(0, np.int64)
    started = Operations(
        kinds=np.array([Kind.COLLECTIVE], np.uint8),
        sizes=np.array([size]),
        durations=np.zeros(1, np.int64),
        peers=np.zeros(1, np.int32),
        tags=np.zeros(1, np.int64),
        streams=np.zeros(1, np.int32),
        first_dependency=np.zeros(2, np.int64),
        dependencies=empty,
        on_start=empty.astype(np.bool_),
    )
    idle = started.replaced(
        **{name: getattr(started, name)[:0] for name in ("kinds", "sizes", "durations", "peers")},
        tags=empty,
        streams=empty.astype(np.int32),
        first_dependency=np.zeros(1, np.int64),
    )
    ranks = tuple(started if rank in group else idle for rank in range(max(group) + 1))
    trace = Trace(name="one", ranks=ranks, collectives=(CollectiveCall(collective, group),))
    times = LibraryTimes.of(where)
    assert times is not None
    return simulate_trace(timed(trace, times), where).completion_ps


def of_flows(question: Question, collective: str, size: int) -> int:
    """Returns the time of a collective of all groups in a step with the detail `flows`."""
    where = question.where
    transfer = _core.Transfer(collective, question.mask, size)
    fabric = question.network(where).fabric([transfer])
    sizes = {"chunk": Size.parse("64 KiB"), "message": Size.parse("8 KiB")}
    settings = _core.FabricSettings(
        chunk=64 << 10,
        message=8 << 10,
        every_npu=True,
        detail="flows",
        launch_ps=where.model.launch.ps,
    )
    endpoint = configurations()["ideal"].endpoint(Npu(), fabric, transfers=[transfer], **sizes)
    program = _core.TrainingProgram.alone(transfer)
    return _core.simulate_training([program], fabric, endpoint, settings).end_ps


@pytest.mark.parametrize("question", QUESTIONS, ids=NAMES)
@pytest.mark.parametrize("collective", ["all_reduce", "all_gather", "all_to_all"])
def test_traces_and_isolated_steps_take_the_time_of_nccl(
    question: Question, collective: str
) -> None:
    network = question.network(question.where)
    for text in SIZES:
        size = Size.parse(text).bytes
        expected = explained_ps(question, collective, size)
        assert of_trace(question, collective, size) == pytest.approx(expected, abs=1)
        transfer = _core.Transfer(collective, question.mask, size)
        assert network.platform is not None
        assert network.platform.library is not None
        name = network.platform.library.name
        assert predicted(network, name, transfer).time_ps == pytest.approx(expected, abs=1)


@pytest.mark.parametrize(
    "question", [one for one in QUESTIONS if one.gpus <= 72 or "nvl72" not in one.system], ids=str
)
def test_steps_with_flows_take_at_least_the_time_of_nccl(question: Question) -> None:
    for text in SIZES if question.gpus < 72 else SIZES[::3]:
        size = Size.parse(text).bytes
        share = of_flows(question, "all_reduce", size) / explained_ps(question, "all_reduce", size)
        assert 1 - 1e-6 < share < 1 + ABOVE, (text, share)


TABLES: dict[str, object] = {
    "platform": "dgx_h100",
    "collective": "all_reduce",
    "ranks": 8,
    "sizes": ["1 MiB", "1 GiB"],
    "algorithms": ["ring", "nccl"],
}


def of_cells(frame: pl.DataFrame) -> dict[tuple[str, int], int]:
    columns = frame.select("schedule", "size_bytes", "time_ps").iter_rows()
    return {(schedule, size): time for schedule, size, time in columns}


def test_sweep_and_explore_have_the_rows_of_compare() -> None:
    where = platform("dgx_h100")
    compared = of_cells(
        tutti.compare(where, collective="all_reduce", ranks=[8], sizes=["1 MiB", "1 GiB"],
                      algorithms=["ring", "nccl"])
    )  # fmt: skip
    swept = tutti.sweep({"experiment": TABLES, "sweep": {"grid": {"seed": [1]}}}, workers=1)
    assert of_cells(swept) == compared
    assert swept.filter(algorithm="nccl")["verified"].all()
    assert (swept["of_limit"] <= 1).all()
    engine = Engine(Base(TABLES, Path()), threads=1)
    found = engine.compare({}, lambda *_: None, threading.Event())
    rows = [*found.case.measured, *found.case.baselines]
    assert {(one.schedule, one.size_bytes): one.time_ps for one in rows} == compared
    point = Point("nccl:nvls,simple", 8, 1 << 30)
    assert engine.run({}, point).completion_ps == compared["nccl:nvls,simple", 1 << 30]


def test_explore_offers_the_algorithms_of_the_library() -> None:
    names = default_algorithms(Base(TABLES, Path()).experiment({}))
    assert {"nccl:ring", "nccl:tree", "nccl:nvls"} <= set(names)


STEP = """
model = "gpt:layers=2,hidden=1024,tokens=1024,vocabulary=512"
batch = 1
precision = "bf16"
iterations = 1
platform = "dgx_h100"
dimensions = [{ name = "data", nodes = 8 }]
configurations = ["ideal"]
"""


def step(folder: Path, more: str, *changes: str) -> tuple[int, str]:
    (folder / "step.toml").write_text(STEP + more)
    done = call("train", "run", "step.toml", *changes, cwd=folder)
    return done.returncode, " ".join(f"{done.stdout} {done.stderr}".split())


@pytest.mark.parametrize("detail", ["flows", "isolated"])
def test_train_run_states_what_the_library_selects(detail: str, tmp_path: Path) -> None:
    code, output = step(tmp_path, f'detail = "{detail}"')
    assert code == 0, output
    assert "NCCL 2.28.9 selects for all_reduce:data on 8 ranks: NVLS Simple" in output


def test_train_run_takes_an_algorithm_of_the_library(tmp_path: Path) -> None:
    code, output = step(tmp_path, 'detail = "flows"\nalgorithms = { all_reduce = "nccl:ring" }')
    assert code == 0, output
    assert "selects for all_reduce:data on 8 ranks: Ring" in output
    code, output = step(tmp_path, 'detail = "flows"\nalgorithms = { all_reduce = "nccl:pat" }')
    assert code == 2
    assert "NCCL does not consider nccl:pat: AllReduce is not implemented with PAT" in output
    small = "model=gpt:layers=1,hidden=256,tokens=64,vocabulary=512"
    _, output = step(tmp_path, 'detail = "packets"', "--set", small)
    assert "collectives are not those of NCCL 2.28.9, unlike with `detail = flows`" in output


def test_flows_of_concurrent_collectives_share_links() -> None:
    """Two groups of a GPU of each node use the adapter of that GPU; all GPUs of a node another."""
    question = Question("dgx_h100_cluster", "dgx_h100", (8, 2), 2, (2, 1))
    where = question.where
    network = question.network(where)
    transfer = _core.Transfer("all_reduce", 2, 1 << 28)
    alone = by_library(network, "nccl", transfer, [transfer])
    assert alone.least[0][1] + where.model.launch.ps == predicted(network, "nccl", transfer).time_ps
    assert alone.least[0][1] > (1 << 28) / 49e9 * 1e12


def test_groups_that_lie_differently_on_nodes_use_rings() -> None:
    question = Question("dgx_h100_cluster", "dgx_h100", (12, 2), 1, (1, 8))
    raw = find_platform("dgx_h100_cluster", folder=Path())
    where = scaled(raw, 24, source="test")
    network = question.network(where)
    (line,) = lines(network, [_core.Transfer("all_reduce", 1, 1 << 20)])
    assert "uses rings: " in line


@pytest.mark.parametrize("name", ["dgx_h100", "dgx_a100", "dgx_b200", "gb200_nvl72"])
def test_all_to_all_of_moe_compare_and_nccl_agree(name: str) -> None:
    where = platform(name)
    assert where.routes is not None
    assert where.library is not None
    ranks = where.routes.topology.ranks
    layer = ExpertLayer(hidden=4096, experts=ranks * 8, top_k=ranks, tokens=4096, dispatch="bf16")
    even = np.full((ranks, ranks), layer.tokens)
    size = ranks * layer.tokens * layer.token_bytes("dispatch")
    own = where.library.model.default("all_to_all", ranks, size)
    moved = own.time_ps - own.latency_ps
    assert Links(where, ranks).times_ps(even, layer.token_bytes("dispatch")).max() == pytest.approx(
        moved, rel=ABOVE
    )
    if ranks == 8:
        rows = tutti.compare(where, collective="all_to_all", ranks=[ranks], sizes=[f"{size} B"],
                             algorithms=["direct", "nccl:p2p"])  # fmt: skip
        times = dict(rows.select("algorithm", "time_ps").iter_rows())
        assert times["library"] == own.time_ps
        assert times["nccl"] == pytest.approx(own.time_ps, rel=ABOVE)
        assert times["direct"] == pytest.approx(own.time_ps, rel=ABOVE)


def test_moe_remarks_the_all_to_all_of_the_library(tmp_path: Path) -> None:
    done = call("moe", "--hidden", "1024", "--experts", "64", "--top-k", "2", "--ranks", "8",
                "--tokens", "64", "-p", "dgx_h100", cwd=tmp_path)  # fmt: skip
    assert "NCCL 2.28.9 takes" in done.stderr, done.stderr


def test_barriers_and_excluded_algorithms_have_hints(tmp_path: Path) -> None:
    done = call(
        "compare", "-c", "barrier", "-p", "dgx_h100", "-r", "8", "--no-report", cwd=tmp_path
    )
    assert "NCCL 2.28.9 default" in done.stdout, done.stderr
    assert "sizes 0 B" in done.stderr
    done = call(
        "run", "nccl:nvls", "-p", "dgx_h100_cluster", "-r", "16", "-s", "1MiB", cwd=tmp_path
    )
    assert "NVLS between nodes needs CollNet" in done.stderr
    assert "hint: it considers nccl:ring, nccl:tree, nccl:nvls_tree" in done.stderr


def test_terminal_and_report_have_the_same_numbers_and_library(tmp_path: Path) -> None:
    words = ["compare", "-p", "dgx_h100", "-r", "4,8", "-b", "8MiB", "-e", "8MiB"]
    done = call(*words, "-a", "nccl", "-a", "direct", "-o", "out", cwd=tmp_path)
    page = (tmp_path / "out/report.html").read_text("utf-8")
    page = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    text = " ".join(re.sub(r"<[^>]+>", " ", page).split())
    verified, measured = re.findall(
        r"^(\d+) (?:schedules verified|measurements)", done.stderr, re.M
    )
    assert f"schedules {verified} runs {measured} " in text
    assert "NCCL 2.28.9 default: NVLS Simple 55.84 us," in text


def test_explain_refuses_settings_without_effect(tmp_path: Path) -> None:
    done = call("nccl", "explain", "-c", "all_to_all", "--algo", "Ring", cwd=tmp_path)
    assert done.returncode == 2
    assert "has no effect on all_to_all" in done.stderr
    done = call("nccl", "explain", "-c", "all_to_all", "-s", "1GiB", "--json", cwd=tmp_path)
    (size,) = json.loads(done.stdout)["tables"]["sizes"]
    assert size["choice"] == {"algorithm": "P2P", "protocol": "Simple"}
    done = call("nccl", "explain", "-c", "all_to_all", "-s", "1GiB", cwd=tmp_path)
    assert re.search(r"P2P +Simple +\S+ ms +- +-", done.stdout), done.stdout


@pytest.mark.parametrize(
    ("name", "group"),
    [
        ("dgx_h100_cluster", tuple(range(0, 32, 8))),
        ("dgx_h100_cluster", (0, 1, 8, 9)),
        ("mare_nostrum_5_gpus", (0, 1)),
        ("mare_nostrum_5_gpus", (0, 4, 8, 12)),
        ("gb200_nvl72_cluster", (0, 72, 144, 216)),
        ("gb200_nvl72_cluster", (*range(18), *range(72, 90))),
        ("gb300_nvl72_cluster", (0, 1, 72, 73)),
        ("gb300_nvl72_cluster", tuple(range(144))),
        ("mi300x_cluster", (0, 1, 8, 9)),
        ("mi300x_cluster", tuple(range(32))),
    ],
)
def test_parts_of_nodes_predict_no_more_than_their_links_carry(
    name: str, group: tuple[int, ...]
) -> None:
    where = platform(name)
    assert where.library is not None
    assert where.routes is not None
    model, size = where.library.model, 8 << 30
    width = sum(rank < model.ranks_per_node for rank in group)
    far = where.routes.pair(group[0], group[-1]).bottleneck.core.bytes_per_second
    rate = far * width if len(group) > width else far
    nodes = len(group) // width if len(group) > width else len(group)
    least = 2 * (nodes - 1) / nodes * size / rate
    assert model.default("all_reduce", group, size).time_ps >= least * 1e12


def test_names_of_libraries_are_the_targets_of_rules() -> None:
    """`tutti.nccl.libraries` lists them, as `tutti trace run` imports no library."""
    rules = [each for each in TARGETS if each != "plan" and library_of(each)[0] in LIBRARIES]
    assert (libraries.PLATFORM, libraries.NCCL, *rules) == libraries.NAMES
