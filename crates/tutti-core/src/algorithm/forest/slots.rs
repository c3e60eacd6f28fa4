//! Gives every message of packed trees a slot of time: no link begins more than it can carry, no rank sends
//! what it does not have, and what much else waits for goes first.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::packing::Tree;
use crate::algorithm::on_graph::{Edge, Move, Timetable, Wiring};

/// A message: over which way, and how many further slots depend on it.
struct Task {
    chunk: u32,
    way: Edge,
    folds: bool,
    height: u32,
    /// Messages that must be there before.
    waits: u32,
    /// Messages that wait for this one.
    after: Vec<u32>,
}

/// Messages down every tree; before that up, if they are folded first.
fn tasks(trees: &[Tree], wiring: &Wiring, both_ways: bool) -> Vec<Task> {
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
    raise(&mut tasks);
    tasks
}

/// The same ways back, deepest first; all that reach the root come before what leaves it.
fn add_folds(tree: &Tree, chunk: u32, wiring: &Wiring, start: usize, tasks: &mut Vec<Task>) {
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

/// Sets the heights: how many slots everything that waits for a message takes at least.
fn raise(tasks: &mut [Task]) {
    let mut waits: Vec<u32> = tasks.iter().map(|task| task.waits).collect();
    let mut order: Vec<u32> =
        (0..).zip(tasks.iter()).filter(|(_, task)| task.waits == 0).map(|(at, _)| at).collect();
    let mut next = 0;
    while next < order.len() {
        for &after in &tasks[order[next] as usize].after {
            waits[after as usize] -= 1;
            if waits[after as usize] == 0 {
                order.push(after);
            }
        }
        next += 1;
    }
    for &at in order.iter().rev() {
        let above = tasks[at as usize].after.iter().map(|&after| tasks[after as usize].height + 1);
        tasks[at as usize].height = above.max().unwrap_or(0);
    }
}

/// What goes first: trees by turns, so that the first are down before the last are up; then what most depends
/// on; then to the next rank rather than to the one after it.
type Key = (u32, Reverse<u32>, u32, u32);

/// So many messages are looked at for a link that is free, before the next link has its turn.
const LOOK: usize = 128;

struct Slots<'a> {
    wiring: &'a Wiring,
    tasks: Vec<Task>,
    pieces: u32,
    /// By link: how many slots a message takes, what is still to come, until when it is busy, and the
    /// messages that are ready to begin with it.
    takes: Vec<f64>,
    left: Vec<f64>,
    busy: Vec<f64>,
    ready: Vec<BTreeSet<Key>>,
    timetable: Timetable,
}

/// Lays the messages into slots of `slot` picoseconds per byte of a chunk; each rank has `pieces` trees, one
/// after the other.
pub(super) fn schedule(
    trees: &[Tree],
    wiring: &Wiring,
    (pieces, both_ways): (u32, bool),
    slot: f64,
) -> Timetable {
    let takes: Vec<f64> = wiring.rates.iter().map(|rate| rate.ps_per_byte() / slot).collect();
    let mut slots = Slots {
        wiring,
        tasks: tasks(trees, wiring, both_ways),
        pieces,
        left: vec![0.0; takes.len()],
        busy: vec![0.0; takes.len()],
        ready: vec![BTreeSet::new(); takes.len()],
        takes,
        timetable: Timetable {
            ranks: wiring.ranks,
            chunks: count(trees.len()),
            ..Timetable::default()
        },
    };
    for at in 0..count(slots.tasks.len()) {
        for &link in wiring.links(slots.tasks[at as usize].way) {
            slots.left[link as usize] += slots.takes[link as usize];
        }
        if slots.tasks[at as usize].waits == 0 {
            slots.put(at);
        }
    }
    while slots.timetable.moves.len() < slots.tasks.len() {
        slots.fill();
    }
    slots.timetable
}

impl Slots<'_> {
    /// A message is ready.
    fn put(&mut self, at: u32) {
        let Task { chunk, way, height, .. } = self.tasks[at as usize];
        let turn = (self.wiring.ranks + way.to - way.from) % self.wiring.ranks;
        let first = self.wiring.links(way)[0] as usize;
        self.ready[first].insert((chunk % self.pieces, Reverse(height), turn, at));
    }

    /// One slot: links with most before them choose first.
    fn fill(&mut self) {
        let now = f64::from(self.timetable.slots);
        let mut order: Vec<usize> =
            (0..self.ready.len()).filter(|&link| !self.ready[link].is_empty()).collect();
        order.sort_by(|&a, &b| self.left[b].total_cmp(&self.left[a]).then(a.cmp(&b)));
        let mut begun = Vec::new();
        for first in order {
            while let Some(key) = self.next(first, now) {
                self.ready[first].remove(&key);
                let at = key.3;
                for &link in self.wiring.links(self.tasks[at as usize].way) {
                    let link = link as usize;
                    self.busy[link] = self.busy[link].max(now) + self.takes[link];
                    self.left[link] -= self.takes[link];
                }
                begun.push(at);
            }
        }
        for at in begun {
            let Task { chunk, way, folds, .. } = self.tasks[at as usize];
            let Edge { from, to, .. } = way;
            self.timetable.moves.push(Move { slot: self.timetable.slots, chunk, from, to, folds });
            for after in std::mem::take(&mut self.tasks[at as usize].after) {
                let waits = &mut self.tasks[after as usize].waits;
                *waits -= 1;
                if *waits == 0 {
                    self.put(after);
                }
            }
        }
        self.timetable.slots += 1;
    }

    /// The first message over a link whose other links are free too. It may begin on a link while the slot
    /// lasts, and then ends in the next.
    fn next(&self, first: usize, now: f64) -> Option<Key> {
        let free = |link: u32| self.busy[link as usize] < now + 1.0 - 1e-9;
        let fits = |key: &&Key| {
            self.wiring.links(self.tasks[key.3 as usize].way).iter().all(|&link| free(link))
        };
        if self.busy[first] >= now + 1.0 - 1e-9 {
            return None;
        }
        self.ready[first].iter().take(LOOK).find(fits).copied()
    }
}

fn index(len: usize) -> u32 {
    u32::try_from(len).expect("there are fewer messages than 2^32")
}

fn count(len: usize) -> u32 {
    index(len)
}
