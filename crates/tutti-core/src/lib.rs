//! Collective communication, from algorithm to result.
//!
//! Data flows one way, and the modules stand in that order; nothing uses a module to its right:
//!
//! `units, ids -> topology -> collective -> schedule -> algorithm -> workload -> network -> endpoint -> coherence -> energy -> engine -> search -> results`
#![deny(unsafe_code)]

pub mod algorithm;
pub mod coherence;
pub mod collective;
pub mod endpoint;
pub mod energy;
pub mod engine;
pub mod ids;
pub mod network;
pub mod results;
pub mod schedule;
pub mod search;
pub mod topology;
pub mod units;
pub mod workload;
