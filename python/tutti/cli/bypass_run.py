"""`tutti bypass run` and `endpoints`: times on package networks and SMART meshes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from tutti.base.files.mistakes import mistake, shown
from tutti.base.units import Size
from tutti.bypass.endpoints import ENDPOINTS, NETWORKS, all_reduces, memory_sweep, steps
from tutti.bypass.study import compare_endpoints, compare_links
from tutti.cli import options
from tutti.cli.bypass_options import Copies, Links, Target
from tutti.cli.grouped import grouped

if TYPE_CHECKING:
    from collections.abc import Iterable


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
    chiplet: Annotated[
        list[str] | None,
        typer.Option("--chiplet-rate", metavar="NODE=RATE",
                     help="Rate of the ports of a slower chiplet; may be repeated."),
    ] = None,
    links: Links,
    verify: options.Verify = True,
) -> None:  # fmt: skip
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
    compare_links(schedule, mesh, sizes, copies=copies, switch=switch, rate=links.rate,
                  latency=links.latency, verify=verify, chiplets=_rates(chiplet or ()))  # fmt: skip


def _rates(texts: Iterable[str]) -> dict[int, str]:
    """Returns the rates of chiplets from texts such as `5=34 GB/s`."""
    found = {}
    for text in texts:
        node, separator, rate = text.partition("=")
        if not separator or not node.strip().isdecimal():
            raise mistake(
                "is not the rate of a chiplet", source="--chiplet-rate", value=shown(text),
                expected="a node and a rate, such as `5=34 GB/s`",
            )  # fmt: skip
        found[int(node)] = rate
    return found


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
