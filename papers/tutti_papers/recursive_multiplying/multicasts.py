"""Multicasts on the machine of `fitting`: Fig. 8 and Table 1."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

import tutti
from tutti.base.progress import watched
from tutti_papers import Exhibit, ExhibitResult
from tutti_papers.claims import verdict_line
from tutti_papers.exhibits import plot_curves
from tutti_papers.recursive_multiplying import archer
from tutti_papers.recursive_multiplying.conclusions import of_sends
from tutti_papers.recursive_multiplying.fitting import FITTED
from tutti_papers.recursive_multiplying.published import (
    ALLOCATIONS,
    DATATYPE,
    PICTURE,
    SIZE,
    TABLE_1,
    compared,
)

if TYPE_CHECKING:
    from pathlib import Path

FITTED_PEERS = range(1, 9)
"""Peers of the linear regression (section 5.1)."""
PEERS = range(1, 17)


@functools.cache
def times(peers: int, *, blocking: bool, blocks: int) -> dict[str, float]:
    """Returns minimum, quartiles and median of a multicast in us.

    A blocking send waits until the message has arrived: a multicast is then consecutive broadcasts
    to one peer.
    """
    ranks, count = (2, peers) if blocking else (peers + 1, 1)
    broadcast = tutti.schedule("direct", collective="broadcast", ranks=ranks).repeated(count)
    frames = [
        tutti.compare(
            FITTED.platform(),
            collective="broadcast",
            ranks=[ranks],
            sizes=[SIZE],
            algorithms=[broadcast],
            datatype=DATATYPE,
            conditions=FITTED.conditions(allocation),
            repetitions=blocks,
            seed=1000 * allocation,
        ).select("time_ps")
        for allocation in range(ALLOCATIONS)
    ]
    found = tutti.summary(pl.concat(frames)).row(0, named=True)
    names = {"minimum": "least", "lower_quartile": "lower_quartile", "median": "median",
             "upper_quartile": "upper_quartile"}  # fmt: skip
    return {f"{name}_us": found[f"{of}_ps"] / 1e6 for name, of in names.items()}


def _figure_8(folder: Path) -> ExhibitResult:
    """Returns multicasts to 1 to 16 peers, with blocking and non-blocking sends."""
    frame = pl.DataFrame(
        [
            {"blocking": blocking, "peers": peers}
            | times(peers, blocking=blocking, blocks=archer.BLOCKS)
            for blocking in (True, False)
            for peers in watched("multicasts", PEERS)
        ]
    )
    medians = {
        blocking: dict(frame.filter(blocking=blocking).select("peers", "median_us").iter_rows())
        for blocking in (True, False)
    }
    conclusions = of_sends(medians[True], medians[False])
    names = {True: "blocking", False: "non-blocking"}
    drawn = plot_curves(
        folder / "figure_8.svg",
        {
            f"{names[blocking]}, {which}": (PEERS, frame.filter(blocking=blocking)[f"{which}_us"])
            for blocking in (True, False)
            for which in ("minimum", "median")
        },
        x="peers", y="time (us)", verdict=verdict_line((), conclusions),
    )  # fmt: skip
    return ExhibitResult(
        frame=frame,
        conclusions=conclusions,
        source=f"Fig. 8 and section 5.1; {PICTURE}",
        figures=(drawn,),
    )


def _table_1(_folder: Path) -> ExhibitResult:
    """Returns alpha_p and alpha_r of a multicast, by linear regression over one to eight peers."""
    frame = pl.DataFrame(
        [
            {"peers": peers} | times(peers, blocking=False, blocks=archer.BLOCKS)
            for peers in watched("multicasts", FITTED_PEERS)
        ]
    )
    claims = []
    for which, (alpha_p, alpha_r) in TABLE_1.items():
        slope, offset = np.polyfit(frame["peers"], frame[f"{which}_us"], 1)
        claims += [
            (f"alpha_p, {which}, us", alpha_p, "Table 1", float(offset)),
            (f"alpha_r, {which}, us", alpha_r, "Table 1", float(slope)),
        ]
    return ExhibitResult(
        frame=frame.select("peers", "minimum_us", "median_us"),
        published=compared(claims),
        source="Table 1; section 5.1: linear regression over one to eight peers",
        notes=(
            """tutti's values are of a broadcast on the machine fitted to Table 2. There a message \
is cheaper than in Table 1: two messages take 2.36 us (Table 2, N = 4). The benchmark of Table 1 \
therefore includes a cost that an all_reduce does not have.""",
        ),
    )


FIGURES: dict[int, Exhibit] = {
    8: Exhibit(title="multicasts with blocking and non-blocking sends", make=_figure_8),
}
TABLES: dict[int, Exhibit] = {
    1: Exhibit(title="alpha_p and alpha_r of a multicast", make=_table_1),
}
