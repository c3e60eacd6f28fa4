"""`tutti bypass endpoints`: endpoint models on package networks and SMART meshes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from tutti.base.units import Size
from tutti.bypass.endpoints import ENDPOINTS, NETWORKS, all_reduces, memory_sweep, steps
from tutti.study.console import out, record_table, remark
from tutti.study.progress import Progress
from tutti.view.quantity import format_size, format_time

if TYPE_CHECKING:
    import polars as pl
    from rich.console import JustifyMethod


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
        typer.Option(
            "--size", "-s", metavar="SIZE", help="Size of the all_reduce; may be repeated."
        ),
    ] = None,
    memory: Annotated[
        list[str] | None,
        typer.Option(
            "--memory-rate",
            help="Memory bandwidth of communication, in place of the endpoints; may be repeated.",
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--workload",
            metavar="NAME[:ARG]",
            help="Model of `tutti train list` to train, instead.",
        ),
    ] = None,
    batch: Annotated[int, typer.Option("--batch", min=1, help="Samples per NPU.")] = 2,
) -> None:
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
    with Progress("simulating"):
        if model is not None:
            frame = steps(networks, kinds, model=model, batch=batch, side=side)
        elif memory is not None:
            frame = memory_sweep(networks, memory, sizes[-1], side=side)
        else:
            frame = all_reduces(networks, kinds, sizes, side=side)
    record_table("results", frame)
    out().print(_table(frame))
    remark("gain: time on the mesh over this time; docs/guides/endpoints-on-packages.md")


_SHOWN = {
    "bytes": ("size", format_size),
    "time_ps": ("time", format_time),
    "compute_ps": ("compute", format_time),
    "exposed_ps": ("exposed", format_time),
    "energy_j": ("energy", lambda joules: f"{1e6 * joules:.3g} uJ"),
    "gain": ("gain", lambda gain: "-" if gain is None else f"{gain:.2f}"),
}
"""The heading of each numeric column, and its format."""
_JSON_ONLY = ("bound_ps", "read_bytes")


def _table(frame: pl.DataFrame) -> Table:
    frame = frame.drop(_JSON_ONLY, strict=False)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in frame.columns:
        heading, _ = _SHOWN.get(name, (name, str))
        is_number, wraps = name in _SHOWN, name == "algorithm"
        justify: JustifyMethod = "right" if is_number else "left"
        table.add_column(heading, justify=justify, no_wrap=not wraps, overflow="fold")
    formats = [_SHOWN.get(name, (name, str))[1] for name in frame.columns]
    for row in frame.iter_rows():
        table.add_row(*(show(value) for show, value in zip(formats, row, strict=True)))
    return table
