//! Dimension order in a torus, with datelines.

use super::{Candidate, Compass, Draw, Routing, RoutingContext, coin_flip};
use crate::packet::Head;
use crate::settings::VcRange;

/// Dimension order, in the shorter direction round each ring; a coin decides where both are equally
/// short.
///
/// The VCs of a class are halved: packets that cross the end of a row use one half in that row, the
/// others the other. So packets form no cyclic dependency in a ring (Dally and Seitz,
/// "Deadlock-free message routing in multiprocessor interconnection networks", 1987). `balanced`
/// lets packets that cross neither the end nor the middle of a row use either half, by a coin, as
/// the Cray T3D did.
#[derive(Clone, Debug)]
pub struct TorusOrder {
    compass: Compass,
    balanced: bool,
}

impl TorusOrder {
    /// On a torus.
    #[must_use]
    pub fn new(compass: Compass, balanced: bool) -> TorusOrder {
        TorusOrder { compass, balanced }
    }
}

/// Which half of the VCs a packet uses in the row it is in.
pub(super) const UPPER: u8 = 1;

/// The next port towards the router `to`, or `None` at that router; records the half of the VCs in
/// the lowest bit of the phase. `starts_here`: whether the packet or its leg starts at this router.
pub(super) fn next(
    compass: &Compass,
    place: &RoutingContext<'_>,
    head: &mut Head,
    to: u32,
    starts_here: bool,
    balanced: bool,
) -> Option<u32> {
    let (here, there) = (compass.at(place.router), compass.at(to));
    let dimension = (0..here.len()).find(|&dimension| here[dimension] != there[dimension])?;
    match compass.along(place.router, place.input) {
        Some((same, down)) if same == dimension && !starts_here => {
            return Some(compass.port(place.router, dimension, down));
        }
        _ => {}
    }
    let size = compass.sizes()[dimension];
    let (from, to) = (here[dimension], there[dimension]);
    let up = (to + size - from) % size;
    let down = match (2 * up).cmp(&size) {
        std::cmp::Ordering::Less => false,
        std::cmp::Ordering::Greater => true,
        std::cmp::Ordering::Equal => coin_flip(place, head, Draw::Direction),
    };
    let crosses = if down { to > from } else { to < from };
    let middle = (size - 1) / 2;
    let over_middle =
        if down { from > middle && to <= middle } else { from <= middle && to > middle };
    let upper = crosses || (balanced && !over_middle && coin_flip(place, head, Draw::Partition));
    head.phase = head.phase & !UPPER | u8::from(upper);
    Some(compass.port(place.router, dimension, down))
}

/// The half of the VCs that the packet uses in its row.
pub(super) fn half(head: &Head, vcs: VcRange) -> VcRange {
    vcs.half(head.phase & UPPER != 0)
}

impl Routing for TorusOrder {
    fn name(&self) -> &'static str {
        "dimension_order"
    }

    fn route(&self, place: &RoutingContext<'_>, head: &mut Head, candidates: &mut Vec<Candidate>) {
        let (home, ejects) = self.compass.home(head.destination);
        let candidate = match next(&self.compass, place, head, home, false, self.balanced) {
            Some(port) => Candidate { port, vcs: half(head, place.vcs), priority: 0 },
            None => Candidate { port: ejects, vcs: place.vcs, priority: 0 },
        };
        candidates.push(candidate);
    }

    fn least_vcs(&self) -> u32 {
        2
    }
}
