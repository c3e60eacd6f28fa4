"""`tutti nccl`: the algorithms and protocols that NCCL chooses, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tutti.base.files.mistakes import mistake, shown
from tutti.base.ranges import size_bytes
from tutti.cli import options
from tutti.nccl import Settings, known_versions
from tutti.nccl.presets import partial_system, preset_names, preset_of, system
from tutti.nccl.rccl import rccl_version
from tutti.nccl.versions import version
from tutti.nccl.view.choices import choices_view, system_view
from tutti.study.console import remark
from tutti.study.study import Study

if TYPE_CHECKING:
    from tutti.nccl.system import NcclSystem

app = options.group("Explain the algorithms and protocols that NCCL chooses.")


@app.command("systems")
def systems() -> None:
    """List the systems whose graphs tutti knows, with their sources.

    \b
    Examples:
      tutti nccl systems
    """
    for name in preset_names():
        Study().present(system_view(name, preset_of(name)))


@app.command("explain")
def explain(
    name: Annotated[
        str, typer.Option("--system", metavar="NAME", help="System of `tutti nccl systems`.")
    ] = "dgx_h100",
    nodes: Annotated[int, typer.Option("--nodes", min=1, help="Number of nodes.")] = 1,
    width: Annotated[
        int | None,
        typer.Option(
            "--gpus-per-node", min=1, metavar="N", help="GPUs of each node; default: all."
        ),
    ] = None,
    collective: Annotated[
        str,
        typer.Option(
            "--collective", "-c", help="Collective, such as all_reduce or reduce_scatter."
        ),
    ] = "all_reduce",
    size: Annotated[
        str | None,
        typer.Option("--size", "-s", metavar="SIZE", help="Size: one. Default: 64MiB."),
    ] = None,
    begin: options.Begin = None,
    end: options.End = None,
    factor: options.Factor = None,
    nccl: Annotated[
        str | None,
        typer.Option(
            "--nccl",
            metavar="VERSION",
            help="Version of NCCL or RCCL, such as 2.27; default: latest.",
        ),
    ] = None,
    algo: Annotated[str, typer.Option("--algo", help="NCCL_ALGO, such as ^Ring.")] = "",
    proto: Annotated[str, typer.Option("--proto", help="NCCL_PROTO, such as LL,Simple.")] = "",
    variables: Annotated[
        list[str] | None,
        typer.Option(
            "--env",
            metavar="NAME=VALUE",
            help="An environment variable of NCCL, such as NCCL_MIN_NCHANNELS=8; may be repeated.",
        ),
    ] = None,
) -> None:
    """Show the time that NCCL predicts for each algorithm and protocol, and which it chooses.

    With -b, -e or -f, shows the choice for each size, by default from 8 B to 1 GiB. Sizes are those
    of nccl-tests: the larger of a rank's send and receive buffers.

    \b
    Examples:
      tutti nccl explain --system dgx_h100 --nodes 2 --size 64MiB
      tutti nccl explain --nodes 4 -b 8 -e 1GiB --nccl 2.20
      tutti nccl explain --nodes 2 --algo ^NVLSTree \\
        --env NCCL_MAX_NCHANNELS=8 --json
    """
    settings = Settings.of_assignments(variables or (), algo=algo, proto=proto)
    gfx = preset_of(name).gfx
    nccl = rccl_version(gfx, nccl) if gfx else version(nccl or known_versions()[-1]).name
    if begin is None and end is None and factor is None:
        sizes = [size_bytes(size or "64MiB", "--size")]
    elif size is None:
        sizes = options.growing_sizes(begin or "8", end or "1GiB", factor, least=0)
    else:
        raise mistake("excludes -b, -e and -f", source="--size", value=shown(size),
                      expected="one size, or a range of sizes")  # fmt: skip
    Study().present(
        choices_view(_system(name, nodes, width, nccl), collective, sizes, nccl, settings)
    )


def _system(name: str, nodes: int, width: int | None, nccl: str) -> NcclSystem:
    """Returns a system with all or some GPUs of each node; remarks graphs that are inferred."""
    most = preset_of(name).gpus_per_node
    if width is None:
        return system(name, nodes)
    if width > most:
        raise mistake(f"exceeds a node of {name}", source="--gpus-per-node", value=str(width),
                      expected=f"1 to {most}")  # fmt: skip
    from tutti.nccl.library import NcclLibrary

    found = partial_system(name, nodes, width)
    group = [node * most + gpu for node in range(nodes) for gpu in range(width)]
    if text := NcclLibrary(name, nccl, name=found.library.lower()).note(group):
        remark(text)
    return found
