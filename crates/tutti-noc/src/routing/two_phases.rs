//! Over another node: Valiant, ROMM and UGAL.

use std::sync::Arc;

use super::legs::{GridLegs, Legs, SECOND, any};
use super::{Candidate, Compass, DependsOn, Draw, Routing, RoutingContext, draw};
use crate::packet::Head;

/// The candidates for the intermediate node of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Through {
    /// Any (Valiant, "A scheme for fast parallel communication", 1982).
    Any,
    /// Those on a shortest path, in a mesh (Nesson and Johnsson, "ROMM routing on mesh and torus
    /// networks", 1995).
    Quadrant,
    /// Any, or the shortest path (UGAL-L; Singh, "Load-balanced routing in interconnection
    /// networks", 2005). Compares the credits in use of the first port, times the hops: the
    /// shortest path wins unless it exceeds the path over the node by more than a threshold. Chosen
    /// once, at the source.
    Either {
        /// The threshold.
        threshold: u32,
    },
}

/// First to a node drawn at random, then to the destination, on separate VCs.
#[derive(Clone, Debug)]
pub struct TwoPhases {
    legs: Arc<dyn Legs>,
    through: Through,
    nodes: u32,
    /// The routers of a mesh, and per router a node there: for quadrants.
    mesh: Option<(Compass, Vec<u32>)>,
}

impl TwoPhases {
    /// On a mesh or torus of so many nodes; by a quadrant in a mesh only.
    #[must_use]
    pub fn new(compass: Compass, nodes: u32, through: Through) -> TwoPhases {
        let mut router_nodes = vec![u32::MAX; compass.routers() as usize];
        for node in (0..nodes).rev() {
            router_nodes[compass.home(node).0 as usize] = node;
        }
        let legs = Arc::new(GridLegs::new(compass.clone(), nodes));
        TwoPhases { legs, through, nodes, mesh: Some((compass, router_nodes)) }
    }

    /// On a network with legs of so many nodes; by any node where a quadrant is requested.
    #[must_use]
    pub fn along(legs: Arc<dyn Legs>, nodes: u32, through: Through) -> TwoPhases {
        TwoPhases { legs, through, nodes, mesh: None }
    }

    /// A packet starts: its intermediate node, unless it takes the shortest path.
    fn begin(&self, place: &RoutingContext<'_>, head: &mut Head) {
        head.phase = 0;
        head.intermediate = match (self.through, &self.mesh) {
            (Through::Quadrant, Some((compass, router_nodes))) => {
                router_nodes[quadrant(compass, place, head) as usize]
            }
            (Through::Either { .. }, _) => self.legs.via(place, head),
            _ => any(place, head, self.nodes),
        };
        if let Through::Either { threshold } = self.through
            && self.goes_straight(place, head, threshold)
        {
            head.phase = SECOND;
        }
    }

    /// Whether a packet had better go straight on.
    fn goes_straight(&self, place: &RoutingContext<'_>, head: &Head, threshold: u32) -> bool {
        let here = place.router;
        if self.legs.is_over(here, head) || self.legs.home(head.destination).0 == here {
            return true;
        }
        let used = |phase| {
            let candidate = self.legs.next(place, &mut Head { phase, ..*head }, false);
            candidate.map_or(0, |(port, _)| u64::from((place.used)(port)))
        };
        let straight = self.legs.straight(here, head.destination);
        let detour = self.legs.detour(here, head.intermediate, head.destination);
        used(SECOND) * u64::from(straight) <= used(0) * u64::from(detour) + u64::from(threshold)
    }
}

/// A router on a shortest path through a mesh.
fn quadrant(compass: &Compass, place: &RoutingContext<'_>, head: &Head) -> u32 {
    let to = compass.home(head.destination).0;
    let (here, there) = (compass.at(place.router), compass.at(to));
    let spans = here.iter().zip(there).map(|(&a, &b)| u64::from(a.abs_diff(b)) + 1);
    let mut drawn = draw(place, head, Draw::Intermediate, spans.product());
    let mut router = 0;
    let mut stride = 1;
    for ((&a, &b), &size) in here.iter().zip(there).zip(compass.sizes()) {
        let span = u64::from(a.abs_diff(b)) + 1;
        let step = u32::try_from(drawn % span).unwrap_or(0);
        drawn /= span;
        router += stride * (a.min(b) + step);
        stride *= size;
    }
    router
}

impl Routing for TwoPhases {
    fn name(&self) -> &'static str {
        match self.through {
            Through::Any => "valiant",
            Through::Quadrant => "romm",
            Through::Either { .. } => "ugal",
        }
    }

    fn route(&self, place: &RoutingContext<'_>, head: &mut Head, candidates: &mut Vec<Candidate>) {
        if place.injected {
            self.begin(place, head);
        }
        let turns = head.phase & SECOND == 0 && self.legs.is_over(place.router, head);
        if turns {
            head.phase |= SECOND;
        }
        let candidate = match self.legs.next(place, head, turns) {
            Some((port, vcs)) => Candidate { port, vcs, priority: 0 },
            None => {
                let port = self.legs.home(head.destination).1;
                Candidate { port, vcs: place.vcs, priority: 0 }
            }
        };
        candidates.push(candidate);
    }

    fn depends_on(&self) -> DependsOn {
        DependsOn::Via { second: SECOND }
    }

    fn is_adaptive(&self) -> bool {
        matches!(self.through, Through::Either { .. })
    }

    fn least_vcs(&self) -> u32 {
        self.legs.least_vcs()
    }
}
