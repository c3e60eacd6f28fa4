//! Synthetic and recorded traffic: sources, destinations, times and sizes of packets.
//!
//! A [`Pattern`] gives the destinations of the packets of a node, a [`Process`] their times, a
//! [`PacketSize`] their flits; a [`Trace`] gives all three, packet by packet. The patterns and
//! processes that BookSim 2 has are defined as there, so that the two can be compared.
//!
//! Every draw is a pure function of (seed, purpose, node, number): it depends neither on the order
//! in which nodes are polled nor on other draws. Message classes with different traffic need
//! different seeds.

mod arrivals;
mod draw;
mod error;
mod injectors;
mod pattern;
mod process;
mod size;
#[cfg(test)]
mod tests;
mod trace;

pub use arrivals::Arrivals;
pub(crate) use draw::{Stream, below, bits};
pub use error::TrafficError;
pub(crate) use injectors::{Created, Injectors, NEVER, load_seed};
pub use pattern::{Entry, Pattern, REGISTRY, Shares};
pub use process::Process;
pub use size::PacketSize;
pub use trace::{Dependencies, Record, Trace};
