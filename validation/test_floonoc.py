"""Multicasts against the collective NoC of FlooNoC, within the tolerances of floonoc/case.toml."""

from __future__ import annotations

from typing import TYPE_CHECKING

import against_floonoc as floonoc
import pytest

if TYPE_CHECKING:
    from against_floonoc import Cycles


@pytest.mark.parametrize("rows", floonoc.ROWS)
@pytest.mark.parametrize("how", [floonoc.HARDWARE, floonoc.TREE, floonoc.CHAIN])
def test_cycles_of_multicasts_match_the_authors_model(how: str, rows: int) -> None:
    limits = floonoc.about()["tolerance"]
    limit = limits["hardware" if how == floonoc.HARDWARE else "software"] / 100
    for size in floonoc.SIZES:
        source = floonoc.theirs(how, rows, size)
        assert floonoc.ours(how, rows, size) == pytest.approx(source, rel=limit), size


@pytest.mark.parametrize("rows", [1, 4])
@pytest.mark.parametrize("cycles", [floonoc.theirs, floonoc.ours])
def test_speed_ups_have_the_published_geometric_mean(cycles: Cycles, rows: int) -> None:
    given = floonoc.about()
    published = given["geomean"][f"multicast_{rows}"]
    limit = given["tolerance"]["geomean"] / 100
    assert floonoc.geomean(cycles, rows) == pytest.approx(published, rel=limit)


def test_routers_add_any_number_of_operands_per_cycle() -> None:
    """Unlike those of FlooNoC, which add two."""
    assert floonoc.slower() < 1.02 < floonoc.about()["reduction"]["slower"]


def test_table_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """Printed by `make validate`."""
    with capsys.disabled():
        print(f"\n{floonoc.section()}")
