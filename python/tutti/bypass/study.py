"""The study of an algorithm on a mesh, with and without bypass links."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.bypass.plans import plan, run_on
from tutti.bypass.view.runs import LinkRun, runs_view
from tutti.study.console import remark
from tutti.study.progress import Progress
from tutti.study.study import present, read
from tutti.topologies import Topology

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.base.units import Size
    from tutti.bypass.network import BypassMesh
    from tutti.bypass.plans import MappedSchedule
    from tutti.schedules.ir import Schedule


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
) -> None:
    """Times a schedule on the plain mesh and with bypass links, and shows the speedup.

    Takes the arguments of :func:`tutti.bypass.plan` and of :meth:`MappedSchedule.run`.

    Raises:
        TuttiError: As :func:`tutti.simulate`.
    """
    plans = read("mapping", lambda: _plans(schedule, mesh, copies))
    plain = Topology.build(f"mesh:{mesh.side}x{mesh.side}", rate=rate, latency=latency)
    routes = [plain.routes("dimension_order")]
    runs: list[LinkRun] = []
    total = len(sizes) * (1 + len(plans))
    with Progress("simulating", work=total, total=total) as progress:
        for size in sizes:
            alone = run_on(schedule, routes, size, verify=verify)
            runs.append(LinkRun(size, "mesh", alone, alone))
            progress.advance(1, len(runs))
            for name, each in plans.items():
                run = each.run(size, rate=rate, latency=latency, switch=switch, verify=verify)
                runs.append(LinkRun(size, name, run, alone))
                progress.advance(1, len(runs))
    present(runs_view(runs))
    for reason in {row.run.not_verified for row in runs} - {None}:
        remark(f"{schedule.name} is not verified: {reason}")


def _plans(schedule: Schedule, mesh: BypassMesh, copies: int) -> dict[str, MappedSchedule]:
    """Returns the plan configured once and, if there are phases, the plan switched per phase."""
    plans = {"bypass, configured once": plan(schedule, mesh, copies=copies)}
    if schedule.phases > 1:
        plans["bypass, for each phase"] = plan(schedule, mesh, switched=True, copies=copies)
    return plans
