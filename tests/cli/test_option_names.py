"""Options have one name and one meaning over all commands."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest
import typer.main

from commands import leaves
from tutti.cli.app import app

if TYPE_CHECKING:
    from collections.abc import Iterator

WRITES = {
    *("compare", "search", "run", "init", "sweep", "calibrate", "tune", "advise", "plot", "paper"),
    *("convert", "schedule draw", "nccl doctor", "nccl topology", "coherence run"),
    *("noc run", "noc sweep", "noc explore", "noc watch", "noc from-booksim"),
    *("noc from-garnet", "noc from-noxim", "noc from-netrace", "noc from-rapidchiplet"),
    *("bypass map", "bypass search", "bypass draw", "workload from-torch"),
    *("train plan", "train run", "train from-astrasim", "train overlap", "train search"),
    *("train calibrate", "train capture", "train disturb", "train export"),
    *("mpi plan", "mpi exec", "mpi bench"),
}
"""Commands that write files."""
METAVARS = {
    "--algorithm": {"NAME[:ARG]", "[FILE=]NAME"},  # `advise`: of the rows of a file
    "--network": {None, "FILE"},  # a name, or a file of ASTRA-sim
    "--out": {"FILE", "FOLDER"},
    "--system": {"NAME", "FILE"},  # a name, or a file of ASTRA-sim
    "--topology": {"XML", "FAMILY:ARGUMENT"},  # a file of NCCL, or a notation
}
"""Options that differ in what they take."""
STEMS = {"--rate": {"offered", "bandwidth"}}
"""Options with two meanings: the load of a network on chip, as in the field, or a link's rate."""
_ARTICLES = {"a", "an", "the", "one", "only", "number", "of"}


@pytest.fixture(scope="module")
def commands() -> dict[str, Any]:
    return dict(leaves(typer.main.get_command(app)))


def options(commands: dict[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Yields the command, the long name and the option."""
    for name, command in commands.items():
        for one in command.params:
            if one.param_type_name == "option":
                yield name, max(one.opts, key=len), one


def stem(text: str) -> str:
    """Returns the noun that a help text starts with, in the singular."""
    words = re.findall(r"[\w-]+", text.lower())
    noun = next((word for word in words if word not in _ARTICLES), "")
    return noun.removesuffix("s")


def test_a_long_name_has_one_short_name_and_one_meaning(commands: dict[str, Any]) -> None:
    shorts, stems, metavars = (defaultdict[str, set[Any]](set) for _ in range(3))
    for _, long, one in options(commands):
        shorts[long].add(tuple(name for name in one.opts if name != long))
        stems[long].add(stem(one.help))
        metavars[long].add(one.metavar)
    assert not {name: found for name, found in shorts.items() if len(found) > 1}
    assert {name: found for name, found in stems.items() if len(found) > 1} == STEMS
    several = {name: found for name, found in metavars.items() if len(found) > 1}
    assert several == {name: METAVARS[name] for name in several}


def test_a_short_name_has_one_long_name(commands: dict[str, Any]) -> None:
    longs = defaultdict(set)
    for _, long, one in options(commands):
        for short in set(one.opts) - {long}:
            longs[short].add(long)
    assert not {short: names for short, names in longs.items() if len(names) > 1}


def test_commands_that_write_a_named_file_have_force(commands: dict[str, Any]) -> None:
    """Results in a folder are replaced with a remark. Plans contain the time of their making."""
    outputs = {
        name
        for name, long, one in options(commands)
        if long in {"--out", "--write", "--draw"} and one.metavar == "FILE"
    }
    found = {name for name, long, _ in options(commands) if long == "--force"}
    assert found == {*outputs, "init"} - {"mpi plan", "mpi exec"}


def test_commands_that_write_have_out(commands: dict[str, Any]) -> None:
    found = {name for name, long, _ in options(commands) if long == "--out"}
    assert found == WRITES
