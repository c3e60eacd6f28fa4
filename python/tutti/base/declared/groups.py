"""Parameters of the core. Written by scripts/generate_parameters.py; do not edit."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, StrictBool, StrictStr

from tutti.base.parameters import Parameters
from tutti.base.units import Size, Time, TimePerByte


class LocalCosts(Parameters):
    """The cost of local work on a rank.

    Attributes:
        gamma: Time per byte of reducing one operand into another.
        gamma_memory: As gamma, for operands above cache; at least gamma.
        cache: The largest operand that is reduced in the cache. Required with gamma_memory.
        reduce_overhead: Fixed time of each reduction.
        copy_: Time per byte of copying.
        launch: Fixed time from the call of a collective until its first step, on every rank.
    """

    gamma: TimePerByte = Field(
        TimePerByte.parse("0 ns/B"),
        description="Time per byte of reducing one operand into another.",
    )
    gamma_memory: TimePerByte | None = Field(
        None, description="As gamma, for operands above cache; at least gamma."
    )
    cache: Size | None = Field(
        None,
        description="The largest operand that is reduced in the cache. Required with gamma_memory.",
    )
    reduce_overhead: Time = Field(Time.parse("0 ns"), description="Fixed time of each reduction.")
    copy_: TimePerByte = Field(
        TimePerByte.parse("0 ns/B"), description="Time per byte of copying.", alias="copy"
    )
    launch: Time = Field(
        Time.parse("0 ns"),
        description="Fixed time from the call of a collective until its first step, on every rank.",
    )


class FlowParameters(Parameters):
    """Concurrent messages share links and ports by max-min fairness.

    Attributes:
        injection: Rate of the injection port of each NPU; without it, only the model and the links
            limit injection.
        ejection: Rate of the ejection port of each NPU.
        per_message: The highest rate of a message, such as that of the thread block which copies
            it.
        multicast: Whether switches fork a multicast, so that each link of its tree carries one
            copy; or the names of the switches that do, with `*` for any characters.
        reduce: Whether switches reduce the contributions to a combine, so that each link carries
            one result; or the names of the switches that do, with `*` for any characters.
    """

    injection: TimePerByte | None = Field(
        None,
        description="Rate of the injection port of each NPU; without it, only the model and the links limit injection.",
    )
    ejection: TimePerByte | None = Field(None, description="Rate of the ejection port of each NPU.")
    per_message: TimePerByte | None = Field(
        None,
        description="The highest rate of a message, such as that of the thread block which copies it.",
    )
    multicast: StrictBool | tuple[StrictStr, ...] = Field(
        False,
        description="Whether switches fork a multicast, so that each link of its tree carries one copy; or the names of the switches that do, with `*` for any characters.",
    )
    reduce: StrictBool | tuple[StrictStr, ...] = Field(
        False,
        description="Whether switches reduce the contributions to a combine, so that each link carries one result; or the names of the switches that do, with `*` for any characters.",
    )


class PacketParameters(Parameters):
    """Messages are cut into packets, which queue for the links of the topology.

    Attributes:
        size: Maximum payload of a packet.
        buffer: Buffer space at the end of each link in addition to the bytes on its wire; separate
            for each number of hops (one virtual channel per hop, which prevents deadlock).
        header: Header bytes of each packet, in addition to its payload.
        injection: Rate of the injection port of each NPU; without it, only the links limit
            injection.
        ejection: Rate of the ejection port of each NPU.
        multicast: Whether switches copy the packets of a multicast to several links; or the names
            of the switches that do, with `*` for any characters.
        reduce: Whether switches reduce the packets of contributions to a combine; or the names of
            the switches that do, with `*` for any characters.
    """

    size: Size = Field(Size.parse("4 KiB"), description="Maximum payload of a packet.")
    buffer: Size = Field(
        Size.parse("64 KiB"),
        description="Buffer space at the end of each link in addition to the bytes on its wire; separate for each number of hops (one virtual channel per hop, which prevents deadlock).",
    )
    header: Size = Field(
        Size.parse("0 B"), description="Header bytes of each packet, in addition to its payload."
    )
    injection: TimePerByte | None = Field(
        None,
        description="Rate of the injection port of each NPU; without it, only the links limit injection.",
    )
    ejection: TimePerByte | None = Field(None, description="Rate of the ejection port of each NPU.")
    multicast: StrictBool | tuple[StrictStr, ...] = Field(
        False,
        description="Whether switches copy the packets of a multicast to several links; or the names of the switches that do, with `*` for any characters.",
    )
    reduce: StrictBool | tuple[StrictStr, ...] = Field(
        False,
        description="Whether switches reduce the packets of contributions to a combine; or the names of the switches that do, with `*` for any characters.",
    )


class Speculation(Parameters):
    """Heads request a VC and the switch in the same cycle.

    Source: BookSim 2: Jiang et al. 2013.

    Attributes:
        check_vc: Request the switch only where a VC is free.
        check_credit: Request the switch only where a free VC has a credit.
        allocator: A separate allocator for speculative requests; without one they share the switch
            allocator at lower priority.
        yield_to_requests: Speculative requests lose an output that others request, even if those
            are not granted.
    """

    check_vc: bool = Field(
        True, strict=True, description="Request the switch only where a VC is free."
    )
    check_credit: bool = Field(
        False, strict=True, description="Request the switch only where a free VC has a credit."
    )
    allocator: (
        Literal[
            "separable_input_first",
            "separable_output_first",
            "islip",
            "wavefront",
            "pim",
            "maximum",
        ]
        | None
    ) = Field(
        None,
        description="A separate allocator for speculative requests; without one they share the switch allocator at lower priority.",
    )
    yield_to_requests: bool = Field(
        False,
        strict=True,
        description="Speculative requests lose an output that others request, even if those are not granted.",
    )


class RouterParameters(Parameters):
    """Routers of a network; all are identical. Delays are in cycles, buffers in flits.

    Source: BookSim 2: Jiang et al. 2013.

    Attributes:
        vcs: Virtual channels of each port.
        buffer: Flits that the buffer of each VC holds.
        routing_delay: Cycles for routing; none with look-ahead.
        vc_delay: Cycles for VC allocation.
        switch_delay: Cycles for switch allocation.
        traversal_delay: Cycles in the switch; none when a flit crosses switch and link in one
            cycle.
        credit_delay: Cycles until a router uses a credit that has arrived.
        port_latency: Cycles between an NPU and a dedicated router, in each direction.
        injection: Flits per cycle that an NPU sends to a dedicated router. With more than 1 here
            or in `ejection` it has as many ports there, for different messages where there are
            several; schedules only.
        ejection: Flits per cycle that an NPU takes from a dedicated router; more than 1 as for
            `injection`.
        vc_allocator: The VC allocator.
        switch_allocator: The switch allocator.
        arbiter: The arbiters in both allocators: `round_robin`, `matrix`,
            `tree_round_robin:GROUPS` or `tree_matrix:GROUPS`.
        iterations: Iterations of iterative allocators.
        input_speedup: Switch inputs per input port: the port's VCs are distributed among them.
        output_speedup: Switch outputs per output port: input ports are distributed among them.
        internal_speedup: Allocation rounds per cycle. Fractions add up over cycles: with 1.7, a
            cycle has one or two rounds.
        output_buffer: The most flits that wait behind a switch output; unlimited if absent.
        wait_for_tail_credit: Allocate a VC to the next packet only when the last one has left the
            buffer behind it.
        busy_when_full: Do not allocate a VC that has no credits.
        prioritize_empty: Allocate empty VCs first.
        hold_switch: A packet holds its path through the switch until its tail has passed.
        cut_through: Virtual cut-through: a packet advances only into a buffer that has space for
            all of it.
        priority: Packet priority: `none` treats all packets alike, `ordered` uses the priority of
            the traffic class, `age` prefers older packets.
    """

    vcs: int = Field(4, strict=True, ge=1, le=64, description="Virtual channels of each port.")
    buffer: int = Field(
        8, strict=True, ge=1, le=32768, description="Flits that the buffer of each VC holds."
    )
    routing_delay: int = Field(
        0, strict=True, ge=0, le=65536, description="Cycles for routing; none with look-ahead."
    )
    vc_delay: int = Field(1, strict=True, ge=1, le=65536, description="Cycles for VC allocation.")
    switch_delay: int = Field(
        1, strict=True, ge=1, le=65536, description="Cycles for switch allocation."
    )
    traversal_delay: int = Field(
        1,
        strict=True,
        ge=0,
        le=65536,
        description="Cycles in the switch; none when a flit crosses switch and link in one cycle.",
    )
    credit_delay: int = Field(
        1,
        strict=True,
        ge=0,
        le=65536,
        description="Cycles until a router uses a credit that has arrived.",
    )
    port_latency: int = Field(
        1,
        strict=True,
        ge=1,
        le=65536,
        description="Cycles between an NPU and a dedicated router, in each direction.",
    )
    injection: float = Field(
        1.0,
        strict=True,
        ge=1e-06,
        le=64.0,
        description="Flits per cycle that an NPU sends to a dedicated router. With more than 1 here or in `ejection` it has as many ports there, for different messages where there are several; schedules only.",
    )
    ejection: float = Field(
        1.0,
        strict=True,
        ge=1e-06,
        le=64.0,
        description="Flits per cycle that an NPU takes from a dedicated router; more than 1 as for `injection`.",
    )
    vc_allocator: Literal[
        "separable_input_first", "separable_output_first", "islip", "wavefront", "pim", "maximum"
    ] = Field("separable_input_first", description="The VC allocator.")
    switch_allocator: Literal[
        "separable_input_first", "separable_output_first", "islip", "wavefront", "pim", "maximum"
    ] = Field("separable_input_first", description="The switch allocator.")
    arbiter: str = Field(
        "round_robin",
        strict=True,
        description="The arbiters in both allocators: `round_robin`, `matrix`, `tree_round_robin:GROUPS` or `tree_matrix:GROUPS`.",
    )
    iterations: int = Field(
        1, strict=True, ge=1, le=64, description="Iterations of iterative allocators."
    )
    input_speedup: int = Field(
        1,
        strict=True,
        ge=1,
        le=64,
        description="Switch inputs per input port: the port's VCs are distributed among them.",
    )
    output_speedup: int = Field(
        1,
        strict=True,
        ge=1,
        le=64,
        description="Switch outputs per output port: input ports are distributed among them.",
    )
    internal_speedup: float = Field(
        1.0,
        strict=True,
        ge=1.0,
        le=64.0,
        description="Allocation rounds per cycle. Fractions add up over cycles: with 1.7, a cycle has one or two rounds.",
    )
    output_buffer: int | None = Field(
        None,
        strict=True,
        ge=1,
        le=32768,
        description="The most flits that wait behind a switch output; unlimited if absent.",
    )
    wait_for_tail_credit: bool = Field(
        False,
        strict=True,
        description="Allocate a VC to the next packet only when the last one has left the buffer behind it.",
    )
    busy_when_full: bool = Field(
        False, strict=True, description="Do not allocate a VC that has no credits."
    )
    prioritize_empty: bool = Field(False, strict=True, description="Allocate empty VCs first.")
    hold_switch: bool = Field(
        False,
        strict=True,
        description="A packet holds its path through the switch until its tail has passed.",
    )
    cut_through: bool = Field(
        False,
        strict=True,
        description="Virtual cut-through: a packet advances only into a buffer that has space for all of it.",
    )
    priority: Literal["none", "ordered", "age"] = Field(
        "none",
        description="Packet priority: `none` treats all packets alike, `ordered` uses the priority of the traffic class, `age` prefers older packets.",
    )
