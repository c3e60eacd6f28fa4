//! Lower bounds: what no schedule can be faster than, on any model and graph.
//!
//! The bound of a run is the largest of several times, each of which every schedule takes; they are never
//! added up, since a schedule may do what they are about at once. All ranks enter together at time 0:
//! skew and noise only make a run longer. N ranks, a payload of S bytes (sizes as in
//! [`tutti_schedule::collective`]), an element of e bytes, gamma per byte folded.
//!
//! **Latency.** What one rank knows has to reach all others (or, towards a root, what all know has to
//! reach one, which is the same backwards in time). A message is held by its receiver `held` after its
//! sender began with it, and a sender's messages are `apart`; ranks that know go on telling, so at time t
//! at most n(t) = 1 + n(t - held) + n(t - held - apart) + ... ranks know (Bar-Noy and Kipnis 1992; Karp et
//! al. 1993). The first time with n(t) >= N is the bound; backwards, `apart` is between receives. In a graph
//! every message takes the least latency between two ranks longer; and the two that are farthest apart
//! (in latency, whatever the route) have to hear of one another by one message at least.
//!
//! **Bandwidth.** Bytes that some rank at least must send and receive, from the table below: the most loaded
//! rank has no less than the average. Its port takes `Ends::sent` for them, and where receiving takes
//! time, `Ends::received`.
//!
//! | collective | sends | receives | in all messages |
//! |---|---|---|---|
//! | all_reduce | S | S | 2 (N - 1) S |
//! | reduce_scatter, all_gather, all_to_all | | | (N - 1) S |
//! | broadcast | S | S | (N - 1) S |
//! | reduce | S | S | (N - 1) S |
//! | scatter, gather | (N - 1) S / N | (N - 1) S / N | (N - 1) S / N |
//!
//! **Links.** Where messages share the links of a graph, [`by_links`]. There the ports through which all that
//! an NPU injects or ejects passes are links as well ([`Ports`]), and stand in for what a model charges a receiver
//! per byte: it takes messages of no bytes.
//!
//! **In the network.** Where it forks and combines ([`in_network`]) a message is one at its sender and one at its
//! receiver, however many ranks it goes to or comes from: what is left is the time of one message at its ends, and what
//! every rank has to send and hear at least, once.
//!
//! **Folding.** N contributions to an element take N - 1 folds, wherever they are done: (N - 1) S gamma in all,
//! at least an Nth of it on some rank. Where sending keeps the processor busy (postal, pipelining postal)
//! the average rank does both, one after the other. A result is a fold after a message at least.

use tutti_network::packet::Packets;
use tutti_network::{LogGP, Model, Serialization};
use tutti_schedule::algorithm::bound::by_links;
use tutti_schedule::collective::Collective;
use tutti_topology::Topology;
use tutti_units::ids::{RankId, VertexId};
use tutti_units::{Bytes, Time, TimePerByte};

mod distance;
#[cfg(test)]
mod tests;

/// What is asked: a collective on so many ranks and bytes.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// What is performed.
    pub collective: Collective,
    /// By how many ranks.
    pub ranks: u32,
    /// On how much data, by the collective's convention.
    pub size: Bytes,
    /// Bytes of an element, which is never divided.
    pub element: u64,
}

impl Asked {
    /// The most that a rank's shard can be where elements do not divide evenly.
    fn longest_shard(&self) -> u64 {
        let element = self.element.max(1);
        let elements = self.size.0.div_ceil(element);
        elements.div_ceil(u64::from(self.ranks)).saturating_mul(element)
    }

    /// The size, or for collectives on shards so much of it that every rank has as long a shard: a set of
    /// ranks may hold the shorter ones.
    fn divided(&self) -> Bytes {
        match self.collective {
            Collective::AllGather
            | Collective::ReduceScatter
            | Collective::Gather { .. }
            | Collective::Scatter { .. } => {
                let shards = self.element.max(1).saturating_mul(u64::from(self.ranks));
                Bytes(self.size.0 / shards * shards)
            }
            _ => self.size,
        }
    }
}

/// What folding costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Folding {
    /// Per byte and operand, on the fastest rank.
    pub gamma: TimePerByte,
    /// Every fold, however small, on the fastest rank.
    pub overhead: Time,
}

impl Folding {
    /// Folding takes no time.
    pub const FREE: Folding = Folding { gamma: TimePerByte::ZERO, overhead: Time::ZERO };
}

/// What a graph adds: computed once for a collective and its ranks, whatever the size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Way {
    /// The least latency between two ranks.
    pub nearest: Time,
    /// The most latency between two ranks of which one has to hear of the other, whatever the route.
    pub farthest: Time,
    /// What the links allow per byte of the size; nothing where messages do not share them.
    pub links: TimePerByte,
    /// The ports of the NPUs, where messages share them as well.
    pub ports: Option<Ports>,
}

/// What a byte takes to pass between an NPU and its links, where messages meet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ports {
    /// Out of the NPU; zero where nothing limits it but its links.
    pub injection: TimePerByte,
    /// Into it: the port's, or what the model charges a receiver.
    pub ejection: Serialization,
}

impl Ports {
    /// Those of packets, beneath a model that may have a receiving port of its own.
    #[must_use]
    pub fn of(packets: &Packets, model: &Model) -> Ports {
        let ejection = packets.ejection.map(Serialization::of_every_byte).or(model.takes());
        Ports {
            injection: packets.injection.unwrap_or(TimePerByte::ZERO),
            ejection: ejection.unwrap_or(Serialization::NONE),
        }
    }
}

impl Way {
    /// All ranks next to one another.
    pub const NONE: Way =
        Way { nearest: Time::ZERO, farthest: Time::ZERO, links: TimePerByte::ZERO, ports: None };

    /// Through a topology whose first NPUs are the ranks; `shared` when its links carry one message at a
    /// time.
    #[must_use]
    pub fn through(topology: &Topology, collective: Collective, ranks: u32, shared: bool) -> Way {
        let ranks = ranks.min(topology.npus());
        let root = collective.root().map(|RankId(root)| VertexId(root.min(ranks.max(1) - 1)));
        let inwards = matches!(collective, Collective::Gather { .. } | Collective::Reduce { .. });
        let (nearest, farthest) = distance::extremes(topology, ranks, root, inwards);
        let links = if shared { by_links(collective, ranks, topology) } else { TimePerByte::ZERO };
        Way { nearest, farthest, links, ports: None }
    }

    /// The same, with packets that pass through ports.
    #[must_use]
    pub fn with_ports(self, ports: Ports) -> Way {
        Way { ports: Some(ports), ..self }
    }
}

/// The parts of a lower bound; each holds by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bound {
    /// Until what is known has spread.
    pub latency: Time,
    /// Until the bytes are through the ranks' ports.
    pub bandwidth: Time,
    /// Until the bytes are through the links of the graph.
    pub links: Time,
    /// Until the folds are done.
    pub folding: Time,
}

impl Bound {
    /// No schedule is faster than this: the largest part.
    #[must_use]
    pub fn at_least(self) -> Time {
        self.latency.max(self.bandwidth).max(self.links).max(self.folding)
    }
}

/// The lower bound of a collective on a model and through a graph.
#[must_use]
pub fn bound(asked: &Asked, model: &Model, folding: Folding, way: Way) -> Bound {
    if asked.ranks < 2 {
        let none = Time::ZERO;
        return Bound { latency: none, bandwidth: none, links: none, folding: none };
    }
    let ends = Ends { model, element: asked.element.max(1) };
    let needs = Needs::of(asked);
    let smallest = Bytes(if asked.size.0 == 0 { 0 } else { ends.smallest(asked.collective) });
    let held = ends.held(smallest);
    let apart = match (needs.inwards, way.ports) {
        (false, _) => ends.sent_apart(smallest),
        (true, None) => ends.taken_apart(smallest),
        (true, Some(_)) => ends.taken_apart(Bytes(0)),
    };
    let spreading = spread(asked.ranks, held + way.nearest, apart);
    let latency = spreading.max(held + way.farthest);
    let average = Bytes(share(needs.all, asked.ranks));
    let (sends, receives) = (average.max(needs.sends), average.max(needs.receives));
    let bandwidth = match way.ports {
        None => ends.sent(sends).max(ends.received(receives)),
        Some(Ports { injection, ejection }) => {
            let ports = injection.of(sends).max(ejection.of(receives));
            ends.sent(sends).max(ends.held(Bytes(0)) + way.nearest + ports)
        }
    };
    Bound {
        latency,
        bandwidth,
        links: way.links.of(asked.divided()),
        folding: folds(asked, &ends, needs, folding, held),
    }
}

/// The lower bound of a collective where the network forks and combines messages on the way.
///
/// A message is then one at its sender however many ranks it goes to, and one at its receiver however many it
/// comes from, and folds may be the network's. What is left: one message takes what it takes at its ends, what a rank
/// knows and others have to hear leaves it once, and what a rank has to hear comes once.
#[must_use]
pub fn in_network(asked: &Asked, model: &Model, ports: Ports) -> Bound {
    let none = Time::ZERO;
    let nothing = Bound { latency: none, bandwidth: none, links: none, folding: none };
    if asked.ranks < 2 {
        return nothing;
    }
    let ends = Ends { model, element: asked.element.max(1) };
    let smallest = Bytes(if asked.size.0 == 0 { 0 } else { ends.smallest(asked.collective) });
    let size = asked.divided().0;
    let (shard, all) = (size / u64::from(asked.ranks), asked.size.0);
    let (sends, receives) = match asked.collective {
        Collective::AllReduce | Collective::Broadcast { .. } | Collective::Reduce { .. } => {
            (all, all)
        }
        Collective::ReduceScatter => (size - shard, shard),
        Collective::AllGather => (shard, size - shard),
        Collective::AllToAll => {
            let others = u128::from(asked.ranks) - 1;
            let bytes = share(u128::from(all) * others, asked.ranks);
            (bytes, bytes)
        }
        Collective::Gather { .. } => (shard, size - shard),
        Collective::Scatter { .. } => (size - shard, shard),
        Collective::Barrier => (0, 0),
    };
    let through = ports.injection.of(Bytes(sends)).max(ports.ejection.of(Bytes(receives)));
    Bound { latency: ends.held(smallest), bandwidth: through, ..nothing }
}

/// Bytes that must move whatever the schedule.
#[derive(Clone, Copy)]
struct Needs {
    /// Some rank sends this much.
    sends: Bytes,
    /// Some rank receives this much.
    receives: Bytes,
    /// In all messages together, and how many messages that takes.
    all: u128,
    messages: u128,
    /// Values of bytes that are folded, in all.
    folds: u128,
    /// Towards a root.
    inwards: bool,
}

impl Needs {
    fn of(asked: &Asked) -> Needs {
        let (size, others) = (u128::from(asked.size.0), u128::from(asked.ranks) - 1);
        let (all, whole) = (others * size, asked.size);
        let plain = Needs {
            sends: Bytes(0),
            receives: Bytes(0),
            all,
            messages: others,
            folds: 0,
            inwards: false,
        };
        // Of gather and scatter: what the root has to do with, whose own shard may be the longest, and
        // what some other rank has.
        let most = Bytes(asked.size.0.saturating_sub(asked.longest_shard()));
        let each = Bytes(most.0 / u64::from(asked.ranks - 1));
        match asked.collective {
            Collective::AllReduce => Needs {
                sends: whole,
                receives: whole,
                all: 2 * all,
                messages: 2 * others,
                folds: all,
                ..plain
            },
            Collective::ReduceScatter => Needs { folds: all, ..plain },
            Collective::AllGather | Collective::AllToAll => plain,
            Collective::Broadcast { .. } => Needs { sends: whole, receives: whole, ..plain },
            Collective::Reduce { .. } => {
                Needs { sends: whole, receives: whole, folds: all, inwards: true, ..plain }
            }
            Collective::Gather { .. } => Needs {
                sends: each,
                receives: most,
                all: u128::from(most.0),
                inwards: true,
                ..plain
            },
            Collective::Scatter { .. } => {
                Needs { sends: most, receives: each, all: u128::from(most.0), ..plain }
            }
            Collective::Barrier => Needs { messages: 2 * others, ..plain },
        }
    }
}

/// An Nth, rounded down: some rank has at least as much.
fn share(all: u128, ranks: u32) -> u64 {
    u64::try_from(all / u128::from(ranks)).unwrap_or(u64::MAX)
}

/// The folds of the most loaded rank, alone and with what sending takes of its time.
fn folds(asked: &Asked, ends: &Ends, needs: Needs, folding: Folding, held: Time) -> Time {
    if needs.folds == 0 {
        return Time::ZERO;
    }
    let work = |all: u128| folding.gamma.of(Bytes(share(all, asked.ranks)));
    let busy = ends.busy(needs.all, needs.messages, asked.ranks);
    let last = held + folding.overhead + folding.gamma.of(Bytes(asked.element.min(asked.size.0)));
    // Both are rounded up, and the sum of the exact values need not be: a picosecond less.
    (work(needs.folds) + busy - Time::from_ps(1)).max(work(needs.folds)).max(last)
}

/// What a model makes of messages at their two ends.
struct Ends<'a> {
    model: &'a Model,
    element: u64,
}

impl Ends<'_> {
    /// The least that a message with anything in it holds. Of shards, some are empty where there are fewer
    /// elements than ranks, and a schedule that moves them to other places sends what those would hold.
    fn smallest(&self, collective: Collective) -> u64 {
        match collective {
            Collective::AllReduce | Collective::Broadcast { .. } | Collective::Reduce { .. } => {
                self.element
            }
            _ => 0,
        }
    }

    /// From a sender's beginning to the receiver's holding a message.
    fn held(&self, bytes: Bytes) -> Time {
        match self.model {
            Model::Postal(m) => m.alpha + m.beta.of(bytes),
            Model::PipeliningPostal(m) => m.alpha_p + m.alpha_r + m.beta.of(bytes),
            Model::LogP(m) => m.L + m.o.times(2),
            Model::LogGP(m) => m.L + m.o.times(2) + m.length(bytes),
            Model::LogfP(m) => m.L + m.o.times(2),
            Model::LoP(m) => m.o_first + m.processing + m.L + m.o_next,
        }
    }

    /// Between the beginnings of a rank's messages.
    fn sent_apart(&self, bytes: Bytes) -> Time {
        match self.model {
            Model::Postal(m) => m.alpha + m.beta.of(bytes),
            Model::PipeliningPostal(m) => m.alpha_r + m.beta.of(bytes),
            Model::LogP(m) => m.o.max(m.g),
            Model::LogGP(m) => m.o.max(m.g + m.length(bytes)),
            // A new step is free of the gap again.
            Model::LogfP(m) => m.o,
            Model::LoP(m) => m.o_next.max(m.processing),
        }
    }

    /// Between the ends of messages that a rank takes.
    fn taken_apart(&self, bytes: Bytes) -> Time {
        match self.model {
            Model::Postal(_) | Model::PipeliningPostal(_) => Time::ZERO,
            Model::LogP(_) | Model::LogGP(_) => self.sent_apart(bytes),
            Model::LogfP(m) => m.o,
            Model::LoP(m) => m.o_next,
        }
    }

    /// Until the last of that many bytes that a rank sends is held by its receiver.
    fn sent(&self, bytes: Bytes) -> Time {
        match self.model {
            Model::Postal(_) | Model::PipeliningPostal(_) => self.held(bytes),
            Model::LogGP(m) => self.through_a_port(m, bytes),
            // Sizes do not matter.
            Model::LogP(_) | Model::LogfP(_) | Model::LoP(_) => self.held(Bytes(0)),
        }
    }

    /// Until a rank holds the last of that many bytes that it receives.
    fn received(&self, bytes: Bytes) -> Time {
        match self.model {
            Model::LogGP(m) => self.through_a_port(m, bytes),
            // Receiving is free, or sizes do not matter.
            _ => self.held(Bytes(0)),
        }
    }

    /// LogGP. In k messages, each no less than an element, that many bytes keep a port busy for at least
    /// (k - 1) g + (n - k) G, and its rank for k o: the k that is best for the schedule.
    fn through_a_port(&self, m: &LogGP, bytes: Bytes) -> Time {
        let most = (bytes.0 / self.element).max(1);
        let wire = |k: u64| m.g.times(k - 1) + m.G.of(Bytes(bytes.0.saturating_sub(k)));
        let processor = |k: u64| m.o.times(k - 1);
        let takes = |k: u64| wire(k).max(processor(k));
        // Where a message costs more than the byte it saves, one is best; else `wire` falls with k and
        // `processor` rises.
        let one_is_best = m.g >= m.G.of(Bytes(1));
        let least = if one_is_best {
            takes(1)
        } else {
            let (mut low, mut high) = (1, most);
            while low < high {
                let middle = low + (high - low) / 2;
                if processor(middle) >= wire(middle) { high = middle } else { low = middle + 1 }
            }
            takes(low).min(takes(low.max(2) - 1))
        };
        m.L + m.o.times(2) + least
    }

    /// How long sending keeps the average rank's processor busy, in models where it does.
    fn busy(&self, bytes: u128, messages: u128, ranks: u32) -> Time {
        let (fixed, per_byte) = match self.model {
            Model::Postal(m) => (m.alpha, m.beta),
            Model::PipeliningPostal(m) => (m.alpha_r, m.beta),
            _ => return Time::ZERO,
        };
        fixed.times(share(messages, ranks)) + per_byte.of(Bytes(share(bytes, ranks)))
    }
}

/// The first time at which `ranks` can know what one knew at time 0.
///
/// Messages that begin at the same time are counted together, time by time, so this takes as many steps as
/// there are different times: at most some thousand for the ranks that a schedule can have.
fn spread(ranks: u32, held: Time, apart: Time) -> Time {
    if apart == Time::ZERO {
        return held;
    }
    // New ranks that know, by time; each tells another after `held`, and then every `apart`.
    let mut new = std::collections::BTreeMap::from([(held, 1_u64)]);
    let mut know = 1_u64;
    while let Some((now, count)) = new.pop_first() {
        know = know.saturating_add(count);
        if know >= u64::from(ranks) {
            return now;
        }
        // Each of them may begin now; and whoever told them tells another `apart` later.
        for next in [now + held, now + apart] {
            let more = new.entry(next).or_insert(0);
            *more = more.saturating_add(count);
        }
    }
    held
}
