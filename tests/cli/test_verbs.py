"""Commands without mistakes, and interruption by Ctrl-C."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest
from typer.testing import CliRunner

from processes import wait_until_computed
from tutti.cli import app
from tutti_papers import papers

if TYPE_CHECKING:
    from collections.abc import Callable

    from tutti.collectives import experiment

TUTTI = Path(sys.executable).with_name("tutti")

EXPERIMENT = """
platform = "cray_xc30"
collective = "all_reduce"
algorithms = ["ring", "recursive_multiplying"]
ranks = [4, 6]
sizes = ["8 B", "1 MiB"]
datatype = "float64"
output = "results"
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "e.toml").write_text(EXPERIMENT)
    return tmp_path


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == code, result.output
    return result.output


def test_compare_writes_results_report_and_trace(here: Path) -> None:
    output = run("compare", "e.toml")
    for name in ("results.parquet", "results.csv", "report.html", "winner.pftrace"):
        assert (here / "results" / name).stat().st_size > 0
        assert name in output
    frame = pl.read_parquet(here / "results" / "results.parquet")
    assert frame.height == 8
    assert frame["platform"].unique().to_list() == ["cray_xc30"]
    assert "recursive_multiplying:a4" in output
    assert "1 step, not 6" in output


@pytest.mark.usefixtures("here")
def test_compare_marks_non_reproducible_winners() -> None:
    options = ["compare", "e.toml", "--no-report", "--algorithm", "dissemination", "--ranks", "4"]
    output = " ".join(run(*options).split())
    assert "dissemination on 4 ranks: results differ in bits between ranks" in output
    assert "differ in bits" not in run(*options, "--set", 'datatype="int32"')
    assert "differ in bits" not in run(*options[:-1], "2")


def test_run_and_compare_take_changes_of_any_key(here: Path) -> None:
    one = ("--ranks", "4", "--size", "8", "--algorithm", "ring")
    run("run", "e.toml", *one, "--set", "output=elsewhere", "--set", "collective=all_gather")
    assert (here / "elsewhere" / "ranks.parquet").is_file()
    run("compare", "e.toml", "--set", 'sizes=["64 B"]', "--ranks", "4", "--no-report")
    frame = pl.read_parquet(here / "results" / "results.parquet")
    assert frame["size_bytes"].unique().to_list() == [64]
    printed = run("run", "e.toml", *one, "--set", "colective=all_gather", code=2)
    assert "error: --set: unknown key `colective`" in printed
    assert "did you mean `collective`?" in printed
    printed = run("run", "e.toml", *one, "--set", "collective=gathr", code=2)
    assert "--set" in printed
    assert "collective: unknown collective `gathr`" in printed


def test_compare_states_order_and_size_of_its_figures(here: Path) -> None:
    output = run("compare", "e.toml", "-b", "8", "-e", "64", "--ranks", "4")
    frame = pl.read_parquet(here / "results" / "results.parquet")
    times = {
        size: part.sort("time_ps")["time_ps"].to_list()
        for (size,), part in frame.group_by("size_bytes")
    }
    lead = {size: second / first for size, (first, second) in times.items()}
    assert "largest lead first; figures are for the size with the largest lead" in output
    assert "to 64 B" in output
    assert f"at {max(lead, key=lambda size: lead[size])} B" in output
    assert "by rank count; figures are for" in run("compare", "e.toml", "--top", "0")
    assert all(len(line) <= 80 for line in output.splitlines())


def test_compare_agrees_with_the_closed_form(here: Path) -> None:
    # 8 bytes in float64, a4 on 4 ranks: alpha_p + 3 (alpha_r + 8 beta) + 3 * 8 gamma in ps
    # = 1340000 + 3 * (340000 + 800) + 3 * 2760 = 2370680.
    run("compare", "e.toml", "--no-report", "--algorithm", "recursive_multiplying:a4")
    frame = pl.read_parquet(here / "results" / "results.parquet")
    row = frame.filter((pl.col("size_bytes") == 8) & (pl.col("ranks") == 4))
    assert row["time_ps"].to_list() == [2_370_680]
    assert row["closed_form_ps"].to_list() == [2_370_680]


def test_options_replace_the_file(here: Path) -> None:
    options = ["-b", "8", "-e", "1K", "-f", "4", "-n", "2", "-d", "double", "--ranks", "4:8"]
    run("compare", "e.toml", "--no-report", "--out", "other", *options)
    frame = pl.read_parquet(here / "other" / "results.parquet")
    assert frame["size_bytes"].unique().sort().to_list() == [8, 32, 128, 512]
    assert frame["ranks"].unique().sort().to_list() == [4, 8]
    assert frame["repetition"].unique().sort().to_list() == [0, 1]
    assert frame["datatype"].unique().to_list() == ["float64"]


def test_omitted_schedules_are_listed(here: Path) -> None:
    output = run("compare", "e.toml", "--no-report", "-a", "ring", "-a", "recursive_multiplying:a4")
    assert "left out" in output
    assert "recursive_multiplying:a4 on 6 ranks" in output
    assert here.exists()


def test_results_do_not_depend_on_threads(here: Path) -> None:
    frames = []
    for threads in ("1", "4"):
        run("compare", "e.toml", "--no-report", "--threads", threads, "--out", threads)
        frames.append(pl.read_parquet(here / threads / "results.parquet"))
    assert frames[0].equals(frames[1])


def test_run_shows_a_timeline_and_writes_it(here: Path) -> None:
    output = run("run", "e.toml", "--ranks", "4", "--size", "8", "--algorithm", "ring")
    assert "completion time" in output
    assert "waiting" in output or ". wait" in output
    for name in ("ranks.parquet", "timeline.parquet", "messages.parquet", "trace.pftrace"):
        assert (here / "results" / name).stat().st_size > 0
    assert (here / "results" / "timeline.svg").read_text().startswith("<svg")


def test_a_trace_that_no_viewer_shows_is_left_out(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tutti.collectives.view.run.MOST_TRACED", 20)
    output = run("run", "e.toml", "--ranks", "4", "--size", "8", "--algorithm", "ring")
    assert "no trace.pftrace: " in output
    assert not (here / "results" / "trace.pftrace").exists()
    assert (here / "results" / "messages.parquet").exists()


def test_a_schedule_can_be_shown_changed_and_run(here: Path) -> None:
    text = run("schedule", "show", "recursive_multiplying:a2,a2", "--ranks", "4")
    (here / "mine.schedule").write_text(text)
    assert run("schedule", "show", "mine.schedule") == text
    run("compare", "e.toml", "--no-report", "--ranks", "4", "-a", "mine.schedule")
    mine = pl.read_parquet(here / "results" / "results.parquet")
    run("compare", "e.toml", "--no-report", "--ranks", "4", "-a", "recursive_multiplying:a2,a2")
    known = pl.read_parquet(here / "results" / "results.parquet")
    assert mine["time_ps"].to_list() == known["time_ps"].to_list()


def test_verify_prints_what_is_proved(here: Path) -> None:
    assert here.exists()
    output = run("schedule", "verify", "recursive_multiplying:m1g2a3,n1g3a2", "--ranks", "7")
    assert "performs all_reduce on 7 ranks" in output
    assert "same on all ranks" in output


def test_draw_writes_a_program_graph(here: Path) -> None:
    run("schedule", "draw", "recursive_multiplying:a3,a2", "--ranks", "6", "-o", "graph.svg")
    assert (here / "graph.svg").stat().st_size > 0


def test_plot_draws_results(here: Path) -> None:
    run("compare", "e.toml", "--no-report")
    for kind in ("time", "busbw", "map"):
        run("plot", "results/results.parquet", "--kind", kind)
        assert (here / "results" / f"{kind}.svg").stat().st_size > 0


def test_platforms_are_listed_and_shown_with_sources(here: Path) -> None:
    assert "cray_xc30" in run("platforms")
    output = run("platforms", "cray_xc30")
    assert "Table 1" in output
    assert "inferred" in output
    (here / "mine.toml").write_text(run("platforms", "cray_xc30", "--toml"))
    assert "Table 1" in run("platforms", "mine.toml")


def test_every_verb_has_examples(here: Path) -> None:
    assert here.exists()
    verbs = [["compare"], ["run"], ["plot"], ["paper"], ["platforms"], ["schema"]]
    verbs += [["schedule", verb] for verb in ("list", "show", "verify", "draw")]
    for verb in verbs:
        assert "Examples:\n    tutti " in run(*verb, "--help")


def test_help_names_every_paper_with_its_first_author(here: Path) -> None:
    assert here.exists()
    output = run("paper", "--help")
    for name, paper in papers().items():
        author = paper.citation.split(",")[0].split()[-1]
        year = re.findall(r"[0-9]{4}", paper.citation)[-1]
        assert re.search(rf"\n +{name} [^()]*\({author} {year}\)", output)


def test_search_ranks_schedules_of_one_size(here: Path) -> None:
    output = run("search", "e.toml", "--ranks", "13,8", "--size", "8", "--top", "3")
    assert "m4g3a3,n4g3a3" in output
    words = " ".join(output.split())
    assert words.count("verified optimal: none of the searched schedules is faster") == 2
    assert words.count("schedules of recursive multiplying and other algorithms") == 2
    assert all(len(line) <= 80 for line in output.splitlines())
    frame = pl.read_parquet(here / "results" / "search.parquet")
    assert frame["ranks"].unique().to_list() == [8, 13]
    assert frame.filter(pl.col("ranks") == 13)["kind"].n_unique() == 4
    assert (here / "results" / "search.csv").stat().st_size > 0


def test_search_prints_size_thresholds(here: Path) -> None:
    output = run("search", "e.toml", "--ranks", "24", "--kind", "factored")
    frame = pl.read_parquet(here / "results" / "search.parquet")
    assert frame.height > 1
    assert frame["from_bytes"][0] == 8
    assert frame["to_bytes"][-1] == 1 << 20
    for name in frame["schedule"]:
        assert name.removeprefix("recursive_multiplying:") in output
    assert frame["gap"].to_list() == [0] * frame.height
    proof = "none of the factored schedules of recursive multiplying is faster"
    assert f"verified optimal at both ends of each range: {proof}" in " ".join(output.split())
    assert "searched factored schedules of recursive multiplying only" in " ".join(output.split())
    assert set(frame["family"]) == {"recursive_multiplying"}
    assert frame["verified"].all()


def test_search_breaks_names_of_schedules_after_commas(here: Path) -> None:
    output = run("search", "e.toml", "--ranks", "1000000", "--size", "8", "--no-verify")
    names = pl.read_parquet(here / "results" / "search.parquet")["schedule"].to_list()
    stages = {stage for name in names for stage in name.split(":")[1].split(",")}
    shown = {part for word in output.split() for part in word.split(",")}
    assert stages <= shown


def test_exhaustive_search_scores_all_schedules(here: Path) -> None:
    assert here.exists()
    output = run(
        "search", "e.toml", "--ranks", "8", "-s", "8", "--kind", "factored", "--exhaustive"
    )
    output = " ".join(output.split())
    assert "4 schedules scored: all factored schedules of recursive multiplying" in output


def test_version(here: Path) -> None:
    assert here.exists()
    command = [sys.executable, "-m", "tutti", "nccl", "--versio"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr.startswith("error: tutti nccl: no such option")
    assert run("--version").startswith("tutti 0.")


def interrupt_after(count: int) -> Callable[..., None]:
    def measure(plan: experiment.ExperimentPlan, rows: experiment.Rows, **_: object) -> None:
        for index in range(count):
            rows.add(index, (1_000, 2, 16))
        assert len(plan.points) > count
        raise KeyboardInterrupt

    return measure


def test_ctrl_c_keeps_what_is_finished(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tutti.collectives.study.comparison.measure", interrupt_after(3))
    output = run("compare", "e.toml", code=130)
    assert "interrupted: 3 of 8 measurements finished" in output
    assert pl.read_parquet(here / "results" / "results.parquet").height == 3


def test_ctrl_c_ends_a_process_cleanly(here: Path) -> None:
    arguments = ["compare", "e.toml", "-a", "ring", "--ranks", "4:2048", "-n", "1000"]
    process = subprocess.Popen(
        [TUTTI, *arguments], cwd=here, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    assert process.stderr is not None
    while "20,000 measurements" not in (line := process.stderr.readline()):
        assert line
    wait_until_computed(process, 0.3)  # the handler of the simulation is installed
    process.send_signal(signal.SIGINT)
    _, output = process.communicate(timeout=50)
    assert process.returncode == 130
    assert "interrupted: " in output
    assert "Traceback" not in output
    assert pl.read_parquet(here / "results" / "results.parquet").height < 20_000


def test_help_and_comparisons_import_no_heavy_modules() -> None:
    code = (
        "import sys; from tutti.cli import app; "
        "heavy = {'polars', 'plotly', 'matplotlib', 'numpy', 'networkx', 'pydantic', "
        "'scipy', 'tomlkit'}; "
        "print(sorted(heavy & set(sys.modules))); "
        "import tutti.cli.compare, tutti.collectives.view.comparison; "
        "heavy = {'matplotlib', 'networkx', 'numpy', 'plotly', 'scipy'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["[]", "[]"]


def test_the_list_of_algorithms_fits_a_terminal(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert here.exists()
    monkeypatch.setenv("COLUMNS", "80")
    command = [str(TUTTI), "schedule", "list"]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert max(len(line) for line in output.splitlines()) <= 80
    assert "hierarchical_leader:ARG\n" in output  # names are never truncated


def test_verify_reports_no_reductions_of_a_broadcast(here: Path) -> None:
    assert here.exists()
    output = run("schedule", "verify", "binomial", "--ranks", "8", "--collective", "broadcast")
    assert "14 over all ranks" in output
    assert "no reductions" in output


def test_ctrl_c_ends_a_proof(here: Path) -> None:
    assert here.exists()  # 8,192 ranks of the ring are proved in some tens of seconds
    code = (
        "import signal, threading, tutti\n"
        "s = tutti.schedule('ring', ranks=8192)\n"
        "threading.Timer(0.3, lambda: signal.raise_signal(signal.SIGINT)).start()\n"
        "try:\n    s.verify()\nexcept KeyboardInterrupt:\n    print('interrupted', flush=True)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "interrupted\n"
