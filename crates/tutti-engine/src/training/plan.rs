//! How a collective goes over a torus: phases on its rings, in chunks, in steps, in pieces.
//!
//! **All-reduce** on an L x V x H torus is reduce-scatter over the first ring, all-reduce over each other
//! ring with what is left of a chunk, and all-gather over the first (Rashidi et al. 2021, section V;
//! ASTRA-sim's "localBWAware" of 2020). Nested, it is reduce-scatter over each ring but the last with less and
//! less, all-reduce over the last, and all-gather back (the same of ASTRA-sim 2). Reduce-scatter goes over the rings first to last, all-gather back.
//! **All-to-all** is one phase: each piece goes first along the first ring, then the second, and so on,
//! the shorter way round. A **shift** sends to the next NPU of the last ring.

use crate::endpoint::Handling;
use crate::endpoint::ace::PhaseLoad;
use crate::workload::{Exchange, Rings};
use tutti_schedule::collective::Collective;
use tutti_units::{Bytes, Time, TimePerByte};

/// A ring of a torus, both ways round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    /// NPUs on it.
    pub nodes: u32,
    /// What a byte takes over a link, in one direction.
    pub per_byte: TimePerByte,
    /// From the end of a piece at one end of a link to its end at the other.
    pub latency: Time,
}

/// What happens on a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PhaseKind {
    /// Each NPU ends with its part of the reduction.
    ReduceScatter,
    /// Reduce-scatter and all-gather, without a pause.
    AllReduce,
    /// Each NPU ends with every NPU's part.
    AllGather,
    /// Each NPU has something for each other, on all rings.
    AllToAll,
    /// Each NPU sends to the next one.
    Shift,
}

/// A phase of a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// What happens.
    pub kind: PhaseKind,
    /// On which ring; the last one where it is all of them.
    pub ring: usize,
    /// A chunk of c bytes enters with c / `divide` bytes.
    pub divide: u64,
    /// Whose partition and state machines it uses: a phase of the all-reduce.
    pub class: usize,
    /// The way round, where it is fixed; otherwise chunks alternate.
    pub way: Option<u8>,
}

impl Phase {
    /// The way round that a chunk goes: chunks alternate where it is not fixed.
    #[inline]
    #[must_use]
    pub fn way_of(&self, chunk: u32) -> u8 {
        self.way.unwrap_or(u8::from(chunk % 2 == 1))
    }
}

/// A torus: its rings, the one inside a package first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Torus {
    rings: Vec<Ring>,
    /// What a byte takes on each ring after its link, at something that takes a whole piece before it
    /// sends it on and serves all at once; none: nothing.
    relays: Vec<Option<TimePerByte>>,
    nested: bool,
}

/// Why there is no such torus.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, tutti_units::Refusal)]
#[refusal(class = "TopologyError")]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum TorusError {
    /// Fewer than two NPUs.
    #[error("a torus of {npus} NPUs has nobody to talk to: expected at least 2")]
    #[refusal(kind = "torus_too_small")]
    TooFew { npus: u64 },
    /// More NPUs than can be counted.
    #[error("a torus of {npus} NPUs is too large: expected at most 2^24")]
    #[refusal(kind = "torus_too_large")]
    TooMany { npus: u64 },
    /// A ring without nodes.
    #[error("ring {ring} has no NPU: expected at least 1")]
    #[refusal(kind = "empty_ring")]
    NoNodes { ring: usize },
    /// A link without latency: what happens at both of its ends at once has no order.
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

    /// The same with a switch between the NPUs of a ring: a piece arrives whole, and takes so long again for
    /// each byte.
    #[must_use]
    pub fn relayed(mut self, ring: usize, per_byte: TimePerByte) -> Torus {
        if let Some(relay) = self.relays.get_mut(ring) {
            *relay = Some(per_byte);
        }
        self
    }

    /// The same with all-reduces that reduce-scatter over every ring but the last, and all-gather back.
    #[must_use]
    pub fn nested(self) -> Torus {
        Torus { nested: true, ..self }
    }

    /// What `bytes` take on a ring after their link.
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

    /// The NPU one step from `npu` on `ring`, the way round that is asked.
    #[must_use]
    pub fn neighbour(&self, npu: u32, ring: usize, way: u8) -> u32 {
        let stride: u32 = self.rings[..ring].iter().map(|ring| ring.nodes).product();
        let nodes = self.rings[ring].nodes;
        let at = npu / stride % nodes;
        let step = if way == 0 { 1 } else { nodes - 1 };
        npu - at * stride + (at + step) % nodes * stride
    }

    /// The ring and the way round of the hop after `hop` hops towards the NPU that lies `offset` further
    /// (as an index counted from the sender); none when it is there.
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
            // Half way round, those of which the other distances sum to an odd number go back.
            let tie = u32::from(ahead == back) * ((sum - ahead) & 1);
            let (hops, way) = if ahead < back + 1 - tie { (ahead, 0) } else { (back, 1) };
            if before < hops {
                return Some((index, way));
            }
            before -= hops;
        }
        None
    }

    /// The same torus with the rings that are not in `rings` cut open: each NPU is alone on them.
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

    /// The phases of what is communicated on the rings of `within`; none where it has no plan, or nobody is on
    /// them. Classes go up from phase to phase, whatever the collective: so chunks that wait for room in
    /// the next partition never wait in a circle.
    #[must_use]
    pub fn phases(&self, exchange: impl Into<Exchange>, within: Rings) -> Option<Vec<Phase>> {
        let part = self.within(within);
        let live: Vec<usize> =
            (0..part.rings.len()).filter(|&ring| part.rings[ring].nodes > 1).collect();
        let (&local, rest) = live.split_first()?;
        let last = self.classes() - 1;
        let Exchange::Collective(collective) = exchange.into() else {
            let (kind, ring) = (PhaseKind::Shift, live[live.len() - 1]);
            return Some(vec![Phase { kind, ring, divide: 1, class: last, way: Some(0) }]);
        };
        match collective {
            Collective::AllReduce if self.nested => Some(part.nest(&live, last)),
            Collective::AllReduce => Some(part.all_reduce(local, rest, last)),
            Collective::ReduceScatter => Some(part.scatter(&live)),
            Collective::AllGather => Some(part.gather(&live, last)),
            Collective::AllToAll => {
                let (kind, ring) = (PhaseKind::AllToAll, live[live.len() - 1]);
                Some(vec![Phase { kind, ring, divide: 1, class: last, way: None }])
            }
            _ => None,
        }
    }

    /// What the phases of an all-reduce ask of an ACE, for chunks of `chunk` bytes in pieces of at most
    /// `piece`. Where there are all-to-alls too, their phase is one of them: it is then as long as the
    /// longer of the two, with the mean of their chunks (Rashidi et al. 2021, section IV).
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
        let links = if shape.phase.way.is_some() { None } else { both };
        let (chunk, time) = (shape.entry, shape.alone(ring));
        PhaseLoad { links: links.unwrap_or(ring.per_byte), chunk, time }
    }

    /// What an all-to-all of one chunk takes when nothing else is under way, about: the work of its
    /// busiest link and its longest way.
    fn exchange_alone(&self, shape: &Shape) -> Time {
        let part = Bytes(u64::from(shape.pieces - 1) * shape.piece.0 + shape.last.0);
        let mut work = vec![Time::ZERO; 2 * self.rings.len()];
        let mut longest = Time::ZERO;
        for offset in 1..self.npus() {
            let mut way = Time::ZERO;
            for (ring, back) in (0..).map_while(|hop| self.hop(offset, hop)) {
                work[2 * ring + usize::from(back)] += self.rings[ring].per_byte.of(part);
                way += self.rings[ring].latency;
            }
            longest = longest.max(way);
        }
        work.into_iter().max().unwrap_or(Time::ZERO) + longest
    }

    fn all_reduce(&self, local: usize, rest: &[usize], last: usize) -> Vec<Phase> {
        let phase = |kind, ring, divide, class, way| Phase { kind, ring, divide, class, way };
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

    /// Reduce-scatter with less and less, all-reduce over the last ring, all-gather back.
    fn nest(&self, live: &[usize], last: usize) -> Vec<Phase> {
        let Some((&turn, before)) = live.split_last() else { return Vec::new() };
        let mut phases = self.scatter(before);
        let divide = before.iter().map(|&ring| u64::from(self.rings[ring].nodes)).product();
        let (kind, class) = (PhaseKind::AllReduce, before.len());
        phases.push(Phase { kind, ring: turn, divide, class, way: None });
        phases.extend(self.gather(before, last));
        phases
    }

    /// Over the rings first to last, with less and less.
    fn scatter(&self, live: &[usize]) -> Vec<Phase> {
        let mut divide = 1;
        let phase = |(class, &ring): (usize, &usize)| {
            let phase = Phase { kind: PhaseKind::ReduceScatter, ring, divide, class, way: None };
            divide *= u64::from(self.rings[ring].nodes);
            phase
        };
        live.iter().enumerate().map(phase).collect()
    }

    /// Over the rings last to first, with more and more.
    fn gather(&self, live: &[usize], last: usize) -> Vec<Phase> {
        let mut divide = 1;
        let phase = |(back, &ring): (usize, &usize)| {
            divide *= u64::from(self.rings[ring].nodes);
            let class = last - back;
            Phase { kind: PhaseKind::AllGather, ring, divide, class, way: None }
        };
        let mut phases: Vec<Phase> = live.iter().enumerate().map(phase).collect();
        phases.reverse();
        phases
    }
}

/// How a chunk of one size goes through a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The phase.
    pub phase: Phase,
    /// The step with which it begins; steps count on through all phases of a collective.
    pub first: u32,
    /// How many steps it has: what arrives in each is handled once.
    pub steps: u32,
    /// Pieces sent in each step.
    pub pieces: u32,
    /// Bytes of a piece, but for the last of a step.
    pub piece: Bytes,
    /// Bytes of the last piece of a step.
    pub last: Bytes,
    /// Bytes of the chunk as it enters.
    pub entry: Bytes,
}

impl Shape {
    /// Bytes of a piece.
    #[inline]
    #[must_use]
    pub fn bytes(&self, piece: u32) -> Bytes {
        if piece + 1 == self.pieces { self.last } else { self.piece }
    }

    /// What all steps take on their ring when nothing is in the way: pieces follow one another, and a step
    /// begins when the first piece of the one before has come.
    #[must_use]
    pub fn alone(&self, ring: Ring) -> Time {
        let first = ring.per_byte.of(self.bytes(0)) + ring.latency;
        let all = ring.per_byte.of(Bytes(u64::from(self.pieces - 1) * self.piece.0 + self.last.0));
        first.max(all).times(u64::from(self.steps.saturating_sub(1))) + all + ring.latency
    }

    /// How an NPU's own piece is handled.
    #[inline]
    #[must_use]
    pub fn sending(&self) -> Handling {
        if self.phase.kind == PhaseKind::AllGather {
            Handling::SendReduced
        } else {
            Handling::SendOwn
        }
    }

    /// How a piece that has come in `step` is handled; what is passed on in an all-to-all is not asked.
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

    /// Pieces that are handled in all.
    #[must_use]
    pub fn handled(&self) -> u32 {
        self.steps * self.pieces
    }
}

/// The shapes of a chunk of `bytes` in each of `phases`, in pieces of at most `most` bytes. Parts of a
/// chunk that differ by a byte are timed as the longest of them.
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
        let pieces = u32::try_from(pieces).expect("a chunk is cut into fewer than 2^32 pieces");
        shapes.push(Shape { phase, first, steps, pieces, piece: most, last, entry });
        first += steps;
    }
    shapes
}
