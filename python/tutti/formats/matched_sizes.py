"""Compares the sizes of receives with those of the messages that they match."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from tutti.view.quantity import plural
from tutti.workloads.operations import ANY, Kind

if TYPE_CHECKING:
    from tutti.workloads.operations import Operations, Trace

_KEY = ("source", "target", "tag", "place")


def other_sizes(trace: Trace) -> tuple[str, ...]:
    """Returns a line if receives state other sizes than their messages, whose sizes count.

    Sends and receives of two ranks and a tag match in order. Ranks that receive from any rank, or
    any tag, are not compared.
    """
    sends = [_ends(rank, of, Kind.SEND) for rank, of in enumerate(trace.ranks)]
    receives = [
        _ends(rank, of, Kind.RECEIVE) for rank, of in enumerate(trace.ranks) if not _has_any(of)
    ]
    if not sends or not receives:
        return ()
    matched = _in_order(sends).join(_in_order(receives), on=_KEY, suffix="_received")
    other = matched.filter(pl.col("size") != pl.col("size_received"))
    if other.is_empty():
        return ()
    first = other.sort("rank", "operation").row(0, named=True)
    text = (
        f"sizes of {plural(len(other), 'receive')} that differ from those of the messages: "
        f"operation {first['operation_received']} of rank {first['target']} expects "
        f"{first['size_received']:,} B, and rank {first['source']} sends {first['size']:,} B"
    )
    return (text,)


def _has_any(of: Operations) -> bool:
    received = of.kinds == Kind.RECEIVE
    return bool(np.any(received & ((of.peers == ANY) | (of.tags == ANY))))


def _ends(rank: int, of: Operations, kind: Kind) -> pl.DataFrame:
    """Returns the sends or receives of a rank, in order."""
    places = np.flatnonzero(of.kinds == kind)
    own = np.full(len(places), rank, np.int64)
    peers = of.peers[places].astype(np.int64)
    source, target = (own, peers) if kind == Kind.SEND else (peers, own)
    return pl.DataFrame(
        {
            "rank": own,
            "operation": places.astype(np.int64),
            "source": source,
            "target": target,
            "tag": of.tags[places].astype(np.int64),
            "size": of.sizes[places].astype(np.int64),
        }
    )


def _in_order(ends: list[pl.DataFrame]) -> pl.DataFrame:
    """Returns the sends or receives of all ranks with their place among those that match alike."""
    return pl.concat(ends).with_columns(
        place=pl.int_range(pl.len()).over("source", "target", "tag")
    )
