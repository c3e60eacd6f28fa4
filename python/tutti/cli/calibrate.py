"""`tutti calibrate`: parameters of network models from measurements, as a platform file."""

from __future__ import annotations

from tutti.base.files.extras import check_extra
from tutti.base.files.mistakes import mistake
from tutti.base.ranges import size_bytes
from tutti.cli.calibrate_options import (
    CalibrationInput,
    Fitting,
    destination,
    nodes_of,
    nodes_sources,
    refuse_with_joint,
    sources_of,
)
from tutti.cli.grouped import grouped
from tutti.measured.calibrate import MODELS, model_named
from tutti.measured.calibrate.study import (
    calibrate_jointly,
    calibrate_models,
    calibrate_nodes,
    validate,
)
from tutti.study.files import folder


@grouped
def calibrate(measured: CalibrationInput, fitting: Fitting) -> None:
    """Fit the parameters of network models to measurements, and write a platform file.

    Postal, pipelining postal, LogGP and LogfP are fitted to benchmark files or to a live run, with
    95 % confidence intervals. A model is omitted from the platform if the data do not determine one
    of its parameters; the output states what to measure for it. Lines with wrong results are
    discarded and reported.

    With --ranks-per-node, the platform has nodes: models are fitted within a node and between
    nodes, and links of its topology have the difference. Logs that echo the launcher's command
    state their place; --between names other files between nodes.

    With --joint, one model is fitted to all algorithms, sizes and node counts of the files, as
    `tutti advise` does. It is cross-validated over node counts, and its parameters are printed. The
    platform file has the protocols model that is nearest to the measurements.

    Writes NAME.toml for --platform, calibration.parquet and .csv with every point and the
    predictions, and fit.svg. The platform states whether distance was emulated.

    With --against and the output of a benchmark of a library's collectives, the fastest schedule
    of the fitted model is printed for each size, and library.csv has both times.

    \b
    Examples:
      tutti calibrate --live --samples 3
      tutti calibrate examples/19_calibrate_and_tune/osu_latency.txt \\
        examples/19_calibrate_and_tune/osu_bw.txt --ranks 64 \\
        --against examples/19_calibrate_and_tune/osu_allreduce.txt
      tutti calibrate examples/19_calibrate_and_tune/osu_latency.txt \\
        examples/19_calibrate_and_tune/osu_bw.txt --name cluster
      tutti calibrate examples/19_calibrate_and_tune/osu_allreduce.txt \\
        --ranks 64 -a recursive_doubling --model postal
      tutti calibrate examples/22_advise/cluster.csv --joint
      tutti calibrate examples/27_nodes/within.txt examples/27_nodes/between.txt \\
        --ranks-per-node 8 --name cluster
    """
    models = [model_named(name) for name in fitting.model or MODELS]
    files, ranks, collective = measured.files or [], measured.ranks, measured.collective
    nodes = nodes_of(measured, fitting)
    if not files and not measured.live and not measured.between:
        raise mistake("no data to fit", source="tutti calibrate",
                      expected="files of benchmarks, or --live",
                      hint="`tutti calibrate --live` measures between two ranks of this machine",
        )  # fmt: skip
    to, name = destination(fitting)
    check_extra("calibrate")
    folder(to, extra="reports")
    if fitting.joint:
        refuse_with_joint(measured, fitting)
        calibrate_jointly(files, to, name, ranks=ranks, collective=collective)
        return
    first = size_bytes(measured.begin, "-b", 0)
    sizes = range(first, size_bytes(measured.end, "-e", 1 << 62) + 1)
    strict, per_node = bool(fitting.model), measured.ranks_per_node
    # The file of --against may be the one that needs the number of ranks.
    agree = fitting.against is None
    if per_node is not None:
        places = nodes_sources(measured, to, agree=agree)
        origin = (places[0] + places[1]).provenance(name, measured.machine)
        fits, machine = calibrate_nodes(models, places, origin, to, sizes=sizes, strict=strict,
                                        per_node=per_node, nodes=nodes)  # fmt: skip
    else:
        sources = sources_of(measured, files, to, agree=agree)
        origin = sources.provenance(name, measured.machine)
        fits, machine = calibrate_models(models, sources, origin, to, sizes=sizes, strict=strict)
    if fitting.against is not None:
        validate(fitting.against, fits, machine, to, ranks=ranks, collective=collective)
