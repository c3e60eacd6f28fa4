//! ACE, the engine of Rashidi et al. 2021: executes collectives between the NPU and its links.
//!
//! A chunk is read from memory once, into an SRAM with one partition per phase of the collective
//! and one for results. FSMs, each programmed for one phase, process one chunk at a time: they read
//! packets from the SRAM, reduce received data with local data, send, and write results into the
//! partition of the next phase. Results are written back to memory once. A chunk enters a phase
//! when an FSM of that phase is free; [`Handover`] defines when it reserves space in the next
//! partition.
//!
//! Granularity: partitions and FSMs hold chunks; packets are read, reduced and sent; messages are
//! the unit of the DMA engines.

mod partitions;

pub use partitions::{Division, Exchanges, Fsms, Handover, Partitions, PhaseLoad};

use super::graph::{Graph, Scratchpad, Storage};
use super::{Endpoint, EndpointError, Handling, ServerKind, Stop};
use tutti_units::{Bytes, Time, TimePerByte};

const MEMORY: usize = 0;
const BUS_OUT: usize = 1;
const SRAM_READ: usize = 2;
const SRAM_WRITE: usize = 3;
const ALU: usize = 4;
const BUS_IN: usize = 5;
const MEMORY_WRITE: usize = 6;

/// The parameters of ACE (the presets of `tutti` have the values of the paper, each with its
/// source).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ace {
    /// Time per byte of the memory bandwidth available to ACE.
    pub memory: TimePerByte,
    /// Time per byte of the bus between the NPU and ACE, per direction.
    pub bus: TimePerByte,
    /// The size of the SRAM.
    pub sram: Bytes,
    /// How the SRAM is divided among the phases.
    pub division: Division,
    /// When a chunk reserves space in the partition of its next phase.
    pub handover: Handover,
    /// Time per byte of SRAM reads, all banks together.
    pub sram_read: TimePerByte,
    /// Time per byte of SRAM writes.
    pub sram_write: TimePerByte,
    /// The FSMs.
    pub fsms: Fsms,
    /// Which of them process all-to-alls.
    pub exchanges: Exchanges,
    /// Time per byte of reductions, all ALUs together.
    pub alu: TimePerByte,
    /// Maximum bytes of a packet, the unit of reducing and sending.
    pub packet: Bytes,
    /// Messages that the DMA engine loads concurrently. Loads of many chunks at once would occupy
    /// the SRAM before the packets of the oldest.
    pub loads: u32,
    /// Capacity of the buffer of a link, in packets; when it is full, the oldest chunk enters
    /// first.
    pub port: u32,
    /// Time of a step of an FSM.
    pub cycle: Time,
    /// Whether writes of results share the memory bandwidth with reads.
    pub charge_writes: bool,
}

impl Ace {
    /// The endpoint for a collective of these phases.
    ///
    /// # Errors
    /// When packets are empty, there are fewer FSMs than phases, or a partition cannot hold a
    /// chunk.
    pub fn endpoint(&self, phases: &[PhaseLoad], done: Bytes) -> Result<Endpoint, EndpointError> {
        let scratchpad = Scratchpad {
            sram: self.sram,
            division: self.division.clone(),
            handover: self.handover,
            fsms: self.fsms.clone(),
            exchanges: self.exchanges,
        };
        let graph = Graph {
            name: "ace".into(),
            packet: self.packet,
            delay: self.cycle,
            servers: self.servers(),
            memory: Some(MEMORY),
            visits: Handling::ALL.iter().map(|&handling| self.recipe(handling)).collect(),
            storage: Storage::Scratchpad(scratchpad),
            loads: Some(self.loads),
            port: Some(self.port),
        };
        graph.endpoint(phases, done)
    }

    fn servers(&self) -> Vec<ServerKind> {
        vec![
            ServerKind::at("memory", self.memory),
            ServerKind::at("bus_out", self.bus),
            ServerKind::at("sram_read", self.sram_read),
            ServerKind::at("sram_write", self.sram_write),
            ServerKind::at("alu", self.alu),
            ServerKind::at("bus_in", self.bus),
            ServerKind::at("memory_writes", self.memory),
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
