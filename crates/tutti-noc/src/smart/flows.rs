//! The reductions in flight, and the validity of packets.

use super::message::{Cast, Flow, FlowId, Message, NodeSet};
use super::settings::Settings;
use crate::FlitError;

/// Flows by id; an id is reused once its flow is over.
#[derive(Clone, Debug)]
pub(super) struct Flows {
    nodes: u32,
    open: Vec<Option<Open>>,
    free: Vec<u32>,
}

#[derive(Clone, Debug)]
struct Open {
    flow: Flow,
    /// Responses that have not arrived.
    missing: u32,
    /// Members that have not responded.
    silent: NodeSet,
}

impl Flows {
    pub(super) fn new(nodes: u32) -> Flows {
        Flows { nodes, open: Vec::new(), free: Vec::new() }
    }

    /// Opens a flow.
    pub(super) fn open(&mut self, flow: Flow, classes: usize) -> Result<FlowId, FlitError> {
        self.members("a reduction", flow.destination, &flow.members)?;
        class_is(flow.class, classes)?;
        let missing = flow.members.len();
        let silent = flow.members.clone();
        let id = self.free.pop().unwrap_or_else(|| {
            self.open.push(None);
            u32::try_from(self.open.len() - 1).expect("fewer flows than 2^32")
        });
        self.open[id as usize] = Some(Open { flow, missing, silent });
        Ok(FlowId(id))
    }

    /// The open flow with an id.
    pub(super) fn get(&self, id: FlowId) -> &Flow {
        &self.open[id.0 as usize].as_ref().expect("a flow that is not over").flow
    }

    /// Counts arrived responses; returns whether they were the last. A flow that is held keeps its
    /// id until it is released.
    pub(super) fn arrived(&mut self, id: FlowId, count: u32) -> bool {
        let open = self.open[id.0 as usize].as_mut().expect("a flow that is not over");
        open.missing = open.missing.checked_sub(count).expect("no more responses than members");
        let over = open.missing == 0;
        if over && !open.flow.held {
            self.close(id);
        }
        over
    }

    /// Releases a held flow; returns whether it is over.
    pub(super) fn release(&mut self, id: FlowId) -> bool {
        let open = self.open[id.0 as usize].as_mut().expect("a flow that is held");
        open.flow.held = false;
        let over = open.missing == 0;
        if over {
            self.close(id);
        }
        over
    }

    /// Responses that were sent and have not arrived, of some of the flows.
    #[cfg(debug_assertions)]
    pub(super) fn in_flight(&self, counts: impl Fn(FlowId) -> bool) -> u64 {
        let flows = (0..).zip(&self.open).filter(|&(id, _)| counts(FlowId(id)));
        let sent = flows.flat_map(|(_, open)| open).map(|open| open.missing - open.silent.len());
        sent.map(u64::from).sum()
    }

    fn close(&mut self, id: FlowId) {
        self.open[id.0 as usize] = None;
        self.free.push(id.0);
    }

    /// Checks a packet before it is sent; records a response.
    pub(super) fn check(
        &mut self,
        message: &Message,
        settings: &Settings,
    ) -> Result<(), FlitError> {
        self.node("a packet", message.source)?;
        class_is(message.class, settings.classes.len())?;
        let class = &settings.classes[usize::from(message.class)];
        let bad = |problem: String| Err(FlitError::BadPacket { class: message.class, problem });
        if message.flits == 0 || message.flits > class.depth {
            let (flits, depth) = (message.flits, class.depth);
            return bad(format!("{flits} flits; expected 1 to {depth}, which a VC of it holds"));
        }
        if message.flits > 1 && !matches!(message.cast, Cast::One(_)) {
            let flits = message.flits;
            return bad(format!("a multicast or response of {flits} flits; expected one"));
        }
        match &message.cast {
            &Cast::One(node) => self.node("a packet", node),
            Cast::Many(_) if !class.multicasts => bad("it takes no multicasts".to_owned()),
            Cast::Many(members) => self.members("a multicast", message.source, members),
            &Cast::Response(id, _) => {
                let open = self.open.get_mut(id.0 as usize).and_then(Option::as_mut);
                let Some(open) = open else {
                    return bad(format!("reduction {} does not exist", id.0));
                };
                if open.flow.class != message.class {
                    let class = open.flow.class;
                    return bad(format!("a response of a reduction of class {class}"));
                }
                if !open.silent.remove(message.source) {
                    let node = message.source;
                    return bad(format!(
                        "node {node} has responded, or is not a member of the reduction"
                    ));
                }
                Ok(())
            }
        }
    }

    fn members(&self, what: &'static str, node: u32, members: &NodeSet) -> Result<(), FlitError> {
        self.node(what, node)?;
        if members.last().is_some_and(|last| last >= self.nodes) {
            members.iter().try_for_each(|member| self.node(what, member))?;
        }
        if members.is_empty() || members.contains(node) {
            return Err(FlitError::NoMembers { what, node });
        }
        Ok(())
    }

    fn node(&self, what: &'static str, node: u32) -> Result<(), FlitError> {
        if node < self.nodes {
            return Ok(());
        }
        Err(FlitError::NoSuchNode { what, node, nodes: self.nodes })
    }
}

fn class_is(class: u8, classes: usize) -> Result<(), FlitError> {
    if usize::from(class) < classes {
        return Ok(());
    }
    let problem = format!("there are {classes} classes, 0 to {}", classes - 1);
    Err(FlitError::BadPacket { class, problem })
}
