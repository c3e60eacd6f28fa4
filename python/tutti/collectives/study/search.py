"""The study of a search: the fastest all_reduce schedules at one size, or at each size."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import polars as pl

from tutti.base.files.mistakes import mistake
from tutti.collectives import schedule_search, size_ranges
from tutti.collectives.view.search import family, ranking_view, thresholds_view
from tutti.platforms.conditions import Conditions
from tutti.study.console import remark
from tutti.study.progress import Progress
from tutti.study.study import Study
from tutti.view.view import Data, Fact, View

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tutti.base.units import Size
    from tutti.collectives.files.resolve import Experiment
    from tutti.collectives.schedule_search import SearchResult


def search(
    experiment: Experiment,
    kinds: Sequence[str],
    *,
    top: int = 10,
    exhaustive: bool = False,
    threads: int = 0,
    verify: bool = True,
) -> None:
    """Searches the schedules of an experiment at each rank count, and shows and writes them.

    After Ctrl-C, the finished rank counts are written.

    Args:
        experiment: The experiment; with several sizes, each schedule is shown with its sizes.
        kinds: The kinds of schedules to search.
        top: The number of rows of a ranking.
        exhaustive: Whether to score every schedule.
        threads: The number of threads; 0 for one per core.
        verify: Whether to verify the best schedules.

    Raises:
        ConfigError: The collective cannot be searched, or the output folder cannot be created.
        SimulationError: Every schedule exceeds the range of time.
        Exit: Ctrl-C interrupted the search.
    """
    _check(experiment, exhaustive=exhaustive)
    study: Study[SearchResult] = Study(experiment.output, "rank count", extra=None)
    frames = []
    try:
        for ranks in experiment.ranks:
            if len(experiment.sizes) == 1:
                settings = {"exhaustive": exhaustive, "threads": threads, "verify": verify}
                frames.append(_ranking(experiment, ranks, kinds, top, settings))
            else:
                frames.append(_thresholds(experiment, ranks, kinds, verify))
    except KeyboardInterrupt:
        study.is_interrupted = True
    if frames:
        _present(study, experiment, pl.concat(frames), kinds)
    study.end(len(frames), len(experiment.ranks))


def _present(
    study: Study[SearchResult], experiment: Experiment, frame: pl.DataFrame, kinds: Sequence[str]
) -> None:
    """Records and writes the schedules of all finished searches."""
    if "other" not in kinds:
        remark(f"searched {family(kinds)} only; --kind other searches other algorithms")
    values = {
        "collective": experiment.collective,
        "platform": experiment.platform.name,
        "model": experiment.model,
    }
    facts = [Fact("", key=key, value=value) for key, value in values.items()]
    files = ["search.parquet", "search.csv"]
    study.present(View(facts=facts, data=[Data("results", lambda: frame, files)]))


def _check(experiment: Experiment, *, exhaustive: bool) -> None:
    """Refuses collectives other than all_reduce; reports what is ignored."""
    if experiment.collective != "all_reduce":
        raise mistake(
            f"cannot search schedules of {experiment.collective}",
            source=experiment.source,
            key="collective",
            expected='collective = "all_reduce"',
        )
    if experiment.conditions() != Conditions():
        remark("the search ignores noise, skew and per-rank speeds")
    if exhaustive and len(experiment.sizes) > 1:
        remark("--exhaustive has no effect on several sizes")
    for text in experiment.remarks:
        remark(text)


def _ranking(
    experiment: Experiment, ranks: int, kinds: Sequence[str], top: int, settings: dict[str, Any]
) -> pl.DataFrame:
    """Shows and returns the ranking at a rank count."""
    size = experiment.sizes[0]
    with Progress(f"searching {ranks:,} ranks", handles_interrupts=True) as progress:
        result = schedule_search.search(
            experiment.machine(),
            ranks=ranks,
            size=size,
            datatype=experiment.datatype,
            kinds=kinds,
            top=top,
            done=progress.reach,
            **settings,
        )
    Study().present(ranking_view(result, experiment.model, top))
    for name, reason in result.left_out.items():
        remark(f"left out: {name}: {reason}")
    if result.not_verified is not None:
        remark(f"{result.schedule.name} is not verified: {result.not_verified}")
    columns = [pl.lit(ranks).alias("ranks"), pl.lit(size.bytes).alias("size_bytes")]
    return result.frame.select(*columns, pl.all())


def _thresholds(
    experiment: Experiment, ranks: int, kinds: Sequence[str], verify: bool
) -> pl.DataFrame:
    """Shows and returns the size range of each best schedule at a rank count."""
    first, last = experiment.sizes[0], experiment.sizes[-1]
    with Progress(f"searching {ranks:,} ranks", handles_interrupts=True) as progress:
        frame = size_ranges.thresholds(
            experiment.machine(),
            ranks=ranks,
            start=first,
            end=last,
            datatype=experiment.datatype,
            kinds=kinds,
            done=_by_doublings(first, last, progress),
            verify=verify,
        )
    name = experiment.platform.name
    Study().present(thresholds_view(frame, ranks, name, experiment.model, kinds))
    unverified = frame.filter(~pl.col("verified"))["schedule"].unique(maintain_order=True)
    for schedule in unverified.to_list():
        remark(f"not verified: {schedule}")
    return frame.select(pl.lit(ranks).alias("ranks"), pl.all())


def _by_doublings(first: Size, last: Size, progress: Progress) -> Callable[[Size], None]:
    """Returns a callback that reports progress in doublings of the size."""

    def done(size: Size) -> None:
        doublings = math.log2(size.bytes / first.bytes), math.log2(last.bytes / first.bytes)
        progress.reach(round(100 * doublings[0]), max(1, round(100 * doublings[1])))

    return done
