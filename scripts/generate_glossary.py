"""Writes docs/glossary.md from docs/glossary.toml; `--check` fails if the page is stale."""

from __future__ import annotations

import re
import sys
import textwrap
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent.parent / "docs"
SOURCE, PAGE = DOCS / "glossary.toml", DOCS / "glossary.md"
HEAD = """# Glossary

Terms of code, configuration, columns and text, in alphabetical order. Each entry names its source;
the [references](#references) follow the terms. Change terms in `docs/glossary.toml` and run
`python scripts/generate_glossary.py`, which writes this page.

Every name or type has a unit: `_ps`, `_bytes`, `_bytes_per_s`. Configuration uses `"500 ns"`,
`"50 GB/s"` (10^9 bytes, per direction) and `"64 KiB"` (2^10). `b` is bits, `B` is bytes. Names of
collectives and models are in snake case."""


@dataclass(frozen=True)
class Term:
    """One entry; an unknown field is an error."""

    term: str
    definition: str
    source: str
    see: tuple[str, ...] = ()
    symbol: str = ""

    @property
    def anchor(self) -> str:
        """Returns the anchor that Markdown gives the heading of the term."""
        return re.sub(r"[^\w -]", "", self.term.lower()).replace(" ", "-")


def read(text: str) -> tuple[list[Term], dict[str, str]]:
    """Returns the terms in alphabetical order, and the references by the name in `source`.

    Raises:
        ValueError: a term is defined twice, or refers to an unknown term or reference.
    """
    data: dict[str, Any] = tomllib.loads(text)
    terms = [Term(**entry | {"see": tuple(entry.get("see", ()))}) for entry in data["term"]]
    names = {term.term for term in terms}
    if len(names) < len(terms):
        raise ValueError("a term is defined twice")
    for term in terms:
        if unknown := set(term.see) - names:
            raise ValueError(f"{term.term}: see names unknown terms: {', '.join(sorted(unknown))}")
        if term.source.split(",")[0] not in data["references"]:
            raise ValueError(f"{term.term}: source {term.source!r} is not a reference")
    return sorted(terms, key=lambda term: term.term.lower()), data["references"]


def entry(term: Term, anchors: dict[str, str]) -> str:
    """Returns the Markdown section of a term."""
    see = ", ".join(f"[{name}](#{anchors[name]})" for name in term.see)
    lines = [f"## {term.term}", "", wrapped(term.definition), ""]
    lines += [wrapped(f"Symbol: {term.symbol}."), ""] if term.symbol else []
    lines += [wrapped(f"Source: {term.source}.{f' See {see}.' if see else ''}")]
    return "\n".join(lines)


def wrapped(text: str) -> str:
    """Returns the text in lines of at most 100 columns."""
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False)


def page(text: str) -> str:
    """Returns docs/glossary.md for the text of docs/glossary.toml."""
    terms, references = read(text)
    anchors = {term.term: term.anchor for term in terms}
    parts = [HEAD, *(entry(term, anchors) for term in terms), "## References"]
    parts += [wrapped(f"- **{name}**: {cited}") for name, cited in sorted(references.items())]
    return "\n\n".join(parts) + "\n"


def main() -> int:
    """Writes the page, or with `--check` compares it."""
    text = page(SOURCE.read_text("utf-8"))
    if PAGE.is_file() and PAGE.read_text("utf-8") == text:
        return 0
    if "--check" in sys.argv[1:]:
        sys.stdout.write("stale docs/glossary.md\n")
        return 1
    PAGE.write_text(text, encoding="utf-8")
    sys.stdout.write("wrote docs/glossary.md\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
