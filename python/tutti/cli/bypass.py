"""`tutti bypass`: maps algorithms to chiplet meshes with bypass links, and draws the result."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tutti.bypass import flows_of, map_flows
from tutti.bypass.improve import Improved, improve
from tutti.bypass.network import BypassConfiguration
from tutti.bypass.view.mapping import mapping_view, search_view
from tutti.cli import options
from tutti.cli.bypass_options import Copies, Output, Rates, Target
from tutti.cli.grouped import grouped
from tutti.study.study import Study, read

app = options.group("Map collectives to chiplet networks with bypass links.")


@app.command("map")
@grouped
def map_(
    target: Target,
    *,
    copies: Copies = 1,
    method: Annotated[str, typer.Option("--method", help="exact, local, greedy or auto.")] = "auto",
    limit: Annotated[
        str, typer.Option("--time-limit", help="Time limit of the solver (its deterministic time).")
    ] = "20 s",
    fill: Annotated[
        bool,
        typer.Option("--fill/--no-fill", help="Use idle wires and ports for more links."),
    ] = True,
    rates: Rates,
    output: Output,
) -> None:
    """Find the configuration that dedicates links to the most flows of an algorithm.

    Lists dedicated, shared and unplaced flows. --out writes a platform for
    `tutti run FILE --platform PLATFORM`. With rates of chiplets or links, the
    links are in a JSON file next to it.

    \b
    Examples:
      tutti bypass map double_binary_tree:nccl --mesh 4x4
      tutti bypass map mirrored_ring:4x4,bidirectional --draw out/rings.svg
      tutti bypass map ring:8x8 --mesh 8x8 --copies 2 --out out/ring.toml
      tutti bypass map double_binary_tree:nccl --muxes own --method greedy
      tutti bypass map ring:4x4 --chiplet-rate '5=34 GB/s' --out out/slow.toml
    """
    rates.check(output)
    mesh, schedule = target.laid_out()
    mapping = read(
        "mapping",
        lambda: map_flows(mesh, flows_of(schedule) * copies, method, limit, fill=fill),  # type: ignore[arg-type] # it refuses others
    )
    Study().present(mapping_view(mapping, target.title))
    output.write(mapping, rates)


@app.command("search")
@grouped
def search_(
    target: Target,
    *,
    payload: Annotated[
        str,
        typer.Option(
            "--size", "-s", metavar="SIZE", help="Size of the collective whose time is minimised."
        ),
    ] = "64 KiB",
    trials: Annotated[
        int, typer.Option("--trials", min=2, help="Number of configurations to simulate.")
    ] = 200,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the random order.")] = 0,
    output: Output,
) -> None:
    """Search for a configuration that is faster than the one of `map`.

    Places the flows in random orders and simulates each configuration with packets of 256 B. The
    same seed gives the same result.

    \b
    Examples:
      tutti bypass search double_binary_tree:nccl --trials 50
      tutti bypass search double_binary_tree:nccl --mesh 8x8 --trials 20 \\
        --out out/found.toml
    """
    mesh, schedule = target.laid_out()
    study = Study[Improved]()
    searches, _ = study.several(
        "searching",
        lambda done: improve(mesh, schedule, size=payload, rate=output.rate,
                             latency=output.latency, trials=trials, seed=seed, done=done),
        planned=trials,
    )  # fmt: skip
    if searches:
        study.present(search_view(searches[-1], target.title, payload))
        output.write(searches[-1].best)
    study.end(len(searches), trials)


@app.command("draw")
def draw_(
    notation: Annotated[
        str,
        typer.Argument(metavar="NOTATION", help="A configuration, such as 4x4:mesh,0=>3.",
                       show_default=False),
    ],
    to: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="Output file: .svg, .png or .pdf.")
    ] = Path("out/bypass.svg"),
) -> None:  # fmt: skip
    """Draw a configuration of bypass links.

    \b
    Examples:
      tutti bypass draw 4x4:mesh,0=3,12=15
      tutti bypass draw '4x4,wires=2,muxes=axis:0-1,0=>3@1' -o out/two.svg
    """
    Study().write(to, BypassConfiguration.parse(notation).draw)
