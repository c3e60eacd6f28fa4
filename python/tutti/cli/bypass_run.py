"""`tutti bypass run` and `endpoints`: times on package networks and SMART meshes."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from tutti.base.units import Size
from tutti.bypass.endpoints import ENDPOINTS, NETWORKS, all_reduces, memory_sweep, steps
from tutti.bypass.study import compare_endpoints, compare_links
from tutti.cli import options
from tutti.cli.bypass_options import Chiplets, Copies, Links, Target, chiplet_rates
from tutti.cli.grouped import grouped


@grouped
def run(
    target: Target,
    *,
    payload: Annotated[
        list[str] | None,
        typer.Option(
            "--size", "-s", metavar="SIZE", help="Size of the collective; may be repeated."
        ),
    ] = None,
    copies: Copies = 1,
    switch: Annotated[
        str, typer.Option("--switch", help="Time to reconfigure the mesh.")
    ] = "100 ns",
    chiplet: Chiplets = None,
    links: Links,
    verify: options.Verify = True,
) -> None:
    """Time an algorithm packet by packet, on the plain mesh and with bypass links.

    The links are configured once. If the schedule has phases, the table also shows the time with
    links reconfigured for each phase: all ranks then wait for the last one and for the switch.

    \b
    Examples:
      tutti bypass run double_binary_tree:nccl,phased,4 -s 64KiB -s 2MiB
      tutti bypass run ring:4x4 --copies 2
      tutti bypass run ring:6x4 --mesh 6x4 --chiplet-rate '5=34 GB/s'
    """
    sizes = [Size.of_any(text) for text in payload or ("16 KiB", "1 MiB")]
    mesh, schedule = target.laid_out()
    rates = chiplet_rates(chiplet or ())
    compare_links(schedule, mesh, sizes, copies=copies, switch=switch, rate=links.rate,
                  latency=links.latency, verify=verify, chiplets=rates)  # fmt: skip


def endpoints(
    side: Annotated[int, typer.Option("--side", min=2, max=8, help="Chiplets per side.")] = 4,
    network: Annotated[
        list[str] | None,
        typer.Option("--network", help="Network; may be repeated. Default: all six."),
    ] = None,
    endpoint: Annotated[
        list[str] | None,
        typer.Option("--endpoint", help="Endpoint; may be repeated. Default: all four."),
    ] = None,
    payload: Annotated[
        list[str] | None,
        typer.Option("--size", "-s", metavar="SIZE",
                     help="Size of the all_reduce; may be repeated."),
    ] = None,
    memory: Annotated[
        list[str] | None,
        typer.Option("--memory-rate", help="Memory bandwidth of communication, in place of the "
                     "endpoints; may be repeated."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option("--workload", metavar="NAME[:ARG]",
                     help="Model of `tutti train list` to train, instead."),
    ] = None,
    batch: Annotated[int, typer.Option("--batch", min=1, help="Samples per NPU.")] = 2,
) -> None:  # fmt: skip
    """Compare endpoint models on package networks and on SMART meshes.

    Rows are networks: mesh, adapt_noc, flattened_butterfly and aries (bypass links, configured
    once), and smart_1 and smart_8 (1 and 8 hops per cycle, multicast and reduction in routers).
    Each uses its fastest algorithm. --memory-rate varies the memory bandwidth of the baseline
    endpoint.

    \b
    Examples:
      tutti bypass endpoints -s 64KiB --network mesh --network aries
      tutti bypass endpoints -s 1MiB --network mesh \\
        --memory-rate '64 GB/s' --memory-rate '450 GB/s'
      tutti bypass endpoints --workload resnet50 --side 2 --network mesh
    """
    networks, kinds = network or list(NETWORKS), endpoint or list(ENDPOINTS)
    sizes = [Size.of_any(size) for size in payload or ["64 KiB", "1 MiB"]]
    if model is not None:
        measure = partial(steps, networks, kinds, model=model, batch=batch, side=side)
        compare_endpoints(measure, len(networks) * len(kinds))
    elif memory is not None:
        measure = partial(memory_sweep, networks, memory, sizes[-1], side=side)
        compare_endpoints(measure, len(networks) * len(memory))
    else:
        measure = partial(all_reduces, networks, kinds, sizes, side=side)
        compare_endpoints(measure, len(networks) * len(kinds) * len(sizes))
