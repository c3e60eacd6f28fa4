//! Allocators: matchings of requesting inputs to outputs.
//!
//! A router uses allocators in two stages: virtual channels request virtual channels of the next
//! router, then passage through the switch. Every request is for one (input, output) pair, and
//! no input and no output is granted twice. The work grows with the requests, not with the ports.
//!
//! How each [`AllocatorKind`] uses priorities, and when its arbiters advance, follows BookSim 2
//! (Jiang et al., "A detailed and flexible cycle-accurate network-on-chip simulator", ISPASS 2013),
//! so that the two can be compared:
//!
//! - `separable_input_first`: each input picks one of its requests by its input priority, then each
//!   output one of those by its output priority. Arbiters advance only on a final grant.
//! - `separable_output_first`: the same, outputs first.
//! - `islip`: outputs grant, inputs accept, round-robin and without priorities, for so many
//!   iterations; pointers advance only for grants of the first iteration (McKeown, "The iSLIP
//!   scheduling algorithm for input-queued switches", 1999).
//! - `pim`: as `islip`, but pointers are drawn again each time (Anderson et al., "High-speed switch
//!   scheduling for local-area networks", 1993).
//! - `wavefront`: along the diagonals of the request matrix, from one that advances with every
//!   allocation. Higher output priorities go first, then higher input priorities (Tamir and Chi,
//!   "Symmetric crossbar arbiters for VLSI communication switches", 1993).
//! - `maximum`: the largest number of grants, by shortest augmenting paths from an input that
//!   advances with every allocation; without priorities.

mod arbiter;
mod error;
mod islip;
mod kind;
mod maximum;
mod pim;
mod separable;
mod stages;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod twin;
mod wavefront;

pub use arbiter::Arbiters;
pub use error::AllocatorError;
pub use kind::{AllocatorKind, ArbiterKind};

use islip::Islip;
use maximum::Maximum;
use pim::Pim;
use separable::Separable;
use stages::Side;
use wavefront::Wavefront;

/// The most inputs or outputs: matrix arbiters keep state for each pair.
const MOST_PORTS: u32 = 8192;

/// An input that requests an output. There is at most one request for a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The requesting input.
    pub input: u32,
    /// The requested output.
    pub output: u32,
    /// Its priority among the requests of its input; higher wins.
    pub input_priority: i64,
    /// Its priority among the requests for its output; higher wins.
    pub output_priority: i64,
}

impl Request {
    /// A request of the default priority.
    #[must_use]
    pub fn new(input: u32, output: u32) -> Request {
        Request { input, output, input_priority: 0, output_priority: 0 }
    }
}

/// Matches inputs to outputs in every cycle; fair over time.
#[derive(Clone, Debug)]
pub struct Allocator(Inner);

#[derive(Clone, Debug)]
enum Inner {
    Separable(Separable),
    Islip(Islip),
    Pim(Pim),
    Wavefront(Wavefront),
    Maximum(Maximum),
}

impl Allocator {
    /// An allocator of this kind. Only the separable ones have arbiters to choose, only `islip` and
    /// `pim` iterate, only `pim` draws by the seed.
    ///
    /// # Errors
    /// When there are no inputs, outputs or iterations, more than 8192 inputs or outputs, or the
    /// arbiters do not fit them.
    pub fn new(
        kind: AllocatorKind,
        arbiter: ArbiterKind,
        inputs: u32,
        outputs: u32,
        iterations: u32,
        seed: u64,
    ) -> Result<Self, AllocatorError> {
        if inputs == 0 || outputs == 0 {
            return Err(AllocatorError::NoPorts { kind, inputs, outputs });
        }
        if inputs.max(outputs) > MOST_PORTS {
            return Err(AllocatorError::TooManyPorts { kind, inputs, outputs, most: MOST_PORTS });
        }
        if iterations == 0 {
            return Err(AllocatorError::NoIterations { kind });
        }
        let separable = |first| Separable::new(first, arbiter, inputs, outputs);
        Ok(Allocator(match kind {
            AllocatorKind::SeparableInputFirst => Inner::Separable(separable(Side::Input)?),
            AllocatorKind::SeparableOutputFirst => Inner::Separable(separable(Side::Output)?),
            AllocatorKind::Islip => Inner::Islip(Islip::new(inputs, outputs, iterations)),
            AllocatorKind::Pim => Inner::Pim(Pim::new(inputs, outputs, iterations, seed)),
            AllocatorKind::Wavefront => Inner::Wavefront(Wavefront::new(inputs, outputs)),
            AllocatorKind::Maximum => Inner::Maximum(Maximum::new(inputs, outputs)),
        }))
    }

    /// Appends the grants, as (input, output), by ascending input; no input and no output twice.
    /// The order of the requests has no effect. Without requests, nothing changes.
    ///
    /// # Panics
    /// When a request is for an unknown input or output.
    pub fn allocate(&mut self, requests: &[Request], grants: &mut Vec<(u32, u32)>) {
        if requests.is_empty() {
            return;
        }
        let before = grants.len();
        match &mut self.0 {
            Inner::Separable(separable) => separable.allocate(requests, grants),
            Inner::Islip(islip) => islip.allocate(requests, grants),
            Inner::Pim(pim) => pim.allocate(requests, grants),
            Inner::Wavefront(wavefront) => wavefront.allocate(requests, grants),
            Inner::Maximum(maximum) => maximum.allocate(requests, grants),
        }
        grants[before..].sort_unstable();
    }
}
