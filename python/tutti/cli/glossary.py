"""`tutti glossary`: defines the terms of the commands and reports."""

from __future__ import annotations

from typing import Annotated

import typer

from tutti.base.glossary import glossary as read
from tutti.schedules.mpi_names import collective_name
from tutti.study.console import out, record, record_table


def glossary(
    term: Annotated[
        str | None, typer.Argument(metavar="[TERM]", help="The term. Default: list all terms.")
    ] = None,
) -> None:
    """Define a term, with its source.

    \b
    Examples:
      tutti glossary
      tutti glossary 'lower bound'
    """
    console = out()
    if term is None:
        names = ("term", "symbol", "definition", "source", "see")
        terms = read().terms
        record_table("terms", ({name: getattr(one, name) for name in names} for one in terms))
        console.print(", ".join(known.term for known in read().terms), markup=False)
        return
    found = read().term(collective_name(term))
    symbol = f" ({found.symbol})" if found.symbol else ""
    console.print(f"{found.term}{symbol}: {found.definition}", markup=False)
    citation = read().references[found.reference]
    record(
        term=found.term,
        symbol=found.symbol,
        definition=found.definition,
        source=found.source,
        citation=citation,
        see=found.see,
    )
    console.print(f"source: {found.source}: {citation}", markup=False)
    if found.see:
        console.print(f"see also: {', '.join(found.see)}", markup=False)
