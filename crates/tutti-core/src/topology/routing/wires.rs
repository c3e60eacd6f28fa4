//! What a path comes to, for models in which messages do not meet: a table per destination.

use std::collections::BTreeMap;

use super::explicit::Paths;
use super::{NONE, Row};
use crate::ids::{LinkId, RankId, VertexId};
use crate::topology::{LinkParameters, Topology};
use crate::units::{Time, TimePerByte};

/// A path between two ranks, as a single wire.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Wire {
    /// The sum of the links' latencies.
    pub latency: Time,
    /// The time per byte of the slowest link; zero from a rank to itself.
    pub bottleneck: TimePerByte,
    /// How many links it crosses.
    pub hops: u32,
}

impl Wire {
    /// From a rank to itself.
    pub const NOWHERE: Wire = Wire { latency: Time::ZERO, bottleneck: TimePerByte::ZERO, hops: 0 };

    /// The same wire with one more link.
    fn and(self, link: LinkParameters) -> Wire {
        Wire {
            latency: self.latency + link.latency,
            bottleneck: self.bottleneck.max(link.rate),
            hops: self.hops + 1,
        }
    }
}

/// The wires from every rank to one destination. Most are alike, so that 4 bytes a rank suffice.
pub(super) struct WireRow {
    class: Box<[u32]>,
    wires: Box<[Wire]>,
}

impl WireRow {
    #[inline]
    pub(super) fn from(&self, source: RankId) -> Wire {
        self.wires[self.class[source.index()] as usize]
    }

    /// Follows the next links of a row, every vertex once.
    pub(super) fn from_row(topology: &Topology, destination: RankId, row: &Row) -> WireRow {
        let mut known: Vec<Option<Wire>> = vec![None; row.len()];
        known[destination.index()] = Some(Wire::NOWHERE);
        let mut walked = Vec::new();
        let wire = |source: VertexId| {
            let mut at = source;
            let mut wire = loop {
                if let Some(wire) = known[at.index()] {
                    break wire;
                }
                let link = LinkId(row[at.index()]);
                debug_assert_ne!(link.0, NONE, "a sealed graph has routes between all NPUs");
                walked.push((at, link));
                at = topology.link_to(link);
            };
            while let Some((vertex, link)) = walked.pop() {
                wire = wire.and(topology.parameters(link));
                known[vertex.index()] = Some(wire);
            }
            wire
        };
        WireRow::collect((0..topology.npus()).map(VertexId).map(wire))
    }

    /// Adds up the paths of every pair.
    pub(super) fn from_paths(topology: &Topology, to: RankId, paths: &Paths) -> WireRow {
        let wire = |from: RankId| {
            let links = paths.path(from, to).iter();
            links.fold(Wire::NOWHERE, |wire, &link| wire.and(topology.parameters(link)))
        };
        WireRow::collect((0..topology.npus()).map(RankId).map(wire))
    }

    fn collect(all: impl Iterator<Item = Wire>) -> WireRow {
        let mut classes = BTreeMap::new();
        let mut wires = Vec::new();
        let class = all
            .map(|wire| {
                *classes.entry(wire).or_insert_with(|| {
                    wires.push(wire);
                    u32::try_from(wires.len() - 1).unwrap_or(u32::MAX)
                })
            })
            .collect();
        WireRow { class, wires: wires.into_boxed_slice() }
    }
}
