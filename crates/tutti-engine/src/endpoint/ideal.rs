//! The ideal endpoint: a message is handled in one cycle, and links prefer the oldest chunk in
//! flight, so that chunks are pipelined through the phases. (Round-robin service would delay all
//! chunks alike, and an endpoint that limits the chunks in flight would be faster.)

use super::graph::{Graph, Storage};
use super::{Chunks, Endpoint, EndpointError, Handling};
use tutti_units::{Bytes, Time};

/// The parameters of an ideal endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ideal {
    /// Maximum bytes of a packet.
    pub packet: Bytes,
    /// Time of handling a packet: one cycle (Rashidi et al. 2021, table of configurations).
    pub cycle: Time,
    /// The limit of chunks in flight.
    pub chunks: Chunks,
}

impl Ideal {
    /// The endpoint.
    ///
    /// # Errors
    /// When packets are empty or the limit is zero.
    pub fn endpoint(&self) -> Result<Endpoint, EndpointError> {
        let graph = Graph {
            name: "ideal".into(),
            packet: self.packet,
            delay: self.cycle,
            servers: Vec::new(),
            memory: None,
            visits: vec![Vec::new(); Handling::ALL.len()],
            storage: Storage::Chunks(self.chunks),
            loads: None,
            port: Some(1),
        };
        graph.endpoint(&[], Bytes(0))
    }
}
