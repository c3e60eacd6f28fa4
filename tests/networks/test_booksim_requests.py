"""Requests and replies against BookSim 2 (`use_read_write`), commit 28f4329.

Recorded with seed 1 and `sample_period = 100000`: mean packet latencies of requests and replies
together, over 300,000 cycles. Nodes inject both from one queue, replies first. Over as many cycles,
means of two seeds differ by -0.2 to 0.5 %; with a queue for each class, tutti would be 1.2 to 1.6 %
faster in the three cases whose ports are busiest.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tutti.formats.booksim.network import noc_of
from tutti.formats.booksim.reader import parse
from tutti.networks import flit as noc

BASE: dict[str, Any] = {
    "topology": "mesh", "k": 4, "n": 2, "routing_function": "dor", "num_vcs": 8, "vc_buf_size": 8,
    "use_read_write": 1, "read_request_begin_vc": 0, "read_request_end_vc": 3,
    "write_request_begin_vc": 0, "write_request_end_vc": 3, "read_reply_begin_vc": 4,
    "read_reply_end_vc": 7, "write_reply_begin_vc": 4, "write_reply_end_vc": 7,
    "read_request_size": 1, "read_reply_size": 5, "write_request_size": 5, "write_reply_size": 1,
    "vc_allocator": "separable_input_first", "sw_allocator": "separable_input_first",
    "credit_delay": 1, "routing_delay": 0, "vc_alloc_delay": 1, "sw_alloc_delay": 1,
    "st_final_delay": 1, "sample_period": 10000, "seed": 1,
}  # fmt: skip
FEW_VCS = {
    "num_vcs": 4, "read_request_end_vc": 1, "write_request_end_vc": 1, "read_reply_begin_vc": 2,
    "read_reply_end_vc": 3, "write_reply_begin_vc": 2, "write_reply_end_vc": 3,
}  # fmt: skip
LONG = {
    "read_request_size": 2, "read_reply_size": 9, "write_request_size": 9, "write_reply_size": 2,
}  # fmt: skip
CASES: list[tuple[dict[str, Any], float]] = [
    ({"injection_rate": 0.01}, 18.867),
    ({"injection_rate": 0.03}, 19.793),
    ({"injection_rate": 0.05}, 21.235),
    ({"k": 8, "injection_rate": 0.01}, 30.113),
    ({"k": 8, "injection_rate": 0.025}, 31.668),
    ({"traffic": "transpose", "injection_rate": 0.03}, 19.850),
    ({"topology": "torus", "routing_function": "dim_order", "injection_rate": 0.03}, 19.610),
    ({**LONG, "injection_rate": 0.02}, 24.355),
    ({"read_reply_size": 1, "write_request_size": 1, "injection_rate": 0.1}, 16.778),
    ({**FEW_VCS, "write_fraction": 0.2, "injection_rate": 0.04}, 20.486),
]


@pytest.mark.parametrize(("changes", "latency"), CASES, ids=lambda value: str(value)[:40])
def test_latencies_of_requests_and_replies_match_booksim(
    changes: dict[str, Any], latency: float
) -> None:
    text = "".join(f"{key} = {value};\n" for key, value in (BASE | changes).items())
    found = noc_of(parse(text), source="it.cfg", folder=Path()).noc
    assert isinstance(found.traffic, tuple)
    run = noc.run(found.network, found.traffic, found.plan)
    assert run.is_stable
    assert run.latency.mean == pytest.approx(latency, rel=0.01)
