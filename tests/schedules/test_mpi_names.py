"""Names of MPI and of MPI libraries, as aliases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from tutti.cli import app
from tutti.measured.tune.library_algorithms import every_algorithm
from tutti.schedules.errors import AlgorithmError
from tutti.schedules.ir import schedule
from tutti.schedules.mpi_names import _ALGORITHMS, algorithm_name, collective_name, is_alias

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("collective", "alias"), [(one, name) for one, names in _ALGORITHMS.items() for name in names]
)
def test_aliases_are_the_schedules_of_the_library(collective: str, alias: str) -> None:
    assert is_alias(alias)
    own = algorithm_name(alias, collective).partition(":")[0]
    named = [
        one
        for library in ("openmpi", "mpich", "ucc")
        for one in every_algorithm(library)
        if one.collective == collective
        and alias in {name.replace("-", "_") for name in (one.name, *one.aliases)}
    ]
    schedules = {row.notation.partition(":")[0] for one in named for row in one.schedules}
    assert alias == "sra" or own in schedules


def test_names_of_tutti_are_no_aliases() -> None:
    assert not is_alias("ring")
    assert algorithm_name("ring:backward", "all_gather") == "ring:backward"
    assert algorithm_name("magic", "all_gather") == "magic"
    assert collective_name("mpi_alltoall") == "all_to_all"
    assert collective_name("MPI_Scan") == "MPI_Scan"


def test_schedules_have_the_names_of_tutti() -> None:
    assert schedule("Rabenseifner", ranks=8).name == "recursive_halving_doubling"
    assert (
        schedule("rabenseifner", ranks=8, collective="MPI_Reduce").name == "reduce_scatter_gather"
    )
    found = schedule("in-order_binary:segments=4", ranks=8, collective="reduce")
    assert found.name == "binary_tree:in_order,segments=4"


def test_an_alias_of_another_collective_is_refused() -> None:
    with pytest.raises(AlgorithmError, match="for all_reduce, reduce, not broadcast"):
        schedule("rabenseifner", ranks=8, collective="broadcast")


@pytest.mark.parametrize(
    "command",
    [
        ["run", "rabenseifner", "--ranks", "4", "--size", "1K", "--platform", "cray_xc30"],
        ["run", "pipeline", "--collective", "MPI_Bcast", "--ranks", "4", "--size", "1K",
         "--platform", "cray_xc30"],
        ["mpi", "plan", "--ranks", "4", "MPI_Allreduce=rabenseifner", "--out", "plan.tutti"],
        ["schedule", "list", "--collective", "MPI_Allgather"],
        ["compare", "--collective", "MPI_Bcast", "--ranks", "4", "-b", "1K", "-e", "1K",
         "--platform", "cray_xc30", "-a", "pipeline", "-a", "binomial"],
        ["tune", "MPI_Allreduce", "--ranks", "8", "-b", "1M", "-e", "1M", "--platform",
         "cray_xc30", "-a", "rabenseifner"],
        ["glossary", "rabenseifner"],
        ["glossary", "MPI_Allreduce"],
    ],
)  # fmt: skip
def test_commands_accept_them(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
