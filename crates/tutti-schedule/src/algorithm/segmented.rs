//! Exchanges in pieces: the reduction of one piece overlaps the transfer of the next.
//!
//! An exchange of an inner schedule sends one message to a peer, receives one from it and reduces.
//! It becomes K steps with a K-th of the chunks each. The first step sends pieces 0 and 1, step j
//! sends piece j + 1, and each step receives and reduces piece j. Piece j + 1 is therefore in flight
//! while piece j is reduced. This needs buffer space for one message per pair of ranks.

use std::ops::Range;
use std::sync::Arc;

use super::sizes::{Misfit, misfit};
use crate::{ChunkRange, Local, Schedule, Shape, Step};
use tutti_units::ids::RankId;

/// The word of the argument before the number of pieces.
pub(super) const SEGMENTS: &str = "segments=";

/// The maximum number of pieces: steps are counted in 32 bits.
const MOST: u32 = 1 << 20;
/// The maximum number of chunks: that of a plan file.
const MOST_CHUNKS: u32 = 1 << 28;

/// Reads the number of pieces after `segments=`, at byte `at` of the argument.
pub(super) fn pieces(number: &str, at: usize) -> Result<u32, Misfit> {
    match number.parse::<u32>() {
        Ok(pieces @ 1..=MOST) => Ok(pieces),
        _ => misfit(at, format!("invalid number of segments `{number}`: expected 1 to {MOST}")),
    }
}

/// Returns the inner steps of a rank that are exchanges.
type Exchanges = Box<dyn Fn(RankId) -> Range<u32> + Send + Sync>;

pub(super) struct Segmented {
    shape: Shape,
    inner: Arc<dyn Schedule>,
    exchanges: Exchanges,
    pieces: u32,
}

impl Segmented {
    /// Divides the `exchanges` of a schedule into `pieces`. One piece is the schedule itself.
    pub(super) fn divide(
        inner: Arc<dyn Schedule>,
        pieces: u32,
        exchanges: impl Fn(RankId) -> Range<u32> + Send + Sync + 'static,
    ) -> Result<Arc<dyn Schedule>, Misfit> {
        if pieces == 1 {
            return Ok(inner);
        }
        let most = MOST_CHUNKS / inner.shape().chunks;
        if pieces > most {
            return misfit(0, format!("{pieces} segments are too many: expected at most {most}"));
        };
        let chunks = inner.shape().chunks * pieces;
        let shape = Shape { chunks, ..inner.shape().clone() };
        Ok(Arc::new(Segmented { shape, inner, exchanges: Box::new(exchanges), pieces }))
    }

    /// Returns the inner step, and the piece if it is an exchange.
    fn locate(&self, rank: RankId, step: u32) -> (u32, Option<u32>) {
        let Range { start, end } = (self.exchanges)(rank);
        let Some(after) = step.checked_sub(start).filter(|_| start < end) else {
            return (step, None);
        };
        if after < (end - start) * self.pieces {
            return (start + after / self.pieces, Some(after % self.pieces));
        }
        (step - (end - start) * (self.pieces - 1), None)
    }
}

impl Schedule for Segmented {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, rank: RankId) -> u32 {
        let exchanges = (self.exchanges)(rank).len();
        self.inner.steps(rank) + u32::try_from(exchanges).unwrap_or(0) * (self.pieces - 1)
    }

    fn step(&self, rank: RankId, step: u32, out: &mut Step) {
        let (inner, piece) = self.locate(rank, step);
        self.inner.step(rank, inner, out);
        let count = self.pieces;
        let Some(piece) = piece else {
            let all = |run: ChunkRange| ChunkRange::new(run.start * count, run.end * count);
            return out.rewrite(|peer| peer, |slot| slot, all);
        };
        let part = |run: ChunkRange, piece: u32| {
            let start = run.start * count + piece * run.len();
            ChunkRange::new(start, start + run.len())
        };
        if let Some(complete) = out.sends.pop() {
            let first = piece + u32::from(piece > 0);
            for piece in first..count.min(piece + 2) {
                out.send(complete.peer, complete.slot, part(complete.chunks, piece));
            }
        }
        for message in &mut out.recvs {
            message.chunks = part(message.chunks, piece);
        }
        for local in &mut out.locals {
            if let Local::Reduce { chunks, .. } = local {
                *chunks = part(*chunks, piece);
            }
        }
    }

    fn moves_chunks(&self) -> bool {
        self.inner.moves_chunks()
    }

    fn step_name(&self, rank: RankId, step: u32) -> String {
        let (inner, piece) = self.locate(rank, step);
        let name = self.inner.step_name(rank, inner);
        match piece {
            Some(piece) => format!("{name}, segment {piece}"),
            None => name,
        }
    }
}
