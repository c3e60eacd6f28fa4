//! NICs: messages become flits, which are injected.

use std::collections::{BTreeSet, VecDeque};

use super::Mesh;
use super::grid::Port;
use super::parts::{Cargo, Flit, Rule};
use crate::smart::message::{Cast, Message};

/// A network interface.
#[derive(Clone, Debug)]
pub(super) struct Nic {
    /// By class.
    queues: Vec<VecDeque<Flit>>,
    /// The class that is inspected first.
    turn: usize,
}

impl Nic {
    pub(super) fn new(classes: usize) -> Nic {
        Nic { queues: vec![VecDeque::new(); classes], turn: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queues.iter().all(VecDeque::is_empty)
    }
}

impl Mesh {
    /// Appends a message to its NIC's queue.
    pub(super) fn queue(&mut self, message: &Message) {
        let Message { mut created, mut tag, source, class, .. } = *message;
        let cargo = match &message.cast {
            &Cast::One(to) => Cargo::Unicast { to },
            Cast::Many(members) => Cargo::Multicast { members: members.clone() },
            &Cast::Response(flow, value) => {
                let rule = self.rule(flow);
                self.audit.respond(flow);
                let flow_of = self.flows.get(flow);
                (created, tag) = (flow_of.created, flow_of.tag);
                Cargo::Response { flow, to: flow_of.destination, count: 1, value, rule }
            }
        };
        let packet = self.serial;
        self.serial += 1;
        if let Cargo::Multicast { members } = &cargo {
            self.audit.multicast(packet, members);
        }
        let (stage, mask, arrived) = (0, BTreeSet::new(), 0);
        for index in 0..message.flits {
            let tail = index + 1 == message.flits;
            let cargo = cargo.clone();
            let mask = mask.clone();
            let flit = Flit {
                packet,
                index,
                tail,
                source,
                class,
                created,
                tag,
                cargo,
                stage,
                mask,
                arrived,
            };
            self.nics[source as usize].queues[usize::from(class)].push_back(flit);
        }
    }

    /// Each NIC injects a flit.
    pub(super) fn inject(&mut self) {
        for node in 0..self.grid.nodes() {
            let nic = &self.nics[node as usize];
            let classes = nic.queues.len();
            let mut order = (0..classes).map(|step| (nic.turn + step) % classes);
            let Some(class) = order.find(|&class| self.can_inject(node, class)) else { continue };
            let nic = &mut self.nics[node as usize];
            let flit = nic.queues[class].pop_front().expect("it was seen to be there");
            nic.turn = (class + 1) % classes;
            self.counts.injected += 1;
            if !self.needs_no_vc(node, &flit) {
                let pool = self.pool(flit.class, flit.stage);
                let now = self.now;
                self.input_mut(node, Port::Local).claim(pool, flit.packet, now);
            }
            self.come(node, Port::Local, true, &[], flit);
        }
    }

    /// Whether a response will be dropped or merged on injection.
    fn needs_no_vc(&self, node: u32, flit: &Flit) -> bool {
        match (flit.combines(Rule::Merge), flit.combines(Rule::Table)) {
            (Some(flow), _) => !self.buffered(node, flow).is_empty(),
            (_, Some(flow)) => self.directions(flow, node) > 1,
            _ => false,
        }
    }

    fn can_inject(&self, node: u32, class: usize) -> bool {
        let front = self.nics[node as usize].queues[class].front();
        front.is_some_and(|flit| {
            self.needs_no_vc(node, flit)
                || self.input(node, Port::Local).takes(
                    self.pool(flit.class, flit.stage),
                    flit.packet,
                    self.now,
                )
        })
    }
}
