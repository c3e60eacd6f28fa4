//! Endpoints: what stands between an NPU and its links while a collective runs, and what that costs.
//!
//! An [`Endpoint`] is a set of servers (memory, SMs, bus, SRAM, ALUs: each serves one after the other at
//! its rate), a recipe for each [`Handling`] of a message (which servers it passes, and how often each of
//! its bytes), and what bounds how much is under way ([`Admission`]). The engine drives it; it knows
//! messages and their handlings, not collectives.
//!
//! - [`ideal`]: a message is handled in a cycle.
//! - [`baseline`]: the NPU itself handles messages: SMs read operands from memory and write to the links.
//! - [`agent`]: ASTRA-sim's, for its own files.
//! - [`ace`]: the engine of Rashidi et al. 2021: a scratchpad, state machines and ALUs beside the links.

pub mod ace;
pub mod agent;
pub mod baseline;
pub mod ideal;
mod server;

pub use server::{Server, ServerUse};

use tutti_units::{Bytes, Time, TimePerByte};

/// What happens to a piece of a message at an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Handling {
    /// A chunk is fetched before its first phase.
    Load,
    /// The NPU's own piece is sent.
    SendOwn,
    /// A piece that is wholly reduced is sent, the first of an all-gather.
    SendReduced,
    /// What has come is reduced with the NPU's own and sent on.
    ReduceAndSend,
    /// What has come is reduced for the last time, and kept.
    ReduceAndKeep,
    /// What has come is reduced for the last time, kept, and sent as the first of an all-gather.
    ReduceKeepAndSend,
    /// What has come is kept and sent on.
    KeepAndSend,
    /// What has come is kept.
    Keep,
    /// What has come is for another NPU and is sent on.
    PassOn,
    /// A chunk is put back after its last phase.
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

    /// Whether it ends with something sent.
    #[must_use]
    pub fn sends(self) -> bool {
        !matches!(self, Handling::Load | Handling::ReduceAndKeep | Handling::Keep | Handling::Store)
    }
}

/// A stop on the way of a piece through an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// Which server, an index into [`Endpoint::servers`].
    pub server: usize,
    /// How often each byte of the piece passes it.
    pub times: u64,
    /// Whether the piece goes on at once while the server still works (writes do).
    pub aside: bool,
}

/// A server as an endpoint describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerKind {
    /// What it is, in snake case; the cause of the stalls that it makes.
    pub name: &'static str,
    /// What a byte takes.
    pub per_byte: TimePerByte,
}

/// How many chunks may be under way where nothing else bounds them. The defaults are those of ASTRA-sim's
/// public code of 2020: 8 in each queue, two queues a ring, and 64 before the first phase is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunks {
    /// In all.
    pub all: u32,
    /// In each phase.
    pub phase: u32,
}

impl Default for Chunks {
    fn default() -> Chunks {
        Chunks { all: 64, phase: 16 }
    }
}

impl Chunks {
    /// # Errors
    /// When none may be under way.
    fn check(self) -> Result<Admission, EndpointError> {
        let none = self.all == 0 || self.phase == 0;
        if none { Err(EndpointError::NoChunks) } else { Ok(Admission::Chunks(self)) }
    }
}

/// What bounds how much is under way at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// So many chunks.
    Chunks(Chunks),
    /// Room for chunks, and state machines that carry them.
    Partitions(ace::Partitions),
}

/// An endpoint: servers, recipes, bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Its name.
    pub name: &'static str,
    /// The most bytes that are handled and sent as one piece.
    pub piece: Bytes,
    /// What every handling takes besides its servers.
    pub delay: Time,
    /// What serves.
    pub servers: Vec<ServerKind>,
    /// What bounds how much is under way.
    pub admission: Admission,
    /// How many pieces are handled for a link or wait for it at a time; of those outside, one of the chunk
    /// that has been under way longest comes next. None: as many as there are, in turn.
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

/// Why there is no such endpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, tutti_units::Refusal)]
#[refusal(class = "EndpointError")]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum EndpointError {
    /// Pieces of no bytes.
    #[error("{what} of 0 B carry nothing: expected at least 1 B")]
    Empty { what: &'static str },
    /// Nothing may be under way.
    #[error("no chunk may be under way: expected at least 1")]
    NoChunks,
    /// Nobody moves data.
    #[error("communication has no SM to move its data: expected at least 1")]
    NoSms,
    /// Fewer state machines than phases.
    #[error("{fsms} state machines cannot carry {phases} phases: expected one for each at least")]
    TooFewFsms { fsms: u32, phases: usize },
    /// State machines given to other phases than there are.
    #[error("state machines are given for {given} phases, but there are {phases}")]
    WrongFsms { given: usize, phases: usize },
    /// A phase that nobody carries.
    #[error("phase {phase} has no state machine: expected at least one for each")]
    NoFsm { phase: usize },
    /// Shares of other partitions than there are.
    #[error("{given} shares of the scratchpad are given, but it has {partitions} partitions")]
    WrongShares { given: usize, partitions: usize },
    /// A partition that holds no chunk.
    #[error(
        "partition {partition} of {room} holds no chunk of {chunk} there: expected a larger scratchpad or \
         smaller chunks"
    )]
    PartitionTooSmall { partition: usize, room: Bytes, chunk: Bytes },
}
