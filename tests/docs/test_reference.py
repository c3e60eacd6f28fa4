"""Generated pages are current, and the files in examples/ are valid."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import reference_pages

from tutti.collectives.experiment import plan
from tutti.collectives.files.resolve import load_experiment
from tutti.formats.formats import formats
from tutti.networks.coherence.files import load_coherence
from tutti.networks.flit.files.network_file import load_noc
from tutti.networks.mesh.files import is_smart, load_smart
from tutti.sweeps.files import load_sweep
from tutti.sweeps.plan import plan_sweep
from tutti.topologies import Topology
from tutti.training.files.step_file import load_training
from tutti_papers.overview import papers_page

PAGES = {**reference_pages.PAGES, "docs/papers/README.md": papers_page}
ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(ROOT.glob("examples/*/*.toml"))


@pytest.mark.parametrize("name", PAGES)
def test_generated_files_are_current(name: str) -> None:
    path = ROOT / name
    remedy = "python scripts/generate_reference.py"
    assert path.is_file(), f"{name} is missing: {remedy}"
    assert path.read_text("utf-8") == PAGES[name](), f"{name} is stale: {remedy}"


def test_the_glossary_is_current() -> None:
    script = ROOT / "scripts" / "generate_glossary.py"
    found = subprocess.run(
        [sys.executable, script, "--check"], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, f"run `make reference`: {found.stdout}{found.stderr}"


def test_links_within_the_glossary_have_a_heading() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text("utf-8")
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert headings == [*sorted(headings[:-1], key=str.lower), "References"]
    anchors = {re.sub(r"[^\w -]", "", one.lower()).replace(" ", "-") for one in headings}
    links = set(re.findall(r"\]\(#([^)]+)\)", text))
    assert links <= anchors, f"no heading: {sorted(links - anchors)}"


def test_the_page_of_formats_has_every_format() -> None:
    text = (ROOT / "docs" / "reference" / "formats.md").read_text("utf-8")
    rows = re.findall(r"^\| `([\w-]+)` \| (\w+) \| ([a-z, ]+) \|", text, re.MULTILINE)
    expected = []
    for each in formats():
        directions = [word for word, able in (("in", each.read), ("out", each.write)) if able]
        expected.append((each.name, each.content, ", ".join(directions)))
    assert rows == expected


def test_the_page_of_topologies_has_an_experiment_with_a_graph_file(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "concepts" / "topology.md").read_text("utf-8")
    (toml,) = re.findall(r"```toml\n(collective.*?)```", text, re.DOTALL)
    (tmp_path / "experiment.toml").write_text(toml)
    graph = Topology.build("fully_connected:10", rate="50 GB/s", latency="1 us")
    graph.write(tmp_path / "petersen.json")
    assert plan(load_experiment(tmp_path / "experiment.toml")).points


def test_schemas_are_json() -> None:
    for name in ("coherence", "experiment", "noc", "platform", "smart", "sweep", "training"):
        schema = json.loads(PAGES[f"schemas/{name}.schema.json"]())
        assert schema["additionalProperties"] is False


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_examples_run(path: Path) -> None:
    if "script:" in path.read_text("utf-8"):
        # Captures need PyTorch: tests/torch.
        assert load_sweep(path).points
    elif path.name == "sweep.toml":
        assert plan_sweep(load_sweep(path)).measurements
    elif path.name == "noc.toml":
        assert load_noc(path).traffic
    elif path.name == "chip.toml":
        assert load_coherence(path).cases
    elif is_smart(path):
        assert load_smart(path).traffic
    elif path.name == "training.toml":
        assert load_training(path).configurations
    else:
        assert plan(load_experiment(path)).points
    readme = (path.parent / "README.md").read_text("utf-8")
    assert "**The effect to look for.**" in readme
    assert f"examples/{path.parent.name}/{path.name}" in readme
