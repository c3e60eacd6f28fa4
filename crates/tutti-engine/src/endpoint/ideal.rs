//! An endpoint that is never in the way: a message is handled in one cycle, and links go on with the
//! chunk that has been under way longest, so that chunks follow one another through the phases. (Were all
//! served in turn, they would all be late together, and an endpoint that holds some back would be faster.)

use super::{Chunks, Endpoint, EndpointError, Handling};
use tutti_units::{Bytes, Time};

/// What an ideal endpoint can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ideal {
    /// The most bytes that are sent as one piece.
    pub packet: Bytes,
    /// What handling a piece takes: one cycle (Rashidi et al. 2021, table of configurations).
    pub cycle: Time,
    /// Chunks under way at once.
    pub chunks: Chunks,
}

impl Ideal {
    /// The endpoint.
    ///
    /// # Errors
    /// When packets are empty or no chunk may be under way.
    pub fn endpoint(&self) -> Result<Endpoint, EndpointError> {
        if self.packet == Bytes(0) {
            return Err(EndpointError::Empty { what: "packets" });
        }
        Ok(Endpoint {
            name: "ideal",
            piece: self.packet,
            delay: self.cycle,
            servers: Vec::new(),
            admission: self.chunks.check()?,
            port: Some(1),
            recipes: vec![Vec::new(); Handling::ALL.len()],
        })
    }
}
