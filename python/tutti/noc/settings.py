"""What a network of routers is told: routers, traffic, and how long to measure.

All delays are in clock cycles, all lengths of packets and buffers in flits, all rates in flits per
node and cycle. Numbers are checked against each other when a network is made of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tutti.errors import NocError

if TYPE_CHECKING:
    from tutti import _core

Priority = Literal["none", "ordered", "age"]

_MOST = (1 << 32) - 1
_MOST_CYCLES = 1 << 40
_LEAST_LIMIT = 1e-6
_MOST_PORTS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Speculation:
    """Heads ask for a VC and for the switch in the same cycle.

    Attributes:
        check_vc: Ask for the switch only where a VC is free.
        check_credit: Ask for it only where a free VC has a credit.
        allocator: The allocator of its own for those that speculate; without one they share the
            switch allocator at lower priority.
        yield_to_requests: Those that speculate lose an output that others ask for, even if the
            others do not get it.
    """

    check_vc: bool = True
    check_credit: bool = False
    allocator: str | None = None
    yield_to_requests: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Router:
    """What all routers of a network are like.

    Attributes:
        vcs: Virtual channels of each port, 1 to 64.
        buffer: Flits that the buffer of each VC holds.
        routing_delay: Cycles for routing; none with look-ahead.
        vc_delay: Cycles for VC allocation, at least one.
        switch_delay: Cycles for switch allocation, at least one.
        traversal_delay: Cycles in the switch; none when switch and link are crossed in one cycle.
        credit_delay: Cycles until a credit that has arrived counts.
        port_latency: Cycles between an NPU and a router of its own, each way.
        injection: Flits per cycle that an NPU sends to a router of its own. With more than 1 here
            or in `ejection` it has as many ports there, for different messages where there are
            some; that is for schedules, not for traffic.
        ejection: Flits per cycle that it takes from there.
        speculation: Whether and how heads ask for VC and switch at once.
        vc_allocator: Who gets which VC.
        switch_allocator: Who gets the switch.
        arbiter: The arbiters in both: `round_robin`, `matrix`, `tree_round_robin:GROUPS` or
            `tree_matrix:GROUPS`.
        iterations: Iterations of allocators that iterate.
        input_speedup: Switch inputs per input port.
        output_speedup: Switch outputs per output port.
        internal_speedup: Allocation rounds per cycle.
        output_buffer: Flits that wait behind each switch output at most; None is no limit.
        wait_for_tail_credit: A VC is given to the next packet only when the last one has left the
            buffer behind it.
        busy_when_full: A VC without credits is not given to anybody.
        prioritize_empty: Empty VCs are given first.
        hold_switch: A packet keeps its way through the switch until its tail has passed.
        cut_through: A packet goes on only into a buffer that has room for all of it.
        priority: Which packets go first: `none`, `ordered` (by the traffic's) or `age`.
    """

    vcs: int = 4
    buffer: int = 8
    routing_delay: int = 0
    vc_delay: int = 1
    switch_delay: int = 1
    traversal_delay: int = 1
    credit_delay: int = 1
    port_latency: int = 1
    injection: float = 1.0
    ejection: float = 1.0
    speculation: Speculation | None = None
    vc_allocator: str = "separable_input_first"
    switch_allocator: str = "separable_input_first"
    arbiter: str = "round_robin"
    iterations: int = 1
    input_speedup: int = 1
    output_speedup: int = 1
    internal_speedup: int = 1
    output_buffer: int | None = None
    wait_for_tail_credit: bool = False
    busy_when_full: bool = False
    prioritize_empty: bool = False
    hold_switch: bool = False
    cut_through: bool = False
    priority: Priority = "none"

    def __post_init__(self) -> None:
        """Refuses numbers that the core cannot take at all.

        Raises:
            NocError: one of them is none.
        """
        for name in _COUNTS:
            _whole(name, getattr(self, name), _MOST)
        if not 1 <= self.port_latency <= 1 << 16:
            message = f"`port_latency` is {self.port_latency}: expected 1 to {1 << 16}"
            raise NocError(message, kind="out_of_range")
        for name in ("injection", "ejection"):
            limit = getattr(self, name)
            if isinstance(limit, bool) or not _LEAST_LIMIT <= limit <= _MOST_PORTS:
                expected = f"{_LEAST_LIMIT} to {_MOST_PORTS} flits per cycle"
                message = f"`{name}` is {limit!r}: expected {expected}"
                raise NocError(message, kind="out_of_range")
        if self.output_buffer is not None:
            _whole("output_buffer", self.output_buffer, _MOST)

    def ports(self, cycle_ps: int) -> tuple[int, int, int]:
        """Ports between an NPU and its router; a flit's time into one, and out of one, in ps."""
        ports = math.ceil(max(self.injection, self.ejection))
        into, out = cycle_ps * ports / self.injection, cycle_ps * ports / self.ejection
        return ports, round(into), round(out)

    def core_settings(self, classes: list[tuple[int, int]], seed: int) -> _core._Settings:
        """As the core takes them."""
        ahead = self.speculation
        return {
            "vcs": self.vcs,
            "buffer": self.buffer,
            "classes": classes,
            "routing_delay": self.routing_delay,
            "vc_delay": self.vc_delay,
            "switch_delay": self.switch_delay,
            "traversal_delay": self.traversal_delay,
            "credit_delay": self.credit_delay,
            "speculation": None
            if ahead is None
            else (ahead.check_vc, ahead.check_credit, ahead.allocator, ahead.yield_to_requests),
            "vc_allocator": self.vc_allocator,
            "switch_allocator": self.switch_allocator,
            "arbiter": self.arbiter,
            "iterations": self.iterations,
            "input_speedup": self.input_speedup,
            "output_speedup": self.output_speedup,
            "internal_speedup": self.internal_speedup,
            "output_buffer": self.output_buffer,
            "wait_for_tail_credit": self.wait_for_tail_credit,
            "busy_when_full": self.busy_when_full,
            "prioritize_empty": self.prioritize_empty,
            "hold_switch": self.hold_switch,
            "cut_through": self.cut_through,
            "priority": self.priority,
            "seed": seed,
        }


_COUNTS = (
    "vcs",
    "buffer",
    "routing_delay",
    "vc_delay",
    "switch_delay",
    "traversal_delay",
    "credit_delay",
    "port_latency",
    "iterations",
    "input_speedup",
    "output_speedup",
    "internal_speedup",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Packets of one class, generated.

    Attributes:
        rate: Flits per node and cycle.
        pattern: Where packets go, as `name` or `name:argument`; `tutti.noc.patterns` lists them.
        process: When they are generated: `bernoulli`, `periodic`, `periodic:aligned` or `on_off:`
            with two of `alpha=`, `beta=` and `r1=`.
        packet: Flits of a packet: a number, several such as `"1,5"`, each as likely, or with
            weights, `"1,5/3,1"`.
        vcs: The first and the last VC of the class; None is all.
        priority: Larger goes first, where the routers' priority is `ordered`.
    """

    rate: float
    pattern: str = "uniform"
    process: str = "bernoulli"
    packet: int | str = 1
    vcs: tuple[int, int] | None = None
    priority: int = 0

    def core_load(self, share: float = 1.0) -> tuple[str, str, float, str, int]:
        """As the core takes it, with so many times its rate."""
        return self.pattern, self.process, self.rate * share, str(self.packet), self.priority


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Recorded packets, of one class or several.

    Attributes:
        text: Comma-separated values with the columns cycle, source, destination, flits and, where
            there are classes, class.
        vcs: For each class its first and its last VC; None is one class on all VCs.
    """

    text: str
    vcs: tuple[tuple[int, int], ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How long to run.

    Attributes:
        warmup: Cycles before the window that is measured.
        measure: Cycles of the window.
        batches: Parts of the window whose means give the confidence intervals, 2 or more.
        drain: Cycles after the window in which what was created in it must arrive.
        patience: Cycles without any flit moving after which packets under way are called
            deadlocked.
        sample: Every how many cycles of the window buffers are looked at; never if 0.
        keep_vcs: Whether to keep, each time, how full the buffer of every VC was and what it had
            sent: `NocRun.vcs_over_time`.
    """

    warmup: int = 5_000
    measure: int = 20_000
    batches: int = 20
    drain: int = 20_000
    patience: int = 5_000
    sample: int = 100
    keep_vcs: bool = False

    def __post_init__(self) -> None:
        """Refuses numbers that the core cannot take at all.

        Raises:
            NocError: one of them is none.
        """
        for name in ("warmup", "measure", "drain", "patience", "sample"):
            _whole(name, getattr(self, name), _MOST_CYCLES)
        _whole("batches", self.batches, _MOST)

    def core_plan(self) -> tuple[int, int, int, int, int, int, bool]:
        """As the core takes it."""
        times = (self.warmup, self.measure, self.batches, self.drain, self.patience, self.sample)
        return (*times, self.keep_vcs)


def _whole(name: str, value: object, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        message = f"`{name}` is {value!r}: expected a whole number from 0 to {most}"
        raise NocError(message, kind="out_of_range")
