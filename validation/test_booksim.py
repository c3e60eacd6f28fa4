"""Networks flit by flit against BookSim 2, within the tolerances of booksim/case.toml."""

from __future__ import annotations

import pytest
from against_booksim import NAMES, about, at_one, last_stable, points, section

pytestmark = pytest.mark.timeout(900)


@pytest.mark.parametrize("name", NAMES)
def test_latencies_below_saturation_match_booksim(name: str) -> None:
    limits = about()["tolerance"]
    checked = [(one.offered, one.off, limits[one.limit]) for one in points(name) if one.limit]
    assert len(checked) > 2
    assert not [one for one in checked if abs(one[1]) > one[2]]


@pytest.mark.parametrize("name", NAMES)
def test_saturation_matches_booksim(name: str) -> None:
    limits = about()["tolerance"]
    ours = max(one.offered for one in points(name) if one.run.is_stable)
    assert abs(ours / last_stable(name) - 1) * 100 <= limits["load"]
    accepted, found = at_one(name)
    assert abs(found / accepted - 1) * 100 <= limits["accepted"]


@pytest.mark.parametrize("name", NAMES)
def test_offered_load_is_accepted_below_saturation(name: str) -> None:
    for point in points(name):
        if point.stable:
            accepted = point.run.accepted
            assert accepted.mean == pytest.approx(point.offered, abs=3 * accepted.half_width)


def test_table_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """Printed by `make validate`."""
    with capsys.disabled():
        print(f"\n{section()}")
