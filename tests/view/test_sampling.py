"""Pages of limited size: fewer rows and points, and sentences that state it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import tutti.networks.mesh as smart_meshes
from tutti.networks.mesh.view.watch import write_watch
from tutti.view.charts import Axis, bars, chart, line
from tutti.view.page import Chart, Page, Section
from tutti.view.quantity import count
from tutti.view.sampling import fewer_points
from tutti.view.tables import Column, ReportTable

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

MANY = 12_000
LIMIT = 2_800_000
"""plotly.js has 2.0 MB."""


def page() -> Page:
    """A page of 7 MB: bars with texts, messages as lines with gaps, and a table."""
    texts = [f"op {number} " + "x" * 60 for number in range(MANY)]
    ops = bars(list(range(MANY)), list(range(MANY)), "#136CC2", customdata=texts)
    x = [value for number in range(MANY) for value in (number, number + 1, None)]
    messages = line(x, x, "#5B626D", "%{customdata}", customdata=[str(value) for value in x])
    table = ReportTable([Column("op", lambda row: row, count)], range(MANY))
    figure = chart([ops, messages], Axis("time", "us"), Axis("rank"), 400)
    drawn = Chart(figure, "Horizontal: time (us). Vertical: rank.", "waits.", "ops and messages")
    section = Section("Ops", charts={"ops": drawn}, table=table, source="timeline.parquet")
    return Page(kind="network", kicker="k", question="Why?", answer=["1."], facts=[],
                sections=[section])  # fmt: skip


def test_a_large_page_is_reduced_and_states_it(tmp_path: Path) -> None:
    written = page().write(tmp_path / "r.html", LIMIT)
    text = written.read_text("utf-8")
    assert 0.9 * LIMIT < written.stat().st_size <= LIMIT
    shown, total = re.findall(
        r"Shows ([\d,]+) of ([\d,]+) ops and messages; timeline.parquet", text
    )[0]
    assert total == "24,000"
    found = re.search(r'id="figures">(.*?)</script>', text, re.S)
    assert found
    ops, messages = json.loads(found.group(1))["ops"]["data"]
    assert len(ops["x"]) == len(ops["customdata"])
    assert len(ops["x"]) + messages["x"].count(None) == int(shown.replace(",", "")) > 4_000
    assert messages["x"][2::3] == [None] * (len(messages["x"]) // 3)
    assert all(a + 1 == b for a, b in zip(messages["x"][::3], messages["x"][1::3], strict=True))
    assert "Shows the first 375 of 12,000 rows; timeline.parquet has all." in text


def test_templates_are_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = Page(kind="network", kicker="k", question="Why?", answer=["1."], facts=[], sections=[])
    monkeypatch.setenv("TUTTI_CACHE", str(tmp_path / "cache"))
    expected = small.write(tmp_path / "a.html").read_bytes()
    stored = list((tmp_path / "cache" / "templates").iterdir())
    assert len(stored) == 2
    with monkeypatch.context() as patched:
        patched.setattr("jinja2.Environment.compile", None)
        assert small.write(tmp_path / "b.html").read_bytes() == expected
    # A damaged cache is replaced, and a page needs none.
    stored[0].write_bytes(stored[0].read_bytes()[:99])
    assert small.write(tmp_path / "c.html").read_bytes() == expected
    monkeypatch.setenv("TUTTI_CACHE", str(tmp_path / "a.html"))
    assert small.write(tmp_path / "d.html").read_bytes() == expected


def test_a_line_keeps_its_peaks() -> None:
    values = [0.0] * 10_000
    values[4321], values[8765] = 7.0, -3.0
    trace = {"type": "scatter", "x": list(range(10_000)), "y": values, "name": "n"}
    reduced, shown, total = fewer_points({"data": [trace], "layout": {}}, 0.01)
    (less,) = reduced["data"]
    assert shown == len(less["x"]) <= 102
    assert total == 10_000
    assert (less["x"][0], less["x"][-1], less["name"]) == (0, 9_999, "n")
    assert (max(less["y"]), min(less["y"])) == (7.0, -3.0)


def test_a_heat_map_loses_rows_and_columns() -> None:
    cells = [[row * 100 + column for column in range(100)] for row in range(60)]
    trace = {"z": cells, "x": list(range(100)), "y": list(range(60)), "colorscale": [[0, "#0"]]}
    reduced, shown, total = fewer_points({"data": [trace]}, 0.25)
    (less,) = reduced["data"]
    assert (shown, total) == (30 * 50, 6_000)
    assert all(cell == y * 100 + x for y, row in zip(less["y"], less["z"], strict=True)
               for x, cell in zip(less["x"], row, strict=True))  # fmt: skip
    assert less["colorscale"] == trace["colorscale"]


def test_a_large_animation_has_the_first_cycles(tmp_path: Path) -> None:
    mesh = smart_meshes.SmartMesh(design="sfo_greedy", columns=4, rows=4, priority="bypass")
    watched = smart_meshes.watch(mesh, [smart_meshes.Traffic(kind="reduction", rate=0.1)], 200)
    path = write_watch(tmp_path / "w.html", watched, limit=40_000)
    text = path.read_text("utf-8")
    assert path.stat().st_size <= 40_000
    assert re.search(r"Shows the first \d+ of 200 cycles\.", text)
