"""What a mapping shows: the dedicated, shared and unplaced flows, and the links used."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from tutti.base.units import Size
from tutti.view.quantity import count, counted, format_share, plural
from tutti.view.tables import Column, ReportTable
from tutti.view.view import Data, Fact, View, json_facts

if TYPE_CHECKING:
    from tutti.bypass import Flow, Mapping
    from tutti.bypass.improve import Improved

_NO_ROUTE = "a platform of this configuration cannot run the algorithm: flows have no route"
_MOST_NAMED = 40
"""Flows listed per row; the notation and the Python API have all."""


class _Kind(NamedTuple):
    """The flows of a kind."""

    name: str
    flows: tuple[Flow, ...]

    @property
    def named(self) -> str:
        texts = [f"{source}>{destination}" for source, destination in self.flows[:_MOST_NAMED]]
        more = len(self.flows) - len(texts)
        return " ".join(texts) + (f" ... {more:,} more" if more else "")


_KINDS: tuple[Column[_Kind], ...] = (
    Column("flows", lambda kind: f"  {kind.name}" if kind.name == "lent" else kind.name),
    Column("count", lambda kind: len(kind.flows), count),
    Column("source > destination", lambda kind: kind.named, kind="wrap"),
)


def mapping_view(mapping: Mapping, title: str) -> View:
    """Returns the placed and the unplaced flows, and the links used.

    Args:
        mapping: The mapping.
        title: The algorithm.
    """
    network, loaded = mapping.configuration, counted(f"{mapping.most_loaded:.3g}", "flow")
    names = ("dedicated", "lent", "shared", "unplaced")
    kinds = [_Kind(name, getattr(mapping, name)) for name in names]
    rows = [kind for kind in kinds if kind.flows or kind.name != "lent"]
    text = f"{title}: {plural(len(mapping.flows), 'flow')} on {mapping.mesh.notation}"
    used = (
        f"{plural(len(network.links), 'live link')}, {network.used_segments:,} of "
        f"{network.total_segments:,} segments; at most {loaded} per link "
        f"(bound {mapping.load_bound:.3g}), {plural(mapping.hops, 'hop')} "
        f"(bound {mapping.hops_bound:,})"
    )
    return View(
        headline=Fact("mapping", text),
        facts=json_facts(
            mesh=mapping.mesh.notation,
            flows=len(mapping.flows),
            dedicated_flows=len(mapping.dedicated),
            dedicated_flows_bound=mapping.bound,
            optimal=mapping.optimal,
            method=mapping.method,
            live_links=len(network.links),
            used_segments=network.used_segments,
            total_segments=network.total_segments,
            most_flows_per_link=mapping.most_loaded,
            most_flows_per_link_bound=mapping.load_bound,
            hops=mapping.hops,
            hops_bound=mapping.hops_bound,
        ),
        tables=[ReportTable(_KINDS, rows, gap=2)],
        data=[Data("flows", lambda: ({"kind": kind.name, "source": source, "target": target}
                                     for kind in kinds for source, target in kind.flows))],
        below=[_verdict(mapping), used],
        log=[_NO_ROUTE] if mapping.unplaced else (),
    )  # fmt: skip


def search_view(search: Improved, title: str, size: str) -> View:
    """Returns the fastest mapping of a search, with its time and that of the first one.

    Args:
        search: The result.
        title: The algorithm.
        size: The size of the collective, with a unit.
    """
    view = mapping_view(search.best, title)
    saved = search.start_time.ps / search.best_time.ps - 1
    text = (
        f"{size}: {search.best_time}; with the configuration of `map` {search.start_time} "
        f"({format_share(saved)} longer); {plural(search.trials, 'configuration')} simulated"
    )
    values = json_facts(
        size_bytes=Size.of_any(size).bytes,
        time_ps=search.best_time.ps,
        start_time_ps=search.start_time.ps,
        trials=search.trials,
    )
    return replace(view, facts=[*view.facts, *values], below=[*view.below, text])


def _verdict(mapping: Mapping) -> str:
    """Returns how far the number of dedicated flows is from the optimum."""
    if mapping.optimal:
        return "verified optimal: no configuration dedicates links to more flows"
    how = {"exact": "search", "local": "local search"}.get(mapping.method, "the greedy method")
    return f"found by {how}; upper bound on flows with dedicated links: {mapping.bound:,}"
