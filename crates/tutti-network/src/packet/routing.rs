//! Routing of packets: the fixed route of their pair, or per-packet adaptive routing.

use super::NONE;
use super::links::Links;
use tutti_topology::{Distances, Family, Routes, Topology, UNREACHABLE};
use tutti_units::Time;
use tutti_units::ids::{LinkId, RankId, VertexId};
use tutti_units::random::{random_bits, scale, split_words};

/// The random stream of routing; a draw is keyed by the message and the index of the packet in it.
const STREAM: u32 = 0x5741_5953;

/// The routing algorithm of per-packet routing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, tutti_units::Named)]
pub enum Choice {
    /// Minimal adaptive: at every vertex, the minimal link with the shortest queueing delay.
    Adaptive,
    /// Minimally to the switch of a random NPU, then minimally to the destination. Source: Valiant and
    /// Brebner, "Universal schemes for parallel communication", STOC 1981.
    Valiant,
    /// UGAL-L: as `Valiant` if, at the packet's first switch, queueing delay times hops is larger on the
    /// minimal path than on the non-minimal path; else as `Adaptive`. Source: Singh, "Load-balanced routing
    /// in interconnection networks", thesis, Stanford 2005.
    Ugal,
}

/// How packets are routed through a graph.
#[derive(Clone, Copy, Debug)]
pub enum PacketRouting<'a> {
    /// A fixed route per pair of ranks; where routes share bundles of parallel links, a packet takes the link
    /// with the shortest queueing delay.
    Routed(&'a Routes),
    /// Every packet is routed separately.
    PerPacket {
        /// Hop distances between vertices.
        distances: &'a Distances,
        /// The routing algorithm.
        choice: Choice,
        /// The seed for intermediate vertices.
        seed: u64,
    },
}

/// In place of a vertex: not decided yet.
const UNDECIDED: u32 = NONE - 1;

/// The routing state of a packet.
#[derive(Clone, Copy)]
pub(super) struct Traveller {
    pub(super) source: RankId,
    pub(super) destination: RankId,
    /// The intermediate vertex; [`NONE`] when the packet is routed to its destination, [`UNDECIDED`] before
    /// the choice.
    via: u32,
    /// The index of the packet in its message.
    pub(super) nth: u32,
}

impl Traveller {
    /// The `nth` packet of a message, before the choice.
    pub(super) fn new(source: RankId, destination: RankId, nth: u32) -> Traveller {
        Traveller { source, destination, via: UNDECIDED, nth }
    }
}

/// The position of a packet's head, where its next link is chosen.
#[derive(Clone, Copy)]
pub(super) struct HeadPosition<'a> {
    pub(super) at: VertexId,
    /// How many links of the graph it has crossed.
    pub(super) hops: usize,
    /// The current state of the links.
    pub(super) links: &'a Links,
    pub(super) now: Time,
}

impl<'a> PacketRouting<'a> {
    /// The graph.
    #[must_use]
    pub fn topology(&self) -> &'a Topology {
        match *self {
            PacketRouting::Routed(routes) => routes.topology(),
            PacketRouting::PerPacket { distances, .. } => distances.topology(),
        }
    }

    /// Whether packets choose among links.
    #[inline]
    pub(super) fn choose(&self) -> bool {
        match self {
            PacketRouting::Routed(routes) => routes.share_bundles(),
            PacketRouting::PerPacket { .. } => true,
        }
    }

    /// Whether some ranks cannot reach others.
    pub(super) fn disconnected(&self) -> bool {
        match self {
            PacketRouting::Routed(routes) => routes.has_unreachable_pairs(),
            PacketRouting::PerPacket { distances, .. } => {
                distances.topology().family().is_some_and(Family::may_be_disconnected)
            }
        }
    }

    /// Whether a path connects one rank to another.
    pub(super) fn reach(&self, from: RankId, to: RankId) -> bool {
        match self {
            PacketRouting::Routed(routes) => routes.reach(from, to),
            PacketRouting::PerPacket { distances, .. } => {
                distances.hops(VertexId(from.0), VertexId(to.0)) != UNREACHABLE
            }
        }
    }

    /// The next link of a packet; `serial` is the number of its message.
    #[inline]
    pub(super) fn next(
        &self,
        packet: &mut Traveller,
        place: &HeadPosition<'_>,
        serial: impl FnOnce() -> u64,
    ) -> u32 {
        match *self {
            PacketRouting::Routed(routes) => {
                along(routes, (packet.source, packet.destination), place)
            }
            PacketRouting::PerPacket { distances, choice, seed } => {
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

/// The next link of a pair's route; of a bundle, the link with the shortest queueing delay, at ties the first.
#[inline]
pub(super) fn along(routes: &Routes, pair: (RankId, RankId), place: &HeadPosition<'_>) -> u32 {
    along_link(routes, routes.next_link(pair.0, pair.1, place.at, place.hops), place)
}

/// The link itself; of a bundle, the link with the shortest queueing delay, at ties the first.
#[inline]
pub(super) fn along_link(routes: &Routes, link: LinkId, place: &HeadPosition<'_>) -> u32 {
    let HeadPosition { links, now, .. } = *place;
    if !routes.share_bundles() {
        return link.0;
    }
    let waits = routes.bundle(link).map(|link| (links[link.0].wait(now), link));
    waits.min().map_or(link.0, |(_, link)| link.0)
}

/// The current state of the network for a routing decision.
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

    /// The minimal link with the shortest queueing delay, at ties the first.
    fn shortest_wait(&self, at: VertexId, to: VertexId) -> (Time, LinkId) {
        let links = self.distances.to(to).links(at);
        let waits = links.map(|link| (self.links[link.0].wait(self.now), link));
        waits.min().expect("a topology is connected")
    }

    /// Decides between the minimal and a non-minimal path, at the first vertex with a choice.
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

    /// The switch of a random NPU, or the NPU itself if it has none.
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
