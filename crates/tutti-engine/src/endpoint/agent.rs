//! The messaging agent of ASTRA-sim: each message waits a fixed time at its receiver, and each reduction
//! passes memory three times, two operands read and a result written. Messages are not cut.

use super::{Chunks, Endpoint, EndpointError, Handling, ServerKind, Stop};
use tutti_units::{Bytes, Time, TimePerByte};

/// What a messaging agent can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agent {
    /// What each message waits: "endpoint-delay".
    pub delay: Time,
    /// What a byte of memory takes: "local-mem-bw".
    pub memory: TimePerByte,
    /// Chunks under way at once; "active-chunks-per-dimension" in each phase.
    pub chunks: Chunks,
}

/// How often each byte of a reduction passes memory.
const PASSES: u64 = 3;

impl Agent {
    /// The endpoint.
    ///
    /// # Errors
    /// When no chunk may be under way.
    pub fn endpoint(&self) -> Result<Endpoint, EndpointError> {
        let recipe = |handling: &Handling| match handling {
            Handling::ReduceAndSend | Handling::ReduceAndKeep | Handling::ReduceKeepAndSend => {
                vec![Stop { server: 0, times: PASSES, aside: false }]
            }
            _ => Vec::new(),
        };
        Ok(Endpoint {
            name: "agent",
            piece: Bytes(u64::MAX),
            delay: self.delay,
            servers: vec![ServerKind { name: "memory", per_byte: self.memory }],
            admission: self.chunks.check()?,
            port: None,
            recipes: Handling::ALL.iter().map(recipe).collect(),
        })
    }
}
