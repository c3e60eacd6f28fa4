from __future__ import annotations

from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import networkx as nx
import polars as pl
import pytest

import tutti
from tutti.collectives.view.comparison_plot import plot_comparison
from tutti.collectives.view.gantt import draw_timeline
from tutti.collectives.view.notebook import write_timeline
from tutti.schedules.view.program_graph import draw_program_graph, layout, program_graph
from tutti.view.errors import ReportError
from tutti.view.palette import styles
from tutti.view.quantity import format_rate, format_share, format_size, format_time

if TYPE_CHECKING:
    from pathlib import Path

Frames = tuple[pl.DataFrame, pl.DataFrame]


@pytest.mark.parametrize("kind", ["time", "busbw", "ranks", "map"])
@pytest.mark.parametrize("ending", ["svg", "png"])
def test_plots_are_deterministic(
    comparison: pl.DataFrame, kind: str, ending: str, tmp_path: Path
) -> None:
    first = plot_comparison(tmp_path / f"a.{ending}", comparison, kind).read_bytes()
    assert plot_comparison(tmp_path / f"b.{ending}", comparison, kind).read_bytes() == first


def test_plots_name_every_line(comparison: pl.DataFrame, tmp_path: Path) -> None:
    path = plot_comparison(tmp_path / "a.svg", comparison, "time", ranks=16, by="schedule")
    drawn = path.read_text(encoding="utf-8")
    for schedule in comparison.filter(pl.col("ranks") == 16)["schedule"].unique():
        assert schedule in drawn


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "pie"}, "unknown kind of plot 'pie': expected one of time"),
        ({"by": "colour"}, "invalid grouping of lines 'colour'"),
        ({"ranks": 5}, "has no rows at 5 ranks"),
    ],
)
def test_invalid_plots_are_refused(
    comparison: pl.DataFrame, arguments: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ReportError, match=message):
        plot_comparison(tmp_path / "a.svg", comparison, **arguments)
    with pytest.raises(ReportError, match=r"expected a suffix in \.svg"):
        plot_comparison(tmp_path / "a.gif", comparison)


def test_a_timeline_shows_every_op_and_message(frames: Frames, tmp_path: Path) -> None:
    path = draw_timeline(tmp_path / "t.svg", *frames, title="a2,a4 on 8 ranks")
    assert draw_timeline(tmp_path / "u.svg", *frames, title="a2,a4 on 8 ranks").read_bytes() == (
        path.read_bytes()
    )
    drawn = path.read_text(encoding="utf-8")
    for text in ("a2,a4 on 8 ranks", "rank", "time (us)", "send", "wait", "reduce"):
        assert text in drawn
    with pytest.raises(ReportError, match="empty"):
        draw_timeline(tmp_path / "t.svg", frames[0].clear())


def test_the_timeline_of_a_run_is_a_file_without_matplotlib(frames: Frames, tmp_path: Path) -> None:
    drawn = ET.parse(write_timeline(tmp_path / "t.svg", *frames, title="a2,a4 on 8 ranks"))
    names = [element.tag.rpartition("}")[2] for element in drawn.iter()]
    bars = frames[0].filter(pl.col("end_ps") > pl.col("start_ps")).height
    kinds = frames[0].filter(pl.col("end_ps") > pl.col("start_ps"))["kind"].n_unique()
    assert names.count("rect") == bars + kinds
    assert names.count("path") == frames[1].height
    text = "".join(drawn.getroot().itertext())
    for part in ("a2,a4 on 8 ranks.", "complete after", "send", "wait", "reduce", "message 0 to"):
        assert part in text
    with pytest.raises(ReportError, match="empty"):
        write_timeline(tmp_path / "t.svg", frames[0].clear(), frames[1], title="none")


def test_truncated_drawing_has_notes(frames: Frames) -> None:
    from tutti.collectives.view.timeline import picture

    notes = picture(*frames, most_ranks=4, most_bars=10, most_arrows=3).notes
    assert notes == (
        "The first 4 of 8 ranks are drawn.",
        "The first 10 of 32 ops are drawn.",
        "The first 3 of 8 messages are drawn.",
    )
    assert picture(*frames).notes == ()


def test_a_program_graph_has_the_tasks_of_the_paper(schedule: Any) -> None:
    graph = program_graph(schedule)
    kinds = [facts["kind"] for _, facts in graph.nodes(data=True)]
    assert {kind: kinds.count(kind) for kind in sorted(set(kinds))} == {
        "compute": 8 * 2,
        "put": 8 * (1 + 3),
        "start": 8,
    }
    assert nx.is_directed_acyclic_graph(graph)
    for source, target, facts in graph.edges(data=True):
        across = graph.nodes[source]["rank"] != graph.nodes[target]["rank"]
        assert across == (facts["kind"] == "message")
        if across:
            assert graph.nodes[source]["peer"] == graph.nodes[target]["rank"]


def test_every_edge_of_a_drawn_graph_leads_to_the_right(schedule: Any) -> None:
    graph = program_graph(schedule)
    places = layout(graph)
    assert all(places[source].x < places[target].x for source, target in graph.edges)
    assert len({(place.x, place.y) for place in places.values()}) == len(places)


def test_a_program_graph_survives_graphml(schedule: Any, tmp_path: Path) -> None:
    graph = program_graph(schedule)
    back = nx.read_graphml(draw_program_graph(tmp_path / "g.graphml", schedule))
    assert {n: back.nodes[n] for n in back} == {n: graph.nodes[n] for n in graph}
    assert {(u, v): d["kind"] for u, v, d in back.edges(data=True)} == {
        (u, v): d["kind"] for u, v, d in graph.edges(data=True)
    }


@pytest.mark.parametrize("ending", ["svg", "png", "dot", "graphml"])
def test_program_graphs_are_deterministic(schedule: Any, ending: str, tmp_path: Path) -> None:
    first = draw_program_graph(tmp_path / f"a.{ending}", schedule).read_bytes()
    assert draw_program_graph(tmp_path / f"b.{ending}", schedule).read_bytes() == first


def test_a_receive_without_its_send_is_refused(schedule: Any) -> None:
    class Broken(type(schedule)):  # type: ignore[misc]
        def ops(self, rank: int, step: int) -> list[Any]:
            ops = super().ops(rank, step)
            return [op for op in ops if (rank, op.kind) != (3, "send")]

    with pytest.raises(ReportError, match="a message that rank 3 does not send"):
        program_graph(Broken((2, 4)))


def test_every_algorithm_has_a_distinct_colour() -> None:
    names = [entry.name for entry in tutti.algorithms()]
    together = styles(names)
    assert len({style.colour for style in together.values()}) == len(names)
    assert all(styles([name])[name] == style for name, style in together.items())


def test_known_algorithms_keep_their_colour() -> None:
    alone = styles(["ring"])["ring"]
    assert styles(["ring", "direct", "mine", "yours"])["ring"] == alone
    many = styles([f"algorithm {i}" for i in range(30)])
    assert len(set(many.values())) == 30


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (format_time(1_340_000), "1.34 us"),
        (format_time(0), "0 ns"),
        (format_time(999), "999 ps"),
        (format_time(3_404_150), "3.404 us"),
        (format_time(12_000_000_000_000), "12 s"),
        (format_size(65536), "64 KiB"),
        (format_size(8), "8 B"),
        (format_rate(1.25e9), "1.25 GB/s"),
        (format_rate(0), "0 B/s"),
        (format_share(0.274), "27 %"),
        (format_share(0.037), "3.7 %"),
    ],
)
def test_quantities_are_formatted(text: str, expected: str) -> None:
    assert text == expected
