//! Errors of an execution that did not complete.

use std::collections::BTreeMap;

use super::VerifyError;
use crate::Wait;
use crate::progress::{Outcome, Side};
use tutti_units::ids::RankId;

/// Returns an error if ranks wait or messages are left.
pub(super) fn explain(outcome: &Outcome) -> Result<(), VerifyError> {
    if !outcome.waits.is_empty() {
        return Err(waits(&outcome.waits));
    }
    let Some(first) = outcome.leftover.iter().min_by_key(|side| side.at) else { return Ok(()) };
    let to = first.message.peer;
    let same = |side: &&Side| side.at.rank == first.at.rank && side.message.peer == to;
    Err(VerifyError::NeverReceived {
        from: first.at,
        to,
        slot: first.message.slot,
        chunks: first.message.chunks,
        count: outcome.leftover.iter().filter(same).count(),
    })
}

/// Distinguishes a message that is never sent from a cycle of ranks that wait for each other.
pub(super) fn waits(waits: &[Wait]) -> VerifyError {
    let of = |rank: RankId| {
        let start = waits.partition_point(|wait| wait.at.rank < rank);
        waits.get(start).filter(|wait| wait.at.rank == rank)
    };
    // A rank that others wait for and that waits for no rank has finished.
    if let Some(&wait) = waits.iter().find(|wait| of(wait.from).is_none()) {
        return VerifyError::NeverSent { wait, waits: waits.to_vec() };
    }
    let mut path: Vec<Wait> = Vec::new();
    let mut seen: BTreeMap<RankId, usize> = BTreeMap::new();
    let mut next = waits.first();
    while let Some(&wait) = next {
        if let Some(start) = seen.insert(wait.at.rank, path.len()) {
            path.drain(..start);
            break;
        }
        path.push(wait);
        next = of(wait.from);
    }
    VerifyError::Deadlock { cycle: path, waits: waits.to_vec() }
}
