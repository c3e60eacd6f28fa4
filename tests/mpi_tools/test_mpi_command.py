"""`tutti mpi plan` and `tutti mpi show`, and the report of `tutti mpi exec`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from called import call
from tutti.cli.app import app
from tutti.mpi.plan import COLLECTIVES, CollectivePlan
from tutti.mpi.report import Report
from tutti.mpi.usual import untuned


def called(*words: str | Path) -> str:
    done = CliRunner().invoke(app, ["mpi", *map(str, words)])
    assert done.exit_code == 0, done.output
    return done.output


def refused(*words: str | Path, message: str) -> None:
    done = CliRunner().invoke(app, ["mpi", *map(str, words)])
    assert done.exit_code == 2, done.output
    assert done.output.count("error:") == 1
    assert message in done.output


def rules(path: Path) -> list[tuple[str, int, tuple[int, int | None], str]]:
    return [
        (r.collective, r.ranks, r.sizes, r.schedule.name) for r in CollectivePlan.read(path).rules
    ]


def test_the_narrowest_sizes_come_first(tmp_path: Path) -> None:
    path = tmp_path / "a" / "plan.tutti"
    called("plan", "--ranks", "8", "--out", path, "all_reduce=ring", "all_reduce:1K-=direct",
           "all_reduce:0-4KiB=recursive_multiplying:a8", "all_reduce:64=swing",
           "broadcast=binomial")  # fmt: skip
    assert rules(path) == [
        ("all_reduce", 8, (64, 64), "swing"),
        ("all_reduce", 8, (0, 4096), "recursive_multiplying:a8"),
        ("all_reduce", 8, (0, None), "ring"),
        ("all_reduce", 8, (1024, None), "direct"),
        ("broadcast", 8, (0, None), "binomial"),
    ]


def test_plan_records_its_command(tmp_path: Path) -> None:
    path = tmp_path / "plan.tutti"
    call("mpi", "plan", "--ranks", "2", "-o", path, "barrier=dissemination", cwd=tmp_path)
    made = CollectivePlan.read(path).provenance
    assert set(made) == {"command", "made", "tutti"}
    assert made["command"] == f"tutti mpi plan --ranks 2 -o {path} barrier=dissemination"


@pytest.mark.parametrize(
    ("text", "counts"),
    [("4", [4]), ("2-5,9", [2, 3, 4, 5, 9]), ("2:16", [2, 4, 8, 16]), ("4:16:4,5", [4, 5, 16])],
)
def test_rank_counts(tmp_path: Path, text: str, counts: list[int]) -> None:
    path = tmp_path / "plan.tutti"
    called("plan", "--ranks", text, "-o", path, "all_reduce=ring")
    assert CollectivePlan.read(path).ranks == counts


def test_unsupported_rank_counts_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "plan.tutti"
    output = called("plan", "--ranks", "2-5", "-o", path, "all_reduce=recursive_multiplying:a2,a2")
    assert CollectivePlan.read(path).ranks == [4]
    assert "omitted on 2-3, 5 ranks" in output


def test_usual_algorithms_cover_every_collective(tmp_path: Path) -> None:
    path = tmp_path / "plan.tutti"
    called("plan", "--ranks", "2-9", "-o", path, "--for-every", "mpich")
    plan = CollectivePlan.read(path)
    for ranks in range(2, 10):
        for collective in COLLECTIVES:
            for size in (0, 1, 4096, 2**21, 2**40):
                assert plan.find(collective, ranks, size) is not None


def test_for_every_rules_follow_explicit_rules(tmp_path: Path) -> None:
    path = tmp_path / "plan.tutti"
    called("plan", "--ranks", "4", "-o", path, "--for-every", "ring", "all_gather=bruck")
    assert [(c, name) for c, _, _, name in rules(path)] == [
        ("all_gather", "bruck"),
        ("all_reduce", "ring"),
        ("reduce_scatter", "ring"),
        ("all_gather", "ring"),
        ("all_to_all", "ring"),
    ]


def test_plan_accepts_a_schedule_file(tmp_path: Path) -> None:
    mine, path = tmp_path / "mine.schedule", tmp_path / "plan.tutti"
    mine.write_text(CliRunner().invoke(app, ["schedule", "show", "ring", "-r", "3"]).output)
    called("plan", "--ranks", "3", "-o", path, f"all_reduce={mine}")
    assert CollectivePlan.read(path).schedules[0].ranks == 3
    refused("plan", "-r", "4", "-o", path, f"all_reduce={mine}", message="a schedule for 3 ranks")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["all_reduce=ring"], "expected: --ranks N"),
        (["-r", "4"], "a plan without rules"),
        (["-r", "4", "all_reduce"], "not a rule"),
        (["-r", "4", "all_reduce:=ring"], "not a rule"),
        (["-r", "4", "allreduce=ring"], "did you mean `all_reduce`?"),
        (["-r", "4", "all_reduce:8-4=ring"], "its limits reversed"),
        (["-r", "4", "all_reduce:-=ring"], "sizes without a number"),
        (["-r", "4", "all_reduce:x-=ring"], "`x` is not a size"),
        (["-r", "4", "all_reduce=rang"], "unknown algorithm `rang`: did you mean `ring`?"),
        (["-r", "4", "bcast=ring"], "did you mean `broadcast`?"),
        (["-r", "3", "all_reduce=swing"], "swing"),
        (["-r", "3,5", "all_reduce=swing"], "swing"),
        (["-r", "1", "all_reduce=ring"], "is not a list of rank counts for a plan"),
        (["-r", "5-2", "all_reduce=ring"], "the smaller number first"),
        (["-r", "2-99999", "all_reduce=ring"], "at most 4,096 of them"),
        (["-r", "2:8:1", "all_reduce=ring"], "a range that grows"),
        (["-r", "0:8", "all_reduce=ring"], "a range that grows"),
        (["-r", "x", "all_reduce=ring"], "is not a list of rank counts"),
        (["-r", "4", "--for-every", "mpch"], "did you mean `mpich`?"),
    ],
)
def test_invalid_plan_arguments_are_refused(tmp_path: Path, words: list[str], message: str) -> None:
    refused("plan", "-o", tmp_path / "plan.tutti", *words, message=message)
    assert list(tmp_path.iterdir()) == []


def test_misspelt_algorithm_lists_valid_ones(tmp_path: Path) -> None:
    words = ["plan", "-r", "4-6", "-o", tmp_path / "p.tutti", "all_gather=rign"]
    done = CliRunner().invoke(app, ["mpi", *map(str, words)])
    lines = done.output.splitlines()
    assert lines[0] == ("error: all_gather=rign: unknown algorithm `rign`: did you mean `ring`?")
    assert lines[1].startswith("expected: one that performs all_gather: ")
    assert "bruck" in done.output
    assert "binomial" not in done.output
    assert max(map(len, lines)) <= 80


def test_missing_plan_suggests_a_similar_file(tmp_path: Path) -> None:
    called("plan", "--ranks", "2", "-o", tmp_path / "plan.tutti", "barrier=dissemination")
    refused("show", tmp_path / "plna.tutti", message="did you mean `plan.tutti`?")
    refused("show", tmp_path / "other.tutti", message="`tutti mpi plan` writes one")


@pytest.mark.parametrize(
    ("ranks", "message"),
    [
        (0, "0 ranks: expected at least 1"),
        (1, "start it with 4, or without a plan"),
        (3, "`tutti mpi plan --ranks 3 --for-every mpich-not-slower "),
        (5, "--other-ranks"),
    ],
)
def test_exec_refuses_rank_counts_missing_from_the_plan(
    tmp_path: Path, ranks: int, message: str
) -> None:
    path, launcher = tmp_path / "plan.tutti", tmp_path / "mpiexec"
    launcher.write_text("#!/bin/sh\necho 'mpiexec (OpenRTE) 5.0.11'\n")
    launcher.chmod(0o755)
    called("plan", "--ranks", "4", "-o", path, "all_reduce=ring")
    words = ["--", launcher, "-n", ranks, "true"]
    refused("exec", "--plan", path, *map(str, words), message=message)


def test_usual_leaves_small_sizes_to_the_mpi(tmp_path: Path) -> None:
    path = tmp_path / "plan.tutti"
    called("plan", "--ranks", "2,4,6", "-o", path, "--for-every", "mpich-not-slower")
    plan = CollectivePlan.read(path)
    for ranks in (2, 4, 6):
        for size in (0, 8, 1024, 4096, 65536):
            for collective in ("all_reduce", "broadcast", "reduce", "barrier"):
                assert plan.find(collective, ranks, size) is None, (collective, size)
        assert plan.find("all_reduce", ranks, 2**19 - 1) is None
        for collective in ("all_reduce", "all_gather", "all_to_all", "reduce_scatter"):
            assert plan.find(collective, ranks, 2**19) is not None
        # Its rules are the default algorithms of MPIs for that size.
        for rule in plan.rules:
            first, last = rule.sizes
            assert any(
                name == rule.schedule.name
                and span[0] <= first
                and (last or 0) <= (span[1] or 2**64)
                for name, span in untuned(rule.collective, rule.ranks)
            )


@pytest.mark.parametrize("named", ["all_reduce=dissemination", "all_reduce:-4K=dissemination:2"])
def test_non_reproducible_schedules_are_refused(named: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.tutti"
    done = CliRunner().invoke(app, ["mpi", "plan", "--ranks", "2,4", "-o", str(path), named])
    assert done.exit_code == 2, done.output
    assert "results on 4 ranks differ in bits between ranks" in done.output
    assert not path.exists()
    # Two ranks have only one order.
    called("plan", "--ranks", "2", "-o", path, named)
    output = called("plan", "--ranks", "4", "-o", path, named, "--exact-types")
    assert "! exact operations only" in " ".join(output.split())
    assert "! exact" in " ".join(called("show", "--prove", path).split())


def test_for_every_omits_non_reproducible_all_reduce(tmp_path: Path) -> None:
    path = tmp_path / "plan.tutti"
    done = CliRunner().invoke(
        app, ["mpi", "plan", "--ranks", "4", "-o", str(path), "--for-every", "dissemination"]
    )
    assert done.exit_code == 0, done.output
    assert "all_reduce omitted on 4 ranks: they would get different bits" in " ".join(
        done.output.split()
    )
    assert {rule.collective for rule in CollectivePlan.read(path).rules} == {
        "all_gather",
        "barrier",
    }


def test_a_plan_is_shown_within_80_columns(tmp_path: Path) -> None:
    path = tmp_path / "plan.tutti"
    called("plan", "--ranks", "2-9", "-o", path, "--for-every", "mpich",
           "all_reduce:-1K=recursive_multiplying:a8")  # fmt: skip
    output = called("show", path)
    table = output[output.index("collective  ") :].splitlines()
    assert max(map(len, table)) <= 80
    rows = [" ".join(line.split()) for line in table]
    assert "all_reduce 8 to 1 KiB recursive_multiplying:a8 1" in rows
    assert "all_reduce 2-9 to 2 KiB recursive_doubling 1-3" in rows
    assert rows.index("all_reduce 8 to 1 KiB recursive_multiplying:a8 1") < rows.index(
        "all_reduce 2-9 to 2 KiB recursive_doubling 1-3"
    )
    assert "reduce_scatter 2-9 from 512 KiB pairwise 1-8 *" in rows
    assert "commutative operations only" in output


def test_pending_sends_are_marked(tmp_path: Path) -> None:
    path = tmp_path / "plan.tutti"
    called(
        "plan", "--ranks", "4", "-o", path, "all_reduce=forest:pieces=2", "barrier=dissemination"
    )
    rows = [" ".join(line.split()) for line in called("show", path).splitlines()]
    assert "all_reduce 4 all forest:pieces=2 3 +" in rows
    assert "barrier 4 all dissemination 2" in rows
    assert "+ sends complete in later steps" in rows


def test_show_refuses_a_file_that_is_not_a_plan(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("hello")
    refused("show", tmp_path / "a", message="not a plan")
    refused("show", tmp_path / "b", message="cannot be read")


def test_a_program_needs_a_plan() -> None:
    refused("exec", "--", "mpiexec", "true", message="--plan FILE")


def test_info_does_not_start_the_mpi(monkeypatch: pytest.MonkeyPatch) -> None:
    starts: list[object] = []
    monkeypatch.setattr("tutti.mpi.probe.run_ranks", lambda *a, **_: starts.append(a))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    output = called("info")
    assert not starts
    assert "in the environment of this Python; PATH has none" in output
    assert "threads:" not in output


def test_info_lists_other_mpis_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "mpiexec"
    other.write_text("#!/bin/sh\necho 'HYDRA build details: Version: 4.1'\n")
    other.chmod(0o755)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{tmp_path}:/usr/bin:/bin")
    output = called("info")
    assert "selected: its mpiexec is first on PATH" in output
    assert f"also:     {other} (MPICH 4.1): select it with --mpicc" in output


REPORT = {
    "mpi": "MPICH Version:      5.0.2",
    "emulation": {"note": "distance is emulated", "model": "loggp", "L": 0.001},
    "covered": [{"collective": "all_reduce", "ranks": 4, "schedule": "ring", "calls": 1200}],
    "passed": [{"call": "MPI_Scan", "reason": "no schedule does this", "calls": 3}],
}


def test_a_long_command_of_a_plan_is_folded_as_a_shell_reads_it(tmp_path: Path) -> None:
    import shlex

    path = tmp_path / "plan.tutti"
    called("plan", "--ranks", "2", "-o", path, "barrier=dissemination")
    command = shlex.join(["tutti", "mpi", "plan", *(f"all_reduce:{n}=a b" for n in range(20))])
    CollectivePlan(CollectivePlan.read(path).rules, {"command": command}).write(path)
    lines = called("show", path).partition("command: ")[2].partition("\ncollective")[0]
    assert max(map(len, lines.splitlines())) <= 80
    assert shlex.split(lines.replace("\\\n", "")) == shlex.split(command)
    CollectivePlan(CollectivePlan.read(path).rules, {"command": "not 'closed"}).write(path)
    assert "command: not 'closed" in called("show", path)


def test_report_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from tutti.mpi.view.plan import report_view
    from tutti.study.console import err
    from tutti.view import terminal

    path = tmp_path / "report.json"
    path.write_text(json.dumps(REPORT))
    terminal.show(report_view(Report.read(path)), err())
    output = " ".join(capsys.readouterr().err.split())
    assert "schedules performed 1,200 of 1,203 collectives, over MPICH 5.0.2" in output
    assert "distance is emulated: loggp (L 0.001)" in output
    assert "1,200 all_reduce ring on 4 ranks" in output
    assert "3 MPI_Scan MPI library: no schedule does this" in output


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"covered": [{}], "passed": []}'])
def test_invalid_report_is_refused(tmp_path: Path, text: str) -> None:
    from tutti.mpi.errors import LaunchError

    path = tmp_path / "report.json"
    path.write_text(text)
    with pytest.raises(LaunchError, match="not a report") as caught:
        Report.read(path)
    assert caught.value.kind == "report"
