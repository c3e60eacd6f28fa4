"""What a search of the algorithms of a training step shows."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from rich.text import Text

from tutti.view.quantity import count, flag, format_share, format_time
from tutti.view.tables import Column, ReportTable, frame_of, records_of
from tutti.view.view import Data, Fact, View

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.console import RenderableType

    from tutti.training.plan.timing import StepTiming
    from tutti.training.results import TrainingResult
    from tutti.training.search import AlgorithmSearch, Trial
    from tutti.training.searched import SearchedCollective

_CAPTION = (
    "default: change of the step time from the algorithms of the file, the platform's library, or "
    "rings; of bound: lower bound of any algorithms / step time"
)


class Searched(NamedTuple):
    """A collective of a search, and its number."""

    search: AlgorithmSearch
    place: int
    collective: SearchedCollective


_LEAST_SHOWN = 0.0005
"""The least gain that has a number."""


class TrialOf(NamedTuple):
    """A trial of a search."""

    search: AlgorithmSearch
    trial: Trial


def _gain(search: AlgorithmSearch) -> str:
    gain = search.best.total.ps / search.default.total.ps - 1
    if not gain:
        return "equal"
    # "-under 0.1 %" would read as a dash before the text.
    return format_share(-gain) if -gain < _LEAST_SHOWN else f"-{format_share(-gain)}"


def _once(text: Callable[[AlgorithmSearch], str]) -> Callable[[Searched], str]:
    """Returns the text of a search in the row of its first collective."""
    return lambda row: "" if row.place else text(row.search)


COLLECTIVES: tuple[Column[Searched], ...] = (
    Column("configuration", _once(lambda search: search.configuration.name)),
    Column("collective", lambda row: row.collective.name, kind="wrap"),
    Column("group", lambda row: f"{row.collective.group} {row.collective.ranks}", kind="wrap"),
    Column("best algorithm", lambda row: row.search.chosen[row.collective.key], kind="wrap"),
    Column("step time", _once(lambda search: format_time(search.best.total.ps)), kind="number"),
    Column("default", _once(_gain), kind="number"),
    Column("of bound", _once(lambda search: format_share(search.best.of_bound)), kind="number"),
)
"""The choice for a collective; the first one of a search also has the values of the step."""

SEARCHES: tuple[Column[AlgorithmSearch], ...] = (
    Column("configuration", lambda search: search.configuration.name, key="configuration"),
    Column("time", lambda search: search.best.total.ps, format_time, key="time_ps"),
    Column("default", lambda search: search.default.total.ps, format_time, key="default_ps"),
    Column("lower bound", lambda search: search.best.bound.time.ps, format_time, key="bound_ps"),
    Column("of bound", lambda search: search.best.of_bound, format_share, key="of_bound"),
    Column("complete", lambda search: search.is_complete, flag, key="is_complete"),
    Column("algorithms", lambda search: search.chosen, key="algorithms"),
)
"""The quantities of a search."""


def _reason(trial: Trial) -> str | None:
    """Returns why a trial did not run; None if it did, or was refused."""
    if trial.pruned is None:
        return None
    bound, best = map(format_time, trial.pruned)
    return f"not run: bound {bound} >= best {best}"


def _is_chosen(row: TrialOf) -> bool:
    return row.search.chosen[row.trial.collective.key] == row.trial.algorithm


TRIALS: tuple[Column[TrialOf], ...] = (
    Column("configuration", lambda row: row.search.configuration.name, key="configuration"),
    Column("default", lambda row: row.search.default.total.ps, format_time, key="default_ps"),
    Column("lower bound", lambda row: row.search.best.bound.time.ps, format_time, key="bound_ps"),
    Column("round", lambda row: row.trial.round, count, key="round"),
    Column("collective", lambda row: row.trial.collective.name, key="collective"),
    Column("group", lambda row: row.trial.collective.group, key="group"),
    Column("ranks", lambda row: row.trial.collective.ranks, count, key="ranks"),
    Column("algorithm", lambda row: row.trial.algorithm, key="algorithm"),
    Column("time", lambda row: row.trial.time_ps, format_time, key="time_ps"),
    Column("more than", lambda row: row.trial.more_than_ps, format_time, key="more_than_ps"),
    Column("refused", lambda row: row.trial.refused or None, key="refused"),
    Column("not run", lambda row: _reason(row.trial), key="not_run"),
    Column("chosen", _is_chosen, flag, key="is_chosen"),
)
"""The quantities of a trial: the time of the step or that it exceeds, or why it did not run."""


def search_view(
    searches: Sequence[AlgorithmSearch],
    planned: Callable[[TrainingResult], StepTiming] | None = None,
) -> View:
    """Returns what searches with one or more endpoint configurations show.

    Args:
        searches: Searches of one step, of which the last may be incomplete.
        planned: Returns the time of a run with ideal endpoints as a plan, for the step of a plan.
    """
    rows = [
        Searched(search, place, collective)
        for search in searches
        for place, collective in enumerate(search.collectives)
    ]
    trials = [TrialOf(search, trial) for search in searches for trial in search.trials]
    name = searches[0].step.model.name
    return View(
        headline=Fact("step", f"{name}: algorithms by the time of the step"),
        facts=[*_planned(searches, planned), *_extrapolated(searches[0])],
        tables=[ReportTable(COLLECTIVES[len(searches) == 1 :], rows, caption=_CAPTION)],
        data=[
            Data("trials", lambda: frame_of(TRIALS, trials), ["search.parquet"]),
            Data("results", lambda: records_of(SEARCHES, searches)),
        ],
        below=[*_declined(searches), *_choice(searches)],
    )


def _planned(
    searches: Sequence[AlgorithmSearch], planned: Callable[[TrainingResult], StepTiming] | None
) -> Iterator[Fact]:
    """Yields the times of the step with ideal endpoints as a plan, as `tutti train run` has them.

    The shares of exposed collectives are those of measured runs, so the gain may differ.
    """
    for search in searches:
        if planned is None or search.configuration.name != "ideal":
            continue
        default = planned(search.default).step
        best = planned(search.best).step if search.changes else default
        times = f"{format_time(default * 1e12)} with the default"
        chosen = f", {format_time(best * 1e12)} with the best algorithms"
        text = times + (chosen if search.changes else "")
        yield Fact("as a plan", text, "planned_step_s", best)
        yield Fact("", "", "planned_default_step_s", default)


def _extrapolated(search: AlgorithmSearch) -> Iterator[Fact]:
    """Yields which micro-batches trials simulate, unless all."""
    if search.micro_batches:
        few = " and ".join(map(str, search.micro_batches))
        text = f"from {few} micro-batches; default and best: all micro-batches"
        yield Fact("times of trials", text, "simulated_micro_batches", list(search.micro_batches))


def _declined(searches: Sequence[AlgorithmSearch]) -> Iterator[RenderableType]:
    """Yields why the default remains, and the algorithms that are faster."""
    for search in searches:
        if (declined := search.declined) is None:
            continue
        where = f"{search.configuration.name}: " if len(searches) > 1 else ""
        gain = "less than 0.1 %"
        if declined.of_plan:
            gain = f"{format_share(declined.gain)} of the simulated step, but {gain} of the step "
            gain += "as a plan, which exposes communication as measured runs do"
        named = ", ".join(f"{key} = {one}" for key, one in declined.algorithms.items())
        text = f"\n{where}keep the default: the fastest algorithms gain {gain} ({named})"
        yield Text(text)


def _choice(searches: Sequence[AlgorithmSearch]) -> list[RenderableType]:
    """Returns the choice for the fastest configuration as a table of a training file."""
    best = min(searches, key=lambda search: search.best.total.ps)
    chosen = [f'"{key}" = "{algorithm}"' for key, algorithm in best.changes.items()]
    heading = Text(f"\nfor {best.configuration.name}, the fastest:", "bold")
    return [heading, "[algorithms]", *chosen] if chosen else []


def refusals(searches: Sequence[AlgorithmSearch]) -> list[str]:
    """Returns a line per reason for which algorithms do not run on this network.

    Reasons that differ in NPUs only are shown as the first one.
    """
    reasons: dict[tuple[str, str], str] = {}
    names: dict[tuple[str, str], dict[str, None]] = {}
    for search in searches:
        for (collective, notation), reason in search.refused.items():
            kind = collective.key, re.sub(r"\d+", "#", reason)
            reasons.setdefault(kind, reason)
            names.setdefault(kind, {})[notation] = None
    return [
        f"refused for {kind[0]}: {', '.join(names[kind])}: {reason}"
        for kind, reason in reasons.items()
    ]


def left_out(searches: Sequence[AlgorithmSearch]) -> list[str]:
    """Returns the algorithms that did not run with the least bound, and those that ended early.

    A line per collective each.
    """
    every = [trial for search in searches for trial in search.trials]
    pruned, late = defaultdict(list), defaultdict(list)
    for trial in every:
        if trial.pruned:
            pruned[trial.collective.key].append(trial)
        elif trial.more_than_ps is not None:
            late[trial.collective.key].append(trial)
    return [
        *(
            f"for {key}, {_names(each)}: {_reason(min(each, key=lambda one: one.pruned or ()))}, "
            "or more"
            for key, each in pruned.items()
        ),
        *(
            f"for {key}, {_names(each)}: ended at "
            f"{format_time(min(one.more_than_ps or 0 for one in each))}, the best so far, or later"
            for key, each in late.items()
        ),
    ]


def _names(trials: Sequence[Trial]) -> str:
    return ", ".join(dict.fromkeys(one.algorithm for one in trials))
