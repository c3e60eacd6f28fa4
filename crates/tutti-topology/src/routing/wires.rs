//! Contention-free latency and rate of paths: a table per destination.

use std::collections::BTreeMap;

use super::explicit::Paths;
use super::{NONE, Row};
use crate::anchors::Anchors;
use crate::{LinkParameters, Topology};
use tutti_units::ids::{LinkId, RankId, VertexId};
use tutti_units::{Time, TimePerByte};

/// A path between two ranks as a single wire.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Wire {
    /// The sum of the link latencies.
    pub latency: Time,
    /// The time per byte of the slowest link; zero from a rank to itself.
    pub bottleneck: TimePerByte,
    /// The number of links.
    pub hops: u32,
}

impl Wire {
    /// The path from a rank to itself.
    pub const NOWHERE: Wire = Wire { latency: Time::ZERO, bottleneck: TimePerByte::ZERO, hops: 0 };

    /// Returns the wire extended by a link.
    pub(super) fn and(self, link: LinkParameters) -> Wire {
        Wire {
            latency: self.latency + link.latency,
            bottleneck: self.bottleneck.max(link.rate),
            hops: self.hops + 1,
        }
    }
}

/// The wires from every anchor to one destination. Most are equal, so an index of 4 bytes each
/// suffices.
pub(super) struct WireRow {
    class: Box<[u32]>,
    wires: Box<[Wire]>,
}

impl WireRow {
    /// The wire from the anchor at an index.
    #[inline]
    pub(super) fn from(&self, place: usize) -> Wire {
        self.wires[self.class[place] as usize]
    }

    /// Follows the next links of a row from the first `sources` anchors, each vertex once. `link`
    /// returns the destination and parameters of a link. Anchors without a path get a placeholder,
    /// which is never read.
    pub(super) fn from_row(
        link: impl Fn(LinkId) -> (VertexId, LinkParameters),
        anchors: &Anchors,
        sources: usize,
        destination: VertexId,
        row: &Row,
    ) -> WireRow {
        let mut known: Vec<Option<Wire>> = vec![None; row.len()];
        known[anchors.place(destination)] = Some(Wire::NOWHERE);
        let mut walked = Vec::new();
        let wire = |&source: &VertexId| {
            let mut at = anchors.place(source);
            let mut wire = loop {
                if let Some(wire) = known[at] {
                    break wire;
                }
                if row[at] == NONE {
                    break Wire::NOWHERE;
                }
                let (to, parameters) = link(LinkId(row[at]));
                walked.push((at, parameters));
                at = anchors.place(to);
            };
            while let Some((place, parameters)) = walked.pop() {
                wire = wire.and(parameters);
                known[place] = Some(wire);
            }
            wire
        };
        WireRow::collect(anchors.all()[..sources].iter().map(wire))
    }

    /// Accumulates the paths of every pair.
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
