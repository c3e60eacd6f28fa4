//! Cores with coherent caches on a network on a chip: programs that run on them, and how long they take.
//!
//! A chip has a core with private caches at each node of a [`Fabric`](tutti_noc::smart::Fabric),
//! and memory at some of them. A [`System`] runs a [`program::Program`] on it, cycle by cycle: cores are in
//! order and wait for each access; what misses in a core's caches goes through a protocol, whose messages
//! go through the fabric. Values are real: caches hold words, messages carry them, and what a load answers
//! is what the protocol brought.
//!
//! - [`Protocol::Ht`]: a home per line, without a directory, that broadcasts every request; everybody answers.
//! - [`Protocol::Tc`]: token coherence; whoever misses broadcasts himself, and nobody but those who hold
//!   tokens answers.
//!
//! A checker looks on ([`SystemSettings::check`]): a single writer or many readers, each load answers the
//! last store, tokens and answers are conserved.
#![deny(unsafe_code)]

mod agenda;
mod cache;
mod checker;
mod chip;
mod core;
mod error;
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
