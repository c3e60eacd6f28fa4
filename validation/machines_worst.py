"""The worst choices of a cross-validation on each machine, and the term that failed."""

from __future__ import annotations

import math
from typing import Final

import polars as pl
from prose import bullets, paragraph

from tutti.base.units import Size
from tutti.measured.predict.model import usable
from tutti.measured.predict.score import GROUP, joined

SHOWN: Final = 5
TERMS: Final = {
    "messages": "time of messages",
    "gaps": "gaps between messages of a rank",
    "port": "port of the root",
    "links": "sharing of links and interfaces",
    "groups": "sharing of links between groups",
    "memory": "sharing of memory",
    "local": "reductions and copies",
    "call": "calls and interfaces",
}
"""The terms of the structural model, of :meth:`tutti.measured.predict.curve.Curve.terms`."""
_HORIZONS: Final = ("nodes", "far", "farther")


def section(rows: pl.DataFrame, validated: pl.DataFrame) -> str:
    """Returns the section on the worst choices of folds of more nodes.

    Args:
        rows: The measurements, numbered by `index`.
        validated: Their cross-validation.
    """
    found = worst(rows, validated)
    text = paragraph(
        f"The {SHOWN} groups of each machine with the largest regret, in folds of more nodes. Of "
        "the chosen and the fastest algorithm, the one with the larger error is named, with the "
        "largest term of its predicted time: that term failed, or an algorithm's stages did."
    )
    parts = [f"## Worst groups\n\n{text}"]
    for (system,), some in found.group_by("system", maintain_order=True):
        parts.append(f"**{system}**\n\n" + bullets([_line(row) for row in some.to_dicts()]))
    return "\n\n".join(parts)


def worst(rows: pl.DataFrame, validated: pl.DataFrame) -> pl.DataFrame:
    """Returns the groups with the largest regret of each machine.

    Returns:
        At most five rows per machine, the worst first, with the columns of
        :data:`tutti.measured.predict.score.GROUP`, `regret`, and the `chosen` and the `fastest`
        algorithm. The one of both that `failed` has an `error` (logarithm of measured over
        predicted) and a `term`, which contributes most to its predicted time.
    """
    kept = rows.join(usable(rows), on="index", how="semi")
    parts = []
    for _, fold in validated.filter(pl.col("kind").is_in(_HORIZONS)).group_by(
        "kind", "fold", maintain_order=True
    ):
        some = joined(kept, fold.drop("kind", "fold", "time_us")).drop_nulls("predicted_us")
        parts.append(_groups(some))
    ranked = pl.concat(parts).sort("regret", *GROUP, descending=[True] + [False] * len(GROUP))
    first = ranked.unique(GROUP, keep="first", maintain_order=True)
    place = pl.int_range(pl.len()).over("system")
    return first.filter(place < SHOWN).sort("system", maintain_order=True)


def _groups(rows: pl.DataFrame) -> pl.DataFrame:
    """Returns the groups of the rows of a fold in which the choice is not the fastest."""
    error = (pl.col("time_us") / pl.col("predicted_us")).log().alias("error")
    columns = ("library_algorithm", "time_us", "error", "term")
    row = pl.struct(columns)
    groups = (
        rows.with_columns(error)
        .sort("library_algorithm")
        .group_by(GROUP, maintain_order=True)
        .agg(
            row.sort_by("choice_us", maintain_order=True).first().alias("_chosen"),
            row.sort_by("time_us", maintain_order=True).first().alias("_fastest"),
        )
    )
    chosen, fastest = pl.col("_chosen").struct, pl.col("_fastest").struct
    is_fastest = fastest.field("error").abs() > chosen.field("error").abs()
    failed = pl.when(is_fastest).then("_fastest").otherwise("_chosen").struct
    return groups.select(
        *GROUP,
        (chosen.field("time_us") / fastest.field("time_us") - 1).alias("regret"),
        chosen.field("library_algorithm").alias("chosen"),
        fastest.field("library_algorithm").alias("fastest"),
        failed.field("library_algorithm").alias("failed"),
        failed.field("error").alias("error"),
        failed.field("term").alias("term"),
    ).filter(pl.col("regret") > 0)


def _line(row: dict[str, object]) -> str:
    error, regret, size, nodes = row["error"], row["regret"], row["size_bytes"], row["nodes"]
    assert isinstance(error, float)
    assert isinstance(regret, float)
    assert isinstance(size, int)
    assert isinstance(nodes, int)
    times = "longer" if error > 0 else "shorter"
    ranks = row["ranks_per_node"] or 1
    per_node = "one rank per node" if ranks == 1 else f"{ranks} ranks per node"
    return (
        f"Regret {regret * 100:,.0f} %: `{row['collective']}`, {nodes:,} nodes, {per_node}, "
        f"{Size(bytes=size)}: `{row['chosen']}` instead of `{row['fastest']}`. "
        f"`{row['failed']}` took {times} by a factor of {math.exp(abs(error)):.2f}; its largest "
        f"term is {TERMS[str(row['term'])]}."
    )
