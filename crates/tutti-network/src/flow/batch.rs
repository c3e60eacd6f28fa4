//! Batches: messages of equal size that start together.
//!
//! Collectives send the same pattern of messages again and again. While no other flow uses the links of a
//! regular pattern, all its messages have one rate and end together, so the batch is a single flow. When
//! another flow joins one of its links, the batch becomes the flows that it stands for, in the state that they
//! would have. Times, rates and link utilisation are those of separate messages, bit by bit.

use std::collections::BTreeMap;

use super::ALL;
use super::network::{FlowNetwork, approximate};
use super::resource::rate_of;
use super::route::Crossing;
use crate::Ticket;
use tutti_units::ids::RankId;
use tutti_units::{Bytes, Time, TimePerByte};

/// No batch.
pub(super) const NONE: u32 = u32::MAX;

/// Messages that are sent together: their pairs, and the resources that they use.
pub(super) struct Pattern {
    pairs: Vec<(RankId, RankId)>,
    /// The route of the first message; all are alike.
    route: Vec<Crossing>,
    /// Resources, and how many messages use each.
    pub(super) uses: Vec<(u32, u32)>,
    rate_alone: f64,
    /// The rate of each message if no other flow uses the resources.
    rate: f64,
}

/// A batch that has not ended.
#[derive(Default)]
pub(super) struct Batch {
    pattern: u32,
    /// By message.
    tickets: Vec<Ticket>,
}

/// The patterns and the batches of a run.
#[derive(Default)]
pub(super) struct Batches {
    patterns: Vec<Pattern>,
    all: Vec<Batch>,
    unused: Vec<u32>,
    /// Messages that have ended and are not reported, last first.
    pub(super) ended: Vec<Ticket>,
}

impl FlowNetwork<'_> {
    /// Adds a pattern, if it is regular: the links of all messages are alike, and each message shares a link
    /// that limits it, or none shares any.
    pub(super) fn add_pattern(&mut self, pairs: &[(RankId, RankId)]) -> Option<u32> {
        let mut routes = Vec::with_capacity(pairs.len());
        let mut counts: BTreeMap<u32, u32> = BTreeMap::new();
        for &(source, destination) in pairs {
            let mut route = self.route_of(source, destination);
            route.retain(|one| self.resources.per_byte(one.link) != TimePerByte::ZERO);
            if source == destination || route.is_empty() {
                return None;
            }
            for &Crossing { link, share } in &route {
                if share != ALL {
                    return None;
                }
                *counts.entry(link).or_default() += 1;
            }
            routes.push(route);
        }
        let (rate_alone, rate) = self.regular_rate(&routes, &counts)?;
        let route = routes.into_iter().next()?;
        let pattern = Pattern {
            pairs: pairs.to_vec(),
            route,
            uses: counts.into_iter().collect(),
            rate_alone,
            rate,
        };
        self.batches.patterns.push(pattern);
        u32::try_from(self.batches.patterns.len() - 1).ok()
    }

    /// The links and ports of a message.
    fn route_of(&mut self, source: RankId, destination: RankId) -> Vec<Crossing> {
        let mut route = Vec::new();
        self.recent.route(&self.routing, source, destination, &mut route);
        route.extend(self.resources.ports(&[source], &[destination]));
        route
    }

    /// The rate of messages without other flows, and in their pattern; `None` if they differ.
    fn regular_rate(
        &self,
        routes: &[Vec<Crossing>],
        counts: &BTreeMap<u32, u32>,
    ) -> Option<(f64, f64)> {
        let rates = |route: &[Crossing]| {
            let mut all: Vec<_> =
                route.iter().map(|one| self.resources.per_byte(one.link)).collect();
            all.sort_unstable();
            all
        };
        let first = rates(routes.first()?);
        if routes.iter().any(|route| rates(route) != first) {
            return None;
        }
        let alone = first.iter().map(|&per_byte| rate_of(per_byte)).fold(f64::INFINITY, f64::min);
        let level = |link: u32| match counts[&link] {
            1 => f64::INFINITY,
            count => rate_of(self.resources.per_byte(link)) / f64::from(count),
        };
        let lowest = counts.keys().map(|&link| level(link)).fold(f64::INFINITY, f64::min);
        if lowest == f64::INFINITY {
            return Some((alone, alone));
        }
        let is_limited = |route: &Vec<Crossing>| {
            route.iter().any(|one| level(one.link).total_cmp(&lowest).is_eq())
        };
        (lowest < alone && routes.iter().all(is_limited)).then_some((alone, lowest))
    }

    /// Sends a message of `bytes` to each pair of a pattern at `start`; false if bytes take no time or not all
    /// are charged.
    pub(super) fn post_batch(
        &mut self,
        pattern: u32,
        tickets: impl Iterator<Item = Ticket>,
        bytes: Bytes,
        start: Time,
    ) -> bool {
        let known = &self.batches.patterns[pattern as usize];
        let alone = self.alone(&known.route, bytes);
        let is_limited = self.sender_rate(bytes) < known.rate_alone;
        if alone == Time::ZERO || self.charged(bytes) != bytes || is_limited {
            return false;
        }
        let (source, rate_alone, rate) = (known.pairs[0].0, known.rate_alone, known.rate);
        let batch = self.batches.unused.pop().unwrap_or_else(|| {
            self.batches.all.push(Batch::default());
            u32::try_from(self.batches.all.len() - 1).expect("fewer than 2^32 batches")
        });
        let kept = &mut self.batches.all[batch as usize];
        kept.pattern = pattern;
        kept.tickets.clear();
        kept.tickets.extend(tickets);
        let id = self.post(Ticket(NONE), (source, source), bytes, start);
        let flow = &mut self.flows[id];
        (flow.batch, flow.is_silent) = (batch, true);
        (flow.alone, flow.rate_alone, flow.rate) = (alone, rate_alone, rate);
        flow.left = approximate(bytes);
        self.begin(id, start);
        true
    }

    /// Starts a batch: as a single flow if no other flow uses its resources.
    pub(super) fn start_batch(&mut self, id: u32) {
        let now = self.events.now();
        let batch = self.flows[id].batch;
        let pattern = &self.batches.patterns[self.batches.all[batch as usize].pattern as usize];
        if !self.resources.claim(&pattern.uses, id, now) {
            for id in self.messages(id) {
                self.start(id);
            }
            return;
        }
        let flow = &mut self.flows[id];
        (flow.start, flow.since, flow.serial) = (now, now, self.serial + 1);
        self.serial += pattern.pairs.len() as u64;
        self.ends.set(id, flow.exact_end(), flow.serial);
    }

    /// Divides a batch that is a single flow into its messages.
    pub(super) fn expand(&mut self, id: u32) {
        let flow = self.flows[id];
        let pattern = self.batches.all[flow.batch as usize].pattern;
        self.resources.release(&self.batches.patterns[pattern as usize].uses);
        for (serial, id) in (flow.serial..).zip(self.messages(id)) {
            let (source, destination) = (self.flows[id].source, self.flows[id].destination);
            let route = self.route_of(source, destination);
            let bytes = (flow.bytes, flow.bytes);
            let shares = self.resources.join(id, &route, true, bytes, flow.start);
            self.resources.set_alone(id, flow.rate_alone, shares);
            let one = &mut self.flows[id];
            (one.start, one.since, one.serial) = (flow.start, flow.start, serial);
            (one.alone, one.left) = (flow.alone, flow.left);
            (one.rate_alone, one.rate) = (flow.rate_alone, flow.rate);
            self.ends.set(id, one.exact_end(), serial);
        }
    }

    /// Replaces a batch by its messages; the first of them has the number of the batch.
    fn messages(&mut self, id: u32) -> Vec<u32> {
        let batch = self.flows[id].batch;
        let Batch { pattern, tickets } = std::mem::take(&mut self.batches.all[batch as usize]);
        self.batches.unused.push(batch);
        let (bytes, start) = (self.flows[id].bytes, self.flows[id].start);
        let mut all = Vec::with_capacity(tickets.len());
        for (index, ticket) in tickets.into_iter().enumerate() {
            let pair = self.batches.patterns[pattern as usize].pairs[index];
            let id = if index == 0 { id } else { self.post(ticket, pair, bytes, start) };
            let flow = &mut self.flows[id];
            (flow.ticket, flow.source, flow.destination) = (ticket, pair.0, pair.1);
            (flow.batch, flow.is_silent, flow.rate) = (NONE, true, 0.0);
            all.push(id);
        }
        all
    }

    /// The transmission of a batch that is a single flow has ended.
    pub(super) fn end_batch(&mut self, id: u32) {
        let flow = self.flows.remove(id);
        let Batches { patterns, all, unused, ended } = &mut self.batches;
        let Batch { pattern, tickets } = &mut all[flow.batch as usize];
        ended.extend(tickets.drain(..).rev());
        unused.push(flow.batch);
        self.resources.transmitted(
            &patterns[*pattern as usize].uses,
            flow.bytes,
            self.events.now(),
        );
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::flow::{FlowLevel, FlowRouting};
    use crate::packet::{Ends, LinkUse};
    use crate::{Carried, Progress, Stepped};
    use proptest::prelude::*;
    use tutti_topology::{LinkParameters, Routes, build};

    /// A gap in time, a pattern or a pair, and bytes.
    type Action = (u64, u32, u64);

    /// The ring of 4 ranks of a group in one direction or in both, neighbours in pairs, or one message.
    fn pairs(which: u32) -> Vec<(RankId, RankId)> {
        let (first, kind) = (which % 4 * 4, which / 4 % 4);
        let at = |rank: u32| RankId(first + rank % 4);
        let forward = (0..4).map(|rank| (at(rank), at(rank + 1)));
        let backward = (0..4).map(|rank| (at(rank), at(rank + 3)));
        match kind {
            0 => forward.chain(backward).collect(),
            1 => forward.collect(),
            2 => (0..4).map(|rank| (at(rank), at(rank ^ 1))).collect(),
            _ => vec![(RankId(which / 16 % 16), RankId((which / 16 + 1 + which % 15) % 16))],
        }
    }

    type Left = Vec<(Ticket, Time)>;

    /// When each message has left; as batches, as far as patterns are regular, or as separate messages.
    fn run(routes: &Routes, actions: &[Action], batched: bool) -> (Left, Vec<LinkUse>, usize) {
        let level = FlowLevel::default();
        let mut network = FlowNetwork::new(FlowRouting::Routed(routes), level, Ends::FREE);
        let (mut left, mut now, mut tickets, mut batches) = (Vec::new(), Time::ZERO, 0, 0);
        for &(gap, which, bytes) in actions {
            now += Time::from_ps(gap);
            drain(&mut network, now, &mut left);
            let pairs = pairs(which);
            let numbers = tickets..tickets + u32::try_from(pairs.len()).unwrap();
            tickets = numbers.end;
            let pattern = if batched { network.pattern(&pairs) } else { None };
            let mut each = numbers.clone().map(Ticket);
            if pattern.is_some_and(|one| network.send_batch(one, &mut each, Bytes(bytes), now)) {
                batches += 1;
                continue;
            }
            for ((source, destination), ticket) in pairs.into_iter().zip(numbers) {
                let message = Carried { source, destination, bytes: Bytes(bytes), arrival: now };
                network.send(Ticket(ticket), message);
            }
        }
        drain(&mut network, Time::MAX, &mut left);
        (left, network.used_links(), batches)
    }

    fn drain(network: &mut FlowNetwork<'_>, until: Time, left: &mut Left) {
        while let Some(progress) = network.progress(until) {
            if let Progress::Left(ticket, time) = progress {
                left.push((ticket, time));
            }
        }
    }

    fn routes(notation: &str) -> Routes {
        let link = LinkParameters::new(TimePerByte::new(7, 1).unwrap(), Time::from_ps(10));
        Routes::shortest_path(Arc::new(build(notation, &[link]).unwrap()))
    }

    #[test]
    fn a_ring_is_a_batch() {
        let both = [(0, 0, 1000)];
        let (left, _, batches) = run(&routes("switch:16"), &both, true);
        assert_eq!(batches, 1);
        // Each port carries two messages.
        assert_eq!(left, (0..8).map(|at| (Ticket(at), Time::from_ps(14_000))).collect::<Vec<_>>());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]

        /// Order, times and link utilisation are those of separate messages.
        #[test]
        fn batches_are_separate_messages(
            actions in prop::collection::vec((0_u64..4000, 0_u32..256, 1_u64..900), 1..40),
            which in 0_usize..2,
        ) {
            let routes = routes(["switch:16", "fat_tree:m=4x4,w=1x2,p=1x1"][which]);
            let (left, links, batches) = run(&routes, &actions, true);
            let rings = actions.iter().filter(|&&(_, which, _)| which / 4 % 4 == 0).count();
            prop_assert!(batches >= rings);
            prop_assert_eq!((left, links, 0), run(&routes, &actions, false));
        }
    }
}
