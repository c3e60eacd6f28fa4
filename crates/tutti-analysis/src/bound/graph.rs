//! The contribution of a graph to lower bounds.

use tutti_network::{Model, Serialization};
use tutti_schedule::Layout;
use tutti_schedule::algorithm::bound::{by_links, by_links_in_network, by_links_of_blocks};
use tutti_schedule::collective::Collective;
use tutti_topology::Topology;
use tutti_units::ids::{RankId, VertexId};
use tutti_units::{Time, TimePerByte};

use super::distance;

/// The contribution of a graph: computed once per collective and rank count, for all sizes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GraphBound {
    /// The minimum latency between two ranks.
    pub nearest: Time,
    /// The maximum latency of a shortest path from a rank to one that needs its data.
    pub farthest: Time,
    /// The bound of the links per byte of the size; zero without contention.
    pub links: TimePerByte,
    /// The bound of the links for the blocks of an all_to_all_v; zero without contention.
    pub blocks: Time,
    /// The ports of the NPUs, if messages share them.
    pub ports: Option<Ports>,
}

/// Times per byte between an NPU and its links, with contention.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ports {
    /// Of the injection port; zero if only the links limit injection.
    pub injection: TimePerByte,
    /// Of the ejection port, or of the receiver in the model.
    pub ejection: Serialization,
}

impl Ports {
    /// The declared injection and ejection ports of a network; without an ejection port, that of the model.
    #[must_use]
    pub fn of(declared: (Option<TimePerByte>, Option<TimePerByte>), model: &Model) -> Ports {
        let (injection, ejection) = declared;
        let ejection = ejection.map(Serialization::of_every_byte).or(model.takes());
        Ports {
            injection: injection.unwrap_or(TimePerByte::ZERO),
            ejection: ejection.unwrap_or(Serialization::NONE),
        }
    }
}

impl GraphBound {
    /// No graph.
    pub const NONE: GraphBound = GraphBound {
        nearest: Time::ZERO,
        farthest: Time::ZERO,
        links: TimePerByte::ZERO,
        blocks: Time::ZERO,
        ports: None,
    };

    /// The contribution of a topology, whose first NPUs are the ranks; `shared` if messages contend
    /// for links.
    #[must_use]
    pub fn through(
        topology: &Topology,
        collective: Collective,
        ranks: u32,
        shared: bool,
    ) -> GraphBound {
        let ranks = ranks.min(topology.npus());
        let root = collective.root().map(|RankId(root)| VertexId(root.min(ranks.max(1) - 1)));
        let inwards = matches!(collective, Collective::Gather { .. } | Collective::Reduce { .. });
        let (nearest, mut farthest) = distance::extremes(topology, ranks, root, inwards);
        if collective == Collective::AllToAllV {
            farthest = nearest;
        }
        let links = if shared { by_links(collective, ranks, topology) } else { TimePerByte::ZERO };
        GraphBound { nearest, farthest, links, ..GraphBound::NONE }
    }

    /// As [`GraphBound::through`], for links that messages share. By vertex, whether it multicasts or
    /// reduces.
    #[must_use]
    pub fn in_network(
        topology: &Topology,
        collective: Collective,
        ranks: u32,
        vertices: &[bool],
    ) -> GraphBound {
        let links = by_links_in_network(collective, ranks, topology, vertices);
        GraphBound { links, ..GraphBound::through(topology, collective, ranks, false) }
    }

    /// Adds the blocks of an all_to_all_v; `shared` if messages contend for links.
    #[must_use]
    pub fn with_blocks(self, topology: &Topology, layout: &Layout, shared: bool) -> GraphBound {
        let Some(blocks) = layout.blocks() else { return self };
        let farthest = self.farthest.max(distance::farthest(topology, blocks));
        let links = if shared { by_links_of_blocks(layout, topology) } else { Time::ZERO };
        GraphBound { farthest, blocks: links, ..self }
    }

    /// Adds ports.
    #[must_use]
    pub fn with_ports(self, ports: Ports) -> GraphBound {
        GraphBound { ports: Some(ports), ..self }
    }
}
