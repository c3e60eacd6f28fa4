//! all_to_all along the digits of the rank numbers, sequentially.
//!
//! Ranks are numbered in a mixed radix, the first digit varying fastest. Along each digit, the
//! ranks that differ only in that digit perform an all_to_all. It sends all parts for ranks with
//! the same digit together: N / size parts to each peer. Afterwards that digit of a part's position
//! denotes its source instead of its destination; after all digits, the complete position does.
//! Before each all_to_all the parts are reordered so that its digit is the most significant.
//!
//! If the steps of all inner all_to_alls are ordered, each is a phase: a rank sends nothing along a
//! digit before it has received everything along the previous one.

use std::sync::Arc;

use crate::collective::Collective;
use crate::{ChunkRange, ComposeError, Digit, Embedded, Placement, Schedule, Shape, Slot, Step};
use tutti_units::gcd;
use tutti_units::ids::RankId;

/// The result slot of every inner all_to_all and of the complete one.
const RESULT: Slot = Slot(1);

/// The all_to_all of one digit, and the copies before it.
struct Level {
    name: String,
    inner: Embedded,
    from: Slot,
    /// The most significant digit in the previous order; the others are in rank order.
    before: usize,
    digit: usize,
}

/// The all_to_alls of all digits, in order.
pub(super) struct Exchange {
    shape: Shape,
    sizes: Vec<u32>,
    levels: Vec<Level>,
    /// The data slot of the inner schedules.
    data: Slot,
    /// Whether the steps of all inner schedules are ordered.
    is_ordered: bool,
}

impl Exchange {
    /// `inners` are all_to_alls for the sizes of the digits, each with a name for its steps.
    pub(super) fn new(
        name: String,
        sizes: &[u32],
        inners: Vec<(String, Arc<dyn Schedule>)>,
    ) -> Result<Exchange, ComposeError> {
        let ranks = sizes.iter().product::<u32>();
        let divided = inners.iter().map(|(_, inner)| u128::from(inner.shape().chunks));
        let common = |chunks: u128, inner| chunks / gcd(chunks, inner) * inner;
        let chunks = u32::try_from(divided.fold(u128::from(ranks), common)).unwrap_or(u32::MAX);
        let data = Slot(inners.iter().map(|(_, inner)| inner.shape().slots).max().unwrap_or(2));
        let is_ordered = inners.iter().all(|(_, inner)| inner.is_ordered(RankId(0), 0));
        let (mut levels, mut stride) = (Vec::new(), 1);
        for (digit, (name, inner)) in inners.into_iter().enumerate() {
            let place = Placement {
                group: Digit { stride, size: sizes[digit] },
                only: None,
                part: chunks,
                first: Vec::new(),
                data,
                scratch: RESULT,
            };
            let inner = Embedded::out_of_place(inner, ranks, chunks, place)?;
            // In rank order the last digit is the most significant.
            let (from, before) =
                if digit == 0 { (Slot::DATA, sizes.len() - 1) } else { (RESULT, digit - 1) };
            levels.push(Level { name, inner, from, before, digit });
            stride *= sizes[digit];
        }
        let collective = Collective::AllToAll;
        let shape = Shape { name, collective, ranks, chunks, slots: data.0 + 1, result: RESULT };
        Ok(Exchange { shape, sizes: sizes.to_vec(), levels, data, is_ordered })
    }

    /// Returns the position, with `first` as the leading digit, of a position in rank order.
    fn with_first(&self, first: usize, position: u32) -> u32 {
        let below: u32 = self.sizes[..first].iter().product();
        let size = self.sizes[first];
        let (digit, rest) = (position / below % size, position / (below * size) * below);
        digit * (self.shape.ranks / size) + rest + position % below
    }

    /// Copies parts from one order to the other; adjacent parts in one copy.
    fn reorder(&self, level: &Level, out: &mut Step) {
        let unit = self.shape.chunks / self.shape.ranks;
        let shift = |run: (u32, u32, u32)| {
            let (from, to, len) = run;
            (ChunkRange::new(from * unit, (from + len) * unit), to * unit)
        };
        let mut run: Option<(u32, u32, u32)> = None;
        for position in 0..self.shape.ranks {
            let from = self.with_first(level.before, position);
            let to = self.with_first(level.digit, position);
            run = match run {
                Some((start, into, len)) if start + len == from && into + len == to => {
                    Some((start, into, len + 1))
                }
                other => {
                    if let Some((chunks, into)) = other.map(shift) {
                        out.copy(level.from, chunks, self.data, into);
                    }
                    Some((from, to, 1))
                }
            };
        }
        if let Some((chunks, into)) = run.map(shift) {
            out.copy(level.from, chunks, self.data, into);
        }
    }

    /// Returns the level of a step of a rank and the step within it; the first step is the copies.
    fn locate(&self, rank: RankId, mut step: u32) -> Option<(&Level, u32)> {
        for level in &self.levels {
            let steps = 1 + level.inner.steps(rank);
            if step < steps {
                return Some((level, step));
            }
            step -= steps;
        }
        None
    }
}

impl Schedule for Exchange {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, rank: RankId) -> u32 {
        self.levels.iter().map(|level| 1 + level.inner.steps(rank)).sum()
    }

    fn step(&self, rank: RankId, step: u32, out: &mut Step) {
        match self.locate(rank, step) {
            Some((level, 0)) => self.reorder(level, out),
            Some((level, step)) => level.inner.step(rank, step - 1, out),
            None => {}
        }
    }

    fn phases(&self) -> u32 {
        if self.is_ordered { u32::try_from(self.levels.len()).unwrap_or(u32::MAX) } else { 1 }
    }

    fn phase(&self, rank: RankId, step: u32) -> u32 {
        let level = self.locate(rank, step).filter(|_| self.is_ordered);
        level.map_or(0, |(level, _)| u32::try_from(level.digit).unwrap_or(u32::MAX))
    }

    fn is_ordered(&self, rank: RankId, step: u32) -> bool {
        let at = self.locate(rank, step);
        at.is_some_and(|(level, step)| step > 0 && level.inner.is_ordered(rank, step - 1))
    }

    fn symmetry(&self) -> Option<Vec<Digit>> {
        let digits = self.levels.iter().map(|level| level.inner.symmetry());
        Some(digits.collect::<Option<Vec<_>>>()?.concat())
    }

    fn step_name(&self, rank: RankId, step: u32) -> String {
        match self.locate(rank, step) {
            Some((level, 0)) => format!("{}: copy", level.name),
            Some((level, step)) => {
                format!("{}: {}", level.name, level.inner.step_name(rank, step - 1))
            }
            None => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::{build, check};
    use crate::{Explicit, Layout};
    use tutti_units::Bytes;

    /// An all_to_all over digits of two is recursive doubling; one digit alone is the algorithm
    /// itself.
    #[test]
    fn digits_of_two_are_recursive_doubling() {
        let doubling = build("recursive_doubling", Collective::AllToAll, 16).unwrap();
        let nested = build("hierarchical:2x2x2x2:pairwise", Collective::AllToAll, 16).unwrap();
        check::same_steps(&*doubling, &*nested);
    }

    /// Rank 4 of 2x3 has the digits 0, 2. Its part for rank 3, with digits 1, 1, goes to rank 5
    /// first.
    #[test]
    fn parts_travel_digit_by_digit() {
        let schedule = build("hierarchical:2x3:pairwise", Collective::AllToAll, 6).unwrap();
        let mut out = Step::new();
        schedule.step(RankId(4), 0, &mut out);
        // By the first digit of the destination: 0, 2, 4, then 1, 3, 5.
        let order = [(0, 0), (1, 3), (2, 1), (3, 4), (4, 2), (5, 5)];
        let copies = order.map(|(part, to)| crate::Local::Copy {
            from: Slot::DATA,
            into: Slot(2),
            chunks: ChunkRange::one(part),
            to,
        });
        assert_eq!(out.locals, copies);
        out.clear();
        schedule.step(RankId(4), 1, &mut out);
        assert_eq!((out.sends[0].peer, out.sends[0].chunks), (RankId(5), ChunkRange::new(3, 6)));
    }

    /// Copies to other positions require equal chunks, in an algorithm or an explicit schedule;
    /// copies in place do not.
    #[test]
    fn schedules_that_reorder_have_to_have_equal_chunks() {
        let needs = |notation: &str, collective, ranks| {
            let schedule = build(notation, collective, ranks).unwrap();
            let written = Explicit::of(&*schedule);
            assert_eq!(schedule.moves_chunks(), written.moves_chunks(), "{notation}");
            let error = Layout::of_schedule(&*schedule, Bytes(8 * 1001), 8).err();
            assert_eq!(schedule.moves_chunks(), error.is_some(), "{notation}");
            schedule.moves_chunks()
        };
        assert!(needs("hierarchical:2x3", Collective::ReduceScatter, 6));
        assert!(!needs("hierarchical:2x3", Collective::AllReduce, 6));
        assert!(needs("multi_ring:2x3:bidirectional", Collective::AllGather, 6));
        assert!(!needs("ring:bidirectional", Collective::AllGather, 6));
        assert!(needs("swing", Collective::AllReduce, 6));
        assert!(!needs("swing", Collective::AllReduce, 8));
        let all = ChunkRange::new(0, 2);
        let mut builder = Explicit::builder(Collective::AllReduce, 2, 2);
        builder.copy(RankId(0), Slot::DATA, all, Slot(1), 0);
        assert!(!builder.build().unwrap().moves_chunks());
    }
}
