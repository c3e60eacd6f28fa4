"""Errors of topologies and their routes."""

from __future__ import annotations

from typing import ClassVar

from tutti.base.errors import Kind, TuttiError


class TopologyError(TuttiError, ValueError):
    """Raised for an invalid topology, or routes that do not match it."""

    kinds: ClassVar[dict[str, Kind]] = {
        "file": Kind(
            "The file is missing, unreadable, too large, or of an unknown format.",
            "supported formats are GraphML (.graphml) and node-link JSON (.json)",
        ),
        "format": Kind(
            "The content of the file is not the GraphML, node-link JSON or anynet that its "
            "suffix states.",
            "compare it with the output of `Topology.write`",
        ),
        "attribute": Kind(
            "An attribute of a vertex or an edge is missing or invalid.",
            "vertices have `kind` and `rank`, edges `rate`, `latency` and `length`",
        ),
        "parameters": Kind(
            "Link parameters are given twice or not at all.",
            "give `rate` and `latency` for all links, or `links` with one entry per link class",
        ),
        "too_large_to_draw": Kind(
            "The graph has more vertices than a drawing can show.",
            "draw a smaller instance of the same family",
        ),
        "torus_too_small": Kind("The torus has fewer than two NPUs.", "add nodes to a ring"),
        "torus_too_large": Kind("The torus has more NPUs than can be counted."),
        "empty_ring": Kind("A ring has no NPUs.", "a ring has at least 1 NPU"),
        "no_latency": Kind("The latency of a link is zero.", "give it a latency of at least 1 ps"),
        "no_npus": Kind("No vertex is an NPU.", 'ranks are placed on vertices of kind "npu"'),
        "too_few_nodes": Kind(
            "The mesh has fewer nodes than there are ranks.",
            "use fewer ranks, or give the mesh more `columns` or `rows`",
        ),
        "too_many_vertices": Kind(
            "The number of vertices exceeds the largest vertex id.",
            "use fewer vertices",
        ),
        "too_many_npus": Kind(
            "The graph has more NPUs than a schedule can have ranks.",
            "use fewer NPUs",
        ),
        "too_many_links": Kind(
            "The links do not fit into memory.",
            "a switch connects many NPUs with few links",
        ),
        "unknown_vertex": Kind(
            "A link names a vertex that does not exist.", "vertices count from 0"
        ),
        "self_link": Kind("A link connects a vertex to itself.", "remove it"),
        "zero_time_per_byte": Kind(
            "The rate of a link is infinite.",
            "give the rate of the wire; the latency may be zero",
        ),
        "duplicate_name": Kind("Two vertices have the same name.", "rename one of them"),
        "empty_name": Kind("A vertex has no name.", "name it, or leave its default name"),
        "disconnected": Kind(
            "An NPU has no path to another NPU.",
            "links are one-directional; a cable is two links, one per direction",
        ),
        "unknown_family": Kind(
            "The topology family is unknown.",
            "docs/concepts/topology.md lists them",
        ),
        "unknown_routing": Kind("The routing is unknown."),
        "argument": Kind(
            "The argument after the colon cannot be parsed or does not fit; `at` is the byte "
            "offset.",
            "docs/concepts/topology.md lists the arguments",
        ),
        "unknown_cable": Kind(
            "No cable joins the two vertices.", "`tutti.topologies.cables` lists the cables"
        ),
        "slowed": Kind("The rate of a cable is divided by less than 1."),
        "wrong_links": Kind(
            "The number of link parameters is neither one, nor the number of links, nor that "
            "of link classes.",
            "give one entry for all links, or one per link class",
        ),
        "no_dimensions": Kind(
            "Dimension-order routing is used on a graph without dimensions.",
            "use shortest_path; a graph read from a file has no dimensions",
        ),
        "not_a_dragonfly": Kind(
            "Minimal group routing is used on a graph that is not a dragonfly.",
            "use shortest_path; a graph read from a file has no groups",
        ),
        "not_a_fat_tree": Kind(
            "D-mod-K routing is used on a graph that is not a fat tree.",
            "use ecmp or shortest_path; a graph read from a file has no levels",
        ),
        "unknown_rank": Kind("The rank is not placed on any NPU.", "ranks count from 0"),
        "unknown_link": Kind("The link does not exist.", "links count from 0"),
        "no_route": Kind("The routing table lacks a required entry.", "add it"),
        "double_route": Kind("Two routing entries contradict each other.", "remove one"),
        "foreign_link": Kind(
            "The next link of a routing entry starts at another vertex.",
            "name a link that starts at this vertex",
        ),
        "routing_loop": Kind(
            "The routing contains a loop, so messages never arrive.",
            "follow the vertices listed",
        ),
        "wrong_end": Kind("A path that does not end at its destination.", "complete it"),
        "wrong_start": Kind("A path does not start at its source.", "start it there"),
        "no_link": Kind(
            "A path uses a link that does not exist.",
            "add the link to the configuration, or use other links",
        ),
        "no_path": Kind(
            "No path of live links connects two ranks.",
            "add a link, or use a schedule between ranks that are connected",
        ),
        "double_path": Kind("Two paths are given for one pair of ranks.", "remove one"),
    }
