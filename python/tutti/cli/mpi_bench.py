"""`tutti mpi bench`: collectives and multicasts over MPI, with the prediction of a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tutti.base.files.extras import check_extra
from tutti.base.ranges import RANK_NOTATION, expanded_ranks
from tutti.cli import mpi_options, options
from tutti.mpi.bench import Benchmark
from tutti.mpi.bench_job import Settings
from tutti.mpi.bench_study import bench_collectives, bench_multicasts, prepared
from tutti.platforms import platform as platform_named
from tutti.schedules.mpi_names import collective_name

What = Annotated[
    str, typer.Argument(metavar="WHAT", help="A collective, such as all_reduce, or multicast.")
]
Smallest = Annotated[str, typer.Option("-b", "--begin", metavar="SIZE", help="Smallest size.")]
End = Annotated[
    str | None, typer.Option("-e", "--end", metavar="SIZE", help="Largest size; default: -b.")
]
Factor = Annotated[
    int, typer.Option("-f", "--factor", min=2, help="Factor between consecutive sizes.")
]
Blocks = Annotated[
    int, typer.Option("-n", "--repetitions", min=1,
        help="Number of repetitions: blocks per case, or multicasts.")
]  # fmt: skip
Warmup = Annotated[
    int, typer.Option("-w", "--warmup", min=0, help="Warm-up blocks, which are not recorded.")
]
Check = Annotated[int, typer.Option("--check", min=0, max=1, help="Check the results.")]
Operation = Annotated[str, typer.Option("--op", help="Reduction: sum, prod, min or max.")]
Each = Annotated[int, typer.Option("--each", min=1, help="Back-to-back collectives in a block.")]
Align = Annotated[
    bool,
    typer.Option("--align/--no-align", help="Start each block at a time that all ranks agree on."),
]
Root = Annotated[int, typer.Option("--root", min=0, help="Root of a rooted collective.")]
Ranks = Annotated[
    str, typer.Option("--ranks", "-r", help=f"Rank counts: {RANK_NOTATION}; one run each.")
]
Algorithms = Annotated[
    list[str] | None, typer.Option("--algorithm", "-a", metavar="NAME[:ARG]",
        help="Algorithm; own; call:NAME[:ARG]; every; every:40. May be repeated.")
]  # fmt: skip
Platform = Annotated[
    str | None,
    typer.Option("--platform", "-p", help="Name or file of a platform that predicts the times."),
]
Peers = Annotated[
    int, typer.Option("--peers", min=1, help="Maximum peers.", rich_help_panel="Multicasts")
]
Out = Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="Output folder.")]
_OF_COLLECTIVES = (
    *("smallest", "end", "factor", "check", "operation", "datatype", "each", "align", "root"),
    *("ranks", "algorithm", "platform"),
)
"""Parameters without effect on multicasts."""


def bench(
    context: typer.Context,
    what: What = "all_reduce",
    smallest: Smallest = "8",
    end: End = None,
    factor: Factor = 2,
    blocks: Blocks = 250,
    warmup: Warmup = 2,
    check: Check = 1,
    operation: Operation = "sum",
    datatype: options.Datatype = "float32",
    each: Each = 10,
    align: Align = True,
    root: Root = 0,
    ranks: Ranks = "2",
    algorithm: Algorithms = None,
    emulate: mpi_options.Emulate = None,
    platform: Platform = None,
    peers: Peers = 16,
    mpicc: mpi_options.Mpicc = None,
    launcher: mpi_options.Launcher = None,
    launcher_option: mpi_options.LauncherOptions = None,
    to: Out = Path("out/mpi_bench"),
) -> None:
    """Measure collectives or multicasts over MPI, and check the results in the same run.

    A block is a batch of back-to-back calls, which all ranks start together; candidates take turns.
    `own` is the native collective, other names are schedules run by libtutti_mpi, and call:NAME is
    an application's call that libtutti_mpi intercepts. `every` is each schedule of recursive
    multiplying, every:40 at most 40 of them. With --emulate a model delays messages between ranks
    of one host, and every output states it. Writes results.parquet, with a row for each block.

    \b
    Examples:
      tutti mpi bench all_reduce -b 8 -e 32K -f 8 -n 20 -a own -a ring
      tutti mpi bench all_reduce --ranks 4 -a every --each 1 -n 5 \\
        --emulate 'pipelining_postal:alpha_p=4 ms,alpha_r=1 ms'
      tutti mpi bench multicast --peers 3 -n 20
    """
    check_extra("reports")
    settings = Settings(
        blocks=blocks, each=each, warmup=warmup, check=bool(check), aligned=align,
        distance=mpi_options.distance(emulate), options=launcher_option or [],
    )  # fmt: skip
    if what == "multicast":
        options.refuse(
            context, *_OF_COLLECTIVES, because="measures messages of 8 B to one or more peers"
        )
        bench_multicasts(prepared(mpicc, launcher, settings), peers, settings, to)
        return
    options.refuse(context, "peers", because="measures collectives, not multicasts")
    what = collective_name(what)
    sizes = options.growing_sizes(smallest, end or smallest, factor, least=0)
    element = options.datatype(datatype) or "float32"
    benchmarks = [Benchmark(what, count, sizes, element, operation, root)
                  for count in expanded_ranks(ranks)]  # fmt: skip
    emulated = settings.distance.platform if settings.distance else None
    bench_collectives(
        prepared(mpicc, launcher, settings), benchmarks,
        algorithm or ["recursive_doubling" if what == "all_reduce" else "direct"], settings,
        machine=platform_named(platform) if platform else emulated, output=to,
    )  # fmt: skip
