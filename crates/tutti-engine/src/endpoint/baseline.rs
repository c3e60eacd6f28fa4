//! The NPU itself handles messages: kernels on some of its SMs read operands from memory, reduce, and
//! write to the links; arrivals are put into memory by the network interface.
//!
//! What is counted is what Rashidi et al. 2021 count (section III): **reads** of memory for each byte sent.
//! A reduce-scatter reads two operands for each byte it sends, but one for its first; an all-gather reads
//! one. The last reduction of a reduce-scatter is one kernel with the first send of the all-gather that
//! follows it, so that a ring all-reduce of N NPUs reads 3 (N - 1) pieces and sends 2 (N - 1): 1.5 for every
//! N. `fused = false` parts the two, which costs one read more. Writes are those of arrivals and results;
//! whether they take from the same bandwidth is a setting, since the paper does not say.

use super::{Chunks, Endpoint, EndpointError, Handling, ServerKind, Stop};
use tutti_units::{Bytes, Time, TimePerByte};

const MEMORY: usize = 0;
const SMS: usize = 1;
const BUS_OUT: usize = 2;
const BUS_IN: usize = 3;
const WRITES: usize = 4;

/// What a baseline endpoint can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Baseline {
    /// What a byte of the memory that communication may use takes.
    pub memory: TimePerByte,
    /// What a byte takes that one SM pulls.
    pub per_sm: TimePerByte,
    /// SMs that communicate.
    pub sms: u32,
    /// What a byte takes over the bus between the NPU and its links, each direction by itself.
    pub bus: TimePerByte,
    /// The most bytes that are handled and sent as one piece.
    pub message: Bytes,
    /// What handling a piece takes besides: software.
    pub overhead: Time,
    /// Chunks under way at once.
    pub chunks: Chunks,
    /// Whether the last reduction and the first send after it are one kernel.
    pub fused: bool,
    /// Whether writes take from the same memory bandwidth as reads.
    pub charge_writes: bool,
}

impl Baseline {
    /// The endpoint.
    ///
    /// # Errors
    /// When messages are empty, no SM communicates or no chunk may be under way.
    pub fn endpoint(&self) -> Result<Endpoint, EndpointError> {
        if self.message == Bytes(0) {
            return Err(EndpointError::Empty { what: "messages" });
        }
        if self.sms == 0 {
            return Err(EndpointError::NoSms);
        }
        Ok(Endpoint {
            name: "baseline",
            piece: self.message,
            delay: self.overhead,
            servers: self.servers(),
            admission: self.chunks.check()?,
            port: None,
            recipes: Handling::ALL.iter().map(|&handling| self.recipe(handling)).collect(),
        })
    }

    fn servers(&self) -> Vec<ServerKind> {
        let (ps, bytes) = self.per_sm.fraction();
        let sms = bytes.checked_mul(u64::from(self.sms));
        let sms = sms.and_then(|bytes| TimePerByte::new(ps, bytes)).unwrap_or(self.per_sm);
        vec![
            ServerKind { name: "memory", per_byte: self.memory },
            ServerKind { name: "sms", per_byte: sms },
            ServerKind { name: "bus_out", per_byte: self.bus },
            ServerKind { name: "bus_in", per_byte: self.bus },
            ServerKind { name: "memory_writes", per_byte: self.memory },
        ]
    }

    /// How many operands each byte is read from, and how many results are written of it.
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
