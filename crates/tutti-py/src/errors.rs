//! The one mapping from what the core refuses to the exceptions of `tutti.errors`.
//!
//! Each variant of each stage's error enum has a kind, its name in snake case; class and kind together
//! are the anchor of its entry in `docs/reference/errors.md`. Its fields become attributes.

mod field;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tutti_coherence::CoherenceError;
use tutti_coherence::program::ProgramError as KernelError;
use tutti_energy::EnergyError;
use tutti_engine::EngineError;
use tutti_engine::endpoint::EndpointError;
use tutti_engine::training::{TorusError, TrainingRunError};
use tutti_engine::workload::{ProgramError, SystolicError, TrainingError};
use tutti_network::packet::PacketError;
use tutti_network::{ModelError, NoiseError};
use tutti_noc::FlitError;
use tutti_noc::allocator::AllocatorError;
use tutti_noc::traffic::TrafficError;
use tutti_schedule::algorithm::AlgorithmError;
use tutti_schedule::text::TextError;
use tutti_schedule::{ExplicitError, LayoutError, VerifyError};
use tutti_topology::TopologyError;
use tutti_topology::bypass::BypassError;
use tutti_units::UnitError;
use tutti_units::parameter::ParameterError;

use field::Field;

/// An error enum of the core, taken apart for Python.
pub(crate) trait Refusal: std::fmt::Display {
    /// The class in `tutti.errors` and the kind of every variant.
    const KINDS: &'static [(&'static str, &'static str)];
    /// The class and the kind of this one.
    fn kind(&self) -> (&'static str, &'static str);
    /// The variant's fields.
    fn fields(&self, fields: &Bound<'_, PyDict>) -> PyResult<()>;
}

/// Lists an enum's variants, with the kind and the fields of each, and the class where it is not that
/// of the others; a variant that is missing here does not compile.
macro_rules! refusal {
    ($error:ident as $class:literal {
        $($variant:ident { $($field:ident),* } => $kind:literal $(of $own:literal)?,)*
    }) => {
        impl Refusal for $error {
            const KINDS: &'static [(&'static str, &'static str)] =
                &[$((refusal!(@class $class $($own)?), $kind)),*];

            fn kind(&self) -> (&'static str, &'static str) {
                match self {
                    $($error::$variant { .. } => (refusal!(@class $class $($own)?), $kind),)*
                }
            }

            fn fields(&self, fields: &Bound<'_, PyDict>) -> PyResult<()> {
                match self {
                    $($error::$variant { $($field),* } => {
                        $($field.set(fields, stringify!($field))?;)*
                    })*
                }
                Ok(())
            }
        }
    };
    (@class $class:literal) => { $class };
    (@class $class:literal $own:literal) => { $own };
}

refusal! { UnitError as "UnitError" {
    Malformed { text, quantity, example } => "malformed",
    MissingUnit { text, quantity, units, example } => "missing_unit",
    UnknownUnit { text, unit, quantity, units } => "unknown_unit",
    TooFine { text, quantity, finest } => "too_fine",
    TooLarge { text, quantity, largest } => "too_large",
    Zero { text, quantity } => "zero",
    Negative { text, quantity } => "negative",
}}

refusal! { LayoutError as "LayoutError" {
    PartialElement { size, element } => "partial_element",
    EmptyElement {} => "empty_element",
    UnequalParts { collective, size, ranks, chunks, element } => "unequal_parts",
    BarrierWithData { size } => "barrier_with_data",
    NoChunks {} => "no_chunks",
}}

refusal! { ExplicitError as "ScheduleError" {
    NoRanks {} => "no_ranks",
    TooManyRanks { ranks } => "too_many_ranks",
    NoChunks {} => "no_chunks",
    RankOutside { rank, op, last } => "rank_outside",
    BackwardChunks { rank, op, start, end } => "backward_chunks",
    SlotOutside { slot } => "slot_outside",
    BadName { name } => "bad_name",
    WrongRoot { root, last } => "wrong_root",
}}

refusal! { TextError as "TextError" {
    Malformed { line, text, expected } => "malformed",
    Duration { line, source } => "duration",
    Refused { line, source } => "refused",
    MissingHeader { line, key } => "missing_header",
    SecondHeader { line, key } => "second_header",
    RankOrder { line, rank, before } => "rank_order",
    OutsideStep { line, text } => "outside_step",
    OpOrder { line, text } => "op_order",
}}

refusal! { AlgorithmError as "AlgorithmError" {
    Unknown { name, known } => "unknown",
    TooFewRanks { ranks } => "too_few_ranks",
    TooManyRanks { ranks } => "too_many_ranks",
    WrongCollective { name, collective, performs } => "wrong_collective",
    WrongRanks { name, ranks, needs } => "wrong_ranks",
    WrongRoot { root, last } => "wrong_root",
    Argument { name, argument, at, problem } => "argument",
}}

refusal! { ModelError as "ModelError" {
    Unknown { name, known } => "unknown",
    UnknownParameter { model, parameter, known } => "unknown_parameter",
    Missing { model, parameter, kind, meaning } => "missing",
    GivenTwice { model, parameter } => "given_twice",
    Value { model, parameter, problem } => "value",
    NotACount { model, parameter, text } => "not_a_count",
    CountTooSmall { model, parameter, least } => "count_too_small",
    TakesNoTime { model, parameters } => "takes_no_time",
    LaterCostsMore { model, later, first } => "later_costs_more",
}}

refusal! { PacketError as "ModelError" {
    Empty {} => "empty_packets",
    BufferTooSmall { buffer, size, header, packet } => "buffer_too_small",
    TooLong { size } => "packets_too_long",
    Parameter { source } => "value",
}}

refusal! { ParameterError as "ModelError" {
    Unknown { group, parameter, known } => "unknown_parameter",
    Malformed { kind, text } => "value",
    OutOfRange { parameter, value, expected } => "value",
    Unit { source } => "value",
}}

refusal! { NoiseError as "NoiseError" {
    Malformed { text } => "malformed",
    Unknown { name } => "unknown",
    Arguments { text, given, expected } => "arguments",
    Value { text, problem } => "value",
    Number { text, number, expected } => "number",
    Inverted { text, low, high } => "inverted",
    NoSamples {} => "no_samples",
    NoParts {} => "no_parts",
    NoTimeToWork { lost, cycle } => "no_time_to_work",
    OutsideCycle { start, cycle } => "outside_cycle",
    Load { load } => "load",
    Loads { given, kinds } => "loads",
}}

refusal! { AllocatorError as "NocError" {
    UnknownAllocator { name } => "unknown_allocator",
    UnknownArbiter { text } => "unknown_arbiter",
    NoPorts { kind, inputs, outputs } => "no_ports",
    TooManyPorts { kind, inputs, outputs, most } => "too_many_ports",
    NoIterations { kind } => "no_iterations",
    Groups { arbiter, contenders } => "groups",
}}

refusal! { FlitError as "NocError" {
    NoCycle {} => "no_cycle",
    TooManyCycles { time, cycle, most } => "too_many_cycles",
    TooWide { flit, from, to, carries, cycle } => "flit_too_wide",
    CanDeadlock { routing, circle } => "can_deadlock",
    OutOfRange { what, value, expected } => "out_of_range",
    BufferSmallerThanPacket { buffer, packet } => "buffer_smaller_than_packet",
    UnknownPriority { name } => "unknown_priority",
    Parameter { source } => "out_of_range",
    Allocator { source } => "allocator",
    Clash { what, problem } => "clash",
    NoSuchVcs { class, first, last, vcs } => "no_such_vcs",
    UnknownRouting { name, known } => "unknown_routing",
    RoutingArgument { text, expected } => "routing_argument",
    Topology { source } => "topology",
    RoutingDoesNotFit { routing, needs, network } => "routing_does_not_fit",
    TooFewVcs { routing, needs, class, has } => "too_few_vcs",
    Flow { from, to, problem } => "flow",
    Unreachable { from, node } => "unreachable",
    UnknownDesign { name, known } => "unknown_design",
    NoMembers { what, node } => "no_members",
    NoSuchNode { what, node, nodes } => "no_such_node",
    BadPacket { class, problem } => "bad_packet",
    Stopped {} => "stopped" of "SimulationError",
}}

refusal! { TrafficError as "TrafficError" {
    UnknownPattern { name, known } => "unknown_pattern",
    Malformed { text, expected } => "malformed",
    Nodes { pattern, nodes, expected } => "nodes",
    NoGrid { pattern } => "no_grid",
    Grid { pattern, grid, expected } => "grid",
    GridSize { grid, nodes } => "grid_size",
    UnknownNode { pattern, node, nodes } => "unknown_node",
    Repeated { pattern, node } => "repeated",
    Count { pattern, what, given, expected } => "count",
    NoWeight { text } => "no_weight",
    NoDestination { pattern } => "no_destination",
    UnknownProcess { text } => "unknown_process",
    Chance { what, value } => "chance",
    Bursts { given } => "bursts",
    OutOfReach { rate, name, value } => "out_of_reach",
    Stuck {} => "stuck",
    NoFlits { text } => "no_flits",
    Trace { line, problem } => "trace",
}}

refusal! { EnergyError as "EnergyError" {
    UnknownTechnology { part, name, known } => "unknown_technology",
    UnknownParameter { parameter, known } => "unknown_parameter",
    Value { parameter, value } => "value",
    Bounds { parameter, low, high } => "bounds",
    NoSource { parameter } => "no_source",
    Zero { field } => "zero",
    ZeroCycle {} => "zero_cycle",
    WrongLinks { given, expected } => "wrong_links",
    TooManyOutputs { outputs, ports } => "too_many_outputs",
    TooMany { count } => "too_many",
}}

refusal! { ProgramError as "WorkloadError" {
    Empty {} => "empty",
    NoSuchTask { task, missing, tasks } => "no_such_task",
    Circle { circle } => "circle",
    NoBytes { task } => "no_bytes",
}}

refusal! { TrainingError as "WorkloadError" {
    NoLayers {} => "no_layers",
    NoIterations {} => "no_iterations",
    NoTop { bottom, layers } => "no_top",
    NoPipeline { stages, micro_batches } => "no_pipeline",
    EmbeddingInPipeline {} => "embedding_in_pipeline",
    Program { source } => "program",
}}

refusal! { SystolicError as "WorkloadError" {
    Empty { rows, columns } => "empty_array",
    NoArrays {} => "no_arrays",
}}

refusal! { EndpointError as "EndpointError" {
    Empty { what } => "empty",
    NoChunks {} => "no_chunks",
    NoSms {} => "no_sms",
    TooFewFsms { fsms, phases } => "too_few_fsms",
    WrongFsms { given, phases } => "wrong_fsms",
    NoFsm { phase } => "no_fsm",
    WrongShares { given, partitions } => "wrong_shares",
    PartitionTooSmall { partition, room, chunk } => "partition_too_small",
}}

refusal! { KernelError as "CoherenceError" {
    UnknownKernel { name, known } => "unknown_kernel",
    UnknownScale { name } => "unknown_scale",
    Cores { kernel, scale, cores, most, why } => "cores",
}}

refusal! { CoherenceError as "CoherenceRunError" {
    OutOfRange { what, value, expected } => "out_of_range" of "CoherenceError",
    Threads { threads, nodes } => "threads" of "CoherenceError",
    Memory { words, most } => "memory" of "CoherenceError",
    Fabric { cycle, source } => "fabric",
    Address { cycle, core, address, end } => "address",
    Region { cycle, core, what } => "region",
    Incoherent { cycle, line, problem } => "incoherent",
    Deadlock { cycle, waiting } => "deadlock",
    FabricStuck { cycle, waiting } => "fabric_stuck",
    NoProgress { cycle, patience, waiting } => "no_progress",
    Endless { limit, waiting } => "endless",
    Wrong { cycles, problem } => "wrong",
    Stopped { cycle } => "stopped",
}}

refusal! { TorusError as "TopologyError" {
    TooFew { npus } => "torus_too_small",
    TooMany { npus } => "torus_too_large",
    NoNodes { ring } => "empty_ring",
    NoLatency { ring } => "no_latency",
}}

refusal! { TrainingRunError as "SimulationError" {
    NoPlan { collective } => "no_plan",
    TooManyChunks { bytes, chunk } => "too_many_chunks",
    EmptyChunk {} => "empty_chunk",
    WrongPrograms { given, npus } => "wrong_programs",
    OtherCollectives { npu, index, found, expected } => "other_collectives",
    Endpoint { source } => "endpoint",
    Stuck { npu, task, count } => "stuck",
    Stopped {} => "stopped",
}}

refusal! { EngineError as "SimulationError" {
    Deadlock { waiting, stuck, ranks } => "deadlock" of "DeadlockError",
    Standstill { since, messages, circle } => "standstill" of "DeadlockError",
    Unreceived { count, sender, receiver } => "unreceived",
    NoSuchRank { sender, step, receiver, ranks } => "no_such_rank",
    NoWay { sender, step, receiver } => "no_way",
    NothingMoved {} => "nothing_moved",
    WrongLayout { layout, schedule } => "wrong_layout",
    Stopped {} => "stopped",
    TimeOverflow { rank } => "time_overflow",
}}

refusal! { TopologyError as "TopologyError" {
    NoNpus {} => "no_npus",
    TooManyVertices { vertices, most } => "too_many_vertices",
    TooManyNpus { npus, most } => "too_many_npus",
    TooManyLinks { links, most } => "too_many_links",
    UnknownVertex { from, to, last } => "unknown_vertex",
    SelfLink { vertex, name } => "self_link",
    ZeroTimePerByte { from, to } => "zero_time_per_byte",
    DuplicateName { name, first, second } => "duplicate_name",
    EmptyName { vertex } => "empty_name",
    Disconnected { from, to, components } => "disconnected",
    UnknownFamily { name, known } => "unknown_family",
    Argument { family, argument, at, problem } => "argument",
    WrongLinks { topology, given, expected, classes } => "wrong_links",
    NoDimensions { topology } => "no_dimensions",
    NotADragonfly { topology } => "not_a_dragonfly",
    NotAFatTree { topology } => "not_a_fat_tree",
    UnknownRank { rank, last } => "unknown_rank",
    UnknownLink { link, links } => "unknown_link",
    NoRoute { at, source_rank, destination } => "no_route",
    DoubleRoute { at, destination, first, second } => "double_route",
    ForeignLink { at, destination, link, leaves } => "foreign_link",
    RoutingLoop { source_rank, destination, vertices } => "routing_loop",
    WrongEnd { source_rank, destination, end } => "wrong_end",
    WrongStart { source_rank, destination, start } => "wrong_start",
    NoLink { source_rank, destination, at, next } => "no_link",
    NoWay { from, to } => "no_way",
    DoublePath { source_rank, destination } => "double_path",
}}

refusal! { BypassError as "BypassError" {
    WrongSide { side, most } => "wrong_side",
    TooManyWires { wires, most } => "too_many_wires",
    UnknownMuxes { name, known } => "unknown_muxes",
    Malformed { found, expected } => "malformed",
    OtherMesh { given, mesh } => "other_mesh",
    NoSuchNode { node, side, last } => "no_such_node",
    SameNode { node } => "same_node",
    NoNeighbours { from, to } => "no_neighbours",
    Aslant { from, to } => "aslant",
    NoSuchWire { from, to, wire, wires } => "no_such_wire",
    SegmentTaken { from, to, line, wire, segment, other_from, other_to } => "segment_taken",
    WrongPort { from, to, node, end, port, muxes, known } => "wrong_port",
    PortTaken { link, node, end, port, other } => "port_taken",
    NoPort { link, node, end, muxes, known, others } => "no_port",
}}

refusal! { VerifyError as "VerificationError" {
    Shape { problem } => "shape",
    Part { name } => "part",
    TooLarge { what, most } => "too_large",
    PeerOutside { at, op, peer, last } => "peer_outside",
    OwnPeer { at, op } => "own_peer",
    ChunksOutside { at, op, start, end, chunks } => "chunks_outside",
    SlotOutside { at, op, slot, slots } => "slot_outside",
    NoOperands { at, into } => "no_operands",
    NamedTwice { at, op, peer } => "named_twice",
    NotCombined { from, to } => "not_combined",
    NotContributed { at, from } => "not_contributed",
    UnlikeCombine { from, to, sent, expected } => "unlike_combine",
    RecvIntoSend { at, slot, chunks, from, sent, to } => "recv_into_send",
    RecvsOverlap { at, slot, first, first_from, second, second_from } => "recvs_overlap",
    NothingThere { at, op, slot, chunk } => "nothing_there",
    LengthMismatch { from, to, sent, expected } => "length_mismatch",
    NeverSent { wait, waits } => "never_sent",
    NeverReceived { from, to, slot, chunks, count } => "never_received",
    Deadlock { cycle, waits } => "deadlock",
    NotWritten { rank, chunk } => "not_written",
    WrongChunk { rank, chunk, wanted, found } => "wrong_chunk",
    Missing { rank, chunk, contribution, count } => "missing",
    Doubled { rank, chunk, contribution, fold } => "doubled",
    Foreign { rank, chunk, contribution } => "foreign",
    Miscounted { rank, chunk, found, wanted } => "miscounted",
}}

/// Every class and kind of error that the core raises; the reference page has an anchor for each.
#[pyfunction]
pub(crate) fn error_kinds() -> Vec<(&'static str, &'static str)> {
    [
        UnitError::KINDS,
        LayoutError::KINDS,
        TopologyError::KINDS,
        BypassError::KINDS,
        ExplicitError::KINDS,
        TextError::KINDS,
        AlgorithmError::KINDS,
        ModelError::KINDS,
        PacketError::KINDS,
        NoiseError::KINDS,
        AllocatorError::KINDS,
        FlitError::KINDS,
        TrafficError::KINDS,
        EnergyError::KINDS,
        EngineError::KINDS,
        ProgramError::KINDS,
        TrainingError::KINDS,
        SystolicError::KINDS,
        EndpointError::KINDS,
        KernelError::KINDS,
        CoherenceError::KINDS,
        TorusError::KINDS,
        TrainingRunError::KINDS,
        VerifyError::KINDS,
    ]
    .concat()
}

/// Turns the core's errors into Python's.
pub(crate) trait OrRaise<T> {
    /// The value, or the exception of the error's class.
    fn or_raise(self) -> PyResult<T>;
}

impl<T, E: Refusal> OrRaise<T> for Result<T, E> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(|error| raised(&error))
    }
}

/// As [`raised`]; what the parts of a flit network refuse is of their own class.
pub(crate) fn raised_by_flits(error: &FlitError) -> PyErr {
    match error {
        FlitError::Allocator { source } => raised(source),
        FlitError::Topology { source } => raised(source),
        _ => raised(error),
    }
}

/// An exception of `tutti.errors`.
pub(crate) fn raised<E: Refusal>(error: &E) -> PyErr {
    raised_with(error, |_| Ok(()))
}

/// The same about a byte of a text, which a mark will point at.
pub(crate) fn raised_at<E: Refusal>(error: &E, text: &str, at: usize) -> PyErr {
    raised_with(error, |fields| {
        fields.set_item("argument", text)?;
        fields.set_item("at", at)
    })
}

fn raised_with<E: Refusal>(
    error: &E,
    more: impl FnOnce(&Bound<'_, PyDict>) -> PyResult<()>,
) -> PyErr {
    Python::attach(|py| {
        let fields = PyDict::new(py);
        error.fields(&fields)?;
        more(&fields)?;
        let (class, kind) = error.kind();
        exception(py, class, kind, &error.to_string(), &fields)
    })
    .unwrap_or_else(|failure| failure)
}

/// The exception `tutti.errors.<class>(message, kind=kind, **fields)`.
fn exception(
    py: Python<'_>,
    class: &str,
    kind: &str,
    message: &str,
    fields: &Bound<'_, PyDict>,
) -> PyResult<PyErr> {
    let class = py.import("tutti.errors")?.getattr(class)?;
    let arguments = PyDict::new(py);
    arguments.set_item("kind", kind)?;
    arguments.set_item("fields", fields)?;
    Ok(PyErr::from_value(class.call((message,), Some(&arguments))?))
}

/// An exception for a mistake that only Python can make, such as a rank beyond the last.
pub(crate) fn refuse(class: &str, kind: &str, message: &str) -> PyErr {
    Python::attach(|py| exception(py, class, kind, message, &PyDict::new(py)))
        .unwrap_or_else(|failure| failure)
}
