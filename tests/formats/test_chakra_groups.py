"""Process groups of Chakra traces: every verb that reads traces resolves them alike."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from tutti.base.errors import ConfigError
from tutti.cli.app import app
from tutti.formats.astrasim.networks import load_network
from tutti.formats.astrasim.reader import load_workload
from tutti.formats.astrasim.systems import System
from tutti.formats.chakra import reader as chakra
from tutti.formats.chakra.groups import Groups, load_groups
from tutti.formats.chakra.reader import Attribute, ChakraTrace, Node
from tutti.formats.chakra.trace import read_trace
from tutti.formats.formats import Options
from tutti.workloads.errors import TraceError
from tutti.workloads.trace import programs

if TYPE_CHECKING:
    from pathlib import Path

PAIRS = {"1": [0, 1], "2": [2, 3]}
NETWORK = "topology: [ Ring, Ring ]\nnpus_count: [ 2, 2 ]\n"
NETWORK += "bandwidth: [ 50.0, 50.0 ]\nlatency: [ 500.0, 500.0 ]\n"
SYSTEM = {
    "endpoint-delay": 10,
    "all-reduce-implementation": ["ring", "ring"],
    "collective-optimization": "localBWAware",
    "local-mem-bw": 1600,
}


def named(**names: Attribute) -> Node:
    attributes = {"comm_type": Attribute("int64", 0), "comm_size": Attribute("int64", 1 << 20)}
    return Node(id=1, name="ar", type="COMM_COLL", attributes=attributes | names)


def written(folder: Path, *attributes: dict[str, Attribute]) -> Path:
    """Writes traces ``t.<rank>.et``, the network and the system; returns the prefix."""
    for rank, names in enumerate(attributes):
        chakra.write(folder / f"t.{rank}.et", ChakraTrace(nodes=(named(**names),)))
    (folder / "n.yml").write_text(NETWORK, "utf-8")
    (folder / "s.json").write_text(json.dumps(SYSTEM), "utf-8")
    return folder / "t"


def text(name: str) -> Attribute:
    return Attribute("string", name)


def called(folder: Path, verb: str, *more: str) -> tuple[int, str]:
    """Returns the exit code and the output of a verb on the traces of a folder."""
    first = str(folder / "t.0.et")
    words = {
        "convert": ["convert", first, str(folder / "o.goal"), "-a", "ring"],
        "trace": ["trace", "run", first, "-a", "ring"],
        "astrasim": ["train", "from-astrasim", str(folder / "t"), "--network",
                     str(folder / "n.yml"), "--system", str(folder / "s.json"), "--out",
                     str(folder / "o")],
    }[verb]  # fmt: skip
    result = CliRunner().invoke(app, [*words, *more])
    return result.exit_code, " ".join(result.output.split())


VERBS = ("convert", "trace", "astrasim")
PG = tuple({"pg_name": text(name)} for name in ("1", "1", "2", "2"))
STAGE = tuple({"comm_group": Attribute("int32", name)} for name in (1, 1, 2, 2))


@pytest.mark.parametrize("verb", VERBS)
def test_an_unknown_group_is_refused(tmp_path: Path, verb: str) -> None:
    """ASTRA-sim ends: communicator group not found."""
    written(tmp_path, *PG)
    code, output = called(tmp_path, verb)
    assert code == 2
    assert "t.0.et, rank 0, node 1: unknown group `1`: expected a table of groups" in output
    assert "`--groups FILE`" in output


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("attributes", [PG, STAGE], ids=["pg_name", "comm_group"])
@pytest.mark.parametrize("name", ["g.json", "t.comm_group.json", "t.json", "comm_group.json"])
def test_a_table_of_groups_is_honoured(
    tmp_path: Path, verb: str, attributes: tuple[dict[str, Attribute], ...], name: str
) -> None:
    """Given with --groups, or found next to the traces."""
    written(tmp_path, *attributes)
    (tmp_path / name).write_text(json.dumps(PAIRS), "utf-8")
    given = ("--groups", str(tmp_path / name)) if name == "g.json" else ()
    code, output = called(tmp_path, verb, *given)
    assert code == 0, output
    assert "no collective names them" not in output
    if verb == "astrasim":
        assert "21,534.290 ns" in output
        groups = tmp_path / name
        network = load_network(tmp_path / "n.yml")
        first = load_workload(tmp_path / "t.0.et", network, System(), groups)
        assert len(first.programs) == 1
    elif verb == "trace":
        assert "8 messages, 4,194,304 B" in output


@pytest.mark.parametrize("verb", VERBS)
def test_a_table_that_no_collective_names_is_remarked(tmp_path: Path, verb: str) -> None:
    written(tmp_path, {}, {}, {}, {})
    (tmp_path / "g.json").write_text(json.dumps(PAIRS), "utf-8")
    code, output = called(tmp_path, verb, "--groups", str(tmp_path / "g.json"))
    assert code == 0, output
    assert "g.json (1, 2): no collective names them" in output


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"1": [0, 1], "2": [2, 9]}, "group `2` has rank 9"),
        ({"1": [1, 2], "2": [2, 3]}, "group `1` does not have rank 0"),
        ({"1": [0, 0], "2": [2, 3]}, "lists rank 0 twice"),
        ({"1": [0, 1], "3": [2, 3]}, "unknown group `2`: expected 1, 3"),
        ({"1": [], "2": [2, 3]}, "is empty"),
    ],
)
def test_wrong_tables_are_refused(
    tmp_path: Path, verb: str, table: dict[str, list[int]], words: str
) -> None:
    written(tmp_path, *PG)
    (tmp_path / "g.json").write_text(json.dumps(table), "utf-8")
    code, output = called(tmp_path, verb, "--groups", str(tmp_path / "g.json"))
    assert code == 2
    assert words in output


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ({"pg_name": text("1"), "comm_group": text("2")}, "in the groups `1` of pg_name and `2`"),
        ({"pg_name": Attribute("int64_list", (1,))}, "`pg_name` is a int64_list"),
        ({"comm_group": Attribute("bool", value=True)}, "`comm_group` is a bool"),
    ],
)
def test_groups_that_are_no_name_are_refused(
    tmp_path: Path, names: dict[str, Attribute], words: str
) -> None:
    prefix = written(tmp_path, names, names)
    (tmp_path / "t.json").write_text('{"1": [0, 1], "2": [0, 1]}', "utf-8")
    for read in (
        lambda: read_trace(tmp_path / "t.0.et", Options()),
        lambda: programs(chakra.read_all(prefix), (2,)),
    ):
        with pytest.raises(TraceError) as refused:
            read()
        assert words in str(refused.value)


def test_equal_names_and_the_default_group(tmp_path: Path) -> None:
    """Both attributes may state one group; `0` is all ranks unless it is defined."""
    both = {"pg_name": text("1"), "comm_group": Attribute("int32", 1)}
    prefix = written(tmp_path, both, both)
    (tmp_path / "t.json").write_text('{"1": [1, 0]}', "utf-8")
    trace, _ = read_trace(tmp_path / "t.0.et", Options())
    assert trace.collectives[0].group == (1, 0)
    assert programs(chakra.read_all(prefix), (2,))[0].transfers[0].mask == 1
    written(tmp_path, {"pg_name": text("0")}, {"comm_group": Attribute("int32", 0)})
    trace, losses = read_trace(tmp_path / "t.0.et", Options())
    assert trace.collectives[0].group == (0, 1)
    assert losses == (f"groups of {tmp_path / 't.json'} (1): no collective names them",)


def test_a_definition_of_group_0_is_remarked(tmp_path: Path) -> None:
    written(tmp_path, *({"pg_name": text("0")} for _ in range(4)))
    (tmp_path / "t.json").write_text('{"0": [0, 1, 2, 3]}', "utf-8")
    code, output = called(tmp_path, "astrasim")
    assert code == 0, output
    assert "in ASTRA-sim it is all NPUs" in output


def test_groups_of_pytorch_hold_on_a_torus(tmp_path: Path) -> None:
    """METADATA nodes define groups, which precede those of a table."""
    inputs = '[\'[{"pg_name": "1", "ranks": [0, 1]}, {"pg_name": "2", "ranks": [2, 3]}]\']'
    metadata = Node(id=9, type="METADATA", inputs=(inputs, "", ""))
    for rank, names in enumerate(PG):
        trace = ChakraTrace(nodes=(metadata, named(**names)))
        chakra.write(tmp_path / f"t.{rank}.et", trace)
    (tmp_path / "t.json").write_text('{"1": [0, 1, 2, 3]}', "utf-8")
    traces = chakra.read_all(tmp_path / "t")
    found = programs(traces, (2, 2))
    assert [transfer.mask for transfer in found[0].transfers] == [1]
    line = f"groups of {tmp_path / 't.json'} (1): the trace defines others"
    assert traces[0].groups.remarks() == (line,)
    assert line in read_trace(tmp_path / "t.0.et", Options())[1]


def test_a_collective_of_one_rank_takes_no_time(tmp_path: Path) -> None:
    """Traces of PyTorch have groups of one rank, where a kind of parallelism is not used."""
    nodes = (Node(id=5, duration_us=3), named(pg_name=text("9")))
    for rank in range(2):
        chakra.write(tmp_path / f"t.{rank}.et", ChakraTrace(nodes=nodes))
    (tmp_path / "t.json").write_text('{"9": [0]}', "utf-8")
    with pytest.raises(TraceError, match=r"t\.1\.et.*group `9` does not have rank 1"):
        programs(chakra.read_all(tmp_path / "t"), (2,))
    chakra.write(tmp_path / "t.1.et", ChakraTrace(nodes=nodes[:1]))
    found = programs(chakra.read_all(tmp_path / "t"), (2,))
    assert [task.kind for task in found[0].tasks] == ["compute"]


@pytest.mark.parametrize(
    "table", ['{"a": [1e999]}', '{"a": "x"}', "[]", "{", '{"a": [-1]}', '{"a": [1, 1]}']
)
def test_invalid_tables_are_refused(table: str, tmp_path: Path) -> None:
    (tmp_path / "g.json").write_text(table, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"g\.json"):
        load_groups(tmp_path / "g.json")


def test_no_table_is_remarked_if_there_is_none() -> None:
    assert Groups().remarks() == ()


# --- files of ranks ------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("content", [b"", b"\x07\n\x050.0.4"], ids=["empty", "metadata only"])
def test_a_file_without_nodes_is_refused(tmp_path: Path, verb: str, content: bytes) -> None:
    written(tmp_path, {}, {}, {}, {})
    (tmp_path / "t.2.et").write_bytes(content)
    code, output = called(tmp_path, verb)
    assert code == 2
    assert "t.2.et: the trace has no nodes: expected those of a rank" in output


@pytest.mark.parametrize("verb", VERBS)
def test_two_files_of_a_rank_are_refused(tmp_path: Path, verb: str) -> None:
    written(tmp_path, {}, {}, {}, {})
    (tmp_path / "t.01.et").write_bytes((tmp_path / "t.1.et").read_bytes())
    code, output = called(tmp_path, verb)
    assert code == 2
    assert "two files of rank 1: t.01.et, t.1.et" in output


@pytest.mark.parametrize("verb", VERBS)
def test_a_missing_rank_is_refused(tmp_path: Path, verb: str) -> None:
    written(tmp_path, {}, {}, {}, {})
    (tmp_path / "t.1.et").unlink()
    code, output = called(tmp_path, verb)
    assert code == 2
    assert "missing file of rank 1" in output


def test_a_trace_without_operations_is_refused(tmp_path: Path) -> None:
    """Ranks without operations are valid, as tutti writes them, but not all of them."""
    idle = ChakraTrace(nodes=(Node(id=0, type="METADATA"),))
    chakra.write(tmp_path / "t.0.et", idle)
    with pytest.raises(TraceError, match="no rank has operations"):
        read_trace(tmp_path / "t.0.et", Options())
    chakra.write(tmp_path / "t.1.et", ChakraTrace(nodes=(Node(id=0, duration_us=1),)))
    assert [len(of) for of in read_trace(tmp_path / "t.0.et", Options())[0].ranks] == [0, 1]


def test_collectives_of_a_single_file_are_remarked(tmp_path: Path) -> None:
    written(tmp_path, {})
    _, losses = read_trace(tmp_path / "t.0.et", Options())
    assert losses == ("1 collectives of other ranks: the trace has one file",)
