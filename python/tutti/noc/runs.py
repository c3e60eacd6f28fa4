"""Runs of a network: one, many loads at once, and the search for saturation."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tutti import _core
from tutti.errors import NocError
from tutti.noc.measured import NocRun
from tutti.noc.measuring import bracket, measure_all, narrow, parts
from tutti.noc.network import classes_of, every
from tutti.noc.settings import MeasurementPlan, Trace, Traffic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tutti.noc.measured import Estimate
    from tutti.noc.network import Network, Supply


def run(
    network: Network,
    traffic: Traffic | Sequence[Traffic] | Trace,
    plan: MeasurementPlan | None = None,
) -> NocRun:
    """Runs traffic on a network: warm-up, measured window, drain.

    Args:
        network: The network.
        traffic: A class, several, or a trace.
        plan: For how long; ``MeasurementPlan()`` if it is left out.

    Raises:
        NocError: The network cannot be, or traffic does not fit it.
        TrafficError: There is no such traffic.
    """
    supply = _supply(traffic)
    return _measured(network, [supply], plan or MeasurementPlan(), None, threads=1)[0]


def check(network: Network, traffic: Supply, plan: MeasurementPlan) -> None:
    """Refuses what cannot be run, without running it.

    Raises:
        NocError: The network cannot be, or traffic does not fit it.
        TrafficError: There is no such traffic.
    """
    _case(network.core(classes_of(traffic)), traffic, plan)


def sweep(
    network: Network,
    traffic: Traffic | Sequence[Traffic],
    loads: Iterable[float],
    plan: MeasurementPlan | None = None,
    *,
    threads: int = 0,
    done: Callable[[NocRun], object] | None = None,
) -> list[NocRun]:
    """Runs the same traffic at several loads, at once on all cores.

    Args:
        network: The network.
        traffic: A class or several, whose rates keep their proportions.
        loads: Flits per node and cycle, of all classes together.
        plan: For how long each.
        threads: How many; 0 is one per core. The results do not depend on it.
        done: Told of each run as soon as it is there, in no particular order.

    Returns:
        The runs, in the order of the loads.

    Raises:
        NocError: The network cannot be, or traffic does not fit it.
        TrafficError: There is no such traffic, or a load that is none.
    """
    at = [at_load(traffic, load) for load in loads]
    return _measured(network, at, plan or MeasurementPlan(), done, threads=threads)


@dataclass(frozen=True, slots=True, kw_only=True)
class Saturation:
    """Where a network saturates.

    Attributes:
        load: The largest load found at which the network is stable; 0 if it never is.
        below: The smallest load found at which it is not, at most the tolerance above; None if
            it is stable at every load that was allowed.
        accepted: What it accepts at `load`, in flits per node and cycle; None if it is never
            stable.
        deadlocks: Whether it deadlocks at `below`, rather than saturating.
        runs: Everything that was run, by ascending load.
    """

    load: float
    below: float | None
    accepted: Estimate | None
    deadlocks: bool
    runs: tuple[NocRun, ...]


def saturation(
    network: Network,
    traffic: Traffic | Sequence[Traffic],
    plan: MeasurementPlan | None = None,
    *,
    tolerance: float = 0.01,
    most: float = 1.0,
    known: Sequence[NocRun] = (),
    threads: int = 0,
    done: Callable[[NocRun], object] | None = None,
) -> Saturation:
    """The largest load at which a network is stable.

    The interval between a load at which it is and one at which it is not is cut into quarters until
    it is narrow enough; where a network should be stable again above, that is not looked for.

    Args:
        network: The network.
        traffic: A class or several, whose rates keep their proportions.
        plan: For how long each run.
        tolerance: How far apart the two loads are at most, in flits per node and cycle.
        most: No load is larger.
        known: Runs of the same network and traffic that have been made already.
        threads: How many; 0 is one per core. The result does not depend on it.
        done: Told of each run as soon as it is there.

    Raises:
        NocError: The network cannot be, traffic does not fit it, or the tolerance is none.
        TrafficError: There is no such traffic.
    """
    if not (0 < tolerance < math.inf and 0 < most < math.inf):
        message = f"a search up to {most} with a tolerance of {tolerance}: expected both above 0"
        raise NocError(message, kind="search")
    found = {run.load: run for run in known if run.load is not None and run.load <= most}
    ask = plan or MeasurementPlan()

    def measure(loads: Sequence[float]) -> None:
        at = [at_load(traffic, load) for load in loads]
        runs = _measured(network, at, ask, done, threads=threads)
        found.update(zip(loads, runs, strict=True))

    def is_stable(run: NocRun) -> bool:
        return run.is_stable

    low, high = bracket(found, is_stable)
    if high is None and most not in found:
        measure([*parts(low, most), most])
    low, high = narrow(found, is_stable, measure, tolerance)
    return Saturation(
        load=low,
        below=high,
        accepted=found[low].accepted if low > 0 else None,
        deadlocks=high is not None and found[high].ending == "deadlocked",
        runs=tuple(found[load] for load in sorted(found)),
    )


def at_load(traffic: Traffic | Sequence[Traffic], load: float) -> tuple[Traffic, ...]:
    """Traffic with so many flits per node and cycle in all; classes keep their proportions.

    Raises:
        NocError: No class has a rate above 0 that could be scaled.
    """
    classes = every(traffic)
    total = sum(one.rate for one in classes)
    if len(classes) == 1:
        return (replace(classes[0], rate=load),)
    if total <= 0:
        message = "traffic of several classes with no rate has no proportions to keep"
        raise NocError(message, kind="search", hint="give each class a rate")
    return tuple(replace(one, rate=one.rate * load / total) for one in classes)


def _supply(traffic: Traffic | Sequence[Traffic] | Trace) -> Supply:
    return traffic if isinstance(traffic, Traffic | Trace) else every(traffic)


def _load(traffic: Supply) -> float | None:
    if isinstance(traffic, Trace):
        return None
    return math.fsum(one.rate for one in every(traffic))


def _measured(
    network: Network,
    supplies: Sequence[Supply],
    plan: MeasurementPlan,
    done: Callable[[NocRun], object] | None,
    *,
    threads: int,
) -> list[NocRun]:
    """Runs traffic of the same classes at several loads, the lightest first."""
    if not supplies:
        return []
    core = network.core(classes_of(supplies[0]))

    def run_of(index: int, results: list[dict[str, Any]]) -> NocRun:
        supply = supplies[index]
        load = _load(supply)
        return NocRun.of_core(
            core, results[0], network=network, traffic=supply, plan=plan, load=load
        )

    groups = [[_case(core, supply, plan)] for supply in supplies]
    return measure_all(groups, run_of, threads=threads, done=done)


def _case(core: _core.FlitNetwork, supply: Supply, plan: MeasurementPlan) -> _core.FlitCase:
    if isinstance(supply, Trace):
        return _core.FlitCase.trace(core, supply.text, plan.core_plan())
    loads = [one.core_load() for one in every(supply)]
    return _core.FlitCase(core, loads, plan.core_plan())
