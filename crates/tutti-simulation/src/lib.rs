//! Simulation of collectives on platforms.
//!
//! A [`Platform`] is a network model, the costs of local work, the [`Routing`] through a topology,
//! and the [`Contention`] of messages. A [`Case`] adds a schedule, a [`Payload`], and the conditions
//! of ranks and links. It has a run, a lower bound, and for some algorithms a closed form. The lower
//! bound of a training step is that of a [`BoundedStep`].
//!
//! The crates of the types in these interfaces are re-exported, so that a program needs one
//! dependency.
//!
//! ```
//! use std::sync::Arc;
//! use tutti_simulation::engine::LocalCosts;
//! use tutti_simulation::schedule::collective::Collective;
//! use tutti_simulation::units::Bytes;
//! use tutti_simulation::{Case, Contention, Payload, Platform, network};
//!
//! let model = network::build("logp", &[("L", "2 us"), ("o", "400 ns"), ("g", "400 ns")])?;
//! let platform = Platform::new(model, LocalCosts::FREE, None, Contention::Free)?;
//! let payload = Payload { size: Bytes(1024), element: 4 };
//! let case =
//!     Case::of_algorithm("ring", Collective::AllReduce, 4, Arc::new(platform), payload)?;
//! let time = case.run()?.completion_time();
//! assert_eq!(Some(time), case.closed_form()?);
//! assert!(case.bound().at_least() <= time);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![deny(unsafe_code)]

mod bound;
mod case;
mod critical_path;
mod error;
mod flits;
mod mesh;
mod platform;
mod routing;
mod run;
mod schedule_bound;
mod step_bound;
#[cfg(test)]
mod tests;
mod trace;

pub use case::{Case, Payload, check_speeds};
pub use critical_path::{Cause, CriticalPath, Hop, HopKind};
pub use error::SimulationError;
pub use flits::Flits;
pub use mesh::MeshFlits;
pub use platform::{Contention, Platform};
pub use routing::Routing;
pub use run::{NetworkUse, Run};
pub use step_bound::{BoundedNetwork, BoundedStep, Dimension, EndpointCosts, StepBound};

pub use tutti_analysis as analysis;
pub use tutti_engine as engine;
pub use tutti_network as network;
pub use tutti_noc as noc;
pub use tutti_schedule as schedule;
pub use tutti_topology as topology;
pub use tutti_units as units;
