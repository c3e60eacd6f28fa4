"""Errors of bypass meshes and their configurations."""

from __future__ import annotations

from typing import ClassVar

from tutti.base.errors import Kind, TuttiError


class BypassError(TuttiError, ValueError):
    """Raised for an invalid bypass network, or a configuration that does not match it."""

    kinds: ClassVar[dict[str, Kind]] = {
        "wrong_side": Kind(
            "The mesh is too small or too large.", "give its columns and rows, such as 6x4"
        ),
        "too_many_wires": Kind("The number of wires exceeds the limit.", "use fewer wires"),
        "unknown_muxes": Kind(
            "The mux design is unknown.",
            "docs/concepts/bypass.md lists the mux designs",
        ),
        "malformed": Kind(
            "A part of the notation cannot be parsed; `at` is the byte offset.",
            "separate links by commas, such as `mesh,0=>3@0/west/east`",
        ),
        "other_mesh": Kind(
            "The configuration belongs to another mesh.",
            "use the mesh that it was built for",
        ),
        "other_topology": Kind(
            "The graph was not built from this configuration.",
            "use the graph that `Configuration.topology` returns",
        ),
        "no_such_node": Kind(
            "The mesh has no such node.",
            "a node is row * k + column, both from 0",
        ),
        "same_node": Kind("A link connects a node to itself.", "remove it"),
        "no_neighbours": Kind(
            "A mesh link connects nodes that are not neighbours.",
            "`-` and `>` are mesh links, `=` and `=>` bypass links",
        ),
        "aslant": Kind(
            "A bypass link connects nodes of different rows and columns.",
            "a wire runs along one row or column: use two bypass links, or one and mesh links",
        ),
        "no_such_wire": Kind(
            "The row or column has no such wire.",
            "raise `wires`, or use another wire",
        ),
        "segment_taken": Kind(
            "Two bypass links share a segment of a wire.",
            "shorten one of them, or give the mesh more `wires`",
        ),
        "wrong_port": Kind(
            "The muxes do not connect the bypass link to this port.",
            "leave the ports out, or choose other `muxes`",
        ),
        "port_taken": Kind(
            "Two links use one port.",
            "a port has one link at a time: remove one of them",
        ),
        "no_port": Kind(
            "A router has more links than ports.",
            "remove a mesh link from a port that the bypass link may use",
        ),
        "flow": Kind("The flow is invalid.", "a flow is (source, destination)"),
        "rate": Kind(
            "A rate is of a node or a link that does not exist.",
            "give the rate of a chiplet by its node, of a link by (source, destination)",
        ),
        "method": Kind("The mapping method is unknown.", "`auto` chooses one"),
        "no_path": Kind(
            "No configuration that was tried has a path for the flow.", "raise `wires`"
        ),
        "too_large_to_draw": Kind(
            "The mesh has more nodes than a drawing can show.",
            "draw a smaller one",
        ),
        "unknown_ending": Kind("The suffix of the drawing is unknown.", "use .svg, .png or .pdf"),
    }
