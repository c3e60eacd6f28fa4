"""The platforms that tutti brings along: their numbers, and the source of each."""

from __future__ import annotations

from pathlib import Path

import pytest

from tutti.config import find_platform, numbers, platform_names

PLATFORMS = platform_names()


@pytest.mark.parametrize("name", PLATFORMS)
def test_every_number_has_a_source(name: str) -> None:
    platform = find_platform(name, folder=Path())
    assert platform.name == name
    assert platform.summary
    assert platform.source
    found = list(numbers(platform))
    assert found
    for key, _, source, _ in found:
        assert source, f"{name}: {key} has no source"


def test_the_cray_is_that_of_the_papers_table_1() -> None:
    platform = find_platform("cray_xc30", folder=Path())
    values = {key: value for key, value, _, inferred in numbers(platform) if not inferred}
    assert values == {
        "models.minimum.alpha_p": "1.34 us",
        "models.minimum.alpha_r": "340 ns",
        "models.median.alpha_p": "1.51 us",
        "models.median.alpha_r": "380 ns",
    }


def test_what_the_table_does_not_give_is_marked_as_inferred() -> None:
    platform = find_platform("cray_xc30", folder=Path())
    inferred = {key for key, _, _, inferred in numbers(platform) if inferred}
    assert inferred == {"models.minimum.beta", "models.median.beta", "compute.gamma"}


def test_the_simulated_machine_is_that_of_the_timelines() -> None:
    platform = find_platform("paper_simulator", folder=Path())
    assert [value for _, value, _, _ in numbers(platform)] == [
        "500 ns",
        "100 ns",
        "0.4 ns/B",
        "10 ns",
    ]
