//! Meshes with several hops per cycle: their designs, both engines of each, and what is sent over
//! them.
#![allow(dead_code, unreachable_pub, reason = "each test uses a part of it")]

use std::collections::BTreeMap;

use tutti_noc::smart::{
    Arrival, Cast, Class, Combine, Counts, Fabric, FanIn, FanOut, Flow, FlowId, Mesh, Message,
    NodeSet, Priority, Settings, Tree, oracle,
};

/// Both engines of a mesh, and what they are called.
pub fn engines(settings: &Settings) -> Vec<(&'static str, Box<dyn Fabric>)> {
    vec![
        ("obvious", Box::new(oracle::Mesh::new(settings).unwrap())),
        ("fast", Box::new(Mesh::new(settings).unwrap())),
    ]
}

/// A mesh of one-cycle routers that fork and merge.
pub fn collective(columns: u32, rows: u32) -> Settings {
    Settings {
        fan_out: FanOut::Greedy(Tree::Shared),
        fan_in: FanIn::Greedy,
        reducer: true,
        ..Settings::new(columns, rows)
    }
}

/// A mesh of eight hops per cycle without collectives.
pub fn smart(columns: u32, rows: u32) -> Settings {
    Settings { hops_per_cycle: 8, ..Settings::new(columns, rows) }
}

/// Greedy multicasts along a tree.
pub fn greedy(tree: Tree) -> Settings {
    Settings { fan_out: FanOut::Greedy(tree), ..smart(8, 8) }
}

/// Multicasts in slots.
pub fn slotted(interval: u32) -> Settings {
    Settings { fan_out: FanOut::Complete { interval }, ..smart(8, 8) }
}

/// Responses that are combined.
pub fn combining(fan_in: FanIn, priority: Priority) -> Settings {
    Settings { fan_in, priority, reducer: true, ..smart(8, 8) }
}

/// Classes that carry multicasts, of as many VCs each.
pub fn classes(vcs: &[u32], depth: u32) -> Vec<Class> {
    vcs.iter().map(|&vcs| Class { vcs, depth, multicasts: true }).collect()
}

/// What is done in a cycle.
#[derive(Clone, Debug)]
pub enum Operation {
    Unicast {
        from: u32,
        to: u32,
        class: u8,
        flits: u32,
    },
    Multicast {
        from: u32,
        to: NodeSet,
        class: u8,
    },
    /// A reduction; each member responds so many cycles after it starts.
    Reduce {
        to: u32,
        members: Vec<(u32, u64)>,
        class: u8,
        combine: Combine,
        /// Cycles after its last response has arrived until it is released.
        held: Option<u64>,
    },
}

/// One flit to one node.
pub fn unicast(from: u32, to: u32) -> Operation {
    Operation::Unicast { from, to, class: 0, flits: 1 }
}

/// To all the others.
pub fn broadcast(nodes: u32, from: u32) -> Operation {
    Operation::Multicast { from, to: NodeSet::all_but(nodes, from), class: 0 }
}

/// From all the others, which respond at once.
pub fn reduction(nodes: u32, to: u32) -> Operation {
    let members = NodeSet::all_but(nodes, to).iter().map(|node| (node, 0)).collect();
    Operation::Reduce { to, members, class: 0, combine: Combine::Sum, held: None }
}

/// What came of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    pub arrivals: Vec<Arrival>,
    pub counts: Counts,
    /// Whether it got stuck, or was not over at the limit.
    pub unfinished: bool,
    /// The cycle in which it ended.
    pub end: u64,
}

impl Outcome {
    /// Latencies by node of the packets with a tag.
    pub fn latencies(&self, tag: u64) -> BTreeMap<u32, u64> {
        let its = self.arrivals.iter().filter(|arrival| arrival.tag == tag);
        its.map(|arrival| (arrival.node, arrival.arrived - arrival.created)).collect()
    }

    /// The latency of the last of them.
    pub fn last(&self, tag: u64) -> u64 {
        *self.latencies(tag).values().max().expect("something has arrived")
    }
}

enum Due {
    Operation(u64, Operation),
    Response(FlowId, u32, u8),
    Release(FlowId),
}

/// Does what is to be done in each cycle, tagged by its place in the list, until all is over or
/// `limit`.
pub fn run(fabric: &mut dyn Fabric, operations: &[(u64, Operation)], limit: u64) -> Outcome {
    let mut due: BTreeMap<u64, Vec<Due>> = BTreeMap::new();
    for (tag, (cycle, operation)) in (0..).zip(operations) {
        due.entry(*cycle).or_default().push(Due::Operation(tag, operation.clone()));
    }
    let mut held: BTreeMap<FlowId, u64> = BTreeMap::new();
    let mut arrivals = Vec::new();
    while !(due.is_empty() && fabric.is_empty())
        && fabric.now() < limit
        && fabric.stalled_since().is_none()
    {
        let now = fabric.now();
        for one in due.remove(&now).unwrap_or_default() {
            match one {
                Due::Operation(tag, operation) => {
                    begin(fabric, tag, operation, &mut due, &mut held)
                }
                Due::Response(flow, from, class) => response(fabric, flow, from, class),
                Due::Release(flow) => fabric.release(flow),
            }
        }
        let before = arrivals.len();
        fabric.step(&mut arrivals);
        for responses in arrivals[before..].iter().filter_map(|arrival| arrival.responses) {
            if let Some(delay) = held.get(&responses.flow).copied().filter(|_| responses.last) {
                held.remove(&responses.flow);
                due.entry(now + 1 + delay).or_default().push(Due::Release(responses.flow));
            }
        }
    }
    let unfinished = !(due.is_empty() && fabric.is_empty());
    Outcome { arrivals, counts: *fabric.counts(), unfinished, end: fabric.now() }
}

fn begin(
    fabric: &mut dyn Fabric,
    tag: u64,
    operation: Operation,
    due: &mut BTreeMap<u64, Vec<Due>>,
    held_flows: &mut BTreeMap<FlowId, u64>,
) {
    let created = fabric.now();
    let mut send = |source, cast, class, flits| {
        fabric.send(Message { created, source, cast, class, flits, tag }).unwrap();
    };
    match operation {
        Operation::Unicast { from, to, class, flits } => send(from, Cast::One(to), class, flits),
        Operation::Multicast { from, to, class } => send(from, Cast::Many(to), class, 1),
        Operation::Reduce { to, members, class, combine, held } => {
            let all = members.iter().map(|&(node, _)| node).collect();
            let flow = Flow {
                created,
                destination: to,
                members: all,
                class,
                combine,
                held: held.is_some(),
                tag,
            };
            let flow = fabric.open(flow).unwrap();
            if let Some(delay) = held {
                held_flows.insert(flow, delay);
            }
            for (node, delay) in members {
                if delay == 0 {
                    response(fabric, flow, node, class);
                } else {
                    due.entry(created + delay).or_default().push(Due::Response(flow, node, class));
                }
            }
        }
    }
}

/// A value that identifies the sender of a response.
pub fn value_of(node: u32) -> u64 {
    1 << (node % 64)
}

fn response(fabric: &mut dyn Fabric, flow: FlowId, source: u32, class: u8) {
    let cast = Cast::Response(flow, value_of(source));
    let created = fabric.now();
    fabric.send(Message { created, source, cast, class, flits: 1, tag: 0 }).unwrap();
}

/// What both engines make of it.
pub fn both(settings: &Settings, operations: &[(u64, Operation)], look: impl Fn(&Outcome)) {
    for (engine, mut fabric) in engines(settings) {
        let outcome = run(&mut *fabric, operations, 10_000);
        assert!(!outcome.unfinished, "{engine}");
        look(&outcome);
    }
}

/// The latency of what was sent to one node.
pub fn took(outcome: &Outcome, tag: u64) -> u64 {
    outcome.last(tag)
}
