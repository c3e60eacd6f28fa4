"""Reproductions of published papers: each module or package defines the experiments of one paper.

A module of this package is a paper if it has a `PAPER`. Each exhibit (a figure or a table) is a
function that calls the public API and returns an `ExhibitResult`, whose `Claim`s compare computed
values with published ones.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from tutti.errors import ConfigError
from tutti.files.mistakes import did_you_mean
from tutti.papers.claims import Claim, Conclusion, verdict_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    import polars as pl

    Watcher = Callable[[str, int], AbstractContextManager[Callable[[], object]]]

__all__ = [
    "Claim",
    "Conclusion",
    "Exhibit",
    "ExhibitResult",
    "Paper",
    "at_once",
    "find_paper",
    "papers",
    "watched",
    "watching",
]

_T = TypeVar("_T")
_Found = TypeVar("_Found")
_watcher: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


@dataclass(frozen=True, kw_only=True)
class ExhibitResult:
    """The result of an exhibit.

    Attributes:
        frame: Computed values, a row each.
        published: The published values, each with the computed one.
        conclusions: The paper's conclusions about this exhibit.
        source: The place of the published values in the paper, and how they were read.

        figures: The files of drawings.
        notes: Remarks on the agreement.
        tables: Further tables by name.
    """

    frame: pl.DataFrame
    published: Sequence[Claim] = ()
    conclusions: Sequence[Conclusion] = ()
    source: str
    figures: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()
    tables: Mapping[str, pl.DataFrame] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        """The counts of agreeing values, and the conclusions that hold or do not hold."""
        return verdict_line(self.published, self.conclusions)


@dataclass(frozen=True, kw_only=True)
class Exhibit:
    """A figure or a table of a paper.

    Attributes:
        title: The title.
        make: Computes the result, and draws into the given folder.
    """

    title: str
    make: Callable[[Path], ExhibitResult]


@dataclass(frozen=True, kw_only=True)
class Paper:
    """A paper and its reproducible exhibits.

    Attributes:
        name: The name on the command line, such as `recursive-multiplying`.
        citation: Authors, title, journal, year.
        figures: Figures by number.
        tables: Tables by number.
    """

    name: str
    citation: str
    figures: Mapping[int, Exhibit] = field(default_factory=dict)
    tables: Mapping[int, Exhibit] = field(default_factory=dict)

    def exhibits(self) -> list[tuple[str, Exhibit]]:
        """Returns the exhibits with their labels, such as `figure 5`, figures first."""
        figures = [(f"figure {number}", one) for number, one in sorted(self.figures.items())]
        return figures + [(f"table {number}", one) for number, one in sorted(self.tables.items())]


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Reports the progress of exhibits within the context.

    Args:
        watcher: Takes a description and the number of parts, and returns a context of a function
            that is called after each part.
    """
    before = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(before)


def watched(what: str, parts: Sequence[_T]) -> Iterator[_T]:
    """Yields the parts of a long computation, and reports progress to the watcher."""
    watcher = _watcher.get()
    if watcher is None:
        yield from parts
        return
    with watcher(what, len(parts)) as done:
        for part in parts:
            yield part
            done()


def at_once(
    work: Callable[[_T], _Found], items: Iterable[_T], what: str | None = "runs"
) -> dict[_T, _Found]:
    """Applies a function to all items in parallel threads; the core releases the GIL.

    Args:
        work: The function.
        items: The items.
        what: The description for the watcher; None reports no progress.
    """
    items = list(items)
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        parts = watched(what, items) if what else items
        return dict(zip(parts, pool.map(work, items), strict=True))


def papers() -> dict[str, Paper]:
    """Returns all papers by name."""
    found: dict[str, Paper] = {}
    for module in pkgutil.iter_modules(__path__):
        paper = getattr(importlib.import_module(f"{__name__}.{module.name}"), "PAPER", None)
        if isinstance(paper, Paper):
            found[paper.name] = paper
    return found


def find_paper(name: str) -> Paper:
    """Returns a paper by name.

    Raises:
        ConfigError: The paper is unknown.
    """
    known = papers()
    if name in known:
        return known[name]
    problem = f"unknown paper `{name}`: expected one of {', '.join(known)}"
    hint = did_you_mean(name, known) or "`tutti paper` lists the papers and their exhibits"
    raise ConfigError(problem, kind="invalid", hint=hint)
