//! Flows whose packets carry their route: a list of output ports, set at the source.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Candidate, DependsOn, Draw, Routing, RoutingContext, draw};
use crate::packet::Head;
use crate::settings::VcRange;
use crate::{End, FlitError, Wiring};

/// Packets of a pair of nodes, and the output port of each router on their route.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Flow {
    /// The node that sends them.
    pub source: u32,
    /// The node they go to.
    pub destination: u32,
    /// From the source's router on; the last leads to the node.
    pub ports: Vec<u32>,
}

/// Each packet takes the route of its flow; of several flows of a pair one is drawn for each
/// packet. Packets of other pairs use another routing.
#[derive(Clone, Debug)]
pub struct SourceRouted {
    nodes: u32,
    flows: BTreeMap<(u32, u32), Vec<Vec<u32>>>,
    others: Option<Arc<dyn Routing>>,
}

impl SourceRouted {
    /// Flows of a wiring; `others` for pairs that have none.
    ///
    /// # Errors
    /// When a flow has a port that is not there, passes a router twice or does not end at its node,
    /// or a pair has neither a flow nor another routing.
    pub fn new(
        wiring: &Wiring,
        flows: impl IntoIterator<Item = Flow>,
        others: Option<Arc<dyn Routing>>,
    ) -> Result<SourceRouted, FlitError> {
        let nodes = wiring.nodes();
        let mut made = SourceRouted { nodes, flows: BTreeMap::new(), others };
        for Flow { source, destination, ports } in flows {
            check(wiring, source, destination, &ports).map_err(|problem| FlitError::Flow {
                from: source,
                to: destination,
                problem,
            })?;
            made.flows.entry((source, destination)).or_default().push(ports);
        }
        match made.missing() {
            Some((from, to)) if made.others.is_none() => {
                let problem =
                    "it is missing, and so is another routing; expected a flow of every pair, \
                               or `*=ROUTING` for the other pairs"
                        .to_owned();
                Err(FlitError::Flow { from, to, problem })
            }
            _ => Ok(made),
        }
    }

    /// A pair without a flow.
    fn missing(&self) -> Option<(u32, u32)> {
        let pairs = (0..self.nodes).flat_map(|from| (0..self.nodes).map(move |to| (from, to)));
        pairs.into_iter().find(|pair| !self.flows.contains_key(pair))
    }

    fn flows_of(&self, head: &Head) -> Option<&[Vec<u32>]> {
        self.flows.get(&(head.source, head.destination)).map(Vec::as_slice)
    }
}

/// What is wrong with a flow.
fn check(wiring: &Wiring, source: u32, destination: u32, ports: &[u32]) -> Result<(), String> {
    let nodes = wiring.nodes();
    if let Some(node) = [source, destination].into_iter().find(|&node| node >= nodes) {
        return Err(format!("node {node} does not exist; expected at most {}", nodes - 1));
    }
    let End::Router { router: mut at, .. } = wiring.channels()[wiring.injects(source) as usize].to
    else {
        return Err("its source injects into no router".to_owned());
    };
    let mut passed = vec![at];
    for (place, &port) in ports.iter().enumerate() {
        let outputs = wiring.outputs(at);
        let Some(&channel) = outputs.get(port as usize) else {
            let last = outputs.len().saturating_sub(1);
            return Err(format!("router {at} has no output port {port}; expected at most {last}"));
        };
        match wiring.channels()[channel as usize].to {
            End::Router { router, .. } if passed.contains(&router) => {
                return Err(format!("it comes to router {router} twice; expected no loop"));
            }
            End::Router { router, .. } => at = router,
            End::Node(node) if node != destination => {
                return Err(format!("port {port} of router {at} leads to node {node}"));
            }
            End::Node(_) if place + 1 < ports.len() => {
                return Err(format!("ports follow {port}, which leads to its node"));
            }
            End::Node(_) => return Ok(()),
        }
        passed.push(at);
    }
    Err(format!("it ends at router {at}; expected a port that leads to its node"))
}

impl Routing for SourceRouted {
    fn name(&self) -> &'static str {
        "source_routed"
    }

    fn injects(&self, head: &Head, vcs: VcRange) -> VcRange {
        match (&self.others, self.flows_of(head)) {
            (Some(others), None) => others.injects(head, vcs),
            _ => vcs,
        }
    }

    fn route(&self, place: &RoutingContext<'_>, head: &mut Head, candidates: &mut Vec<Candidate>) {
        let Some(flows) = self.flows_of(head) else {
            if let Some(others) = &self.others {
                others.route(place, head, candidates);
            }
            return;
        };
        if place.injected {
            let drawn = draw(place, head, Draw::Flow, flows.len() as u64);
            head.intermediate = u32::try_from(drawn).unwrap_or(0);
        }
        let port = flows[head.intermediate as usize][usize::from(head.hops)];
        candidates.push(Candidate { port, vcs: place.vcs, priority: 0 });
    }

    fn depends_on(&self) -> DependsOn {
        DependsOn::Pair
    }

    fn least_vcs(&self) -> u32 {
        self.others.as_ref().map_or(1, |others| others.least_vcs())
    }
}
