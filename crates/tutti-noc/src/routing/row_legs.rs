//! Legs through routers in rows of which every two are joined: flattened butterflies and HyperX.

use super::legs::{Legs, SECOND, router_nodes, target};
use super::{Draw, RoutingContext, draw};
use crate::packet::Head;
use crate::settings::VcRange;
use crate::{End, Wiring};

/// In dimension order, a hop along each, on half of the VCs for each leg. A first leg ends also
/// where the destination is.
#[derive(Clone, Debug)]
pub struct RowLegs {
    sizes: Vec<u32>,
    /// Per router, dimension and place along it, the ports that lead there.
    ports: Vec<Vec<u32>>,
    homes: Vec<(u32, u32)>,
    router_nodes: Vec<u32>,
}

impl RowLegs {
    /// Routers of a wiring that form rows in the order of their numbers, the first dimension
    /// fastest. `None` when they do not, or some two of a row are not joined.
    #[must_use]
    pub fn new(wiring: &Wiring, sizes: &[u32]) -> Option<RowLegs> {
        let count: u64 = sizes.iter().map(|&size| u64::from(size)).product();
        if count != u64::from(wiring.routers()) {
            return None;
        }
        let row: u32 = sizes.iter().sum();
        let mut legs = RowLegs {
            sizes: sizes.to_vec(),
            ports: vec![Vec::new(); wiring.routers() as usize * row as usize],
            homes: (0..wiring.nodes()).map(|node| wiring.home(node)).collect(),
            router_nodes: router_nodes(wiring),
        };
        for channel in wiring.channels() {
            if let (End::Router { router, port }, End::Router { router: to, .. }) =
                (channel.from, channel.to)
            {
                let (dimension, place) = legs.step(router, to)?;
                let index = legs.index(router, dimension, place);
                legs.ports[index].push(port);
            }
        }
        let joined = |router| {
            let others = (0..count).map(|to| u32::try_from(to).unwrap_or(0));
            others.filter(|&to| to != router).all(|to| legs.port(router, to, 0).is_some())
        };
        (0..wiring.routers()).all(joined).then_some(legs)
    }

    /// The coordinate of a router along a dimension.
    fn at(&self, router: u32, dimension: usize) -> u32 {
        let stride: u32 = self.sizes[..dimension].iter().product();
        router / stride % self.sizes[dimension]
    }

    fn index(&self, router: u32, dimension: usize, place: u32) -> usize {
        let row: u32 = self.sizes.iter().sum();
        let before: u32 = self.sizes[..dimension].iter().sum();
        router as usize * row as usize + (before + place) as usize
    }

    /// The dimension that a channel is along, and where in it it leads.
    fn step(&self, from: u32, to: u32) -> Option<(usize, u32)> {
        let mut differ = self.differ(from, to);
        let (dimension, None) = (differ.next()?, differ.next()) else { return None };
        Some((dimension, self.at(to, dimension)))
    }

    fn differ(&self, from: u32, to: u32) -> impl Iterator<Item = usize> + '_ {
        (0..self.sizes.len())
            .filter(move |&dimension| self.at(from, dimension) != self.at(to, dimension))
    }

    /// The next port towards a router; packets to different nodes take different ones of several
    /// cables.
    fn port(&self, router: u32, to: u32, node: u32) -> Option<u32> {
        let dimension = self.differ(router, to).next()?;
        let cables = &self.ports[self.index(router, dimension, self.at(to, dimension))];
        cables.get(node as usize % cables.len().max(1)).copied()
    }
}

impl Legs for RowLegs {
    fn home(&self, node: u32) -> (u32, u32) {
        self.homes[node as usize]
    }

    fn is_over(&self, router: u32, head: &Head) -> bool {
        [head.intermediate, head.destination].iter().any(|&node| self.home(node).0 == router)
    }

    fn next(&self, place: &RoutingContext<'_>, head: &mut Head, _: bool) -> Option<(u32, VcRange)> {
        let target = target(head);
        let port = self.port(place.router, self.home(target).0, target)?;
        Some((port, place.vcs.half(head.phase & SECOND != 0)))
    }

    /// On a router that differs from the source's only where the destination's does, as in BookSim
    /// 2.
    fn via(&self, place: &RoutingContext<'_>, head: &Head) -> u32 {
        let to = self.home(head.destination).0;
        let spans = self.differ(place.router, to).map(|dimension| self.sizes[dimension]);
        let bound = spans.map(u64::from).product();
        let mut drawn = draw(place, head, Draw::Intermediate, bound);
        let mut router = place.router;
        for dimension in self.differ(place.router, to) {
            let size = u64::from(self.sizes[dimension]);
            let stride: u32 = self.sizes[..dimension].iter().product();
            let step = u32::try_from(drawn % size).unwrap_or(0);
            drawn /= size;
            router = router - stride * self.at(router, dimension) + stride * step;
        }
        self.router_nodes[router as usize]
    }

    fn straight(&self, from: u32, to: u32) -> u32 {
        u32::try_from(self.differ(from, self.home(to).0).count()).unwrap_or(u32::MAX)
    }

    fn least_vcs(&self) -> u32 {
        2
    }
}
