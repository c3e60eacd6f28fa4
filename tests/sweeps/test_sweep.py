"""Execution of sweeps: the same rows with every executor, and failures of workers."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import tutti
from tutti.base.errors import ConfigError
from tutti.collectives.experiment import Rows, measure, plan, prove
from tutti.collectives.frames import MEASUREMENTS
from tutti.schedules.errors import LayoutError, VerificationError
from tutti.sweeps.errors import ExecutorError, WorkerError
from tutti.sweeps.executors import crew
from tutti.sweeps.files import Sweep, resolve_sweep
from tutti.sweeps.plan import plan_sweep
from tutti.sweeps.processes import Processes
from tutti.sweeps.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable

    from tutti.sweeps.executors import Crew

BIN = Path(sys.executable).parent


def nothing(_: object) -> None:
    pass


def done_by(one: Crew, swept: Sweep, cache: Path | None = None) -> Session:
    session = Session(plan_sweep(swept), cache)
    session.run(one, nothing)
    return session


def without(frame: pl.DataFrame, *columns: str) -> pl.DataFrame:
    return frame.drop(*columns)


@pytest.fixture
def expected(small: Sweep) -> pl.DataFrame:
    """The same measurements, executed without a sweep."""
    frames = []
    for experiment in small.experiments():
        rows = Rows(plan(experiment))
        prove(rows.plan)
        measure(rows.plan, rows)
        frames.append(rows.frame())
    return pl.concat(frames)


def test_sweep_equals_its_experiments(tables: dict[str, Any], expected: pl.DataFrame) -> None:
    frame = tutti.sweep(tables, workers=2)
    assert frame.select(list(MEASUREMENTS)).equals(expected)
    assert frame["sweep.ranks"].to_list() == frame["ranks"].to_list()
    prefix = "sweep.platform.models.minimum.alpha_p"
    assert frame[prefix].unique().sort().to_list() == ["1 us", "2 us"]
    assert frame[f"{prefix}_ps"].unique().sort().to_list() == [1_000_000, 2_000_000]


CREWS: dict[str, Callable[[], Any]] = {
    "one process": partial(crew, "processes", 1),
    "three processes": partial(crew, "processes", 3),
    "dask": partial(crew, "dask", 2),
    "an executor of one's own": partial(crew, ThreadPoolExecutor(2)),
}


@pytest.mark.timeout(180)
@pytest.mark.filterwarnings("default")  # warnings of Dask about its sockets
@pytest.mark.parametrize("name", CREWS)
def test_results_do_not_depend_on_the_executor(
    name: str, small: Sweep, expected: pl.DataFrame
) -> None:
    with CREWS[name]() as at_work:
        frame = done_by(at_work, small).frame()
    assert frame.select(list(MEASUREMENTS)).equals(expected)


SWEEP = """
[experiment]
platform = "cray_xc30"
collective = "all_reduce"
algorithms = ["ring", "recursive_doubling"]
sizes = ["8 B", "1 KiB"]
[sweep.grid]
ranks = [4, 6, 8]
seed = [1, 2]
"""


@pytest.mark.timeout(180)
def test_mpi_executor_gives_the_same_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mpiexec = BIN / "mpiexec"
    assert mpiexec.exists(), "the development requirements include it"
    monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT", "1")
    monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
    (tmp_path / "s.toml").write_text(SWEEP)
    start: list[str | Path] = [
        mpiexec,
        "-n",
        "3",
        "--oversubscribe",
        BIN / "tutti",
        "sweep",
        "s.toml",
    ]
    done = subprocess.run(
        [*start, "--executor", "mpi"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "2 workers" in done.stderr
    here = tutti.sweep(tmp_path / "s.toml", workers=1)
    assert pl.read_parquet(tmp_path / "out/sweep/results.parquet").equals(here)


def test_cached_measurements_are_not_repeated(small: Sweep, tmp_path: Path) -> None:
    with crew("processes", 2) as at_work:
        assert at_work is not None
        first = done_by(at_work, small, tmp_path)
        second = done_by(at_work, small, tmp_path)
        kept = Session(plan_sweep(small), tmp_path, is_fresh=True)
    assert len(first.outcome.rows) == 48 + 6  # measurements and proofs
    assert not second.outcome.rows
    assert not second.missing.measurements
    assert second.frame().equals(first.frame())
    assert len(kept.missing.measurements) == 48


def test_larger_sweep_reuses_the_cache_of_a_smaller_one(
    tables: dict[str, Any], tmp_path: Path
) -> None:
    done: list[tuple[int, int]] = []
    tutti.sweep(tables, workers=1, cache=tmp_path)
    tables["sweep"]["grid"]["ranks"] = [4, 6, 8, 10]
    tables["experiment"]["repetitions"] = 3
    tutti.sweep(tables, workers=1, cache=tmp_path, done=lambda *progress: done.append(progress))
    total = 4 * 2 * 2 * 2 * 3 - 48
    assert done == [(number, total) for number in range(1, total + 1)]


def test_equal_points_are_measured_once(tables: dict[str, Any]) -> None:
    tables["sweep"] = {"grid": {"ranks": [[4, 8], 8]}}
    plan_ = plan_sweep(resolve_sweep(tables, source="s.toml", folder=Path()))
    assert len(plan_.measurements) == 24
    assert len(Session(plan_, None).missing.measurements) == 16
    frame = tutti.sweep(tables, workers=1)
    assert frame.height == 24
    assert frame["sweep.ranks"].to_list() == ["[4, 8]"] * 16 + ["8"] * 8


def test_values_of_mixed_types_are_written_as_json(tables: dict[str, Any]) -> None:
    cases = [{"arrival": {"kind": "fixed", "time": "1 us"}, "seed": 3}, {"sizes": "16 B"}]
    tables["sweep"] = {"cases": cases, "grid": {"ranks": [4]}}
    frame = tutti.sweep(tables, workers=1)
    assert frame["sweep.arrival"].drop_nulls()[0] == '{"kind": "fixed", "time": "1 us"}'
    assert frame["sweep.seed"].unique().sort().to_list() == [None, 3]
    assert frame["sweep.sizes_bytes"].unique().sort().to_list() == [None, 16]


KILLER = """
import os, pathlib, signal
from tutti.sweeps import worker

def start():
    timed = worker.timed

    def timed_or_death(case, laid_out, *rest):
        if laid_out.ranks == 6 and laid_out.name == "ring" and not SPARED.exists():
            if ONCE:
                SPARED.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return timed(case, laid_out, *rest)

    worker.timed = timed_or_death
"""


@pytest.fixture
def deadly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], Any]:
    """Makes workers die on a ring of 6 ranks: always, or only the first time."""

    def made(once: bool) -> Processes:
        name = f"killer_{'once' if once else 'always'}"
        spared = f"SPARED = pathlib.Path({str(tmp_path / 'spared')!r})\nONCE = {once}\n"
        (tmp_path / f"{name}.py").write_text(KILLER + spared)
        monkeypatch.syspath_prepend(tmp_path)
        return Processes(2, __import__(name).start)

    return made


def test_worker_that_dies_once_loses_no_rows(
    deadly: Callable[[bool], Processes], small: Sweep, expected: pl.DataFrame
) -> None:
    crew_ = deadly(True)
    session = done_by(crew_, small)
    crew_.close()
    assert not session.outcome.failures
    assert session.frame().select(list(MEASUREMENTS)).equals(expected)


def test_task_that_kills_workers_twice_is_named_and_others_are_stored(
    deadly: Callable[[bool], Processes], small: Sweep, expected: pl.DataFrame, tmp_path: Path
) -> None:
    crew_ = deadly(False)
    session = done_by(crew_, small, tmp_path / "cache")
    crew_.close()
    deaths = [error for _, error in session.failures]
    assert len(deaths) == 8  # two sizes, two repetitions, two values of alpha_p
    assert all(isinstance(e, WorkerError) and e.kind == "died" for e in deaths)
    assert "s.toml, point 3 of 6 (ranks = 6, platform.models.minimum.alpha_p" in str(deaths[0])
    assert "ring on 6 ranks with 8 B: a worker died twice" in str(deaths[0])
    finished = session.frame()
    left = expected.filter((pl.col("ranks") != 6) | (pl.col("schedule") != "ring"))
    assert finished.select(list(MEASUREMENTS)).equals(left)
    # The next run measures only what is missing.
    with crew("processes", 1) as at_work:
        assert at_work is not None
        again = done_by(at_work, small, tmp_path / "cache")
    assert len(again.outcome.rows) == 8
    assert again.frame().select(list(MEASUREMENTS)).equals(expected)


FOR_LONG = """
import tutti
ring = tutti.schedule("ring", ranks=16384)  # half a billion messages
tutti.simulate(ring, tutti.platforms.platform("cray_xc30"), size="4 MiB")
"""


def ended(pid: int) -> bool:
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(") ")[2][0] in "ZX"
    except OSError:
        return True


@pytest.mark.parametrize("how", ["stop", "renew"])
def test_workers_end_in_the_middle_of_a_simulation(how: str) -> None:
    crew_ = Processes(2)
    pids = {crew_.executor.submit(os.getpid).result() for _ in range(20)}
    running = [crew_.executor.submit(exec, FOR_LONG) for _ in range(2)]
    while not all(one.running() for one in running):
        time.sleep(0.01)
    getattr(crew_, how)()
    while not all(ended(pid) for pid in pids):  # the time limit of the test ends an endless wait
        time.sleep(0.01)
    assert all(isinstance(one.exception(), BrokenExecutor) for one in running)
    if how == "renew":
        assert crew_.executor.submit(os.getpid).result() not in pids
    crew_.close()


class Broken(Executor):
    """Every task kills its worker."""

    def submit(self, *_: Any, **__: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_exception(BrokenExecutor("gone"))
        return future


def test_sweep_ends_if_workers_never_finish(tables: dict[str, Any]) -> None:
    with pytest.raises(WorkerError, match="3 workers died without a result") as caught:
        tutti.sweep(tables, executor=Broken())
    assert caught.value.kind == "none_left"


class Outdated(ThreadPoolExecutor):
    """Runs in another version of tutti."""

    def submit(self, fn: Any, batch: Any, /) -> Future[Any]:  # type: ignore[override]
        from dataclasses import replace

        return super().submit(fn, replace(batch, simulator="0.0.9+feed"))


def test_a_worker_of_another_version_is_refused(tables: dict[str, Any]) -> None:
    with pytest.raises(WorkerError, match=r"0\.0\.9\+feed") as caught:
        tutti.sweep(tables, executor=Outdated(1))
    assert caught.value.kind == "other_version"


def test_file_changed_during_a_sweep_is_detected(tables: dict[str, Any], tmp_path: Path) -> None:
    machine = 'name = "m"\nmodels.a = { kind = "postal", alpha = "%s" }\n'
    (tmp_path / "m.toml").write_text(machine % "1 us")
    tables["experiment"]["platform"] = "m.toml"
    tables["sweep"] = {"grid": {"ranks": [4]}}
    plan_ = plan_sweep(resolve_sweep(tables, source="s.toml", folder=tmp_path))
    (tmp_path / "m.toml").write_text(machine % "2 us")
    session = Session(plan_, tmp_path / "cache")
    with crew(ThreadPoolExecutor(1)) as at_work:
        assert at_work is not None
        session.run(at_work, nothing)
    assert {error.kind for _, error in session.failures} == {"other_input"}
    assert session.frame().is_empty()


def test_a_size_that_suits_no_schedule_names_its_point(tables: dict[str, Any]) -> None:
    tables["experiment"] |= {"collective": "all_to_all", "algorithms": ["pairwise"]}
    tables["sweep"] = {"grid": {"ranks": [5, 3], "sizes": ["8 B"]}}
    with pytest.raises(LayoutError, match=r"sweep, point 1 of 2 \(ranks = 5, sizes = \"8 B\"\)"):
        tutti.sweep(tables, workers=1)
    tables["sweep"] = {"grid": {"ranks": [2, 3], "sizes": ["8 B"]}}
    assert tutti.sweep(tables, workers=1)["ranks"].unique().to_list() == [2]


def schedule_text(name: str) -> str:
    return tutti.schedule(name, ranks=2).to_text()


def test_incorrect_schedule_is_not_timed(tables: dict[str, Any], tmp_path: Path) -> None:
    right = schedule_text("recursive_multiplying:a2")
    wrong = right.replace("= data + s1", "= data + s1 + s1")
    assert wrong != right
    (tmp_path / "wrong.schedule").write_text(wrong)
    tables["experiment"]["algorithms"] = [str(tmp_path / "wrong.schedule")]
    tables["sweep"] = {"grid": {"ranks": [2]}}
    with pytest.raises(VerificationError, match=r"point 1 of 1 \(ranks = 2\)"):
        tutti.sweep(tables, workers=1, cache=tmp_path / "cache")


def test_schedule_files_are_cached_by_content(tables: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "my.schedule"
    tables["experiment"] |= {"algorithms": [str(file)], "noise": {}}
    tables["sweep"] = {"grid": {"ranks": [2]}}
    times = []
    for name in ("recursive_multiplying:a2", "ring"):
        file.write_text(schedule_text(name))
        frame = tutti.sweep(tables, workers=1, cache=tmp_path / "cache")
        times.append(frame.filter(size_bytes=8)["time_ps"][0])
    assert times[0] < times[1]


@pytest.mark.parametrize(
    ("options", "kind", "expected"),
    [
        ({"executor": "proceses"}, "unknown", "did you mean `processes`?"),
        ({"dask_address": "tcp://127.0.0.1:1"}, "option", "requires the executor dask"),
        ({"executor": "mpi", "workers": 2}, "option", "mpiexec -n 5"),
    ],
)
def test_invalid_executors_are_refused(
    options: dict[str, Any], kind: str, expected: str, tables: dict[str, Any]
) -> None:
    with pytest.raises(ExecutorError) as caught:
        tutti.sweep(tables, **options)
    assert caught.value.kind == kind
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("name", "module", "extra"), [("dask", "distributed", "sweep"), ("mpi", "mpi4py", "mpi")]
)
def test_missing_executor_gives_an_install_hint(
    name: str, module: str, extra: str, tables: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigError) as caught:
        tutti.sweep(tables, executor=name)
    assert caught.value.kind == "missing_extra"
    assert caught.value.problem.endswith(f"requires `pip install 'tutti[{extra}]'`")


def test_script_needs_no_main_guard(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import tutti\n"
        f"frame = tutti.sweep({str(tmp_path / 's.toml')!r}, workers=2)\n"
        "print(frame.height)\n"
    )
    (tmp_path / "s.toml").write_text(SWEEP)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "24\n", "")
