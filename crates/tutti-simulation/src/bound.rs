//! The lower bound of a case.

use tutti_analysis::bound::{Bound, Exchange, Folding, GraphBound, Query, bound, in_network};

use crate::{Case, Payload};

impl Case {
    /// The lower bound of the collective on this platform, for any schedule. A single phase of a
    /// collective has none, so that all parts are zero; its graph need not connect all ranks.
    #[must_use]
    pub fn bound(&self) -> Bound {
        if self.schedule.is_part() {
            return Bound::NONE;
        }
        let shape = self.schedule.shape();
        let (collective, ranks) = (shape.collective, shape.ranks);
        let Payload { size, element } = self.payload;
        let exchange = Exchange::of(&self.layout());
        let query = Query { collective, ranks, size, element, exchange };
        let (model, contention) = (self.platform.model(), self.platform.contention());
        let graph = GraphBound { ports: contention.ports(model), ..self.graph_bound() };
        let bound = if contention.is_in_network() {
            in_network(&query, model, graph)
        } else {
            bound(&query, model, self.folding(), graph)
        };
        bound.after(self.platform.costs().launch)
    }

    /// The contribution of the topology, without ports.
    fn graph_bound(&self) -> GraphBound {
        let Some(routing) = self.platform.routing() else { return GraphBound::NONE };
        let (shape, contention) = (self.schedule.shape(), self.platform.contention());
        let topology = routing.topology();
        // Without contention, the links' rates are not a bound.
        let is_shared = contention.is_some();
        let in_network = contention.in_network_on(topology);
        let graph = routing.bound(shape.collective, shape.ranks, is_shared, in_network);
        graph.with_blocks(topology, &self.layout(), is_shared)
    }

    /// The reduction cost on the fastest rank.
    fn folding(&self) -> Folding {
        if self.conditions.speeds.iter().any(|&speed| speed > 1.0) {
            return Folding::FREE;
        }
        let costs = self.platform.costs();
        Folding { gamma: costs.gamma, overhead: costs.reduce_overhead }
    }
}
