//! Channel loads: the flits per cycle that a routing sends over each channel under traffic patterns.
//!
//! The channel that is loaded most bounds the throughput of a topology under a routing and a pattern,
//! whatever the routers do (Dally and Towles, "Principles and Practices of Interconnection
//! Networks", 2004, section 3.3.1). Routes are followed in an empty network, and every random choice
//! of a routing counts with its probability, so that the loads of oblivious routings are exact.

use std::collections::BTreeMap;

use crate::packet::Head;
use crate::routing::{Candidate, Chance, Choices, DependsOn, Routing, RoutingContext};
use crate::traffic::{Pattern, Shares};
use crate::{End, Settings, Wiring};

/// The limit on routing calls.
const MOST_CALLS: u64 = 1 << 23;

/// The flits per cycle over each channel, by number. `None` where packets have too many routes to
/// follow them all.
#[must_use]
pub fn channel_loads(
    wiring: &Wiring,
    settings: &Settings,
    routing: &dyn Routing,
    flows: &[Flow<'_>],
) -> Option<Vec<f64>> {
    let pairs = u64::from(wiring.nodes()) * u64::from(wiring.routers());
    if pairs > MOST_CALLS * 4 {
        return None;
    }
    let loads = vec![0.0; wiring.channels().len()];
    let mut followed = Followed { wiring, settings, routing, loads, calls: 0 };
    for (class, flow) in flows.iter().enumerate() {
        let shares = flow.pattern.shares();
        let class = u8::try_from(class).unwrap_or(u8::MAX);
        for destination in 0..wiring.nodes() {
            let sources = followed.inject(&shares, destination, flow);
            if followed.is_fixed(destination) {
                followed.along_tree(destination, &sources);
            } else {
                followed.by_hops(destination, class, &sources)?;
            }
        }
    }
    Some(followed.loads)
}

/// The packets of a class.
#[derive(Clone, Copy, Debug)]
pub struct Flow<'a> {
    /// Their destinations; for replies, the destinations of the requests.
    pub pattern: &'a Pattern,
    /// Flits per node that requests and cycle.
    pub rate: f64,
    /// Whether they travel from the destinations back to the sources.
    pub is_reply: bool,
}

struct Followed<'a> {
    wiring: &'a Wiring,
    settings: &'a Settings,
    routing: &'a dyn Routing,
    loads: Vec<f64>,
    calls: u64,
}

/// The place and state of packets: the channel behind them, the first VC of it that they may have,
/// the phase of their route, and their intermediate node and source where routes depend on these.
type State = (u32, u32, u8, u32, u32);

impl Followed<'_> {
    /// The flits per cycle of each source for a destination, which its injection channel carries.
    fn inject(
        &mut self,
        shares: &Shares<'_>,
        destination: u32,
        flow: &Flow<'_>,
    ) -> Vec<(u32, f64)> {
        let share = |source| match flow.is_reply {
            false => (source, flow.rate * shares.of(source, destination)),
            true => (source, flow.rate * shares.of(destination, source)),
        };
        let sends = |&(_, flits): &(u32, f64)| flits > 0.0;
        let sources: Vec<_> = (0..self.wiring.nodes()).map(share).filter(sends).collect();
        for &(source, flits) in &sources {
            self.loads[self.wiring.injects(source) as usize] += flits;
        }
        sources
    }

    fn is_fixed(&self, destination: u32) -> bool {
        self.routing.fixed(self.wiring.home(destination).0, destination).is_some()
    }

    /// Packets whose output port depends on router and destination alone, so that their routes form
    /// a tree: flits are summed from its leaves on.
    fn along_tree(&mut self, destination: u32, sources: &[(u32, f64)]) {
        let routers = self.wiring.routers() as usize;
        let next: Vec<Option<u32>> = (0..self.wiring.routers())
            .map(|router| {
                let port = self.routing.fixed(router, destination)? as usize;
                self.wiring.outputs(router).get(port).copied()
            })
            .collect();
        let (mut flits, mut waits_for) = (vec![0.0; routers], vec![0_u32; routers]);
        for &(source, more) in sources {
            if let Some(router) = self.router_behind(self.wiring.injects(source)) {
                flits[router as usize] += more;
            }
        }
        let behind = |channel: &Option<u32>| self.router_behind((*channel)?);
        for router in next.iter().filter_map(behind) {
            waits_for[router as usize] += 1;
        }
        let mut ready: Vec<usize> = (0..routers).filter(|&router| waits_for[router] == 0).collect();
        while let Some(router) = ready.pop() {
            let Some(channel) = next[router] else { continue };
            self.loads[channel as usize] += flits[router];
            if let Some(after) = self.router_behind(channel) {
                let after = after as usize;
                flits[after] += flits[router];
                waits_for[after] -= 1;
                ready.extend((waits_for[after] == 0).then_some(after));
            }
        }
    }

    fn router_behind(&self, channel: u32) -> Option<u32> {
        match self.wiring.channels()[channel as usize].to {
            End::Router { router, .. } => Some(router),
            End::Node(_) => None,
        }
    }

    /// All other packets, hop by hop; those in the same state are followed together.
    fn by_hops(&mut self, destination: u32, class: u8, sources: &[(u32, f64)]) -> Option<()> {
        let mut here: BTreeMap<State, (Head, f64)> = BTreeMap::new();
        for &(source, flits) in sources {
            let intermediate = destination;
            let (serial, hops, phase) = (0, 0, 0);
            let head = Head { serial, source, destination, intermediate, hops, class, phase };
            let vcs = self.routing.injects(&head, self.settings.classes[usize::from(class)]);
            let state = self.state(self.wiring.injects(source), vcs.first, &head);
            here.entry(state).or_insert((head, 0.0)).1 += flits;
        }
        while !here.is_empty() {
            let mut there = BTreeMap::new();
            for ((channel, vc, ..), (head, flits)) in here {
                self.step(channel, vc, head, flits, &mut there)?;
            }
            here = there;
        }
        Some(())
    }

    fn state(&self, channel: u32, vc: u32, head: &Head) -> State {
        let (intermediate, source) = match self.routing.depends_on() {
            DependsOn::Destination => (0, 0),
            DependsOn::Via { .. } => (head.intermediate, 0),
            DependsOn::Pair => (head.intermediate, head.source),
        };
        (channel, vc, head.phase, intermediate, source)
    }

    /// The next hop of packets, by all random choices.
    fn step(
        &mut self,
        channel: u32,
        vc: u32,
        head: Head,
        flits: f64,
        there: &mut BTreeMap<State, (Head, f64)>,
    ) -> Option<()> {
        let behind = self.wiring.channels()[channel as usize];
        let End::Router { router, port: input } = behind.to else { return Some(()) };
        let mut choices = Choices::default();
        let mut candidates: Vec<Candidate> = Vec::new();
        loop {
            self.calls += 1;
            if self.calls > MOST_CALLS {
                return None;
            }
            let mut next = head;
            let place = RoutingContext {
                router,
                input,
                vc,
                injected: matches!(behind.from, End::Node(_)),
                vcs: self.settings.classes[usize::from(head.class)],
                chance: Chance::Chosen(&choices),
                used: &|_| 0,
            };
            candidates.clear();
            self.routing.route(&place, &mut next, &mut candidates);
            next.hops += 1;
            self.take(&candidates, router, next, flits * choices.probability(), there);
            if !choices.advance() {
                return Some(());
            }
        }
    }

    /// Packets are divided equally among the ports of the candidates that are tried first.
    fn take(
        &mut self,
        candidates: &[Candidate],
        router: u32,
        head: Head,
        flits: f64,
        there: &mut BTreeMap<State, (Head, f64)>,
    ) {
        let Some(first) = candidates.iter().map(|one| one.priority).max() else { return };
        let mut ports: Vec<&Candidate> =
            candidates.iter().filter(|one| one.priority == first).collect();
        ports.sort_unstable_by_key(|one| one.port);
        ports.dedup_by_key(|one| one.port);
        #[expect(clippy::cast_precision_loss, reason = "a router has few ports")]
        let each = flits / ports.len() as f64;
        for candidate in ports {
            let channel = self.wiring.outputs(router)[candidate.port as usize];
            self.loads[channel as usize] += each;
            if self.router_behind(channel).is_some() {
                let state = self.state(channel, candidate.vcs.first, &head);
                there.entry(state).or_insert((head, 0.0)).1 += each;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{ChannelParameters, routing};
    use tutti_topology::LinkParameters;
    use tutti_units::{Bytes, Time, TimePerByte};

    /// The largest load of a link between routers, at a flit per node and cycle.
    fn largest(topology: &str, routing: &str, pattern: &str) -> f64 {
        let cycle = Time::from_ps(1000);
        let link = LinkParameters::new(TimePerByte::new(1000, 16).unwrap(), cycle);
        let topology = tutti_topology::build(topology, &[link, link]).unwrap();
        let port =
            ChannelParameters { latency: 1, credit_latency: 1, flit_time: cycle, length: None };
        let wiring = Arc::new(Wiring::of(Arc::new(topology), cycle, Bytes(16), port).unwrap());
        let pattern = Pattern::parse(pattern, wiring.nodes(), Some(&[8, 8])).unwrap();
        let routing = routing::parse(routing, &wiring).unwrap();
        let settings = Settings::new(8, 8);
        let flow = Flow { pattern: &pattern, rate: 1.0, is_reply: false };
        let loads = channel_loads(&wiring, &settings, &*routing, &[flow]).unwrap();
        let links = wiring.channels().iter().zip(loads).filter(|(channel, _)| {
            matches!((channel.from, channel.to), (End::Router { .. }, End::Router { .. }))
        });
        links.map(|(_, load)| load).fold(0.0, f64::max)
    }

    #[test]
    fn channel_loads_are_those_of_closed_forms() {
        // A mesh of k x k under uniform traffic: k / 4; a torus: k / 8, where half of the packets
        // over k / 2 hops go in either direction (Dally and Towles 2004, tables 3.1 and 8.1).
        for (topology, routing, pattern, expected) in [
            ("mesh:8x8", "dimension_order", "uniform", 2.0),
            ("mesh:8x8", "dimension_order", "transpose", 7.0),
            ("mesh:8x8", "dimension_order", "bit_complement", 4.0),
            ("mesh:8x8", "o1_turn", "transpose", 3.5),
            ("mesh:8x8", "o1_turn", "uniform", 2.0),
            ("mesh:8x8", "valiant", "transpose", 4.0),
            ("torus:8x8", "dimension_order", "uniform", 1.0),
            ("torus:8x8", "dimension_order", "tornado", 3.0),
            ("torus:8x8", "valiant", "tornado", 2.0),
        ] {
            let found = largest(topology, routing, pattern);
            assert!((found - expected).abs() < 1e-9, "{topology} {routing} {pattern}: {found}");
        }
    }
}
