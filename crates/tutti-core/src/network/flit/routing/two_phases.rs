//! By way of another node: Valiant and ROMM.

use super::{Compass, Draw, Place, Routing, Way, dimension_order, draw, torus_order};
use crate::network::flit::packet::Head;
use crate::network::flit::settings::VcRange;

/// Which nodes a packet may go by way of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Through {
    /// Any (Valiant, "A scheme for fast parallel communication", 1982).
    Any,
    /// Those on a shortest path, in a mesh (Nesson and Johnsson, "ROMM routing on mesh and torus networks",
    /// 1995).
    Quadrant,
}

/// First to a node drawn at random, then to the destination, both by dimension order, on VCs of their
/// own. In a torus each half is halved again for datelines.
#[derive(Clone, Debug)]
pub struct TwoPhases {
    compass: Compass,
    through: Through,
    nodes: u32,
    /// Per router, a node there.
    residents: Vec<u32>,
}

/// The packet has been where it was sent first.
const SECOND: u8 = 2;

impl TwoPhases {
    /// On a mesh or torus of so many nodes; by a quadrant in a mesh only.
    #[must_use]
    pub fn new(compass: Compass, nodes: u32, through: Through) -> TwoPhases {
        let mut residents = vec![u32::MAX; compass.routers() as usize];
        for node in (0..nodes).rev() {
            residents[compass.home(node).0 as usize] = node;
        }
        TwoPhases { compass, through, nodes, residents }
    }

    fn intermediate(&self, place: &Place<'_>, head: &Head) -> u32 {
        if self.through == Through::Any {
            let node = draw(place, head, Draw::Intermediate, u64::from(self.nodes));
            return u32::try_from(node).unwrap_or(0);
        }
        let to = self.compass.home(head.destination).0;
        let (here, there) = (self.compass.at(place.router), self.compass.at(to));
        let spans = here.iter().zip(there).map(|(&a, &b)| u64::from(a.abs_diff(b)) + 1);
        let mut drawn = draw(place, head, Draw::Intermediate, spans.product());
        let mut router = 0;
        let mut stride = 1;
        for ((&a, &b), &size) in here.iter().zip(there).zip(self.compass.sizes()) {
            let span = u64::from(a.abs_diff(b)) + 1;
            let step = u32::try_from(drawn % span).unwrap_or(0);
            drawn /= span;
            router += stride * (a.min(b) + step);
            stride *= size;
        }
        self.residents[router as usize]
    }

    fn next(&self, place: &Place<'_>, head: &mut Head, anew: bool) -> Option<u32> {
        let target = if head.phase & SECOND == 0 { head.intermediate } else { head.destination };
        let to = self.compass.home(target).0;
        if self.compass.wraps() {
            torus_order::next(&self.compass, place, head, to, anew, false)
        } else {
            dimension_order::next(&self.compass, place.router, to, false)
        }
    }

    fn vcs(&self, head: &Head, vcs: VcRange) -> VcRange {
        let second = head.phase & SECOND != 0;
        if self.compass.wraps() {
            torus_order::half(head, vcs).half(second)
        } else {
            vcs.half(second)
        }
    }
}

impl Routing for TwoPhases {
    fn route(&self, place: &Place<'_>, head: &mut Head, ways: &mut Vec<Way>) {
        if place.injected {
            head.phase = 0;
            head.intermediate = self.intermediate(place, head);
        }
        let turns =
            head.phase & SECOND == 0 && self.compass.home(head.intermediate).0 == place.router;
        if turns {
            head.phase |= SECOND;
        }
        let way = match self.next(place, head, turns) {
            Some(port) => Way { port, vcs: self.vcs(head, place.vcs), priority: 0 },
            None => {
                let port = self.compass.home(head.destination).1;
                Way { port, vcs: place.vcs, priority: 0 }
            }
        };
        ways.push(way);
    }

    fn least_vcs(&self) -> u32 {
        if self.compass.wraps() { 4 } else { 2 }
    }
}
