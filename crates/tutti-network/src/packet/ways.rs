//! Which way packets take: the one route of their pair, or a choice packet by packet.

use super::NONE;
use super::links::Links;
use tutti_topology::{Distances, Family, Routes, Topology, UNREACHABLE};
use tutti_units::Time;
use tutti_units::ids::{LinkId, RankId, VertexId};
use tutti_units::random::{random_bits, scale, split_words};

/// A packet's own random numbers come from its message and its place there; of the draws for other
/// purposes none has this stream.
const STREAM: u32 = 0x5741_5953;

/// How a packet chooses among ways.
#[derive(Clone, Copy, PartialEq, Eq, Debug, tutti_units::Named)]
pub enum Choice {
    /// At every vertex, of the links on a minimal path the one with the shortest wait.
    Adaptive,
    /// First to the switch of a random NPU, then to the destination, both minimally. Source: Valiant and
    /// Brebner, "Universal schemes for parallel communication", STOC 1981.
    Valiant,
    /// As `Valiant`, where the queue of the minimal way times its hops is longer than that of the detour
    /// times the detour's hops, looking at the packet's first switch only; else as `Adaptive`. Source:
    /// UGAL-L, Singh, "Load-balanced routing in interconnection networks", thesis, Stanford 2005.
    Ugal,
}

/// The ways through a graph.
#[derive(Clone, Copy, Debug)]
pub enum Ways<'a> {
    /// Every pair of ranks has one; of links side by side, where it shares them, a packet takes the one with
    /// the shortest wait.
    Routed(&'a Routes),
    /// Every packet chooses.
    Chosen {
        /// What is near.
        distances: &'a Distances,
        /// How.
        choice: Choice,
        /// Of the random vertices.
        seed: u64,
    },
}

/// In place of a vertex.
const UNDECIDED: u32 = NONE - 1;

/// What a packet has to do with its way.
#[derive(Clone, Copy)]
pub(super) struct Traveller {
    pub(super) source: RankId,
    pub(super) destination: RankId,
    /// The vertex it goes to first; [`NONE`] when it goes straight to its destination, [`UNDECIDED`] before
    /// it has chosen.
    via: u32,
    /// Its place in its message.
    pub(super) nth: u32,
}

impl Traveller {
    /// The `nth` packet of a message, before it has chosen.
    pub(super) fn new(source: RankId, destination: RankId, nth: u32) -> Traveller {
        Traveller { source, destination, via: UNDECIDED, nth }
    }
}

/// Where a packet asks for its way.
#[derive(Clone, Copy)]
pub(super) struct HeadPosition<'a> {
    pub(super) at: VertexId,
    /// How many links of the graph it has crossed.
    pub(super) hops: usize,
    /// The network as it is now.
    pub(super) links: &'a Links,
    pub(super) now: Time,
}

impl<'a> Ways<'a> {
    /// The graph.
    #[must_use]
    pub fn topology(&self) -> &'a Topology {
        match *self {
            Ways::Routed(routes) => routes.topology(),
            Ways::Chosen { distances, .. } => distances.topology(),
        }
    }

    /// Whether packets choose among links where they are.
    #[inline]
    pub(super) fn choose(&self) -> bool {
        match self {
            Ways::Routed(routes) => routes.share_bundles(),
            Ways::Chosen { .. } => true,
        }
    }

    /// Whether some ranks are out of reach of others.
    pub(super) fn lack_ways(&self) -> bool {
        match self {
            Ways::Routed(routes) => routes.has_unreachable_pairs(),
            Ways::Chosen { distances, .. } => {
                distances.topology().family().is_some_and(Family::may_be_disconnected)
            }
        }
    }

    /// Whether there is a way from one rank to another.
    pub(super) fn reach(&self, from: RankId, to: RankId) -> bool {
        match self {
            Ways::Routed(routes) => routes.reach(from, to),
            Ways::Chosen { distances, .. } => {
                distances.hops(VertexId(from.0), VertexId(to.0)) != UNREACHABLE
            }
        }
    }

    /// The link over which a packet goes on; `serial` is the number of its message.
    #[inline]
    pub(super) fn next(
        &self,
        packet: &mut Traveller,
        place: &HeadPosition<'_>,
        serial: impl FnOnce() -> u64,
    ) -> u32 {
        match *self {
            Ways::Routed(routes) => along(routes, (packet.source, packet.destination), place),
            Ways::Chosen { distances, choice, seed } => {
                let choosing = Choosing { distances, links: place.links, now: place.now };
                if packet.via == UNDECIDED && distances.topology().links_out(place.at).len() > 1 {
                    packet.via = NONE;
                    choosing.decide(packet, place.at, (choice, seed), serial());
                }
                choosing.next(packet, place.at)
            }
        }
    }
}

/// The next link of a pair's route; of a bundle the one with the shortest wait, of equals the first.
#[inline]
pub(super) fn along(routes: &Routes, pair: (RankId, RankId), place: &HeadPosition<'_>) -> u32 {
    let HeadPosition { at, hops, links, now } = *place;
    let link = routes.next_link(pair.0, pair.1, at, hops);
    if !routes.share_bundles() {
        return link.0;
    }
    let waits = routes.bundle(link).map(|link| (links[link.0].wait(now), link));
    waits.min().map_or(link.0, |(_, link)| link.0)
}

/// A look at the network as it is now.
struct Choosing<'a> {
    distances: &'a Distances,
    links: &'a Links,
    now: Time,
}

impl Choosing<'_> {
    fn next(&self, packet: &mut Traveller, at: VertexId) -> u32 {
        if packet.via == at.0 {
            packet.via = NONE;
        }
        let straight = packet.via == NONE || packet.via == UNDECIDED;
        let target = if straight { packet.destination.0 } else { packet.via };
        self.shortest_wait(at, VertexId(target)).1.0
    }

    /// Of the links on minimal paths, the one with the shortest wait; of equals the first.
    fn shortest_wait(&self, at: VertexId, to: VertexId) -> (Time, LinkId) {
        let links = self.distances.to(to).links(at);
        let waits = links.map(|link| (self.links[link.0].wait(self.now), link));
        waits.min().expect("a topology is connected")
    }

    /// Whether to make a detour, at the first vertex that has a choice.
    fn decide(
        &self,
        packet: &mut Traveller,
        at: VertexId,
        (choice, seed): (Choice, u64),
        serial: u64,
    ) {
        if choice == Choice::Adaptive {
            return;
        }
        let via = self.detour(seed, serial, packet.nth);
        let destination = VertexId(packet.destination.0);
        if via == at || via == self.distances.anchor(destination) {
            return;
        }
        if choice == Choice::Valiant || self.detour_is_shorter(at, via, destination) {
            packet.via = via.0;
        }
    }

    /// The switch of a random NPU, or the NPU where it is its own.
    fn detour(&self, seed: u64, serial: u64, nth: u32) -> VertexId {
        let [low, high] = split_words(serial);
        let bits = random_bits(seed, [low, high, nth, STREAM]);
        let npus = u128::from(self.distances.topology().npus());
        let npu = u32::try_from(scale(bits, npus)).expect("below the number of NPUs");
        self.distances.anchor(VertexId(npu))
    }

    fn detour_is_shorter(&self, at: VertexId, via: VertexId, to: VertexId) -> bool {
        let cost = |wait: Time, hops: u32| u128::from(wait.ps()) * u128::from(hops);
        let straight = cost(self.shortest_wait(at, to).0, self.distances.hops(at, to));
        let hops = self.distances.hops(at, via).saturating_add(self.distances.hops(via, to));
        straight > cost(self.shortest_wait(at, via).0, hops)
    }
}
