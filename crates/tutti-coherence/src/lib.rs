//! Cores with coherent caches on a network on a chip, and the programs that run on them.
//!
//! A chip has a core with private caches at each node of a [`Fabric`](tutti_noc::smart::Fabric),
//! and memory at some nodes. A [`System`] runs a [`program::Program`] on it, cycle by cycle. Cores
//! are in-order and block on each access. A miss in a core's caches invokes the protocol, which
//! sends messages over the fabric. Values are computed: caches store words, messages carry them,
//! and a load returns the word that the protocol delivered.
//!
//! - [`Protocol::Ht`]: a home per line, without a directory. It broadcasts each request, and all
//!   caches respond.
//! - [`Protocol::Tc`]: token coherence. The requester broadcasts, and only holders of tokens
//!   respond.
//!
//! A checker ([`SystemSettings::check`]) verifies that a line has a single writer or only readers,
//! that each load returns the last store, and that tokens and responses are conserved.
#![deny(unsafe_code)]

mod cache;
mod checker;
mod chip;
mod core;
mod error;
mod event_queue;
mod ht;
mod memory;
mod packet;
pub mod program;
mod run;
mod settings;
mod stats;
mod system;
mod tc;
#[cfg(test)]
mod tests;

pub use error::CoherenceError;
pub use run::{FlowCount, Mean, MissKind, Misses, Parts, SystemRun};
pub use settings::{Collector, Defect, Protocol, SharedHint, SystemSettings};
pub use system::System;
