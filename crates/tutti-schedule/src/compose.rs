//! Combinators: schedules built from schedules.
//!
//! [`Sequence`] runs one schedule after another; [`Embedded`] runs a schedule inside groups of the
//! ranks and on a part of the chunks of a larger one. Both are streams themselves and do not unroll
//! the steps.

use std::sync::Arc;

use super::{ChunkRange, Schedule, Shape, Slot, Step};
use crate::collective::Collective;
use tutti_units::ids::RankId;

/// Incompatible schedules.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum ComposeError {
    /// A sequence without phases.
    #[error("a sequence has at least one phase")]
    NoPhases,
    /// Phases for different numbers of ranks or chunks.
    #[error(
        "phase {phase} has {ranks} ranks and {chunks} chunks: expected those of the first phase"
    )]
    Unlike { phase: String, ranks: u32, chunks: u32 },
    /// A phase before the last one with a result outside the data slot.
    #[error(
        "{name} leaves its result outside the data slot: only the last phase of a sequence may do so"
    )]
    OutOfPlace { name: String },
    /// A schedule embedded in groups of another size.
    #[error("{name} has {ranks} ranks: expected {size}, the group size")]
    GroupSize { name: String, ranks: u32, size: u32 },
    /// Groups that do not tile the ranks.
    #[error("groups of {size} ranks at distance {stride} do not fill {ranks} ranks")]
    Groups { size: u32, stride: u32, ranks: u32 },
    /// A part that is not a multiple of the schedule's chunks.
    #[error(
        "{name} divides its payload into {chunks} chunks: expected a divisor of {part}, the chunks of the part"
    )]
    Chunks { name: String, chunks: u32, part: u32 },
    /// A phase that does not exist.
    #[error("{name} has no phase {phase}: its phases are 0 to {}", phases.saturating_sub(1))]
    NoSuchPhase { name: String, phase: u32, phases: u32 },
}

/// One schedule after another, on the same ranks and chunks; see [`Sequence::new`].
pub struct Sequence {
    shape: Shape,
    phases: Vec<Phase>,
}

/// A named part of a [`Sequence`].
pub struct Phase {
    /// Shown in drawings; empty to use only the names of the steps.
    pub name: String,
    /// The schedule of the phase.
    pub schedule: Arc<dyn Schedule>,
}

impl Phase {
    /// Returns a named phase.
    pub fn new(name: impl Into<String>, schedule: Arc<dyn Schedule>) -> Phase {
        Phase { name: name.into(), schedule }
    }
}

impl Sequence {
    /// Returns the sequence of the phases. A rank starts the next phase as soon as it completes the
    /// previous one, without a barrier.
    ///
    /// # Errors
    /// If the phases differ in ranks or chunks, or one before the last works out of place.
    pub fn new(
        name: String,
        collective: Collective,
        phases: Vec<Phase>,
    ) -> Result<Sequence, ComposeError> {
        let (Some(first), Some(last)) = (phases.first(), phases.last()) else {
            return Err(ComposeError::NoPhases);
        };
        let (first, last) = (first.schedule.shape(), last.schedule.shape());
        for (i, Phase { name, schedule }) in phases.iter().enumerate() {
            let &Shape { ranks, chunks, result, .. } = schedule.shape();
            if (ranks, chunks) != (first.ranks, first.chunks) {
                return Err(ComposeError::Unlike { phase: name.clone(), ranks, chunks });
            }
            if result != Slot::DATA && i + 1 < phases.len() {
                return Err(ComposeError::OutOfPlace { name: schedule.shape().name.clone() });
            }
        }
        let shape = Shape {
            name,
            collective,
            ranks: first.ranks,
            chunks: first.chunks,
            slots: phases.iter().map(|phase| phase.schedule.shape().slots).max().unwrap_or(1),
            result: last.result,
        };
        Ok(Sequence { shape, phases })
    }

    /// Returns the phase of a rank's step, and the step within it.
    fn locate(&self, rank: RankId, mut step: u32) -> (usize, u32) {
        let last = self.phases.len() - 1;
        for (at, phase) in self.phases[..last].iter().enumerate() {
            let steps = phase.schedule.steps(rank);
            if step < steps {
                return (at, step);
            }
            step -= steps;
        }
        (last, step)
    }
}

impl Schedule for Sequence {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, rank: RankId) -> u32 {
        self.phases.iter().map(|phase| phase.schedule.steps(rank)).sum()
    }

    fn step(&self, rank: RankId, step: u32, out: &mut Step) {
        let (at, step) = self.locate(rank, step);
        self.phases[at].schedule.step(rank, step, out);
    }

    fn moves_chunks(&self) -> bool {
        let phases = &self.phases;
        self.shape.moves_chunks() || phases.iter().any(|phase| phase.schedule.moves_chunks())
    }

    fn phases(&self) -> u32 {
        self.phases.iter().map(|phase| phase.schedule.phases()).sum()
    }

    fn phase(&self, rank: RankId, step: u32) -> u32 {
        let (at, step) = self.locate(rank, step);
        let before: u32 = self.phases[..at].iter().map(|phase| phase.schedule.phases()).sum();
        before + self.phases[at].schedule.phase(rank, step)
    }

    fn is_ordered(&self, rank: RankId, step: u32) -> bool {
        let (at, step) = self.locate(rank, step);
        self.phases[at].schedule.is_ordered(rank, step)
    }

    /// The digits of all phases, if they do not overlap.
    fn symmetry(&self) -> Option<Vec<Digit>> {
        let mut all = Vec::new();
        for phase in &self.phases {
            all.extend(phase.schedule.symmetry()?);
        }
        all.sort_unstable_by_key(|digit| (digit.stride, digit.size));
        all.dedup();
        let tiles = |pair: &[Digit]| pair[1].stride.is_multiple_of(pair[0].stride * pair[0].size);
        all.windows(2).all(tiles).then_some(all)
    }

    fn channel(&self, rank: RankId, step: u32, send: u32) -> u32 {
        let (at, step) = self.locate(rank, step);
        self.phases[at].schedule.channel(rank, step, send)
    }

    fn step_name(&self, rank: RankId, step: u32) -> String {
        let (at, step) = self.locate(rank, step);
        let Phase { name, schedule } = &self.phases[at];
        let inner = schedule.step_name(rank, step);
        if name.is_empty() { inner } else { format!("{name}: {inner}") }
    }
}

/// A digit of a rank number in a mixed radix: `rank / stride % size`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Digit {
    /// The distance between ranks whose digits differ by one.
    pub stride: u32,
    /// The number of values of the digit.
    pub size: u32,
}

impl Digit {
    /// Returns the digit of `rank`.
    #[inline]
    #[must_use]
    pub fn of(self, rank: RankId) -> u32 {
        rank.0 / self.stride % self.size
    }
}

/// The placement of an inner schedule in the larger one.
#[derive(Clone, Debug)]
pub struct Placement {
    /// Ranks that differ only in this digit form a group; the digit is the rank within it.
    pub group: Digit,
    /// If only some groups take part: their ranks modulo the stride.
    pub only: Option<u32>,
    /// The size of the inner payload in chunks of the outer payload.
    pub part: u32,
    /// The first chunk of the part: the sum of these digits of the rank, each times its weight in
    /// chunks. It must be equal for all ranks of a group.
    pub first: Vec<(Digit, u32)>,
    /// The data slot of the inner schedule.
    pub data: Slot,
    /// Its first scratch slot; the others follow.
    pub scratch: Slot,
}

/// A schedule inside groups of ranks of a larger one, on a part of its chunks.
pub struct Embedded {
    shape: Shape,
    inner: Arc<dyn Schedule>,
    place: Placement,
    /// Outer chunks per inner chunk.
    unit: u32,
}

impl Embedded {
    /// Runs `inner` in every group concurrently. The shape's collective is that of `inner`, whose
    /// postcondition holds inside each group, not for all ranks.
    ///
    /// # Errors
    /// If ranks or chunks do not fit, or `inner` works out of place.
    pub fn new(
        inner: Arc<dyn Schedule>,
        ranks: u32,
        chunks: u32,
        place: Placement,
    ) -> Result<Embedded, ComposeError> {
        if inner.shape().result != Slot::DATA {
            return Err(ComposeError::OutOfPlace { name: inner.shape().name.clone() });
        }
        Embedded::out_of_place(inner, ranks, chunks, place)
    }

    /// As [`Embedded::new`], for an `inner` whose result may be in one of its scratch slots.
    ///
    /// # Errors
    /// If ranks or chunks do not fit.
    pub fn out_of_place(
        inner: Arc<dyn Schedule>,
        ranks: u32,
        chunks: u32,
        place: Placement,
    ) -> Result<Embedded, ComposeError> {
        let of = inner.shape();
        let Digit { stride, size } = place.group;
        let name = || of.name.clone();
        if of.ranks != size {
            return Err(ComposeError::GroupSize { name: name(), ranks: of.ranks, size });
        }
        if size == 0
            || stride == 0
            || !u64::from(ranks).is_multiple_of(u64::from(size) * u64::from(stride))
        {
            return Err(ComposeError::Groups { size, stride, ranks });
        }
        if place.part == 0 || !place.part.is_multiple_of(of.chunks) {
            return Err(ComposeError::Chunks { name: name(), chunks: of.chunks, part: place.part });
        }
        let result = if of.result == Slot::DATA {
            Slot::DATA
        } else {
            Slot(place.scratch.0 + of.result.0 - 1)
        };
        let shape = Shape {
            name: name(),
            collective: of.collective,
            ranks,
            chunks,
            slots: (place.scratch.0 + of.slots - 1).max(place.data.0 + 1),
            result,
        };
        let unit = place.part / of.chunks;
        Ok(Embedded { shape, inner, place, unit })
    }

    /// Returns the rank within its group; `None` if the group does not take part.
    #[inline]
    fn member(&self, rank: RankId) -> Option<RankId> {
        let Digit { stride, size } = self.place.group;
        if self.place.only.is_some_and(|only| rank.0 % stride != only) {
            return None;
        }
        Some(RankId(rank.0 / stride % size))
    }

    #[inline]
    fn first_chunk(&self, rank: RankId) -> u32 {
        self.place.first.iter().map(|&(digit, weight)| digit.of(rank) * weight).sum()
    }
}

impl Schedule for Embedded {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, rank: RankId) -> u32 {
        self.member(rank).map_or(0, |member| self.inner.steps(member))
    }

    fn step(&self, rank: RankId, step: u32, out: &mut Step) {
        let Some(member) = self.member(rank) else {
            return;
        };
        self.inner.step(member, step, out);
        let stride = self.place.group.stride;
        let zeroth = rank.0 - member.0 * stride;
        let first = self.first_chunk(rank);
        let (data, scratch, unit) = (self.place.data, self.place.scratch.0, self.unit);
        out.rewrite(
            |peer| RankId(zeroth + peer.0 * stride),
            |slot| if slot == Slot::DATA { data } else { Slot(scratch + slot.0 - 1) },
            |run| ChunkRange::new(first + run.start * unit, first + run.end * unit),
        );
    }

    fn moves_chunks(&self) -> bool {
        self.inner.moves_chunks()
    }

    fn phases(&self) -> u32 {
        self.inner.phases()
    }

    fn phase(&self, rank: RankId, step: u32) -> u32 {
        self.member(rank).map_or(0, |member| self.inner.phase(member, step))
    }

    fn is_ordered(&self, rank: RankId, step: u32) -> bool {
        self.member(rank).is_some_and(|member| self.inner.is_ordered(member, step))
    }

    /// Groups act alike if all take part.
    fn symmetry(&self) -> Option<Vec<Digit>> {
        let outer = self.place.group.stride;
        let scaled = |Digit { stride, size }| Digit { stride: stride * outer, size };
        let inner = self.place.only.is_none().then(|| self.inner.symmetry())??;
        Some(inner.into_iter().map(scaled).collect())
    }

    fn channel(&self, rank: RankId, step: u32, send: u32) -> u32 {
        self.member(rank).map_or(0, |member| self.inner.channel(member, step, send))
    }

    fn step_name(&self, rank: RankId, step: u32) -> String {
        self.member(rank).map_or_else(String::new, |member| self.inner.step_name(member, step))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Local;

    /// Every rank sends chunk 1 to the next, receives into scratch and folds, in one step.
    struct RingStep(Shape);

    impl Schedule for RingStep {
        fn shape(&self) -> &Shape {
            &self.0
        }

        fn steps(&self, rank: RankId) -> u32 {
            1 + u32::from(rank == RankId(0))
        }

        fn step(&self, rank: RankId, _step: u32, out: &mut Step) {
            let (n, one) = (self.0.ranks, ChunkRange::one(1));
            out.send(RankId((rank.0 + 1) % n), Slot::DATA, one);
            out.recv(RankId((rank.0 + n - 1) % n), Slot(1), one);
            out.reduce(Slot::DATA, [Slot(1), Slot::DATA], one);
            out.copy(Slot::DATA, one, Slot(1), 0);
        }
    }

    fn ring_step(ranks: u32, result: Slot) -> Arc<dyn Schedule> {
        let collective = Collective::AllReduce;
        let shape =
            Shape { name: "ring_step".to_owned(), collective, ranks, chunks: 2, slots: 2, result };
        Arc::new(RingStep(shape))
    }

    /// Groups {0, 2, 4}, {1, 3, 5}, {6, 8, 10}, {7, 9, 11}; each half of the ranks has half of the
    /// chunks.
    fn place() -> Placement {
        let group = Digit { stride: 2, size: 3 };
        let half = Digit { stride: 6, size: 2 };
        let first = vec![(half, 6)];
        Placement { group, only: Some(1), part: 6, first, data: Slot(1), scratch: Slot(4) }
    }

    #[test]
    fn an_embedded_schedule_stays_in_its_group_part_and_slots() {
        let embedded = Embedded::new(ring_step(3, Slot::DATA), 12, 12, place()).unwrap();
        let mut step = Step::new();
        // Rank 11 is member 2 of {7, 9, 11}; chunk 1 of 2 in the second six chunks is 9..12.
        embedded.step(RankId(11), 0, &mut step);
        let run = ChunkRange::new(9, 12);
        assert_eq!((step.sends[0].peer, step.sends[0].slot), (RankId(7), Slot(1)));
        assert_eq!((step.recvs[0].peer, step.recvs[0].slot), (RankId(9), Slot(4)));
        assert_eq!((step.sends[0].chunks, step.recvs[0].chunks), (run, run));
        let [Local::Reduce { into, operands, chunks }, copy] = step.locals[..] else {
            panic!("{:?}", step.locals)
        };
        assert_eq!((into, chunks), (Slot(1), run));
        assert_eq!(step.operands(operands), [Slot(4), Slot(1)]);
        assert_eq!(copy, Local::Copy { from: Slot(1), into: Slot(4), chunks: run, to: 6 });
        // Only ranks that are 1 modulo 2 take part; the first of each group takes two steps.
        let steps: Vec<u32> = (0..12).map(|rank| embedded.steps(RankId(rank))).collect();
        assert_eq!(steps, [0, 2, 0, 1, 0, 1, 0, 2, 0, 1, 0, 1]);
        assert_eq!(embedded.shape().slots, 5);
    }

    #[test]
    fn a_sequence_goes_through_each_rank_s_own_steps() {
        let phase =
            |name: &str| Phase { name: name.to_owned(), schedule: ring_step(3, Slot::DATA) };
        let phases = vec![phase("one"), phase(""), phase("three")];
        let sequence = Sequence::new("all".to_owned(), Collective::AllReduce, phases).unwrap();
        let names = |rank| -> Vec<String> {
            let rank = RankId(rank);
            (0..sequence.steps(rank)).map(|step| sequence.step_name(rank, step)).collect()
        };
        let twice =
            ["one: step 0", "one: step 1", "step 0", "step 1", "three: step 0", "three: step 1"];
        assert_eq!(names(0), twice);
        assert_eq!(names(1), ["one: step 0", "step 0", "three: step 0"]);
    }

    #[test]
    fn incompatible_schedules_are_refused() {
        let refusal = |inner, ranks, place| Embedded::new(inner, ranks, 12, place).err().unwrap();
        let fits = ring_step(3, Slot::DATA);
        let error = refusal(ring_step(4, Slot::DATA), 12, place());
        assert!(matches!(error, ComposeError::GroupSize { ranks: 4, size: 3, .. }));
        let error = refusal(fits.clone(), 10, place());
        assert_eq!(error, ComposeError::Groups { size: 3, stride: 2, ranks: 10 });
        let error = refusal(fits.clone(), 12, Placement { part: 5, ..place() });
        assert!(matches!(error, ComposeError::Chunks { chunks: 2, part: 5, .. }));
        let error = refusal(ring_step(3, Slot(1)), 12, place());
        assert!(matches!(error, ComposeError::OutOfPlace { .. }));

        let phase = |schedule| Phase { name: String::new(), schedule };
        let sequence = |phases| Sequence::new(String::new(), Collective::AllReduce, phases).err();
        assert_eq!(sequence(vec![]), Some(ComposeError::NoPhases));
        let unlike = sequence(vec![phase(fits.clone()), phase(ring_step(4, Slot::DATA))]);
        assert!(matches!(unlike, Some(ComposeError::Unlike { ranks: 4, .. })));
        let out = || phase(ring_step(3, Slot(1)));
        assert!(matches!(
            sequence(vec![out(), phase(fits.clone())]),
            Some(ComposeError::OutOfPlace { .. })
        ));
        assert_eq!(sequence(vec![phase(fits), out()]), None);
    }
}
