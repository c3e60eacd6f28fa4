//! Concurrent rings along the dimensions of a grid: the base of `ring` and `multi_ring`.
//!
//! The payload is divided into **parts**. Each part visits the dimensions in a different order,
//! each dimension in one of the two directions. A reduce_scatter goes along the part's first
//! dimension, then along the second on the remaining share, and so on; an all_gather reverses it
//! from the last dimension to the first. All parts take the same number of steps, and the messages
//! of a step are those of all parts.
//!
//! A part's chunks are stored in the order in which the part divides them, so that a message is one
//! contiguous range. With one dimension this is rank order. With several, an all_reduce may number
//! its chunks freely; a reduce_scatter or an all_gather copies from or to rank order, in a separate
//! step.

use super::Stage;
use super::divide::Divisor;
use crate::collective::Collective;
use crate::{ChunkRange, Digit, Schedule, Shape, Slot, Step};
use tutti_units::ids::RankId;

/// The directions of a ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Directions {
    /// To the next rank.
    Forward,
    /// To the previous rank.
    Backward,
    /// Half of the payload in each direction.
    Both,
}

impl Directions {
    /// Returns whether each part goes forward.
    fn forward(self) -> &'static [bool] {
        match self {
            Directions::Forward => &[true],
            Directions::Backward => &[false],
            Directions::Both => &[true, false],
        }
    }
}

/// A grid, and the parts that traverse it.
pub(super) struct Walk {
    /// Rank x0 + k0 (x1 + k1 (...)) has the coordinates x0, x1, ...: the first size varies fastest.
    pub(super) sizes: Vec<u32>,
    /// The directions in which parts traverse each dimension.
    pub(super) directions: Directions,
    /// Whether there is one part per dimension, each of which starts with a different dimension.
    pub(super) all_dimensions: bool,
}

impl Walk {
    fn parts(&self) -> u32 {
        let starts = if self.all_dimensions { self.sizes.len() } else { 1 };
        u32::try_from(starts * self.directions.forward().len()).unwrap_or(u32::MAX)
    }

    /// Returns the number of chunks of the payload; `None` if it overflows.
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

    /// Returns the rank at another position along this dimension.
    #[inline]
    fn moved(&self, rank: u32, from: u32, to: u32) -> RankId {
        RankId(rank - from * self.stride.value() + to * self.stride.value())
    }
}

/// A dimension as traversed by one part.
#[derive(Clone, Copy)]
struct Leg {
    dimension: usize,
    /// The part's remaining chunks at this dimension, divided by its size.
    run: u32,
}

struct Part {
    /// In the order of the reduce_scatter.
    legs: Vec<Leg>,
    forward: bool,
}

/// The state of a part in a step.
struct Moment<'a> {
    part: &'a Part,
    leg: usize,
    /// The step along this dimension.
    step: u32,
    reducing: bool,
}

/// A traversal along the rings.
pub(super) struct Rings {
    shape: Shape,
    dimensions: Vec<Dimension>,
    parts: Vec<Part>,
    /// Steps of a reduce_scatter or an all_gather: the sum of size - 1.
    steps_per_phase: u32,
    reduces: bool,
    gathers: bool,
    /// Whether the chunks are copied to and from rank order.
    copies: bool,
}

impl Rings {
    /// `chunks` is [`Walk::chunks`].
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
            steps_per_phase: walk.sizes.iter().map(|size| size - 1).sum(),
            reduces,
            gathers: collective != Collective::ReduceScatter,
            copies,
        }
    }

    fn part_count(&self) -> u32 {
        u32::try_from(self.parts.len()).unwrap_or(u32::MAX)
    }

    /// Returns the slot of the chunks in the order of the parts.
    fn work(&self) -> Slot {
        Slot(u32::from(self.copies))
    }

    /// Returns chunks `start..start + len` of a part.
    #[inline]
    fn run(&self, part: u32, start: u32, len: u32) -> ChunkRange {
        if self.dimensions.len() == 1 {
            // Single chunks: those of all parts for a rank are adjacent and form its shard.
            return ChunkRange::one(start * self.part_count() + part);
        }
        let first = part * self.shape.ranks + start;
        ChunkRange::new(first, first + len)
    }

    /// Returns the leg of a part in a step, and the step within it; `steps_per_phase` steps
    /// forward, as many back.
    fn moment<'a>(&self, part: &'a Part, step: u32) -> Moment<'a> {
        let reducing = self.reduces && step < self.steps_per_phase;
        let mut step = if self.reduces && !reducing { step - self.steps_per_phase } else { step };
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

    /// Adds one send and one receive.
    fn pass(&self, rank: u32, index: u32, moment: &Moment, out: &mut Step) {
        let &Moment { part, leg, step, reducing } = moment;
        let Leg { dimension, run } = part.legs[leg];
        let along = &self.dimensions[dimension];
        let (place, size) = (along.of(rank), along.size.value());
        let wrap = |value: u32| if value >= size { value - size } else { value };
        let (up, down) = (wrap(place + 1), wrap(place + size - 1));
        // A reduce_scatter starts one position earlier, so that shard s ends at rank s.
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

    /// Returns the position of a rank's shard in a part.
    fn place(&self, part: &Part, rank: u32) -> u32 {
        part.legs.iter().map(|leg| self.dimensions[leg.dimension].of(rank) * leg.run).sum()
    }

    /// Copies between rank order and the order of the parts; all shards or only the rank's.
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

    /// All ranks stay synchronised. A step with part messages of different length is not a stage:
    /// there are stages only if all parts always have the same remaining share, as on a grid with
    /// equal sides.
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

    /// Returns the number of steps with messages.
    fn moving(&self) -> u32 {
        self.steps_per_phase * (u32::from(self.reduces) + u32::from(self.gathers))
    }
}

fn parts(walk: &Walk, ranks: u32) -> Vec<Part> {
    let count = walk.sizes.len();
    let starts = if walk.all_dimensions { count } else { 1 };
    let mut parts = Vec::new();
    for start in 0..starts {
        for &forward in walk.directions.forward() {
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

    fn symmetry(&self) -> Option<Vec<Digit>> {
        let digit = |of: &Dimension| Digit { stride: of.stride.value(), size: of.size.value() };
        Some(self.dimensions.iter().map(digit).collect())
    }

    fn channel(&self, _rank: RankId, _step: u32, send: u32) -> u32 {
        self.parts.get(send as usize).map_or(0, |part| u32::from(!part.forward))
    }

    fn step_name(&self, _rank: RankId, step: u32) -> String {
        let step = match step.checked_sub(u32::from(self.copies)) {
            None => return "order by part".to_owned(),
            Some(step) if step == self.moving() => return "order by rank".to_owned(),
            Some(step) => step,
        };
        if self.reduces && step < self.steps_per_phase {
            format!("reduce_scatter {step}")
        } else {
            format!("all_gather {}", step - if self.reduces { self.steps_per_phase } else { 0 })
        }
    }
}
