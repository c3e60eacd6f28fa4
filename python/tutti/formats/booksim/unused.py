"""Keys of a BookSim 2 configuration without effect on its results: always, or with other keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.formats.booksim.equivalents import TABLES
from tutti.formats.booksim.recorded import REPLACED_BY_TRACE
from tutti.formats.booksim.requests import REPLACED_BY_BATCH

if TYPE_CHECKING:
    from tutti.formats.booksim.reader import BookSimConfig

_OF_BATCHES = frozenset({"batch_size", "batch_count", "max_outstanding_requests"})
_OF_BURSTS = frozenset({"burst_alpha", "burst_beta", "burst_r1"})
_OF_SPECULATION = frozenset(
    {"spec_check_elig", "spec_check_cred", "spec_mask_by_reqs", "spec_sw_allocator"}
)
_OF_REQUESTS = frozenset(
    {f"{kind}_{packet}_{key}" for kind in ("read", "write") for packet in ("request", "reply")
     for key in ("size", "begin_vc", "end_vc")} | {"write_fraction"}
)  # fmt: skip
_OF_OTHER_PACKETS = frozenset({"packet_size", "packet_size_rate"})
_OF_CONCENTRATION = frozenset({"c", "x", "y", "yr"})
_USE_XR = ("tornado", "neighbor", "badperm_yarc")
"""Patterns with a default of `xr`."""


def without_effect(config: BookSimConfig, *, has_trace: bool) -> tuple[str, ...]:
    """Returns the assigned keys without effect, in alphabetical order.

    Args:
        config: A configuration that can be converted.
        has_trace: Whether a trace defines the packets.
    """
    requests = config.per_class("use_read_write")
    is_batch = config.sim_type == "batch"
    bursts = any(text.startswith("on_off") for text in config.per_class("injection_process"))
    patterns = config.per_class("traffic")
    is_concentrated = config.topology in {"cmesh", "flatfly"}
    uses_xr = is_concentrated or any(text.startswith(_USE_XR) for text in patterns)
    unused = {
        REPLACED_BY_TRACE: has_trace,
        REPLACED_BY_BATCH: is_batch,
        _OF_BATCHES: not is_batch,
        _OF_BURSTS: not bursts,
        _OF_SPECULATION: config.speculative <= 0,
        _OF_REQUESTS: not any(requests) or has_trace,
        _OF_OTHER_PACKETS: all(requests),
        _OF_CONCENTRATION: not is_concentrated,
        frozenset({"xr"}): not uses_xr,
        frozenset({"network_file"}): config.topology != "anynet",
        frozenset({"class_priority"}): config.priority != "class",
        frozenset({"perm_seed"}): not any(text.startswith("randperm") for text in patterns),
    }
    sets = (keys for keys, is_unused in unused.items() if is_unused)
    return tuple(sorted(config.given & TABLES.without_meaning.union(*sets)))
