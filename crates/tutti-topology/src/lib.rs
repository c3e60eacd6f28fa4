//! Topologies: NPUs, switches and routers, the links between them, and the routes of messages.
//!
//! A [`Topology`] is an immutable graph. A family builds it from the notation `name:argument`
//! ([`build`], one file per family under `family/`), or a [`Builder`] from explicit vertices and
//! links. [`Routes`] fixes the path between two ranks; [`Distances`] lists the links of all minimal
//! paths. Contention belongs to the network models.
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
