"""`tutti advise`: table, warnings, files, and input that cannot be used."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from called import call
from tutti.mpi.plan import CollectivePlan

CLUSTER = Path(__file__).parents[3] / "examples" / "22_advise" / "cluster.csv"
HEADING = "collective,algorithm,nodes,ranks_per_node,vector_bytes,median_us\n"
LOG = """# OSU MPI Allreduce Latency Test v7.4
# Size       Avg Latency(us)
8                       {a}
1024                    {b}
"""


def few(path: Path, *rows: str) -> Path:
    path.write_text(HEADING + "".join(f"{row}\n" for row in rows))
    return path


TWO = ("all_reduce,ring_ompi,4,1,64,9", "all_reduce,recursive_doubling_ompi,4,1,64,7")


def run(cwd: Path, *arguments: str | Path, code: int = 0) -> str:
    done = call("advise", *arguments, cwd=cwd)
    text = " ".join((done.stdout + done.stderr).split())
    assert done.returncode == code, text
    return text


@pytest.fixture(scope="module")
def advised(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    folder = tmp_path_factory.mktemp("advise")
    done = call("advise", CLUSTER, "--ranks", "1024,4096", "--out", "o", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "o", done.stdout, done.stderr


def test_the_table_fits_80_columns_and_states_its_basis(advised: tuple[Path, str, str]) -> None:
    _, output, remarks = advised
    assert all(len(line) <= 80 for line in [*output.splitlines(), *remarks.splitlines()])
    assert "131 rows read: 113 used, 18 of the library's default, 0 not used" in output
    plain = " ".join(output.split())
    assert "all_reduce: measured on 4, 8, 16, 128, 200 ranks; predicted on 1,024 (5.12x)" in plain
    assert "measure next:\ncollective" in output
    assert " 400 " in output
    warnings = " ".join(remarks.split())
    assert "warning: all_reduce on 4,096 ranks: 20.5 times the largest measured" in warnings
    assert "1,024 ranks: 5" not in warnings


def test_files_have_all_predictions_and_decisions(advised: tuple[Path, str, str]) -> None:
    folder, output, _ = advised
    frame = pl.read_parquet(folder / "advice.parquet")
    assert len(frame) == len(pl.read_csv(folder / "advice.csv"))
    assert frame["ranks"].unique().sort().to_list() == [1024, 4096]
    assert (frame["low_us"] < frame["predicted_us"]).all()
    assert frame.filter(place=1).select("ranks", "size_bytes").is_duplicated().sum() == 0
    decisions = pl.read_csv(folder / "decisions.csv")
    assert decisions["algorithm"][0] in {"recursive_doubling_ompi", "bine_lat_over"}
    for name in ("openmpi.rules", "openmpi.env", "openmpi6.json", "report.html"):
        assert (folder / name).stat().st_size > 0
        assert name in output
    assert "1024  # ranks and more" in (folder / "openmpi.rules").read_text()


def test_the_report_has_a_map_and_defines_its_terms(advised: tuple[Path, str, str]) -> None:
    page = (advised[0] / "report.html").read_text()
    assert "all_reduce-map" in page
    assert " ranks of leonardo?</h1>" in page
    assert "The probability that a chosen algorithm" in page


def test_only_algorithms_of_the_library(tmp_path: Path) -> None:
    text = run(tmp_path, CLUSTER, "--ranks", "1024", "--algorithms", "library", "-e", "1K")
    assert "ring_over" not in text
    assert "recursive_doubling_ompi" in text
    assert "wrote" not in text


def test_sizes_can_be_generated(tmp_path: Path) -> None:
    run(tmp_path, CLUSTER, "--ranks", "512", "-b", "1K", "-e", "64K", "-f", "8", "--out", "o")
    sizes = pl.read_parquet(tmp_path / "o" / "advice.parquet")["size_bytes"]
    assert sizes.unique().sort().to_list() == [1024, 8192, 65536]


def test_one_rank_count_and_smaller_jobs_have_a_warning(tmp_path: Path) -> None:
    text = run(tmp_path, few(tmp_path / "f.csv", *TWO), "--ranks", "2,64")
    assert "warning: all_reduce: only 1 rank count measured" in text
    assert "all_reduce on 2 ranks: not larger than the measured 4 ranks" in text
    assert "one system, unknown library" in text
    assert "gain" not in text


def test_logs_have_the_algorithms_that_the_user_states(tmp_path: Path) -> None:
    (tmp_path / "ring.log").write_text(LOG.format(a=9, b=10))
    (tmp_path / "other.log").write_text(LOG.format(a=4, b=20))
    options = ("--ranks", "16", "--measured-ranks", "8", "--library", "openmpi", "--out", "o")
    text = run(tmp_path, "ring.log", "other.log", "-a", "recursive_doubling", "-a",
               "ring.log=ring", *options)  # fmt: skip
    assert "4 rows read: 4 used" in text
    assert "4 rows without a number of nodes" in text
    frame = pl.read_parquet(tmp_path / "o" / "advice.parquet")
    assert set(frame["algorithm"]) == {"ring", "recursive_doubling"}
    assert "no rules written: 1 of 1 ranges of sizes keep the default of Open MPI 5.0" in text


def test_without_a_known_library_no_rules_are_written(tmp_path: Path) -> None:
    text = run(tmp_path, few(tmp_path / "f.csv", *TWO), "--ranks", "8", "--out", "o")
    assert "no rules written: tutti knows no rules of an unknown library" in text


def test_a_single_algorithm_is_nothing_to_choose_among(tmp_path: Path) -> None:
    text = run(tmp_path, few(tmp_path / "f.csv", TWO[0]), "--ranks", "8")
    assert "only one algorithm was measured: nothing to choose among" in text


@pytest.mark.parametrize(
    ("rows", "options", "problem"),
    [
        (("all_reduce,magic,4,1,64,9",), (), "unknown algorithm magic of all_reduce"),
        (TWO, ("--ranks", "many"), "is not a list of rank counts"),
        (TWO, ("--ranks", "6", "--ranks-per-node", "4"), "not a multiple of 4 ranks per node"),
        (TWO, ("-f", "4"), "needs the smallest and the largest size"),
        (TWO, ("-b", "8K", "-e", "1K"), "invalid range of sizes"),
        (TWO, ("--memory", "disk"), "expected: one of host, gpu"),
        (TWO, ("--algorithms", "all"), "expected: one of measured, library, known"),
        (TWO, ("--algorithms", "known"), "the algorithms of this library are unknown"),
        (TWO, ("--collective", "barrier"), "no algorithm of this collective was measured"),
        (TWO, ("--shape", "8x8x8"), "no measurement states the sides of a torus"),
        (TWO, ("--system", "x"), "no measurement has this system"),
    ],
)
def test_mistakes(
    tmp_path: Path, rows: tuple[str, ...], options: tuple[str, ...], problem: str
) -> None:
    text = run(tmp_path, few(tmp_path / "f.csv", *rows), *options, code=2)
    assert "error: " in text
    assert problem in text


def test_point_to_point_times_and_rows_without_ranks_are_explained(tmp_path: Path) -> None:
    (tmp_path / "f.log").write_text(
        "# OSU MPI Latency Test\n# Size       Latency (us)\n8     1.5\n"
    )
    assert "1 row: point-to-point times" in run(tmp_path, "f.log", code=2)
    (tmp_path / "g.log").write_text(LOG.format(a=9, b=10))
    text = run(tmp_path, "g.log", "-a", "ring", code=2)
    assert "use --measured-ranks N" in text
    assert "the remarks state why" in text


def test_patterns_and_folders_stand_for_their_files(tmp_path: Path) -> None:
    """A shell does not expand a quoted pattern, and Python's callers have none."""
    (tmp_path / "logs").mkdir()
    for count in (4, 8):
        for name, time in (("ring", 2 * count), ("recursive_doubling", count)):
            few(tmp_path / "logs" / f"{name}-{count}.csv",
                f"all_reduce,{name}_ompi,{count},1,64,{time}")  # fmt: skip
    for files in (("logs/*.csv",), ("logs",), ("logs", "logs/ring-*.csv")):
        assert "4 rows read: 4 used" in run(tmp_path, *files, "--ranks", "16")
    text = run(tmp_path, "logs/*.log", code=2)
    assert "matches no file" in text
    assert "no measurements" in run(tmp_path, code=2)


def test_other_files_of_a_folder_are_left_out_and_named(tmp_path: Path) -> None:
    """A folder of logs also has job scripts and a manifest."""
    (tmp_path / "logs").mkdir()
    few(tmp_path / "logs" / "times.csv", *TWO)
    (tmp_path / "logs" / "job.sh").write_text("srun osu_allreduce\n")
    (tmp_path / "logs" / "list.csv").write_text("path,ranks\nx.log,4\n")
    text = run(tmp_path, "logs", "--ranks", "8")
    assert "2 rows read: 2 used" in text
    assert "logs/job.sh: left out: unknown benchmark output" in text
    assert "logs/list.csv: left out: unknown columns" in text
    assert "unknown benchmark output" in run(tmp_path, "logs", "logs/job.sh", code=2)
    assert "unknown benchmark output" in run(tmp_path, "logs/job.sh", code=2)
    assert "--manifest FILE" in run(tmp_path, "logs/list.csv", code=2)


MANIFEST = """[[file]]
path = "ring*.log"
ranks = 8
ranks_per_node = 4
library = "Open MPI 5.0.7"
algorithm = "ring"
[[file]]
path = "other.log"
collective = "MPI_Allreduce"
ranks = 8
ranks_per_node = 4
library = "Open MPI 5.0.7"
algorithm = "recursive_doubling"
"""
TABLE = """path,collective,ranks,ranks_per_node,library,algorithm
ring*.log,,8,4,Open MPI 5.0.7,ring
other.log,MPI_Allreduce,8,4,Open MPI 5.0.7,recursive_doubling
"""


@pytest.mark.parametrize(("name", "text"), [("m.toml", MANIFEST), ("m.csv", TABLE)])
def test_a_manifest_states_what_files_do_not(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "ring1.log").write_text(LOG.format(a=9, b=10))
    (tmp_path / "logs" / "other.log").write_text(LOG.format(a=4, b=20))
    (tmp_path / "logs" / name).write_text(text)
    printed = run(tmp_path, "--manifest", f"logs/{name}", "--ranks", "32", "--out", "o")
    assert "one system, openmpi, 4 ranks per node, host memory" in printed
    assert "4 rows read: 4 used" in printed
    assert "without a number of nodes" not in printed
    frame = pl.read_parquet(tmp_path / "o" / "advice.parquet")
    assert frame["nodes"].unique().to_list() == [8]
    (tmp_path / "logs" / name).write_text(text.replace("Allreduce", "Bcast"))
    printed = run(tmp_path, "--manifest", f"logs/{name}", code=2)
    assert "states another collective" in printed


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[[file]]\npath = "no.log"\n', "no.log"),
        ('[[file]]\npath = "a.log"\nrank = 8\n', "rank"),
        ('[[file]]\npath = "a.log"\n[[file]]\npath = "*.log"\n', "names a file twice"),
    ],
)
def test_mistakes_in_a_manifest(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "a.log").write_text(LOG.format(a=9, b=10))
    (tmp_path / "m.toml").write_text(text)
    assert problem in run(tmp_path, "--manifest", "m.toml", code=2)


@pytest.mark.parametrize(
    ("ranks", "per_node", "expected"),
    [
        (4, 8, "4 ranks per node"),  # fewer ranks than a node has are those of one node
        (8, 2, "2 ranks per node"),
        (8, 3, "8 ranks do not fill nodes"),
    ],
)
def test_ranks_per_node_of_a_manifest_are_those_of_its_jobs(
    tmp_path: Path, ranks: int, per_node: int, expected: str
) -> None:
    """Jobs that do not fill nodes were taken for one rank per node."""
    (tmp_path / "a.log").write_text(LOG.format(a=9, b=10))
    entry = f'path = "a.log"\nranks = {ranks}\nranks_per_node = {per_node}\nalgorithm = "ring"\n'
    (tmp_path / "m.toml").write_text(f"[[file]]\n{entry}")
    done = call("advise", "--manifest", "m.toml", "--ranks", "24", cwd=tmp_path)
    assert expected in " ".join((done.stdout + done.stderr).split())
    line = ["a.log", "--measured-ranks", str(ranks), "--ranks-per-node", str(per_node)]
    done = call("advise", *line, "-a", "a.log=ring", "--ranks", "24", cwd=tmp_path)
    assert "1 rank per node" not in done.stdout
    assert (done.returncode == 2) == (ranks % per_node == 2)


def test_the_name_of_a_file_names_it_in_a_folder(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.log").write_text(LOG.format(a=9, b=10))
    names = "-a", "a.log=ring", "--measured-ranks", "8", "--ranks", "64"
    assert " ring " in call("advise", "logs", *names, cwd=tmp_path).stdout


def test_one_observation_gives_no_confidence(tmp_path: Path) -> None:
    text = run(tmp_path, few(tmp_path / "f.csv", *TWO), "--ranks", "8")
    assert "one observation, no confidence" in text
    assert "1 of 1 decision has less than 80 % confidence" in text
    again = (*TWO, *(row.replace(",4,1,64,", ",8,1,64,") for row in TWO))
    assert "no confidence" not in run(tmp_path, few(tmp_path / "f.csv", *again), "--ranks", "16")


def test_measurements_of_one_host_are_reported_for_several(tmp_path: Path) -> None:
    rows = [f"all_reduce,{name}_ompi,1,{count},64,{count}" for name in ("ring", "nonoverlapping")
            for count in (2, 4)]  # fmt: skip
    text = run(tmp_path, few(tmp_path / "f.csv", *rows), "--ranks", "64", "--ranks-per-node", "4")
    assert "warning: all measurements are of one host" in text


def test_a_plan_is_written_and_what_is_gained(advised: tuple[Path, str, str]) -> None:
    folder, output, _ = advised
    plan = CollectivePlan.read(folder / "plan.tutti")
    assert 1024 in plan.ranks
    assert "tutti mpi exec --plan o/plan.tutti" in " ".join(output.split())
    assert "rules written for openmpi" in output


def test_rules_that_cannot_be_written_have_no_gain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rules for MPICH need its stock selections."""
    monkeypatch.setattr("tutti.measured.advise.study.stock_for", lambda *_: None)
    rows = [f"all_reduce,{name}_mpich,{count},1,65536,{time * count}" for count in (4, 8, 16)
            for name, time in (("ring", 3), ("recursive_doubling", 2), ("default", 9))]  # fmt: skip
    options = ("--ranks", "32", "--library", "mpich", "--out", "o")
    text = run(tmp_path, few(tmp_path / "f.csv", *rows), *options)
    assert "mpich: no rules written: MPICH's stock selections are unknown" in text
    gains = pl.read_csv(tmp_path / "o" / "decisions.csv")["gain"]
    assert gains.to_list() == [0.0] * len(gains)


def test_allocations_state_the_groups_of_measured_jobs(tmp_path: Path) -> None:
    heading = f"system,job,{HEADING}"
    lines = [f"leo,j/1,{one}\n" for one in TWO]
    (tmp_path / "t.csv").write_text(heading + "".join(lines))
    hosts = "".join(f"leo,j,{rank},lrdn{rank // 2 * 200 + 1:04}\n" for rank in range(4))
    (tmp_path / "a.csv").write_text(f"system,timestamp,rank,host\n{hosts}")
    text = run(tmp_path, "t.csv", "--ranks", "64", "--allocations", "a.csv")
    assert "a.csv: the network's groups of 2 of 2 rows" in text
    (tmp_path / "a.csv").write_text(f"system,timestamp,rank,host\n{hosts.replace('leo', 'other')}")
    other = run(tmp_path, "t.csv", "--allocations", "a.csv")
    assert "warning: a.csv: the network's groups of 0 of 2 rows: no run of the file" in other
    (tmp_path / "a.csv").write_text("system,rank\nleo,0\n")
    wrong = run(tmp_path, "t.csv", "--allocations", "a.csv", code=2)
    assert "lacks the columns timestamp, host" in wrong


def test_details_of_tuning_need_a_collective(tmp_path: Path) -> None:
    text = "#Nnodes Message_size linear binomial tuned\n"
    text += "".join(f"{ranks} 1024 {ranks}.5(0.1) 6.0(0.2) 9.0(0.1)\n" for ranks in (2, 4, 8))
    (tmp_path / "detail.out").write_text(text)
    output = run(tmp_path, "detail.out", "--collective", "gather", "--ranks", "64")
    assert "gather: measured on 2, 4, 8 ranks; predicted on 64 (8x)" in output
    failed = run(tmp_path, "detail.out", code=2)
    assert "does not state its collective" in failed
    best = "#Nnodes Message_size Best_Algorithm Best_Latency\n2 1024 linear 2.5(0.1)\n"
    (tmp_path / "best.out").write_text(best)
    assert "only the best algorithm" in run(tmp_path, "best.out", "-c", "gather", code=2)
    folder = run(tmp_path, ".", "-c", "gather", "--ranks", "64")
    assert "best.out: left out: states only the best algorithm of each size" in folder
