"""`tutti noc explore`: a design space of networks on chip, with its Pareto front."""

from __future__ import annotations

from tutti.base.files.mistakes import mistake
from tutti.cli.grouped import grouped
from tutti.cli.noc_options import NetworkOptions, RunOptions, SpaceOptions, network, varied
from tutti.cli.sweep import WorkerOptions
from tutti.study.console import remark

_LOAD = 0.1
"""The load at which designs are compared if none is given."""


@grouped
def explore_(
    definition: NetworkOptions, at: RunOptions, space: SpaceOptions, by: WorkerOptions
) -> None:
    """Explore a design space: Pareto front of saturation, zero-load latency, area and energy.

    Each combination of the values of --vary is a design. The command searches the saturation load
    of each from loads near its ideal capacity, and measures latency and energy at one load. Designs
    that are invalid or can deadlock are listed with the reason. Area and energy of routers require
    a table [energy]. Meshes with single-cycle multi-hop links (--design, or a table [mesh]) require
    a load (--rate). Writes results.parquet, results.csv and report.html into the output folder. Run
    an interrupted command again to simulate only what is missing. `tutti sweep` does the same with
    a sweep file of a `noc`.

    \b
    Examples:
      tutti noc explore --mesh 4x4 --vary router.vcs=2,4 --vary router.buffer=4,8
      tutti noc explore noc.toml --vary topology.build=mesh:8x8,torus:8x8 \\
        --vary topology.routing=dimension_order,minimal_adaptive --vary router.vcs=4,8
      tutti noc explore noc.toml --vary router.vcs=2,4 --vary traffic.rate=0.1,0.2 \\
        --executor dask
      tutti noc explore --mesh 4x4 --design smart_1d --traffic uniform --rate 0.1 \\
        --vary mesh.hpc_max=1,3 --set measure.seeds=2 --set measure.measure=1000
    """
    from tutti.sweeps.executors import crew, prepare

    prepare(by.executor.value, by.dask_address)

    from tutti.sweeps import study
    from tutti.sweeps.files import resolve_sweep

    if not at.files:
        raise mistake("an exploration writes each result, from which it resumes",
                      source="--no-files", expected="--out FOLDER for another folder")  # fmt: skip
    values = varied(space)
    tables = network(definition, at, values.keys())
    if not tables.is_smart and not tables.has_rate and "traffic.rate" not in values:
        remark(f"no load is given (--rate): designs are compared at {_LOAD} flits per node and "
               "cycle")  # fmt: skip
        tables = tables.at(_LOAD)
    base = tables.tables
    read = resolve_sweep(
        {"title": base.get("title", ""), "noc": base, "sweep": {"grid": values},
         "output": base.get("output", "out/noc"), "tolerance": space.tolerance},
        source=tables.source, folder=tables.folder,
    )  # fmt: skip
    workers = crew(by.executor.value, by.workers, by.dask_address)
    study.run(read, workers, by.cache or read.output / "cache", is_fresh=by.fresh,
              report=definition.report, command="tutti noc explore")  # fmt: skip
