"""The MPI's counters agree: the library sends exactly the messages of the schedule.

The library's counts could have the same error as its messages. Open MPI's monitoring component and
libfabric's trace under MPICH are independent of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import oracle
import pytest

from tutti import schedule
from tutti.measured.tune import watch
from tutti.mpi.plan import CollectivePlan, Rule

if TYPE_CHECKING:
    from pathlib import Path

    from runs import Bench

    from tutti.schedules.ir import Schedule

ONCE, THRICE = 1, 3
"""Messages of the first call that create a communicator; they are subtracted."""


def seen(bench: Bench, plan: Path, call: watch.Call) -> watch.Traffic:
    """Messages and bytes of two calls, as the MPI library counts them."""
    count = {"openmpi": watch._monitored, "mpich": watch._traced}[bench.mpi.kind]
    env = {"TUTTI_MPI_PLAN": str(plan)}
    few = count(bench.mpi, call, ONCE, dict(env), options=[], timeout=100)
    more = count(bench.mpi, call, THRICE, dict(env), options=[], timeout=100)
    more.subtract(few)
    return watch.Traffic({key: value for key, value in more.items() if value})


def required(planned: Schedule, elements: int, unit: int) -> watch.Traffic:
    """Messages and bytes of two calls, by the ops of the schedule."""
    found = watch.Traffic()
    for source, row in enumerate(oracle.counts(planned, elements, unit)):
        for destination, (messages, size) in enumerate(row):
            if messages:
                found[source, destination, "messages"] = (THRICE - ONCE) * messages
            if size:
                found[source, destination, "bytes"] = (THRICE - ONCE) * size
    return found


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("name", "collective", "ranks"),
    [
        ("recursive_multiplying:a3,a2", "all_reduce", 6),
        ("ring", "all_reduce", 5),
        ("elimination", "all_reduce", 7),
        ("pairwise", "reduce_scatter", 4),
        ("bruck", "all_to_all", 5),
        ("knomial", "broadcast", 7),
        ("dissemination", "barrier", 6),
    ],
)
def test_mpi_counters_match_the_schedule(
    bench: Bench, name: str, collective: str, ranks: int, tmp_path: Path
) -> None:
    planned = schedule(name, collective=collective, ranks=ranks)
    plan = CollectivePlan([Rule(collective, ranks, planned)]).write(tmp_path / "plan.tutti")
    elements = 0 if collective == "barrier" else 15 * ranks
    call = watch.Call(collective, ranks, 4 * elements)
    reduces = collective in oracle.REDUCTIONS
    expected = required(planned, *((elements, 4) if reduces else (4 * elements, 1)))
    assert seen(bench, plan, call) == expected
