"""Converts the routers of a BookSim 2 configuration to a tutti table."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any

from tutti.formats.booksim.equivalents import TABLES
from tutti.formats.booksim.traffic import call
from tutti.view.quantity import plural

if TYPE_CHECKING:
    from tutti.formats.booksim.traffic import BookSimInput


def router(given: BookSimInput) -> dict[str, Any]:
    """Returns the router table of a configuration; `given` collects what tutti does not model."""
    config = given.config
    speedup = config.internal_speedup
    if speedup < 1:
        least = "1 or more: routers of tutti allocate in each cycle"
        given.errors.append(given.refused("internal_speedup", least))
    table: dict[str, Any] = {
        "vcs": config.num_vcs,
        "buffer": given.collect(partial(_buffer, given), 1),
        "routing_delay": config.routing_delay,
        "vc_delay": config.vc_alloc_delay,
        "switch_delay": config.sw_alloc_delay,
        "traversal_delay": config.st_prepare_delay + config.st_final_delay,
        "credit_delay": config.credit_delay,
        "input_speedup": config.input_speedup,
        "output_speedup": config.output_speedup,
        "internal_speedup": speedup,
        "wait_for_tail_credit": config.wait_for_tail_credit > 0,
        "busy_when_full": config.vc_busy_when_full > 0,
        "prioritize_empty": config.vc_prioritize_empty > 0,
        "hold_switch": config.hold_switch_for_packet > 0,
        "priority": given.collect(partial(_priority, given), ""),
        **_allocators(given),
    }
    if config.output_buffer_size >= 0:
        table["output_buffer"] = config.output_buffer_size
    return table


def _buffer(given: BookSimInput) -> int:
    """Returns the depth of a VC, of which `buf_size` states the sum over all VCs."""
    config = given.config
    if config.buf_size <= 0:
        return config.vc_buf_size
    buffer, rest = divmod(config.buf_size, max(config.num_vcs, 1))
    if rest:
        raise given.refused("buf_size", "a multiple of `num_vcs`: VCs have private buffers")
    if "vc_buf_size" in config.given and config.vc_buf_size != buffer:
        given.remarks.append(
            f"`vc_buf_size` has no effect: `buf_size` gives each VC {plural(buffer, 'flit')}"
        )
    return buffer


def _priority(given: BookSimInput) -> str:
    known = {"none": "none", "class": "ordered", "age": "age"}
    if given.config.priority not in known:
        raise given.refused("priority", ", ".join(known))
    return known[given.config.priority]


def _allocators(given: BookSimInput) -> dict[str, Any]:
    """Returns both allocators, their arbiter and iterations, and the speculative allocator."""
    config = given.config
    keys = {"vc_allocator": "vc_allocator", "switch_allocator": "sw_allocator"}
    separate = config.speculative > 0 and config.spec_sw_allocator != "prio"
    if separate:
        keys["speculation"] = "spec_sw_allocator"
    found = {
        ours: given.collect(partial(_allocator, given, key), ("", None, None))
        for ours, key in keys.items()
    }
    table: dict[str, Any] = {
        ours: name for ours, (name, _, _) in found.items() if ours != "speculation"
    }
    for place, name in ((1, "iterations"), (2, "arbiter")):
        values = {one[place] for one in found.values() if one[place] is not None}
        if len(values) > 1:
            shared = "the same value for all allocators of a router"
            error = given.refused("sw_allocator", shared, problem=f"has different {name}")
            given.errors.append(error)
        if values:
            table[name] = values.pop()
    if config.speculative > 0:
        table["speculation"] = {
            "check_vc": config.spec_check_elig > 0,
            "check_credit": config.spec_check_cred > 0,
            "yield_to_requests": config.spec_mask_by_reqs > 0,
        }
        if separate:
            table["speculation"]["allocator"] = found["speculation"][0]
    return table


def _allocator(given: BookSimInput, key: str) -> tuple[str, int | None, str | None]:
    """Returns tutti's name of an allocator, its iterations and its arbiter, if any."""
    name, argument = call(getattr(given.config, key))
    if name not in TABLES.allocators:
        raise given.refused(key, ", ".join(TABLES.allocators))
    if name in {"islip", "pim"}:
        text = argument or "1"
        if not re.fullmatch(r"[0-9]{1,9}", text):
            raise given.refused(key, f"`{name}` with a number of iterations")
        return name, int(text), None
    if name.startswith("separable"):
        return name, None, _arbiter(given, key, argument or "round_robin")
    return TABLES.allocators[name], None, None


def _arbiter(given: BookSimInput, key: str, text: str) -> str:
    if text in {"round_robin", "matrix"}:
        return text
    tree = re.fullmatch(r"tree\(([0-9]{1,9}),(round_robin|matrix)\)", text)
    if tree is None:
        raise given.refused(key, "round_robin, matrix or tree(GROUPS,round_robin|matrix)")
    return f"tree_{tree[2]}:{tree[1]}"
