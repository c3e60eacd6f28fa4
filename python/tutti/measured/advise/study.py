"""The study of an advice: reads measurements, decides, and shows and writes the advice."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import polars as pl

from tutti.base.errors import ConfigError, capped
from tutti.formats.measurements import NOT_MEASUREMENTS, Measurements, read_measurements
from tutti.formats.measurements.allocations import (
    read_allocations,
    with_groups,
    without_groups,
)
from tutti.formats.measurements.schema import concatenated
from tutti.measured.advise.advice import Advice, advise
from tutti.measured.advise.manifest import expanded, read_manifest
from tutti.measured.advise.rules import PLAN, TARGETS_OF, target_of, write_rules
from tutti.measured.tune.files import Writer
from tutti.measured.tune.mpich import stock_for
from tutti.mpi.errors import MpiError
from tutti.mpi.provenance import provenance
from tutti.mpi.underneath import find_mpi
from tutti.study.console import remark, wrote
from tutti.study.study import Study

from .rules_view import rule_remarks
from .view import advice_view

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from pathlib import Path

    from tutti.measured.advise.advice import AdviceRequest
    from tutti.measured.advise.rules import WrittenRules
    from tutti.mpi.underneath import Mpi


def read_named(
    paths: Sequence[Path],
    names: Sequence[str],
    *,
    manifest: Path | None = None,
    allocations: Path | None = None,
    ranks: int | None,
    ranks_per_node: int | None,
    collective: str | None,
) -> Measurements:
    """Reads measurements, names the algorithms that they do not state, and reports omitted rows.

    Args:
        paths: The files, folders and patterns.
        names: Names of algorithms, `FILE=NAME` for one file; these have precedence.
        manifest: A file that lists further files, and what they do not state.
        allocations: A file with the host of each rank of jobs.
        ranks: The number of ranks of rows that do not state it.
        ranks_per_node: That of ranks per node.
        collective: The collective of files that do not state it.

    Raises:
        ConfigError: A file cannot be read.
    """
    listed, others = read_manifest(manifest) if manifest else (Measurements(), [])
    in_folders = {*expanded(path for path in paths if path.is_dir())} - {*paths}
    paths = [path for path in expanded(paths) if path not in {*others, manifest}]
    read = partial(
        read_measurements, ranks=ranks, ranks_per_node=ranks_per_node, collective=collective
    )
    measured = concatenated([*_read_each(paths, in_folders, read), listed])
    name, rows = pl.col("library_algorithm"), measured.rows
    named = sorted((_named(text, paths) for text in names), key=lambda pair: pair[0] is None)
    for path, algorithm in named:
        is_meant = name.is_null() if path is None else name.is_null() & (pl.col("file") == path)
        meant = pl.when(is_meant).then(pl.lit(algorithm)).otherwise(name)
        rows = rows.with_columns(meant.alias("library_algorithm"))
    measured = replace(measured, rows=_placed(rows, allocations) if allocations else rows)
    for line in measured.remarks():
        remark(capped(line.replace("use --ranks N", "use --measured-ranks N")))
    return measured


def _placed(rows: pl.DataFrame, allocations: Path) -> pl.DataFrame:
    """Adds the groups of the network of each rank, and reports how many rows have them."""
    hosts = read_allocations(allocations)
    placed = with_groups(rows, hosts)
    known = placed["rank_groups"].count()
    text = f"{allocations}: the network's groups of {known:,} of {rows.height:,} rows"
    if known or rows.is_empty():
        remark(text)
        return placed
    remark(f"warning: {text}: {without_groups(rows, hosts)}")
    return rows


def _read_each(
    paths: Sequence[Path],
    in_folders: Collection[Path],
    read: Callable[[Path], Measurements],
) -> list[Measurements]:
    """Returns the measurements of each file; others in folders, such as job scripts, are reported.

    Raises:
        ConfigError: A named file cannot be read, or no file of the folders has measurements.
    """
    parts, errors = [], []
    for path in paths:
        try:
            parts.append(read(path))
        except ConfigError as error:
            if path not in in_folders or error.fields["problem"] not in NOT_MEASUREMENTS:
                raise
            errors.append(error)
    if errors and not parts:
        raise errors[0]
    for other in errors:
        remark(f"{other.fields['source']}: left out: {other.fields['problem']}")
    return parts


def _named(text: str, paths: Sequence[Path]) -> tuple[str | None, str]:
    """Returns file and name of an algorithm; a name, too, may contain an equals sign.

    The last part of a path names a file, too, unless files of several folders have it.
    """
    lasts = Counter(path.name for path in paths)
    files = {path.name: str(path) for path in paths if lasts[path.name] == 1}
    files |= {str(path): str(path) for path in paths}
    path, _, name = text.rpartition("=")
    while path and path not in files:
        path, _, more = path.rpartition("=")
        name = f"{more}={name}"
    return (files[path], name) if path else (None, text)


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
    written = _written(advice, study.output, base, extend=extend) if study.output else []
    study.present(advice_view(_as_written(advice, written), measured, written))
    for number, rules in enumerate(written):
        if rules.path is not None:
            use = f"tutti mpi exec --plan {rules.path} -- ..." if rules.target == PLAN else ""
            wrote(rules.path, note=f"; use it with `{use or f'. {rules.shell}'}`", wrap=True)
        for text in rule_remarks(rules, written[:number]):
            remark(text)


def _as_written(advice: Advice, written: Sequence[WrittenRules]) -> Advice:
    """Returns an advice without gains of rules that could not be written."""
    shown = target_of(advice.scope.library, advice.scope.label or "")
    if all(files.target != shown or files.shell is not None for files in written):
        return advice
    decisions = [replace(one, ruled_us=one.default_us) for one in advice.decisions]
    return replace(advice, decisions=decisions)


def _written(
    advice: Advice, folder: Path, base: Path | None, *, extend: bool
) -> list[WrittenRules]:
    """Writes the rules of the library, and the plan."""
    scope = advice.scope
    targets = TARGETS_OF.get(scope.library, ())
    if not targets:
        library = scope.library or "an unknown library"
        remark(f"no rules written: tutti knows no rules of {library}; --library names another")
    trees = stock_for(base, None if base else _mpi()) if "mpich" in targets else None
    writer = Writer(folder, provenance(sys.argv[1:]), trees, command="tutti advise")
    per_node = scope.ranks_per_node if scope.is_placed else None
    return [
        write_rules(
            advice.predictions, target, writer, measured=scope.label or "",
            machine=scope.description, extend=extend, ranks_per_node=per_node,
        )
        for target in (*targets, PLAN)
    ]  # fmt: skip


def _mpi() -> Mpi | None:
    """Returns the MPI library of this machine, if there is one."""
    try:
        return find_mpi(None, None)
    except MpiError:
        return None
