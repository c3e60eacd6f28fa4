//! Lower bounds on the completion time of any schedule, for any model and graph.
//!
//! The bound is the maximum of several times that every schedule takes. They are not added, since
//! a schedule may overlap them. All ranks enter at time 0: skew and noise only lengthen a run.
//! There are N ranks, a payload of S bytes (sizes as in [`tutti_schedule::collective`]), elements
//! of e bytes, and gamma is the reduction time per byte.
//!
//! **Latency.** The data of one rank must reach all others. Towards a root, the data of all ranks
//! must reach one rank, which is the same problem reversed in time. A receiver has a message
//! `delivery` after its sender started it. A rank starts consecutive messages `interval` apart.
//! Informed ranks continue to send. At time t at most
//! n(t) = 1 + n(t - delivery) + n(t - delivery - interval) + ... ranks are informed (Bar-Noy and
//! Kipnis 1992; Karp et al. 1993). The bound is the first time with n(t) >= N. Reversed in time,
//! `interval` separates receives. In a graph every message takes longer by the minimum latency
//! between two ranks. The two ranks with the maximum latency between them need at least one
//! message.
//!
//! In an all_to_all_v the data of a rank must reach only the ranks for which it has a block.
//!
//! **Bandwidth.** The most loaded rank sends and receives at least the average of all messages.
//! Some rank also sends and receives at least these bytes:
//!
//! - all_reduce: S each; 2 (N - 1) S in all messages;
//! - broadcast, reduce: S each; (N - 1) S in all messages;
//! - reduce_scatter, all_gather, all_to_all: (N - 1) S in all messages;
//! - all_to_all_v: the largest sums of the blocks from a rank to others, and to a rank from others
//!   ([`Exchange`]); the sum of all blocks in all messages;
//! - scatter, gather: (N - 1) S / N at the root, and as much in all messages.
//!
//! The port takes `Endpoint::sent` for them and, if receiving takes time, `Endpoint::received`.
//!
//! **Links.** If messages share the links of a graph, [`by_links`](tutti_schedule::algorithm::bound::by_links) is a further bound. The
//! injection and ejection ports of an NPU are then links as well ([`Ports`]). They replace the
//! receiver's time per byte in the model.
//!
//! **In-network collectives.** If the network forks and reduces messages ([`in_network`]), a
//! multicast is one message at its sender, and a reduction one message at its receiver. The bound
//! is the endpoint time of one message, and the time of the bytes that every rank must send and
//! receive once. In a graph, [`by_links_in_network`](tutti_schedule::algorithm::bound::by_links_in_network) bounds the links.
//!
//! **Reduction.** N contributions to an element take N - 1 reductions: (N - 1) S gamma in total, at
//! least 1/N of it on some rank. If sending occupies the processor (postal, pipelining postal), the
//! average rank does both sequentially. A result takes at least one message and one reduction.

use tutti_network::{LogGP, Model};
use tutti_schedule::collective::Collective;
use tutti_units::{Bytes, Time, TimePerByte};

mod distance;
mod exchange;
mod graph;
mod launch;
mod protocols;
#[cfg(test)]
mod tests;

pub use exchange::Exchange;
pub use graph::{GraphBound, Ports};

/// The collective to bound.
#[derive(Clone, Copy, Debug)]
pub struct Query {
    /// The collective.
    pub collective: Collective,
    /// The number of ranks.
    pub ranks: u32,
    /// The size, by the collective's convention.
    pub size: Bytes,
    /// Bytes of an element; elements are indivisible.
    pub element: u64,
    /// The blocks of an all_to_all_v.
    pub exchange: Option<Exchange>,
}

impl Query {
    /// The maximum size of a rank's shard if elements do not divide evenly.
    fn longest_shard(&self) -> u64 {
        let element = self.element.max(1);
        let elements = self.size.0.div_ceil(element);
        elements.div_ceil(u64::from(self.ranks)).saturating_mul(element)
    }

    /// The ranks that must have the data of a rank, including itself.
    fn receivers(&self) -> u32 {
        match self.collective {
            Collective::AllToAllV => self.exchange.map_or(1, |exchange| exchange.fanout + 1),
            _ => self.ranks,
        }
    }

    /// The size; for collectives on shards, rounded down to equal shards, since a set of ranks may
    /// have the shorter ones.
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

/// The cost of reductions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Folding {
    /// Per byte and operand, on the fastest rank.
    pub gamma: TimePerByte,
    /// Per reduction, on the fastest rank.
    pub overhead: Time,
}

impl Folding {
    /// Reductions take no time.
    pub const FREE: Folding = Folding { gamma: TimePerByte::ZERO, overhead: Time::ZERO };
}

/// The parts of a lower bound; each is itself a lower bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bound {
    /// The latency bound.
    pub latency: Time,
    /// The bandwidth bound of the ranks' ports.
    pub bandwidth: Time,
    /// The bandwidth bound of the links of the graph.
    pub links: Time,
    /// The reduction bound.
    pub folding: Time,
}

impl Bound {
    /// No bound.
    pub const NONE: Bound = Bound {
        latency: Time::ZERO,
        bandwidth: Time::ZERO,
        links: Time::ZERO,
        folding: Time::ZERO,
    };

    /// The lower bound: the largest part.
    #[must_use]
    pub fn at_least(self) -> Time {
        self.latency.max(self.bandwidth).max(self.links).max(self.folding)
    }
}

/// Returns the lower bound of a collective on a model and a graph.
#[must_use]
pub fn bound(query: &Query, model: &Model, folding: Folding, graph: GraphBound) -> Bound {
    if query.receivers() < 2 {
        return Bound::NONE;
    }
    let endpoint = Endpoint { model, element: query.element.max(1) };
    let needs = Needs::of(query);
    let smallest = Bytes(if query.size.0 == 0 { 0 } else { endpoint.smallest(query.collective) });
    let delivery = endpoint.delivery(smallest);
    let interval = match (needs.inwards, graph.ports) {
        (false, _) => endpoint.send_interval(smallest),
        (true, None) => endpoint.receive_interval(smallest),
        (true, Some(_)) => endpoint.receive_interval(Bytes(0)),
    };
    let spreading = spread(query.receivers(), delivery + graph.nearest, interval);
    let latency = spreading.max(delivery + graph.farthest);
    let average = Bytes(share(needs.all, query.ranks));
    let (sends, receives) = (average.max(needs.sends), average.max(needs.receives));
    let bandwidth = match graph.ports {
        None => endpoint.sent(sends).max(endpoint.received(receives)),
        Some(Ports { injection, ejection }) => {
            let ports = injection.of(sends).max(ejection.of(receives));
            endpoint.sent(sends).max(endpoint.delivery(Bytes(0)) + graph.nearest + ports)
        }
    };
    Bound {
        latency,
        bandwidth,
        links: graph.links.of(query.divided()).max(graph.blocks),
        folding: folds(query, &endpoint, needs, folding, delivery),
    }
}

/// Returns the lower bound of a collective on a network that forks and reduces messages.
///
/// A multicast is one message at its sender, a reduction is one message at its receiver, and the
/// network may do all reductions. The bound contains the endpoint time of one message, and the
/// time of the bytes that each rank must send once and receive once.
#[must_use]
pub fn in_network(query: &Query, model: &Model, graph: GraphBound) -> Bound {
    let none = Time::ZERO;
    if query.receivers() < 2 {
        return Bound::NONE;
    }
    let endpoint = Endpoint { model, element: query.element.max(1) };
    let smallest = Bytes(if query.size.0 == 0 { 0 } else { endpoint.smallest(query.collective) });
    let size = query.divided().0;
    let (shard, all) = (size / u64::from(query.ranks), query.size.0);
    let (sends, receives) = match query.collective {
        Collective::AllReduce | Collective::Broadcast { .. } | Collective::Reduce { .. } => {
            (all, all)
        }
        Collective::ReduceScatter => (size - shard, shard),
        Collective::AllGather => (shard, size - shard),
        Collective::AllToAll => {
            let others = u128::from(query.ranks) - 1;
            let bytes = share(u128::from(all) * others, query.ranks);
            (bytes, bytes)
        }
        Collective::AllToAllV => {
            query.exchange.map_or((0, 0), |exchange| (exchange.sends.0, exchange.receives.0))
        }
        Collective::Gather { .. } => (shard, size - shard),
        Collective::Scatter { .. } => (size - shard, shard),
        Collective::Barrier => (0, 0),
    };
    let (sends, receives) = (Bytes(sends), Bytes(receives));
    let ports = graph.ports.map_or(none, |Ports { injection, ejection }| {
        injection.of(sends).max(ejection.of(receives))
    });
    Bound {
        latency: endpoint.delivery(smallest) + graph.farthest,
        bandwidth: endpoint.sent(sends).max(ports),
        links: graph.links.of(query.divided()).max(graph.blocks),
        folding: none,
    }
}

/// Bytes that every schedule must move.
#[derive(Clone, Copy)]
struct Needs {
    /// Bytes that some rank must send.
    sends: Bytes,
    /// Bytes that some rank must receive.
    receives: Bytes,
    /// Total bytes of all messages.
    all: u128,
    /// Number of messages.
    messages: u128,
    /// Total bytes reduced.
    folds: u128,
    /// Whether data moves towards a root.
    inwards: bool,
}

impl Needs {
    fn of(query: &Query) -> Needs {
        let (size, others) = (u128::from(query.size.0), u128::from(query.ranks) - 1);
        let (all, payload) = (others * size, query.size);
        let plain = Needs {
            sends: Bytes(0),
            receives: Bytes(0),
            all,
            messages: others,
            folds: 0,
            inwards: false,
        };
        match query.collective {
            Collective::AllReduce => Needs {
                sends: payload,
                receives: payload,
                all: 2 * all,
                messages: 2 * others,
                folds: all,
                ..plain
            },
            Collective::ReduceScatter => Needs { folds: all, ..plain },
            Collective::AllGather | Collective::AllToAll => plain,
            Collective::AllToAllV => {
                let Exchange { sends, receives, all, .. } = query.exchange.unwrap_or_default();
                Needs { sends, receives, all, ..plain }
            }
            Collective::Broadcast { .. } => Needs { sends: payload, receives: payload, ..plain },
            Collective::Reduce { .. } => {
                Needs { sends: payload, receives: payload, folds: all, inwards: true, ..plain }
            }
            Collective::Gather { .. } => Needs::of_shards(query, true, plain),
            Collective::Scatter { .. } => Needs::of_shards(query, false, plain),
            Collective::Barrier => Needs { messages: 2 * others, ..plain },
        }
    }

    /// Gather (inwards) and scatter: bytes at the root, which may have the longest shard, and at
    /// some other rank.
    fn of_shards(query: &Query, inwards: bool, plain: Needs) -> Needs {
        let root = Bytes(query.size.0.saturating_sub(query.longest_shard()));
        let other = Bytes(root.0 / u64::from(query.ranks - 1));
        let (sends, receives) = if inwards { (other, root) } else { (root, other) };
        Needs { sends, receives, all: u128::from(root.0), inwards, ..plain }
    }
}

/// 1/N of the total, rounded down: the minimum load of the most loaded rank.
fn share(all: u128, ranks: u32) -> u64 {
    u64::try_from(all / u128::from(ranks)).unwrap_or(u64::MAX)
}

/// The reductions of the most loaded rank, alone and with the time it is busy sending.
fn folds(
    query: &Query,
    endpoint: &Endpoint,
    needs: Needs,
    folding: Folding,
    delivery: Time,
) -> Time {
    if needs.folds == 0 {
        return Time::ZERO;
    }
    let work = |all: u128| folding.gamma.of(Bytes(share(all, query.ranks)));
    let busy = endpoint.busy(needs.all, needs.messages, query.ranks);
    let last =
        delivery + folding.overhead + folding.gamma.of(Bytes(query.element.min(query.size.0)));
    // Both are rounded up, but the exact sum need not be: subtract a picosecond.
    (work(needs.folds) + busy - Time::from_ps(1)).max(work(needs.folds)).max(last)
}

/// The endpoint times of messages in a model.
struct Endpoint<'a> {
    model: &'a Model,
    element: u64,
}

impl Endpoint<'_> {
    /// The minimum payload of a message. Shards are empty if there are fewer elements than ranks; a
    /// schedule that moves chunks to other positions sends empty messages for them.
    fn smallest(&self, collective: Collective) -> u64 {
        match collective {
            Collective::AllReduce | Collective::Broadcast { .. } | Collective::Reduce { .. } => {
                self.element
            }
            _ => 0,
        }
    }

    /// Time from the start of a send to the end of its receive.
    fn delivery(&self, bytes: Bytes) -> Time {
        match self.model {
            Model::Postal(m) => m.alpha + m.beta.of(bytes),
            Model::PipeliningPostal(m) => m.alpha_p + m.alpha_r + m.beta.of(bytes),
            Model::LogP(m) => m.L + m.o.times(2),
            Model::LogGP(m) => m.L + m.o.times(2) + m.length(bytes),
            Model::LogfP(m) => m.L + m.o.times(2),
            Model::LoP(m) => m.o_first + m.processing + m.L + m.o_next,
            // A longer message takes at least as long.
            Model::Protocols(m) => m.time(bytes),
        }
    }

    /// Minimum time between the starts of consecutive sends of a rank.
    fn send_interval(&self, bytes: Bytes) -> Time {
        match self.model {
            Model::Postal(m) => m.alpha + m.beta.of(bytes),
            Model::PipeliningPostal(m) => m.alpha_r + m.beta.of(bytes),
            Model::LogP(m) => m.o.max(m.g),
            Model::LogGP(m) => m.o.max(m.g + m.length(bytes)),
            // A new step is exempt from the gap.
            Model::LogfP(m) => m.o,
            Model::LoP(m) => m.o_next.max(m.processing),
            Model::Protocols(m) => protocols::issue(m, bytes),
        }
    }

    /// Minimum time between the endpoint of consecutive receives of a rank.
    fn receive_interval(&self, bytes: Bytes) -> Time {
        match self.model {
            Model::Postal(_) | Model::PipeliningPostal(_) | Model::Protocols(_) => Time::ZERO,
            Model::LogP(_) | Model::LogGP(_) => self.send_interval(bytes),
            Model::LogfP(m) => m.o,
            Model::LoP(m) => m.o_next,
        }
    }

    /// Time until the receivers have all of `bytes` that a rank sends.
    fn sent(&self, bytes: Bytes) -> Time {
        match self.model {
            Model::Postal(_) | Model::PipeliningPostal(_) => self.delivery(bytes),
            Model::LogGP(m) => self.port_time(m, bytes),
            Model::Protocols(m) => protocols::sent(m, bytes),
            // Independent of the size.
            Model::LogP(_) | Model::LogfP(_) | Model::LoP(_) => self.delivery(Bytes(0)),
        }
    }

    /// Time until a rank has received `bytes`.
    fn received(&self, bytes: Bytes) -> Time {
        match self.model {
            Model::LogGP(m) => self.port_time(m, bytes),
            // Receiving is free or independent of the size.
            _ => self.delivery(Bytes(0)),
        }
    }

    /// LogGP: in k messages of at least an element each, n bytes occupy a port for at least
    /// (k - 1) g + (n - k) G, and its rank for k o. Returns the minimum over k.
    fn port_time(&self, m: &LogGP, bytes: Bytes) -> Time {
        let max_messages = (bytes.0 / self.element).max(1);
        let wire = |k: u64| m.g.times(k - 1) + m.G.of(Bytes(bytes.0.saturating_sub(k)));
        let processor = |k: u64| m.o.times(k - 1);
        let takes = |k: u64| wire(k).max(processor(k));
        // If a message costs more than the byte it saves, k = 1 is optimal. Otherwise `wire`
        // decreases with k, and `processor` increases.
        let one_is_best = m.g >= m.G.of(Bytes(1));
        let least = if one_is_best {
            takes(1)
        } else {
            let (mut low, mut high) = (1, max_messages);
            while low < high {
                let middle = low + (high - low) / 2;
                if processor(middle) >= wire(middle) { high = middle } else { low = middle + 1 }
            }
            takes(low).min(takes(low.max(2) - 1))
        };
        m.L + m.o.times(2) + least
    }

    /// Time for which sending occupies the average rank's processor; 0 in models without it.
    fn busy(&self, bytes: u128, messages: u128, ranks: u32) -> Time {
        let (fixed, per_byte) = match self.model {
            Model::Postal(m) => (m.alpha, m.beta),
            Model::PipeliningPostal(m) => (m.alpha_r, m.beta),
            Model::Protocols(m) => protocols::fastest(m),
            _ => return Time::ZERO,
        };
        fixed.times(share(messages, ranks)) + per_byte.of(Bytes(share(bytes, ranks)))
    }
}

/// The earliest time at which data of one rank can have reached `ranks` ranks.
///
/// Messages that start simultaneously are counted together. The number of iterations is the number
/// of distinct times: at most a few thousand for the supported rank counts.
fn spread(ranks: u32, delivery: Time, interval: Time) -> Time {
    if interval == Time::ZERO {
        return delivery;
    }
    // Newly informed ranks by time. Each informs a rank after `delivery`, then one per `interval`.
    let mut new = std::collections::BTreeMap::from([(delivery, 1_u64)]);
    let mut informed = 1_u64;
    while let Some((now, count)) = new.pop_first() {
        informed = informed.saturating_add(count);
        if informed >= u64::from(ranks) {
            return now;
        }
        // Each of them may send now. Their senders may start another message `interval` later.
        for next in [now + delivery, now + interval] {
            let more = new.entry(next).or_insert(0);
            *more = more.saturating_add(count);
        }
    }
    delivery
}
