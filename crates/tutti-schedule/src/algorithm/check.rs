//! Test helpers: verify algorithms and compare their closed forms with a simple simulation.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::{Entry, Request, Stage, build, critical_path};
use crate::collective::Collective;
use crate::{Local, Schedule, Step, Verification, verify};
use tutti_units::ids::RankId;

fn laid_out(notation: &str, collective: Collective, ranks: u32) -> Arc<dyn Schedule> {
    build(notation, collective, ranks)
        .unwrap_or_else(|error| panic!("{notation}, {collective}, {ranks} ranks: {error}"))
}

/// Verifies a schedule.
pub(super) fn performs(notation: &str, collective: Collective, ranks: u32) -> Verification {
    let schedule = laid_out(notation, collective, ranks);
    verify(&*schedule)
        .unwrap_or_else(|error| panic!("{notation}, {collective}, {ranks} ranks: {error}"))
}

/// Verifies every collective that the entry claims on this many ranks, with every root if there are
/// few, and an all_to_all_v only on few ranks, because its cost grows with their cube.
pub(super) fn claims(entry: &Entry, notation: &str, ranks: u32) {
    for collective in Collective::ALL {
        let argument = notation.split_once(':').map(|(_, argument)| argument);
        let request = Request { collective, ranks, argument };
        if !entry.collectives.contains(&collective.name()) || !(entry.claims)(&request) {
            continue;
        }
        if collective == Collective::AllToAllV && ranks > 24 {
            continue;
        }
        let roots = if ranks <= 17 { 0..ranks } else { ranks / 3..ranks / 3 + 1 };
        let roots = if collective.root().is_some() { roots } else { 0..1 };
        for root in roots {
            performs(notation, collective.with_root(RankId(root)), ranks);
        }
    }
}

/// Asserts that every reduced chunk of the result is folded in rank order.
pub(super) fn folds_in_rank_order(notation: &str, collective: Collective, ranks: u32) {
    let found = performs(notation, collective, ranks).reproducibility;
    assert!(found.rank_order, "{notation}, {collective}, {ranks} ranks");
}

/// Returns whether the schedule declares digits, which must rotate the messages of each rank to
/// those of any other.
pub(super) fn is_symmetric(notation: &str, collective: Collective, ranks: u32) -> bool {
    let schedule = laid_out(notation, collective, ranks);
    let Some(digits) = schedule.symmetry() else { return false };
    let rotated = |rank: u32, by: u32| {
        digits.iter().fold(rank, |moved, digit| {
            let (place, by) = (digit.of(RankId(moved)), digit.of(RankId(by)));
            moved - place * digit.stride + (place + by) % digit.size * digit.stride
        })
    };
    let messages = |rank: u32, by: u32| {
        let (mut all, mut out) = (Vec::new(), Step::new());
        for step in 0..schedule.steps(RankId(rank)) {
            out.clear();
            schedule.step(RankId(rank), step, &mut out);
            for (send, message) in (0..).zip(&out.sends) {
                let channel = schedule.channel(RankId(rank), step, send);
                all.push((step, rotated(message.peer.0, by), message.chunks.len(), channel));
            }
            let peers = out.recvs.iter().map(|recv| (recv.peer.0, recv.chunks.len()));
            all.extend(peers.map(|(peer, chunks)| (step, rotated(peer, by), chunks, u32::MAX)));
        }
        all
    };
    for by in 0..ranks {
        let to = rotated(0, by);
        assert_eq!(messages(0, by), messages(to, 0), "{notation}, {collective}, rank {to}");
    }
    true
}

/// Returns whether there is a closed form, which must equal the time of the slowest rank.
pub(super) fn critical_path_is_exact(notation: &str, collective: Collective, ranks: u32) -> bool {
    let Some(stages) = critical_path(notation, collective, ranks).unwrap() else {
        return false;
    };
    let schedule = laid_out(notation, collective, ranks);
    // The payload size is a multiple of the chunk counts of both.
    let of = u64::from(stages.iter().map(|stage| stage.of).max().unwrap());
    let chunks = u64::from(schedule.shape().chunks);
    let time = |stage: &Stage| {
        let bytes = u64::from(stage.chunks) * of * chunks / u64::from(stage.of);
        LATENCY * u64::from(stage.messages.min(1))
            + u64::from(stage.messages) * (OVERHEAD + TRANSFER * bytes)
            + u64::from(stage.reductions) * FOLD * bytes
    };
    let expected: u64 = stages.iter().map(time).sum();
    let slowest = slowest(&*schedule, of);
    assert_eq!(slowest, expected, "{notation}, {collective}, {ranks} ranks: {stages:?}");
    true
}

/// Pipelining postal parameters, in picoseconds per message and per byte.
const LATENCY: u64 = 1_000_000;
const OVERHEAD: u64 = 70_000;
const TRANSFER: u64 = 500;
const FOLD: u64 = 30;

/// Returns the time at which the last rank finishes; `bytes` is the chunk size.
fn slowest(schedule: &dyn Schedule, bytes: u64) -> u64 {
    let ranks = schedule.shape().ranks;
    let mut clocks = vec![0; ranks as usize];
    let mut queues: BTreeMap<(u32, u32), VecDeque<u64>> = BTreeMap::new();
    // The next step of each rank, and whether its messages were sent.
    let mut at = vec![(0, false); ranks as usize];
    let mut step = Step::new();
    let mut moved = true;
    while std::mem::take(&mut moved) {
        for rank in 0..ranks {
            let (clock, (next, sent)) = (&mut clocks[rank as usize], &mut at[rank as usize]);
            while *next < schedule.steps(RankId(rank)) {
                step.clear();
                schedule.step(RankId(rank), *next, &mut step);
                for message in step.sends.iter().filter(|_| !*sent) {
                    *clock += OVERHEAD + TRANSFER * bytes * u64::from(message.chunks.len());
                    let arrival = *clock + LATENCY;
                    queues.entry((rank, message.peer.0)).or_default().push_back(arrival);
                }
                *sent = true;
                if !receive(rank, &step, clock, &mut queues) {
                    break;
                }
                *clock += folds(&step) * FOLD * bytes;
                (*next, *sent, moved) = (*next + 1, false, true);
            }
        }
    }
    let ended = |(rank, (next, _)): (u32, &(u32, bool))| *next == schedule.steps(RankId(rank));
    assert!((0..).zip(&at).all(ended), "{} never finishes", schedule.shape().name);
    clocks.into_iter().max().unwrap()
}

/// Receives all messages of a step, or none if one is missing.
fn receive(
    rank: u32,
    step: &Step,
    clock: &mut u64,
    queues: &mut BTreeMap<(u32, u32), VecDeque<u64>>,
) -> bool {
    let mut needed: BTreeMap<u32, usize> = BTreeMap::new();
    for message in &step.recvs {
        *needed.entry(message.peer.0).or_default() += 1;
    }
    let there = |(peer, count): (&u32, &usize)| {
        queues.get(&(*peer, rank)).is_some_and(|queue| queue.len() >= *count)
    };
    if !needed.iter().all(there) {
        return false;
    }
    for message in &step.recvs {
        let arrival = queues.get_mut(&(message.peer.0, rank)).and_then(VecDeque::pop_front);
        *clock = arrival.unwrap().max(*clock);
    }
    true
}

/// Returns the number of chunks that a step folds into others.
fn folds(step: &Step) -> u64 {
    let chunks = step.locals.iter().map(|local| match local {
        Local::Reduce { operands, chunks, .. } => {
            u64::from(operands.len() - 1) * u64::from(chunks.len())
        }
        _ => 0,
    });
    chunks.sum()
}

/// Asserts that two schedules have the same ops: peers, slots, chunks, order.
pub(super) fn same_steps(one: &dyn Schedule, other: &dyn Schedule) {
    let what = format!("{} and {}", one.shape().name, other.shape().name);
    let (ranks, chunks) = (one.shape().ranks, one.shape().chunks);
    assert_eq!((ranks, chunks), (other.shape().ranks, other.shape().chunks), "{what}");
    for rank in (0..ranks).map(RankId) {
        assert_eq!(one.steps(rank), other.steps(rank), "{what}, {rank}");
        for index in 0..one.steps(rank) {
            let (mut mine, mut theirs) = (Step::new(), Step::new());
            one.step(rank, index, &mut mine);
            other.step(rank, index, &mut theirs);
            assert_eq!(mine, theirs, "{what}, {rank}, step {index}");
        }
    }
}
