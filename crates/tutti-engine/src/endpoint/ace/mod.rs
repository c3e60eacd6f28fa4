//! ACE, the engine of Rashidi et al. 2021: collectives run beside the NPU, in front of its links.
//!
//! A chunk is read from memory once, into a scratchpad that is divided into one partition for each phase
//! of the collective and one for what is done. State machines, each programmed for one phase, carry one
//! chunk at a time: they read pieces from the scratchpad, reduce what comes with what is there, send, and
//! write results into the partition of the next phase. What is done goes back to memory, once. A chunk
//! enters a phase when a state machine of that phase is free; [`Handover`] says when it takes room in the
//! next partition.
//!
//! Sizes of the pieces: a chunk is what partitions and state machines hold; a packet is what is read,
//! reduced and sent as one; messages only say how much the DMA engines move at a time.

mod partitions;

pub use partitions::{Division, Fsms, Handover, Partitions, PhaseLoad};

use super::{Admission, Endpoint, EndpointError, Handling, ServerKind, Stop};
use tutti_units::{Bytes, Time, TimePerByte};

const MEMORY: usize = 0;
const BUS_OUT: usize = 1;
const SRAM_READ: usize = 2;
const SRAM_WRITE: usize = 3;
const ALU: usize = 4;
const BUS_IN: usize = 5;
const MEMORY_WRITE: usize = 6;

/// What ACE can be told (defaults of the paper are those of `tutti`'s presets, each with its source).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ace {
    /// What a byte of the memory that ACE may use takes.
    pub memory: TimePerByte,
    /// What a byte takes over the bus between the NPU and ACE, each direction by itself.
    pub bus: TimePerByte,
    /// The scratchpad.
    pub sram: Bytes,
    /// How it is divided among the phases.
    pub division: Division,
    /// When a chunk takes room in the partition of its next phase.
    pub handover: Handover,
    /// What a byte takes to be read from the scratchpad, all banks together.
    pub sram_read: TimePerByte,
    /// What a byte takes to be written to it.
    pub sram_write: TimePerByte,
    /// Which state machines there are.
    pub fsms: Fsms,
    /// What a byte takes to be reduced, all ALUs together.
    pub alu: TimePerByte,
    /// The most bytes that are reduced and sent as one.
    pub packet: Bytes,
    /// Packets that wait at most for a link; after them comes the chunk that has been under way longest.
    pub port: u32,
    /// What a step of a state machine takes.
    pub cycle: Time,
    /// Whether results that go back to memory take from the same bandwidth as what is read.
    pub charge_writes: bool,
}

impl Ace {
    /// The endpoint for a collective of these phases.
    ///
    /// # Errors
    /// When packets are empty, there are fewer state machines than phases, or a partition holds no chunk.
    pub fn endpoint(&self, phases: &[PhaseLoad], done: Bytes) -> Result<Endpoint, EndpointError> {
        if self.packet == Bytes(0) {
            return Err(EndpointError::Empty { what: "packets" });
        }
        if self.port == 0 {
            return Err(EndpointError::Empty { what: "port buffers" });
        }
        let partitions = Partitions {
            handover: self.handover,
            ..Partitions::new(self.sram, &self.division, &self.fsms, phases, done)?
        };
        Ok(Endpoint {
            name: "ace",
            piece: self.packet,
            delay: self.cycle,
            servers: self.servers(),
            admission: Admission::Partitions(partitions),
            port: Some(self.port),
            recipes: Handling::ALL.iter().map(|&handling| self.recipe(handling)).collect(),
        })
    }

    fn servers(&self) -> Vec<ServerKind> {
        vec![
            ServerKind { name: "memory", per_byte: self.memory },
            ServerKind { name: "bus_out", per_byte: self.bus },
            ServerKind { name: "sram_read", per_byte: self.sram_read },
            ServerKind { name: "sram_write", per_byte: self.sram_write },
            ServerKind { name: "alu", per_byte: self.alu },
            ServerKind { name: "bus_in", per_byte: self.bus },
            ServerKind { name: "memory_writes", per_byte: self.memory },
        ]
    }

    fn recipe(&self, handling: Handling) -> Vec<Stop> {
        let stop = |server| Stop { server, times: 1, aside: false };
        let aside = |server| Stop { server, times: 1, aside: true };
        match handling {
            Handling::Load => vec![stop(MEMORY), stop(BUS_OUT), stop(SRAM_WRITE)],
            Handling::SendOwn | Handling::SendReduced => vec![stop(SRAM_READ)],
            Handling::ReduceAndSend => vec![stop(SRAM_READ), stop(ALU)],
            Handling::ReduceAndKeep => vec![stop(SRAM_READ), stop(ALU), stop(SRAM_WRITE)],
            Handling::ReduceKeepAndSend => vec![stop(SRAM_READ), stop(ALU), aside(SRAM_WRITE)],
            Handling::KeepAndSend => vec![aside(SRAM_WRITE)],
            Handling::Keep => vec![stop(SRAM_WRITE)],
            Handling::PassOn => vec![stop(SRAM_WRITE), stop(SRAM_READ)],
            Handling::Store => {
                let memory = if self.charge_writes { MEMORY } else { MEMORY_WRITE };
                vec![stop(SRAM_READ), stop(BUS_IN), stop(memory)]
            }
        }
    }
}
