//! Collectives on a torus: phases on its rings, divided into chunks, steps and packets.
//!
//! - **All-reduce** on an L x V x H torus is a reduce-scatter over the first ring, an all-reduce
//!   over each other ring with the shard of the chunk, and an all-gather over the first. (Rashidi
//!   et al. 2021, section V; ASTRA-sim's "localBWAware" of 2020.)
//! - **Nested**, it is a reduce-scatter over each ring but the last with decreasing shards, an
//!   all-reduce over the last, and all-gathers in reverse order, as in ASTRA-sim 2.
//! - **Reduce-scatter** goes over the rings first to last, all-gather last to first.
//! - **All-to-all** is one phase: each packet is routed along the first ring, then the second, and
//!   so on, in the shorter direction.
//! - A **shift** sends to the next NPU of the last ring.

use crate::endpoint::Handling;
use crate::endpoint::ace::PhaseLoad;
use crate::workload::{Exchange, Rings};
use tutti_schedule::collective::Collective;
use tutti_units::{Bytes, Time, TimePerByte};

/// A bidirectional ring of a torus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    /// NPUs on it.
    pub nodes: u32,
    /// Time per byte of a link, per direction.
    pub per_byte: TimePerByte,
    /// Latency of a link.
    pub latency: Time,
}

/// The kind of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PhaseKind {
    /// Each NPU ends with its shard of the reduction.
    ReduceScatter,
    /// Reduce-scatter and all-gather, without a barrier.
    AllReduce,
    /// Each NPU ends with every NPU's shard.
    AllGather,
    /// Each NPU sends to each other, on all rings.
    AllToAll,
    /// Each NPU sends to the next one.
    Shift,
}

/// A phase of a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// Its kind.
    pub kind: PhaseKind,
    /// Its ring; the last one if it uses all.
    pub ring: usize,
    /// A chunk of c bytes enters with c / `divide` bytes.
    pub divide: u64,
    /// The phase of the all-reduce the partition and FSMs of which it uses.
    pub class: usize,
    /// The direction, if it is fixed; otherwise chunks alternate.
    pub direction: Option<u8>,
}

impl Phase {
    /// The direction of a chunk; chunks alternate unless it is fixed.
    #[inline]
    #[must_use]
    pub fn direction_of(&self, chunk: u32) -> u8 {
        self.direction.unwrap_or(u8::from(chunk % 2 == 1))
    }
}

/// A torus: its rings, the one inside a package first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Torus {
    rings: Vec<Ring>,
    /// Time per byte of each ring after its link, at a store-and-forward switch without contention;
    /// empty: no switch.
    relays: Vec<Option<TimePerByte>>,
    nested: bool,
}

/// Why a torus is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, tutti_units::Refusal)]
#[refusal(class = "TopologyError")]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum TorusError {
    /// Fewer than two NPUs.
    #[error("a torus of {npus} NPUs has no links: expected at least 2 NPUs")]
    #[refusal(kind = "torus_too_small")]
    TooFew { npus: u64 },
    /// More NPUs than supported.
    #[error("a torus of {npus} NPUs is too large: expected at most 2^24")]
    #[refusal(kind = "torus_too_large")]
    TooMany { npus: u64 },
    /// A ring without nodes.
    #[error("ring {ring} has no NPU: expected at least 1")]
    #[refusal(kind = "empty_ring")]
    NoNodes { ring: usize },
    /// A link without latency: simultaneous events at its two ends have no order.
    #[error("ring {ring} has links of no latency: expected at least 1 ps")]
    NoLatency { ring: usize },
}

impl Torus {
    /// Of these rings.
    ///
    /// # Errors
    /// When there are too few or too many NPUs, or a link takes no time.
    pub fn new(rings: Vec<Ring>) -> Result<Torus, TorusError> {
        if let Some(ring) = rings.iter().position(|ring| ring.nodes == 0) {
            return Err(TorusError::NoNodes { ring });
        }
        if let Some(ring) = rings.iter().position(|ring| ring.latency == Time::ZERO) {
            return Err(TorusError::NoLatency { ring });
        }
        let count = |npus: u64, ring: &Ring| npus.saturating_mul(u64::from(ring.nodes));
        match rings.iter().fold(1, count) {
            npus @ (0 | 1) => Err(TorusError::TooFew { npus }),
            npus if npus > 1 << 24 => Err(TorusError::TooMany { npus }),
            _ => Ok(Torus { relays: vec![None; rings.len()], rings, nested: false }),
        }
    }

    /// Adds a store-and-forward switch between the NPUs of a ring, with this additional time per
    /// byte.
    #[must_use]
    pub fn relayed(mut self, ring: usize, per_byte: TimePerByte) -> Torus {
        if let Some(relay) = self.relays.get_mut(ring) {
            *relay = Some(per_byte);
        }
        self
    }

    /// Nests all-reduces: reduce-scatter over every ring but the last, and all-gather in reverse
    /// order.
    #[must_use]
    pub fn nested(self) -> Torus {
        Torus { nested: true, ..self }
    }

    /// Time of `bytes` on a ring after their link.
    #[inline]
    #[must_use]
    pub fn relay(&self, ring: usize, bytes: Bytes) -> Time {
        self.relays[ring].map_or(Time::ZERO, |per_byte| per_byte.of(bytes))
    }

    /// Its rings.
    #[must_use]
    pub fn rings(&self) -> &[Ring] {
        &self.rings
    }

    /// How many NPUs it has.
    #[must_use]
    pub fn npus(&self) -> u32 {
        self.rings.iter().map(|ring| ring.nodes).product()
    }

    /// The neighbour of `npu` on `ring` in the given direction.
    #[must_use]
    pub fn neighbour(&self, npu: u32, ring: usize, direction: u8) -> u32 {
        let stride: u32 = self.rings[..ring].iter().map(|ring| ring.nodes).product();
        let nodes = self.rings[ring].nodes;
        let at = npu / stride % nodes;
        let step = if direction == 0 { 1 } else { nodes - 1 };
        npu - at * stride + (at + step) % nodes * stride
    }

    /// The ring and the direction of the hop after `hop` hops towards the NPU at `offset` from the
    /// sender; None at the destination.
    #[must_use]
    pub fn hop(&self, offset: u32, hop: u32) -> Option<(usize, u8)> {
        let digits = |rest: &mut u32, ring: &Ring| {
            let digit = *rest % ring.nodes;
            *rest /= ring.nodes;
            Some(digit)
        };
        let sum: u32 = self.rings.iter().scan(offset, digits).sum();
        let mut before = hop;
        for (index, (ring, ahead)) in
            self.rings.iter().zip(self.rings.iter().scan(offset, digits)).enumerate()
        {
            let back = ring.nodes - ahead;
            // At half the ring, packets with an odd sum of the other distances take direction 1.
            let tie = u32::from(ahead == back) * ((sum - ahead) & 1);
            let (hops, direction) = if ahead < back + 1 - tie { (ahead, 0) } else { (back, 1) };
            if before < hops {
                return Some((index, direction));
            }
            before -= hops;
        }
        None
    }

    /// Returns the torus with only the rings in `rings`; each NPU is alone on the others.
    #[must_use]
    pub fn within(&self, rings: Rings) -> Torus {
        let cut = |(index, ring): (usize, &Ring)| {
            if rings.contains(index) { *ring } else { Ring { nodes: 1, ..*ring } }
        };
        Torus { rings: self.rings.iter().enumerate().map(cut).collect(), ..self.clone() }
    }

    /// How many classes of phases there are: those of the all-reduce on all rings.
    #[must_use]
    pub fn classes(&self) -> usize {
        match self.rings.iter().filter(|ring| ring.nodes > 1).count() {
            0 | 1 => 1,
            live if self.nested => 2 * live - 1,
            live => live + 1,
        }
    }

    /// The phases of an exchange on the rings of `within`; None if it is not supported or the rings
    /// have no NPUs. Classes increase from phase to phase for every collective, so chunks that wait
    /// for space in the next partition have no cyclic dependency.
    #[must_use]
    pub fn phases(&self, exchange: impl Into<Exchange>, within: Rings) -> Option<Vec<Phase>> {
        let part = self.within(within);
        let live: Vec<usize> =
            (0..part.rings.len()).filter(|&ring| part.rings[ring].nodes > 1).collect();
        let (&local, rest) = live.split_first()?;
        let last = self.classes() - 1;
        let Exchange::Collective(collective) = exchange.into() else {
            let (kind, ring) = (PhaseKind::Shift, live[live.len() - 1]);
            return Some(vec![Phase { kind, ring, divide: 1, class: last, direction: Some(0) }]);
        };
        match collective {
            Collective::AllReduce if self.nested => Some(part.nest(&live, last)),
            Collective::AllReduce => Some(part.all_reduce(local, rest, last)),
            Collective::ReduceScatter => Some(part.scatter(&live)),
            Collective::AllGather => Some(part.gather(&live, last)),
            Collective::AllToAll => {
                let (kind, ring) = (PhaseKind::AllToAll, live[live.len() - 1]);
                Some(vec![Phase { kind, ring, divide: 1, class: last, direction: None }])
            }
            _ => None,
        }
    }

    /// The loads of the phases of an all-reduce on an ACE, for chunks of `chunk` bytes in packets
    /// of at most `piece`. All-to-alls share one of these phases: it takes the longer of the two
    /// times, with the mean of their chunk sizes (Rashidi et al. 2021, section IV).
    #[must_use]
    pub fn phase_loads(&self, chunk: Bytes, piece: Bytes, exchanges: bool) -> Vec<PhaseLoad> {
        let of = |collective| {
            let phases = self.phases(collective, Rings::ALL).unwrap_or_default();
            shapes(self, &phases, chunk, piece)
        };
        let mut loads: Vec<PhaseLoad> =
            of(Collective::AllReduce).iter().map(|shape| self.phase_load(shape)).collect();
        if !exchanges {
            return loads;
        }
        for shape in of(Collective::AllToAll) {
            if let Some(load) = loads.get_mut(shape.phase.class) {
                load.time = load.time.max(self.exchange_alone(&shape));
                load.chunk = Bytes(load.chunk.0.midpoint(shape.entry.0));
            }
        }
        loads
    }

    fn phase_load(&self, shape: &Shape) -> PhaseLoad {
        let ring = self.rings[shape.phase.ring];
        let (ps, bytes) = ring.per_byte.fraction();
        let both = bytes.checked_mul(2).and_then(|bytes| TimePerByte::new(ps, bytes));
        let links = if shape.phase.direction.is_some() { None } else { both };
        let (chunk, time) = (shape.entry, shape.alone(ring));
        PhaseLoad { links: links.unwrap_or(ring.per_byte), chunk, time }
    }

    /// Approximate time of an all-to-all of one chunk without contention: the busy time of its
    /// busiest link plus its longest path.
    fn exchange_alone(&self, shape: &Shape) -> Time {
        let part = Bytes(u64::from(shape.pieces - 1) * shape.piece.0 + shape.last.0);
        let mut work = vec![Time::ZERO; 2 * self.rings.len()];
        let mut longest = Time::ZERO;
        for offset in 1..self.npus() {
            let mut path = Time::ZERO;
            for (ring, back) in (0..).map_while(|hop| self.hop(offset, hop)) {
                work[2 * ring + usize::from(back)] += self.rings[ring].per_byte.of(part);
                path += self.rings[ring].latency;
            }
            longest = longest.max(path);
        }
        work.into_iter().max().unwrap_or(Time::ZERO) + longest
    }

    fn all_reduce(&self, local: usize, rest: &[usize], last: usize) -> Vec<Phase> {
        let phase =
            |kind, ring, divide, class, direction| Phase { kind, ring, divide, class, direction };
        if rest.is_empty() {
            return vec![phase(PhaseKind::AllReduce, local, 1, 0, None)];
        }
        let part = u64::from(self.rings[local].nodes);
        let mut phases = vec![phase(PhaseKind::ReduceScatter, local, 1, 0, Some(0))];
        for (class, &ring) in (1..).zip(rest) {
            phases.push(phase(PhaseKind::AllReduce, ring, part, class, None));
        }
        phases.push(phase(PhaseKind::AllGather, local, part, last, Some(1)));
        phases
    }

    /// Reduce-scatter with decreasing shards, all-reduce over the last ring, all-gather in reverse
    /// order.
    fn nest(&self, live: &[usize], last: usize) -> Vec<Phase> {
        let Some((&turn, before)) = live.split_last() else { return Vec::new() };
        let mut phases = self.scatter(before);
        let divide = before.iter().map(|&ring| u64::from(self.rings[ring].nodes)).product();
        let (kind, class) = (PhaseKind::AllReduce, before.len());
        phases.push(Phase { kind, ring: turn, divide, class, direction: None });
        phases.extend(self.gather(before, last));
        phases
    }

    /// Over the rings first to last, with decreasing shards.
    fn scatter(&self, live: &[usize]) -> Vec<Phase> {
        let mut divide = 1;
        let phase = |(class, &ring): (usize, &usize)| {
            let phase =
                Phase { kind: PhaseKind::ReduceScatter, ring, divide, class, direction: None };
            divide *= u64::from(self.rings[ring].nodes);
            phase
        };
        live.iter().enumerate().map(phase).collect()
    }

    /// Over the rings last to first, with increasing shards.
    fn gather(&self, live: &[usize], last: usize) -> Vec<Phase> {
        let mut divide = 1;
        let phase = |(back, &ring): (usize, &usize)| {
            divide *= u64::from(self.rings[ring].nodes);
            let class = last - back;
            Phase { kind: PhaseKind::AllGather, ring, divide, class, direction: None }
        };
        let mut phases: Vec<Phase> = live.iter().enumerate().map(phase).collect();
        phases.reverse();
        phases
    }
}

/// The shape of a phase for chunks of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The phase.
    pub phase: Phase,
    /// Its first step; steps are numbered through all phases of a collective.
    pub first: u32,
    /// Its number of steps; data received in each step is handled once.
    pub steps: u32,
    /// Packets sent per step.
    pub pieces: u32,
    /// Bytes of a packet, except the last of a step.
    pub piece: Bytes,
    /// Bytes of the last packet of a step.
    pub last: Bytes,
    /// Bytes of the chunk as it enters.
    pub entry: Bytes,
}

impl Shape {
    /// Bytes of a packet.
    #[inline]
    #[must_use]
    pub fn bytes(&self, piece: u32) -> Bytes {
        if piece + 1 == self.pieces { self.last } else { self.piece }
    }

    /// Time of all steps on their ring without contention: packets are pipelined, and a step starts
    /// when the first packet of the previous one arrives.
    #[must_use]
    pub fn alone(&self, ring: Ring) -> Time {
        let first = ring.per_byte.of(self.bytes(0)) + ring.latency;
        let all = ring.per_byte.of(Bytes(u64::from(self.pieces - 1) * self.piece.0 + self.last.0));
        first.max(all).times(u64::from(self.steps.saturating_sub(1))) + all + ring.latency
    }

    /// How a local packet is handled.
    #[inline]
    #[must_use]
    pub fn sending(&self) -> Handling {
        if self.phase.kind == PhaseKind::AllGather {
            Handling::SendReduced
        } else {
            Handling::SendOwn
        }
    }

    /// How a packet received in `step` is handled, unless it is forwarded in an all-to-all.
    #[inline]
    #[must_use]
    pub fn receiving(&self, step: u32) -> Handling {
        let step = step - self.first;
        let last = step + 1 == self.steps;
        match self.phase.kind {
            PhaseKind::AllToAll | PhaseKind::Shift => Handling::Keep,
            PhaseKind::ReduceScatter if last => Handling::ReduceAndKeep,
            PhaseKind::ReduceScatter => Handling::ReduceAndSend,
            PhaseKind::AllReduce if 2 * (step + 1) < self.steps => Handling::ReduceAndSend,
            PhaseKind::AllReduce if 2 * (step + 1) == self.steps => Handling::ReduceKeepAndSend,
            PhaseKind::AllReduce | PhaseKind::AllGather if last => Handling::Keep,
            PhaseKind::AllReduce | PhaseKind::AllGather => Handling::KeepAndSend,
        }
    }

    /// Total number of handled packets.
    #[must_use]
    pub fn handled(&self) -> u32 {
        self.steps * self.pieces
    }
}

/// The shapes of a chunk of `bytes` in each of `phases`, in packets of at most `most` bytes. Shards
/// of a chunk that differ by a byte are timed as the longest.
#[must_use]
pub fn shapes(torus: &Torus, phases: &[Phase], bytes: Bytes, most: Bytes) -> Vec<Shape> {
    let mut first = 0;
    let mut shapes = Vec::with_capacity(phases.len());
    for &phase in phases {
        let nodes = match phase.kind {
            PhaseKind::AllToAll => torus.npus(),
            _ => torus.rings[phase.ring].nodes,
        };
        let steps = match phase.kind {
            PhaseKind::AllReduce => 2 * (nodes - 1),
            PhaseKind::Shift => 1,
            _ => nodes - 1,
        };
        let entry = Bytes(bytes.0.div_ceil(phase.divide));
        let part = match phase.kind {
            PhaseKind::AllGather | PhaseKind::Shift => entry.0,
            _ => entry.0.div_ceil(u64::from(nodes)),
        };
        let pieces = part.div_ceil(most.0);
        let last = Bytes(part - (pieces - 1) * most.0);
        let pieces = u32::try_from(pieces).expect("a chunk has fewer than 2^32 packets");
        shapes.push(Shape { phase, first, steps, pieces, piece: most, last, entry });
        first += steps;
    }
    shapes
}
