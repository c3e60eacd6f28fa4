"""Errors of networks of routers and of their traffic."""

from __future__ import annotations

from typing import ClassVar

from tutti.errors.base import Kind, TuttiError

__all__ = ["NocError", "TrafficError"]


class NocError(TuttiError, ValueError):
    """A network of routers that cannot be, or a routing that does not suit it."""

    kinds: ClassVar[dict[str, Kind]] = {
        "no_cycle": Kind("A clock cycle of no length.", 'write it like cycle = "1 ns"'),
        "too_many_cycles": Kind("A latency of more cycles than can be counted.", "check the units"),
        "flit_too_wide": Kind(
            "A link carries less than a flit in a cycle.",
            "shorten `flit`, lengthen `cycle`, or let flits take several cycles: "
            'narrow_links = "serialize"',
        ),
        "can_deadlock": Kind(
            "The routing has a cyclic channel dependency, and `deadlock` refuses it.",
            'another routing, or deadlock = "warn"',
        ),
        "deadlock_unknown": Kind(
            "Packets have too many routes to check the routing for cyclic dependencies.",
            'another routing, or deadlock = "warn"',
        ),
        "out_of_range": Kind("A setting out of its range."),
        "buffer_smaller_than_packet": Kind(
            "With virtual cut-through a buffer must hold a whole packet.",
            "enlarge `buffer`, shorten packets, or leave `cut_through` out",
        ),
        "allocator": Kind("An allocator that cannot be."),
        "clash": Kind("Settings that do not go together."),
        "no_such_vcs": Kind("A traffic class whose VCs do not exist.", "VCs count from 0"),
        "unknown_routing": Kind("No routing of flits has that name."),
        "routing_argument": Kind("What follows a routing's colon cannot be read."),
        "topology": Kind("A routing of the graph that suits another kind of graph."),
        "routing_does_not_fit": Kind(
            "The routing is for another kind of network.", "`shortest_path` suits every graph"
        ),
        "too_few_vcs": Kind(
            "The routing needs more VCs to be free of deadlock.", "raise `vcs`, or widen the class"
        ),
        "flow": Kind(
            "A flow whose packets do not arrive.",
            "ports of a router count from 0, those along links first, in the order of the links",
        ),
        "unreachable": Kind("No path leads to a node."),
        "unknown_design": Kind("No design of meshes has that name.", "`tutti noc list` lists them"),
        "priority": Kind("Flits of a mesh have no such priority."),
        "fan_out": Kind("Routers of a mesh treat multicasts in no such way."),
        "fan_in": Kind("Routers of a mesh treat answers in no such way."),
        "no_members": Kind(
            "A multicast or a reduction among nobody.", "name a node other than its root"
        ),
        "no_such_node": Kind("A packet, multicast or reduction names a node that is not there."),
        "bad_packet": Kind("A packet that its message class does not take."),
        "unknown_allocator": Kind("No allocator has that name."),
        "unknown_arbiter": Kind("No arbiter has that name."),
        "unknown_priority": Kind("Allocators have no such priority."),
        "no_ports": Kind("An allocator without inputs or outputs."),
        "too_many_ports": Kind("An allocator of more ports than there is memory for."),
        "no_iterations": Kind("An allocator without iterations.", "give at least one"),
        "groups": Kind(
            "A tree arbiter whose groups would differ in size.",
            "choose a number of groups that divides the contenders",
        ),
        "not_kept": Kind(
            "What VCs did over time was not kept.",
            "measure with MeasurementPlan(sample=100, keep_vcs=True)",
        ),
        "unknown_channel": Kind("No channel has these ends.", "`NocRun.channels` lists them"),
        "search": Kind(
            "A search for saturation that cannot be.",
            "loads are in the unit of the traffic's rate, tolerances above 0",
        ),
    }


class TrafficError(TuttiError, ValueError):
    """Traffic that cannot be: a pattern, a process, sizes of packets, or a trace."""

    kinds: ClassVar[dict[str, Kind]] = {
        "unknown_pattern": Kind("No traffic pattern has that name."),
        "malformed": Kind("An argument that is missing, not wanted or not readable."),
        "nodes": Kind("The pattern is not defined for this many nodes."),
        "no_grid": Kind(
            "The pattern goes along dimensions, and the network has none.",
            "say how nodes are laid out: grid = [8, 8]",
        ),
        "grid": Kind("The pattern is not defined on this grid."),
        "grid_size": Kind("The grid holds more or fewer nodes than there are."),
        "unknown_node": Kind("The pattern names a node that does not exist.", "nodes count from 0"),
        "repeated": Kind("The pattern names a node twice.", "name each once"),
        "count": Kind("A list with too few or too many entries."),
        "no_weight": Kind("Weights of which none is above zero.", "give one above zero"),
        "no_destination": Kind("Nobody is left to send to."),
        "unknown_process": Kind("No injection process has that name."),
        "chance": Kind(
            "A rate or a chance that is none.",
            "rates are flits per node and cycle; over meshes of several hops per cycle those of "
            "broadcasts and multicasts are messages per source and cycle, of reductions per cycle",
        ),
        "bursts": Kind("Bursts are given by two of alpha, beta and r1."),
        "out_of_reach": Kind("Bursts that cannot carry the rate.", "lower the rate, or raise r1"),
        "stuck": Kind("Bursts that neither begin nor end."),
        "no_flits": Kind("A packet without flits.", "a packet has at least one"),
        "trace": Kind("A line of a trace that cannot be read."),
        "kind": Kind("Messages over a mesh are of no such kind."),
        "sources": Kind("No such nodes send."),
        "members": Kind("Multicasts go to no such nodes."),
        "message_class": Kind("A message class that is none."),
    }
