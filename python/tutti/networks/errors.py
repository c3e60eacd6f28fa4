"""Errors of router networks, their traffic, and coherent chips on them."""

from __future__ import annotations

from typing import ClassVar

from tutti.base.errors import Kind, SimulationError, TuttiError


class NocError(TuttiError, ValueError):
    """Raised for an invalid router network, or a routing that does not match it."""

    kinds: ClassVar[dict[str, Kind]] = {
        "no_cycle": Kind("The clock cycle is zero.", 'write it like cycle = "1 ns"'),
        "too_many_cycles": Kind(
            "The latency exceeds the largest number of cycles.",
            "check the units",
        ),
        "flit_too_wide": Kind(
            "A link carries less than one flit per cycle.",
            "shorten `flit`, lengthen `cycle`, or let flits take several cycles: narrow_links"
            ' = "serialize"',
        ),
        "can_deadlock": Kind(
            'Packets can form a cyclic dependency, and `deadlock` is "refuse".',
            'another routing, or deadlock = "warn"',
        ),
        "deadlock_unknown": Kind(
            "The routing has too many paths to decide whether packets can form a cyclic "
            "dependency.",
            'another routing, or deadlock = "warn"',
        ),
        "out_of_range": Kind("A setting is out of its range."),
        "buffer_smaller_than_packet": Kind(
            "A buffer is smaller than a packet, as virtual cut-through requires.",
            "enlarge `buffer`, shorten packets, or leave `cut_through` out",
        ),
        "allocator": Kind("The parameters of an allocator are invalid."),
        "clash": Kind("Settings contradict each other."),
        "no_such_vcs": Kind("The VCs of a traffic class do not exist.", "VCs count from 0"),
        "unknown_routing": Kind("The flit routing is unknown."),
        "routing_argument": Kind("The argument after the colon of a routing cannot be parsed."),
        "topology": Kind("The routing of the graph requires another kind of graph."),
        "routing_does_not_fit": Kind(
            "The routing requires another kind of network.",
            "`shortest_path` works on every graph",
        ),
        "too_few_vcs": Kind(
            "The routing needs more VCs to be deadlock-free.",
            "raise `vcs`, or give the class more VCs",
        ),
        "flow": Kind(
            "The packets of a flow do not arrive.",
            "ports of a router count from 0: first the links, in their order",
        ),
        "unreachable": Kind("A node has no path to it."),
        "unknown_design": Kind("The mesh design is unknown.", "`tutti noc list` lists them"),
        "priority": Kind("The flit priority of a mesh is unknown."),
        "arbiter": Kind("The arbiter of the mesh routers is unknown."),
        "fan_out": Kind("The multicast mode of the mesh routers is unknown."),
        "fan_in": Kind("The reduction mode of the mesh routers is unknown."),
        "no_members": Kind(
            "A multicast or a reduction has no members.",
            "name a node other than its root",
        ),
        "no_such_node": Kind("A packet, multicast or reduction names a node that does not exist."),
        "bad_packet": Kind("The packet does not match its message class."),
        "unknown_allocator": Kind("The allocator is unknown."),
        "unknown_arbiter": Kind("The arbiter is unknown."),
        "unknown_priority": Kind("The priority of allocators is unknown."),
        "no_ports": Kind("The allocator has no inputs or outputs."),
        "too_many_ports": Kind("The allocator has more ports than fit into memory."),
        "no_iterations": Kind("The allocator has no iterations.", "give at least one"),
        "groups": Kind(
            "The groups of a tree arbiter would differ in size.",
            "choose a number of groups that divides the number of requesters",
        ),
        "not_recorded": Kind(
            "The occupancy of VCs over time was not recorded.",
            "measure with MeasurementPlan(sample=100, keep_vcs=True)",
        ),
        "unknown_channel": Kind("No channel has these endpoints.", "`NocRun.channels` lists them"),
        "search": Kind(
            "The parameters of a saturation search are invalid.",
            "loads have the unit of the traffic's rate; tolerances are positive",
        ),
    }


class TrafficError(TuttiError, ValueError):
    """Raised for invalid traffic: a pattern, an injection process, packet sizes or a trace."""

    kinds: ClassVar[dict[str, Kind]] = {
        "unknown_pattern": Kind("The traffic pattern is unknown."),
        "malformed": Kind("An argument is missing, unexpected or cannot be parsed."),
        "nodes": Kind("The pattern is not defined for this number of nodes."),
        "no_grid": Kind(
            "The pattern requires dimensions, and the network has none.",
            "give the layout of the nodes: grid = [8, 8]",
        ),
        "grid": Kind("The pattern is not defined on this grid."),
        "grid_size": Kind("The grid has more or fewer nodes than the network."),
        "unknown_node": Kind("The pattern names a node that does not exist.", "nodes count from 0"),
        "repeated": Kind("The pattern names a node twice.", "name each once"),
        "count": Kind("The list has too few or too many entries."),
        "no_weight": Kind("All weights are zero.", "give a weight above zero"),
        "no_destination": Kind("The pattern leaves no destination."),
        "unknown_process": Kind("The injection process is unknown."),
        "chance": Kind(
            "The rate or the probability is invalid.",
            "rates are flits per node and cycle; for meshes with several hops per cycle, "
            "broadcasts and multicasts count messages per source and cycle, reductions per "
            "cycle",
        ),
        "bursts": Kind("Bursts require two of alpha, beta and r1."),
        "out_of_reach": Kind("Bursts cannot reach the rate.", "lower the rate, or raise r1"),
        "stuck": Kind("Bursts neither start nor end."),
        "no_flits": Kind("A packet has no flits.", "a packet has at least one"),
        "trace": Kind("A line of the trace cannot be parsed."),
        "kind": Kind("The message kind of the mesh is unknown."),
        "sources": Kind("The source nodes are invalid."),
        "members": Kind("The members of multicasts are invalid."),
        "message_class": Kind("The message class is unknown."),
        "outstanding": Kind("The limit of reductions in flight is invalid."),
    }


class CoherenceError(TuttiError, ValueError):
    """Raised for an invalid chip with coherent caches, or a kernel that does not match it."""

    kinds: ClassVar[dict[str, Kind]] = {
        "unknown_kernel": Kind("The kernel is unknown.", "`tutti coherence list` lists them"),
        "unknown_scale": Kind("The kernel has no such scale."),
        "cores": Kind(
            "The kernel cannot be divided among this many cores.",
            "a larger scale has more work; a smaller mesh or a lower `cores` has fewer cores",
        ),
        "protocol": Kind("The coherence protocol is unknown."),
        "collector": Kind("The collector of acknowledgements is unknown."),
        "shared_hint": Kind("The value of the sharing hint is unknown."),
        "out_of_range": Kind("A setting of the chip is out of its range."),
        "threads": Kind("The program uses more cores than the mesh has nodes.", "lower `cores`"),
        "memory": Kind("The program has no memory, or more lines than can be counted."),
        "trace": Kind("The trace of accesses cannot be repeated."),
        "operation": Kind("The operation of a trace is unknown."),
    }


class CoherenceRunError(SimulationError):
    """Raised for a program on a chip with coherent caches that gives no result."""

    kinds: ClassVar[dict[str, Kind]] = {
        "fabric": Kind("The network rejects a message of the protocol."),
        "address": Kind("The program accesses an address outside its memory."),
        "region": Kind("The program enters or leaves its region of interest out of order."),
        "incoherent": Kind("The protocol violates coherence: a defect of tutti."),
        "deadlock": Kind("All cores wait for events that never occur."),
        "fabric_stuck": Kind("Packets are in flight in the network, and none moves."),
        "no_progress": Kind(
            "No access has completed within `patience` cycles.",
            "raise `patience`",
        ),
        "endless": Kind("The program exceeds the limit of cycles.", "raise `limit`"),
        "wrong": Kind("The result of the program differs from that of the serial program."),
        "stopped": Kind("The run was interrupted before it finished.", "run it again"),
    }
