"""`tutti noc`: flit-level simulation of networks, at one load or several."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tutti.base.files.mistakes import mistake
from tutti.cli import options
from tutti.cli.grouped import grouped
from tutti.cli.loads import load_values
from tutti.cli.noc_options import NetworkOptions, RunOptions, SweepOptions, network
from tutti.networks.definition import NetworkTables
from tutti.networks.study import run_load, sweep_loads
from tutti.study.console import remark
from tutti.study.study import read

if TYPE_CHECKING:
    from tutti.networks.experiment import Experiment

app = options.group("Simulate networks flit by flit: latency against offered load, and saturation.")

_PLACEHOLDER = 0.05
"""The rate of a file without one, which the loads of a sweep replace."""


@app.command("run")
@grouped
def run_(definition: NetworkOptions, at: RunOptions) -> None:
    """Run a network at one load: latency, throughput, utilisation, occupancy and causes of stalls.

    Writes report.html, results.parquet, channels.parquet and occupancy.parquet into the output
    folder, and energy.parquet if the file names a technology; with --no-files, none of them, which
    halves the time of a short run. If the network saturates, latency is
    undefined. If it deadlocks, nothing is measured. Both exit with code 3. A file with a table
    [mesh] describes a single-cycle multi-hop mesh.

    Options override keys of the file. Without a file, they define the network, and the output names
    the defaults. If neither gives a load, the command runs `tutti noc sweep`.

    \b
    Examples:
      tutti noc run noc.toml
      tutti noc run --mesh 8x8 --rate 0.2
      tutti noc run --torus 4x4x4 --rate 0.1 --traffic tornado --packet 4 \\
        --vcs 8 --buffer 4 --set router.routing_delay=1
      tutti noc run --mesh 8x8 --design sfo_greedy --rate 0.004
      tutti noc run noc.toml --set traffic.rate=0.3 --set router.vcs=8 -o out
      tutti noc run noc.toml --no-files
    """
    tables = network(definition, at, files=at.files)
    if definition.file is None and not tables.has_rate:
        remark("no load is given (--rate): sweeps the load")
        _sweep(tables, SweepOptions(files=at.files), report=definition.report)
        return
    experiment = _resolved(tables, files=at.files)
    run_load(experiment, tables.name, report=definition.report)


@app.command("sweep")
@grouped
def sweep_(definition: NetworkOptions, of: SweepOptions) -> None:
    """Run a network at several loads in parallel: latency against load, and the saturation load.

    Writes results.parquet, results.csv, latency.svg and report.html into the output folder.
    The loads replace the rate in the file; traffic classes keep their proportions. With a table
    [mesh], loads are rates of the first traffic. A sweep that deadlocks at every load exits with
    code 3. Options override keys of the file, or define the network without a file.

    \b
    Examples:
      tutti noc sweep noc.toml
      tutti noc sweep --mesh 4x4 --traffic transpose --loads 0.1,0.2 --no-saturation
      tutti noc sweep noc.toml --loads 0.05:0.45:0.05 \\
        --set topology.routing=valiant
      tutti noc sweep noc.toml --loads 0.1,0.2 --no-saturation
    """
    _sweep(network(definition, files=of.files), of, report=definition.report)


def _resolved(tables: NetworkTables, *, files: bool) -> Experiment[Any, Any, Any, Any]:
    experiment = read("building the network", tables.resolve)
    return experiment if files else replace(experiment, output=None)


def _sweep(tables: NetworkTables, of: SweepOptions, *, report: bool) -> None:
    loads = load_values(of.loads) if of.loads else None
    if of.tolerance is not None and (not of.tolerance > 0 or not math.isfinite(of.tolerance)):
        raise mistake("invalid tolerance", source="--tolerance", value=str(of.tolerance),
                      expected="a number above 0, such as 0.01")  # fmt: skip
    tables = tables.at(loads[0] if loads else _PLACEHOLDER)
    experiment = _resolved(tables, files=of.files)
    sweep_loads(
        experiment, tables.name, loads, search=of.search, tolerance=of.tolerance,
        threads=of.threads, report=report,
    )  # fmt: skip
