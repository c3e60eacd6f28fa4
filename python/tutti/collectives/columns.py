"""Names of columns, and what files must have in them: for code that does not need frames."""

from __future__ import annotations

BASELINE = "library"
"""The algorithm, in a comparison, of rows that the own model of the platform's library predicts."""

READ: dict[str, str] = {
    **dict.fromkeys(
        ("collective", "datatype", "model", "platform", "algorithm", "schedule"), "text"
    ),
    "ranks": "positive",
    "size_bytes": "count",
    "time_ps": "positive?",
    **dict.fromkeys(("algbw_bytes_per_s", "busbw_bytes_per_s"), "number?"),
}
"""Columns of a file that drawings require, with kinds of `files.reader.check_frame`."""

READ_IF_THERE: dict[str, str] = dict.fromkeys(
    ("messages", "message_bytes", "closed_form_ps", "bound_ps"), "count?"
)
"""Columns of a file that drawings use if present."""

SWEPT = "sweep."
"""Prefix of the columns of swept keys."""
