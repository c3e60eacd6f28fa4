"""`tutti calibrate`: parameters of network models from measurements, as a platform file."""

from __future__ import annotations

from tutti.base.files.extras import check_extra
from tutti.base.files.mistakes import mistake
from tutti.base.ranges import size_bytes
from tutti.cli.calibrate_options import (
    CalibrationInput,
    Fitting,
    destination,
    refuse_with_joint,
)
from tutti.cli.grouped import grouped
from tutti.measured.calibrate import MODELS, model_named
from tutti.measured.calibrate.sources import Sources
from tutti.measured.calibrate.study import calibrate_jointly, calibrate_models, validate
from tutti.mpi.underneath import find_mpi
from tutti.study.files import folder


@grouped
def calibrate(measured: CalibrationInput, fitting: Fitting) -> None:
    """Fit the parameters of network models to measurements, and write a platform file.

    Postal, pipelining postal, LogGP and LogfP are fitted to benchmark files or to a live run, with
    95 % confidence intervals. A model is omitted from the platform if the data do not determine one
    of its parameters; the output states what to measure for it. Lines with wrong results are
    discarded and reported.

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
    """
    models = [model_named(name) for name in fitting.model or MODELS]
    files, ranks, collective = measured.files or [], measured.ranks, measured.collective
    if not files and not measured.live:
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
    sources = Sources()
    # The file of --against may be the one that needs the number of ranks.
    sources.add_files(files, ranks=ranks, collective=collective, algorithm=measured.algorithm,
                      window=measured.window, agree=fitting.against is None)  # fmt: skip
    if measured.live:
        mpi = find_mpi(measured.mpicc, measured.launcher)
        sources.add_live(mpi, measured.samples, measured.launcher_option or [], to)
    first = size_bytes(measured.begin, "-b", 0)
    last = size_bytes(measured.end, "-e", 1 << 62)
    fits, machine = calibrate_models(
        models, sources, sources.provenance(name, measured.machine), to,
        sizes=range(first, last + 1), strict=bool(fitting.model),
    )  # fmt: skip
    if fitting.against is not None:
        validate(fitting.against, fits, machine, to, ranks=ranks, collective=collective)
