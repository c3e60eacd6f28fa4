//! Rings along the dimensions of a grid, several at once: what `ring` and `multi_ring` are made of.
//!
//! The payload is divided among **parts**. A part visits the dimensions in an order of its own, each in
//! one of the two directions: a reduce_scatter is one along its first dimension, then one along the
//! second on the share that is left, and so on; an all_gather undoes it from the last dimension to the
//! first. All parts take as many steps, and the messages of a step are those of all parts.
//!
//! A part's chunks lie in the order in which it divides them, so that a message is one run. Along one
//! dimension that is the order of the ranks. Along several, an all_reduce can name its chunks as it likes;
//! a reduce_scatter or an all_gather copies from or to the order of the ranks, in a step of its own.

use super::Stage;
use super::divide::Divisor;
use crate::collective::Collective;
use crate::{ChunkRange, Schedule, Shape, Slot, Step};
use tutti_units::ids::RankId;

/// What is walked: a grid, and the parts that walk it.
pub(super) struct Walk {
    /// Rank x0 + k0 (x1 + k1 (...)) has the coordinates x0, x1, ...: the first size is the fastest.
    pub(super) sizes: Vec<u32>,
    /// Each dimension is also walked from the far end, by parts of their own.
    pub(super) bidirectional: bool,
    /// As many parts as dimensions, each of which starts with another one.
    pub(super) all_dimensions: bool,
}

impl Walk {
    fn parts(&self) -> u32 {
        let starts = if self.all_dimensions { self.sizes.len() } else { 1 };
        u32::try_from(starts).unwrap_or(u32::MAX) * (1 + u32::from(self.bidirectional))
    }

    /// How many chunks the payload is divided into; nothing where they cannot be counted.
    pub(super) fn chunks(&self) -> Option<u32> {
        self.sizes.iter().try_fold(self.parts(), |product, &size| product.checked_mul(size))
    }
}

/// One dimension of the grid.
struct Dimension {
    stride: Divisor,
    size: Divisor,
}

impl Dimension {
    #[inline]
    fn of(&self, rank: u32) -> u32 {
        self.size.divide(self.stride.divide(rank).0).1
    }

    /// The rank that stands at another place along this dimension.
    #[inline]
    fn moved(&self, rank: u32, from: u32, to: u32) -> RankId {
        RankId(rank - from * self.stride.value() + to * self.stride.value())
    }
}

/// A dimension as one part walks it.
#[derive(Clone, Copy)]
struct Leg {
    dimension: usize,
    /// Of the part's chunks: how many are left to divide when the part comes here, over the size.
    run: u32,
}

struct Part {
    /// In the order of the reduce_scatter.
    legs: Vec<Leg>,
    forward: bool,
}

/// Where a part is in a step.
struct Moment<'a> {
    part: &'a Part,
    leg: usize,
    /// Which step along this dimension.
    step: u32,
    reducing: bool,
}

/// A walk along the rings.
pub(super) struct Rings {
    shape: Shape,
    dimensions: Vec<Dimension>,
    parts: Vec<Part>,
    /// Steps of a reduce_scatter or an all_gather: the sum of size - 1.
    way: u32,
    reduces: bool,
    gathers: bool,
    /// The chunks are copied to and from the order of the ranks.
    copies: bool,
}

impl Rings {
    /// `chunks` is what the walk counts.
    pub(super) fn new(name: String, collective: Collective, walk: &Walk, chunks: u32) -> Rings {
        let (mut dimensions, mut stride) = (Vec::new(), 1);
        for &size in &walk.sizes {
            dimensions.push(Dimension { stride: Divisor::new(stride), size: Divisor::new(size) });
            stride *= size;
        }
        let ranks = stride;
        let reduces = collective != Collective::AllGather;
        let copies = collective != Collective::AllReduce && dimensions.len() > 1;
        let slots = 1 + u32::from(reduces) + u32::from(copies);
        Rings {
            shape: Shape::in_place(name, collective, ranks, chunks, slots),
            parts: parts(walk, ranks),
            dimensions,
            way: walk.sizes.iter().map(|size| size - 1).sum(),
            reduces,
            gathers: collective != Collective::ReduceScatter,
            copies,
        }
    }

    fn part_count(&self) -> u32 {
        u32::try_from(self.parts.len()).unwrap_or(u32::MAX)
    }

    /// Where the chunks lie in the order of the parts.
    fn work(&self) -> Slot {
        Slot(u32::from(self.copies))
    }

    /// Chunks `start..start + len` of a part.
    #[inline]
    fn run(&self, part: u32, start: u32, len: u32) -> ChunkRange {
        if self.dimensions.len() == 1 {
            // One chunk at a time: those of all parts for a rank lie together, so that they are its shard.
            return ChunkRange::one(start * self.part_count() + part);
        }
        let first = part * self.shape.ranks + start;
        ChunkRange::new(first, first + len)
    }

    /// Which leg of a part a step belongs to, and which of its steps it is; `way` steps there, as many back.
    fn moment<'a>(&self, part: &'a Part, step: u32) -> Moment<'a> {
        let reducing = self.reduces && step < self.way;
        let mut step = if self.reduces && !reducing { step - self.way } else { step };
        let last = part.legs.len() - 1;
        for turn in 0..last {
            let leg = if reducing { turn } else { last - turn };
            let steps = self.dimensions[part.legs[leg].dimension].size.value() - 1;
            if step < steps {
                return Moment { part, leg, step, reducing };
            }
            step -= steps;
        }
        Moment { part, leg: if reducing { last } else { 0 }, step, reducing }
    }

    /// One message there and one here.
    fn pass(&self, rank: u32, index: u32, moment: &Moment, out: &mut Step) {
        let &Moment { part, leg, step, reducing } = moment;
        let Leg { dimension, run } = part.legs[leg];
        let along = &self.dimensions[dimension];
        let (place, size) = (along.of(rank), along.size.value());
        let wrap = |value: u32| if value >= size { value - size } else { value };
        let (up, down) = (wrap(place + 1), wrap(place + size - 1));
        // A reduce_scatter begins one off, so that shard s ends where it belongs.
        let ahead = step + u32::from(reducing);
        let (to, from, sent, received) = if part.forward {
            let sent = wrap(place + size - ahead);
            (up, down, sent, wrap(sent + size - 1))
        } else {
            let sent = wrap(place + ahead);
            (down, up, sent, wrap(sent + 1))
        };
        let before: u32 = part.legs[..leg]
            .iter()
            .map(|leg| self.dimensions[leg.dimension].of(rank) * leg.run)
            .sum();
        let (work, scratch) = (self.work(), Slot(self.work().0 + 1));
        let chunks = |shard: u32| self.run(index, before + shard * run, run);
        out.send(along.moved(rank, place, to), work, chunks(sent));
        let into = if reducing { scratch } else { work };
        out.recv(along.moved(rank, place, from), into, chunks(received));
        if reducing {
            out.reduce(work, [scratch, work], chunks(received));
        }
    }

    /// Where the shard of a rank lies in a part.
    fn place(&self, part: &Part, rank: u32) -> u32 {
        part.legs.iter().map(|leg| self.dimensions[leg.dimension].of(rank) * leg.run).sum()
    }

    /// Between the order of the ranks and that of the parts; all shards or the rank's own.
    fn copy(&self, rank: u32, back: bool, out: &mut Step) {
        let all = back != self.reduces;
        let shards = if all { 0..self.shape.ranks } else { rank..rank + 1 };
        for shard in shards {
            for (index, part) in (0..).zip(&self.parts) {
                let by_rank = ChunkRange::one(shard * self.part_count() + index);
                let by_part = self.run(index, self.place(part, shard), 1);
                if back {
                    out.copy(self.work(), by_part, Slot::DATA, by_rank.start);
                } else {
                    out.copy(Slot::DATA, by_rank, self.work(), by_part.start);
                }
            }
        }
    }

    /// All ranks keep step. A step in which the parts' messages differ in length is no stage: there is none
    /// unless all parts always have the same share left, as on a grid with equal sides.
    pub(super) fn stages(&self) -> Option<Vec<Stage>> {
        let mut stages = Vec::new();
        for step in 0..self.moving() {
            let mut moments = self.parts.iter().map(|part| self.moment(part, step));
            let Moment { part, leg, reducing, .. } = moments.next()?;
            let chunks = part.legs[leg].run;
            if moments.any(|moment| moment.part.legs[moment.leg].run != chunks) {
                return None;
            }
            let (messages, of) = (self.part_count(), self.shape.chunks);
            let reductions = u32::from(reducing);
            stages.push(Stage { messages, receives: messages, chunks, reductions, of });
            let fold = Stage { messages: 0, receives: 0, chunks, reductions, of };
            let others = if reducing { messages as usize - 1 } else { 0 };
            stages.extend(std::iter::repeat_n(fold, others));
        }
        Some(stages)
    }

    /// How many steps have messages.
    fn moving(&self) -> u32 {
        self.way * (u32::from(self.reduces) + u32::from(self.gathers))
    }
}

fn parts(walk: &Walk, ranks: u32) -> Vec<Part> {
    let count = walk.sizes.len();
    let starts = if walk.all_dimensions { count } else { 1 };
    let mut parts = Vec::new();
    for start in 0..starts {
        for forward in [true, false].into_iter().take(1 + usize::from(walk.bidirectional)) {
            let mut run = ranks;
            let legs = (0..count).map(|turn| {
                let dimension = (start + turn) % count;
                run /= walk.sizes[dimension];
                Leg { dimension, run }
            });
            parts.push(Part { legs: legs.collect(), forward });
        }
    }
    parts
}

impl Schedule for Rings {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, _rank: RankId) -> u32 {
        self.moving() + 2 * u32::from(self.copies)
    }

    fn step(&self, rank: RankId, step: u32, out: &mut Step) {
        let step = match step.checked_sub(u32::from(self.copies)) {
            None => return self.copy(rank.0, false, out),
            Some(step) if step == self.moving() => return self.copy(rank.0, true, out),
            Some(step) => step,
        };
        for (index, part) in (0..).zip(&self.parts) {
            self.pass(rank.0, index, &self.moment(part, step), out);
        }
    }

    fn moves_chunks(&self) -> bool {
        self.copies
    }

    fn step_name(&self, _rank: RankId, step: u32) -> String {
        let step = match step.checked_sub(u32::from(self.copies)) {
            None => return "order by part".to_owned(),
            Some(step) if step == self.moving() => return "order by rank".to_owned(),
            Some(step) => step,
        };
        if self.reduces && step < self.way {
            format!("reduce_scatter {step}")
        } else {
            format!("all_gather {}", step - if self.reduces { self.way } else { 0 })
        }
    }
}
