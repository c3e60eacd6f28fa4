//! One step of one rank, and the closed set of its ops.

use super::{ChunkRange, Mark};
use tutti_units::Time;
use tutti_units::ids::RankId;

/// A buffer of a rank, as large as the payload; only the parts that ops access need to exist.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash)]
pub struct Slot(pub u32);

impl Slot {
    /// The rank's data buffer, initialised by the precondition.
    pub const DATA: Slot = Slot(0);
}

impl std::fmt::Display for Slot {
    /// `data`, then `s1`, `s2`, ...
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            0 => f.write_str("data"),
            scratch => write!(f, "s{scratch}"),
        }
    }
}

/// One side of a message: the peer, the slot and the chunks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message {
    /// The other rank.
    pub peer: RankId,
    /// Read from (send) or written to (receive).
    pub slot: Slot,
    /// The chunks of the message.
    pub chunks: ChunkRange,
}

/// Local work of a rank, after its step's receives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum Local {
    /// `into[chunks] = fold(operands[chunks])`, left to right in the order of the operands. The
    /// schedule determines the bits of the result, independent of the order of arrival.
    Reduce { into: Slot, operands: OperandRange, chunks: ChunkRange },
    /// `into[to..] = from[chunks]`.
    Copy { from: Slot, into: Slot, chunks: ChunkRange, to: u32 },
    /// Computation of the application.
    Compute { duration: Time },
    /// Waiting.
    Sleep { duration: Time },
}

/// The operands of a reduction in its step; see [`Step::operands`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OperandRange {
    start: u32,
    end: u32,
}

impl OperandRange {
    /// Returns the number of operands.
    #[inline]
    #[must_use]
    pub fn len(self) -> u32 {
        self.end - self.start
    }

    /// Returns whether there are no operands.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }
}

/// The actions of one rank between two waits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Issued first, in order.
    pub sends: Vec<Message>,
    /// Posted together; the step waits for all.
    pub recvs: Vec<Message>,
    /// Executed last, in order.
    pub locals: Vec<Local>,
    operands: Vec<Slot>,
    pub(super) marks: Vec<Mark>,
    /// Reused memory of one combine, empty in between.
    pub(super) combined: Vec<Slot>,
}

impl Step {
    /// Returns an empty step.
    #[must_use]
    pub fn new() -> Step {
        Step::default()
    }

    /// Removes all ops and retains the memory.
    #[inline]
    pub fn clear(&mut self) {
        self.sends.clear();
        self.recvs.clear();
        self.locals.clear();
        self.operands.clear();
        self.marks.clear();
    }

    /// Exchanges the local ops with those of another step.
    #[inline]
    pub(crate) fn swap_locals(&mut self, other: &mut Step) {
        std::mem::swap(&mut self.locals, &mut other.locals);
        std::mem::swap(&mut self.operands, &mut other.operands);
    }

    /// Sends `chunks` of `slot` to `peer`.
    #[inline]
    pub fn send(&mut self, peer: RankId, slot: Slot, chunks: ChunkRange) {
        self.sends.push(Message { peer, slot, chunks });
    }

    /// Receives `chunks` from `peer` into `slot`.
    #[inline]
    pub fn recv(&mut self, peer: RankId, slot: Slot, chunks: ChunkRange) {
        self.recvs.push(Message { peer, slot, chunks });
    }

    /// Folds `operands`, in this order, into `into`.
    #[inline]
    pub fn reduce(
        &mut self,
        into: Slot,
        operands: impl IntoIterator<Item = Slot>,
        chunks: ChunkRange,
    ) {
        let start = self.operand_count();
        self.operands.extend(operands);
        let operands = OperandRange { start, end: self.operand_count() };
        self.locals.push(Local::Reduce { into, operands, chunks });
    }

    /// Exchanges parts of a slot with `peer`: sends `sent`, and folds the received `kept`, through
    /// the next slot; the rank's value is the first operand if `own_first` is true.
    #[inline]
    pub(crate) fn fold_with(
        &mut self,
        (peer, own_first): (RankId, bool),
        slot: Slot,
        sent: ChunkRange,
        kept: ChunkRange,
    ) {
        let scratch = Slot(slot.0 + 1);
        self.send(peer, slot, sent);
        self.recv(peer, scratch, kept);
        self.reduce(slot, if own_first { [slot, scratch] } else { [scratch, slot] }, kept);
    }

    /// Receives `chunks` from `peer` into scratch slot 1, and folds them before the rank's value in
    /// the data slot.
    #[inline]
    pub(crate) fn fold_in(&mut self, peer: RankId, chunks: ChunkRange) {
        self.recv(peer, Slot(1), chunks);
        self.reduce(Slot::DATA, [Slot(1), Slot::DATA], chunks);
    }

    /// Sends `sent` of a slot to `peer`, and receives `received` from it into the same slot.
    #[inline]
    pub(crate) fn trade(
        &mut self,
        peer: RankId,
        slot: Slot,
        sent: ChunkRange,
        received: ChunkRange,
    ) {
        self.send(peer, slot, sent);
        self.recv(peer, slot, received);
    }

    /// Copies `chunks` of `from` to positions `to..` of `into`.
    #[inline]
    pub fn copy(&mut self, from: Slot, chunks: ChunkRange, into: Slot, to: u32) {
        self.locals.push(Local::Copy { from, into, chunks, to });
    }

    /// Adds an op of any kind.
    pub(crate) fn add(&mut self, op: &Op) {
        match *op {
            Op::Send(Message { peer, slot, chunks }) => self.send(peer, slot, chunks),
            Op::Multicast { ref peers, slot, chunks } => {
                self.multicast(peers.iter().copied(), slot, chunks);
            }
            Op::Contribute(Message { peer, slot, chunks }) => self.contribute(peer, slot, chunks),
            Op::Recv(Message { peer, slot, chunks }) => self.recv(peer, slot, chunks),
            Op::Combine { into, ref operands, chunks } => {
                self.combine(into, operands.iter().copied(), chunks);
            }
            Op::Reduce { into, ref operands, chunks } => {
                self.reduce(into, operands.iter().copied(), chunks);
            }
            Op::Copy { from, into, chunks, to } => self.copy(from, chunks, into, to),
            Op::Compute { duration } => self.locals.push(Local::Compute { duration }),
            Op::Sleep { duration } => self.locals.push(Local::Sleep { duration }),
        }
    }

    /// Returns the slots that a reduction of this step folds, in order.
    #[inline]
    #[must_use]
    pub fn operands(&self, range: OperandRange) -> &[Slot] {
        &self.operands[range.start as usize..range.end as usize]
    }

    /// Returns whether the step has no ops.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sends.is_empty() && self.recvs.is_empty() && self.locals.is_empty()
    }

    /// Rewrites every op in place: peers through `peer`, slots through `slot` and chunks through
    /// `chunks`, which must map ranges to ranges.
    #[inline]
    pub fn rewrite(
        &mut self,
        peer: impl Fn(RankId) -> RankId,
        slot: impl Fn(Slot) -> Slot,
        chunks: impl Fn(ChunkRange) -> ChunkRange,
    ) {
        for message in self.sends.iter_mut().chain(&mut self.recvs) {
            message.peer = peer(message.peer);
            message.slot = slot(message.slot);
            message.chunks = chunks(message.chunks);
        }
        for local in &mut self.locals {
            *local = match *local {
                Local::Reduce { into, operands, chunks: run } => {
                    Local::Reduce { into: slot(into), operands, chunks: chunks(run) }
                }
                Local::Copy { from, into, chunks: run, to } => {
                    let to = chunks(ChunkRange::one(to)).start;
                    Local::Copy { from: slot(from), into: slot(into), chunks: chunks(run), to }
                }
                other => other,
            };
        }
        for operand in &mut self.operands {
            *operand = slot(*operand);
        }
    }

    /// Returns the ops in program order, each with its operands. A combine is among the receives.
    pub fn ops(&self) -> impl Iterator<Item = Op> + '_ {
        let messages = |of: &[Message], op: &dyn Fn(u32) -> Op| {
            let (mut all, mut next) = (Vec::new(), 0);
            while (next as usize) < of.len() {
                let one = op(next);
                next += Step::width(&one);
                all.push(one);
            }
            all
        };
        let sends = messages(&self.sends, &|place| self.send_op(place));
        let recvs = messages(&self.recvs, &|place| self.recv_op(place));
        let folds = self.combines().count();
        let locals = self.locals[folds..].iter().map(|&local| match local {
            Local::Reduce { into, operands, chunks } => {
                Op::Reduce { into, operands: self.operands(operands).to_vec(), chunks }
            }
            Local::Copy { from, into, chunks, to } => Op::Copy { from, into, chunks, to },
            Local::Compute { duration } => Op::Compute { duration },
            Local::Sleep { duration } => Op::Sleep { duration },
        });
        sends.into_iter().chain(recvs).chain(locals)
    }

    #[inline]
    fn operand_count(&self) -> u32 {
        u32::try_from(self.operands.len()).expect("a step has fewer than 2^32 operands")
    }
}

/// A single op: the closed instruction set, for files, drawings and Python.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum Op {
    /// Sends a message.
    Send(Message),
    /// Sends a message to several ranks.
    Multicast { peers: Vec<RankId>, slot: Slot, chunks: ChunkRange },
    /// Sends a message that the receiver combines with those of other ranks.
    Contribute(Message),
    /// Receives a message.
    Recv(Message),
    /// Receives messages of several ranks and folds all operands, in order, into a slot. Operands
    /// have the rank from which they are received.
    Combine { into: Slot, operands: Vec<(Slot, Option<RankId>)>, chunks: ChunkRange },
    /// Folds the operands, in order, into a slot.
    Reduce { into: Slot, operands: Vec<Slot>, chunks: ChunkRange },
    /// Copies chunks between slots or positions.
    Copy { from: Slot, into: Slot, chunks: ChunkRange, to: u32 },
    /// Computation of the application.
    Compute { duration: Time },
    /// Waiting.
    Sleep { duration: Time },
}

impl Op {
    /// Returns the keyword in the text form.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Op::Send(_) => "send",
            Op::Multicast { .. } => "multicast",
            Op::Contribute(_) => "contribute",
            Op::Recv(_) => "recv",
            Op::Combine { .. } => "combine",
            Op::Reduce { .. } => "reduce",
            Op::Copy { .. } => "copy",
            Op::Compute { .. } => "compute",
            Op::Sleep { .. } => "sleep",
        }
    }
}
