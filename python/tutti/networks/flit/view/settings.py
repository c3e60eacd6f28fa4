"""The settings of a flit-level run for `--json`: what a network file states, complete."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tutti.base.units import Size
from tutti.networks.flit.network import classes_of, every
from tutti.networks.flit.settings import Trace

if TYPE_CHECKING:
    from tutti.networks.flit import Network, NocRun
    from tutti.networks.flit.network import Supply


def settings_of(run: NocRun) -> dict[str, Any]:
    """Returns network, routers, traffic and measurement of a run, with the keys of a network file.

    Names of keys with a unit end in it: `cycle_ps`, `flit_bytes`. Instead of the table of links of
    a class, `topology.links` has the different links of the graph and how many there are of each.
    Traffic is a list with an entry for each class.
    """
    network = run.network
    return {
        "topology": _topology(network),
        "cycle_ps": network.cycle_ps,
        "flit_bytes": Size.of_any(network.flit).bytes,
        "seed": network.seed,
        "router": network.router.model_dump(),
        "routers": [asdict(entry) for entry in network.routers],
        "clocks": [
            {"at": entry.at, "period_ps": entry.period_ps, "synchroniser": entry.synchroniser}
            for entry in network.clocks
        ],
        "traffic": _traffic(run.traffic),
        "measure": asdict(run.plan),
    }


def _topology(network: Network) -> dict[str, Any]:
    graph = network.topology
    kinds = Counter((link.rate, link.latency, link.length) for link in graph.links)
    links = [
        {
            "count": count,
            "rate_bytes_per_s": rate.core.bytes_per_second,
            "latency_ps": latency.ps,
            "length_um": None if length is None else length.um,
        }
        for (rate, latency, length), count in kinds.items()
    ]
    return {
        "name": graph.name,
        "nodes": graph.ranks,
        "links": links,
        "routing": network.routing,
        "grid": network.grid,
        "narrow_links": network.narrow_links,
        "deadlock": network.deadlock,
    }


def _traffic(traffic: Supply) -> list[dict[str, Any]]:
    """Returns each class; a trace has only VCs, as its packets are in a file."""
    if isinstance(traffic, Trace):
        return [{"trace": True, "vcs": vcs} for vcs in classes_of(traffic)]
    return [asdict(load) for load in every(traffic)]
