//! Dedicated links between all nodes: the ideal that a mesh is compared with.

use std::collections::VecDeque;

use super::counts::Counts;
use super::fabric::Fabric;
use super::flows::Flows;
use super::message::{Arrival, Cast, Flow, FlowId, Message, Responses};
use super::settings::Settings;
use crate::FlitError;

/// A fully connected fabric: every packet arrives a cycle after it was sent (its last flit, one per
/// cycle), at all of its destinations. Responses are not combined.
pub struct FullyConnected {
    nodes: u32,
    now: u64,
    /// Whether a NIC takes one packet per cycle; otherwise all that arrive.
    narrow: bool,
    settings: Settings,
    flows: Flows,
    /// Packets that arrive at each node, by cycle, first come first served.
    arriving: Vec<VecDeque<(u64, Arrival)>>,
    in_flight: u64,
    counts: Counts,
}

impl FullyConnected {
    /// For the nodes and classes of a mesh; `narrow` lets a NIC take one packet per cycle only.
    ///
    /// # Errors
    /// When the settings are invalid.
    pub fn new(settings: &Settings, narrow: bool) -> Result<FullyConnected, FlitError> {
        if settings.bypass_turns || settings.collective_turns {
            let what = if settings.bypass_turns { "bypass_turns" } else { "collective_turns" };
            let problem = format!(
                "a fully connected network has no paths that turn; expected `{what} = false`, or the \
                 design of a mesh"
            );
            return Err(FlitError::Clash { what, problem });
        }
        settings.check()?;
        let nodes = settings.nodes();
        Ok(FullyConnected {
            nodes,
            now: 0,
            narrow,
            settings: settings.clone(),
            flows: Flows::new(nodes),
            arriving: vec![VecDeque::new(); nodes as usize],
            in_flight: 0,
            counts: Counts::default(),
        })
    }

    fn put(&mut self, node: u32, message: &Message, created: u64, tag: u64, at: u64) {
        let responses = match message.cast {
            Cast::Response(flow, value) => Some(Responses { flow, count: 1, value, last: false }),
            _ => None,
        };
        let Message { source, class, .. } = *message;
        let arrival = Arrival { arrived: at, node, source, created, class, tag, responses };
        let queue = &mut self.arriving[node as usize];
        let place = queue.partition_point(|&(other, _)| other <= at);
        queue.insert(place, (at, arrival));
        self.in_flight += 1;
        self.counts.ejected += u64::from(message.flits);
    }
}

impl Fabric for FullyConnected {
    fn now(&self) -> u64 {
        self.now
    }

    fn nodes(&self) -> u32 {
        self.nodes
    }

    fn open(&mut self, flow: Flow) -> Result<FlowId, FlitError> {
        self.flows.open(flow, self.settings.classes.len())
    }

    fn release(&mut self, flow: FlowId) {
        self.flows.release(flow);
    }

    fn send(&mut self, message: Message) -> Result<(), FlitError> {
        self.flows.check(&message, &self.settings)?;
        let at = self.now + u64::from(message.flits);
        self.counts.injected += u64::from(message.flits);
        match &message.cast {
            &Cast::One(node) => self.put(node, &message, message.created, message.tag, at),
            Cast::Many(members) => {
                for node in members.iter() {
                    self.put(node, &message, message.created, message.tag, at);
                }
            }
            &Cast::Response(flow, _) => {
                let flow = self.flows.get(flow);
                let (node, created, tag) = (flow.destination, flow.created, flow.tag);
                self.put(node, &message, created, tag, at);
            }
        }
        Ok(())
    }

    fn step(&mut self, arrivals: &mut Vec<Arrival>) {
        for queue in &mut self.arriving {
            while queue.front().is_some_and(|&(at, _)| at <= self.now) {
                let (_, mut arrival) = queue.pop_front().expect("there is one in front");
                arrival.arrived = self.now;
                if let Some(responses) = &mut arrival.responses {
                    responses.last = self.flows.arrived(responses.flow, responses.count);
                }
                arrivals.push(arrival);
                self.in_flight -= 1;
                if self.narrow {
                    break;
                }
            }
        }
        self.now += 1;
        self.counts.cycles += 1;
    }

    fn is_empty(&self) -> bool {
        self.in_flight == 0
    }

    fn skip_to(&mut self, cycle: u64) {
        self.counts.cycles += cycle - self.now;
        self.now = cycle;
    }

    fn counts(&self) -> &Counts {
        &self.counts
    }

    fn stalled_since(&self) -> Option<u64> {
        None
    }
}
