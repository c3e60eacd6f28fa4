"""The quantities of runs of meshes: each is declared once, for all renderings."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from tutti.base.files.typed import every_of
from tutti.networks.errors import NocError
from tutti.networks.flit.results import QUANTILES
from tutti.networks.mesh.results import MeshRun
from tutti.networks.mesh.traffic import UNITS
from tutti.view.quantity import count, counted, estimate, format_share, mean, number, three
from tutti.view.tables import Column, frame_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    import polars as pl

    from tutti.networks.mesh.results import MeshMeasurement
    from tutti.networks.mesh.traffic import Kind, Traffic

_PER = "messages per cycle"
_STATES = {
    "stable": "stable",
    "saturated": "saturated: accepted throughput below 97 % of offered load, or messages in flight "
    "after the drain phase; latency is undefined",
    "deadlocked": "deadlocked: packets were in flight and none moved; nothing was measured",
    "empty": "empty: no message was created in the measurement window, so nothing was measured",
}


class Part(NamedTuple):
    """A traffic of a run.

    Attributes:
        run: The run.
        traffic: The traffic.
        measured: Its measured values.
    """

    run: MeshRun
    traffic: Traffic
    measured: MeshMeasurement


def parts(run: MeshRun) -> list[Part]:
    """Returns each traffic of a run."""
    return [Part(run, *each) for each in zip(run.traffic, run.loads, strict=True)]


def frame(runs: Iterable[MeshRun]) -> pl.DataFrame:
    """Returns a row per run and traffic; times in cycles, rates in messages per cycle of the mesh.

    Latencies are null unless all seeds were stable, since they then depend on the length of the
    run. If a seed deadlocked, all measured values are null.
    """
    runs = every_of("frame", NocError, "runs", runs, MeshRun)
    return frame_of(quantities(), [part for run in runs for part in parts(run)])


def state(run: MeshRun) -> str:
    """Returns the state in which a run ended."""
    if run.ending == "undecided":
        return f"undecided: {run.too_short}; latency is undefined"
    return _STATES[run.ending]


def latency(measured: MeshMeasurement) -> str:
    """Returns the mean latency with percentiles and maximum."""
    shown = ", ".join(f"p{name} {number(value)}" for name, value in measured.quantiles.items())
    if not measured.messages:
        return "no message completed"
    cycles = counted(estimate(measured.latency), "cycle")
    return f"{cycles}; {shown}, maximum {measured.latency_extremes[1]:,}"


def quantities(kind: Kind = "broadcast") -> list[Column[Part]]:
    """Returns the quantities of a run or a traffic; times in cycles.

    A quantity added to the lists below appears in the terminal, in `--json`, in reports, in
    notebooks and in files.

    Args:
        kind: The kind of the first traffic.
    """
    return [*of_case(kind), *of_traffic(kind), *of_run(kind), *_OF_FILES]


def _moved(part: Part) -> bool:
    return part.run.ending != "deadlocked"


def _stable(part: Part) -> bool:
    return part.run.is_stable and part.measured.messages > 0


def _ended(part: Part) -> bool:
    return _moved(part) and part.measured.messages > 0


def _offered(part: Part) -> bool:
    return _moved(part) and part.measured.offered.mean > 0


def _quantile(name: str, part: Part) -> float:
    return part.measured.quantiles[name]


def share(measured: MeshMeasurement) -> str:
    """Returns the accepted share of the offered load."""
    return format_share(measured.share) if measured.offered.mean else "none offered"


def _accepted(part: Part) -> tuple[str, str]:
    if not part.measured.offered.mean:
        return "accepted", "no message was offered"
    accepted = counted(estimate(part.measured.accepted), "message")
    return "accepted", f"{accepted} per cycle, {share(part.measured)} of the offered load"


def _responses(part: Part) -> tuple[str, str] | None:
    if not part.measured.messages:
        return None
    text = f"{estimate(part.measured.arrivals)} arrive per reduction"
    return ("responses", text) if part.traffic.kind == "reduction" else None


def _settings(part: Part) -> str:
    settings = {**part.run.mesh.settings, "outstanding": part.traffic.outstanding}
    given = {name: value for name, value in settings.items() if value is not None}
    return ", ".join(f"{name} = {value}" for name, value in given.items())


def _reduces(part: Part) -> bool:
    return any(traffic.kind == "reduction" for traffic in part.run.traffic)


def _entries(part: Part) -> tuple[str, str] | None:
    text = f"{estimate(part.run.table_entries)} in use per router"
    return ("table entries", text) if _reduces(part) else None


def _flows(part: Part) -> tuple[str, str] | None:
    text = f"{estimate(part.run.buffered_flows)} with a response in a router"
    return ("buffered flows", text) if _reduces(part) else None


def _stay(part: Part) -> tuple[str, str] | None:
    stay = part.run.stay
    shown = _reduces(part) and not math.isnan(stay.mean)
    return ("time per stop", counted(estimate(stay), "cycle")) if shown else None


def of_case(kind: Kind) -> list[Column[Part]]:
    """Returns mesh, traffic, offered load and state."""
    return [
        Column("design", lambda part: part.run.mesh.design, key="design", scope="file"),
        Column("traffic", lambda part: part.traffic.kind, key="kind", scope="run"),
        Column("message class", lambda part: part.traffic.message_class, count,
               key="message_class", scope="file"),
        Column("offered load", lambda part: part.traffic.rate, number, key="load", scope="runs",
               short="load", exported=UNITS[kind]),
        Column("state", lambda part: part.run.ending, key="ending", scope="runs",
               fact=lambda part: ("state", state(part.run))),
    ]  # fmt: skip


def of_traffic(kind: Kind) -> list[Column[Part]]:
    """Returns the quantities of a traffic."""
    # For reductions, the offered load is the swept load.
    offered, arrivals = (False, three) if kind == "reduction" else (three, False)
    return [
        Column("measured offered load", lambda part: part.measured.offered, estimate,
               key="offered", when=_moved, fact=False, short="offered", terminal=offered,
               exported=_PER),
        Column("accepted throughput", lambda part: part.measured.accepted, estimate,
               key="accepted", when=_moved, fact=_accepted, short="accepted", terminal=three,
               exported=_PER),
        Column("accepted share", lambda part: part.measured.share, format_share,
               key="accepted_share", scope="run", when=_offered, fact=False),
        Column("mean latency", lambda part: part.measured.latency, estimate, key="latency",
               when=_stable, fact=lambda part: ("latency", latency(part.measured)),
               short="latency", exported="cycles"),
        Column("minimum latency", lambda part: part.measured.latency_extremes[0], count,
               key="latency_least", scope="run", when=_stable, fact=False, exported="cycles"),
        *(Column(f"p{name} latency", partial(_quantile, name), number, key=f"latency_{name}",
                 scope="" if name in {"50", "99"} else "run", when=_stable, fact=False,
                 short=f"p{name}", terminal=three, exported="cycles")
          for name in QUANTILES),
        Column("maximum latency", lambda part: part.measured.latency_extremes[1], count,
               key="latency_most", scope="run", when=_stable, fact=False, exported="cycles"),
        Column("delivery latency", lambda part: part.measured.part_latency, estimate,
               key="part_latency", scope="run", when=_stable, exported="cycles"),
        Column("arrivals per message", lambda part: part.measured.arrivals, estimate,
               key="arrivals", when=_ended, fact=_responses, short="arrivals", terminal=arrivals),
        Column("messages in flight", lambda part: part.measured.active, estimate, key="active",
               when=_moved, short="in flight", terminal=three),
        Column("messages", lambda part: part.measured.messages, count, key="messages",
               scope="run", when=_moved),
    ]  # fmt: skip


def of_run(kind: Kind) -> list[Column[Part]]:
    """Returns the quantities of all traffic of a run together."""
    entries = three if kind == "reduction" else False
    return [
        Column("table entries per router", lambda part: part.run.table_entries, mean,
               key="table_entries", scope="runs", when=_moved, fact=_entries, short="entries",
               terminal=entries, spare=True),
        Column("buffered flows", lambda part: part.run.buffered_flows, mean, key="buffered_flows",
               scope="runs", when=_moved, fact=_flows, terminal=False),
        Column("time per stop", lambda part: part.run.stay, mean, key="stay", scope="file",
               when=_moved, fact=_stay),
    ]  # fmt: skip


_OF_FILES: tuple[Column[Part], ...] = (
    Column("seeds", lambda part: part.run.plan.seeds, count, key="seeds", scope="file"),
    Column("seed", lambda part: part.run.plan.seed, count, key="seed", scope="file"),
    Column("cycles", lambda part: part.run.cycles, count, key="cycles", scope="file"),
    Column(
        "cycles of a long enough window",
        lambda part: part.run.long_enough,
        count,
        key="long_enough",
        scope="file",
        when=lambda part: part.run.ending == "undecided",
        exported="cycles",
    ),
    Column("settings", _settings, key="settings", scope="file"),
)
