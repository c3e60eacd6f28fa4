//! Messages of schedules over a fabric whose routers may fork and combine.
//!
//! Rank i is node i. A message is cut into packets of flits that carry so many bytes each. With
//! multicasts in routers, a message to several ranks is a multicast for each of its flits. With
//! combining in routers, a combine is a reduction for each of its flits. Every member responds with
//! its part, routers add responses that meet, and the destination's NIC adds the rest and its part
//! as flits arrive. Adding takes no extra time: the adder is in the path, which limits hops per
//! cycle ([`REDUCER_HOPS`](super::REDUCER_HOPS)), or at the port of a NIC, which takes a flit per
//! cycle.
//!
//! **A NIC** has the messages of a step take turns, a packet at a time, before those of the next
//! step, and hands a packet to the fabric when the previous one is injected. The first packet is
//! injected from the first full cycle in which its first byte leaves according to the endpoint
//! model; a message that arrives in a cycle can trigger another from the next cycle on. A message
//! arrives with its last part, never before the endpoint model allows; a multicast arrives at each
//! receiver separately, a combine with its last response.
//!
//! **Reductions in flight** are at most as many as table entries ([`Settings::art_entries`]): a NIC
//! skips further reductions until one is over. (How it knows is not modelled.) It starts none of a
//! later step before those of an earlier one, so ranks that execute combines in the same order
//! never wait for each other's entries. If nothing else can move, one more is started without an
//! entry; its responses are then unicasts, if routers have tables.

mod jobs;
mod stepped;

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::AtomicBool;

use super::{
    Arrival, Cast, Combine, Counts, Fabric, FanIn, FanOut, Flow, Message, NodeSet, Settings,
};
use crate::FlitError;
use crate::endpoints::Endpoints;
use jobs::{Job, Kind, Reduction, Under};
use tutti_network::packet::Ends;
use tutti_network::{Carried, Carrier, Combined, Deadlock, Ticket};
use tutti_units::ids::RankId;
use tutti_units::{Bytes, Time};

/// How messages are cut for a fabric, and how long its cycles are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cutting {
    /// A cycle.
    pub cycle: Time,
    /// What a flit carries of a message.
    pub payload: Bytes,
    /// The most flits of a packet to one rank; all others have one.
    pub packet: u32,
    /// The message class of all packets.
    pub class: u8,
}

impl Cutting {
    /// Rejects parameters that do not fit a fabric.
    ///
    /// # Errors
    /// When cycles take no time, flits carry no payload, packets do not fit into the class, the
    /// class takes no multicasts although routers fork, or routers combine without a reducer.
    pub fn check(&self, settings: &Settings) -> Result<(), FlitError> {
        settings.check()?;
        let refuse = |what, value, expected: &str| {
            Err(FlitError::OutOfRange { what, value, expected: expected.to_owned() })
        };
        if self.cycle == Time::ZERO {
            return refuse("cycle", 0, "more than no time");
        }
        if self.payload == Bytes(0) {
            return refuse("flit", 0, "at least 1 B");
        }
        let Some(class) = settings.classes.get(usize::from(self.class)) else {
            return refuse("class", u64::from(self.class), "a class of the mesh");
        };
        if self.packet == 0 || self.packet > class.depth {
            let expected = format!("1 to {}, which a VC holds", class.depth);
            return refuse("flits of a packet", u64::from(self.packet), &expected);
        }
        let clash =
            |what, problem: &str| Err(FlitError::Clash { what, problem: problem.to_owned() });
        if settings.fan_out != FanOut::Unicasts && !class.multicasts {
            return clash("class", "it takes no multicasts, and schedules have some");
        }
        if settings.fan_in != FanIn::Unicasts && !settings.reducer {
            let problem =
                "routers that combine payloads of schedules need one; expected `reducer = true`";
            return clash("reducer", problem);
        }
        Ok(())
    }
}

/// Carries messages over a fabric.
pub struct FabricCarrier<'a> {
    fabric: Box<dyn Fabric>,
    settings: Settings,
    cutting: Cutting,
    endpoints: Endpoints<'a>,
    /// Per node and step, the messages to inject, the next first.
    nics: Vec<VecDeque<VecDeque<Job>>>,
    jobs: usize,
    /// Messages that have not arrived, by number, which is the tag of their packets.
    under: BTreeMap<u64, Under>,
    next: u64,
    reductions: Vec<Reduction>,
    /// Reductions of a flit that have started and are not over.
    active: u32,
    /// Reductions that were started although tables had no free entry.
    beyond: u64,
    arrivals: Vec<Arrival>,
    deadlock: Option<Deadlock>,
}

impl<'a> FabricCarrier<'a> {
    /// An empty fabric of these settings.
    ///
    /// # Errors
    /// When the settings are invalid, or messages cannot be cut for them.
    pub fn new(
        fabric: Box<dyn Fabric>,
        settings: &Settings,
        cutting: Cutting,
        ends: Ends,
    ) -> Result<FabricCarrier<'a>, FlitError> {
        cutting.check(settings)?;
        let nodes = fabric.nodes() as usize;
        Ok(FabricCarrier {
            fabric,
            settings: settings.clone(),
            cutting,
            endpoints: Endpoints::new(cutting.cycle, cutting.payload, ends, nodes),
            nics: vec![VecDeque::new(); nodes],
            jobs: 0,
            under: BTreeMap::new(),
            next: 0,
            reductions: Vec::new(),
            active: 0,
            beyond: 0,
            arrivals: Vec::new(),
            deadlock: None,
        })
    }

    /// Stops early when `stop` is set: then no further message arrives.
    #[must_use]
    pub fn until(mut self, stop: &'a AtomicBool) -> FabricCarrier<'a> {
        self.endpoints.stop = Some(stop);
        self
    }

    /// The event counters of the fabric.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        self.fabric.counts()
    }

    /// Reductions that were started although tables had no free entry.
    #[must_use]
    pub fn beyond(&self) -> u64 {
        self.beyond
    }

    /// Appends a message to the queue of its NIC.
    fn put(&mut self, message: &Carried, kind: Kind, number: u64) {
        let Carried { source, bytes, .. } = *message;
        let head = self.endpoints.departure(message);
        let start = self.endpoints.cycle_of(head).max(self.fabric.now());
        let of = self.endpoints.flits(bytes);
        let job = Job { number, kind, bytes, head, start, cut: 0, of };
        let nic = &mut self.nics[source.index()];
        if nic.is_empty() {
            nic.push_back(VecDeque::new());
        }
        nic.back_mut().expect("there is a step").push_back(job);
        self.jobs += 1;
    }

    fn number(&mut self, under: Under) -> u64 {
        let number = self.next;
        self.next += 1;
        self.under.insert(number, under);
        number
    }

    /// Lets every idle NIC hand over a packet; returns whether any did. `beyond` lets one reduction
    /// start without a table entry.
    fn hand_over(&mut self, mut beyond: bool) -> bool {
        let mut any = false;
        for node in 0..self.fabric.nodes() {
            if self.nics[node as usize].is_empty() || self.fabric.queued(node) > 0 {
                continue;
            }
            for step in 0..self.nics[node as usize].len() {
                if self.hand_over_of(node, step, &mut beyond) {
                    any = true;
                    break;
                }
            }
            while self.nics[node as usize].front().is_some_and(VecDeque::is_empty) {
                self.nics[node as usize].pop_front();
            }
        }
        any
    }

    /// Lets a NIC hand over a packet of the first ready message of a step.
    fn hand_over_of(&mut self, node: u32, step: usize, beyond: &mut bool) -> bool {
        let (now, nic) = (self.fabric.now(), node as usize);
        for _ in 0..self.nics[nic][step].len() {
            let Some(mut job) = self.nics[nic][step].pop_front() else { break };
            let sent = job.start <= now && self.send(node, &mut job, beyond);
            if job.cut < job.of {
                self.nics[nic][step].push_back(job);
            } else {
                self.jobs -= 1;
            }
            if sent {
                return true;
            }
        }
        false
    }

    /// Hands over the next packet of a message, if possible.
    fn send(&mut self, node: u32, job: &mut Job, beyond: &mut bool) -> bool {
        let (cast, flits) = match &job.kind {
            Kind::One(receiver) => {
                let flits = (job.of - job.cut).min(u64::from(self.cutting.packet));
                (Cast::One(*receiver), flits)
            }
            Kind::Many(receivers) => (Cast::Many(receivers.clone()), 1),
            &Kind::Part(reduction) => {
                let before = self.beyond;
                let Some(flow) = self.flow(reduction, job, *beyond) else { return false };
                *beyond &= self.beyond == before;
                (Cast::Response(flow, 1), 1)
            }
        };
        let message = Message {
            created: self.fabric.now(),
            source: node,
            cast,
            class: self.cutting.class,
            flits: u32::try_from(flits).unwrap_or(u32::MAX),
            tag: job.number,
        };
        self.fabric.send(message).expect("receivers and lengths were checked");
        job.cut += flits;
        let sent = self.endpoints.carried(job.bytes, job.cut);
        let next = job.head + self.endpoints.handed_over(sent, job.bytes);
        job.start = job.start.max(self.endpoints.cycle_of(next));
        true
    }

    /// The reduction of the next flit of a contribution: a started one, or a new one if allowed.
    fn flow(&mut self, reduction: usize, job: &Job, beyond: bool) -> Option<super::FlowId> {
        if let Some(flow) = self.reductions[reduction].started(job.cut) {
            return Some(flow);
        }
        let full = self.active >= self.settings.art_entries;
        if full && !beyond {
            return None;
        }
        self.beyond += u64::from(full);
        let Reduction { destination, members, .. } = &self.reductions[reduction];
        let flow = Flow {
            created: self.fabric.now(),
            destination: *destination,
            members: members.clone(),
            class: self.cutting.class,
            combine: Combine::Sum,
            held: false,
            tag: job.number,
        };
        let flow = self.fabric.open(flow).expect("members were checked");
        self.active += 1;
        self.reductions[reduction].begin(job.cut, flow);
        Some(flow)
    }

    /// Runs a cycle, and skips the following cycles without events.
    fn step(&mut self) {
        let mut arrivals = std::mem::take(&mut self.arrivals);
        self.fabric.step(&mut arrivals);
        for arrival in arrivals.drain(..) {
            self.arrived(&arrival);
        }
        self.arrivals = arrivals;
    }

    fn arrived(&mut self, arrival: &Arrival) {
        let &Arrival { arrived, node, tag, responses, .. } = arrival;
        let at = self.endpoints.time_of(arrived);
        let Some(mut under) = self.under.remove(&tag) else { return };
        let bytes = self.endpoints.carried(under.bytes, u64::from(under.packet));
        let there = self.endpoints.take(node, at, at, bytes);
        if let Some(responses) = responses {
            debug_assert_eq!(
                responses.value,
                u64::from(responses.count),
                "every response is worth one"
            );
            self.active -= u32::from(responses.last);
        }
        let last = responses.is_none_or(|responses| responses.last);
        let (over, mut done) = under.takes(node, there, last);
        if !over {
            self.under.insert(tag, under);
        }
        done.drain(..).for_each(|(ticket, time)| self.endpoints.arrive(ticket, time));
    }

    /// Continues while the fabric is empty: skips to the next cycle in which a packet or an arrival
    /// can be handed over. Returns whether there is one.
    fn skip(&mut self) -> bool {
        let now = self.fabric.now();
        let starts =
            self.nics.iter().flatten().flatten().map(|job| job.start).filter(|&start| start > now);
        let next = starts.chain(self.endpoints.due()).min();
        match next {
            Some(next) => {
                self.fabric.skip_to(next.max(now));
                true
            }
            // All remaining messages wait for table entries.
            None => self.jobs > 0 && self.hand_over(true),
        }
    }

    fn report_deadlock(&mut self, since: u64) {
        self.deadlock = Some(self.endpoints.deadlock(since, self.under.len(), Vec::new()));
    }
}

impl Carrier for FabricCarrier<'_> {
    const CONTENDED: bool = true;
    const IN_NETWORK: bool = true;

    fn carry(&mut self, ticket: Ticket, message: Carried) {
        let Carried { source, destination, bytes, arrival } = message;
        if source == destination {
            return self.endpoints.arrive(ticket, arrival);
        }
        let packet = self.cutting.packet;
        let packets = self.endpoints.flits(bytes).div_ceil(u64::from(packet));
        let receivers = vec![(destination.0, ticket, packets, arrival)];
        let number = self.number(Under { bytes, packet, receivers, members: None });
        self.put(&message, Kind::One(destination.0), number);
    }

    fn next_arrival(&mut self) -> Option<(Ticket, Time)> {
        // Reported deliveries lie in the past: a message is delivered only when no message in
        // flight can arrive before it.
        while self.endpoints.due().is_none_or(|due| due > self.fabric.now()) {
            let handed_over = self.hand_over(false);
            if !handed_over && self.fabric.is_empty() {
                if self.skip() {
                    continue;
                }
                break;
            }
            self.step();
            if self.endpoints.is_stopped() {
                return None;
            }
            if let Some(since) = self.fabric.stalled_since() {
                if self.endpoints.due().is_none() {
                    self.report_deadlock(since);
                }
                break;
            }
        }
        self.endpoints.report()
    }

    fn begin_step(&mut self, rank: RankId) {
        let nic = &mut self.nics[rank.index()];
        if nic.back().is_some_and(|step| !step.is_empty()) {
            nic.push_back(VecDeque::new());
        }
    }

    fn forks(&self) -> bool {
        self.settings.fan_out != FanOut::Unicasts
    }

    fn fork(&mut self, messages: &[(Ticket, Carried)]) {
        let Some(&(_, first)) = messages.first() else { return };
        let flits = self.endpoints.flits(first.bytes);
        let receiver = |&(ticket, message): &(Ticket, Carried)| {
            (message.destination.0, ticket, flits, message.arrival)
        };
        let mut receivers: Vec<_> = messages.iter().map(receiver).collect();
        receivers.sort_unstable_by_key(|&(node, ..)| node);
        let nodes: NodeSet = receivers.iter().map(|&(node, ..)| node).collect();
        let under = Under { bytes: first.bytes, packet: 1, receivers, members: None };
        let number = self.number(under);
        self.put(&first, Kind::Many(nodes), number);
    }

    fn combines(&self) -> bool {
        self.settings.fan_in != FanIn::Unicasts
    }

    fn expect(&mut self, combines: Vec<Combined>) {
        self.reductions = combines
            .into_iter()
            .map(|Combined { destination: RankId(destination), members, bytes }| {
                let members = members.into_iter().map(|RankId(member)| member).collect();
                Reduction::new(destination, members, bytes)
            })
            .collect();
    }

    fn contribute(&mut self, combine: usize, ticket: Ticket, message: Carried) {
        let (number, bytes) = (self.reductions[combine].number, self.reductions[combine].bytes);
        let number = if let Some(number) = number {
            number
        } else {
            let flits = self.endpoints.flits(bytes);
            let destination = self.reductions[combine].destination;
            let receivers = vec![(destination, ticket, flits, message.arrival)];
            let number =
                self.number(Under { bytes, packet: 1, receivers, members: Some(Vec::new()) });
            self.reductions[combine].number = Some(number);
            number
        };
        if let Some(under) = self.under.get_mut(&number) {
            under.join(ticket, message.arrival);
        }
        self.put(&message, Kind::Part(combine), number);
    }

    fn deadlock(&self) -> Option<Deadlock> {
        self.deadlock.clone()
    }
}
