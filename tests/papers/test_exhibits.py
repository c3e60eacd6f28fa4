"""Drawings of exhibits: verdict, published values, fixed colours, saturation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tutti.networks.flit import Estimate
from tutti.view.charts import Axis, Curve, LoadChart
from tutti.view.palette import styles_in_order, styles_with
from tutti_papers import looks
from tutti_papers.exhibits import (
    Anchor,
    PublishedBar,
    plot_bars,
    plot_curves,
    plot_load,
    plot_panels,
)

if TYPE_CHECKING:
    from pathlib import Path

VERDICT = "2 of 3 published values within 15 %. does not hold: " + "; ".join(["long-one"] * 20)
CERTAINTIES = ("text", "figure", "derived", "words", "quoted", "recalled")


def test_curves_have_published_points_lines_and_bands(tmp_path: Path) -> None:
    anchors = [Anchor(1, 2, one) for one in CERTAINTIES]
    anchors += [Anchor(None, (1, 2)), Anchor((1, 2), None), Anchor(None, 3.0, "words"),
                Anchor(2.0, (1, 2), "derived", "mesh")]  # fmt: skip
    drawn = plot_curves(
        tmp_path / "curves.svg", {"mesh": ([1, 2], [1, 3]), "torus": ([1, 2], [1, 3])}, "load",
        "time (us)", verdict=VERDICT, anchors=anchors, looks=looks.ARIES,
    )  # fmt: skip
    text = drawn.read_text("utf-8")
    assert "2 of 3 published values within 15 %" in text
    assert text.count("long-one") == 20, "a long verdict is wrapped, not cut"
    for certainty in CERTAINTIES:
        assert text.count(f"published ({certainty})") == 1, "one legend entry per certainty"
    assert looks.ARIES["mesh"].colour.lower() in text


def test_panels_have_one_curve_each(tmp_path: Path) -> None:
    lines = {"no_overlap": ([0, 1], [0.1, 0.2]), "ace": ([0, 1], [0.3, 0.4])}
    drawn = plot_panels(tmp_path / "p.svg", lines, "time (ms)", "links", looks=looks.ACE)
    text = drawn.read_text("utf-8")
    assert text.count('<g id="axes_') == 2
    assert "no overlap" in text


def test_negative_values_are_not_cut(tmp_path: Path) -> None:
    plot_curves(tmp_path / "curves.png", {"a": ([1, 2], [-1, 3])}, "x", "y")


def test_bars_are_grouped_with_means_and_published_values(tmp_path: Path) -> None:
    groups = {
        name: {"flattened_butterfly": {"compute": 1.0, "exposed_time": 2.0},
               "aries": {"compute": 1.0, "exposed_time": 0.5}}
        for name in ("resnet50", "double_tree")
    }  # fmt: skip
    published: dict[tuple[str, str], PublishedBar] = {
        ("mean", "aries"): (1.4, "text"),
        ("resnet50", "aries"): ((1.0, 2.0), "words"),
    }
    drawn = plot_bars(tmp_path / "bars.svg", groups, "time", verdict="all agree",
                      published=published, looks=looks.ARIES)  # fmt: skip
    text = drawn.read_text("utf-8")
    for label in ("double tree", "mean", "flattened butterfly", "exposed time"):
        assert label in text, label
    assert "_butterfly" not in text
    alone = plot_bars(tmp_path / "alone.svg", groups, "time", mean=False).read_text("utf-8")
    assert ">mean<" not in alone


@pytest.mark.parametrize("unstable", [frozenset(), frozenset({0.4}), frozenset({0.3, 0.4})])
def test_saturation_continues_a_curve(tmp_path: Path, unstable: frozenset[float]) -> None:
    points = [(load, Estimate(10 * load, load)) for load in (0.1, 0.2, 0.3)]
    curve = Curve("mesh", points, looks.ARIES["mesh"], saturated=unstable)
    assert curve.saturates == (0.4 if unstable else None)
    chart = LoadChart([curve], Axis("load", ""), Axis("latency", "cycles"))
    drawn = plot_load(tmp_path / "load.svg", chart, verdict="agrees", anchors=[Anchor(0.4, None)])
    assert "agrees" in drawn.read_text("utf-8")


def test_designs_have_different_styles() -> None:
    for known in (looks.ACE, looks.ARIES, looks.SMART):
        seen = {(style.colour, style.marker, style.dash) for style in known.values()}
        assert len(seen) == len(known)
    assert styles_in_order(("a", "b"))["b"] == styles_in_order(("c", "b"))["b"]
    both = styles_with(looks.ARIES, ["mesh", "aries, latency", "aries, bandwidth"])
    assert both["mesh"] == looks.ARIES["mesh"]
    others = {both["aries, latency"], both["aries, bandwidth"]}
    assert len(others - set(looks.ARIES.values())) == 2, "no style is used twice"
