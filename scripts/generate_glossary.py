"""Writes docs/glossary.md from `tutti.base.glossary`; `--check` fails if the page is stale."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

from tutti.base.glossary import Glossary, Term, glossary

PAGE = Path(__file__).parent.parent / "docs" / "glossary.md"
HEAD = """# Glossary

Terms of code, configuration, columns and text, in alphabetical order. Each entry names its source;
the [references](#references) follow the terms. `tutti glossary TERM`
prints an entry. `scripts/generate_glossary.py` writes this page from
`python/tutti/base/glossary.toml`.

Every name or type has a unit: `_ps`, `_bytes`, `_bytes_per_s`. Configuration uses `"500 ns"`,
`"50 GB/s"` (10^9 bytes, per direction) and `"64 KiB"` (2^10). `b` is bits, `B` is bytes. Names of
collectives and models are in snake case."""


def check(found: Glossary) -> None:
    """Refuses duplicate terms and unknown references.

    Raises:
        ValueError: A term is defined twice, or refers to an unknown term or reference.
    """
    names = {term.term for term in found.terms}
    if len(names) < len(found.terms):
        raise ValueError("a term is defined twice")
    named = [(term.term, term.see) for term in found.terms]
    named += [*found.commands.items(), *found.reports.items()]
    for user, see in named:
        if unknown := set(see) - names:
            raise ValueError(f"{user} names unknown terms: {', '.join(sorted(unknown))}")
    for term in found.terms:
        if term.reference not in found.references:
            raise ValueError(f"{term.term}: source {term.source!r} is not a reference")


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


def page(found: Glossary) -> str:
    """Returns the page."""
    anchors = {term.term: term.anchor for term in found.terms}
    parts = [HEAD, *(entry(term, anchors) for term in found.terms), "## References"]
    parts += [wrapped(f"- **{name}**: {cited}") for name, cited in sorted(found.references.items())]
    return "\n\n".join(parts) + "\n"


def main() -> int:
    """Writes the page, or with `--check` compares it."""
    check(glossary())
    text = page(glossary())
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
