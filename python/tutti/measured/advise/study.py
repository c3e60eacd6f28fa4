"""The study of an advice: reads measurements, decides, and shows and writes the advice."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from tutti.base.errors import capped
from tutti.formats.measurements import Measurements, read_measurements
from tutti.measured.advise.advice import Advice, advise
from tutti.measured.advise.rules import TARGETS_OF, write_rules
from tutti.measured.tune.mpich import stock_for
from tutti.mpi.errors import MpiError
from tutti.mpi.underneath import find_mpi
from tutti.study.console import remark, wrote
from tutti.study.study import Study

from .view import advice_view, rule_remarks

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tutti.measured.advise.advice import AdviceRequest
    from tutti.mpi.underneath import Mpi


def read_named(
    paths: Sequence[Path],
    names: Sequence[str],
    *,
    ranks: int | None,
    ranks_per_node: int | None,
    collective: str | None,
) -> Measurements:
    """Reads measurements, names the algorithms that they do not state, and reports omitted rows.

    Args:
        paths: The files.
        names: Names of algorithms, `FILE=NAME` for one file; these have precedence.
        ranks: The number of ranks of rows that do not state it.
        ranks_per_node: That of ranks per node.
        collective: The collective of files that do not state it.

    Raises:
        ConfigError: A file cannot be read.
    """
    measured = read_measurements(
        paths, ranks=ranks, ranks_per_node=ranks_per_node, collective=collective
    )
    name, rows = pl.col("library_algorithm"), measured.rows
    named = sorted((_named(text, paths) for text in names), key=lambda pair: pair[0] is None)
    for path, algorithm in named:
        is_meant = name.is_null() if path is None else name.is_null() & (pl.col("file") == path)
        rows = rows.with_columns(
            pl.when(is_meant).then(pl.lit(algorithm)).otherwise(name).alias("library_algorithm")
        )
    measured = replace(measured, rows=rows)
    for line in measured.remarks():
        remark(capped(line.replace("use --ranks N", "use --measured-ranks N")))
    return measured


def _named(text: str, paths: Sequence[Path]) -> tuple[str | None, str]:
    """Returns file and name of an algorithm; a name, too, may contain an equals sign."""
    files = {str(path) for path in paths}
    path, _, name = text.rpartition("=")
    while path and path not in files:
        path, _, more = path.rpartition("=")
        name = f"{more}={name}"
    return (path, name) if path else (None, text)


def advise_from(
    measured: Measurements,
    request: AdviceRequest,
    output: Path | None,
    base: Path | None,
    *,
    extend: bool = False,
) -> None:
    """Decides, shows the advice, and writes it with the rules of the library.

    Args:
        measured: The measurements.
        request: What to decide.
        output: The folder for files; None to write none.
        base: MPICH's generic.json; None for that of the library of this machine.
        extend: Whether rules also hold beyond the predicted sizes.

    Raises:
        ConfigError: No row can be used, or the request does not fit the measurements.
    """
    study = Study[Advice](output)
    advice = study.single(lambda: advise(measured.rows, request), "fitting and predicting")
    study.present(advice_view(advice, measured))
    if study.output is None:
        return
    targets = TARGETS_OF.get(advice.scope.library, ())
    if not targets:
        library = advice.scope.library or "an unknown library"
        remark(f"no rules written: tutti knows no rules of {library}; --library names another")
    trees = stock_for(base, None if base else _mpi()) if "mpich" in targets else None
    for target in targets:
        rules = write_rules(
            advice.predictions, target, study.output, stock=trees,
            measured=advice.scope.label or "", extend=extend,
        )  # fmt: skip
        if rules.path is not None:
            wrote(rules.path, note=f"; use it with `. {rules.shell}`", wrap=True)
        for text in rule_remarks(rules):
            remark(text)


def _mpi() -> Mpi | None:
    """Returns the MPI library of this machine, if there is one."""
    try:
        return find_mpi(None, None)
    except MpiError:
        return None
