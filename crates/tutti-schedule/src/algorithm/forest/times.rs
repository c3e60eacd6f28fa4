//! Assigns a time to every message of packed trees: a link carries one message at a time, a rank
//! sends only received data, and messages with many dependants have priority.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use super::packing::Tree;
use crate::algorithm::on_graph::{Edge, LinkGraph, Move, Receiving, Timetable};

/// A message: its edge, and the minimum duration of the messages that depend on it.
struct Task {
    chunk: u32,
    edge: Edge,
    folds: bool,
    height: u64,
    /// The number of messages that must arrive before.
    waits: u32,
    /// The messages that depend on this one.
    after: Vec<u32>,
}

/// Returns the messages down every tree, preceded by those up the tree if they fold.
fn tasks(trees: &[Tree], graph: &LinkGraph, both_directions: bool) -> Vec<Task> {
    let ranks = graph.ranks as usize;
    let mut tasks: Vec<Task> = Vec::new();
    for (chunk, tree) in (0..).zip(trees) {
        let mut down: Vec<Option<u32>> = vec![None; ranks];
        let start = tasks.len();
        for &edge in &tree.edges {
            let index = index(tasks.len());
            let before = down[edge.from as usize];
            let waits = u32::from(before.is_some());
            tasks.push(Task { chunk, edge, folds: false, height: 0, waits, after: Vec::new() });
            if let Some(before) = before {
                tasks[before as usize].after.push(index);
            }
            down[edge.to as usize] = Some(index);
        }
        if both_directions {
            add_folds(tree, chunk, graph, start, &mut tasks);
        }
    }
    tasks
}

/// Adds the same edges reversed, deepest first; all messages to the root precede those from it.
fn add_folds(tree: &Tree, chunk: u32, graph: &LinkGraph, start: usize, tasks: &mut Vec<Task>) {
    let mut into: Vec<Vec<u32>> = vec![Vec::new(); graph.ranks as usize];
    for &edge in tree.edges.iter().rev() {
        let Some(back) = graph.opposite(edge) else { continue };
        let index = index(tasks.len());
        let below = std::mem::take(&mut into[back.from as usize]);
        let waits = count(below.len());
        below.into_iter().for_each(|before| tasks[before as usize].after.push(index));
        tasks.push(Task { chunk, edge: back, folds: true, height: 0, waits, after: Vec::new() });
        into[back.to as usize].push(index);
    }
    let last = std::mem::take(&mut into[tree.root as usize]);
    let first = (start..start + tree.edges.len()).filter(|&at| tasks[at].edge.from == tree.root);
    let first: Vec<usize> = first.collect();
    for &at in &first {
        tasks[at].waits = count(last.len());
    }
    for before in last {
        tasks[before as usize].after.extend(first.iter().map(|&at| index(at)));
    }
}

/// The priority: by [`Order`], then by the dependants, then nearer ranks first.
type Key = (u64, Reverse<u64>, u32, u32);

/// The order of the trees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Order {
    /// The first tree of every rank before the second of any, so that the first trees complete
    /// early.
    Turns,
    /// Trees start sequentially, with the roots spread evenly over the ranks. Each tree has a
    /// deadline, the deadlines are as far apart as the work allows, and the earliest deadline has
    /// priority. At the end fewer trees are in flight than with `Turns`.
    Staggered,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A link is free again.
    Free(u32),
    /// A message may be forwarded.
    There(u32),
}

/// The maximum number of messages checked for a free link before the next link is served.
const LOOK: usize = 128;

/// 2^32 over the golden ratio: its multiples modulo 2^32 are spread evenly over the range.
const GOLDEN: u32 = 0x9E37_79B9;

struct Clock<'a> {
    graph: &'a LinkGraph,
    tasks: Vec<Task>,
    timing: Timing,
    /// The deadline of each chunk's tree, with [`Order::Staggered`].
    due: Vec<u64>,
    /// By link: the duration of a message, the remaining work, the time until which it is busy, its
    /// ready messages, and the links with messages that wait for it.
    ticks: Vec<u64>,
    left: Vec<u64>,
    busy: Vec<u64>,
    ready: Vec<BTreeSet<Key>>,
    blocked: Vec<Vec<usize>>,
    events: BinaryHeap<Reverse<(u64, Event)>>,
    timetable: Timetable,
}

/// The parameters of the timing.
#[derive(Clone, Copy)]
pub(super) struct Timing {
    /// The number of trees per root, in sequence.
    pub(super) pieces: u32,
    pub(super) both_directions: bool,
    /// The delay before a message is forwarded, in multiples of its duration.
    pub(super) lag: u32,
    pub(super) order: Order,
}

/// Returns a timetable, and its duration per byte of a chunk.
pub(super) fn timed(trees: &[Tree], graph: &LinkGraph, timing: Timing) -> (f64, Timetable) {
    let links = graph.rates.len();
    let mut clock = Clock {
        graph,
        tasks: tasks(trees, graph, timing.both_directions),
        timing,
        due: Vec::new(),
        ticks: graph.rates.iter().map(|&rate| ticks(rate.fraction())).collect(),
        left: vec![0; links],
        busy: vec![0; links],
        ready: vec![BTreeSet::new(); links],
        blocked: vec![Vec::new(); links],
        events: BinaryHeap::new(),
        timetable: Timetable {
            ranks: graph.ranks,
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
    /// Returns when a message that starts at 0 has passed, and when it may be forwarded.
    fn lasts(&self, edge: Edge) -> (u64, u64) {
        let longest = self.graph.links(edge).iter().map(|&link| self.ticks[link as usize]).max();
        let longest = longest.unwrap_or(2);
        (longest, longest * (1 + u64::from(self.timing.lag)))
    }

    /// Sets the heights, and the remaining work of each link.
    fn raise(&mut self) {
        let mut waits: Vec<u32> = self.tasks.iter().map(|task| task.waits).collect();
        let all = (0..).zip(&self.tasks);
        let mut order: Vec<u32> =
            all.filter(|(_, task)| task.waits == 0).map(|(at, _)| at).collect();
        let mut next = 0;
        while next < order.len() {
            let at = order[next] as usize;
            for (link, pace) in self.graph.paced(self.tasks[at].edge) {
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
            let above = after.map(|task| task.height + self.lasts(task.edge).1).max();
            self.tasks[at as usize].height = above.unwrap_or(0);
        }
    }

    /// Spreads the deadlines evenly over the time of the most loaded link, delayed by the greatest
    /// height.
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

    /// Runs the simulation; returns the time at which the last message has passed.
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

    /// Queues a ready message; returns its first link.
    fn put(&mut self, at: u32) -> usize {
        let Task { chunk, edge, height, .. } = self.tasks[at as usize];
        let turn = (self.graph.ranks + edge.to - edge.from) % self.graph.ranks;
        let first = self.graph.links(edge)[0] as usize;
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
        let Task { chunk, edge, folds, .. } = self.tasks[at as usize];
        for (link, pace) in self.graph.paced(edge) {
            self.busy[link] = now + self.ticks[pace];
            self.left[link] -= self.ticks[pace];
            self.events.push(Reverse((self.busy[link], Event::Free(count(link)))));
        }
        let (passed, sent_on) = self.lasts(edge);
        let there = now + sent_on;
        let Edge { from, to, .. } = edge;
        self.timetable.moves.push(Move { sent: now, there, chunk, from, to, folds });
        self.timetable.end = self.timetable.end.max(there);
        self.events.push(Reverse((there, Event::There(at))));
        now + passed
    }

    /// Returns the first message over a link whose other links are free. Without one, registers the
    /// messages' links with the busy links.
    fn next(&mut self, first: usize, now: u64) -> Option<Key> {
        if self.busy[first] > now {
            return None;
        }
        for key in self.ready[first].iter().take(LOOK) {
            let mut links = self.graph.links(self.tasks[key.3 as usize].edge).iter();
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

/// The fractions of a picosecond in which times are counted.
const PARTS: u32 = 2048;

/// Returns the duration of a byte; even, and at least two.
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
