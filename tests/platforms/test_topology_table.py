"""The topology of a platform file: built or read; errors name the key."""

from __future__ import annotations

from pathlib import Path

import pytest

from tutti.base.errors import ConfigError
from tutti.base.files.reader import parse_toml
from tutti.collectives.files.resolve import Experiment, resolve

EXPERIMENT = """
collective = "all_reduce"
algorithms = ["ring"]
ranks = {ranks}
sizes = "8 B"
[platform]
name = "mine"
[platform.models.link]
kind = "postal"
alpha = "1 us"
[platform.topology]
{topology}
"""
LINK = 'links = [{ rate = "50 GB/s", latency = "300 ns" }]'


def load(topology: str, *, ranks: str = "8", folder: Path = Path()) -> Experiment:
    text = EXPERIMENT.format(ranks=ranks, topology=topology)
    return resolve(parse_toml(text, source="e.toml"), source="e.toml", folder=folder)


def refusal(topology: str, *, ranks: str = "8", folder: Path = Path()) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        load(topology, ranks=ranks, folder=folder)
    assert str(caught.value).startswith("e.toml: ")
    return caught.value


def test_a_family_is_built() -> None:
    routes = load(f'build = "torus:4x2"\n{LINK}').machine().routes
    assert routes is not None
    assert routes.topology.ranks == 8
    assert str(routes.pair(0, 1).latency) == "300 ns"


def test_each_level_can_have_separate_links() -> None:
    slow = LINK.replace("}]", '}, { rate = "5 GB/s", latency = "1 us" }]')
    routes = load(f'build = "hierarchical:switch:4/switch:2"\n{slow}').machine().routes
    assert routes is not None
    assert routes.pair(0, 1).latency < routes.pair(0, 4).latency


GRAPH = """{{"directed": false, "multigraph": false, "graph": {{}},
 "nodes": [{{"id": 0}}, {{"id": 1}}, {{"id": 2}}, {{"id": 3}}],
 "edges": [{edges}]}}"""
EDGE = '{{"source": {}, "target": {}, "rate": "1 GB/s", "latency": "1 us"}}'


def graph(*edges: tuple[int, int]) -> str:
    return GRAPH.format(edges=", ".join(EDGE.format(*edge) for edge in edges))


def test_paths_of_graphs_start_from_the_file(tmp_path: Path) -> None:
    (tmp_path / "net.json").write_text(graph((0, 1), (1, 2), (2, 3)))
    routes = load('file = "net.json"', ranks="4", folder=tmp_path).machine().routes
    assert routes is not None
    assert routes.pair(0, 3).hops == 3


def test_hash_depends_on_the_graph_not_on_its_path(tmp_path: Path) -> None:
    found = []
    for name, last in (("a", 3), ("b", 3), ("c", 2)):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "net.json").write_text(graph((0, 1), (1, 2), (2, 3), (0, last)))
        found.append(load('file = "net.json"', ranks="4", folder=folder).config_hash)
    assert found[0] == found[1]
    assert found[0] != found[2]


def test_a_disconnected_graph_is_refused(tmp_path: Path) -> None:
    (tmp_path / "net.json").write_text(graph((0, 1), (2, 3)))
    error = refusal('file = "net.json"', ranks="4", folder=tmp_path)
    assert error.key == "platform mine: topology"
    assert "reach" in error.problem or "connect" in error.problem


@pytest.mark.parametrize(
    ("topology", "key", "fragment"),
    [
        (f'build = "taurus:4x4"\n{LINK}', "platform mine: topology", "taurus"),
        (f'build = "torus:4x"\n{LINK}', "platform mine: topology", "torus"),
        (f'build = "torus:4x4"\nfile = "net.json"\n{LINK}', "platform.topology", "either"),
        ('build = "torus:4x4"', "platform.topology", "`links`"),
        (f'file = "net.json"\n{LINK}', "platform.topology", "`links`"),
        ('file = "none.json"', "platform mine: topology", "none.json"),
        (
            'build = "ring:8"\nlinks = [{ rate = "0 GB/s", latency = "1 us" }]',
            "platform.topology.links[0].rate",
            "zero",
        ),
        (f'build = "ring:8"\nrouting = "best"\n{LINK}', "platform.topology.routing", "best"),
    ],
)
def test_errors_name_the_topology(topology: str, key: str, fragment: str) -> None:
    error = refusal(topology)
    assert error.key == key
    assert fragment in str(error)


def test_ranks_beyond_the_nodes_are_refused() -> None:
    error = refusal(f'build = "ring:4"\n{LINK}')
    assert error.key == "ranks"
    assert "at most 4" in str(error)


@pytest.mark.parametrize(
    ("notation", "routing", "words"),
    [
        ("torus:4x4", "minimal", "torus:4x4 is not a dragonfly"),
        ("torus:4x4", "d_mod_k", "torus:4x4 is not a fat tree"),
        ("fat_tree:k=4,n=2", "dimension_order", "fat_tree:k=4,n=2 has no dimensions"),
        ("dragonfly:p=2,a=4,h=2,g=10", "minimal", "expected at most g=9"),
        ("fat_tree:k=4,n=2", "shortest", "expected: one of shortest_path"),
        ("fat_tree:k=4,n=2", "shortest_paths", "hint: did you mean `shortest_path`?"),
        ("dragonfly:p=2", "minimal", "[,absolute], such as `dragonfly:p=2,a=4,h=2,g=9`"),
        ("dragonfli:p=2", "minimal", "hint: did you mean `dragonfly`?"),
    ],
)
def test_unsuitable_routing_is_refused(notation: str, routing: str, words: str) -> None:
    error = refusal(f'build = "{notation}"\nrouting = "{routing}"\n{LINK}')
    assert words in str(error)
    if "dragonf" not in notation:
        assert "shortest_path" in f"{error} {error.hint}"


def test_seed_is_refused_without_ecmp() -> None:
    table = f'build = "fat_tree:k=4,n=2"\n{LINK}\nrouting_seed = 3\nrouting = '
    seeded = load(table + '"ecmp"').machine().routes
    assert seeded is not None
    assert "ECMP with seed 3" in repr(seeded.core)
    assert "omit the seed" in (refusal(table + '"d_mod_k"').hint or "")
    refused = refusal(table.replace("= 3", "= -1") + '"ecmp"')
    assert "routing_seed" in str(refused)


def test_every_link_class_needs_its_table() -> None:
    two = LINK.replace("}]", '}, { rate = "5 GB/s", latency = "1 us" }]')
    error = refusal(f'build = "dragonfly:p=2,a=4,h=2"\n{two}')
    assert "expected 1 for all its links, or 3, one each for terminal, local, global" in str(error)
