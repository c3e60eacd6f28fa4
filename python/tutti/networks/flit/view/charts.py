"""Charts of a network report: link utilisation on the topology, buffers, stalls and energy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.topologies.view.heat_map import SCALE, LinkUse
from tutti.topologies.view.heat_map import heat_map as topology_heat_map
from tutti.view.charts import NAMES, Axis, bars, chart, errors, heat, line
from tutti.view.palette import BLUE, ORANGE, RED, styles_in_order
from tutti.view.quantity import counted, format_share, number, plural

from .text import channel, spoken, stalls

if TYPE_CHECKING:
    from tutti.energy.technology import EnergyReport
    from tutti.networks.flit import NocRun
    from tutti.view.charts import Figure


_MOST_ROWS = 24
"""VCs in the chart of the fullest VCs."""
_MOST_TIMES = 400
"""Samples in that chart; longer series are decimated."""
_CYCLE = Axis("cycle", more={"tickformat": ","})
_FLITS = Axis("occupancy", "flits", zero=True)


def heat_map(run: NocRun) -> Figure | None:
    """Returns the topology with links coloured by utilisation; None if it is too large."""
    import polars as pl

    links = [
        LinkUse(sent.source, sent.target, sent.utilisation, plural(sent.flits, "flit"))
        for sent in run.sent
    ]
    held: dict[str, str] = {}
    if not run.occupancy.is_empty():
        means = run.occupancy.group_by("router").agg(pl.col("flits").sum())
        held = {
            router: f"<br>{counted(number(mean, 3), 'flit')} in its buffers on average"
            for router, mean in means.iter_rows()
        }
    return topology_heat_map(run.network.topology, [links], held)


def buffered(run: NocRun) -> Figure | None:
    """Returns the flits in all buffers over the window."""
    if not run.buffered:
        return None
    plan = run.plan
    times = [plan.warmup + plan.sample * (index + 1) for index in range(len(run.buffered))]
    trace = line(times, run.buffered, BLUE, "cycle %{x:,}: %{y:,} flits<extra></extra>")
    return chart([trace], _CYCLE, _FLITS, 300, showlegend=False)


def over_time(run: NocRun) -> Figure | None:
    """Returns the flits per VC number over the window, one line each."""
    import polars as pl

    if not run.buffered:
        return None
    vcs, start = run.network.router.vcs, run.plan.warmup
    traces = []
    for vc, style in styles_in_order(range(vcs)).items():
        of_vc = run.buffered_by_vc.filter(pl.col("vc") == vc)
        hover = f"cycle %{{x:,}}: %{{y:,}} flits in VC {vc}<extra></extra>"
        cycles = [start + cycle for cycle in of_vc["cycle"]]
        traces.append(line(cycles, of_vc["flits"].to_list(), style.colour, hover, name=f"VC {vc}"))
    return chart(traces, _CYCLE, _FLITS, 320, showlegend=vcs > 1)


def by_vc(run: NocRun) -> Figure | None:
    """Returns the mean flits per VC: average over all ports, and the fullest port."""
    import polars as pl

    if run.occupancy.is_empty():
        return None
    of_vc = run.occupancy.group_by("vc", maintain_order=True).agg(
        pl.col("flits").mean().alias("mean"), pl.col("flits").max().alias("most")
    )
    capacity = run.network.router.buffer
    names = [str(vc) for vc in of_vc["vc"]]
    traces = [
        bars(names, of_vc[column].to_list(), colour,
             f"VC %{{x}}, {name}: %{{y:.3g}} of {capacity} flits<extra></extra>", name=name)
        for column, name, colour in (
            ("mean", "mean of all ports", BLUE),
            ("most", "fullest port", ORANGE),
        )
    ]  # fmt: skip
    y = Axis("mean occupancy", "flits", zero=True)
    return chart(traces, Axis("VC", category=True), y, 300, barmode="group")


def fullest(run: NocRun) -> Figure | None:
    """Returns the flits in the fullest VCs at each sample; None unless `keep_vcs` is set."""
    import polars as pl

    if not run.plan.keep_vcs or not run.buffered:
        return None
    per_channel = max(_MOST_ROWS // run.network.router.vcs, 1)
    ports = (
        run.occupancy.group_by("source", "router", maintain_order=True)
        .agg(pl.col("flits").sum())
        .sort("flits", descending=True, maintain_order=True)
        .head(per_channel)
    )
    rows: list[list[int]] = []
    names: list[str] = []
    step = -(-len(run.buffered) // _MOST_TIMES)
    for source, router in reversed(ports.select("source", "router").rows()):
        found = run.vcs_over_time(source, router)
        for vc in reversed(found["vc"].unique(maintain_order=True).to_list()):
            rows.append(found.filter(pl.col("vc") == vc)["flits"].gather_every(step).to_list())
            names.append(f"{channel('injection', source, router)}, VC {vc}")
    shown = heat(
        x=[run.plan.warmup + cycle for cycle in run.look_times[::step]],
        y=names,
        z=rows,
        zmin=0,
        zmax=run.network.router.buffer,
        colorscale=SCALE,
        colorbar={"title": {"text": "flits"}, "thickness": 14},
        hovertemplate="%{y}<br>cycle %{x:,}: %{z} flits<extra></extra>",
    )
    y = Axis(category=True, more={"automargin": True})
    return chart([shown], _CYCLE, y, 110 + 18 * max(len(rows), 6), showlegend=False)


def stalled(run: NocRun) -> Figure | None:
    """Returns the causes of stalls of head flits."""
    if not run.stalls.busy:
        return None
    causes, shares = zip(*stalls(run)[::-1], strict=True)
    texts = [format_share(share) for share in shares]
    trace = bars(causes, shares, RED, "%{y}: %{text}<extra></extra>", across=True, text=texts)
    x = Axis("share of samples of occupied VCs", share=True)
    return chart([trace], x, NAMES, 240, showlegend=False)


def energy_bars(energy: EnergyReport) -> Figure:
    """Returns the energy of the window by component, with the bounds of the sources."""
    kinds = (
        ("dynamic", BLUE, energy.dynamic_by_component),
        ("leakage", ORANGE, energy.leakage_by_component),
    )
    traces = []
    for name, colour, parts in kinds:
        above = [(part.high - part.nominal) * 1e9 for part in parts.values()]
        below = [(part.nominal - part.low) * 1e9 for part in parts.values()]
        hover = f"%{{x}}, {name}: %{{y:.4g}} nJ<extra></extra>"
        values = [part.nominal * 1e9 for part in parts.values()]
        traces.append(bars([spoken(component) for component in parts], values, colour, hover,
                           name=name, error_y=errors(above, below)))  # fmt: skip
    return chart(traces, Axis(), Axis("energy of the window", "nJ", zero=True), 340,
                 barmode="group")  # fmt: skip
