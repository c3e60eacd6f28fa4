//! Up a fat tree by random links.

use super::{Candidate, Chance, Draw, Routing, RoutingContext, draw};
use crate::packet::Head;
use crate::{End, Wiring};
use tutti_topology::FatTree;

/// Up to a nearest common ancestor of source and destination, over a link drawn in each router for
/// each packet, and down the only path. `adaptive` draws two links and takes the one with fewer
/// credits in use. Up before down is deadlock-free.
#[derive(Clone, Debug)]
pub struct NearestAncestor {
    adaptive: bool,
    routers: Vec<Ports>,
    homes: Vec<(u32, u32)>,
}

/// Which ports of a router lead up, and which down to what.
#[derive(Clone, Default, Debug)]
struct Ports {
    up: Vec<u32>,
    /// The first node below it, and how many are below each of `down`.
    first: u64,
    each: u64,
    down: Vec<Vec<u32>>,
}

impl NearestAncestor {
    /// On a wiring that was built from a fat tree. `None` when it was not.
    #[must_use]
    pub fn new(wiring: &Wiring, tree: &FatTree, adaptive: bool) -> Option<NearestAncestor> {
        let place = |router| Some(tree.place(wiring.vertex(router)?));
        let mut routers = Vec::new();
        for router in 0..wiring.routers() {
            let at = place(router)?;
            let below = tree.npus_below(at.level);
            let each = tree.npus_below(at.level.saturating_sub(1));
            let mut ports = Ports { first: at.subtree * below, each, ..Ports::default() };
            ports.down.resize(usize::try_from(below / each).ok()?, Vec::new());
            for (port, &channel) in (0..).zip(wiring.outputs(router)) {
                let End::Router { router: to, .. } = wiring.channels()[channel as usize].to else {
                    continue;
                };
                let next = place(to)?;
                if next.level > at.level {
                    ports.up.push(port);
                } else {
                    let child = next.subtree.checked_sub(ports.first / each)?;
                    ports.down.get_mut(usize::try_from(child).ok()?)?.push(port);
                }
            }
            routers.push(ports);
        }
        let homes = (0..wiring.nodes()).map(|node| wiring.home(node)).collect();
        Some(NearestAncestor { adaptive, routers, homes })
    }

    /// One of several ports.
    fn one(ports: &[u32], place: &RoutingContext<'_>, head: &Head, what: Draw) -> u32 {
        let drawn = draw(place, head, what, ports.len() as u64);
        ports[usize::try_from(drawn).unwrap_or(0)]
    }
}

impl Routing for NearestAncestor {
    fn name(&self) -> &'static str {
        "nca"
    }

    fn route(&self, place: &RoutingContext<'_>, head: &mut Head, candidates: &mut Vec<Candidate>) {
        let (home, ejects) = self.homes[head.destination as usize];
        let here = &self.routers[place.router as usize];
        let child = u64::from(head.destination).checked_sub(here.first);
        let child = child
            .map_or(usize::MAX, |beyond| usize::try_from(beyond / here.each).unwrap_or(usize::MAX));
        let port = if home == place.router {
            ejects
        } else if let Some(down) = here.down.get(child) {
            NearestAncestor::one(down, place, head, Draw::Port)
        } else {
            let one = NearestAncestor::one(&here.up, place, head, Draw::Port);
            let other = || NearestAncestor::one(&here.up, place, head, Draw::OtherPort);
            let better = |&port: &u32| (place.used)(port) < (place.used)(one);
            // Where every first link is inspected, a second adds none.
            let compares = self.adaptive && matches!(place.chance, Chance::Seed(_));
            compares.then(other).filter(better).unwrap_or(one)
        };
        candidates.push(Candidate { port, vcs: place.vcs, priority: 0 });
    }

    fn is_adaptive(&self) -> bool {
        self.adaptive
    }
}
