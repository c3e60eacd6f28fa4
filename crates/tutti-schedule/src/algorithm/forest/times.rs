//! Gives every message of packed trees a time: no link begins one before the last is through, no rank sends
//! what it does not have, and what much else waits for goes first.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use super::packing::Tree;
use crate::algorithm::on_graph::{Edge, LinkGraph, Move, Receiving, Timetable};

/// A message: over which way, and how long what depends on it takes at least.
struct Task {
    chunk: u32,
    way: Edge,
    folds: bool,
    height: u64,
    /// Messages that must be there before.
    waits: u32,
    /// Messages that wait for this one.
    after: Vec<u32>,
}

/// Messages down every tree; before that up, if they are folded first.
fn tasks(trees: &[Tree], wiring: &LinkGraph, both_ways: bool) -> Vec<Task> {
    let ranks = wiring.ranks as usize;
    let mut tasks: Vec<Task> = Vec::new();
    for (chunk, tree) in (0..).zip(trees) {
        let mut down: Vec<Option<u32>> = vec![None; ranks];
        let start = tasks.len();
        for &way in &tree.ways {
            let index = index(tasks.len());
            let before = down[way.from as usize];
            let waits = u32::from(before.is_some());
            tasks.push(Task { chunk, way, folds: false, height: 0, waits, after: Vec::new() });
            if let Some(before) = before {
                tasks[before as usize].after.push(index);
            }
            down[way.to as usize] = Some(index);
        }
        if both_ways {
            add_folds(tree, chunk, wiring, start, &mut tasks);
        }
    }
    tasks
}

/// The same ways back, deepest first; all that reach the root come before what leaves it.
fn add_folds(tree: &Tree, chunk: u32, wiring: &LinkGraph, start: usize, tasks: &mut Vec<Task>) {
    let mut into: Vec<Vec<u32>> = vec![Vec::new(); wiring.ranks as usize];
    for &way in tree.ways.iter().rev() {
        let Some(back) = wiring.way_back(way) else { continue };
        let index = index(tasks.len());
        let below = std::mem::take(&mut into[back.from as usize]);
        let waits = count(below.len());
        below.into_iter().for_each(|before| tasks[before as usize].after.push(index));
        tasks.push(Task { chunk, way: back, folds: true, height: 0, waits, after: Vec::new() });
        into[back.to as usize].push(index);
    }
    let last = std::mem::take(&mut into[tree.root as usize]);
    let first = (start..start + tree.ways.len()).filter(|&at| tasks[at].way.from == tree.root);
    let first: Vec<usize> = first.collect();
    for &at in &first {
        tasks[at].waits = count(last.len());
    }
    for before in last {
        tasks[before as usize].after.extend(first.iter().map(|&at| index(at)));
    }
}

/// What goes first, by [`Order`]; then what most depends on; then to the next rank rather than to the one after
/// it.
type Key = (u64, Reverse<u64>, u32, u32);

/// Which trees go first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Order {
    /// The first of every rank before the second of any, so that the first are down before the last are up.
    Turns,
    /// One after the other, the roots in an order that is even all over the ranks: each tree has a time at which
    /// it should be down, these times are as far apart as the work allows, and what is due soonest goes first. At
    /// the end fewer trees are still under way than by turns.
    Staggered,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A link has room again.
    Free(u32),
    /// A message may be sent on.
    There(u32),
}

/// So many messages are looked at for a link that is free, before the next link has its turn.
const LOOK: usize = 128;

/// 2^32 over the golden ratio: multiples of it, modulo 2^32, are even all over the range however many there are.
const GOLDEN: u32 = 0x9E37_79B9;

struct Clock<'a> {
    wiring: &'a LinkGraph,
    tasks: Vec<Task>,
    timing: Timing,
    /// By chunk, with [`Order::Staggered`]: when its tree should be down.
    due: Vec<u64>,
    /// By link: how long a message takes, what is still to come, until when it is busy, the messages
    /// that are ready to begin with it, and the links whose messages wait for it.
    ticks: Vec<u64>,
    left: Vec<u64>,
    busy: Vec<u64>,
    ready: Vec<BTreeSet<Key>>,
    blocked: Vec<Vec<usize>>,
    events: BinaryHeap<Reverse<(u64, Event)>>,
    timetable: Timetable,
}

/// How the messages are given times.
#[derive(Clone, Copy)]
pub(super) struct Timing {
    /// Each rank has so many trees, one after the other.
    pub(super) pieces: u32,
    pub(super) both_ways: bool,
    /// A message is sent on no sooner than this many times its length after it could have been.
    pub(super) lag: u32,
    pub(super) order: Order,
}

/// A timetable, and how long it takes, per byte of a chunk.
pub(super) fn timed(trees: &[Tree], wiring: &LinkGraph, timing: Timing) -> (f64, Timetable) {
    let links = wiring.rates.len();
    let mut clock = Clock {
        wiring,
        tasks: tasks(trees, wiring, timing.both_ways),
        timing,
        due: Vec::new(),
        ticks: wiring.rates.iter().map(|&rate| ticks(rate.fraction())).collect(),
        left: vec![0; links],
        busy: vec![0; links],
        ready: vec![BTreeSet::new(); links],
        blocked: vec![Vec::new(); links],
        events: BinaryHeap::new(),
        timetable: Timetable {
            ranks: wiring.ranks,
            chunks: count(trees.len()),
            receiving: Receiving::Late,
            ..Timetable::default()
        },
    };
    clock.raise();
    if timing.order == Order::Staggered {
        clock.set_due(count(trees.len()));
    }
    let takes = clock.run();
    (per_byte(takes), clock.timetable)
}

impl Clock<'_> {
    /// When a message that starts at 0 has passed, and when it may be sent on.
    fn lasts(&self, way: Edge) -> (u64, u64) {
        let longest = self.wiring.links(way).iter().map(|&link| self.ticks[link as usize]).max();
        let longest = longest.unwrap_or(2);
        (longest, longest * (1 + u64::from(self.timing.lag)))
    }

    /// Sets the heights, and what is to come on each link.
    fn raise(&mut self) {
        let mut waits: Vec<u32> = self.tasks.iter().map(|task| task.waits).collect();
        let all = (0..).zip(&self.tasks);
        let mut order: Vec<u32> =
            all.filter(|(_, task)| task.waits == 0).map(|(at, _)| at).collect();
        let mut next = 0;
        while next < order.len() {
            let at = order[next] as usize;
            for (link, pace) in self.wiring.paced(self.tasks[at].way) {
                self.left[link] += self.ticks[pace];
            }
            for &after in &self.tasks[at].after {
                waits[after as usize] -= 1;
                if waits[after as usize] == 0 {
                    order.push(after);
                }
            }
            next += 1;
        }
        for &at in order.iter().rev() {
            let after =
                self.tasks[at as usize].after.iter().map(|&after| &self.tasks[after as usize]);
            let above = after.map(|task| task.height + self.lasts(task.way).1).max();
            self.tasks[at as usize].height = above.unwrap_or(0);
        }
    }

    /// Trees are due evenly over the time that the most loaded link needs, later by the greatest height.
    fn set_due(&mut self, chunks: u32) {
        let all = u128::from(self.left.iter().copied().max().unwrap_or(0));
        let highest = self.tasks.iter().map(|task| task.height).max().unwrap_or(0);
        let due = |chunk: u32| {
            let (root, piece) = (chunk / self.timing.pieces, chunk % self.timing.pieces);
            let place = u128::from(piece) << 32 | u128::from(root.wrapping_mul(GOLDEN));
            let after = (all * place / u128::from(self.timing.pieces)) >> 32;
            highest + u64::try_from(after).unwrap_or(u64::MAX - highest)
        };
        self.due = (0..chunks).map(due).collect();
    }

    /// Starts everything; when the last message has passed.
    fn run(&mut self) -> u64 {
        let mut woken = Vec::new();
        for at in 0..count(self.tasks.len()) {
            if self.tasks[at as usize].waits == 0 {
                woken.push(self.put(at));
            }
        }
        let mut last = 0;
        let mut now = 0;
        loop {
            woken.sort_unstable_by_key(|&link| (Reverse(self.left[link]), link));
            woken.dedup();
            for first in woken.drain(..) {
                while let Some(key) = self.next(first, now) {
                    self.ready[first].remove(&key);
                    last = last.max(self.start(key.3, now));
                }
            }
            let Some(&Reverse((time, _))) = self.events.peek() else { return last };
            now = time;
            while let Some(&Reverse((_, event))) = self.events.peek().filter(|at| at.0.0 == now) {
                self.events.pop();
                self.happen(event, &mut woken);
            }
        }
    }

    /// A message is ready: the link to look at.
    fn put(&mut self, at: u32) -> usize {
        let Task { chunk, way, height, .. } = self.tasks[at as usize];
        let turn = (self.wiring.ranks + way.to - way.from) % self.wiring.ranks;
        let first = self.wiring.links(way)[0] as usize;
        let goes = match self.timing.order {
            Order::Turns => u64::from(chunk % self.timing.pieces),
            Order::Staggered => self.due[chunk as usize] - height,
        };
        self.ready[first].insert((goes, Reverse(height), turn, at));
        first
    }

    fn happen(&mut self, event: Event, woken: &mut Vec<usize>) {
        match event {
            Event::Free(link) => {
                woken.push(link as usize);
                woken.append(&mut self.blocked[link as usize]);
            }
            Event::There(at) => {
                for after in std::mem::take(&mut self.tasks[at as usize].after) {
                    let waits = &mut self.tasks[after as usize].waits;
                    *waits -= 1;
                    if *waits == 0 {
                        woken.push(self.put(after));
                    }
                }
            }
        }
    }

    fn start(&mut self, at: u32, now: u64) -> u64 {
        let Task { chunk, way, folds, .. } = self.tasks[at as usize];
        for (link, pace) in self.wiring.paced(way) {
            self.busy[link] = now + self.ticks[pace];
            self.left[link] -= self.ticks[pace];
            self.events.push(Reverse((self.busy[link], Event::Free(count(link)))));
        }
        let (passed, sent_on) = self.lasts(way);
        let there = now + sent_on;
        let Edge { from, to, .. } = way;
        self.timetable.moves.push(Move { sent: now, there, chunk, from, to, folds });
        self.timetable.end = self.timetable.end.max(there);
        self.events.push(Reverse((there, Event::There(at))));
        now + passed
    }

    /// The first message over a link whose other links are free too; if there is none, the links that are
    /// not know who waits for them.
    fn next(&mut self, first: usize, now: u64) -> Option<Key> {
        if self.busy[first] > now {
            return None;
        }
        for key in self.ready[first].iter().take(LOOK) {
            let mut links = self.wiring.links(self.tasks[key.3 as usize].way).iter();
            let Some(&taken) = links.find(|&&link| self.busy[link as usize] > now) else {
                return Some(*key);
            };
            let waiting = &mut self.blocked[taken as usize];
            if waiting.last() != Some(&first) {
                waiting.push(first);
            }
        }
        None
    }
}

/// Parts of a picosecond in which times are counted.
const PARTS: u32 = 2048;

/// What a byte takes; even, and never nothing.
fn ticks((ps, bytes): (u64, u64)) -> u64 {
    let half = u128::from(ps) * u128::from(PARTS / 2) / u128::from(bytes.max(1));
    2 * u64::try_from(half).unwrap_or(u64::MAX / 2).clamp(1, 1 << 36)
}

#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn per_byte(ticks: u64) -> f64 {
    ticks as f64 / f64::from(PARTS)
}

fn index(len: usize) -> u32 {
    u32::try_from(len).expect("there are fewer messages than 2^32")
}

fn count(len: usize) -> u32 {
    index(len)
}
