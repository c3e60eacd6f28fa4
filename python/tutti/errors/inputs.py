"""Errors of input: quantities, schedules, models, graphs, files."""

from __future__ import annotations

from typing import ClassVar

from tutti.errors.base import Kind, TuttiError


class UnitError(TuttiError, ValueError):
    """Raised for a quantity that cannot be parsed; ``text`` is the input."""

    kinds: ClassVar[dict[str, Kind]] = {
        "malformed": Kind(
            "The text is not a number followed by a unit.",
            'write a number and a unit, such as "1.34 us"',
        ),
        "missing_unit": Kind(
            "A number has no unit. Bare numbers are rejected, as their unit cannot be checked.",
            "add the unit, inside the quotes",
        ),
        "unknown_unit": Kind(
            "The unit is unknown, or belongs to another quantity. Units are case-sensitive.",
            "GB is 10^9 bytes, GiB 2^30 bytes; B is bytes, b bits; us is microseconds",
        ),
        "too_fine": Kind(
            "The value is finer than the resolution; nothing is rounded silently.",
            "times are integers of picoseconds, sizes integers of bytes",
        ),
        "too_large": Kind("The value exceeds the largest that can be stored.", "check the unit"),
        "zero": Kind(
            "The value is zero where it must be positive, such as a rate.",
            "give a positive value",
        ),
        "negative": Kind("The quantity is negative.", "give a positive value, or zero"),
    }


class LayoutError(TuttiError, ValueError):
    """Raised for a payload that cannot be divided into chunks."""

    kinds: ClassVar[dict[str, Kind]] = {
        "partial_element": Kind(
            "The size is not a multiple of the datatype's size.",
            "choose a size that is a multiple of the datatype's size; sizes are never rounded",
        ),
        "unequal_parts": Kind(
            "Parts would differ in size, although the schedule exchanges them: in any "
            "all_to_all, in a schedule that stores shards in another slot than its data, and "
            "where chunks are reordered.",
            "choose a size that is a multiple of chunks x datatype, or another algorithm",
        ),
        "barrier_with_data": Kind("The payload of a barrier is not empty.", 'its size is "0 B"'),
        "unknown_datatype": Kind("The datatype is unknown.", "names are those of numpy"),
        "empty_element": Kind("The datatype has no bytes.", "give a datatype of at least one byte"),
        "no_chunks": Kind("The payload is divided into zero chunks.", "give at least one chunk"),
        "not_square": Kind("The blocks are not ranks x ranks.", "give a row per source"),
        "block_size": Kind("The size of a block is invalid.", "sizes are integers from 0"),
        "too_many_ranks": Kind("Blocks exist for up to 4,096 ranks.", "use fewer ranks"),
        "too_large": Kind("The blocks sum to more than 2^64 - 1.", "use smaller relative sizes"),
        "all_empty": Kind("All blocks are empty.", "give at least one block a size above zero"),
    }


class AlgorithmError(TuttiError, ValueError):
    """Raised for an unknown algorithm, or one that does not support the request."""

    kinds: ClassVar[dict[str, Kind]] = {
        "unknown": Kind("The algorithm is unknown.", "`tutti schedule list` shows every algorithm"),
        "unknown_collective": Kind(
            "The collective is unknown.",
            "names are in snake case, such as all_reduce",
        ),
        "too_few_ranks": Kind("The number of ranks is less than two.", "use two ranks or more"),
        "too_many_ranks": Kind(
            "The number of ranks exceeds the largest rank id.",
            "use fewer ranks",
        ),
        "wrong_collective": Kind(
            "The algorithm does not perform this collective.",
            "`tutti schedule list` shows what each algorithm performs",
        ),
        "wrong_ranks": Kind(
            "The algorithm does not support this number of ranks.",
            "choose another rank count, or another algorithm; tutti substitutes none",
        ),
        "wrong_root": Kind("The root is not one of the ranks.", "ranks count from 0"),
        "argument": Kind(
            "The argument after the colon cannot be parsed or does not fit; `at` is the byte "
            "offset.",
            "`tutti schedule list` shows what may follow the colon",
        ),
    }


class ScheduleError(TuttiError, ValueError):
    """Raised for an invalid schedule, or a rank or step that a schedule does not have."""

    kinds: ClassVar[dict[str, Kind]] = {
        "no_such_rank": Kind("The schedule has no such rank.", "ranks count from 0"),
        "out_of_range": Kind("A count or an index is negative or too large.", "count from 0"),
        "no_such_step": Kind("The rank has no such step.", "steps count from 0"),
        "no_such_phase": Kind("The schedule has no such phase.", "phases count from 0"),
        "no_ranks": Kind("The schedule has no ranks.", "give at least one rank"),
        "unmatched": Kind("A send has no receive.", "verify the schedule"),
        "no_value": Kind("A rank sends a chunk that it does not have.", "verify the schedule"),
        "computes": Kind(
            "A collective contains compute ops.",
            "move them into tasks of the training step",
        ),
        "too_many_ranks": Kind(
            "The number of ranks exceeds the largest rank id.",
            "use fewer ranks",
        ),
        "no_chunks": Kind("The payload is divided into zero chunks.", "give at least one chunk"),
        "blocks": Kind(
            "The blocks of an all_to_all_v do not fit, or the collective has none.",
            "give a size per source and destination",
        ),
        "rank_outside": Kind(
            "An op belongs to a rank that the schedule does not have.",
            "ranks count from 0",
        ),
        "backward_chunks": Kind(
            "A range of chunks ends before it starts.",
            "chunks are given as start and end",
        ),
        "slot_outside": Kind(
            "The slot number exceeds the largest that can be stored.",
            "number slots from 0",
        ),
        "bad_name": Kind(
            "The name cannot be written to a file and read back.",
            "use one line without leading or trailing spaces",
        ),
        "wrong_root": Kind("The root is not one of the ranks.", "ranks count from 0"),
        "not_repeated": Kind(
            "The schedule cannot be repeated.",
            "repeat it at least once; its result must be in the data slot",
        ),
        "not_a_program": Kind("No chunk program is equivalent to the schedule.", "report it"),
        "no_such_chunks": Kind(
            "The chunks are neither a number nor a range.",
            "chunk=2 is one chunk, chunks=(0, 4) the run 0, 1, 2, 3",
        ),
    }


class TextError(ScheduleError):
    """Raised for text that is not a schedule; ``line`` counts from 1."""

    kinds: ClassVar[dict[str, Kind]] = {
        "malformed": Kind("The line cannot be parsed."),
        "duration": Kind("The duration cannot be parsed.", 'write it like "1.5 us"'),
        "refused": Kind("The schedule cannot contain this op."),
        "missing_header": Kind("A header line is missing.", "it comes before the first rank"),
        "second_header": Kind("A header line appears twice.", "remove one of them"),
        "rank_order": Kind("A rank appears after a higher one.", "put ranks in ascending order"),
        "outside_step": Kind(
            "An op appears before the first step.",
            "start with `rank` and `step` lines",
        ),
        "op_order": Kind(
            "An op appears too late in its step.",
            "start a new step, or put sends first, then recvs, then local ops",
        ),
    }


class ModelError(TuttiError, ValueError):
    """Raised for an unknown network model, or invalid parameters of one."""

    kinds: ClassVar[dict[str, Kind]] = {
        "unknown": Kind("The network model is unknown."),
        "unknown_parameter": Kind("The model has no such parameter."),
        "missing": Kind("A parameter without a default is missing.", "give it"),
        "value": Kind("The value is not of the parameter's quantity.", "write a number and a unit"),
        "empty_packets": Kind("The packet size is zero.", 'write a size such as "4 KiB"'),
        "buffer_too_small": Kind("The buffer is smaller than a packet.", "enlarge `buffer`"),
        "packets_too_long": Kind("The packet exceeds the largest length that can be counted."),
        "takes_no_time": Kind(
            "Messages would take no time.",
            "give at least one of the parameters",
        ),
        "later_costs_more": Kind(
            "Later messages of a burst would cost more than the first.",
            "were the two swapped?",
        ),
        "longer_takes_less": Kind(
            "A message would take less time than a shorter one.",
            "raise the parameters of the longer message or move the limit between the two",
        ),
    }


class NoiseError(TuttiError, ValueError):
    """Raised for an invalid disturbance: a distribution, a load or the speed of a rank."""

    kinds: ClassVar[dict[str, Kind]] = {
        "malformed": Kind("The text is not a distribution."),
        "unknown": Kind("The distribution is unknown."),
        "arguments": Kind("The distribution has too few or too many arguments."),
        "value": Kind("An argument is not a time.", "write a number and a unit"),
        "number": Kind("An argument is not a number, or out of its range."),
        "inverted": Kind("The lower bound exceeds the upper bound.", "give the lower one first"),
        "no_samples": Kind("The recorded distribution has no samples.", "give at least one"),
        "no_parts": Kind("The mixture has no parts.", "give at least one part"),
        "no_time_to_work": Kind(
            "Detours take all of the processor's time.",
            "make them shorter, or their period longer",
        ),
        "outside_cycle": Kind(
            "A detour starts after the end of its cycle.",
            "make the cycle longer",
        ),
        "too_few_arrivals": Kind(
            "Arrivals were recorded for fewer ranks than the run has.",
            "run on fewer ranks",
        ),
        "load": Kind(
            "The background load of a link is negative, or takes its full rate.",
            "a load is a share of the rate, such as 0.3",
        ),
        "loads": Kind(
            "The number of loads is neither one nor the number of link classes.",
            "link classes differ in rate, latency or length; they are ordered fastest first",
        ),
        "no_links": Kind(
            "A background load is given for a platform without links.",
            "give the platform a `[topology]`",
        ),
        "speed": Kind(
            "The speed is zero, negative or not a number.",
            "1 is nominal, 0.5 half as fast",
        ),
    }


class EnergyError(TuttiError, ValueError):
    """Raised for invalid constants, hardware or events of an energy or area model."""

    kinds: ClassVar[dict[str, Kind]] = {
        "unknown_technology": Kind(
            "The router or link technology is unknown.",
            "`tutti.energy.technologies()` lists them",
        ),
        "unknown_parameter": Kind(
            "The constant is unknown.",
            "`Technology.constants` lists them, with their units",
        ),
        "value": Kind(
            "The constant is negative or not a number.",
            "give it in the unit of its name",
        ),
        "bounds": Kind(
            "The bounds do not enclose their value.",
            "bounds are factors, such as 0.8 and 1.25",
        ),
        "no_source": Kind(
            "The constant has no source to check it against.",
            "name the paper and table, or the tool and version",
        ),
        "zero": Kind("The router has no ports, VCs, buffers or bits.", "give at least one"),
        "zero_cycle": Kind("The clock cycle is zero.", 'such as cycle="1 ns"'),
        "wrong_links": Kind(
            "Flits are counted for other link groups than the network has.",
            "give one number for each link group, in the order of the groups",
        ),
        "too_many_outputs": Kind(
            "Flits leave a router at more outputs than it has.",
            "entry k counts traversals to k + 1 outputs at once",
        ),
        "too_many": Kind("The sum is too large to be counted.", "take a shorter window"),
        "mesh": Kind(
            "Energy cannot be computed for this mesh, or for these counts.",
            "pass a `SmartMesh` of routers, and the counts of a run on it",
        ),
        "no_length": Kind(
            "The length of a link is unknown.",
            "give the topology's links their `length`",
        ),
        "no_flits": Kind(
            "Router events are requested for a platform without flits.",
            "give the platform `[topology.flits]`",
        ),
        "no_packets": Kind(
            "Bytes over links are requested for a platform without packets.",
            "give the platform `[topology.packets]`",
        ),
        "off_grid": Kind(
            "A link joins vertices that are not chiplets of a square grid.",
            "leave the pitch out, and give the topology's links their `length`",
        ),
        "mixed_ends": Kind("Some NPUs are routers, and others are attached to a router."),
        "no_chiplets": Kind(
            "A technology for links inside chiplets is given for another topology.",
            "leave `on_chip` out",
        ),
        "no_technology": Kind(
            "An energy is requested without the technology that defines the energy of events.",
            'such as Technology(router="dsent_45nm", link="dsent_45nm")',
        ),
    }


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
            "No cable joins the two vertices.", "`tutti.topology.cables` lists the cables"
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


class BypassError(TuttiError, ValueError):
    """Raised for an invalid bypass network, or a configuration that does not match it."""

    kinds: ClassVar[dict[str, Kind]] = {
        "wrong_side": Kind("The mesh is too small or too large.", "give k of the k x k nodes"),
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


class ConfigError(TuttiError, ValueError):
    """Raised for an invalid configuration; the fields give file, key, value and expectation."""

    kinds: ClassVar[dict[str, Kind]] = {
        "invalid": Kind("A key or a value of the configuration is invalid."),
        "missing_extra": Kind(
            "A Python package of an extra is not installed; the message names the extra."
        ),
    }
