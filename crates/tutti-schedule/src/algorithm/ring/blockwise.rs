//! all_to_all on a ring, one part per message.
//!
//! The part for the rank d ahead travels d hops to the next rank. The parts travel in sequence, the
//! one for the nearest rank first, and each message follows the previous one: n (n - 1) / 2
//! sequential messages of one part per rank. The number, size, direction and order of the messages
//! are those of ASTRA-sim's `ring`, which does not state which part a message carries.

use crate::collective::Collective;
use crate::{ChunkRange, Digit, Schedule, Shape, Slot, Step};
use tutti_units::ids::RankId;

/// The most ranks: each sends 2 million messages.
pub(super) const MOST_RANKS: u32 = 2048;

const RESULT: Slot = Slot(1);
/// Slots sent from in one hop and received into in the previous one.
const TRAVELLING: [Slot; 2] = [Slot(2), Slot(3)];

pub(super) struct Blockwise {
    shape: Shape,
}

impl Blockwise {
    pub(super) fn new(name: String, ranks: u32) -> Blockwise {
        let in_place = Shape::in_place(name, Collective::AllToAll, ranks, ranks, 4);
        Blockwise { shape: Shape { result: RESULT, ..in_place } }
    }
}

/// Returns the number of messages of a rank.
pub(super) fn messages(ranks: u32) -> u32 {
    ranks * (ranks - 1) / 2
}

/// Returns the distance that the part of a step travels, and its hops so far.
fn hop(step: u32) -> (u32, u32) {
    // Step d (d - 1) / 2 is the first hop of the part that travels d hops.
    let root = (1 + 8 * u64::from(step)).isqrt();
    let distance = u32::try_from(root.div_ceil(2)).unwrap_or(u32::MAX);
    (distance, step - messages(distance))
}

impl Schedule for Blockwise {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, _rank: RankId) -> u32 {
        messages(self.shape.ranks)
    }

    fn step(&self, rank: RankId, step: u32, out: &mut Step) {
        let n = self.shape.ranks;
        let wrap = |value: u32| ChunkRange::one(if value >= n { value - n } else { value });
        let (distance, hops) = hop(step);
        let travelling = |hops: u32| (TRAVELLING[hops as usize % 2], ChunkRange::one(distance));
        let (from, sent) =
            if hops == 0 { (Slot::DATA, wrap(rank.0 + distance)) } else { travelling(hops) };
        let (into, received) = if hops + 1 == distance {
            (RESULT, wrap(rank.0 + n - distance))
        } else {
            travelling(hops + 1)
        };
        out.send(RankId(wrap(rank.0 + 1).start), from, sent);
        out.recv(RankId(wrap(rank.0 + n - 1).start), into, received);
        if step == 0 {
            out.copy(Slot::DATA, ChunkRange::one(rank.0), RESULT, rank.0);
        }
    }

    fn is_ordered(&self, _rank: RankId, _step: u32) -> bool {
        true
    }

    fn symmetry(&self) -> Option<Vec<Digit>> {
        Some(vec![Digit { stride: 1, size: self.shape.ranks }])
    }

    fn step_name(&self, _rank: RankId, step: u32) -> String {
        let (distance, hops) = hop(step);
        format!("part {distance} ahead, hop {hops}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_for_the_rank_d_ahead_travels_d_hops() {
        let hops: Vec<(u32, u32)> = (1..300).flat_map(|d| (0..d).map(move |h| (d, h))).collect();
        assert_eq!((0..messages(300)).map(hop).collect::<Vec<_>>(), hops);
        assert_eq!(hop(messages(MOST_RANKS) - 1), (MOST_RANKS - 1, MOST_RANKS - 2));
    }

    #[test]
    fn every_message_is_one_part_to_the_next_rank() {
        let schedule = Blockwise::new(String::new(), 4);
        let mut out = Step::new();
        let mut sent = Vec::new();
        for step in 0..schedule.steps(RankId(3)) {
            out.clear();
            schedule.step(RankId(3), step, &mut out);
            let ([send], [recv]) = (&out.sends[..], &out.recvs[..]) else { panic!("{out:?}") };
            assert_eq!((send.peer, recv.peer), (RankId(0), RankId(2)));
            assert_eq!((send.chunks.len(), recv.chunks.len()), (1, 1));
            sent.push((send.slot.0, send.chunks.start, recv.slot.0, recv.chunks.start));
        }
        let expected =
            [(0, 0, 1, 2), (0, 1, 3, 2), (3, 2, 1, 1), (0, 2, 3, 3), (3, 3, 2, 3), (2, 3, 1, 0)];
        assert_eq!(sent, expected);
    }
}
