"""The project's terms: definitions, sources, and the commands and reports that use them."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tutti.base.bundled import bundled
from tutti.base.files.mistakes import did_you_mean, mistake

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True)
class Term:
    """A term of the glossary.

    Attributes:
        term: The name.
        definition: One or two sentences.
        source: The textbook, standard or paper, with the section where it is known.
        see: Names of related terms.
        symbol: The symbol in equations, or empty.
    """

    term: str
    definition: str
    source: str
    see: tuple[str, ...] = ()
    symbol: str = ""

    @property
    def reference(self) -> str:
        """Returns the name of the reference with which the source starts."""
        return self.source.split(",")[0]

    @property
    def anchor(self) -> str:
        """Returns the anchor of the term's heading in docs/glossary.md."""
        return re.sub(r"[^\w -]", "", self.term.lower()).replace(" ", "-")


@dataclass(frozen=True)
class Glossary:
    """All terms.

    Attributes:
        terms: In alphabetical order.
        references: Citations by the name that sources start with.
        commands: For each command, the names of the terms in its output.
        reports: For each kind of HTML report, the names of its terms.
    """

    terms: tuple[Term, ...]
    references: dict[str, str]
    commands: dict[str, tuple[str, ...]]
    reports: dict[str, tuple[str, ...]]

    def term(self, name: str) -> Term:
        """Returns a term by name, without regard to case.

        Raises:
            ConfigError: The term is unknown.
        """
        known = {term.term.lower(): term for term in self.terms}
        if name.lower() not in known:
            hint = did_you_mean(name.lower(), known) or "`tutti glossary` lists the terms"
            raise mistake(f"unknown term `{name}`", source="tutti glossary", hint=hint)
        return known[name.lower()]

    def report_terms(self, kind: str) -> list[Term]:
        """Returns the terms of a kind of report, in alphabetical order."""
        names = self.reports[kind]
        return [term for term in self.terms if term.term in names]

    def cited(self, terms: Iterable[Term]) -> list[tuple[str, str]]:
        """Returns name and citation of the references of terms, in alphabetical order."""
        names = {term.reference for term in terms}
        return [(name, self.references[name]) for name in sorted(names)]


@functools.cache
def glossary() -> Glossary:
    """Returns the glossary.

    Examples:
        >>> from tutti.base.glossary import glossary
        >>> glossary().term("busbw").source
        'NCCL, nccl-tests PERFORMANCE.md'
    """
    data = bundled("base/glossary.toml")
    terms = [Term(**entry | {"see": tuple(entry.get("see", ()))}) for entry in data["term"]]
    used = {
        table: {user: tuple(names) for user, names in data[table].items()}
        for table in ("commands", "reports")
    }
    return Glossary(
        terms=tuple(sorted(terms, key=lambda term: term.term.lower())),
        references=data["references"],
        **used,
    )
