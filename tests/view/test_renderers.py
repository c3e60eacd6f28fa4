"""A view in the terminal, `--json`, the report, the notebook and files: the same numbers in all."""

from __future__ import annotations

import html
import io
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from rich.console import Console

import tutti
from tutti.base.units import Size, Time, TimePerByte
from tutti.bypass import BypassMesh, plan
from tutti.bypass.view import runs
from tutti.collectives import schedule_search, size_ranges
from tutti.collectives.lowering import lower
from tutti.collectives.view import comparison as compared
from tutti.collectives.view import run as collective_run
from tutti.collectives.view import search
from tutti.collectives.view import trace as traces
from tutti.formats.measurements import read_measurements
from tutti.measured.advise import advise
from tutti.measured.advise import view as advice
from tutti.measured.calibrate import fit, model_named, of_benchmarks
from tutti.measured.calibrate import view as calibration
from tutti.measured.tune import Question, Written, by_model, decide
from tutti.measured.tune import view as tuning
from tutti.nccl import Settings
from tutti.nccl import presets as nccl_presets
from tutti.nccl.view import choices as nccl_view
from tutti.networks import coherence, flit, mesh
from tutti.networks.coherence.view import run as coherence_run
from tutti.networks.flit.view import load as flit_load
from tutti.networks.flit.view import run as flit_run
from tutti.networks.flit.view import sections as flit_sections
from tutti.networks.mesh.view import load as mesh_load
from tutti.networks.mesh.view import run as mesh_run
from tutti.platforms import npu
from tutti.platforms.files.presets import platform_of
from tutti.platforms.files.scaled import scaled
from tutti.schedules.popularity import popularity
from tutti.study.document import plain
from tutti.sweeps import view as sweeps_view
from tutti.sweeps.files import resolve_sweep
from tutti.training import Ring, Step, TrainingResult, configurations
from tutti.training.experts import time_experts
from tutti.training.fabric import Dimension
from tutti.training.overlap import Overlap
from tutti.training.plan import Cluster
from tutti.training.plan import search as parallelisations
from tutti.training.plan.view import plan as plans
from tutti.training.search import AlgorithmSearch
from tutti.training.slowdowns import Disturbances, effects
from tutti.training.view import disturbed as slowed
from tutti.training.view import experts
from tutti.training.view import overlap as overlapping
from tutti.training.view import page as training_page
from tutti.training.view import search as training_search
from tutti.view import fields, folder, terminal
from tutti.view.notebook import view_html
from tutti.view.page import page_of
from tutti.view.quantity import number
from tutti.view.tables import Column
from tutti.workloads import build, recorded
from tutti.workloads.experts import KERNELS, ExpertLayer, Placement, sampled_choices

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from tutti.collectives.schedule_search import SearchResult
    from tutti.measured.advise import Advice
    from tutti.sweeps.files import Sweep
    from tutti.training.experts import ExpertTimes
    from tutti.training.overlap import Overlapped
    from tutti.training.plan import PlanSearch
    from tutti.view.view import Data, View

EXAMPLES = Path(__file__).parents[2] / "examples"
EXPERTS = ExpertLayer(hidden=256, experts=32, top_k=4, tokens=64)
PLAN = flit.MeasurementPlan(warmup=100, measure=500, batches=5, drain=1000, sample=50)
SEEDS = mesh.ReplicationPlan(warmup=100, measure=500, drain=1000, seeds=2)


@cache
def flits() -> list[flit.NocRun]:
    topology = tutti.Topology.build("mesh:4x4", rate="16 GB/s", latency="1 ns")
    network = flit.Network(topology=topology, routing="dimension_order")
    return flit.sweep(network, flit.Traffic(rate=0, packet=2), [0.1, 0.2, 0.95], PLAN)


@cache
def meshes() -> mesh.Saturation:
    smart = mesh.SmartMesh(design="sfo_complete", columns=4, rows=4)
    return mesh.saturation(smart, mesh.Traffic(kind="reduction", rate=0.1), SEEDS, tolerance=0.2)


@cache
def kernels() -> list[coherence.CoherenceRun]:
    designs = (
        mesh.SmartMesh(design=name, columns=4, rows=4) for name in ("sfo_complete", "sfo_greedy")
    )
    return [coherence.run(kernel="fft_like", mesh=each, scale="tiny") for each in designs]


@cache
def comparison() -> pl.DataFrame:
    algorithms = ["ring", "recursive_doubling", "swing"]
    return tutti.compare(
        tutti.platforms.platform("cray_xc30"),
        collective="all_reduce",
        ranks=[4, 8],
        sizes=["8 B", "1 MiB"],
        algorithms=algorithms,
    )


@cache
def collective() -> tutti.Run:
    ring = tutti.schedule("ring", ranks=4)
    return tutti.simulate(ring, tutti.platforms.platform("cray_xc30"), size="1 KiB")


def steps() -> list[TrainingResult]:
    rings = (Ring("local", 4, TimePerByte.parse("25 GB/s"), Time.parse("400 ns")),)
    step = Step(model=build("dlrm_small"), batch=2, rings=rings, iterations=1)
    return [step.run(configurations()[name]) for name in ("ace", "ideal")]


def decided() -> Advice:
    return advise(read_measurements([EXAMPLES / "22_advise" / "cluster.csv"]).rows)


def tuned() -> View:
    question = Question("all_reduce", 4, [64, 4096])
    times = by_model(question, tutti.platforms.platform("cray_xc30"), ["ring", "direct"])
    files = Written("plan", decide(times, "plan"), None, {}, Path("plan.env"))
    return tuning.tuning_view([files], times)


def fitted() -> View:
    logs = [EXAMPLES / "19_calibrate_and_tune" / f"osu_{name}.txt" for name in ("latency", "bw")]
    points = of_benchmarks(read_measurements(logs).rows).points
    models = [model_named(name) for name in ("postal", "loggp")]
    return calibration.fits_view([fit(model, points, statistic="mean") for model in models])


def machine() -> tutti.Platform:
    return tutti.platforms.platform("cray_xc30")


@cache
def ranking() -> SearchResult:
    return schedule_search.search(machine(), ranks=6, size="1 KiB", top=3)


@cache
def ranges() -> pl.DataFrame:
    return size_ranges.thresholds(machine(), ranks=6, start="1 KiB", end="4 KiB")


@cache
def swept(kind: str) -> tuple[pl.DataFrame, Sweep]:
    """A sweep of experiments or of training steps over two values of a key."""
    experiment = {"platform": "cray_xc30", "collective": "all_reduce", "ranks": 4,
                  "algorithms": ["ring", "swing"], "sizes": ["1 KiB"]}  # fmt: skip
    ring = {"name": "local", "nodes": 4, "rate": "25 GB/s", "latency": "400 ns"}
    step = {"model": "dlrm_small", "batch": 2, "iterations": 1, "configurations": ["ideal"],
            "torus": {"rings": [ring]}}  # fmt: skip
    key, values = ("ranks", [4, 8]) if kind == "experiment" else ("batch", [2, 4])
    tables = {kind: experiment if kind == "experiment" else step, "sweep": {"grid": {key: values}}}
    with ThreadPoolExecutor(1) as executor:
        frame = tutti.sweep(tables, executor=executor)
    return frame, resolve_sweep(tables, source="sweep.toml", folder=Path())


def pod() -> tutti.Platform:
    switch = tutti.Topology.build("switch:4", rate="25 GB/s", latency="500 ns")
    ends = tutti.PipeliningPostal(alpha_p="0 ns", alpha_r="1 ns")
    return tutti.Platform(name="pod", model=ends, routes=switch.routes())


def step_on_a_switch() -> Step:
    rings = (Dimension("data", 4),)
    return Step(model=build("dlrm_small"), batch=2, platform=pod(), rings=rings, iterations=1)


@cache
def searched() -> AlgorithmSearch:
    ideal = configurations()["ideal"]
    algorithms = AlgorithmSearch(step_on_a_switch(), ideal, algorithms=["ring"])
    algorithms.run()
    return algorithms


@cache
def planned() -> PlanSearch:
    raw = platform_of("dgx_h100_cluster", folder=Path(), source="test")
    cluster = Cluster(platform=scaled(raw, 8, source="test"), npu=npu("h100"))
    return parallelisations(build("llama3_8b"), cluster, 8, simulated=0)


@cache
def disturbed() -> pl.DataFrame:
    slow = Disturbances(slow_share=0.3, slow_factor=1.5)
    return effects(step_on_a_switch(), configurations()["ideal"], slow, draws=2)


@cache
def overlapped() -> dict[str, Overlapped]:
    step = Overlap(recorded("dlrm_small"))
    return {name: step.run(lambda size: Time(ps=size.bytes)) for name in ("ring", "swing")}


@cache
def dispatched() -> list[ExpertTimes]:
    placed = Placement.of(32, ranks=4, per_node=2)
    choices = [sampled_choices(EXPERTS, placed, popularity("uniform", 32, seed=0), seed=0)]
    return [time_experts(EXPERTS, placed, choices, pod(), kernel) for kernel in KERNELS]


@dataclass(frozen=True)
class Shown:
    """A result type.

    Attributes:
        view: Returns the view of an example.
        places: The lists of quantities that its view reads.
        wraps: Whether they are functions that return a list.
        table: The name of the table with the quantities; empty if they are figures, None if only
            the terminal and notebooks have them.
        has_page: Whether it has a report.
    """

    view: Callable[[], View]
    places: tuple[tuple[ModuleType, str], ...]
    wraps: bool = False
    table: str | None = "results"
    has_page: bool = True


_MESH = ((mesh_run, "quantities"), (mesh_run, "of_traffic"), (mesh_load, "quantities"))
_CHIP = ((coherence_run, "QUANTITIES"), (coherence_run, "NETWORK"))
_STEP = ((training_page, "QUANTITIES"),)
SHOWN = {
    "flit run": Shown(
        lambda: flit_run.run_view(flits()[0]),
        ((flit_run, "QUANTITIES"), (flit_sections, "QUANTITIES")),
    ),
    "flit loads": Shown(lambda: flit_load.load_view(flits()), ((flit_load, "QUANTITIES"),)),
    "mesh run": Shown(lambda: mesh_run.run_view(meshes().runs[0]), _MESH, wraps=True),
    "mesh loads": Shown(lambda: mesh_load.load_view(meshes().runs, meshes()), _MESH, wraps=True),
    "kernel": Shown(lambda: coherence_run.runs_view(kernels()[:1]), _CHIP),
    "advice": Shown(
        lambda: advice.advice_view(decided()), ((advice, "regions"),), wraps=True, table="decisions"
    ),
    "tuning": Shown(tuned, ((tuning, "QUANTITIES"),), table="decisions", has_page=False),
    "calibration": Shown(
        fitted, ((calibration, "PARAMETERS"),), table="parameters", has_page=False
    ),
    "kernels": Shown(lambda: coherence_run.runs_view(kernels()), _CHIP),
    "comparison": Shown(
        lambda: compared.comparison_view(comparison(), None),
        ((compared, "REGIONS"),),
        table="fastest",
    ),
    "collective": Shown(
        lambda: collective_run.run_view(collective()),
        ((collective_run, "RUN"),),
        table="",
        has_page=False,
    ),
    "search": Shown(
        lambda: search.ranking_view(ranking(), "minimum", 3),
        ((search, "FOUND"), (search, "PROOFS")),
        table="proofs",
        has_page=False,
    ),
    "ranges of sizes": Shown(
        lambda: search.thresholds_view(ranges(), 6, "cray_xc30", "minimum", ["multiplying"]),
        ((search, "THRESHOLDS"),),
        table=None,
        has_page=False,
    ),
    "sweep": Shown(
        lambda: sweeps_view.sweep_view(*swept("experiment")),
        ((sweeps_view, "FASTEST"),),
        table=None,
        has_page=False,
    ),
    "sweep of steps": Shown(
        lambda: sweeps_view.sweep_view(*swept("training")),
        ((sweeps_view, "STEPS"),),
        table=None,
        has_page=False,
    ),
    "training search": Shown(
        lambda: training_search.search_view([searched()]),
        ((training_search, "COLLECTIVES"), (training_search, "TRIALS")),
        table="trials",
        has_page=False,
    ),
    "training plan": Shown(
        lambda: plans.plan_view(planned(), 2), ((plans, "PLANS"),), table="plans", has_page=False
    ),
    "disturbances": Shown(
        lambda: slowed.disturbed_view(disturbed()),
        ((slowed, "COLUMNS"),),
        table=None,
        has_page=False,
    ),
    "overlap": Shown(
        lambda: overlapping.overlap_view(
            overlapped(), {"model": "dlrm_small", "ranks": 4, "batch": 2}
        ),
        ((overlapping, "QUANTITIES"),),
        has_page=False,
    ),
    "experts": Shown(
        lambda: experts.experts_view(dispatched(), EXPERTS, "pod", {"routing": "uniform"}),
        ((experts, "QUANTITIES"),),
        has_page=False,
    ),
    "training step": Shown(lambda: training_page.steps_view(steps()[:1]), _STEP),
    "training steps": Shown(lambda: training_page.steps_view(steps()), _STEP),
}

PAGES = [name for name, shown in SHOWN.items() if shown.has_page]


@cache
def link_runs() -> list[runs.LinkRun]:
    ring = tutti.schedule("ring", collective="all_reduce", ranks=4)
    run = plan(ring, BypassMesh(side=2)).run("4 KiB", rate="68 GB/s", latency="12 ns")
    return [runs.LinkRun(Size.parse("4 KiB"), "bypass", run, run)]


def nccl_choices(*sizes: int) -> View:
    system = nccl_presets.system("dgx_h100", 2)
    return nccl_view.choices_view(system, "all_reduce", sizes, "2.28", Settings())


def traced() -> View:
    ring = tutti.schedule("ring", collective="all_reduce", ranks=4)
    trace, cluster = lower(ring, Size.parse("4 KiB")), tutti.platforms.platform("loggp_cluster")
    return traces.trace_view(trace, tutti.simulate_trace(trace, cluster), cluster.name)


TABLES = {
    "trace": Shown(traced, ((traces, "RANKS"),)),
    "nccl candidates": Shown(lambda: nccl_choices(8), ((nccl_view, "CANDIDATES"),)),
    "nccl sizes": Shown(lambda: nccl_choices(8, 1 << 26), ((nccl_view, "SIZES"),)),
    "bypass runs": Shown(lambda: runs.runs_view("ring", link_runs()), ((runs, "RUNS"),)),
}
"""Results without a page."""

EXTRA = Column[Any]("extra quantity", lambda _: 0.54321, number, key="extra", short="extra")
"""A quantity added to a list: one line."""


@pytest.fixture(params=SHOWN)
def extended(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> tuple[View, str | None]:
    """A view with another quantity, and the name of the table that has it."""
    shown = SHOWN[request.param]
    for module, name in shown.places:
        current: Any = getattr(module, name)
        more: Any = (*current, EXTRA) if not shown.wraps else _extended(current)
        monkeypatch.setattr(module, name, more)
    return shown.view(), shown.table


def _extended(function: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    return lambda *kind: [*function(*kind), EXTRA]


def printed(view: View) -> str:
    text = io.StringIO()
    terminal.show(view, Console(file=text, width=80, highlight=False))
    assert max(len(line) for line in text.getvalue().splitlines()) <= 80
    return " ".join(text.getvalue().split())


def page_tables(path: Path) -> list[dict[str, list[str]]]:
    """The sort keys of the cells of each table of a page, by heading."""
    tables = []
    for table in re.findall(r"<table class.*?</table>", path.read_text("utf-8"), re.DOTALL):
        names = [
            html.unescape(name).partition(" (")[0]
            for name in re.findall(r'<th .*?data-export="(.*?)"', table)
        ]
        cells = re.findall(r'<td class="[^"]*"(?: data-value="(.*?)")?', table)
        if names and len(cells) % len(names) == 0:
            tables.append({name: cells[at :: len(names)] for at, name in enumerate(names)})
    return tables


def report(view: View, folder: Path) -> Path:
    return page_of(view).write(folder / "report.html")


def test_a_quantity_added_in_one_line_appears_in_every_rendering(
    extended: tuple[View, str | None], tmp_path: Path
) -> None:
    view, name = extended
    written = {path.name: path for path in folder.write(view, tmp_path)}
    if name == "":
        assert fields.figures(view)["extra"] == 0.54321
    for data in view.data:
        if data.name == name and name:
            frame = frame_of(data)
            assert frame["extra"].to_list() == [0.54321] * frame.height
            for file in data.files:
                assert rows_of(written[file])["extra"].to_list() == frame["extra"].to_list()
    if view.question:
        assert any(
            set(table.get("extra quantity", ())) == {"0.54321"}
            for table in page_tables(written["report.html"])
        )
    assert "0.5432" in printed(view)
    assert "0.5432" in view_html(view)


def frame_of(data: Data) -> pl.DataFrame:
    rows = data.frame()
    return rows if isinstance(rows, pl.DataFrame) else pl.DataFrame(rows)


def rows_of(path: Path) -> pl.DataFrame:
    return (pl.read_csv if path.suffix == ".csv" else pl.read_parquet)(path)


@pytest.mark.parametrize("name", TABLES)
def test_a_quantity_of_a_result_without_a_page_appears_in_every_rendering(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ((module, place),) = TABLES[name].places
    monkeypatch.setattr(module, place, (*getattr(module, place), EXTRA))
    view = TABLES[name].view()
    assert "0.5432" in printed(view)
    assert "0.5432" in view_html(view)
    (table,) = fields.tables(view).values()
    assert "'extra': 0.54321" in str(plain(table()))
    assert folder.write(view, tmp_path) == []


@pytest.mark.parametrize("name", SHOWN)
def test_files_and_json_have_the_same_rows(name: str, tmp_path: Path) -> None:
    view = SHOWN[name].view()
    folder.write(view, tmp_path)
    for data in view.data:
        for file in data.files:
            assert rows_of(tmp_path / file).rows() == frame_of(data).rows()
        if data.name:
            assert plain(fields.tables(view)[data.name]()) == plain(data.frame())


@pytest.mark.parametrize("name", PAGES)
def test_tables_of_the_page_have_the_numbers_of_the_files(name: str, tmp_path: Path) -> None:
    view = SHOWN[name].view()
    drawn = page_tables(report(view, tmp_path))
    frames = {data.name: frame_of(data) for data in view.data}
    compared = 0
    for section in view.sections():
        keyed = [column for column in section.table.columns if column.key] if section.table else []
        for frame in frames.values():
            if not keyed or not {column.key for column in keyed} <= set(frame.columns):
                continue
            (table,) = (each for each in drawn if {column.name for column in keyed} <= set(each))
            for column in keyed:
                values = [0 if value is None else value for value in frame[column.key]]
                if any(table[column.name]):  # texts of tables that are not sorted have no key
                    assert table[column.name] == list(map(str, values)), column.name
                    compared += 1
    assert compared > 5


@pytest.mark.parametrize("name", [*SHOWN, *TABLES])
def test_terminal_and_notebook_have_the_same_facts(name: str) -> None:
    view = (SHOWN | TABLES)[name].view()
    text, notebook = printed(view), view_html(view)
    facts = view.facts if view.tables else [*view.inputs, *view.facts]
    for fact in (view.headline, *facts):
        assert " ".join(fact.text.split()) in text
        assert html.escape(fact.text) in notebook
    for legend in fields.legends(view):
        assert " ".join(legend.split()) in text
        assert html.escape(legend) in notebook
    for table in view.tables:
        for row in table.rows:
            for column in table.narrow:
                if not column.spare:  # a terminal that is too narrow omits these
                    for line in column.text(row).splitlines():
                        assert " ".join(line.split()) in text
                assert html.escape(column.text(row)) in notebook
