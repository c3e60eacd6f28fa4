//! Checks of the columns of a trace.

use super::graph::position;
use super::{ANY, Operations, TraceError, kind};
use tutti_units::ids::RankId;

/// The most operations: executors need one more bit.
const MOST: u32 = 1 << 31;

/// The error of an operation of a rank with an invalid value.
fn refused<T>(
    (rank, operation): (u32, usize),
    column: &'static str,
    value: i64,
    expected: &'static str,
) -> Result<T, TraceError> {
    let (rank, value) = (RankId(rank), value.to_string());
    Err(TraceError::Value { rank, operation, column, value, expected })
}

pub(super) fn check_size(operations: usize) -> Result<(), TraceError> {
    if operations >= MOST as usize {
        return Err(TraceError::TooLarge { operations, most: MOST });
    }
    Ok(())
}

pub(super) fn check_peer(
    place: (u32, usize),
    kind: u8,
    peer: i32,
    ranks: u32,
) -> Result<(), TraceError> {
    let computes = kind == kind::COMPUTE;
    let timed = kind == kind::TIMED;
    if timed && !u32::try_from(peer).is_ok_and(|size| (1..=ranks).contains(&size)) {
        return refused(place, "peer", peer.into(), "the number of ranks of a group");
    }
    let any = kind == kind::RECEIVE && peer == ANY;
    if !computes && !timed && !any && !u32::try_from(peer).is_ok_and(|peer| peer < ranks) {
        return refused(place, "peer", peer.into(), "a rank of the trace");
    }
    Ok(())
}

pub(super) fn check_values(rank: u32, ranks: u32, of: &Operations) -> Result<(), TraceError> {
    for at in 0..of.len() {
        let kind = of.kinds[at];
        let (computes, timed) = (kind == kind::COMPUTE, kind == kind::TIMED);
        let lasts = computes || timed;
        let refuse = |column, value, expected| refused((rank, at), column, value, expected);
        if kind > kind::RECEIVE && !timed {
            return refuse("kind", kind.into(), "a computation, a send or a receive");
        }
        let amount = if lasts { of.durations[at] } else { of.sizes[at] };
        if amount < 0 {
            return refuse(if lasts { "duration" } else { "size" }, amount, "0 or more");
        }
        check_peer((rank, at), kind, of.peers[at], ranks)?;
        if of.streams[at] < 0 {
            return refuse("stream", of.streams[at].into(), "0 or more");
        }
    }
    Ok(())
}

pub(super) fn check_dependencies(rank: u32, of: &Operations) -> Result<(), TraceError> {
    for at in 0..of.len() {
        let refuse = |column, value, expected| refused((rank, at), column, value, expected);
        let (start, end) = (of.first_dependency[at], of.first_dependency[at + 1]);
        if start < 0 || end < start || end > of.dependencies.len() as i64 {
            return refuse("first_dependency", start, "ascending offsets into dependencies");
        }
        for &on in &of.dependencies[position(start)..position(end)] {
            if on < 0 || on >= of.len() as i64 {
                return refuse("dependency", on, "an operation of the same rank");
            }
        }
    }
    Ok(())
}

pub(super) fn check_lengths(rank: RankId, of: &Operations) -> Result<(), TraceError> {
    let operations = of.len();
    let columns = [
        ("sizes", of.sizes.len(), operations),
        ("durations", of.durations.len(), operations),
        ("peers", of.peers.len(), operations),
        ("tags", of.tags.len(), operations),
        ("streams", of.streams.len(), operations),
        ("first_dependency", of.first_dependency.len(), operations + 1),
        ("on_start", of.on_start.len(), of.dependencies.len()),
    ];
    for (column, length, expected) in columns {
        if length != expected {
            return Err(TraceError::Length { rank, column, length, expected });
        }
    }
    Ok(())
}
