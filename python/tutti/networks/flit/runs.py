"""Flit-level runs: one load, a sweep of loads, and the search for saturation."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tutti import _core
from tutti.base.files.typed import refuse_arguments
from tutti.networks.errors import NocError
from tutti.networks.flit.network import Network, core_for, every, is_batch
from tutti.networks.flit.results import NocRun
from tutti.networks.flit.settings import MeasurementPlan, Trace, Traffic
from tutti.networks.flit.traces import plan_of_trace
from tutti.networks.loads import (
    PARTS,
    Divisions,
    Search,
    Threads,
    measure_all,
    parts,
    scaled,
)
from tutti.view.quantity import plural

if TYPE_CHECKING:
    from tutti.networks.flit.network import Supply
    from tutti.networks.flit.results import Estimate

_GENERATED = Traffic | tuple[Traffic, ...]


def run(
    network: Network,
    traffic: Traffic | Sequence[Traffic] | Trace,
    plan: MeasurementPlan | None = None,
) -> NocRun:
    """Runs traffic on a network: warm-up, measurement window, drain.

    Args:
        network: The network.
        traffic: Traffic of one class or several, or a trace.
        plan: The phases of the run; default ``MeasurementPlan()``, and for a trace or a batch from
            cycle 0 until its last packet arrives.

    Raises:
        NocError: The network is invalid, or the traffic does not fit it.
        TrafficError: The traffic is invalid.
    """
    refuse_arguments("run", NocError, network=(network, Network),
                     traffic=(traffic, _GENERATED | Trace),
                     plan=(plan, MeasurementPlan | None))  # fmt: skip
    supply = _supply(traffic)
    return _measured(network, [supply], plan or _plan_of(supply), None, threads=1)[0]


def check(network: Network, traffic: Supply, plan: MeasurementPlan) -> None:
    """Validates a run without running it.

    Raises:
        NocError: The network is invalid, or the traffic does not fit it.
        TrafficError: The traffic is invalid.
    """
    _case(core_for(network, traffic), traffic, plan)


def sweep(
    network: Network,
    traffic: Traffic | Sequence[Traffic],
    loads: Iterable[float],
    plan: MeasurementPlan | None = None,
    *,
    threads: int = 0,
    done: Callable[[NocRun], object] | None = None,
) -> list[NocRun]:
    """Runs the same traffic at several loads, in parallel on all cores.

    Args:
        network: The network.
        traffic: Traffic of one class or several; the rates keep their proportions.
        loads: Offered loads in flits per node and cycle, summed over classes.
        plan: The phases of each run.
        threads: Number of threads; 0 for one per core. Results do not depend on it.
        done: Called with each run as soon as it finishes, in no particular order.

    Returns:
        The runs, in the order of the loads.

    Raises:
        NocError: The network is invalid, or the traffic does not fit it.
        TrafficError: The traffic or a load is invalid.
    """
    refuse_arguments("sweep", NocError, network=(network, Network), traffic=(traffic, _GENERATED),
                     loads=(loads, Iterable), plan=(plan, MeasurementPlan | None),
                     threads=(threads, Threads), done=(done, Callable | None))  # fmt: skip
    supplies = [at_load(traffic, load) for load in loads]
    return _measured(network, supplies, plan or _plan_of(every(traffic)), done, threads=threads)


@dataclass(frozen=True, slots=True, kw_only=True)
class Saturation:
    """The saturation load of a network.

    Attributes:
        load: The largest stable load found; 0 if the network is never stable.
        below: The smallest unstable load found, at most the tolerance above `load`; `None` if
            every load is stable.
        accepted: Accepted throughput at `load`, in flits per node and cycle; `None` if never
            stable.
        deadlocks: Whether the network deadlocks at `below` instead of saturating.
        too_short: Why it is unknown whether the network is stable at `below`: the window is too
            short to decide; else empty.
        runs: All runs, by ascending load.
    """

    load: float
    below: float | None
    accepted: Estimate | None
    deadlocks: bool
    too_short: str
    runs: tuple[NocRun, ...]

    def __repr__(self) -> str:
        below = "no unstable load" if self.below is None else f"unstable at {self.below:g}"
        name = self.runs[0].network.topology.name
        runs = plural(len(self.runs), "run")
        return f"<Saturation {name}: stable up to {self.load:g}, {below}, {runs}>"

    def _repr_html_(self) -> str:
        """The HTML for notebooks: the saturation load, and latency against load."""
        from tutti.networks.flit.view.load import load_view
        from tutti.view.notebook import view_html

        return view_html(load_view(self.runs, self))


def saturation(
    network: Network,
    traffic: Traffic | Sequence[Traffic],
    plan: MeasurementPlan | None = None,
    *,
    tolerance: float = 0.01,
    most: float = 1.0,
    known: Sequence[NocRun] = (),
    divisions: int = PARTS,
    threads: int = 0,
    done: Callable[[NocRun], object] | None = None,
) -> Saturation:
    """Searches for the largest load at which a network is stable.

    The search divides the interval between a stable and an unstable load into equal parts until it
    is within the tolerance. It does not look for stable loads above an unstable one.

    Args:
        network: The network.
        traffic: Traffic of one class or several; the rates keep their proportions.
        plan: The phases of each run.
        tolerance: The largest width of the final interval, in flits per node and cycle.
        most: The largest load to run.
        known: Earlier runs of the same network and traffic.
        divisions: Number of parts of the interval; 2 needs the fewest runs, more run in parallel.
        threads: Number of threads; 0 for one per core. The result does not depend on it.
        done: Called with each run as soon as it finishes.

    Raises:
        NocError: The network or the tolerance is invalid, or the traffic does not fit the network.
        TrafficError: The traffic is invalid.
    """
    refuse_arguments("saturation", NocError, network=(network, Network),
                     traffic=(traffic, _GENERATED), plan=(plan, MeasurementPlan | None),
                     tolerance=(tolerance, float), most=(most, float),
                     known=(known, tuple[NocRun, ...]), divisions=(divisions, Divisions),
                     threads=(threads, Threads), done=(done, Callable | None))  # fmt: skip
    core_plan = plan or _plan_of(every(traffic))

    def measure(loads: Sequence[float]) -> list[NocRun]:
        supplies = [at_load(traffic, load) for load in loads]
        return _measured(network, supplies, core_plan, done, threads=threads)

    def is_stable(run: NocRun) -> bool:
        return run.ending in {"stable", "empty"}

    search = Search(measure, known, most=most, tolerance=tolerance, divisions=divisions)
    low, high = search.bracket(is_stable)
    if high is None:
        search.add([] if most in search.runs else [*parts(low, most, divisions), most])
    low, high = search.narrow(is_stable)
    return Saturation(
        load=low,
        below=high,
        accepted=search.runs[low].accepted if low > 0 else None,
        deadlocks=high is not None and search.runs[high].ending == "deadlocked",
        too_short=search.runs[high].too_short if high is not None else "",
        runs=search.ordered,
    )


def at_load(traffic: Traffic | Sequence[Traffic], load: float) -> tuple[Traffic, ...]:
    """Returns traffic scaled to a total load; classes keep their proportions.

    Args:
        traffic: Traffic of one class or several.
        load: Offered load in flits per node and cycle, summed over classes.

    Raises:
        NocError: No class has a rate above 0 to scale.
    """
    refuse_arguments("at_load", NocError, traffic=(traffic, _GENERATED), load=(load, float))
    classes = every(traffic)
    return scaled(classes, load, sum(each.rate for each in classes))


def _supply(traffic: Traffic | Sequence[Traffic] | Trace) -> Supply:
    return traffic if isinstance(traffic, Traffic | Trace) else every(traffic)


def _plan_of(traffic: Supply) -> MeasurementPlan:
    """Returns the default plan of traffic."""
    if isinstance(traffic, Trace):
        return plan_of_trace(traffic.text)
    return MeasurementPlan(warmup=0) if is_batch(traffic) else MeasurementPlan()


def _load(traffic: Supply) -> float | None:
    if isinstance(traffic, Trace):
        return None
    return math.fsum(each.rate for each in every(traffic))


def _measured(
    network: Network,
    supplies: Sequence[Supply],
    plan: MeasurementPlan,
    done: Callable[[NocRun], object] | None,
    *,
    threads: int,
) -> list[NocRun]:
    """Runs traffic of the same classes at several loads."""
    if not supplies:
        return []
    core = core_for(network, supplies[0])

    def run_of(index: int, results: list[_core.FlitResult]) -> NocRun:
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
    loads = [each.core_load() for each in every(supply)]
    return _core.FlitCase(core, loads, plan.core_plan())
