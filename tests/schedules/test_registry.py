"""Every registry entry has a page, an example, a golden case and a proof.

CONTRIBUTING.md lists the requirements; these tests fail if one is missing.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import tutti
from tutti import _core
from tutti.topologies import families

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "models"
GOLDENS = ROOT / "tests" / "golden"

ALGORITHMS = {entry.name: entry for entry in _core.algorithms()}
MODELS = {entry.name: entry for entry in _core.parameter_groups(models=True)}
FAMILIES = {entry.name: entry for entry in families()}

EXAMPLE = re.compile(r"^## Example\n\n`([^`]+)`: (\w+) on (\d+) ranks\b", re.MULTILINE)
SECTIONS = ("Schedule", "Cost", "Constraints", "When to use it", "Example", "Sources")
MOST_LINES = 130

# Algorithms without a closed form for any request, with the reason. The engine is compared with the
# oracle for every algorithm all the same: crates/tutti-tests/tests/layers/fast_against_slow.rs.
WITHOUT_CLOSED_FORM: dict[str, str] = {
    "concentrated_multi_tree": "between groups of 2x2 it is MultiTree on a mesh, which has none: "
    "who comes last in a step depends on the network",
}


def page(name: str) -> str:
    path = PAGES / f"{name}.md"
    assert path.is_file(), f"docs/models/{name}.md is missing"
    return path.read_text("utf-8")


def goldens(name: str) -> list[dict[str, Any]]:
    """The cases of tests/golden/<name>, next to their derivation."""
    found = sorted((GOLDENS / name).glob("*.toml"))
    assert (GOLDENS / name / "case.toml") in found, f"tests/golden/{name}/case.toml is missing"
    assert (GOLDENS / name / "WHY.md").is_file(), f"tests/golden/{name}/WHY.md is missing"
    return [tomllib.loads(path.read_text("utf-8")) for path in found]


def claimed(entry: _core.Algorithm) -> list[tuple[str, int]]:
    requested = ((collective, ranks) for collective in entry.collectives for ranks in range(2, 17))
    return [
        (collective, ranks) for collective, ranks in requested if entry.claims(collective, ranks)
    ]


@pytest.mark.parametrize("name", ALGORITHMS)
def test_an_algorithm_has_a_complete_page(name: str) -> None:
    text = page(f"algorithm-{name}")
    assert text.startswith(f"# {name}\n")
    assert len(text.splitlines()) <= MOST_LINES
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert headings == list(SECTIONS)
    missing = [kind for kind in ALGORITHMS[name].collectives if kind not in text]
    assert not missing, f"docs/models/algorithm-{name}.md does not name {', '.join(missing)}"
    words = " ".join(text.lower().split())
    missing = [model for model in ("pipelining postal", "loggp") if model not in words]
    assert not missing, f"docs/models/algorithm-{name}.md has no closed form in {missing}"


@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_example_of_an_algorithm_is_proved(name: str) -> None:
    found = EXAMPLE.search(page(f"algorithm-{name}"))
    assert found, (
        f"docs/models/algorithm-{name}.md has no example like '`ring`: all_reduce on 4 ranks'"
    )
    notation, collective, ranks = found.groups()
    assert notation.split(":")[0] == name
    proof = tutti.schedule(notation, collective=collective, ranks=int(ranks)).verify()
    assert proof.messages > 0


@pytest.mark.parametrize("name", ALGORITHMS)
def test_an_algorithm_has_a_golden(name: str) -> None:
    cases = goldens(name)
    assert all(case["schedule"]["algorithm"].split(":")[0] == name for case in cases)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_an_algorithm_has_a_closed_form(name: str) -> None:
    exists = any(_core.critical_path(name, *requested) for requested in claimed(ALGORITHMS[name]))
    assert exists is not (name in WITHOUT_CLOSED_FORM)


@pytest.mark.parametrize("name", MODELS)
def test_a_network_model_has_a_page_and_a_golden(name: str) -> None:
    """The registry test of the core checks the content of the page."""
    assert page(name).startswith(f"# {name}\n")
    assert all(case["model"]["kind"] == name for case in goldens(name))


def test_the_index_links_to_every_page() -> None:
    links = set(re.findall(r"\](?:\(|: )([\w.-]+\.md)", page("README")))
    assert links == {path.name for path in PAGES.glob("*.md")} - {"README.md"}


@pytest.mark.parametrize("name", FAMILIES)
def test_a_topology_family_has_its_line(name: str) -> None:
    text = (ROOT / "docs" / "concepts" / "topology.md").read_text("utf-8")
    lines = [line for line in text.splitlines() if line.startswith(f"| `{name}:")]
    assert lines, f"docs/concepts/topology.md has no line for `{name}:...`"
    assert FAMILIES[name].example.startswith(f"{name}:")


def test_no_page_or_golden_is_left_over() -> None:
    """Pages and goldens belong to registered algorithms and models."""
    pages = {path.stem.removeprefix("algorithm-") for path in PAGES.glob("algorithm-*.md")}
    assert pages == ALGORITHMS.keys()
    folders = {path.parent.name for path in GOLDENS.glob("*/*.toml")}
    assert folders == ALGORITHMS.keys() | MODELS.keys() | {"flit"}
