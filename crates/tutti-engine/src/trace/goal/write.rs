//! Writes GOAL, in text and in binary form, rank by rank.

use std::io::{self, Write};

use super::binary::{COMPUTE, COOKIE, HEADER, MAGIC, NODE, RECEIVE, ROW, SEND};
use super::{TraceGraph, UNIT};
use crate::trace::{ANY, Operations, kind};

/// The largest CPU and the largest tag of GOAL.
const MOST_CPU: i32 = u8::MAX as i32;
const MOST_TAG: i64 = u32::MAX as i64 - 1;

/// What GOAL does not represent, or represents with a loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// The first rank with more streams than GOAL has CPUs, and their number.
    pub streams: Option<(u32, u32)>,
    /// The first operation with a tag that GOAL does not have: rank, operation, tag.
    pub tag: Option<(u32, u32, i64)>,
    /// Durations with a fraction of a nanosecond.
    pub rounded: u64,
    /// Messages of 0 B.
    pub empty: u64,
}

/// Writes a trace that has no streams or tags that GOAL does not have.
pub struct Writer<'a>(pub &'a TraceGraph);

impl Writer<'_> {
    /// Finds what GOAL does not represent.
    #[must_use]
    pub fn losses(&self) -> Losses {
        let graph = self.0;
        let mut losses = Losses::default();
        for (rank, at) in (0..).zip(0..graph.ranks()) {
            let streams = graph.streams_of(at);
            let wide = streams.clone().any(|stream| graph.stream_number(stream) > MOST_CPU);
            if wide && streams.len() > 256 && losses.streams.is_none() {
                losses.streams = Some((rank, u32::try_from(streams.len()).unwrap_or(u32::MAX)));
            }
            for (index, operation) in (0..).zip(graph.of_rank(at)) {
                let (kind, tag) = (graph.kind(operation), graph.tag(operation));
                let least = if kind == kind::RECEIVE { ANY.into() } else { 0 };
                if !(least..=MOST_TAG).contains(&tag) && losses.tag.is_none() {
                    losses.tag = Some((rank, index, tag));
                }
                let amount = graph.amount(operation);
                losses.empty += u64::from(kind == kind::SEND && amount == 0);
                let computes = kind == kind::COMPUTE;
                losses.rounded += u64::from(computes && !amount.is_multiple_of(UNIT));
            }
        }
        losses
    }

    /// Writes GOAL text.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn text(&self, mut file: impl Write) -> io::Result<()> {
        writeln!(file, "num_ranks {}", self.0.ranks())?;
        for rank in 0..self.0.ranks() {
            write!(file, "\nrank {rank} {{\n")?;
            self.block(&mut file, rank)?;
            file.write_all(b"}\n")?;
        }
        file.flush()
    }

    /// Writes the lines of a rank. A label must be defined before a dependency names it.
    fn block(&self, file: &mut impl Write, rank: usize) -> io::Result<()> {
        let (of, cpus) = (self.0.columns(rank), self.cpus(rank));
        let own = self.0.of_rank(rank);
        let first = self.0.streams_of(rank).start;
        let number = u32::try_from(rank).unwrap_or(u32::MAX);
        let at_end = (0..of.len()).any(|at| required(&of, at).any(|(on, _)| on > at as i64));
        for (at, operation) in own.enumerate() {
            let cpu = cpus[self.0.stream(number, operation) - first];
            let (size, peer, tag) = (of.sizes[at], of.peers[at], of.tags[at]);
            match of.kinds[at] {
                kind::COMPUTE => {
                    let duration = nanoseconds(self.0.amount(operation));
                    writeln!(file, "l{at}: calc {duration} cpu {cpu}")?;
                }
                kind::SEND => {
                    writeln!(file, "l{at}: send {size}b to {peer} tag {tag} cpu {cpu}")?;
                }
                _ => writeln!(file, "l{at}: recv {size}b from {peer} tag {tag} cpu {cpu}")?,
            }
            if !at_end {
                requirements(file, &of, at)?;
            }
        }
        if at_end {
            for at in 0..of.len() {
                requirements(file, &of, at)?;
            }
        }
        Ok(())
    }

    /// Writes the binary form.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn binary(&self, mut file: impl Write) -> io::Result<()> {
        let graph = self.0;
        let ranks = graph.ranks() as u64;
        let cpus = (0..graph.ranks()).flat_map(|rank| self.cpus(rank)).max().unwrap_or_default();
        file.write_all(&MAGIC.to_le_bytes())?;
        file.write_all(&u32::try_from(ranks).unwrap_or(u32::MAX).to_le_bytes())?;
        file.write_all(&[cpus, 0])?;
        let mut start = HEADER - COOKIE + ROW * ranks;
        let mut needs = Vec::new();
        for rank in 0..graph.ranks() {
            let dependencies = self.count(rank, &mut needs);
            let roots = needs.iter().filter(|&&count| count == 0).count();
            let length = 8 + 4 * roots + NODE * needs.len() + 4 * dependencies;
            file.write_all(&start.to_le_bytes())?;
            start += length as u64;
            file.write_all(&start.to_le_bytes())?;
        }
        let mut body = Vec::new();
        for rank in 0..graph.ranks() {
            self.count(rank, &mut needs);
            self.body(rank, &needs, &mut body);
            file.write_all(&body)?;
        }
        file.flush()
    }

    /// Counts the dependencies of each operation of a rank; returns their sum.
    fn count(&self, rank: usize, needs: &mut Vec<u32>) -> usize {
        let own = self.0.of_rank(rank);
        needs.clear();
        needs.resize(own.len(), 0);
        let mut sum = 0;
        for operation in own.clone() {
            for at in self.0.followers(operation) {
                let follower = self.0.follower(operation, at);
                needs[(follower.operation - own.start) as usize] += 1;
                sum += 1;
            }
        }
        sum
    }

    /// Writes the operations and the appendix of a rank.
    fn body(&self, rank: usize, needs: &[u32], body: &mut Vec<u8>) {
        let graph = self.0;
        let own = graph.of_rank(rank);
        let (cpus, first) = (self.cpus(rank), graph.streams_of(rank).start);
        let number = u32::try_from(rank).unwrap_or(u32::MAX);
        body.clear();
        let mut put = |value: u32| body.extend_from_slice(&value.to_le_bytes());
        let roots = || (0_u32..).zip(needs).filter(|&(_, &count)| count == 0).map(|(at, _)| at);
        put(own.end - own.start);
        put(u32::try_from(roots().count()).unwrap_or(u32::MAX));
        roots().for_each(put);
        let mut after: Vec<u32> = Vec::new();
        for (operation, &needs) in own.clone().zip(needs) {
            let cpu = cpus[graph.stream(number, operation) - first];
            let counts = self.followers(operation, own.start, &mut after);
            self.node(operation, needs, cpu, counts, body);
        }
        for follower in after {
            body.extend_from_slice(&follower.to_le_bytes());
        }
    }

    /// Appends the operations that await the end, then those that await the start of an operation;
    /// returns the number and the first position of both.
    fn followers(&self, operation: u32, start: u32, after: &mut Vec<u32>) -> [usize; 4] {
        let first = after.len();
        let mut counts = [0, first, 0, 0];
        for (part, on_start) in [(0, false), (2, true)] {
            counts[part + 1] = after.len();
            let all = self.0.followers(operation).map(|at| self.0.follower(operation, at));
            let chosen = all.filter(|follower| follower.on_start == on_start);
            after.extend(chosen.map(|follower| follower.operation - start));
            counts[part] = after.len() - counts[part + 1];
            after[counts[part + 1]..].sort_unstable();
        }
        counts
    }

    fn node(&self, operation: u32, needs: u32, cpu: u8, counts: [usize; 4], body: &mut Vec<u8>) {
        let graph = self.0;
        let kind = graph.kind(operation);
        let computes = kind == kind::COMPUTE;
        let (code, amount) = match kind {
            kind::COMPUTE => (COMPUTE, nanoseconds(graph.amount(operation))),
            kind::SEND => (SEND, graph.amount(operation)),
            _ => (RECEIVE, graph.amount(operation)),
        };
        let (peer, tag) = (graph.peer(operation).cast_unsigned(), graph.tag(operation));
        let tag = u32::try_from(tag).unwrap_or(u32::MAX);
        let (peer, tag) = if computes { (0, 0) } else { (peer, tag) };
        body.extend_from_slice(&needs.to_le_bytes());
        body.push(code);
        body.extend_from_slice(&peer.to_le_bytes());
        body.extend_from_slice(&amount.to_le_bytes());
        body.extend_from_slice(&tag.to_le_bytes());
        body.extend_from_slice(&[cpu, 0]);
        for count in counts {
            body.extend_from_slice(&u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes());
        }
    }

    /// The CPU of each stream of a rank: its number, or its place among all if some have more than
    /// 8 bits.
    fn cpus(&self, rank: usize) -> Vec<u8> {
        let numbers: Vec<i32> =
            self.0.streams_of(rank).map(|stream| self.0.stream_number(stream)).collect();
        let cpu = |number: i32| u8::try_from(number).unwrap_or(u8::MAX);
        if numbers.iter().all(|&number| number <= MOST_CPU) {
            return numbers.into_iter().map(cpu).collect();
        }
        let mut sorted = numbers.clone();
        sorted.sort_unstable();
        let place = |number: &i32| sorted.partition_point(|other| other < number);
        numbers.iter().map(|number| u8::try_from(place(number)).unwrap_or(u8::MAX)).collect()
    }
}

fn nanoseconds(ps: u64) -> u64 {
    (ps + UNIT / 2) / UNIT
}

/// The dependencies of an operation of a rank, and whether each is on the start.
fn required(of: &Operations, at: usize) -> impl Iterator<Item = (i64, bool)> {
    let place = |at: usize| usize::try_from(of.first_dependency[at]).unwrap_or_default();
    let range = place(at)..place(at + 1);
    range.map(|position| (of.dependencies[position], of.on_start[position]))
}

fn requirements(file: &mut impl Write, of: &Operations, at: usize) -> io::Result<()> {
    for (on, on_start) in required(of, at) {
        let word = if on_start { "irequires" } else { "requires" };
        writeln!(file, "l{at} {word} l{on}")?;
    }
    Ok(())
}
