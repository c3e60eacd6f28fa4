//! all_gather: a rank collects the blocks of the ranks behind it.
//!
//! Position p of rank r's work slot holds the block of rank r + p (mod N). With d positions filled,
//! the rank at r + s has the blocks for positions s, s + 1, ... s + d - 1. The missing N - d
//! positions are divided among the K ports in ranges of q = min(d, ceil((N - d) / K)). Range j
//! starts at s = d + (j - 1) q, comes from rank r + s, and is the first q (at the end fewer)
//! positions there. A round therefore fills K d more positions, and the last round divides the
//! remainder evenly. At the end the blocks are copied to rank order, in two ranges.

use crate::collective::Collective;
use crate::{ChunkRange, Schedule, Shape, Slot, Step};
use tutti_units::ids::RankId;

const WORK: Slot = Slot(1);
const RESULT: Slot = Slot(2);

pub(super) struct AllGather {
    shape: Shape,
    rounds: Vec<Round>,
}

/// One round: the filled positions, and how the received ones are divided among the ports.
#[derive(Clone, Copy)]
struct Round {
    known: u32,
    share: u32,
    ports: u32,
}

impl Round {
    /// Returns the start and the length of a port's range, for `ranks` ranks.
    fn run(self, port: u32, ranks: u32) -> (u32, u32) {
        let start = self.known + port * self.share;
        (start, self.share.min(ranks - start))
    }
}

fn rounds(ranks: u32, ports: u32) -> Vec<Round> {
    let mut rounds = Vec::new();
    let mut known = 1;
    while known < ranks {
        let missing = ranks - known;
        let share = known.min(missing.div_ceil(ports));
        let ports = ports.min(missing.div_ceil(share));
        rounds.push(Round { known, share, ports });
        known += missing.min(ports * share);
    }
    rounds
}

/// Returns the blocks in each message of a rank, round by round.
pub(super) fn message_lengths(ranks: u32, ports: u32) -> Vec<Vec<u32>> {
    let lengths = |round: Round| (0..round.ports).map(|port| round.run(port, ranks).1).collect();
    rounds(ranks, ports).into_iter().map(lengths).collect()
}

impl AllGather {
    pub(super) fn new(name: String, ranks: u32, ports: u32) -> AllGather {
        let in_place = Shape::in_place(name, Collective::AllGather, ranks, ranks, 3);
        let shape = Shape { result: RESULT, ..in_place };
        AllGather { shape, rounds: rounds(ranks, ports) }
    }
}

impl Schedule for AllGather {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, _rank: RankId) -> u32 {
        u32::try_from(self.rounds.len()).unwrap_or(u32::MAX)
    }

    fn step(&self, rank: RankId, step: u32, out: &mut Step) {
        let n = self.shape.ranks;
        let wrap = |value: u32| if value >= n { value - n } else { value };
        let round = self.rounds[step as usize];
        // The first message is the rank's block, which is sent from the data slot.
        let (slot, first) = if step == 0 { (Slot::DATA, rank.0) } else { (WORK, 0) };
        for port in 0..round.ports {
            let (start, len) = round.run(port, n);
            out.send(RankId(wrap(rank.0 + n - start)), slot, ChunkRange::new(first, first + len));
            out.recv(RankId(wrap(rank.0 + start)), WORK, ChunkRange::new(start, start + len));
        }
        if step == 0 {
            out.copy(Slot::DATA, ChunkRange::one(rank.0), WORK, 0);
        }
        if step + 1 == self.steps(rank) {
            let turn = n - rank.0;
            out.copy(WORK, ChunkRange::new(0, turn), RESULT, rank.0);
            if turn < n {
                out.copy(WORK, ChunkRange::new(turn, n), RESULT, 0);
            }
        }
    }

    fn step_name(&self, _rank: RankId, step: u32) -> String {
        format!("gather {step}")
    }
}
