"""The study of an algorithm on a mesh, with and without bypass links."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from tutti.bypass.endpoints import with_gain
from tutti.bypass.plans import plan, run_on
from tutti.bypass.rates import with_rates
from tutti.bypass.view.runs import LinkRun, endpoints_view, runs_view
from tutti.study.study import Study, read
from tutti.topologies import Topology

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import polars as pl

    from tutti.base.units import Size
    from tutti.bypass.network import BypassMesh
    from tutti.bypass.plans import MappedSchedule
    from tutti.schedules.ir import Schedule
    from tutti.topologies import Routes


def compare_links(
    schedule: Schedule,
    mesh: BypassMesh,
    sizes: Sequence[Size],
    *,
    copies: int,
    switch: str,
    rate: str,
    latency: str,
    verify: bool,
    chiplets: Mapping[int, str] | None = None,
) -> None:
    """Times a schedule on the plain mesh and with bypass links, and shows the speedup.

    Takes the arguments of :func:`tutti.bypass.plan` and of :meth:`MappedSchedule.run`. The rates of
    chiplets apply to both.

    Raises:
        TuttiError: As :func:`tutti.simulate`.
    """
    plans = read("mapping", lambda: _plans(schedule, mesh, copies))
    plain = Topology.build(f"mesh:{mesh.size}", rate=rate, latency=latency)
    routes = [_with_rates(plain, chiplets or {})]
    total = len(sizes) * (1 + len(plans))

    def compute(done: Callable[[LinkRun], None]) -> None:
        for size in sizes:
            alone = run_on(schedule, routes, size, verify=verify)
            done(LinkRun(size, "mesh", alone, alone))
            for name, each in plans.items():
                run = each.run(size, rate=rate, latency=latency, switch=switch, verify=verify,
                               chiplets=chiplets)  # fmt: skip
                done(LinkRun(size, name, run, alone))

    study = Study[LinkRun]()
    runs, _ = study.several("simulating", compute, planned=total)
    if runs:
        study.present(runs_view(schedule.name, runs))
    study.end(len(runs), total)


def _with_rates(plain: Topology, chiplets: Mapping[int, str]) -> Routes:
    """Returns dimension-order routes of a mesh whose chiplets have these rates."""
    in_order = plain.routes("dimension_order")
    if not chiplets:
        return in_order
    paths = {
        (a, b): [link.index for link in in_order.path(a, b)]
        for a, b in product(range(plain.ranks), repeat=2)
        if a != b
    }
    return with_rates(plain, chiplets, {}).routes_by_path(paths)


def compare_endpoints(measure: Callable[..., pl.DataFrame], planned: int) -> None:
    """Measures networks behind endpoints, and shows the finished rows.

    Args:
        measure: A function of :mod:`tutti.bypass.endpoints` that takes `done`.
        planned: The number of rows.

    Raises:
        TuttiError: As the function.
        Exit: Ctrl-C interrupted the runs; what is finished was shown.
    """
    study = Study[dict[str, object]]()
    rows, _ = study.several("simulating", lambda done: measure(done=done), planned=planned)
    if rows:
        study.present(endpoints_view(with_gain(rows)))
    study.end(len(rows), planned)


def _plans(schedule: Schedule, mesh: BypassMesh, copies: int) -> dict[str, MappedSchedule]:
    """Returns the plan configured once and, if there are phases, the plan switched per phase."""
    plans = {"bypass, configured once": plan(schedule, mesh, copies=copies)}
    if schedule.phases > 1:
        plans["bypass, for each phase"] = plan(schedule, mesh, switched=True, copies=copies)
    return plans
