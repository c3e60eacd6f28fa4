"""Command lines that start MPI programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tutti.mpi.command import read_command
from tutti.mpi.errors import LaunchError, MpiError
from tutti.mpi.program import check_program, linked_mpi
from tutti.mpi.underneath import find_mpi

if TYPE_CHECKING:
    from pathlib import Path

VARIABLES = {"LD_PRELOAD": "/x/lib.so", "TUTTI_MPI_PLAN": "/x/a plan"}


@pytest.mark.parametrize(
    ("words", "ranks", "programs"),
    [
        ("-n 8 ./app -n 3", 8, ("./app",)),
        ("--bind-to=none --np=6 ./app", 6, ("./app",)),
        ("--bind-to none --np=6 -- ./app", 6, ("./app",)),
        ("-n 1 ./a : -n 2 ./b x", 3, ("./a", "./b")),
        ("-n 1 ./a : ./b", None, ("./a", "./b")),
        ("./app", None, ("./app",)),
        ("--unheard-of 5 -n 2 -- ./app -n 7", 2, ("./app",)),
        ("-n 2 ./app -- -n 7", 2, ("./app",)),
        ("-n 1 -- ./a : -n 2 --new 7 -- ./b x", 3, ("./a", "./b")),
        ("-n many ./app", None, ("./app",)),
        ("-n 4", 4, ()),
    ],
)
@pytest.mark.parametrize("kind", ["openmpi", "mpich"])
def test_launcher_commands_give_ranks_and_program(
    fake: Any, kind: str, words: str, ranks: int | None, programs: tuple[str, ...]
) -> None:
    command = read_command([str(fake(kind) / "mpiexec"), *words.split()])
    assert (command.kind, command.ranks, command.programs) == (kind, ranks, programs)


@pytest.mark.parametrize(
    ("kind", "words", "ranks"),
    [
        ("openmpi", "-np 4 --mca coll ^han -x A=1 -- ./app", 4),
        ("openmpi", "--oversubscribe -c 2 -- ./app", None),
        ("mpich", "-genv A 1 -n 3 -l -- ./app", 3),
        ("srun", "-n4 ./app", 4),
        ("srun", "-p short -N2 -n 64 -- ./app", 64),
        ("srun", "--ntasks 3 --cpu-bind=cores ./app", 3),
        ("flux run", "-n 8 --env=-* ./app", 8),
        ("flux run", "-n 8 -o cpu-affinity=off -- ./app", 8),
        ("aprun", "-n 4 ./app", 4),
        ("jsrun", "-n 2 ./app", None),
        ("ibrun", "-n 2 ./app", 2),
    ],
)
def test_launchers_and_their_ranks(
    fake: Any, script: Any, kind: str, words: str, ranks: int | None
) -> None:
    name, *verbs = kind.split()
    launcher = fake(kind) / "mpiexec" if kind in {"openmpi", "mpich"} else script(name, "")
    command = read_command([str(launcher), *verbs, *words.split()])
    assert (command.ranks, command.programs) == (ranks, ("./app",))


@pytest.mark.parametrize("words", ["srun --mpi pmix", "srun -l", "ibrun -o 4", "mpi -genv A 1"])
def test_program_after_unknown_options_needs_a_mark(fake: Any, script: Any, words: str) -> None:
    name, *options = words.split()
    launcher = fake("mpich") / "mpiexec" if name == "mpi" else script(name, "")
    with pytest.raises(LaunchError, match=f"{options[0]}: the next word may be") as caught:
        read_command([str(launcher), *options, "./app"])
    assert caught.value.kind == "option"
    assert "put `--` before the program" in caught.value.hint
    command = read_command([str(launcher), *options, "--", "./app", "--", "x"])
    assert command.argv[1:] == (*options, "./app", "--", "x")
    assert command.programs == ("./app",)


def test_programs_in_files(fake: Any, script: Any) -> None:
    for launcher, words in (
        (fake("openmpi", "a") / "mpiexec", "--app file --"),
        (fake("mpich", "b") / "mpiexec", "-configfile file --"),
        (script("srun", ""), "-n 4 --multi-prog file --"),
    ):
        command = read_command([str(launcher), *words.split()])
        assert command.programs == ()
        assert command.argv[1:] == tuple(words.split()[:-1])


def test_flux_that_starts_another_launcher_or_leaves_its_ranks(script: Any) -> None:
    flux, srun = str(script("flux", "")), str(script("srun", ""))
    assert read_command([flux, "alloc", "-N2", srun, "-n", "3", "./app"]).ranks == 3
    with pytest.raises(LaunchError, match="flux submit does not wait") as caught:
        read_command([flux, "submit", "-n", "4", "./app"])
    assert caught.value.kind == "does_not_wait"


def test_only_ranks_get_variables(fake: Any) -> None:
    launcher = str(fake("openmpi", "a") / "mpiexec")
    argv, around = read_command(["time", launcher, "-n", "2", "./app"]).with_variables(VARIABLES)
    options = ["-x", "LD_PRELOAD=/x/lib.so", "-x", "TUTTI_MPI_PLAN=/x/a plan"]
    assert (argv, around) == (["time", launcher, *options, "-n", "2", "./app"], {})
    launcher = str(fake("mpich", "b") / "mpiexec")
    argv, around = read_command([launcher, "./app"]).with_variables(VARIABLES)
    options = ["-genv", "LD_PRELOAD", "/x/lib.so", "-genv", "TUTTI_MPI_PLAN", "/x/a plan"]
    assert (argv, around) == ([launcher, *options, "./app"], {})


def test_wrapper_precedes_each_program(fake: Any) -> None:
    launcher = str(fake("mpich") / "mpiexec")
    command = read_command([launcher, "-n", "1", "./a", "x", ":", "-n", "2", "./b"])
    argv, around = command.with_variables({"A": "1"}, before=["env", "-i"])
    assert argv[1:] == ["-genv", "A", "1", "-n", "1", "env", "-i", "./a", "x", ":",
                        "-n", "2", "env", "-i", "./b"]  # fmt: skip
    assert around == {}


def test_batch_systems_and_lone_programs_pass_on_their_environment(script: Any) -> None:
    srun = str(script("srun", ""))
    for words in ([srun, "-n", "4", "./app"], ["./app", "mpi"]):
        command = read_command(words)
        assert command.kind == "other"
        assert command.with_variables(VARIABLES) == (words, VARIABLES)
    assert read_command([srun, "-n", "4", "./app"]).ranks == 4
    assert read_command([srun, "--ntasks=3", "-c", "2", "--", "./app"]).ranks == 3
    assert read_command(["./app"]).launcher is None


def test_invalid_commands_are_refused(tmp_path: Path) -> None:
    with pytest.raises(LaunchError) as caught:
        read_command([])
    assert caught.value.kind == "no_command"
    with pytest.raises(LaunchError, match="not an executable program") as caught:
        read_command([str(tmp_path / "mpirun"), "./app"])
    assert caught.value.kind == "no_launcher"


# --- programs -------------------------------------------------------------------------------------


def elf(path: Path) -> Path:
    path.write_bytes(b"\x7fELF")
    path.chmod(0o755)
    return path


@pytest.fixture
def ldd(script: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    def states(text: str) -> None:
        folder = script("tools/ldd", f"cat <<'END'\n{text}\nEND").parent
        monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")

    return states


@pytest.mark.parametrize(
    ("output", "kind", "words"),
    [
        ("\tstatically linked", "static", "statically linked"),
        ("\tnot a dynamic executable", "static", "statically linked"),
        ("\tlibmpi.so.12 => /opt/mpich/lib/libmpi.so.12 (0x7f)", "mixture", "linked to MPICH"),
        ("\tlibmpi_abi.so.1 => not found", "mixture", "compiled for the standard ABI"),
    ],
)
def test_unsupported_programs_are_refused(
    fake: Any, ldd: Any, tmp_path: Path, output: str, kind: str, words: str
) -> None:
    mpi = find_mpi(fake("openmpi") / "mpicc")
    ldd(output)
    with pytest.raises((LaunchError, MpiError), match=words) as caught:
        check_program(str(elf(tmp_path / "app")), mpi)
    assert caught.value.kind == kind


def test_supported_programs_are_accepted(fake: Any, ldd: Any, script: Any, tmp_path: Path) -> None:
    mpi = find_mpi(fake("openmpi") / "mpicc")
    for output in ("\tlibc.so.6 => /lib/libc.so.6 (0x7f)", "\tlibmpi.so.40 => not found"):
        ldd(output)
        check_program(str(elf(tmp_path / "app")), mpi)
    ldd("\tnot a dynamic executable")
    check_program(str(script("app.sh", "true")), mpi)


def test_programs_with_privileges_are_refused(fake: Any, tmp_path: Path) -> None:
    mpi = find_mpi(fake("openmpi") / "mpicc")
    app = elf(tmp_path / "app")
    app.chmod(0o4755)
    with pytest.raises(LaunchError, match="setuid") as caught:
        check_program(str(app), mpi)
    assert caught.value.kind == "setuid"


def test_missing_program_is_refused(fake: Any, tmp_path: Path) -> None:
    with pytest.raises(LaunchError) as caught:
        check_program(str(tmp_path / "app"), find_mpi(fake("openmpi") / "mpicc"))
    assert caught.value.kind == "no_program"


def test_ldd_output_is_read() -> None:
    text = "\tlinux-vdso.so.1 (0x7ff)\n\tlibmpi.so.40 => /a b/libmpi.so.40 (0x7f)\n"
    assert linked_mpi(text) == ("openmpi", "/a b/libmpi.so.40")
    assert linked_mpi("\tlibmpi.so.12 => not found\n") == ("mpich", "not found")
    assert linked_mpi("\tlibm.so.6 => /lib/libm.so.6 (0x7f)\n") is None
