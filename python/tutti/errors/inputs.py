"""What cannot be read or does not fit: quantities, schedules, models, graphs, files."""

from __future__ import annotations

from typing import ClassVar

from tutti.errors.base import Kind, TuttiError


class UnitError(TuttiError, ValueError):
    """A quantity that cannot be read: ``text`` is what was given."""

    kinds: ClassVar[dict[str, Kind]] = {
        "malformed": Kind(
            "The text is not a number followed by a unit.",
            'write a number and a unit, such as "1.34 us"',
        ),
        "missing_unit": Kind(
            "A number without a unit; bare numbers are refused, as nobody can check them.",
            "add the unit, inside the quotes",
        ),
        "unknown_unit": Kind(
            "The unit exists for another quantity, or not at all; units are case-sensitive.",
            "GB is 10^9 bytes, GiB 2^30; B is bytes, b bits; us is a microsecond",
        ),
        "too_fine": Kind(
            "The value is finer than what is stored; nothing is rounded silently.",
            "times are whole picoseconds, sizes whole bytes",
        ),
        "too_large": Kind("The value does not fit.", "check the unit"),
        "zero": Kind("Zero where that makes no sense, such as a rate.", "give a positive value"),
        "negative": Kind("A negative quantity.", "give a positive value, or zero"),
    }


class LayoutError(TuttiError, ValueError):
    """A payload that cannot be divided into chunks."""

    kinds: ClassVar[dict[str, Kind]] = {
        "partial_element": Kind(
            "The size is no whole number of elements of the datatype.",
            "choose a size that is a multiple of the datatype's size; sizes are never rounded",
        ),
        "unequal_parts": Kind(
            "Parts that would differ, where they change places: in any all_to_all, in a schedule "
            "that puts shards into another slot than its data, and where chunks are reordered.",
            "choose a size that is a multiple of chunks x datatype, or another algorithm",
        ),
        "barrier_with_data": Kind("A barrier of more than no bytes.", 'its size is "0 B"'),
        "unknown_datatype": Kind("No datatype has that name.", "names are those of numpy"),
        "empty_element": Kind("A datatype of no bytes.", "give a datatype of at least one byte"),
        "no_chunks": Kind("A payload divided into no chunks.", "give at least one chunk"),
    }


class AlgorithmError(TuttiError, ValueError):
    """An algorithm that does not exist, or not for what was asked of it."""

    kinds: ClassVar[dict[str, Kind]] = {
        "unknown": Kind(
            "No algorithm has that name.", "`tutti schedule list` shows every algorithm"
        ),
        "unknown_collective": Kind(
            "No collective has that name.", "names are in snake case, such as all_reduce"
        ),
        "too_few_ranks": Kind("Fewer than two ranks.", "ask for two ranks or more"),
        "too_many_ranks": Kind("More ranks than ids can count.", "ask for fewer ranks"),
        "wrong_collective": Kind(
            "The algorithm does not perform this collective.",
            "`tutti schedule list` shows what each algorithm performs",
        ),
        "wrong_ranks": Kind(
            "The algorithm does not work on this many ranks.",
            "another rank count, or another algorithm; none is substituted",
        ),
        "wrong_root": Kind("The root is not one of the ranks.", "ranks count from 0"),
        "argument": Kind(
            "What follows the colon cannot be read or does not fit; `at` is the byte where.",
            "`tutti schedule list` shows what may follow the colon",
        ),
    }


class ScheduleError(TuttiError, ValueError):
    """A schedule that cannot be built, or a rank or step that it does not have."""

    kinds: ClassVar[dict[str, Kind]] = {
        "no_such_rank": Kind("The rank is not one of the schedule's.", "ranks count from 0"),
        "out_of_range": Kind(
            "A count or an index that is negative or beyond what is counted.", "count from 0"
        ),
        "no_such_step": Kind("The rank has fewer steps.", "steps count from 0"),
        "no_such_phase": Kind("The schedule has fewer phases.", "phases count from 0"),
        "no_ranks": Kind("A schedule for no ranks.", "give at least one rank"),
        "too_many_ranks": Kind("More ranks than ids can count.", "ask for fewer ranks"),
        "no_chunks": Kind("A payload divided into no chunks.", "give at least one chunk"),
        "rank_outside": Kind("An op of a rank that is none.", "ranks count from 0"),
        "backward_chunks": Kind(
            "A run of chunks that ends before it starts.", "chunks are given as start and end"
        ),
        "slot_outside": Kind("More slots than can be counted.", "number slots from 0"),
        "bad_name": Kind(
            "A name that would not survive being written to a file.",
            "one line without leading or trailing blanks",
        ),
        "wrong_root": Kind("The root is not one of the ranks.", "ranks count from 0"),
        "not_repeated": Kind(
            "A schedule that cannot be run several times in a row.",
            "at least once, and with its result in the data slot",
        ),
        "no_such_chunks": Kind(
            "Chunks that are neither one number nor a run.",
            "chunk=2 is one chunk, chunks=(0, 4) the run 0, 1, 2, 3",
        ),
    }


class TextError(ScheduleError):
    """A text that is no schedule; ``line`` counts from 1."""

    kinds: ClassVar[dict[str, Kind]] = {
        "malformed": Kind("A line that cannot be read."),
        "duration": Kind("A duration that cannot be read.", 'write it like "1.5 us"'),
        "refused": Kind("An op that the schedule cannot have."),
        "missing_header": Kind("A header line is missing.", "it comes before the first rank"),
        "second_header": Kind("A header line is there twice.", "leave one of them out"),
        "rank_order": Kind("A rank stands after a higher one.", "put ranks in ascending order"),
        "outside_step": Kind("An op stands before any step.", "start with `rank` and `step` lines"),
        "op_order": Kind(
            "An op stands too late in its step.",
            "start a new step, or put sends first, then recvs, then local ops",
        ),
    }


class ModelError(TuttiError, ValueError):
    """A network model that does not exist, or parameters that make no model."""

    kinds: ClassVar[dict[str, Kind]] = {
        "unknown": Kind("No network model has that name."),
        "unknown_parameter": Kind("The model has no such parameter."),
        "missing": Kind("A parameter without a default was not given.", "give it"),
        "value": Kind(
            "The value is no quantity of the parameter's kind.", "write a number and a unit"
        ),
        "empty_packets": Kind("Packets of no bytes.", 'write a size such as "4 KiB"'),
        "buffer_too_small": Kind("A buffer that no packet fits in.", "enlarge `buffer`"),
        "packets_too_long": Kind("A packet longer than can be counted."),
        "takes_no_time": Kind(
            "Messages would take no time at all.", "give at least one of the parameters"
        ),
        "later_costs_more": Kind(
            "Later messages of a burst would cost more than its first.", "were the two swapped?"
        ),
    }


class NoiseError(TuttiError, ValueError):
    """A disturbance that cannot be: a distribution, or the speed of a rank."""

    kinds: ClassVar[dict[str, Kind]] = {
        "malformed": Kind("The text is no distribution."),
        "unknown": Kind("No distribution has that name."),
        "arguments": Kind("Too few or too many times."),
        "value": Kind("An argument is no time.", "write a number and a unit"),
        "number": Kind("An argument is no number, or one out of its range."),
        "inverted": Kind("The bounds are the wrong way round.", "give the lower one first"),
        "no_samples": Kind("A recorded distribution without samples.", "give at least one"),
        "no_parts": Kind("A mixture of nothing.", "give at least one part"),
        "no_time_to_work": Kind(
            "Detours take all of a processor's time.", "make them shorter, or their period longer"
        ),
        "outside_cycle": Kind(
            "A detour starts after the end of its cycle.", "make the cycle longer"
        ),
        "too_few_arrivals": Kind(
            "Arrivals were recorded for fewer ranks than take part.", "run on fewer ranks"
        ),
        "load": Kind(
            "Traffic of others that takes all of a link, or less than nothing.",
            "a load is a share of the rate, such as 0.3",
        ),
        "loads": Kind(
            "Neither one load for all links nor one for each kind.",
            "kinds of links differ in rate, latency or length; they are counted fastest first",
        ),
        "no_links": Kind("A load on a machine without links.", "give the platform a `[topology]`"),
        "speed": Kind(
            "A speed that is zero, negative or no number.", "1 is nominal, 0.5 half as fast"
        ),
    }


class EnergyError(TuttiError, ValueError):
    """An energy or an area that cannot be said: constants, hardware or events that cannot be."""

    kinds: ClassVar[dict[str, Kind]] = {
        "unknown_technology": Kind(
            "No technology of routers or of links has that name.",
            "`tutti.energy.technologies()` lists them",
        ),
        "unknown_parameter": Kind(
            "No constant has that name.", "`Technology.constants` lists them, with their units"
        ),
        "value": Kind(
            "A constant that is negative or no number.", "give it in the unit of its name"
        ),
        "bounds": Kind(
            "Bounds that do not enclose their value.",
            "they are factors, such as 0.8 and 1.25",
        ),
        "no_source": Kind(
            "A constant that nobody can check.", "name the paper and table, or the tool and version"
        ),
        "zero": Kind("A router without ports, VCs, buffers or bits.", "give at least one"),
        "zero_cycle": Kind("A clock cycle of no time.", 'such as cycle="1 ns"'),
        "wrong_links": Kind(
            "Flits on other groups of links than the network has.",
            "one number for each group of links, in its order",
        ),
        "too_many_outputs": Kind(
            "Flits that leave a router at more outputs than it has.",
            "entry k counts traversals to k + 1 outputs at once",
        ),
        "too_many": Kind("A sum that is too large to be counted.", "take a shorter window"),
        "mesh": Kind(
            "A mesh, or counts of one, that energy cannot be told of.",
            "take a `SmartMesh` of routers, and the counts of a run on it",
        ),
        "no_length": Kind(
            "A link whose length is not known.", "give the topology's links their `length`"
        ),
        "no_flits": Kind(
            "Events of routers are asked for where no flits pass any.",
            "give the platform `[topology.flits]`",
        ),
        "no_packets": Kind(
            "Bytes over links are asked for where no packets queue for them.",
            "give the platform `[topology.packets]`",
        ),
        "off_grid": Kind(
            "A link between vertices that are no chiplets of a square grid.",
            "leave the pitch out, and give the topology's links their `length`",
        ),
        "mixed_ends": Kind("Some NPUs are routers, and some hang on one."),
        "no_technology": Kind(
            "An energy is asked for where nothing says what events cost.",
            'such as Technology(router="dsent_45nm", link="dsent_45nm")',
        ),
    }


class TopologyError(TuttiError, ValueError):
    """A graph that cannot be a topology, or routes that do not fit it."""

    kinds: ClassVar[dict[str, Kind]] = {
        "file": Kind(
            "The file is missing, cannot be read, is too large, or of no known format.",
            "GraphML (.graphml) and node-link JSON (.json) are read",
        ),
        "format": Kind(
            "The file is not the GraphML or node-link JSON that its name says, or no anynet file.",
            "compare with what `Topology.write` writes",
        ),
        "attribute": Kind(
            "An attribute of a vertex or an edge is missing or cannot be used.",
            "vertices have `kind` and `rank`, edges `rate`, `latency` and `length`",
        ),
        "parameters": Kind(
            "Link parameters that are given twice or not at all.",
            "give `rate` and `latency` for all links, or `links` with one entry per link class",
        ),
        "too_large_to_draw": Kind(
            "More vertices than a drawing can show.", "draw a smaller instance of the same family"
        ),
        "torus_too_small": Kind("A torus of fewer than two NPUs.", "add nodes to a ring"),
        "torus_too_large": Kind("A torus of more NPUs than can be counted."),
        "empty_ring": Kind("A ring without NPUs.", "rings have at least 1"),
        "no_latency": Kind("A link that takes no time.", "give it a latency of at least 1 ps"),
        "no_npus": Kind("No vertex is an NPU.", 'ranks live on vertices of kind "npu"'),
        "too_few_nodes": Kind(
            "More ranks than a mesh has nodes.",
            "ask for fewer ranks, or give the mesh more `columns` or `rows`",
        ),
        "too_many_vertices": Kind("More vertices than ids can count.", "ask for fewer"),
        "too_many_npus": Kind("More NPUs than a schedule can have ranks.", "ask for fewer"),
        "too_many_links": Kind(
            "More links than fit into memory.", "a switch joins many NPUs with few links"
        ),
        "unknown_vertex": Kind(
            "A link names a vertex that does not exist.", "vertices count from 0"
        ),
        "self_link": Kind("A link from a vertex to itself.", "remove it"),
        "zero_time_per_byte": Kind(
            "A link of infinite rate.", "give the rate that the wire has; latency may be zero"
        ),
        "duplicate_name": Kind("Two vertices of the same name.", "rename one of them"),
        "empty_name": Kind("A vertex without a name.", "name it, or leave its default name"),
        "disconnected": Kind(
            "An NPU that has no path to another.",
            "links are one-directional; a cable is two of them, one each way",
        ),
        "unknown_family": Kind(
            "No family of topologies has that name.", "docs/concepts/topology.md lists them"
        ),
        "unknown_routing": Kind("No rule of routing has that name."),
        "argument": Kind(
            "What follows the colon cannot be read or does not fit; `at` is the byte where.",
            "docs/concepts/topology.md shows what may follow the colon",
        ),
        "wrong_links": Kind(
            "As many link parameters as there are neither links nor link classes.",
            "one entry is used for all links; otherwise each class needs its own",
        ),
        "no_dimensions": Kind(
            "Dimension-order routing on a graph without dimensions.",
            "use shortest_path; a graph read from a file has no dimensions either",
        ),
        "not_a_dragonfly": Kind(
            "Minimal routing, from group to group, on a graph that is no dragonfly.",
            "use shortest_path; a graph read from a file has no groups either",
        ),
        "not_a_fat_tree": Kind(
            "D-mod-K routing on a graph that is no fat tree.",
            "use ecmp or shortest_path; a graph read from a file has no levels either",
        ),
        "unknown_rank": Kind("The rank is not on any NPU.", "ranks count from 0"),
        "unknown_link": Kind("The link does not exist.", "links count from 0"),
        "no_route": Kind("A routing table without an entry that is needed.", "add it"),
        "double_route": Kind("Two entries that contradict each other.", "remove one"),
        "foreign_link": Kind("A next link that starts at another vertex.", "name a link from here"),
        "routing_loop": Kind("Messages that would never arrive.", "follow the vertices named"),
        "wrong_end": Kind("A path that does not end at its destination.", "complete it"),
        "wrong_start": Kind("A way that does not begin at its source.", "begin it there"),
        "no_link": Kind(
            "A way from one NPU to another that no link joins.",
            "add the link to the configuration, or go over others",
        ),
        "no_way": Kind(
            "Two ranks that no live links lead between.",
            "add a link, or let the schedule go over ranks that are joined",
        ),
        "double_path": Kind("Two paths for one pair of ranks.", "remove one"),
    }


class BypassError(TuttiError, ValueError):
    """A network of bypass wires that cannot be, or a configuration that does not fit it."""

    kinds: ClassVar[dict[str, Kind]] = {
        "wrong_side": Kind("A mesh that is too small or too large.", "give k of k x k nodes"),
        "too_many_wires": Kind("More wires than can be counted.", "ask for fewer"),
        "unknown_muxes": Kind(
            "There are no such muxes.", "docs/concepts/bypass.md says what each can take"
        ),
        "malformed": Kind(
            "A part of the notation cannot be read; `at` is the byte where.",
            "links have commas between, such as `mesh,0=>3@0/west/east`",
        ),
        "other_mesh": Kind(
            "A configuration of another mesh.", "configure the mesh that it was made for"
        ),
        "other_topology": Kind(
            "A graph that was not made of this configuration.",
            "use the graph that `Configuration.topology` returns",
        ),
        "no_such_node": Kind("A node beyond the last.", "node row * k + column, both from 0"),
        "same_node": Kind("A link from a node to itself.", "remove it"),
        "no_neighbours": Kind(
            "A mesh link between nodes that are not side by side.",
            "`-` and `>` are mesh links, `=` and `=>` bypass pieces",
        ),
        "aslant": Kind(
            "A piece between nodes of different rows and columns.",
            "a wire lies along one row or column: use two pieces, or one and mesh links",
        ),
        "no_such_wire": Kind("A wire that the line does not have.", "more `wires`, or another one"),
        "segment_taken": Kind(
            "Two pieces that overlap on a wire.",
            "pieces of one wire and direction share no segment: shorten one, or give the mesh "
            "more `wires`",
        ),
        "wrong_port": Kind(
            "A port that the muxes do not let a piece take.",
            "leave the ports out, or other `muxes`",
        ),
        "port_taken": Kind(
            "Two links at one port.", "a port has one link at a time: leave one of them out"
        ),
        "no_port": Kind(
            "A router with more links than ports that can take them.",
            "leave out a mesh link whose port the piece may take",
        ),
        "flow": Kind("A flow that no network could carry.", "flows are (source, destination)"),
        "method": Kind("There is no such method of mapping.", "`auto` chooses one"),
        "no_way": Kind("A flow has no way in any configuration that was tried.", "more `wires`"),
        "too_large_to_draw": Kind(
            "A mesh with more nodes than a drawing can show.", "draw a smaller one"
        ),
        "unknown_ending": Kind("A drawing is written as something else.", "use .svg, .png or .pdf"),
    }


class ConfigError(TuttiError, ValueError):
    """A configuration that cannot be used: file, key, value, what was expected."""

    kinds: ClassVar[dict[str, Kind]] = {
        "invalid": Kind(
            "A value, or a key, that the configuration does not have.",
        ),
    }
