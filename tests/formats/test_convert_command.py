"""`tutti convert`: every format that it writes, what it reports as lost, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tutti
from called import call
from network_files import FILES
from tutti.formats.formats import Options, formats, named
from tutti.schedules.text import read_schedule
from tutti.topologies import Topology
from tutti.workloads.operations import CollectiveCall, Trace

if TYPE_CHECKING:
    from tutti.formats.formats import Content

LISTED = formats()


def names(content: Content) -> list[str]:
    return [each.name for each in LISTED if each.content == content and each.write]


def convert(folder: Path, *words: str) -> str:
    """Converts, and returns the losses on one line."""
    done = call("convert", *words, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "wrote" in done.stdout
    return " ".join(done.stderr.split())


def ending(name: str) -> str:
    return named(name, option="--to").endings[0]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with a schedule, and with its trace, plan, program and messages."""
    folder = tmp_path_factory.mktemp("inputs")
    convert(folder, "ring", "r.schedule", "--ranks", "4")
    for target in ("r.goal", "r.cm"):
        convert(folder, "r.schedule", target, "--size", "4KiB")
    for target in ("r.xml", "r.json"):
        convert(folder, "r.schedule", target)
    Topology.build("switch:4", rate="100 Gb/s", latency="1 us").write(folder / "t.graphml")
    return folder


def test_list_has_every_format() -> None:
    shown = call("convert", "--list", cwd=Path.cwd()).stdout
    for each in LISTED:
        directions = [word for word, able in (("read", each.read), ("write", each.write)) if able]
        assert f"{each.name}: {each.content}, {' and '.join(directions)}\n" in shown


@pytest.mark.parametrize("name", names("schedule"))
def test_schedules_of_an_algorithm(tmp_path: Path, name: str) -> None:
    file = f"r{ending(name)}"
    convert(tmp_path, "ring", file, "--ranks", "4", "--to", name)
    source = ["--from", "python", "r:build"] if name == "chunk-program" else [file]
    convert(tmp_path, *source, "back.schedule")
    found = read_schedule(tmp_path / "back.schedule")
    found.verify()
    assert found.ranks == 4
    assert found.collective == "all_reduce"


@pytest.mark.parametrize("name", names("trace"))
def test_traces_of_a_schedule(inputs: Path, tmp_path: Path, name: str) -> None:
    file = f"{tmp_path}/r{ending(name)}"
    losses = convert(inputs, "r.schedule", file, "--size", "4KiB")
    assert "lost: reductions and copies: they take no time" in losses
    if name == "chakra":
        done = call("convert", "r.schedule", file, "--size", "4KiB", cwd=inputs)
        assert f"wrote {tmp_path}/r.0.et to r.3.et, 4 files" in " ".join(done.stdout.split())
        assert not Path(file).exists()
        file = f"{tmp_path}/r.0.et"
    convert(inputs, file, f"{tmp_path}/back.goal")
    assert (tmp_path / "back.goal").read_text() == (inputs / "r.goal").read_text()


def test_collectives_become_messages(tmp_path: Path) -> None:
    one = trace_of_a_collective(tmp_path)
    done = call("convert", one, "c.goal", cwd=tmp_path)
    assert done.returncode == 2
    assert "GOAL has no collectives" in done.stderr
    losses = convert(tmp_path, one, "c.goal", "--algorithm", "ring")
    assert "lost: collectives: replaced by messages of ring" in losses
    assert (tmp_path / "c.goal").read_text().count("send 2048b") == 4
    convert(tmp_path, one, "c.cm", "--algorithm", "ring")


def trace_of_a_collective(folder: Path) -> str:
    import numpy as np

    from tutti.workloads.operations import Kind, Operations

    operations = Operations(
        kinds=np.array([Kind.COLLECTIVE], np.uint8),
        sizes=np.array([4096], np.int64),
        durations=np.zeros(1, np.int64),
        peers=np.zeros(1, np.int32),
        tags=np.zeros(1, np.int64),
        streams=np.zeros(1, np.int32),
        first_dependency=np.zeros(2, np.int64),
        dependencies=np.zeros(0, np.int64),
        on_start=np.zeros(0, np.bool_),
    )
    call_ = CollectiveCall("all_reduce", (0, 1))
    given = Trace(name="c", ranks=(operations, operations), collectives=(call_,))
    named("chakra", option="--to").writer()(given, folder / "c.et", Options())
    return "c.0.et"


@pytest.mark.parametrize("name", names("messages"))
@pytest.mark.parametrize("source", ["r.schedule", "r.goal"])
def test_messages_of_a_schedule_or_trace(
    inputs: Path, tmp_path: Path, name: str, source: str
) -> None:
    size = ["--size", "4KiB"] if source == "r.schedule" else []
    file = tmp_path / f"m{ending(name)}"
    convert(inputs, source, str(file), *size)
    messages = named(name, option="--from").reader()(file, Options())[0]
    assert len(messages) == 4 * 2 * 3
    assert messages.sizes.tolist() == [1024] * 24


def test_topologies_are_converted_and_back(inputs: Path, tmp_path: Path) -> None:
    convert(inputs, "t.graphml", f"{tmp_path}/t.json")
    convert(tmp_path, "t.json", "back.graphml")
    assert Topology.read(tmp_path / "back.graphml") == Topology.read(inputs / "t.graphml")
    losses = convert(inputs, "t.graphml", f"{tmp_path}/t.anynet")
    assert "lost: rates" in losses


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        ("", ["IN or OUT is missing", "tutti convert IN OUT"]),
        ("r.goal", ["IN or OUT is missing"]),
        ("r.schedule x.goal", ["--size: is missing: a trace has sizes", "--size 1MiB"]),
        ("r.schedule x.cm", ["--size: is missing: a file of messages has sizes"]),
        ("r.schedule x.xml --size 4KiB", ["--size: has no effect from schedule to msccl-xml"]),
        ("r.goal x.bin --size 4KiB", ["--size: has no effect from goal to goal-binary"]),
        ("r.goal x.bin --repair", ["--repair: has no effect"]),
        ("r.xml x.schedule --algorithm ring", ["--algorithm: has no effect"]),
        ("ring x.schedule --ranks 4 --repair", ["--repair: has no effect from algorithm to"]),
        ("r.goal x.bin --ranks 4", ["--ranks: applies to algorithms only", "r.goal is goal"]),
        ("ring x.bin --from goal --root 1", ["--root: applies", "the format of ring is goal"]),
        ("r.goal x.bin --to gaol", ["--to: unknown format `gaol`", "did you mean `goal`"]),
        ("r.goal x.bin --from gaol", ["--from: unknown format `gaol`", "expected: one of anynet,"]),
        ("r.goal x.unknown", ["x.unknown: unknown format", "one of chakra, goal, goal-binary,"]),
        ("r.schedule x.sxml --to simgrid-xml", ["--to: simgrid-xml is read-only", "one of anynet"]),
        ("r.py x.schedule --from chunk-program", ["--from: chunk-program is write-only"]),
        ("t.graphml x.txt", ["several formats have this ending", "one of ns3-simai, ns3-topology"]),
        (
            "t.graphml x.schedule",
            ["a topology does not convert to a schedule", "an output format of anynet"],
        ),
        (
            "r.goal x.schedule",
            ["a trace does not convert to a schedule", "an output format of chakra, goal,"],
        ),
        ("r.goal x.graphml", ["a trace does not convert to a topology"]),
        ("r.cm x.goal", ["a file of messages does not convert to a trace", "htsim-cm, ns3-flows"]),
        (". x.goal", ["is a folder, whose format cannot be recognised"]),
        ("r.goal . --to goal", [".: is a folder", "OUT is a file"]),
        ("absent.goal x.goal", ["absent.goal: there is no such file"]),
        ("rnig x.schedule --ranks 4", ["unknown algorithm `rnig`", "did you mean `ring`"]),
        ("absent:build x.schedule --from python", ["`absent:build` builds no program"]),
        ("absent x.schedule --from python", ["`absent` names no program"]),
        ("a:b x.schedule --from python --ranks 4", ["the format of a:b is python"]),
    ],
)
def test_what_cannot_be_converted_is_refused(inputs: Path, words: str, parts: list[str]) -> None:
    before = sorted(inputs.iterdir())
    done = call("convert", *words.split(), cwd=inputs)
    shown = " ".join(done.stderr.split())
    assert done.returncode == 2, shown
    for part in parts:
        assert part in shown
    assert sorted(inputs.iterdir()) == before


def test_an_input_that_several_formats_accept_is_refused(tmp_path: Path) -> None:
    (tmp_path / "f.other").write_text("num_ranks of nothing")
    done = call("convert", "f.other", "x.goal", cwd=tmp_path)
    assert done.returncode == 2
    (tmp_path / "f.txt").write_text("words")
    done = call("convert", "f.txt", "x.graphml", cwd=tmp_path)
    assert "f.txt: unknown format" in done.stderr
    done = call("trace", "run", "f.txt", cwd=tmp_path)
    assert "--from with one of chakra, chakra-archive, goal, goal-binary, kineto\n" in done.stderr
    done = call("trace", "run", "f.text", cwd=tmp_path)
    assert "there is no such file\nexpected: a file of a known format\n" in done.stderr


@pytest.mark.parametrize("name", sorted(FILES))
def test_files_of_network_simulators(tmp_path: Path, name: str) -> None:
    (tmp_path / f"f{ending(name)}").write_text(FILES[name])
    content = named(name, option="--from").content
    target = "o.cm" if content == "messages" else "o.graphml"
    convert(tmp_path, f"f{ending(name)}", target)
    assert (tmp_path / target).stat().st_size


def test_python_is_executed_only_on_request(tmp_path: Path) -> None:
    source = tutti.decompile(tutti.schedule("direct", ranks=3))
    (tmp_path / "own_program.py").write_text(source)
    done = call("convert", "own_program.py", "x.schedule", cwd=tmp_path)
    assert done.returncode == 2
    assert "own_program.py: unknown format" in done.stderr
    convert(tmp_path, "--from", "python", "own_program:build", "x.schedule")
    read_schedule(tmp_path / "x.schedule").verify()
