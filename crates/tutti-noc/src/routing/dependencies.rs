//! Whether a routing can deadlock: the VC dependency graph.
//!
//! A VC of a channel depends on another if a packet that has the one may request the other. A
//! routing is deadlock-free if the graph has no cycle (Dally and Seitz 1987). Where packets have
//! several candidates, only the candidates of the lowest priority, the escape, must be acyclic: a
//! packet that waits can always take it (Duato 1993). A VC of the escape then also depends on the
//! escape VCs that its packet requests after other channels.
//!
//! Every random choice is enumerated, and credits are found in use or not at every port that a
//! routing compares. Packets with identical routes are followed once: a routing marks them by its
//! [`DependsOn`].

use super::dependency_graph::{DependencyGraph, VcSet, Visited};
use super::{Candidate, Chance, Choices, DependsOn, Routing, RoutingContext};
use crate::packet::Head;
use crate::{End, Settings, Wiring};

/// A VC of a channel.
pub type ChannelVc = (u32, u32);

/// The limit on routing calls of a check.
const MOST_CALLS: u64 = 1 << 26;

/// Credits in use at a congested port, in units that no threshold or number of hops outweighs.
const MANY: u32 = 1 << 20;

/// VCs that form a cyclic dependency, each on the next and the last on the first; empty without
/// one. `None` where packets have too many routes to follow them all.
#[must_use]
pub fn find_cycle(
    wiring: &Wiring,
    settings: &Settings,
    routing: &dyn Routing,
) -> Option<Vec<ChannelVc>> {
    Some(explored(wiring, settings, routing)?.find_cycle(settings.vcs))
}

/// Each VC of a channel and one that it depends on, in order. `None` where packets have too many
/// routes to follow them all.
#[must_use]
pub fn pairs(
    wiring: &Wiring,
    settings: &Settings,
    routing: &dyn Routing,
) -> Option<Vec<(ChannelVc, ChannelVc)>> {
    Some(explored(wiring, settings, routing)?.pairs())
}

fn explored(
    wiring: &Wiring,
    settings: &Settings,
    routing: &dyn Routing,
) -> Option<DependencyGraph> {
    // Packets for every node pass every router: no count is needed.
    if u64::from(wiring.nodes()) * u64::from(wiring.routers()) > MOST_CALLS {
        return None;
    }
    let mut explorer = Explorer {
        wiring,
        settings,
        routing,
        depends_on: routing.depends_on(),
        starts: starts(wiring),
        graph: DependencyGraph::new(wiring.channels().len()),
        seen: Visited::default(),
        visits: Vec::new(),
        choices: Choices::default(),
        calls: 0,
    };
    for class in 0..settings.classes.len() {
        // Settings of more classes are rejected.
        let class = u8::try_from(class).unwrap_or(u8::MAX);
        match explorer.depends_on {
            DependsOn::Destination => explorer.by_destination(class)?,
            DependsOn::Pair => explorer.by_pair(class)?,
            DependsOn::Via { second } => explorer.via(class, second)?,
        }
    }
    Some(explorer.graph)
}

struct Explorer<'a> {
    wiring: &'a Wiring,
    settings: &'a Settings,
    routing: &'a dyn Routing,
    depends_on: DependsOn,
    /// A node at each router that nodes inject into: packets of its other nodes take the same
    /// routes.
    starts: Vec<u32>,
    graph: DependencyGraph,
    /// Visited states of packets of this destination, or pair.
    seen: Visited,
    visits: Vec<Visit>,
    choices: Choices,
    calls: u64,
}

/// A packet that has a VC of a channel: one of the equivalent VCs of a candidate.
#[derive(Clone, Copy)]
struct Visit {
    vc_set: VcSet,
    head: Head,
    /// The last spot of the escape that it has.
    held: Option<VcSet>,
}

impl Explorer<'_> {
    /// Packets of all sources for a destination take the same routes.
    fn by_destination(&mut self, class: u8) -> Option<()> {
        for destination in 0..self.wiring.nodes() {
            self.seen.clear();
            for start in 0..self.starts.len() {
                self.begin(head(self.starts[start], destination, class));
            }
            while let Some(visit) = self.visits.pop() {
                self.visit(visit, true)?;
            }
        }
        Some(())
    }

    /// Packets of each pair by themselves.
    fn by_pair(&mut self, class: u8) -> Option<()> {
        for source in 0..self.wiring.nodes() {
            for destination in 0..self.wiring.nodes() {
                self.seen.clear();
                self.begin(head(source, destination, class));
                while let Some(visit) = self.visits.pop() {
                    self.visit(visit, true)?;
                }
            }
        }
        Some(())
    }

    /// First the paths to each intermediate node, whatever the destination, then the paths from
    /// there.
    fn via(&mut self, class: u8, second: u8) -> Option<()> {
        let mut turns: Vec<Visit> = Vec::new();
        let mut turned = Visited::default();
        for node in 0..self.wiring.nodes() {
            self.seen.clear();
            for start in 0..self.starts.len() {
                self.begin(head(self.starts[start], node, class));
            }
            while let Some(visit) = self.visits.pop() {
                let is_over = self.visit(visit, false)? & second != 0;
                let note = (visit.head.phase, 0, None);
                let turns_here = is_over && visit.head.phase & second == 0;
                if turns_here && turned.is_new(visit.vc_set, note) {
                    turns.push(visit);
                }
            }
        }
        for destination in 0..self.wiring.nodes() {
            self.seen.clear();
            for &turn in &turns {
                self.visits.push(Visit { head: Head { destination, ..turn.head }, ..turn });
            }
            while let Some(visit) = self.visits.pop() {
                self.visit(visit, false)?;
            }
        }
        Some(())
    }

    /// A packet is injected.
    fn begin(&mut self, head: Head) {
        let vcs = self.settings.classes[usize::from(head.class)];
        let vcs = self.routing.injects(&head, vcs);
        let vc_set = self.graph.vc_set(self.wiring.injects(head.source), vcs);
        self.visits.push(Visit { vc_set, head, held: None });
    }

    /// The next hops of a packet for all random choices and credits, and its phases after them, as
    /// bits. `injected` where the routing sees that a packet comes from its node.
    fn visit(&mut self, visit: Visit, injected: bool) -> Option<u8> {
        let (channel, vcs) = self.graph.of(visit.vc_set);
        let channel = self.wiring.channels()[channel as usize];
        let End::Router { router, port: input } = channel.to else { return Some(0) };
        let injected = injected && matches!(channel.from, End::Node(_));
        let (mut candidates, mut phases) = (Vec::new(), 0);
        loop {
            self.calls += 1;
            if self.calls > MOST_CALLS {
                return None;
            }
            let mut head = visit.head;
            let choices = std::mem::take(&mut self.choices);
            let place = RoutingContext {
                router,
                input,
                vc: vcs.first,
                injected,
                vcs: self.settings.classes[usize::from(head.class)],
                chance: Chance::Chosen(&choices),
                used: &|_| if choices.next(2) == 0 { 0 } else { MANY },
            };
            candidates.clear();
            self.routing.route(&place, &mut head, &mut candidates);
            head.hops += 1;
            phases |= head.phase;
            self.choices = choices;
            self.take(&candidates, router, Visit { head, ..visit });
            if !self.choices.advance() {
                return Some(phases);
            }
        }
    }

    /// A packet requests the VCs of each candidate, and then holds one of them.
    fn take(&mut self, candidates: &[Candidate], router: u32, visit: Visit) {
        let lowest = candidates.iter().map(|candidate| candidate.priority).min();
        for candidate in candidates {
            let channel = self.wiring.outputs(router)[candidate.port as usize];
            let vc_set = self.graph.vc_set(channel, candidate.vcs);
            let escape = Some(candidate.priority) == lowest;
            if let (true, Some(held)) = (escape, visit.held) {
                self.graph.depends(held, vc_set);
            }
            let held = if escape { Some(vc_set) } else { visit.held };
            let Head { phase, intermediate, .. } = visit.head;
            let note = if self.depends_on == DependsOn::Pair { intermediate } else { 0 };
            let is_end = matches!(self.wiring.channels()[channel as usize].to, End::Node(_));
            if !is_end && self.seen.is_new(vc_set, (phase, note, held)) {
                self.visits.push(Visit { vc_set, head: visit.head, held });
            }
        }
    }
}

fn starts(wiring: &Wiring) -> Vec<u32> {
    let mut known = vec![false; wiring.routers() as usize];
    let is_first = |&node: &u32| match wiring.channels()[wiring.injects(node) as usize].to {
        End::Router { router, .. } => !std::mem::replace(&mut known[router as usize], true),
        End::Node(_) => false,
    };
    (0..wiring.nodes()).filter(is_first).collect()
}

fn head(source: u32, destination: u32, class: u8) -> Head {
    Head { serial: 0, source, destination, intermediate: destination, hops: 0, class, phase: 0 }
}
