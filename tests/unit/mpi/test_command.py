"""Command lines that start MPI programs, as people write them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tutti.errors import LaunchError, MpiError
from tutti.mpi.command import read_command
from tutti.mpi.host import find_host
from tutti.mpi.program import check_program, linked_mpi

if TYPE_CHECKING:
    from pathlib import Path

VARIABLES = {"LD_PRELOAD": "/x/lib.so", "TUTTI_MPI_PLAN": "/x/a plan"}


@pytest.mark.parametrize(
    ("words", "ranks", "programs"),
    [
        ("-n 8 ./app -n 3", 8, ("./app",)),
        ("-np 4 --mca coll ^han -x A=1 ./app", 4, ("./app",)),
        ("--np=6 --bind-to none ./app", 6, ("./app",)),
        ("--oversubscribe -n 2 python a.py", 2, ("python",)),
        ("-genv A 1 -n 3 -l ./app", 3, ("./app",)),
        ("-n 1 ./a : -n 2 ./b x", 3, ("./a", "./b")),
        ("-n 1 ./a : ./b", None, ("./a", "./b")),
        ("./app", None, ("./app",)),
        ("--unheard-of 5 -n 2 ./app", 2, ()),
        ("-n many ./app", None, ("./app",)),
        ("-n 4", 4, ()),
    ],
)
@pytest.mark.parametrize("kind", ["openmpi", "mpich"])
def test_ranks_and_programs_behind_a_launcher(
    mpi: Any, kind: str, words: str, ranks: int | None, programs: tuple[str, ...]
) -> None:
    command = read_command([str(mpi(kind) / "mpiexec"), *words.split()])
    assert (command.kind, command.ranks, command.programs) == (kind, ranks, programs)


def test_the_ranks_alone_get_variables(mpi: Any) -> None:
    launcher = str(mpi("openmpi", "a") / "mpiexec")
    argv, around = read_command(["time", launcher, "-n", "2", "./app"]).with_variables(VARIABLES)
    options = ["-x", "LD_PRELOAD=/x/lib.so", "-x", "TUTTI_MPI_PLAN=/x/a plan"]
    assert (argv, around) == (["time", launcher, *options, "-n", "2", "./app"], {})
    launcher = str(mpi("mpich", "b") / "mpiexec")
    argv, around = read_command([launcher, "./app"]).with_variables(VARIABLES)
    options = ["-genv", "LD_PRELOAD", "/x/lib.so", "-genv", "TUTTI_MPI_PLAN", "/x/a plan"]
    assert (argv, around) == ([launcher, *options, "./app"], {})


def test_batch_systems_and_lone_programs_hand_down_their_environment(script: Any) -> None:
    srun = str(script("srun", ""))
    for words in ([srun, "-n", "4", "./app"], ["./app", "mpi"]):
        command = read_command(words)
        assert command.kind == "other"
        assert command.with_variables(VARIABLES) == (words, VARIABLES)
    assert read_command([srun, "-n", "4", "./app"]).ranks == 4
    assert read_command([srun, "--ntasks=3", "-c", "2", "./app"]).ranks == 3
    assert read_command(["./app"]).launcher is None


def test_commands_that_cannot_be_run(tmp_path: Path) -> None:
    with pytest.raises(LaunchError) as caught:
        read_command([])
    assert caught.value.kind == "no_command"
    with pytest.raises(LaunchError, match="is no program") as caught:
        read_command([str(tmp_path / "mpirun"), "./app"])
    assert caught.value.kind == "no_launcher"


# --- programs -------------------------------------------------------------------------------------


def elf(path: Path) -> Path:
    path.write_bytes(b"\x7fELF")
    path.chmod(0o755)
    return path


@pytest.fixture
def ldd(script: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    def says(text: str) -> None:
        folder = script("tools/ldd", f"cat <<'END'\n{text}\nEND").parent
        monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")

    return says


@pytest.mark.parametrize(
    ("said", "kind", "words"),
    [
        ("\tstatically linked", "static", "is statically linked"),
        ("\tnot a dynamic executable", "static", "is statically linked"),
        ("\tlibmpi.so.12 => /opt/mpich/lib/libmpi.so.12 (0x7f)", "mixture", "linked to MPICH"),
        ("\tlibmpi_abi.so.1 => not found", "mixture", "compiled for the standard ABI"),
    ],
)
def test_programs_that_the_library_cannot_work_in(
    mpi: Any, ldd: Any, tmp_path: Path, said: str, kind: str, words: str
) -> None:
    host = find_host(mpi("openmpi") / "mpicc")
    ldd(said)
    with pytest.raises((LaunchError, MpiError), match=words) as caught:
        check_program(str(elf(tmp_path / "app")), host)
    assert caught.value.kind == kind


def test_programs_that_it_can_work_in(mpi: Any, ldd: Any, script: Any, tmp_path: Path) -> None:
    host = find_host(mpi("openmpi") / "mpicc")
    for said in ("\tlibc.so.6 => /lib/libc.so.6 (0x7f)", "\tlibmpi.so.40 => not found"):
        ldd(said)
        check_program(str(elf(tmp_path / "app")), host)
    ldd("\tnot a dynamic executable")
    check_program(str(script("app.sh", "true")), host)


def test_programs_with_rights_of_their_own(mpi: Any, tmp_path: Path) -> None:
    host = find_host(mpi("openmpi") / "mpicc")
    app = elf(tmp_path / "app")
    app.chmod(0o4755)
    with pytest.raises(LaunchError, match="setuid") as caught:
        check_program(str(app), host)
    assert caught.value.kind == "setuid"


def test_a_program_that_is_not_there(mpi: Any, tmp_path: Path) -> None:
    with pytest.raises(LaunchError) as caught:
        check_program(str(tmp_path / "app"), find_host(mpi("openmpi") / "mpicc"))
    assert caught.value.kind == "no_program"


def test_what_ldd_says() -> None:
    text = "\tlinux-vdso.so.1 (0x7ff)\n\tlibmpi.so.40 => /a b/libmpi.so.40 (0x7f)\n"
    assert linked_mpi(text) == ("openmpi", "/a b/libmpi.so.40")
    assert linked_mpi("\tlibmpi.so.12 => not found\n") == ("mpich", "not found")
    assert linked_mpi("\tlibm.so.6 => /lib/libm.so.6 (0x7f)\n") is None
