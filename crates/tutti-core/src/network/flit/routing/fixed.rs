//! Along routes of the graph.

use std::fmt;
use std::sync::Arc;

use super::{Place, Routing, Way};
use crate::ids::{LinkId, RankId};
use crate::network::flit::packet::Head;
use crate::network::flit::{FlitError, Wiring};
use crate::topology::Routes;

/// A way for every pair of nodes: those of a static routing of the graph, a table or paths.
pub struct Fixed {
    routes: Arc<Routes>,
    wiring: Arc<Wiring>,
}

impl Fixed {
    /// Along routes of the graph that the wiring was made of.
    ///
    /// # Errors
    /// When the wiring was made of no graph, or another one.
    pub fn new(routes: Arc<Routes>, wiring: Arc<Wiring>) -> Result<Fixed, FlitError> {
        if wiring.topology().is_none_or(|made_of| **made_of != **routes.topology()) {
            return Err(FlitError::RoutingDoesNotFit {
                routing: format!("{routes:?}"),
                needs: "a network made of its own graph",
                network: "this one".to_owned(),
            });
        }
        Ok(Fixed { routes, wiring })
    }

    fn port(&self, router: u32, source: u32, destination: u32, hops: u32) -> u32 {
        let (home, ejects) = self.wiring.home(destination);
        if home == router {
            return ejects;
        }
        let Some(at) = self.wiring.vertex(router) else { return ejects };
        let from = RankId(source);
        // A node without a router of its own has crossed a link to be here.
        let crossed = hops + u32::from(self.wiring.is_leaf(source));
        let link: LinkId = self.routes.next_link(from, RankId(destination), at, crossed as usize);
        self.wiring.port_of(link).unwrap_or(ejects)
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

    fn route(&self, place: &Place<'_>, head: &mut Head, ways: &mut Vec<Way>) {
        let hops = u32::from(head.hops);
        let port = self.port(place.router, head.source, head.destination, hops);
        ways.push(Way { port, vcs: place.vcs, priority: 0 });
    }

    fn fixed(&self, router: u32, destination: u32) -> Option<u32> {
        // Any source will do where the source makes no difference.
        (!self.routes.tell_sources_apart()).then(|| self.port(router, 0, destination, 0))
    }
}
