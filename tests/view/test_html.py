from __future__ import annotations

import json
import os
import re
import zlib
from base64 import b64decode
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from tutti.collectives.view.comparison import comparison_view
from tutti.platforms.view.facts import platform_facts
from tutti.view import page as page_module
from tutti.view.errors import ReportError
from tutti.view.page import page_of

if TYPE_CHECKING:
    from pathlib import Path

Frames = tuple[pl.DataFrame, pl.DataFrame]


def write_report(
    path: Path,
    comparison: pl.DataFrame,
    platform: object,
    frames: Frames | None = None,
    **more: Any,
) -> Path:
    run = (lambda: frames) if frames else None
    return page_of(comparison_view(comparison, platform, run=run, **more)).write(path)


def figures(page: str) -> dict[str, dict[str, list[dict[str, object]]]]:
    found = re.search(r'<script type="application/json" id="figures">(.*?)</script>', page, re.S)
    assert found
    parsed: dict[str, dict[str, list[dict[str, object]]]] = json.loads(found.group(1))
    return parsed


@pytest.fixture
def page(
    comparison: pl.DataFrame, frames: Frames, platform: dict[str, object], tmp_path: Path
) -> str:
    path = write_report(tmp_path / "r.html", comparison, platform, frames, remarks=["A <note>"])
    return path.read_text(encoding="utf-8")


def test_page_needs_no_network(page: str) -> None:
    head = page.split("plotly.js v", maxsplit=1)[0]
    assert not re.findall(r'(?:src|href)="(?!data:,)', head)
    assert "@import" not in head
    packed = re.search(r'id="library">(.*?)</script>', page, re.S)
    assert packed
    script = zlib.decompress(b64decode(packed[1]))
    assert script.startswith(b"/**\n* plotly.js v")
    assert 2 * len(page) < len(script)


def test_a_stored_script_is_that_of_the_installed_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = tmp_path / "plotly" / "package_data"
    library.mkdir(parents=True)
    script, cache = library / "plotly.min.js", tmp_path / "cache"
    monkeypatch.setattr(page_module, "find_spec", lambda _: SimpleNamespace(
        origin=str(library.parent / "__init__.py")
    ))  # fmt: skip
    monkeypatch.setenv("TUTTI_CACHE", str(cache))
    for text in ("/** v1 */ one", "/** v2 */ two"):  # of the same size
        script.write_text(text, encoding="utf-8")
        os.utime(script, (1, 1))
        for _ in range(2):
            licence, packed = page_module._plotly()
            assert zlib.decompress(b64decode(packed)).decode() == text
            assert text.startswith(f"/** {licence}")
    assert len(list((cache / "scripts").iterdir())) == 2
    cache_file = tmp_path / "file"
    cache_file.touch()
    monkeypatch.setenv("TUTTI_CACHE", str(cache_file))
    assert page_module._plotly().packed == packed


def test_page_summarises_the_results(page: str) -> None:
    head = page.split("<section", maxsplit=1)[0]
    assert "<h1>Which all_reduce algorithm is fastest on demo?</h1>" in head
    assert "is fastest at 15 of 30 points" in head
    assert "A &lt;note&gt;." in head


def test_page_states_sources_and_versions(page: str) -> None:
    for text in ("Table 1", "0.1 ns/B", "assumed", "0123abc", "feedface", "pipelining_postal"):
        assert text in page


def test_every_chart_has_an_element(page: str) -> None:
    charts = figures(page)
    assert set(charts) == {"case0-map", "case0-time", "case0-busbw", "case0-ranks", "timeline"}
    for name in charts:
        assert f'<div class="chart" id="{name}"></div>' in page


def test_curves_start_with_the_selected_rank_count(page: str) -> None:
    traces = figures(page)["case0-time"]["data"]
    shown = {(trace["meta"], trace["name"]) for trace in traces if trace["visible"]}
    assert {meta for meta, _ in shown} == {64}
    assert len(shown) == 4
    assert '<option value="64" selected>' in page


def test_names_are_escaped(
    comparison: pl.DataFrame, platform: dict[str, object], tmp_path: Path
) -> None:
    nasty = "</script><script>alert(1)</script>"
    frame = comparison.with_columns(platform=pl.lit(nasty), schedule=pl.lit(nasty))
    path = write_report(tmp_path / "r.html", frame, platform | {"name": nasty}, title=nasty)
    assert "<script>alert" not in path.read_text(encoding="utf-8")


def test_the_same_input_gives_the_same_bytes(
    comparison: pl.DataFrame, frames: Frames, platform: dict[str, object], tmp_path: Path
) -> None:
    first = write_report(tmp_path / "a.html", comparison, platform, frames).read_bytes()
    shuffled = comparison.sample(fraction=1, shuffle=True, seed=1)
    assert write_report(tmp_path / "b.html", shuffled, platform, frames).read_bytes() == first


def test_a_barrier_has_no_size_to_draw_over(
    comparison: pl.DataFrame, platform: dict[str, object], tmp_path: Path
) -> None:
    frame = comparison.filter(pl.col("size_bytes") == 8).with_columns(size_bytes=pl.lit(0))
    path = write_report(tmp_path / "r.html", frame, platform)
    assert set(figures(path.read_text(encoding="utf-8"))) == {"case0-map", "case0-ranks"}


def test_several_collectives_get_a_section_each(
    comparison: pl.DataFrame, platform: dict[str, object], tmp_path: Path
) -> None:
    other = comparison.with_columns(collective=pl.lit("all_gather"))
    path = write_report(tmp_path / "r.html", pl.concat([comparison, other]), platform)
    page = path.read_text(encoding="utf-8")
    assert {"case0-time", "case1-time"} <= set(figures(page))
    assert "all_gather of int64 on demo" in page


def test_an_empty_timeline_is_refused(
    comparison: pl.DataFrame, frames: Frames, platform: dict[str, object], tmp_path: Path
) -> None:
    with pytest.raises(ReportError, match="timeline is empty"):
        write_report(tmp_path / "r.html", comparison, platform, (frames[0].clear(), frames[1]))


def test_platforms_show_each_number_with_its_source() -> None:
    platform = {
        "name": "cray",
        "source": "the paper",
        "models": {"minimum": {"kind": "postal", "alpha": {"value": "1 us", "source": "Table 1"}}},
        "compute": {"gamma": {"value": "1 ns/B", "source": "a guess", "inferred": True}},
    }
    rows = {row["name"]: (row["value"], row["source"]) for row in platform_facts(platform)}
    assert rows == {
        "name": ("cray", "the paper"),
        "minimum model": ("postal", "the paper"),
        "minimum alpha": ("1 us", "Table 1"),
        "compute gamma": ("1 ns/B", "Inferred. a guess"),
    }
