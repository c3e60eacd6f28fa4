"""Network files of BookSim: their meaning, and errors of invalid files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tutti.base.errors import UnitError
from tutti.base.units import Time, TimePerByte
from tutti.formats.booksim import anynet
from tutti.topologies.errors import TopologyError

if TYPE_CHECKING:
    from pathlib import Path

    from tutti.topologies import Topology

NS = Time.parse("1 ns")
RATE = TimePerByte.parse("16 GB/s")


def built(text: str) -> Topology:
    parsed = anynet.parse(text, source="net")
    return anynet.built(parsed, name="net", cycle=NS, rate=RATE)


def cycles(text: str) -> dict[tuple[str, str], int]:
    return {(x.source, x.target): x.latency.ps // 1000 for x in built(text).links}


def test_a_file_becomes_a_topology(tmp_path: Path) -> None:
    path = tmp_path / "triangle.net"
    path.write_text(
        "router 0 node 0 node 1 node 2 router 1\n"
        "router 1 node 3 node 4 node 5\n\n"
        "router 2 node 6 node 7 node 8 router 1 router 0\n"
    )
    topology = anynet.topology_of(path, cycle="2 ns", rate="32 GB/s")
    assert (topology.name, topology.ranks, topology.facts.routers) == ("triangle", 9, 3)
    # Nine nodes and a triangle, in both directions.
    assert len(topology.links) == 2 * (9 + 3)
    assert {(str(x.rate), str(x.latency)) for x in topology.links} == {("32 GB/s", "2 ns")}
    assert [link.target for link in topology.routes().path(0, 8)] == ["router0", "router2", "npu8"]
    with pytest.raises(UnitError):
        anynet.topology_of(path, cycle=1, rate="32 GB/s")  # type: ignore[arg-type]


def test_the_latency_between_routers_is_that_of_one_direction() -> None:
    ends = ("router0", "router1")
    back = ends[::-1]
    found = cycles("router 0 node 0 router 1 15\nrouter 1 node 1\n")
    assert (found[ends], found[back]) == (15, 1)
    found = cycles("router 0 node 0 router 1 15\nrouter 1 node 1 router 0 4\n")
    assert (found[ends], found[back]) == (15, 4)
    # Given again without a number, it is 1 again; the other direction stays.
    found = cycles("router 1 router 0 4\nrouter 0 node 0 router 1 15 router 1\nrouter 1 node 1")
    assert (found[ends], found[back]) == (1, 4)


def test_the_latency_behind_a_node_is_that_of_both_directions() -> None:
    found = cycles("router 0 node 0 5 node 1\nnode 2 router 0 7\n")
    assert found["npu0", "router0"] == found["router0", "npu0"] == 5
    assert found["npu1", "router0"] == 1
    assert found["npu2", "router0"] == found["router0", "npu2"] == 7


def test_zeros_before_a_number_do_not_matter() -> None:
    assert cycles(f"router {'0' * 5000} node 0 router 01 05\nrouter 1 node 1") == cycles(
        "router 0 node 0 router 1 5\nrouter 1 node 1"
    )


def test_spaces_and_ends_of_lines_do_not_matter() -> None:
    plain = "router 0 node 0 router 1 3\nrouter 1 node 1\n"
    assert built("  \r\n router  0\tnode 0  router 1 3 \r\n\nrouter 1 node 1") == built(plain)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "net: there is no node\nexpected: at least one"),
        ("router 0", "net: there is no node"),
        (
            "Router 0 node 0",
            "net:1: found `Router` at the start of a line\nexpected: `router` or",
        ),
        ("router 0 node 0\nrouter", "net:2: the line ends behind `router`\nexpected: the number"),
        ("router 0 node", "net:1: the line ends behind `node`"),
        ("router 0 node zero", "net:1: found `zero`\nexpected: the number of a node, an integer"),
        ("router 0 node -1", "net:1: found `-1`\nexpected: the number of a node"),
        ("router 0 node 0 -3", "net:1: found `-3`\nexpected: the cycles to node 0"),
        ("router 0 node 0 1.5", "net:1: found `1.5`\nexpected: the cycles to node 0"),
        ("router 0 node 0 0", "an integer from 1 to 2147483647"),
        ("router 0 node 0 3 4", "net:1: found `4` after router 0\nexpected: `router` or `node`"),
        ("router 0 nod 0", "net:1: found `nod` after router 0"),
        ("node 0 node 1", "net:1: node 0 is linked to node 1"),
        ("router 0 node 0 router 0", "net:1: router 0 is linked to itself"),
        (
            "router 0 node 0\nrouter 1 node 0",
            "net:2: node 0 is on router 1, but was on router 0\nexpected: one router, as in line 1",
        ),
        (
            "router 0 node 0\nrouter 0 node 2",
            "net:2: node 2 is defined, but node 1 is not\nexpected: nodes 0 to 1",
        ),
        ("router 0 node 0 router 7", "net:1: router 7 is defined, but router 1 is not"),
        ("router 0 node 0\nrouter 1 node 1", "net: npu0 cannot reach npu1"),
        (f"router 0 node {'9' * 5000}", "expected: the number of a node"),
    ],
)
def test_error_points_at_an_invalid_word(text: str, message: str) -> None:
    with pytest.raises(TopologyError) as caught:
        built(text)
    assert message in caught.value.problem
    assert caught.value.hint


def test_unreadable_files_are_reported(tmp_path: Path) -> None:
    def refused(path: Path) -> TopologyError:
        with pytest.raises(TopologyError) as caught:
            anynet.topology_of(path, cycle="1 ns", rate="1 GB/s")
        assert str(path) in caught.value.problem
        return caught.value

    assert refused(tmp_path / "none").hint == "name a network file of BookSim"
    assert refused(tmp_path).kind == "file"
    binary = tmp_path / "binary"
    binary.write_bytes(b"router 0 node 0\n\xff\xfe")
    assert f"{binary}: not text: byte 0xff at line 2" in refused(binary).problem


def test_error_points_at_a_latency_out_of_range() -> None:
    parsed = anynet.parse("router 0 node 0\nrouter 0 node 1 99", source="net")
    with pytest.raises(TopologyError, match="net:2: 99 cycles"):
        anynet.built(parsed, name="net", cycle=Time(ps=2**60), rate=RATE)


WORDS = st.sampled_from(["router", "node", "0", "1", "2", "3", "17", "x", "\n", "-1", "²"])


@given(st.lists(WORDS, max_size=25).map(" ".join) | st.text(max_size=60))
@settings(max_examples=300)
def test_any_text_is_a_topology_or_an_error(text: str) -> None:
    refusal = ""
    try:
        topology = built(text)
    except TopologyError as error:
        refusal = error.problem
    assert refusal.startswith("net") if refusal else topology.ranks >= 1


@given(st.data())
def test_written_files_are_read_back(data: st.DataObject) -> None:
    """Compares with a reference that writes every link in both directions with its latency."""
    routers = data.draw(st.integers(1, 5))
    latency = st.integers(1, 9)
    ends = [(a, b) for a in range(routers) for b in range(routers) if a < b]
    chain = {(a, a + 1) for a in range(routers - 1)}
    cables = chain | set(data.draw(st.lists(st.sampled_from(ends), max_size=4)) if ends else [])
    links = {link: data.draw(latency) for a, b in sorted(cables) for link in ((a, b), (b, a))}
    homes = data.draw(st.lists(st.integers(0, routers - 1), min_size=1, max_size=6))
    lines = [f"router {a} router {b} {cycles}" for (a, b), cycles in links.items()]
    lines += [f"router {router} node {node}" for node, router in enumerate(homes)]
    lines += [f"router {router}" for router in range(routers)]
    found = cycles("\n".join(data.draw(st.permutations(lines))))
    expected = {(f"router{a}", f"router{b}"): cycles for (a, b), cycles in links.items()}
    for node, router in enumerate(homes):
        expected[f"npu{node}", f"router{router}"] = expected[f"router{router}", f"npu{node}"] = 1
    assert found == expected
