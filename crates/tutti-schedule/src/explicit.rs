//! Explicit schedules: every step stored, for hand-written schedules, files and tests. Their memory
//! is proportional to ranks x steps; algorithms generate their steps on demand instead.

use super::{
    Blocks, BlocksError, ChunkRange, Local, MAX_RANKS, Message, Op, Schedule, Shape, Slot, Step,
};
use crate::collective::Collective;
use tutti_units::Time;
use tutti_units::ids::RankId;

/// An invalid explicit schedule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, tutti_units::Refusal)]
#[refusal(class = "ScheduleError")]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum ExplicitError {
    /// No ranks.
    #[error("a schedule has at least one rank")]
    NoRanks,
    /// More ranks than the maximum.
    #[error("{ranks} ranks are too many: expected at most {MAX_RANKS}")]
    TooManyRanks { ranks: u32 },
    /// A payload without chunks.
    #[error("a payload has at least one chunk")]
    NoChunks,
    /// An op of a rank outside the schedule.
    #[error("{rank} cannot {op}: the ranks are 0 to {last}")]
    RankOutside { rank: RankId, op: &'static str, last: u32 },
    /// A range of chunks that ends before it starts.
    #[error("{rank} cannot {op} chunks {start}..{end}: the end comes before the start")]
    BackwardChunks { rank: RankId, op: &'static str, start: u32, end: u32 },
    /// A slot number above the maximum.
    #[error("invalid slot {slot}: expected fewer than 2^32 - 1 slots")]
    SlotOutside { slot: Slot },
    /// A name that cannot be written to a file.
    #[error("invalid name `{name}`: expected one line without leading or trailing blanks")]
    BadName { name: String },
    /// Blocks that do not fit the schedule.
    #[error("invalid blocks: {problem}")]
    Blocks { problem: String },
    /// A root outside the ranks.
    #[error("root {root} is not one of the ranks 0 to {last}")]
    WrongRoot { root: u32, last: u32 },
}

/// A step with its name in drawings; empty for the default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Named {
    name: String,
    step: Step,
}

/// A materialised schedule: a vector of steps per rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explicit {
    shape: Shape,
    blocks: Option<Blocks>,
    /// Ranks after the last active one are omitted.
    programs: Vec<Vec<Named>>,
}

impl Explicit {
    /// Returns a builder of a schedule for `collective` on `ranks` ranks and a payload of `chunks`
    /// chunks.
    #[must_use]
    pub fn builder(collective: Collective, ranks: u32, chunks: u32) -> Builder {
        let problem = if ranks == 0 {
            Some(ExplicitError::NoRanks)
        } else if ranks > MAX_RANKS {
            Some(ExplicitError::TooManyRanks { ranks })
        } else if chunks == 0 {
            Some(ExplicitError::NoChunks)
        } else {
            let root = collective.root().filter(|root| root.0 >= ranks);
            root.map(|root| ExplicitError::WrongRoot { root: root.0, last: ranks - 1 })
        };
        let (blocks, problem) = match problem {
            None if collective == Collective::AllToAllV => match equal_blocks(ranks, chunks) {
                Ok(blocks) => (Some(blocks), None),
                Err(problem) => (None, Some(problem)),
            },
            problem => (None, problem),
        };
        let shape = Shape {
            name: "explicit".to_owned(),
            collective,
            ranks,
            chunks,
            slots: 1,
            result: Slot::DATA,
        };
        let schedule = Explicit { shape, blocks, programs: Vec::new() };
        Builder { schedule, open: Vec::new(), problem }
    }

    /// Materialises any schedule.
    #[must_use]
    pub fn of(schedule: &dyn Schedule) -> Explicit {
        let shape = schedule.shape().clone();
        let program = |rank| {
            let named = |index| {
                let mut step = Step::new();
                schedule.step(rank, index, &mut step);
                let name = schedule.step_name(rank, index);
                Named { name: if name == default_name(index) { String::new() } else { name }, step }
            };
            (0..schedule.steps(rank)).map(named).collect()
        };
        let programs = (0..shape.ranks).map(|rank| program(RankId(rank))).collect();
        Explicit { shape, blocks: schedule.blocks().cloned(), programs }.trimmed()
    }

    /// Removes empty programs at the end, so that equal schedules compare equal.
    fn trimmed(mut self) -> Explicit {
        while self.programs.last().is_some_and(Vec::is_empty) {
            self.programs.pop();
        }
        self
    }
}

impl Schedule for Explicit {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, rank: RankId) -> u32 {
        let count = self.programs.get(rank.index()).map_or(0, Vec::len);
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    fn step(&self, rank: RankId, step: u32, out: &mut Step) {
        out.clone_from(&self.programs[rank.index()][step as usize].step);
    }

    fn moves_chunks(&self) -> bool {
        let mut locals = self.programs.iter().flatten().flat_map(|named| &named.step.locals);
        let moves =
            |local: &Local| matches!(local, Local::Copy { chunks, to, .. } if *to != chunks.start);
        self.shape.moves_chunks() || locals.any(moves)
    }

    fn blocks(&self) -> Option<&Blocks> {
        self.blocks.as_ref()
    }

    fn step_name(&self, rank: RankId, step: u32) -> String {
        let named = self.programs.get(rank.index()).and_then(|steps| steps.get(step as usize));
        match named {
            Some(named) if !named.name.is_empty() => named.name.clone(),
            _ => default_name(step),
        }
    }
}

/// Returns the blocks of an all_to_all_v of so many chunks.
fn equal_blocks(ranks: u32, chunks: u32) -> Result<Blocks, ExplicitError> {
    let blocks = Blocks::equal(ranks).map_err(|source| invalid(&source))?;
    if chunks != blocks.chunks() {
        let expected = blocks.chunks();
        let problem =
            format!("{chunks} chunks of an all_to_all_v: expected {expected}, one per block");
        return Err(ExplicitError::Blocks { problem });
    }
    Ok(blocks)
}

fn invalid(source: &BlocksError) -> ExplicitError {
    ExplicitError::Blocks { problem: source.to_string() }
}

fn default_name(step: u32) -> String {
    format!("step {step}")
}

/// Builds an [`Explicit`] schedule op by op, in the program order of each rank.
///
/// Ops are grouped into steps that preserve the program order. Within a step sends precede
/// receives, which precede local ops; an op out of that order starts a new step. So does a receive
/// into chunks that a send or another receive of the step accesses. To exchange data without
/// buffers, send first and receive next: both are then in the same step.
///
/// Errors are deferred to [`Builder::build`], so that calls can be chained.
#[derive(Clone, Debug)]
pub struct Builder {
    schedule: Explicit,
    /// Whether the last step of a rank may still grow.
    open: Vec<bool>,
    problem: Option<ExplicitError>,
}

impl Builder {
    /// Sets the name of the schedule; the default is `explicit`.
    pub fn name(&mut self, name: &str) -> &mut Builder {
        if is_name(name) && !name.is_empty() {
            name.clone_into(&mut self.schedule.shape.name);
        } else {
            self.refuse(ExplicitError::BadName { name: name.to_owned() });
        }
        self
    }

    /// Sets the result slot; the default is the data slot.
    pub fn result(&mut self, slot: Slot) -> &mut Builder {
        self.schedule.shape.result = slot;
        self.slot(slot)
    }

    /// Sets the relative sizes of the blocks of an all_to_all_v, a row per source; the default is
    /// equal blocks.
    pub fn blocks(&mut self, sizes: &[u64]) -> &mut Builder {
        let Shape { collective, ranks, .. } = self.schedule.shape;
        match Blocks::new(ranks, sizes) {
            _ if collective != Collective::AllToAllV => {
                let problem =
                    format!("{collective} has equal chunks: only all_to_all_v has blocks");
                self.refuse(ExplicitError::Blocks { problem });
            }
            Ok(blocks) => self.schedule.blocks = Some(blocks),
            Err(source) => self.refuse(invalid(&source)),
        }
        self
    }

    /// Sets the minimum number of slots; ops add the slots that they name.
    pub fn slots(&mut self, slots: u32) -> &mut Builder {
        let shape = &mut self.schedule.shape;
        shape.slots = shape.slots.max(slots);
        self
    }

    /// `rank` sends `chunks` of `slot` to `peer`.
    pub fn send(
        &mut self,
        rank: RankId,
        peer: RankId,
        slot: Slot,
        chunks: ChunkRange,
    ) -> &mut Builder {
        self.op(rank, &Op::Send(Message { peer, slot, chunks }))
    }

    /// `rank` receives `chunks` from `peer` into `slot`.
    pub fn recv(
        &mut self,
        rank: RankId,
        peer: RankId,
        slot: Slot,
        chunks: ChunkRange,
    ) -> &mut Builder {
        self.op(rank, &Op::Recv(Message { peer, slot, chunks }))
    }

    /// `rank` sends `chunks` of `slot` to each of `peers`, as one message if the network can fork
    /// it.
    pub fn multicast(
        &mut self,
        rank: RankId,
        peers: &[RankId],
        slot: Slot,
        chunks: ChunkRange,
    ) -> &mut Builder {
        self.op(rank, &Op::Multicast { peers: peers.to_vec(), slot, chunks })
    }

    /// `rank` sends `chunks` of `slot` to `peer`, which combines them with those of other ranks.
    pub fn contribute(
        &mut self,
        rank: RankId,
        peer: RankId,
        slot: Slot,
        chunks: ChunkRange,
    ) -> &mut Builder {
        self.op(rank, &Op::Contribute(Message { peer, slot, chunks }))
    }

    /// `rank` receives `chunks` into the operands that come from other ranks, as one message if the
    /// network can combine them, and folds all operands, left to right, into `into`.
    pub fn combine(
        &mut self,
        rank: RankId,
        into: Slot,
        operands: &[(Slot, Option<RankId>)],
        chunks: ChunkRange,
    ) -> &mut Builder {
        self.op(rank, &Op::Combine { into, operands: operands.to_vec(), chunks })
    }

    /// `rank` folds `operands`, left to right, into `into`.
    pub fn reduce(
        &mut self,
        rank: RankId,
        into: Slot,
        operands: &[Slot],
        chunks: ChunkRange,
    ) -> &mut Builder {
        self.op(rank, &Op::Reduce { into, operands: operands.to_vec(), chunks })
    }

    /// `rank` copies `chunks` of `from` to positions `to..` of `into`.
    pub fn copy(
        &mut self,
        rank: RankId,
        from: Slot,
        chunks: ChunkRange,
        into: Slot,
        to: u32,
    ) -> &mut Builder {
        self.op(rank, &Op::Copy { from, into, chunks, to })
    }

    /// `rank` computes for `duration`.
    pub fn compute(&mut self, rank: RankId, duration: Time) -> &mut Builder {
        self.op(rank, &Op::Compute { duration })
    }

    /// `rank` sleeps for `duration`.
    pub fn sleep(&mut self, rank: RankId, duration: Time) -> &mut Builder {
        self.op(rank, &Op::Sleep { duration })
    }

    /// Adds any op, in program order.
    pub fn op(&mut self, rank: RankId, op: &Op) -> &mut Builder {
        self.check(rank, op);
        let open = self.open.get(rank.index()).copied().unwrap_or(false);
        let grows = open && self.last(rank).is_some_and(|last| fits(&last.step, op));
        if !grows {
            self.add_step(rank, verb(op), Named::default());
        }
        if let Some(last) = self.last(rank) {
            last.step.add(op);
        }
        self
    }

    /// Ends the step: the next op of `rank` starts a new one.
    pub fn end_step(&mut self, rank: RankId) -> &mut Builder {
        if let Some(open) = self.open.get_mut(rank.index()) {
            *open = false;
        }
        self
    }

    /// Starts a new step of `rank`, even if it stays empty, under a name for drawings (empty: the
    /// default name).
    pub fn start_step(&mut self, rank: RankId, name: &str) -> &mut Builder {
        if is_name(name) {
            self.add_step(rank, "start a step", Named { name: name.to_owned(), step: Step::new() });
        } else {
            self.refuse(ExplicitError::BadName { name: name.to_owned() });
        }
        self
    }

    /// Adds a complete step under a name (empty: the default name).
    pub fn step(&mut self, rank: RankId, name: &str, step: Step) -> &mut Builder {
        step.ops().for_each(|op| self.check(rank, &op));
        self.start_step(rank, name);
        if let Some(last) = self.last(rank) {
            last.step = step;
        }
        self.end_step(rank)
    }

    /// Returns the schedule.
    ///
    /// # Errors
    /// The first error of an earlier call.
    pub fn build(&self) -> Result<Explicit, ExplicitError> {
        match &self.problem {
            Some(problem) => Err(problem.clone()),
            None => Ok(self.schedule.clone().trimmed()),
        }
    }

    pub(super) fn ranks(&self) -> u32 {
        self.schedule.shape.ranks
    }

    /// Returns the first error so far, for readers that report its position.
    pub(super) fn problem(&self) -> Option<&ExplicitError> {
        self.problem.as_ref()
    }

    fn last(&mut self, rank: RankId) -> Option<&mut Named> {
        self.schedule.programs.get_mut(rank.index()).and_then(|steps| steps.last_mut())
    }

    fn add_step(&mut self, rank: RankId, op: &'static str, named: Named) {
        let ranks = self.schedule.shape.ranks;
        if self.problem.is_some() {
            return;
        }
        if rank.0 >= ranks {
            return self.refuse(ExplicitError::RankOutside { rank, op, last: ranks - 1 });
        }
        if self.open.len() <= rank.index() {
            self.open.resize(rank.index() + 1, false);
            self.schedule.programs.resize(rank.index() + 1, Vec::new());
        }
        self.open[rank.index()] = true;
        self.schedule.programs[rank.index()].push(named);
    }

    /// Records the slots that an op needs; refuses ops above the maxima.
    fn check(&mut self, rank: RankId, op: &Op) {
        let (slot, chunks) = match op {
            Op::Send(message) | Op::Contribute(message) | Op::Recv(message) => {
                (message.slot, message.chunks)
            }
            Op::Multicast { slot, chunks, .. } => (*slot, *chunks),
            Op::Combine { into, operands, chunks } => {
                operands.iter().for_each(|&(slot, _)| _ = self.slot(slot));
                (*into, *chunks)
            }
            Op::Reduce { into, operands, chunks } => {
                operands.iter().for_each(|&slot| _ = self.slot(slot));
                (*into, *chunks)
            }
            Op::Copy { from, into, chunks, .. } => {
                self.slot(*from);
                (*into, *chunks)
            }
            Op::Compute { .. } | Op::Sleep { .. } => return,
        };
        self.slot(slot);
        let (ChunkRange { start, end }, op) = (chunks, verb(op));
        if end < start {
            self.refuse(ExplicitError::BackwardChunks { rank, op, start, end });
        }
    }

    fn slot(&mut self, slot: Slot) -> &mut Builder {
        match slot.0.checked_add(1) {
            Some(slots) => self.slots(slots),
            None => {
                self.refuse(ExplicitError::SlotOutside { slot });
                self
            }
        }
    }

    fn refuse(&mut self, problem: ExplicitError) {
        self.problem.get_or_insert(problem);
    }
}

/// Returns the verb of an op, for errors.
fn verb(op: &Op) -> &'static str {
    if let Op::Recv(_) = op { "receive" } else { op.kind() }
}

/// Returns whether a step preserves the program order with one more op: sends precede receives,
/// which precede local ops, and a receive writes no chunk that another message of the step
/// accesses.
fn fits(step: &Step, op: &Op) -> bool {
    let untouched = |written: Slot, chunks: ChunkRange| {
        let mut touched = step.sends.iter().chain(&step.recvs);
        !touched.any(|other| other.slot == written && other.chunks.overlaps(chunks))
    };
    match op {
        Op::Send(_) | Op::Multicast { .. } | Op::Contribute(_) => {
            step.recvs.is_empty() && step.locals.is_empty()
        }
        Op::Recv(message) => step.locals.is_empty() && untouched(message.slot, message.chunks),
        Op::Combine { operands, chunks, .. } => {
            let mut received = operands.iter().filter(|(_, from)| from.is_some());
            step.locals.is_empty() && received.all(|&(slot, _)| untouched(slot, *chunks))
        }
        _ => true,
    }
}

/// Returns whether a name is valid in a line of a file.
fn is_name(name: &str) -> bool {
    name.trim() == name && !name.contains(char::is_control)
}

#[cfg(test)]
mod tests;
