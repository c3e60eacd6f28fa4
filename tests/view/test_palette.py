"""The palette on light and dark pages: contrast, and distances with colour blindness.

Contrast follows WCAG 2.2, 1.4.11 (3:1 for graphical objects). Colour blindness is simulated with
the matrices of Machado et al. 2009 for severity 1, on linear RGB. Distances are Euclidean in OKLab,
times 100; 2 is just noticeable.
"""

from __future__ import annotations

import re
from itertools import combinations
from math import cbrt, dist
from pathlib import Path

import pytest

import tutti
from tutti.view import palette

ASSETS = Path(tutti.__file__).parent / "view" / "assets"
FOUND = re.findall(r"--paper: (#\w{6})", (ASSETS / "base.css").read_text("utf-8"))
PAPERS = dict(zip(("light", "dark"), FOUND, strict=True))
VISION = {
    "normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413),
                     (-0.011820, 0.042940, 0.968881)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216),
                   (-0.003882, -0.048116, 1.051998)),
}  # fmt: skip
TO_LMS = ((0.4122214708, 0.5363325363, 0.0514459929), (0.2119034982, 0.6806995451, 0.1073969566),
          (0.0883024619, 0.2817188376, 0.6299787005))  # fmt: skip
TO_LAB = ((0.2104542553, 0.7936177850, -0.0040720468), (1.9779984951, -2.4285922050, 0.4505937099),
          (0.0259040371, 0.7827717662, -0.8086757660))  # fmt: skip

Vector = tuple[float, ...]


def linear(colour: str) -> Vector:
    values = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    return tuple(v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values)


def times(matrix: tuple[Vector, ...], vector: Vector) -> Vector:
    return tuple(sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix)


def luminance(colour: str) -> float:
    return times(((0.2126, 0.7152, 0.0722),), linear(colour))[0]


def contrast(first: str, second: str) -> float:
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def seen(colour: str, vision: str) -> Vector:
    """The colour in OKLab, as seen."""
    rgb = tuple(min(max(value, 0), 1) for value in times(VISION[vision], linear(colour)))
    return times(TO_LAB, tuple(map(cbrt, times(TO_LMS, rgb))))


def on(theme: str, colours: list[str]) -> list[str]:
    return [palette.DARK[colour] if theme == "dark" else colour for colour in colours]


def every() -> list[str]:
    names = [f"{number}" for number in range(36)]
    return [style.colour for style in palette.styles_in_order(names).values()]


@pytest.mark.parametrize("theme", PAPERS)
def test_colours_have_a_contrast_of_three_with_the_page(theme: str) -> None:
    shown = on(theme, [*every(), palette.MESSAGE_COLOUR, palette.UTILISATION[-1]])
    assert len(set(every())) == 36
    low = {one: contrast(one, PAPERS[theme]) for one in shown if contrast(one, PAPERS[theme]) < 3}
    assert low == {}
    assert contrast(*on(theme, [palette.VERTEX_COLOUR, palette.OUTLINE_COLOUR])) > 3


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("theme", PAPERS)
@pytest.mark.parametrize("group", ["first", "kinds"])
def test_colours_differ_with_every_vision(group: str, theme: str, vision: str) -> None:
    # The latency of a library's model replaces the launch.
    kinds = [colour for kind, colour in palette.KIND_COLOURS.items() if kind != "latency"]
    colours = every()[: palette.DISTINCT] if group == "first" else kinds
    places = [seen(one, vision) for one in on(theme, colours)]
    assert min(100 * dist(a, b) for a, b in combinations(places, 2)) > 8


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("theme", PAPERS)
def test_busier_links_have_more_contrast(theme: str, vision: str) -> None:
    scale = on(theme, list(palette.UTILISATION))
    found = [abs(seen(one, vision)[0] - seen(PAPERS[theme], vision)[0]) for one in scale]
    assert found == sorted(found)
