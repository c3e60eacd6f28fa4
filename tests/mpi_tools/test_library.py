"""The library, compiled once for each MPI; and runs of ranks with it."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

from tutti.mpi import launch, library, wrapper_cache
from tutti.mpi.errors import LaunchError, MpiError
from tutti.mpi.launch import common_folder, guard, preloaded, rank_options, run_ranks, stay_here
from tutti.mpi.library import built, is_built, sources
from tutti.mpi.underneath import Mpi, find_mpi

ROOT = Path(__file__).parents[2]
MAKE = """
all:
\tmkdir $(OUT)/objects
\tcp src/a.c $(OUT)/libtutti_mpi.so
\techo '$(CC) $(SANITIZE)' > $(OUT)/made
"""


@pytest.fixture
def mpi(fake: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mpi:
    """An MPI library, and small sources; the library is a copy of one of them."""
    folder = tmp_path / "sources"
    for part in ("src", "include", "bench"):
        (folder / part).mkdir(parents=True)
    (folder / "src" / "a.c").write_text("int a;")
    (folder / "Makefile").write_text(MAKE)
    monkeypatch.setattr(library, "sources", lambda: folder)
    monkeypatch.setenv("TUTTI_CACHE", str(tmp_path / "cache"))
    return find_mpi(fake("openmpi") / "mpicc")


def test_library_is_compiled_once(mpi: Mpi) -> None:
    reported: list[int] = []
    assert not is_built(mpi)
    first = built(mpi, starting=lambda: reported.append(1))
    again = built(mpi, starting=lambda: reported.append(2))
    assert reported == [1]
    assert first == again
    assert is_built(mpi)
    assert first.library.read_text() == "int a;"
    assert not first.library.with_name("objects").exists()
    assert first.library.with_name("made").read_text().split() == [str(mpi.mpicc)]


def test_library_is_compiled_again_after_a_change(
    mpi: Mpi, fake: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [built(mpi), built(mpi, sanitize="address"), built(find_mpi(fake("mpich") / "mpicc"))]
    (tmp_path / "sources" / "src" / "a.c").write_text("int b;")
    made.append(built(mpi))
    monkeypatch.setenv("CFLAGS", "-O0")
    made.append(built(mpi))
    assert len({one.library for one in made}) == 5
    assert made[3].library.read_text() == "int b;"


def test_each_compiler_and_machine_has_a_separate_library(mpi: Mpi) -> None:
    others = [replace(mpi, compiler="gcc 13"), replace(mpi, machine="aarch64")]
    assert len({built(one).library for one in [mpi, *others]}) == 3
    assert "aarch64" in built(others[1]).library.parent.name


def test_cached_library_needs_no_compiler(mpi: Mpi, script: Any) -> None:
    script("mpi/bin/mpicc", "exec wrapped-compiler")
    with pytest.raises(MpiError) as caught:
        find_mpi(mpi.mpicc)
    assert caught.value.kind == "no_compiler"
    facts = [mpi.kind, mpi.version, mpi.standard, mpi.compiler, mpi.machine]
    wrapper_cache.remember(mpi.mpicc, facts, built(mpi).library.parent)  # the wrapper as it is now
    again = find_mpi(mpi.mpicc)
    assert (again, again.standard) == (mpi, mpi.standard)


def test_concurrent_builds_give_one_library(mpi: Mpi, tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: built(mpi), range(4)))
    assert len(set(made)) == 1
    assert [p.name for p in (tmp_path / "cache" / "mpi").iterdir()] == [made[0].library.parent.name]


def test_compiler_errors_are_reported(mpi: Mpi, tmp_path: Path) -> None:
    (tmp_path / "sources" / "Makefile").write_text("all:\n\t@echo 'a.c:3: error: no' >&2; exit 1\n")
    with pytest.raises(MpiError, match=r"a\.c:3: error: no") as caught:
        built(mpi)
    assert caught.value.kind == "not_built"
    assert list((tmp_path / "cache" / "mpi").iterdir()) == []
    (tmp_path / "sources" / "Makefile").write_text("all:\n\ttrue\n")
    with pytest.raises(MpiError, match="produced no") as caught:
        built(mpi)


def test_missing_compiler_is_reported(mpi: Mpi, tmp_path: Path) -> None:
    (tmp_path / "sources" / "Makefile").write_text("all:\n\tno-such-compiler a.c\n")
    with pytest.raises(MpiError) as caught:
        built(mpi)
    assert caught.value.kind == "no_compiler"


def test_missing_make_is_reported(
    mpi: Mpi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MpiError, match="no `make`") as caught:
        built(mpi)
    assert caught.value.kind == "no_compiler"


def test_read_only_cache_is_reported(
    mpi: Mpi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TUTTI_CACHE", str(tmp_path / "file"))
    with pytest.raises(MpiError, match="TUTTI_CACHE") as caught:
        built(mpi)
    assert caught.value.kind == "cache"


def test_cache_path_that_the_loader_cannot_use_is_refused(
    mpi: Mpi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TUTTI_CACHE", str(tmp_path / "my cache"))
    with pytest.raises(MpiError, match="a blank or a colon") as caught:
        built(mpi)
    assert caught.value.kind == "cache"


def test_relative_cache_path_starts_from_the_working_folder(
    mpi: Mpi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TUTTI_CACHE", "near")
    assert built(mpi).library.is_relative_to(tmp_path / "near")


def test_systems_without_ld_preload_are_refused(mpi: Mpi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(MpiError, match="expected Linux") as caught:
        built(mpi)
    assert caught.value.kind == "platform"


def test_the_sources_are_those_of_the_checkout() -> None:
    assert sources().resolve() == ROOT / "mpi"


def test_wheel_has_all_sources() -> None:
    reported = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    patterns = reported["tool"]["maturin"]["include"]
    needed = [f"python/tutti/mpi/source/{path.relative_to(sources())}" for path in library.files()]
    assert len(needed) > 20
    assert [path for path in needed if not any(fnmatch(path, one) for one in patterns)] == []


# --- ranks that check the library -----------------------------------------------------------------


def guarded(library: Path, machine: str, sign: Path) -> subprocess.CompletedProcess[str]:
    words = guard(f"{library}:/other.so", machine, sign)
    return subprocess.run([*words, "/bin/sh", "-c", "echo $0 $LD_PRELOAD", "a b"],
                          capture_output=True, text=True, check=False)  # fmt: skip


def test_rank_loads_a_readable_library(tmp_path: Path) -> None:
    # The loader only warns of an invalid library, but a rank must stop.
    (tmp_path / "lib.so").write_text("")
    for machine in (platform.machine(), ""):
        done = guarded(tmp_path / "lib.so", machine, tmp_path / "sign")
        assert done.stdout == f"a b {tmp_path / 'lib.so'}:/other.so\n"
    assert not (tmp_path / "sign").exists()


@pytest.mark.parametrize("machine", [platform.machine(), "z80"])
def test_rank_reports_a_library_that_it_cannot_load(tmp_path: Path, machine: str) -> None:
    library, sign = tmp_path / "lib.so", tmp_path / "sign"
    if machine == "z80":
        library.write_text("")
    done = guarded(library, machine, sign)
    assert (done.returncode, done.stdout) == (2, "")
    output = f"is for {machine}" if machine == "z80" else f"cannot read {library}"
    assert output in sign.read_text()
    assert f"tutti: host {platform.node()} " in done.stderr


# --- where ranks read and write -------------------------------------------------------------------


@pytest.fixture
def lone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Removes the environment of batch systems."""
    for name in [*launch._ALLOCATIONS, launch.SHARED]:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("lone")
def test_ranks_on_this_host_use_its_temporary_files() -> None:
    assert stay_here("openmpi", ["--map-by", "core"])
    with common_folder("x", here=True) as folder:
        assert folder.is_dir()
        assert not folder.is_relative_to(Path.cwd())
    assert not folder.exists()


def test_ranks_on_other_hosts_share_a_folder(lone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with common_folder("x", here=False) as folder:
        assert folder.parent == lone
    assert not folder.exists()
    (lone / "shared").mkdir()
    monkeypatch.setenv(launch.SHARED, "shared")
    for here in (True, False):
        with common_folder("x", here=here) as folder:
            assert folder.parent == lone / "shared"
    monkeypatch.setenv(launch.SHARED, "none")
    with (
        pytest.raises(LaunchError, match="cannot create a folder") as caught,
        common_folder("x", here=False),
    ):
        pass
    assert caught.value.kind == "folder"


@pytest.mark.usefixtures("lone")
def test_remote_hosts_are_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not stay_here("other", [])
    assert not stay_here("mpich", ["-hosts", "a,b"])
    assert not stay_here("openmpi", ["--hostfile=mine"])
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    assert not stay_here("openmpi", [])


# --- runs -----------------------------------------------------------------------------------------


def started(fake: Any, body: str) -> Mpi:
    """An MPI library with a launcher that runs this script."""
    mpi = find_mpi(fake("openmpi") / "mpicc")
    mpi.mpiexec.write_text(f"#!/bin/sh\n{body}\n")
    return mpi


def test_launcher_receives_the_arguments(fake: Any) -> None:
    mpi = started(fake, "printf '%s|' \"$@\"; echo late >&2; exit 3")
    done = run_ranks(mpi, 4, ["./app", "-x"], env={"A": "b c"}, preload=Path("/l.so"),
                     extra=["--quiet"])  # fmt: skip
    assert done.stdout.split("|")[:-1] == [
        "--quiet", "-n", "4", "-x", "A=b c", "-x", "LD_PRELOAD=/l.so", "./app", "-x"
    ]  # fmt: skip
    assert (done.stderr, done.code) == ("late\n", 3)


def test_a_batch_system_starts_ranks_without_loading_the_library_itself(
    fake: Any, script: Any
) -> None:
    srun = script("bin/srun", 'echo $A ${LD_PRELOAD-none}; shift 2; exec "$@"')
    mpi = find_mpi(fake("openmpi") / "mpicc", srun)
    app = script("app", "echo $A $LD_PRELOAD")
    done = run_ranks(mpi, 4, [app], env={"A": "1"}, preload=Path("/l.so"))
    assert done.stdout.splitlines() == ["1 none", "1 /l.so"]


def test_run_without_end_times_out(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "_GRACE_SECONDS", 0.5)
    mpi = started(fake, "echo before; trap '' TERM; sleep 600 & wait; sleep 600")
    with pytest.raises(LaunchError, match=r"still running after 0\.5 s") as caught:
        run_ranks(mpi, 2, ["./app"], timeout=0.5)
    assert caught.value.kind == "timeout"


def test_invalid_runs_are_refused(fake: Any) -> None:
    mpi = started(fake, "true")
    with pytest.raises(LaunchError) as caught:
        run_ranks(mpi, 0, ["./app"])
    assert caught.value.kind == "no_ranks"
    mpi.mpiexec.unlink()
    with pytest.raises(LaunchError, match="cannot be started") as caught:
        run_ranks(mpi, 1, ["./app"])
    assert caught.value.kind == "no_launcher"


def test_existing_preloads_are_preserved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    assert preloaded(None) == {}
    assert preloaded(Path("/a.so")) == {"LD_PRELOAD": "/a.so"}
    monkeypatch.setenv("LD_PRELOAD", "/b.so")
    assert preloaded([Path("/x.so"), Path("/a.so")]) == {"LD_PRELOAD": "/x.so:/a.so:/b.so"}
    assert rank_options("other", {"A": "1"}) == []


def test_more_ranks_than_cores_are_oversubscribed(fake: Any) -> None:
    mpi = started(fake, 'echo "$PRTE_MCA_rmaps_default_mapping_policy $OMPI_ALLOW_RUN_AS_ROOT"')
    as_root = "1" if os.geteuid() == 0 else ""
    assert run_ranks(mpi, 99, ["./app"]).stdout.strip() == f":oversubscribe {as_root}".strip()
