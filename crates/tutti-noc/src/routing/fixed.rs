//! Static routes of the graph. Where these share parallel links, a packet may take any of them: the
//! links with the fewest credits in use are tried first.

use std::fmt;
use std::sync::Arc;

use super::{Candidate, DependsOn, Routing, RoutingContext};
use crate::packet::Head;
use crate::{FlitError, Wiring};
use tutti_topology::Routes;
use tutti_units::ids::{LinkId, RankId};

/// A path for every pair of nodes, from a static routing of the graph, a table or a list.
pub struct Fixed {
    routes: Arc<Routes>,
    wiring: Arc<Wiring>,
}

impl Fixed {
    /// Static routes of the graph that the wiring was built from.
    ///
    /// # Errors
    /// When the wiring was built from no graph, or another one.
    pub fn new(routes: Arc<Routes>, wiring: Arc<Wiring>) -> Result<Fixed, FlitError> {
        if wiring.topology().is_none_or(|graph| **graph != **routes.topology()) {
            return Err(FlitError::RoutingDoesNotFit {
                routing: format!("{routes:?}"),
                needs: "a network built from the graph of the routes",
                network: "this one".to_owned(),
            });
        }
        Ok(Fixed { routes, wiring })
    }

    /// The link on the path from a node to another, at a router that is not yet the last.
    fn link(&self, router: u32, source: u32, destination: u32, hops: u32) -> Option<LinkId> {
        let at = self.wiring.vertex(router)?;
        let (from, to) = (RankId(self.wiring.npu(source)), RankId(self.wiring.npu(destination)));
        // A node without a dedicated router has crossed a link to be here.
        let crossed = hops + u32::from(self.wiring.is_leaf(source));
        Some(self.routes.next_link(from, to, at, crossed as usize))
    }

    fn port(&self, router: u32, source: u32, destination: u32, hops: u32) -> u32 {
        let (home, ejects) = self.wiring.home(destination);
        if home == router {
            return ejects;
        }
        let link = self.link(router, source, destination, hops);
        link.and_then(|link| self.wiring.port_of(link)).unwrap_or(ejects)
    }

    /// Pushes every link parallel to the one on a packet's path; none between
    /// unconnected nodes.
    fn bundle(&self, place: &RoutingContext<'_>, head: &Head, candidates: &mut Vec<Candidate>) {
        let (home, ejects) = self.wiring.home(head.destination);
        if home == place.router {
            candidates.push(Candidate { port: ejects, vcs: place.vcs, priority: 0 });
            return;
        }
        let hops = u32::from(head.hops);
        let link = self.link(place.router, head.source, head.destination, hops);
        let Some(link) = link.filter(|&link| self.wiring.port_of(link).is_some()) else { return };
        let parallel = self.routes.bundle(link);
        let several = parallel.len() > 1;
        for port in parallel.filter_map(|link| self.wiring.port_of(link)) {
            let used = if several { (place.used)(port) } else { 0 };
            let priority = i32::try_from(used).map_or(i32::MIN, |used| -used);
            candidates.push(Candidate { port, vcs: place.vcs, priority });
        }
    }
}

impl fmt::Debug for Fixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.routes)
    }
}

impl Routing for Fixed {
    fn name(&self) -> &'static str {
        "paths of the graph"
    }

    fn route(&self, place: &RoutingContext<'_>, head: &mut Head, candidates: &mut Vec<Candidate>) {
        if self.routes.share_bundles() {
            return self.bundle(place, head, candidates);
        }
        let hops = u32::from(head.hops);
        let port = self.port(place.router, head.source, head.destination, hops);
        candidates.push(Candidate { port, vcs: place.vcs, priority: 0 });
    }

    fn fixed(&self, router: u32, destination: u32) -> Option<u32> {
        // Any source will do where the source makes no difference.
        let depends = self.routes.depend_on_source() || self.routes.share_bundles();
        (!depends).then(|| self.port(router, 0, destination, 0))
    }

    fn depends_on(&self) -> DependsOn {
        let by_pair = self.routes.share_bundles() && self.routes.depend_on_source();
        if by_pair { DependsOn::Pair } else { DependsOn::Destination }
    }
}
