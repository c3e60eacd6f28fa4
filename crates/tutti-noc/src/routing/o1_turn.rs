//! One turn: XY or YX.

use super::{Candidate, Compass, Draw, Routing, RoutingContext, coin_flip, dimension_order};
use crate::packet::Head;

/// In a mesh, half of the packets by ascending, half by descending dimension order, each half on
/// separate VCs (Seo et al., "Near-optimal worst-case throughput routing for two-dimensional mesh
/// networks", 2005). `adaptive` takes the order whose first port has fewer credits in use, and
/// decides at random if they are equal.
#[derive(Clone, Debug)]
pub struct O1Turn {
    compass: Compass,
    adaptive: bool,
}

impl O1Turn {
    /// On a mesh.
    #[must_use]
    pub fn new(compass: Compass, adaptive: bool) -> O1Turn {
        O1Turn { compass, adaptive }
    }
}

impl Routing for O1Turn {
    fn name(&self) -> &'static str {
        "o1_turn"
    }

    fn route(&self, place: &RoutingContext<'_>, head: &mut Head, candidates: &mut Vec<Candidate>) {
        let (home, ejects) = self.compass.home(head.destination);
        let port = |down| dimension_order::next(&self.compass, place.router, home, down);
        let (Some(ascending), Some(descending)) = (port(false), port(true)) else {
            candidates.push(Candidate { port: ejects, vcs: place.vcs, priority: 0 });
            return;
        };
        if place.injected {
            let used = if self.adaptive {
                ((place.used)(ascending), (place.used)(descending))
            } else {
                (0, 0)
            };
            let down = match used.0.cmp(&used.1) {
                std::cmp::Ordering::Less => false,
                std::cmp::Ordering::Greater => true,
                std::cmp::Ordering::Equal => coin_flip(place, head, Draw::Order),
            };
            head.phase = u8::from(down);
        }
        let down = head.phase != 0;
        let port = if down { descending } else { ascending };
        candidates.push(Candidate { port, vcs: place.vcs.half(down), priority: 0 });
    }

    fn is_adaptive(&self) -> bool {
        self.adaptive
    }

    fn least_vcs(&self) -> u32 {
        2
    }
}
