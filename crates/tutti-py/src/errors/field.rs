//! What errors carry, as Python sees it: the fields of their variants.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tutti_engine::Waiting;
use tutti_engine::endpoint::EndpointError;
use tutti_engine::workload::{ProgramError, TaskId};
use tutti_noc::FlitError;
use tutti_noc::allocator::{AllocatorError, AllocatorKind, ArbiterKind};
use tutti_schedule::collective::{Collective, Contribution};
use tutti_schedule::{At, ChunkRange, ExplicitError, Fold, Slot, Wait};
use tutti_topology::{Components, TopologyError};
use tutti_units::ids::{LinkId, RankId, VertexId};
use tutti_units::parameter::ParameterError;
use tutti_units::{Bytes, Time, UnitError};

/// A value that an error carries, as Python sees it.
pub(super) trait Field {
    fn set(&self, fields: &Bound<'_, PyDict>, name: &str) -> PyResult<()>;
}

macro_rules! field {
    ($($kind:ty => |$value:ident| $python:expr),* $(,)?) => {$(
        impl Field for $kind {
            fn set(&self, fields: &Bound<'_, PyDict>, name: &str) -> PyResult<()> {
                let $value = self;
                fields.set_item(name, $python)
            }
        }
    )*};
}

field! {
    String => |value| value,
    &'static str => |value| *value,
    u8 => |value| *value,
    u32 => |value| *value,
    u64 => |value| *value,
    usize => |value| *value,
    f64 => |value| *value,
    RankId => |value| value.0,
    Slot => |value| value.0,
    VertexId => |value| value.0,
    LinkId => |value| value.0,
    Vec<String> => |value| value,
    Components => |value| ranks(value),
    Bytes => |value| value.0,
    Time => |value| value.ps(),
    (&'static str, Time) => |value| (value.0, value.1.ps()),
    UnitError => |value| value.to_string(),
    ParameterError => |value| value.to_string(),
    TaskId => |value| value.0,
    Vec<TaskId> => |value| value.iter().map(|task| task.0).collect::<Vec<_>>(),
    Collective => |value| value.name(),
    ProgramError => |value| value.to_string(),
    EndpointError => |value| value.to_string(),
    AllocatorKind => |value| value.to_string(),
    ArbiterKind => |value| value.to_string(),
    AllocatorError => |value| value.to_string(),
    FlitError => |value| value.to_string(),
    TopologyError => |value| value.to_string(),
    ExplicitError => |value| value.to_string(),
    At => |value| place(value),
    Wait => |value| (place(&value.at), value.from.0),
    Vec<Wait> => |value| value.iter().map(|w| (place(&w.at), w.from.0)).collect::<Vec<_>>(),
    ChunkRange => |value| (value.start, value.end),
    Contribution => |value| (value.origin.0, value.chunk),
    Option<Fold> => |value| value.as_ref().map(|fold| (place(&fold.at), fold.chunk)),
    Vec<Waiting> => |value| value.iter().map(waiting).collect::<Vec<_>>(),
}

/// Rank and step.
fn place(at: &At) -> (u32, u32) {
    (at.rank.0, at.step)
}

/// Who waits, in which step, on whom.
fn waiting(waiting: &Waiting) -> (u32, u32, Vec<u32>) {
    (waiting.rank.0, waiting.step, waiting.on.iter().map(|peer| peer.0).collect())
}

/// The groups of a graph that falls apart, as lists of ranks.
fn ranks(components: &Components) -> Vec<Vec<u32>> {
    let group = |group: &Vec<RankId>| group.iter().map(|rank| rank.0).collect();
    components.groups().iter().map(group).collect()
}
