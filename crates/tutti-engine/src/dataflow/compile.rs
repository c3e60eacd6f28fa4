//! From the values of each rank to its messages: handlings, dependencies, matching.

use std::collections::{BTreeMap, VecDeque};

use super::values::{Side, Use, Value, Values};
use super::{Dataflow, DataflowError, Follower, Incoming, Messages, Outgoing, Phase, rotated};
use crate::endpoint::Handling;
use tutti_schedule::{Digit, Schedule};
use tutti_units::ids::RankId;

impl Dataflow {
    /// Derives the data flow of a schedule that the verifier accepts.
    ///
    /// # Errors
    /// When a send has no receive or no value, or a rank computes.
    pub fn of(schedule: &dyn Schedule) -> Result<Dataflow, DataflowError> {
        let ranks = schedule.shape().ranks;
        let symmetry = schedule.symmetry().map(|digits| completed(&digits, ranks));
        let traced = if symmetry.is_some() { 1 } else { ranks };
        let ranks_traced = (0..traced).map(|rank| Values::of(schedule, RankId(rank)));
        let traces: Vec<Values> = ranks_traced.collect::<Result<_, _>>()?;
        let numbers = phase_numbers(&traces, schedule.phases() as usize);
        let mut flow = Dataflow {
            ranks,
            phases: phases(&traces, &numbers),
            lists: Vec::with_capacity(traces.len()),
            chunks: schedule.shape().chunks,
            loaded: traces.iter().map(|trace| trace.loaded).max().unwrap_or(0),
            result: traces.iter().map(|trace| trace.results).max().unwrap_or(0),
            lengths: Vec::new(),
            symmetry,
        };
        for trace in &traces {
            let list = flow.list(trace, &numbers);
            flow.lists.push(list);
        }
        flow.match_all(&schedule.shape().name)?;
        Ok(flow)
    }

    fn list(&mut self, trace: &Values, numbers: &[usize]) -> Messages {
        let mut list = Messages {
            sends: trace.sends.iter().map(|side| self.outgoing(side)).collect(),
            recvs: trace.recvs.iter().map(|side| self.incoming(side)).collect(),
            first: firsts(trace, numbers, self.phases.len()),
            followers: Vec::new(),
            awaits_messages: false,
        };
        let mut followers: Vec<Vec<Follower>> = vec![Vec::new(); list.recvs.len()];
        for (index, send) in (0..).zip(&mut list.sends) {
            let (after, is_data) = awaited(trace, index, read(trace, index, send));
            send.awaits = u32::try_from(after.len()).unwrap_or(u32::MAX);
            let chunks = trace.sends[index as usize].chunks;
            let only = match after[..] {
                [recv] if is_data && trace.recvs[recv as usize].chunks == chunks => Some(recv),
                _ => None,
            };
            if let Some(recv) = only.filter(|_| send.fused == chunks) {
                let forward = &mut list.recvs[recv as usize].forward;
                send.forwarded = forward.is_none();
                *forward = forward.or(Some(index));
            }
            if !send.forwarded {
                let follower = Follower { send: index, by_packet: only.is_some() };
                list.awaits_messages |= !after.is_empty() && only.is_none();
                after.iter().for_each(|&recv| followers[recv as usize].push(follower));
            }
        }
        for (index, recv) in list.recvs.iter_mut().enumerate() {
            handle(trace, index, recv);
            recv.first_follower = u32::try_from(list.followers.len()).unwrap_or(u32::MAX);
            recv.followers = u32::try_from(followers[index].len()).unwrap_or(u32::MAX);
            list.followers.append(&mut followers[index]);
        }
        list
    }

    fn outgoing(&mut self, side: &Side) -> Outgoing {
        Outgoing {
            peer: side.peer,
            arrives_as: 0,
            length: self.length(side.chunks),
            channel: side.channel,
            awaits: 0,
            forwarded: false,
            handling: Handling::SendOwn,
            fused: 0,
            multicast: side.mark,
        }
    }

    fn incoming(&mut self, side: &Side) -> Incoming {
        Incoming {
            peer: side.peer,
            sent_as: 0,
            length: self.length(side.chunks),
            fused: (Handling::KeepAndSend, 0),
            kept: Handling::Keep,
            forward: None,
            combine: side.mark,
            first_follower: 0,
            followers: 0,
        }
    }

    fn length(&mut self, chunks: u32) -> u32 {
        let known = self.lengths.iter().position(|&length| length == chunks);
        let index = known.unwrap_or_else(|| {
            self.lengths.push(chunks);
            self.lengths.len() - 1
        });
        u32::try_from(index).unwrap_or(u32::MAX)
    }

    /// The k-th message from a to b matches b's k-th receive from a.
    fn match_all(&mut self, name: &str) -> Result<(), DataflowError> {
        let mut posted: BTreeMap<(u32, u32), VecDeque<u32>> = BTreeMap::new();
        for (rank, list) in (0..).zip(&self.lists) {
            for (index, recv) in (0..).zip(&list.recvs) {
                posted.entry((recv.peer.0, rank)).or_default().push_back(index);
            }
        }
        for sender in 0..self.lists.len() {
            for index in 0..self.lists[sender].sends.len() {
                let (from, to) = (index_of(sender), self.lists[sender].sends[index].peer);
                // In a symmetric schedule, what arrives at rank 0 comes from the opposite offset.
                let (pair, list) = match &self.symmetry {
                    Some(digits) => ((opposite(digits, to.0), 0), 0),
                    None => ((from, to.0), to.index()),
                };
                let recv = posted.get_mut(&pair).and_then(VecDeque::pop_front);
                let recv = recv.ok_or_else(|| DataflowError::Unmatched {
                    name: name.to_owned(),
                    from: RankId(from),
                    to,
                })?;
                self.lists[sender].sends[index].arrives_as = recv;
                self.lists[list].recvs[recv as usize].sent_as = index_of(index);
            }
        }
        Ok(())
    }
}

pub(super) fn index_of(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

/// The offset that leads back from `offset`.
fn opposite(digits: &[Digit], offset: u32) -> u32 {
    let back = |digit: &Digit| {
        let place = digit.of(RankId(offset));
        if place == 0 { 0 } else { (digit.size - place) * digit.stride }
    };
    let back = digits.iter().map(back).sum();
    debug_assert_eq!(rotated(digits, offset, back), 0, "the digits do not cover the ranks");
    back
}

/// Fills the gaps between digits with further digits.
fn completed(digits: &[Digit], ranks: u32) -> Vec<Digit> {
    let (mut all, mut stride) = (Vec::new(), 1);
    let end = Digit { stride: ranks, size: 1 };
    for &digit in digits.iter().chain([&end]) {
        if digit.stride > stride {
            all.push(Digit { stride, size: digit.stride / stride });
        }
        if digit.size > 1 {
            all.push(digit);
        }
        stride = digit.stride * digit.size;
    }
    all
}

/// The number of each phase among those with messages.
fn phase_numbers(traces: &[Values], phases: usize) -> Vec<usize> {
    let mut used = vec![false; phases];
    for side in traces.iter().flat_map(|trace| trace.sends.iter().chain(&trace.recvs)) {
        used[side.phase as usize] = true;
    }
    let number = |count: &mut usize, used: bool| {
        let number = *count;
        *count += usize::from(used);
        Some(number)
    };
    used.into_iter().scan(0, number).collect()
}

fn phases(traces: &[Values], numbers: &[usize]) -> Vec<Phase> {
    let mut found: Vec<Phase> = Vec::new();
    for trace in traces {
        for (phase, &entry) in trace.entries.iter().enumerate() {
            let has_messages = trace.sends.iter().chain(&trace.recvs);
            if !has_messages.clone().any(|side| side.phase as usize == phase) {
                continue;
            }
            let number = numbers[phase];
            found.resize(found.len().max(number + 1), Phase::default());
            found[number].entry = found[number].entry.max(entry);
        }
        for (index, recv) in trace.recvs.iter().enumerate() {
            let reduces = trace.produced_by(index).any(|value| value.reduced);
            found[numbers[recv.phase as usize]].reduces |= reduces;
        }
    }
    found
}

fn firsts(trace: &Values, numbers: &[usize], phases: usize) -> Vec<(u32, u32)> {
    let first = |sides: &[Side], phase: usize| {
        index_of(sides.partition_point(|side| numbers[side.phase as usize] < phase))
    };
    (0..=phases).map(|phase| (first(&trace.sends, phase), first(&trace.recvs, phase))).collect()
}

/// Sets how a send reads its chunks; returns the receives of its phase that it awaits.
fn read(trace: &Values, index: u32, send: &mut Outgoing) -> Vec<u32> {
    let phase = trace.sends[index as usize].phase;
    // What an earlier phase has reduced completely is sent by the kernel that reduces it, once.
    let (mut after, mut reduced) = (Vec::new(), trace.reduces());
    for (value, is_first) in trace.read_by(index as usize) {
        if value.phase == Some(phase) {
            after.extend(&value.after);
        }
        if is_fused(value, index, phase) {
            send.fused += 1;
        } else {
            reduced &= is_first && value.is_result && value.phase.is_some_and(|made| made < phase);
        }
    }
    send.handling = if reduced { Handling::SendReduced } else { Handling::SendOwn };
    after.sort_unstable();
    after.dedup();
    after
}

/// Adds the receives that a send awaits by the order of its steps to those of its data; returns
/// whether it awaits none but its data.
fn awaited(trace: &Values, index: u32, mut data: Vec<u32>) -> (Vec<u32>, bool) {
    let (first, end) = trace.sends[index as usize].follows;
    let count = data.len();
    data.extend(first..end);
    data.sort_unstable();
    data.dedup();
    let is_data = data.len() == count;
    (data, is_data)
}

/// Whether a value is received in the phase of the send that is its first use.
fn is_fused(value: &Value, send: u32, phase: u32) -> bool {
    value.phase == Some(phase)
        && !value.after.is_empty()
        && value.first == Some((Use::Send(send), phase))
}

/// Sets how the endpoint handles a receive.
fn handle(trace: &Values, index: usize, recv: &mut Incoming) {
    let (mut reduced, mut kept, mut fused) = (false, false, 0);
    for value in trace.produced_by(index) {
        reduced |= value.reduced;
        if let Some((Use::Send(_), phase)) = value.first
            && value.phase == Some(phase)
        {
            fused += 1;
            kept |= value.more;
        }
    }
    let handling = match (reduced, kept) {
        (true, true) => Handling::ReduceKeepAndSend,
        (true, false) => Handling::ReduceAndSend,
        (false, true) => Handling::KeepAndSend,
        (false, false) => Handling::PassOn,
    };
    recv.fused = (handling, fused);
    recv.kept = if reduced { Handling::ReduceAndKeep } else { Handling::Keep };
}
