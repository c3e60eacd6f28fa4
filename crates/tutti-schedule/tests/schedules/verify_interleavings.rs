//! The verifier compared with every interleaving: accepted schedules are correct in all of them,
//! and refused schedules that are correct in all are exactly those documented in
//! `tutti_schedule::verify`.

use std::collections::BTreeMap;

use super::common::{Ending, Interpreter};
use tutti_schedule::collective::Collective;
use tutti_schedule::{
    ChunkRange, Explicit, Local, Message, Op, Schedule, Slot, Step, VerifyError, text, verify,
};
use tutti_units::ids::RankId;

const SCHEDULES: usize = 6_000;
/// The maximum number of states of a search; larger schedules are skipped and counted.
const MOST_STATES: usize = 3_000;
/// Random runs of each schedule.
const RUNS: usize = 6;

const REPLY: &str = "recv_into_send, the message is a reply to the send";
const SENDS: &str = "recv_into_send, the race changes no result";
const OVERLAP: &str = "recvs_overlap, the race changes no result";
const RACE: &str = "wrong by a race alone";
const CUT: &str = "too large to search";

/// Random numbers that are the same on every machine.
struct Draws(u64);

impl Draws {
    fn below(&mut self, bound: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or(0) % bound.max(1)
    }

    fn one_in(&mut self, bound: usize) -> bool {
        self.below(bound) == 0
    }

    fn rank(&mut self, ranks: u32) -> u32 {
        u32::try_from(self.below(ranks as usize)).expect("few ranks")
    }
}

/// A program op by op, with the rank of each op.
type Ops = Vec<(u32, Op)>;

fn message(peer: u32, slot: Slot, chunks: ChunkRange) -> Message {
    Message { peer: RankId(peer), slot, chunks }
}

/// Sends `chunks` of one rank's data to another, which folds them into its data or stores them
/// there.
fn transfer(ops: &mut Ops, draws: &mut Draws, from: u32, to: u32, chunks: ChunkRange, folds: bool) {
    let scratch = Slot(1 + u32::from(draws.one_in(3)));
    let into = if folds || draws.one_in(4) { scratch } else { Slot::DATA };
    ops.push((from, Op::Send(message(to, Slot::DATA, chunks))));
    ops.push((to, Op::Recv(message(from, into, chunks))));
    if folds {
        let operands = vec![Slot::DATA, scratch];
        ops.push((to, Op::Reduce { into: Slot::DATA, operands, chunks }));
    } else if into != Slot::DATA {
        ops.push((to, Op::Copy { from: into, into: Slot::DATA, chunks, to: chunks.start }));
    }
}

/// Every rank's contribution up a random tree, the result down another; or only one of the two.
fn trees(draws: &mut Draws, ranks: u32, chunks: ChunkRange, ops: &mut Ops, up: bool, down: bool) {
    if up {
        let mut left: Vec<u32> = (0..ranks).collect();
        while left.len() > 1 {
            let child = left.remove(1 + draws.below(left.len() - 1));
            let parent = left[draws.below(left.len())];
            transfer(ops, draws, child, parent, chunks, true);
        }
    }
    let mut known = vec![0];
    while down && known.len() < ranks as usize {
        let to = draws.rank(ranks);
        let from = known[draws.below(known.len())];
        if to != from && (!known.contains(&to) || draws.one_in(4)) {
            transfer(ops, draws, from, to, chunks, false);
            known.push(to);
            known.dedup();
        }
        known.sort_unstable();
        known.dedup();
    }
    // Ranks that have the result may send it to each other.
    while down && draws.one_in(2) {
        let (from, to) = (draws.rank(ranks), draws.rank(ranks));
        if from != to {
            transfer(ops, draws, from, to, chunks, false);
        }
    }
}

/// An all_to_all in which ranks receive into the chunks they send, in place, or through scratch.
fn in_place(draws: &mut Draws) -> Explicit {
    let ranks = 2 + draws.rank(2);
    let pairs = || (0..ranks).flat_map(|a| (0..ranks).map(move |b| (a, b))).filter(|(a, b)| a != b);
    let slot = Slot(u32::from(draws.one_in(2)));
    let mut ops: Ops = pairs()
        .map(|(rank, peer)| (rank, Op::Send(message(peer, Slot::DATA, ChunkRange::one(peer)))))
        .collect();
    ops.extend(
        pairs().map(|(rank, peer)| (rank, Op::Recv(message(peer, slot, ChunkRange::one(peer))))),
    );
    if slot != Slot::DATA {
        ops.extend(pairs().map(|(rank, to)| {
            (rank, Op::Copy { from: slot, into: Slot::DATA, chunks: ChunkRange::one(to), to })
        }));
    }
    stepped(draws, Collective::AllToAll, ranks, ranks, &ops)
}

/// A schedule that is correct, or was before it was changed.
fn random(draws: &mut Draws) -> Explicit {
    if draws.one_in(8) {
        return in_place(draws);
    }
    let ranks = 2 + draws.rank(3);
    let mut chunks = 1 + draws.rank(2);
    let mut ops = Ops::new();
    let root = RankId(0);
    let collective = match draws.below(4) {
        0 => Collective::Broadcast { root },
        1 => Collective::Reduce { root },
        2 => Collective::AllGather,
        _ => Collective::AllReduce,
    };
    if collective == Collective::AllGather {
        chunks = ranks;
        for owner in 0..ranks {
            for peer in (0..ranks).filter(|&peer| peer != owner) {
                transfer(&mut ops, draws, owner, peer, ChunkRange::one(owner), false);
            }
        }
    } else {
        let [up, down] = [Collective::Broadcast { root }, Collective::Reduce { root }]
            .map(|without| collective != without);
        let split = chunks > 1 && draws.one_in(2);
        let runs = if split { vec![(0, 1), (1, chunks)] } else { vec![(0, chunks)] };
        for (start, end) in runs {
            trees(draws, ranks, ChunkRange::new(start, end), &mut ops, up, down);
        }
    }
    bend(draws, &mut ops);
    stepped(draws, collective, ranks, chunks, &ops)
}

/// Drops, doubles or moves an op, or redirects a receive, with some probability.
fn bend(draws: &mut Draws, ops: &mut Ops) {
    while draws.one_in(3) && !ops.is_empty() {
        let at = draws.below(ops.len());
        match draws.below(4) {
            0 => _ = ops.remove(at),
            1 => ops.insert(at, ops[at].clone()),
            2 => {
                let to = draws.below(ops.len());
                ops.swap(at, to);
            }
            _ => {
                if let Op::Recv(recv) = &mut ops[at].1 {
                    recv.slot = Slot(draws.rank(3));
                }
            }
        }
    }
}

/// Groups ops into steps, mostly as many as the order of sends, receives and local ops allows.
fn stepped(
    draws: &mut Draws,
    collective: Collective,
    ranks: u32,
    chunks: u32,
    ops: &Ops,
) -> Explicit {
    let mut programs: Vec<Vec<Step>> = vec![vec![Step::new()]; ranks as usize];
    for (rank, op) in ops {
        let steps = &mut programs[*rank as usize];
        let last = &steps[steps.len() - 1];
        let fits = match op {
            Op::Send(_) => last.recvs.is_empty() && last.locals.is_empty(),
            Op::Recv(_) => last.locals.is_empty(),
            _ => true,
        };
        if !fits || draws.one_in(4) {
            steps.push(Step::new());
        }
        let last = steps.last_mut().expect("there is a step");
        match *op {
            Op::Send(Message { peer, slot, chunks }) => last.send(peer, slot, chunks),
            Op::Recv(Message { peer, slot, chunks }) => last.recv(peer, slot, chunks),
            Op::Reduce { into, ref operands, chunks } => {
                last.reduce(into, operands.iter().copied(), chunks);
            }
            Op::Copy { from, into, chunks, to } => last.copy(from, chunks, into, to),
            _ => {}
        }
    }
    build(collective, ranks, chunks, 3, programs)
}

fn build(
    collective: Collective,
    ranks: u32,
    chunks: u32,
    slots: u32,
    programs: Vec<Vec<Step>>,
) -> Explicit {
    let mut builder = Explicit::builder(collective, ranks, chunks);
    builder.slots(slots);
    for (rank, steps) in (0..ranks).map(RankId).zip(programs) {
        for step in steps.into_iter().filter(|step| !step.is_empty()) {
            builder.step(rank, "", step);
        }
    }
    builder.build().unwrap_or_else(|error| panic!("{error}"))
}

/// Redirects each receive of a hazard to an unused slot and copies it from there before all other
/// local ops, as the error's hint recommends.
fn apart(schedule: &Explicit) -> Explicit {
    let shape = schedule.shape().clone();
    let mut fresh = shape.slots;
    let mut programs = Vec::new();
    for rank in (0..shape.ranks).map(RankId) {
        let mut steps = Vec::new();
        for old in (0..schedule.steps(rank)).map(|index| step_of(schedule, rank, index)) {
            let mut step = Step::new();
            old.sends.iter().for_each(|send| step.send(send.peer, send.slot, send.chunks));
            let mut copies = Vec::new();
            for (at, recv) in old.recvs.iter().enumerate() {
                let others = old.recvs[..at].iter().chain(&old.recvs[at + 1..]);
                if old.sends.iter().chain(others).any(|other| touch(other, recv)) {
                    step.recv(recv.peer, Slot(fresh), recv.chunks);
                    copies.push((Slot(fresh), *recv));
                    fresh += 1;
                } else {
                    step.recv(recv.peer, recv.slot, recv.chunks);
                }
            }
            for (slot, recv) in copies {
                step.copy(slot, recv.chunks, recv.slot, recv.chunks.start);
            }
            add_locals(&old, &mut step);
            steps.push(step);
        }
        programs.push(steps);
    }
    build(shape.collective, shape.ranks, shape.chunks, fresh, programs)
}

/// Moves receives into chunks that their step sends to a separate step, with the local ops.
fn later(schedule: &Explicit) -> Explicit {
    let shape = schedule.shape().clone();
    let mut programs = Vec::new();
    for rank in (0..shape.ranks).map(RankId) {
        let mut steps = Vec::new();
        for old in (0..schedule.steps(rank)).map(|index| step_of(schedule, rank, index)) {
            let (mut first, mut second) = (Step::new(), Step::new());
            old.sends.iter().for_each(|send| first.send(send.peer, send.slot, send.chunks));
            let is_sent = |recv: &Message| old.sends.iter().any(|send| touch(send, recv));
            // Receives from one rank stay in order.
            let after = |at: usize| {
                let moved = |one: &&Message| one.peer == old.recvs[at].peer && is_sent(one);
                old.recvs[..=at].iter().any(|one| moved(&one))
            };
            for (at, recv) in old.recvs.iter().enumerate() {
                let step = if after(at) { &mut second } else { &mut first };
                step.recv(recv.peer, recv.slot, recv.chunks);
            }
            add_locals(&old, &mut second);
            steps.extend([first, second]);
        }
        programs.push(steps);
    }
    build(shape.collective, shape.ranks, shape.chunks, shape.slots, programs)
}

fn step_of(schedule: &Explicit, rank: RankId, index: u32) -> Step {
    let mut step = Step::new();
    schedule.step(rank, index, &mut step);
    step
}

fn touch(one: &Message, other: &Message) -> bool {
    one.slot == other.slot && one.chunks.overlaps(other.chunks)
}

fn receives_overlap(schedule: &Explicit) -> bool {
    let overlap = |step: &Step| {
        let pairs = step.recvs.iter().enumerate();
        pairs
            .flat_map(|(at, one)| step.recvs[..at].iter().map(move |other| (one, other)))
            .any(|(one, other)| touch(one, other))
    };
    let ranks = (0..schedule.shape().ranks).map(RankId);
    ranks
        .flat_map(|rank| (0..schedule.steps(rank)).map(move |index| (rank, index)))
        .any(|(rank, index)| overlap(&step_of(schedule, rank, index)))
}

fn add_locals(old: &Step, step: &mut Step) {
    for local in &old.locals {
        match *local {
            Local::Reduce { into, operands, chunks } => {
                step.reduce(into, old.operands(operands).iter().copied(), chunks);
            }
            Local::Copy { from, into, chunks, to } => step.copy(from, chunks, into, to),
            Local::Compute { .. } | Local::Sleep { .. } => step.locals.push(*local),
        }
    }
}

/// Returns the verifier's verdict as a word.
fn verdict(schedule: &Explicit) -> String {
    match verify(schedule) {
        Ok(_) => "accepted".to_owned(),
        Err(error) => format!("{error:?}").split([' ', '{']).next().unwrap_or("").to_owned(),
    }
}

/// Returns the documented class of the verdict on a schedule that is correct in every interleaving.
fn class(schedule: &Explicit, interpreter: &Interpreter) -> String {
    match verify(schedule) {
        Ok(_) => "accepted",
        Err(VerifyError::RecvIntoSend { .. }) if !interpreter.seen.read_late => REPLY,
        Err(VerifyError::RecvIntoSend { .. }) => SENDS,
        Err(VerifyError::RecvsOverlap { .. }) => OVERLAP,
        Err(_) => "not documented",
    }
    .to_owned()
}

/// Returns whether only a race makes a schedule incorrect in some interleaving.
fn wrong(schedule: &Explicit) -> String {
    let is_race = matches!(
        verify(schedule),
        Err(VerifyError::RecvIntoSend { .. } | VerifyError::RecvsOverlap { .. })
    );
    let is_alone = is_race && verdict(&apart(schedule)) == "accepted";
    if is_alone { RACE } else { "wrong" }.to_owned()
}

/// Adds the schedule to the message of a failed assertion.
struct Shown<'a>(usize, &'a Explicit);

impl Drop for Shown<'_> {
    #[expect(clippy::print_stderr, reason = "shows which schedule failed")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("schedule {}: {}\n{}", self.0, verdict(self.1), text::to_string(self.1));
        }
    }
}

/// Compares the verdict on one schedule with all its interleavings; returns its class.
fn examined(schedule: &Explicit, draws: &mut Draws) -> String {
    let mut interpreter = Interpreter::new(schedule);
    interpreter.search(MOST_STATES);
    if interpreter.seen.is_cut {
        return CUT.to_owned();
    }
    let is_fault = |ending: &Ending| matches!(ending, Ending::Fault(_));
    for _ in 0..RUNS {
        let ending = interpreter.at_random(|bound| draws.below(bound));
        let known = &interpreter.seen.endings;
        assert!(known.contains(&ending) || is_fault(&ending) && known.iter().any(is_fault));
    }
    let endings = &interpreter.seen.endings;
    let is_right = endings.iter().all(|ending| interpreter.is_right(ending));
    let is_accepted = verdict(schedule) == "accepted";
    assert!(is_right || !is_accepted, "accepted, and wrong");
    assert!(!is_accepted || endings.len() == 1, "accepted, and other bits in other interleavings");
    let class = if is_right { class(schedule, &interpreter) } else { wrong(schedule) };
    assert_ne!(class, "not documented", "refused, and right");
    if is_right {
        assert_eq!(verdict(&apart(schedule)), "accepted", "with receives in separate slots");
    }
    if class == REPLY && !receives_overlap(schedule) {
        assert_eq!(verdict(&later(schedule)), "accepted", "with receives in the next step");
    }
    class
}

#[test]
fn accepted_schedules_are_correct_and_refused_ones_incorrect_or_documented() {
    let mut draws = Draws(18);
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for number in 0..SCHEDULES {
        let schedule = random(&mut draws);
        let shown = Shown(number, &schedule);
        let class = examined(&schedule, &mut draws);
        drop(shown);
        *counts.entry(class).or_default() += 1;
    }
    let least = [("accepted", 2_000), ("wrong", 500), (RACE, 50), (REPLY, 500), (SENDS, 100)];
    for (class, least) in least.into_iter().chain([(OVERLAP, 100)]) {
        assert!(counts.get(class).is_some_and(|&count| count >= least), "{class}: {counts:?}");
    }
    assert!(counts.get(CUT).is_none_or(|&count| count < 100), "{counts:?}");
}
