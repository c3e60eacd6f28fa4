//! Topologies: which NPU is linked to which, how fast, and the way a message takes.
//!
//! A [`Topology`] is one immutable graph. It comes from a family in the notation `name:argument`
//! ([`build`], one file per family under `family/`), or from a [`Builder`] that is told every vertex
//! and link. [`Routes`] says which links lie between two ranks,
//! [`Distances`] which ones could. Nothing here knows about messages in
//! flight: contention belongs to the network models.
#![deny(unsafe_code)]

mod anchors;
mod builder;
pub mod bypass;
mod components;
mod distances;
mod error;
mod facts;
mod family;
mod graph;
mod routing;
pub mod search;

pub use builder::{Builder, MAX_LINKS, MAX_NPUS, MAX_VERTICES};
pub use components::Components;
pub use distances::{Distances, Towards, UNREACHABLE};
pub use error::TopologyError;
pub use facts::{Facts, diameter_by_search};
pub use family::{
    Dimensions, Dragonfly, Entry, Family, FatTree, Grid, Join, REGISTRY, TreePosition, build, find,
    parse,
};
pub use graph::{Link, LinkParameters, Topology, VertexKind};
pub use routing::{Hop, Routes, Wire};
