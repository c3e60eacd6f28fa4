//! The baseline endpoint: kernels on some SMs of the NPU read operands from memory, reduce, and
//! write to the links; the network interface writes received data to memory.
//!
//! As in Rashidi et al. 2021 (section III), the model counts memory **reads** per byte sent. A
//! reduce-scatter reads two operands per byte sent, but one in its first step; an all-gather reads
//! one. The last reduction of a reduce-scatter and the first send of the following all-gather are
//! one kernel. A ring all-reduce of N NPUs thus reads 3 (N - 1) shards and sends 2 (N - 1): a ratio
//! of 1.5 for every N. `fused = false` separates them, which costs one more read. Received data and
//! results are written; whether writes share the bandwidth of reads is a setting, since the paper
//! does not specify it.

use super::graph::{Graph, Storage};
use super::{Chunks, Endpoint, EndpointError, Handling, ServerKind, Stop};
use tutti_units::{Bytes, Time, TimePerByte};

const MEMORY: usize = 0;
const SMS: usize = 1;
const BUS_OUT: usize = 2;
const BUS_IN: usize = 3;
const WRITES: usize = 4;

/// The parameters of a baseline endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Baseline {
    /// Time per byte of the memory bandwidth available to communication.
    pub memory: TimePerByte,
    /// Time per byte of one SM.
    pub per_sm: TimePerByte,
    /// SMs for communication.
    pub sms: u32,
    /// Time per byte of the bus between the NPU and its links, per direction.
    pub bus: TimePerByte,
    /// Maximum bytes of a message, the unit of handling and sending.
    pub message: Bytes,
    /// Software overhead of handling a message.
    pub overhead: Time,
    /// The limit of chunks in flight.
    pub chunks: Chunks,
    /// Whether the last reduction and the first send after it are one kernel.
    pub fused: bool,
    /// Whether writes share the memory bandwidth with reads.
    pub charge_writes: bool,
}

impl Baseline {
    /// The endpoint.
    ///
    /// # Errors
    /// When messages are empty, no SM communicates, or the limit of chunks is zero.
    pub fn endpoint(&self) -> Result<Endpoint, EndpointError> {
        if self.message == Bytes(0) {
            return Err(EndpointError::Empty { what: "messages" });
        }
        if self.sms == 0 {
            return Err(EndpointError::NoSms);
        }
        let graph = Graph {
            name: "baseline".into(),
            packet: self.message,
            delay: self.overhead,
            servers: self.servers(),
            memory: Some(MEMORY),
            visits: Handling::ALL.iter().map(|&handling| self.recipe(handling)).collect(),
            storage: Storage::Chunks(self.chunks),
            loads: None,
            port: None,
        };
        graph.endpoint(&[], Bytes(0))
    }

    fn servers(&self) -> Vec<ServerKind> {
        let (ps, bytes) = self.per_sm.fraction();
        let sms = bytes.checked_mul(u64::from(self.sms));
        let sms = sms.and_then(|bytes| TimePerByte::new(ps, bytes)).unwrap_or(self.per_sm);
        vec![
            ServerKind::at("memory", self.memory),
            ServerKind::at("sms", sms),
            ServerKind::at("bus_out", self.bus),
            ServerKind::at("bus_in", self.bus),
            ServerKind::at("memory_writes", self.memory),
        ]
    }

    /// The operands read and the results written per byte.
    fn accesses(&self, handling: Handling) -> (u64, u64) {
        match handling {
            Handling::Load | Handling::Store => (0, 0),
            Handling::SendOwn => (1, 0),
            Handling::SendReduced => (u64::from(!self.fused), 0),
            Handling::ReduceAndSend => (2, 1),
            Handling::ReduceAndKeep | Handling::ReduceKeepAndSend => (2, 2),
            Handling::KeepAndSend | Handling::PassOn => (1, 1),
            Handling::Keep => (0, 1),
        }
    }

    fn recipe(&self, handling: Handling) -> Vec<Stop> {
        let (reads, writes) = self.accesses(handling);
        let arrives = writes > 0;
        let unfused = !self.fused && handling == Handling::ReduceKeepAndSend;
        let reads = reads + u64::from(unfused);
        let memory = if self.charge_writes { MEMORY } else { WRITES };
        let stops = [
            (BUS_IN, u64::from(arrives), false),
            (memory, writes, !self.charge_writes),
            (MEMORY, reads, false),
            (SMS, reads, false),
            (BUS_OUT, u64::from(handling.sends()), false),
        ];
        let taken = stops.into_iter().filter(|(_, times, _)| *times > 0);
        taken.map(|(server, times, aside)| Stop { server, times, aside }).collect()
    }
}
