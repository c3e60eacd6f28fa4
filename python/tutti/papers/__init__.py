"""Published papers, reproduced: each module or package holds one paper's experiments as data.

A module of this package is a paper when it has a `PAPER`. It computes nothing of its own: each
exhibit (a figure or a table) is a function that asks the public API and returns an `ExhibitResult`,
the values found beside the values published.
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

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    import polars as pl

    Watcher = Callable[[str, int], AbstractContextManager[Callable[[], object]]]

__all__ = [
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
    """What a figure or table came out as.

    Attributes:
        frame: The values found, a row each; published values stand in columns beside them.
        published: What the paper says, where it cannot stand in the same rows; else None.
        source: Where in the paper the published values stand, and how they were read off.
        figures: Files that were drawn.
        notes: What a reader must know to judge the agreement.
        tables: Further tables, by what they hold.
    """

    frame: pl.DataFrame
    published: pl.DataFrame | None = None
    source: str
    figures: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()
    tables: Mapping[str, pl.DataFrame] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Exhibit:
    """A figure or a table of a paper.

    Attributes:
        title: What it shows, in a sentence.
        make: Makes it; draws into the folder it is given.
    """

    title: str
    make: Callable[[Path], ExhibitResult]


@dataclass(frozen=True, kw_only=True)
class Paper:
    """A paper with what of it can be reproduced.

    Attributes:
        name: Its name on the command line, such as `recursive-multiplying`.
        citation: Authors, title, journal, year.
        figures: By number.
        tables: By number.
    """

    name: str
    citation: str
    figures: Mapping[int, Exhibit] = field(default_factory=dict)
    tables: Mapping[int, Exhibit] = field(default_factory=dict)


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Within it exhibits tell how far they are.

    Args:
        watcher: Given what is being done and of how many parts, a context of what is called after
            each of them.
    """
    before = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(before)


def watched(what: str, parts: Sequence[_T]) -> Iterator[_T]:
    """The parts of something that takes long, one after the other; whoever watches is told."""
    watcher = _watcher.get()
    if watcher is None:
        yield from parts
        return
    with watcher(what, len(parts)) as done:
        for part in parts:
            yield part
            done()


def at_once(
    work: Callable[[_T], _Found], asked: Iterable[_T], what: str | None = "runs"
) -> dict[_T, _Found]:
    """Does independent work on all processors; the core lets Python go on meanwhile.

    Args:
        work: What is done with each.
        asked: On what.
        what: What whoever watches is told of; nothing is told without.
    """
    asked = list(asked)
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        parts = watched(what, asked) if what else asked
        return dict(zip(parts, pool.map(work, asked), strict=True))


def papers() -> dict[str, Paper]:
    """Every paper there is, by name."""
    found: dict[str, Paper] = {}
    for module in pkgutil.iter_modules(__path__):
        paper = getattr(importlib.import_module(f"{__name__}.{module.name}"), "PAPER", None)
        if isinstance(paper, Paper):
            found[paper.name] = paper
    return found


def find_paper(name: str) -> Paper:
    """The paper of that name.

    Raises:
        ConfigError: There is none.
    """
    known = papers()
    if name in known:
        return known[name]
    problem = f"there is no paper `{name}`: expected one of {', '.join(known)}"
    hint = did_you_mean(name, known) or "`tutti paper` lists what there is of each"
    raise ConfigError(problem, kind="invalid", hint=hint)
