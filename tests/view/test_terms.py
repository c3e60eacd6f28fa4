"""The design that all kinds of reports share, and their definitions of terms."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tutti
from tutti.base.glossary import Term, glossary
from tutti.base.units import Time, TimePerByte
from tutti.collectives.view.comparison import comparison_view
from tutti.formats.measurements import read_measurements
from tutti.measured.advise import advise
from tutti.measured.advise.view import advice_view
from tutti.networks import coherence
from tutti.networks import flit as noc
from tutti.networks import mesh as smart
from tutti.networks.coherence.view.run import runs_view
from tutti.networks.flit.view.load import load_view
from tutti.networks.flit.view.run import run_view
from tutti.networks.mesh.view.load import load_view as mesh_load_view
from tutti.networks.mesh.view.run import run_view as mesh_run_view
from tutti.networks.mesh.view.watch import write_watch
from tutti.sweeps.design_view import design_view
from tutti.sweeps.files import resolve_sweep
from tutti.training.endpoint import Ring, configurations
from tutti.training.runs import watched
from tutti.training.step import Step
from tutti.training.view.page import write_training_report
from tutti.view.page import LIMIT, MOST_SENTENCES, page_of
from tutti.view.palette import DARK
from tutti.workloads import build

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

KINDS = sorted(glossary().reports)
OTHER_FORMS = {
    "injection and ejection": "injection",
    "percentage of the lower bound": "% of the lower bound",
    "saturation": "saturated",
    "virtual channel": "VC",
}
"""How reports write terms that they do not use literally."""
_PLAN = noc.MeasurementPlan(warmup=200, measure=1000, batches=5, drain=1000, sample=50)
_SMART_PLAN = smart.ReplicationPlan(warmup=100, measure=500, drain=1000, seeds=2)


def _network() -> noc.Network:
    topology = tutti.Topology.build("torus:4x4", rate="16 GB/s", latency="1 ns")
    return noc.Network(topology=topology, routing="shortest_path")


def _network_report(path: Path) -> Path:
    return page_of(run_view(noc.run(_network(), noc.Traffic(rate=0.1), _PLAN))).write(path)


def _network_load(path: Path) -> Path:
    runs = noc.sweep(_network(), noc.Traffic(rate=0), [0.1, 0.95], _PLAN)
    return page_of(load_view(runs)).write(path)


def _designs(path: Path) -> Path:
    links = [{"rate": "16 GB/s", "latency": "1 ns", "length": "1 mm"}]
    sweep = {
        "noc": {
            "topology": {"build": "mesh:3x3", "links": links},
            "traffic": {"rate": 0.2, "packet": 2},
            "measure": {"warmup": 100, "measure": 400, "drain": 400},
            "energy": {"router": "dsent_45nm", "link": "dsent_45nm"},
        },
        "sweep": {"grid": {"router.vcs": [1, 2], "topology.build": ["mesh:3x3", "torus:3x3"]}},
    }
    with ThreadPoolExecutor(1) as pool:
        frame = tutti.sweep(sweep, executor=pool, workers=1)
    read = resolve_sweep(sweep, source="s", folder=path.parent)
    return page_of(design_view(frame, read)).write(path)


def _mesh() -> smart.SmartMesh:
    return smart.SmartMesh(design="sfo_greedy", columns=4, rows=4, priority="bypass")


def _reductions(rate: float) -> smart.Traffic:
    return smart.Traffic(kind="reduction", rate=rate)


def _smart(path: Path) -> Path:
    run = smart.run(_mesh(), _reductions(0.1), _SMART_PLAN)
    return page_of(mesh_run_view(run)).write(path)


def _smart_load(path: Path) -> Path:
    found = smart.saturation(_mesh(), _reductions(0.1), _SMART_PLAN)
    return page_of(mesh_load_view(found.runs, found)).write(path)


def _watch(path: Path) -> Path:
    return write_watch(path, smart.watch(_mesh(), [_reductions(0.1)], 30))


def _coherence(path: Path) -> Path:
    mesh = smart.SmartMesh(design="sfo_complete", columns=4, rows=4)
    run = coherence.run(kernel="radix_like", mesh=mesh, scale="tiny")
    return page_of(runs_view([run])).write(path)


def _advice(path: Path) -> Path:
    cluster = Path(__file__).parents[2] / "examples" / "22_advise" / "cluster.csv"
    return page_of(advice_view(advise(read_measurements(cluster).rows))).write(path)


def _training(path: Path) -> Path:
    ring = Ring("local", 2, TimePerByte.parse("200 GB/s"), Time.parse("72 ns"))
    step = Step(model=build("dlrm_small"), batch=4, rings=(ring,))
    every = configurations()
    window = watched(step, every["ideal"])
    return write_training_report(path, [window.run(every[name]) for name in ("ideal", "ace")])


@pytest.fixture(scope="module")
def written(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[str, Callable[[Path], Path]], str]:
    """Returns the text of a kind of report, written once."""
    folder, pages = tmp_path_factory.mktemp("terms"), {}

    def writing(kind: str, writer: Callable[[Path], Path]) -> str:
        if kind not in pages:
            pages[kind] = writer(folder / f"{kind}.html").read_text("utf-8")
        return pages[kind]

    return writing


@pytest.fixture(params=KINDS)
def report(
    request: pytest.FixtureRequest,
    written: Callable[[str, Callable[[Path], Path]], str],
    comparison: pl.DataFrame,
    platform: dict[str, object],
    frames: tuple[pl.DataFrame, pl.DataFrame],
) -> tuple[str, str]:
    """The name and the HTML of each kind of report."""
    writers: dict[str, Callable[[Path], Path]] = {
        "advice": _advice,
        "coherence": _coherence,
        "comparison": lambda path: page_of(
            comparison_view(comparison, platform, run=lambda: frames)
        ).write(path),
        "network": _network_report,
        "network_designs": _designs,
        "network_load": _network_load,
        "smart": _smart,
        "smart_load": _smart_load,
        "training": _training,
        "watch": _watch,
    }
    return request.param, written(request.param, writers[request.param])


def _terms(kind: str) -> list[Term]:
    return glossary().report_terms(kind)


def _figures(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="figures">(.*?)</script>', page, re.S)
    return json.loads(found.group(1)) if found else {}


def _plain(markup: str) -> str:
    inline = re.sub(r"</?code>", "", markup)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", inline)).split())


def _body(page: str) -> str:
    """Returns the page without its terms, its style and its scripts."""
    for part in (
        '<section class="terms">.*?</section>',
        "<style>.*?</style>",
        "<script.*?</script>",
    ):
        page = re.sub(part, "", page, flags=re.S)
    return page


def _labels(page: str) -> list[str]:
    """Returns headings, table headings, axis titles and legend entries."""
    found = [_plain(one) for one in re.findall(r"<(?:h2|th)[ >].*?</(?:h2|th)>", _body(page), re.S)]
    for chart, figure in _figures(page).items():
        axes = [axis for name, axis in figure["layout"].items() if re.match("[xy]axis", name)]
        found += [axis["title"]["text"] for axis in axes if axis.get("title", {}).get("text")]
        # These legends list kinds of ops, such as reduce, and names of collectives.
        if chart not in {"timeline", "exposed", "tasks"}:
            found += [str(trace["name"]) for trace in figure["data"] if trace.get("name")]
    return [_plain(label) for label in found]


def _uses(text: str, word: str) -> bool:
    return bool(re.search(rf"(?<![\w-]){re.escape(word)}(?:s|es|d)?(?![\w-])", text, re.IGNORECASE))


def test_the_title_is_a_question_and_the_answer_has_values(report: tuple[str, str]) -> None:
    _, page = report
    (title,) = re.findall(r"<h1>(.*?)</h1>", page)
    assert title.endswith("?")
    assert f"<title>{title}</title>" in page
    (answer,) = re.findall(r'<div class="answer"><p>(.*?)</p>', page, re.S)
    assert re.search(r"\d", answer)
    assert 1 <= len(re.findall(r"\.(?:\s|$)", answer)) <= MOST_SENTENCES
    assert page.index('<div class="answer">') < page.index("<section")
    assert len(page.encode()) <= LIMIT


def test_every_chart_has_a_caption(report: tuple[str, str]) -> None:
    kind, page = report
    captions = re.findall(r"<figcaption>(.*?)</figcaption>", page, re.S)
    assert len(captions) == (2 if kind == "watch" else len(_figures(page)))
    for caption in captions:
        axes, look = caption.split("<strong>Look for:</strong>")
        assert axes.strip().endswith(".")
        assert look.strip().endswith(".")
        assert "Vertical: " in axes or "scale" in axes


def test_charts_use_only_colours_of_the_palette(report: tuple[str, str]) -> None:
    _, page = report
    assert set(re.findall(r"#[0-9A-Fa-f]{6}", json.dumps(_figures(page)))) <= set(DARK)


def test_every_table_can_be_exported(report: tuple[str, str]) -> None:
    _, page = report
    body = _body(page)
    assert body.count('data-export="csv"') == body.count("<table")
    assert body.count('data-export="copy"') == body.count("<table")
    assert len(re.findall(r'<th class="\w+" data-export="[^"]+"', body)) == body.count("<th ")
    for style in ("number", "hidden"):
        cells = re.findall(rf'<td class="{style}"[^>]*>(?!-<)', body)
        for cell in cells:
            float(re.search(r'data-value="([^"]*)"', cell).group(1))  # type: ignore[union-attr]


def test_a_report_ends_with_the_collapsed_definitions(report: tuple[str, str]) -> None:
    kind, page = report
    last = page.split("</section>")[-2].rsplit("<section", maxsplit=1)[-1]
    assert last.startswith(' class="terms">')
    assert "<details>" in last
    assert "<h2>Terms</h2>" in last
    text = _plain(last)
    for term in _terms(kind):
        definition = _plain(term.definition).replace("`", "")
        assert f"{definition} Source: {term.source}." in text
        assert glossary().references[term.reference] in text


def test_a_report_uses_the_terms_that_it_defines(report: tuple[str, str]) -> None:
    kind, page = report
    text = f"{_plain(_body(page))} {json.dumps(_figures(page), ensure_ascii=False)}"
    if kind == "watch":
        text += page.rsplit("<script>", maxsplit=1)[-1]
    unused = [
        term.term for term in _terms(kind) if not _uses(text, OTHER_FORMS.get(term.term, term.term))
    ]
    assert unused == []


def test_headings_and_axes_use_only_terms_that_the_report_defines(
    report: tuple[str, str],
) -> None:
    kind, page = report
    defined = {term.term for term in _terms(kind)}
    for label in _labels(page):
        used = {term.term for term in glossary().terms if _uses(label, term.term)}
        longer = {short for short in used for term in used if short != term and short in term}
        assert used - longer <= defined, label


def test_every_report_has_terms() -> None:
    sources = Path(tutti.__file__).parent
    views = [path for path in sources.rglob("*.py") if "view" in str(path.relative_to(sources))]
    text = "".join(path.read_text("utf-8") for path in views)
    for kind in KINDS:
        assert f'"{kind}"' in text
