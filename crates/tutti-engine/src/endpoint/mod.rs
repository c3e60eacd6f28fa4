//! Endpoints: the hardware between an NPU and its links during a collective, and its cost.
//!
//! An [`Endpoint`] has servers (memory, SMs, bus, SRAM, ALUs), which serve FIFO. It has a recipe for
//! each [`Handling`] of a message: the servers it passes, and how often each byte does. [`Admission`]
//! limits the chunks in flight. The engine drives the endpoint, which knows messages and handlings, not
//! collectives.
//!
//! - [`graph`]: servers and visits of any kind; the others are such graphs.
//! - [`ideal`]: a message is handled in one cycle.
//! - [`baseline`]: the NPU handles messages: SMs read operands from memory and write to the links.
//! - [`agent`]: the messaging agent of ASTRA-sim, for imported files.
//! - [`ace`]: the collective engine of Rashidi et al. 2021: SRAM, FSMs and ALUs at the links.

pub mod ace;
pub mod agent;
pub mod baseline;
pub mod graph;
pub mod ideal;
mod server;

pub use server::{Server, ServerUse, Service};

use std::sync::Arc;

use tutti_units::{Bytes, Time};

/// How an endpoint handles a packet of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Handling {
    /// Loads a chunk before its first phase.
    Load,
    /// Sends local data.
    SendOwn,
    /// Sends completely reduced data, the first of an all-gather.
    SendReduced,
    /// Reduces received data with local data and sends the result.
    ReduceAndSend,
    /// Reduces received data for the last time, and stores the result.
    ReduceAndKeep,
    /// Reduces received data for the last time, stores the result, and sends it as the first of an
    /// all-gather.
    ReduceKeepAndSend,
    /// Stores and forwards received data.
    KeepAndSend,
    /// Stores received data.
    Keep,
    /// Forwards data for another NPU.
    PassOn,
    /// Writes a chunk back after its last phase.
    Store,
}

impl Handling {
    /// Every handling.
    pub const ALL: [Handling; 10] = [
        Handling::Load,
        Handling::SendOwn,
        Handling::SendReduced,
        Handling::ReduceAndSend,
        Handling::ReduceAndKeep,
        Handling::ReduceKeepAndSend,
        Handling::KeepAndSend,
        Handling::Keep,
        Handling::PassOn,
        Handling::Store,
    ];

    /// Whether it sends data.
    #[must_use]
    pub fn sends(self) -> bool {
        !matches!(self, Handling::Load | Handling::ReduceAndKeep | Handling::Keep | Handling::Store)
    }
}

/// A stop of a packet at a server of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// The server, an index into [`Endpoint::servers`].
    pub server: usize,
    /// How often each byte of the packet passes it.
    pub times: u64,
    /// Whether the packet continues while the server still works (as for writes).
    pub aside: bool,
}

/// The description of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerKind {
    /// Its name in snake case, which is also the cause of its stalls.
    pub name: Arc<str>,
    /// How it serves.
    pub service: Service,
}

impl ServerKind {
    /// A server of one unit with a rate.
    #[must_use]
    pub fn at(name: &str, per_byte: tutti_units::TimePerByte) -> ServerKind {
        ServerKind { name: name.into(), service: Service::at(per_byte) }
    }
}

/// The limit of chunks in flight where nothing else limits them. The defaults are those of
/// ASTRA-sim's public code of 2020: 8 per queue, two queues per ring, and 64 before the first phase
/// ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunks {
    /// In total.
    pub all: u32,
    /// Per phase.
    pub phase: u32,
    /// Whether the phases along a dimension of the NPUs share the limit, in all collectives.
    pub by_dimension: bool,
}

impl Default for Chunks {
    fn default() -> Chunks {
        Chunks { all: 64, phase: 16, by_dimension: false }
    }
}

impl Chunks {
    /// # Errors
    /// When a limit is zero.
    fn check(self) -> Result<Admission, EndpointError> {
        let none = self.all == 0 || self.phase == 0;
        if none { Err(EndpointError::NoChunks) } else { Ok(Admission::Chunks(self)) }
    }
}

/// What limits the chunks in flight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// A number of chunks.
    Chunks(Chunks),
    /// SRAM space for chunks, and FSMs that process them.
    Partitions(ace::Partitions),
}

/// An endpoint: servers, recipes, limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Its name.
    pub name: Arc<str>,
    /// Maximum bytes of a packet, the unit of handling and sending.
    pub piece: Bytes,
    /// Fixed time of every handling, in addition to its servers.
    pub delay: Time,
    /// The servers.
    pub servers: Vec<ServerKind>,
    /// The server that uses the memory bandwidth reserved for communication.
    pub memory: Option<usize>,
    /// What limits the chunks in flight.
    pub admission: Admission,
    /// Messages of loads in flight; None: unlimited.
    pub loads: Option<u32>,
    /// Capacity of the buffer of a link, in packets; when it is full, packets of the oldest chunk
    /// enter first. None: unlimited, FIFO.
    pub port: Option<u32>,
    recipes: Vec<Vec<Stop>>,
}

impl Endpoint {
    /// The stops of a handling, in order.
    #[inline]
    #[must_use]
    pub fn recipe(&self, handling: Handling) -> &[Stop] {
        &self.recipes[handling as usize]
    }
}

/// Why an endpoint is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, tutti_units::Refusal)]
#[refusal(class = "EndpointError")]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum EndpointError {
    /// Empty packets, messages or buffers.
    #[error("{what} of 0 B carry no payload: expected at least 1 B")]
    Empty { what: &'static str },
    /// A limit of zero chunks in flight.
    #[error("the limit of chunks in flight is 0: expected at least 1")]
    NoChunks,
    /// No SM for communication.
    #[error("communication has no SM to move data: expected at least 1")]
    NoSms,
    /// A server without units.
    #[error("server {server} has 0 units: expected at least 1")]
    NoUnits { server: String },
    /// A memory server of several units.
    #[error(
        "the memory server {server} has {units} units, whose use is not one bandwidth that compute lacks: \
         expected 1 unit of the complete rate"
    )]
    MemoryUnits { server: String, units: u32 },
    /// Visits to servers that do not exist.
    #[error(
        "{lists} handlings visit {servers} servers: expected a list for each of 10 handlings, of servers \
         that exist"
    )]
    WrongVisits { lists: usize, servers: usize },
    /// Fewer FSMs than phases.
    #[error("{fsms} FSMs cannot process {phases} phases: expected at least one per phase")]
    TooFewFsms { fsms: u32, phases: usize },
    /// FSMs for another number of phases than the collective has.
    #[error("FSMs are given for {given} phases: expected {phases}, as in the collective")]
    WrongFsms { given: usize, phases: usize },
    /// A phase without an FSM.
    #[error("phase {phase} has no FSM: expected at least one per phase")]
    NoFsm { phase: usize },
    /// Shares for another number of partitions than the SRAM has.
    #[error("{given} shares of the SRAM are given: expected {partitions}, one per partition")]
    WrongShares { given: usize, partitions: usize },
    /// A partition smaller than a chunk.
    #[error(
        "partition {partition} of {size} cannot hold a chunk of {chunk}: expected a larger SRAM or \
         smaller chunks"
    )]
    PartitionTooSmall { partition: usize, size: Bytes, chunk: Bytes },
}
