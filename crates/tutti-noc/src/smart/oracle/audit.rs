//! Invariants of every cycle.

use std::collections::{BTreeMap, BTreeSet};

use super::Mesh;
use super::grid::Port;
use super::parts::{Cargo, Flit};
use super::paths::Reached;
use crate::smart::fabric::Fabric;
use crate::smart::message::{FlowId, NodeSet};

/// The observations that the invariants need.
#[derive(Default, Debug)]
pub(super) struct Audit {
    /// The flit that crosses a router from an input in a cycle.
    inputs: BTreeMap<(u64, u32, Port), (u64, u32)>,
    /// The outputs, and so the links, that are crossed in a cycle.
    outputs: BTreeSet<(u64, u32, Port)>,
    /// By packet, the nodes that a multicast has not reached.
    waiting: BTreeMap<u64, NodeSet>,
    flows: BTreeMap<FlowId, Watched>,
}

/// A flow.
#[derive(Debug)]
struct Watched {
    members: u32,
    /// Responses that were sent, and responses that arrived.
    sent: u32,
    arrived: u32,
    /// Links that its responses have crossed, and the links of its tree if routers have tables.
    links: u32,
    expected: Option<u32>,
}

impl Audit {
    /// A flit crosses the switch of a router from an input.
    pub(super) fn passes(&mut self, at: u64, router: u32, input: Port, flit: &Flit) {
        let flit = (flit.packet, flit.index);
        let before = self.inputs.insert((at, router, input), flit);
        assert!(
            before.is_none_or(|before| before == flit),
            "two flits cross from {input:?} of router {router} in cycle {at}"
        );
    }

    /// A flit crosses an output of a router.
    pub(super) fn crosses(&mut self, at: u64, router: u32, output: Port) {
        assert!(
            self.outputs.insert((at, router, output)),
            "two flits cross to {output:?} of router {router} in cycle {at}"
        );
    }

    /// A multicast is sent.
    pub(super) fn multicast(&mut self, packet: u64, members: &NodeSet) {
        self.waiting.insert(packet, members.clone());
    }

    /// A flit is ejected to a NIC.
    pub(super) fn ejects(&mut self, node: u32, flit: &Flit) {
        if let Cargo::Multicast { .. } = flit.cargo {
            let waiting = self.waiting.get_mut(&flit.packet).expect("it was sent");
            assert!(waiting.remove(node), "a multicast comes to node {node} twice, or in error");
            if waiting.is_empty() {
                self.waiting.remove(&flit.packet);
            }
        } else if let Cargo::Unicast { to } | Cargo::Response { to, .. } = flit.cargo {
            assert_eq!(to, node, "a packet comes to its destination");
        }
    }

    /// A flow starts.
    pub(super) fn flow(&mut self, flow: FlowId, members: u32, expected: Option<u32>) {
        let watched = Watched { members, sent: 0, arrived: 0, links: 0, expected };
        self.flows.insert(flow, watched);
    }

    /// A response is sent.
    pub(super) fn respond(&mut self, flow: FlowId) {
        self.flows.get_mut(&flow).expect("it is open").sent += 1;
    }

    /// Responses arrive.
    pub(super) fn arrive(&mut self, flow: FlowId, count: u32) {
        self.flows.get_mut(&flow).expect("it is open").arrived += count;
    }

    /// The last response of a flow has arrived.
    pub(super) fn over(&mut self, flow: FlowId) {
        let watched = self.flows.remove(&flow).expect("it is open");
        assert_eq!(watched.arrived, watched.members, "all responses of a flow arrive, each once");
        if let Some(expected) = watched.expected {
            assert_eq!(watched.links, expected, "responses cross each link of their tree once");
        }
    }
}

impl Mesh {
    /// A flit starts on a path that it requested.
    pub(super) fn audit_departure(
        &mut self,
        at: u64,
        router: u32,
        input: Port,
        output: Port,
        route: &[Reached],
        flit: &Flit,
    ) {
        let reach = self.settings.hops_per_cycle;
        let far = |reached: &Reached| self.grid.hops(router, reached.router) <= reach;
        assert!(route.iter().all(far), "a flit makes more than {reach} hops in a cycle");
        let mut steps = vec![(router, input, output)];
        for reached in route {
            steps.extend(reached.on.iter().map(|&on| (reached.router, reached.input, on)));
        }
        for (router, input, output) in steps {
            assert!(
                !self.keeps_input(router, input, at) && !self.keeps_output(router, output, at),
                "a flit off the preset paths crosses router {router} in a reserved cycle"
            );
            self.audit.passes(at, router, input, flit);
            self.audit.crosses(at, router, output);
        }
        if let Cargo::Response { flow, .. } = flit.cargo {
            let links = u32::try_from(route.len()).expect("lines are short");
            self.audit.flows.get_mut(&flow).expect("it is open").links += links;
        }
    }

    /// A flit is ejected to a NIC.
    pub(super) fn audit_ejection(&mut self, at: u64, router: u32, input: Port, flit: &Flit) {
        assert!(!self.blocks_ejection(at), "NICs take nothing in slots");
        self.audit.passes(at, router, input, flit);
        self.audit.crosses(at, router, Port::Local);
    }

    /// Checks the state at the end of a cycle.
    pub(super) fn check(&mut self) {
        let now = self.now;
        self.audit.inputs.retain(|&(at, _, _), _| at > now);
        self.audit.outputs.retain(|&(at, _, _)| at > now);
        if self.is_empty() {
            assert!(self.audit.waiting.is_empty(), "every multicast comes to all of its members");
            for flow in self.audit.flows.values() {
                assert!(flow.sent < flow.members, "responses of a flow were lost: {flow:?}");
            }
        }
    }
}
