//! The messaging agent of ASTRA-sim: each message has a fixed delay at its receiver, and each
//! reduction accesses memory three times: two operand reads and one write. Messages are not
//! divided.

use super::graph::{Graph, Storage};
use super::{Chunks, Endpoint, EndpointError, Handling, ServerKind, Stop};
use tutti_units::{Bytes, Time, TimePerByte};

/// The parameters of a messaging agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agent {
    /// Delay of each message: "endpoint-delay".
    pub delay: Time,
    /// Time per byte of memory: "local-mem-bw".
    pub memory: TimePerByte,
    /// The limit of chunks in flight along a dimension: "active-chunks-per-dimension".
    pub chunks: u32,
}

/// Memory accesses per byte of a reduction.
const PASSES: u64 = 3;

impl Agent {
    /// The endpoint.
    ///
    /// # Errors
    /// When the limit of chunks is zero.
    pub fn endpoint(&self) -> Result<Endpoint, EndpointError> {
        let recipe = |handling: &Handling| match handling {
            Handling::ReduceAndSend | Handling::ReduceAndKeep | Handling::ReduceKeepAndSend => {
                vec![Stop { server: 0, times: PASSES, aside: false }]
            }
            _ => Vec::new(),
        };
        let chunks = Chunks { all: u32::MAX, phase: self.chunks, by_dimension: true };
        let graph = Graph {
            name: "agent".into(),
            packet: Bytes(u64::MAX),
            delay: self.delay,
            servers: vec![ServerKind::at("memory", self.memory)],
            memory: Some(0),
            visits: Handling::ALL.iter().map(recipe).collect(),
            storage: Storage::Chunks(chunks),
            loads: None,
            port: None,
        };
        graph.endpoint(&[], Bytes(0))
    }
}
