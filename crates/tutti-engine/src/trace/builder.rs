//! Builds the graph of a trace operation by operation, rank by rank.

use std::collections::BTreeMap;

use super::checks::check_size;
use super::graph::{TraceGraph, number, position as index_of};
use super::{ANY, Operations, TraceError, kind};

/// Builds a graph operation by operation.
#[derive(Default)]
pub(super) struct GraphBuilder {
    graph: TraceGraph,
    /// The streams of the current rank, and the stream of its last operation.
    streams: BTreeMap<i32, u64>,
    last: Option<(i32, u64)>,
    /// The dependencies of the current rank.
    waits: Vec<Wait>,
    sorted: Vec<Wait>,
    next: Vec<u32>,
}

/// A dependency between operations of a rank.
#[derive(Clone, Copy, Default)]
struct Wait {
    owner: u32,
    on: u32,
    on_start: bool,
}

impl GraphBuilder {
    /// Appends an operation without dependencies to the current rank; `peer` is -1 or more, `stream`
    /// 0 or more.
    #[inline]
    pub(super) fn push(&mut self, kind: u8, amount: u64, (peer, tag): (i32, i64), stream: i32) {
        let graph = &mut self.graph;
        graph.kinds.push(kind);
        graph.amounts.push(amount);
        let peer = if kind == kind::COMPUTE { ANY } else { peer };
        graph.peers.push((i64::from(peer) + 1).cast_unsigned());
        graph.tags.push(tag.cast_unsigned().wrapping_add(1));
        let at = match self.last {
            Some((last, at)) if last == stream => at,
            _ => self.stream(stream),
        };
        self.graph.streams.push(at);
    }

    /// The index of a stream among those of the current rank.
    fn stream(&mut self, stream: i32) -> u64 {
        let next = self.streams.len() as u64;
        let at = *self.streams.entry(stream).or_insert(next);
        if at == next {
            self.graph.stream_numbers.push(stream);
        }
        self.last = Some((stream, at));
        at
    }

    /// The number of operations of the current rank.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.graph.kinds.len() - self.graph.first.last().copied().unwrap_or_default() as usize
    }

    /// Adds a dependency between operations of the current rank.
    #[inline]
    pub(super) fn require(&mut self, owner: u32, on: u32, on_start: bool) {
        self.waits.push(Wait { owner, on, on_start });
    }

    /// Appends a rank with checked columns.
    pub(super) fn add(&mut self, of: &Operations) {
        for at in 0..of.len() {
            let lasts = of.kinds[at] == kind::COMPUTE || of.kinds[at] == kind::TIMED;
            let amount = if lasts { of.durations[at] } else { of.sizes[at] };
            let peer = (of.peers[at], of.tags[at]);
            self.push(of.kinds[at], amount.cast_unsigned(), peer, of.streams[at]);
            let (start, end) = (of.first_dependency[at], of.first_dependency[at + 1]);
            for position in index_of(start)..index_of(end) {
                let on = number(index_of(of.dependencies[position]));
                self.require(number(at), on, of.on_start[position]);
            }
        }
        self.end_rank();
    }

    /// Ends the current rank: sorts its dependencies by the operation that is awaited.
    pub(super) fn end_rank(&mut self) {
        let first = self.graph.first.last().copied().unwrap_or_default() as usize;
        let count = self.len();
        self.place(count);
        let graph = &mut self.graph;
        let kinds = &graph.kinds[first..];
        let key = |wait: &Wait| (order(kinds[wait.owner as usize]), wait.owner, wait.on_start);
        let mut rest = &mut self.sorted[..];
        for on in 0..number(count) {
            let own = rest.iter().take_while(|wait| wait.on == on).count();
            let (followers, others) = std::mem::take(&mut rest).split_at_mut(own);
            rest = others;
            if own > 1 {
                followers.sort_unstable_by_key(key);
            }
            for wait in followers {
                graph.followers.push(pack(wait));
            }
            graph.first_follower.push(number(graph.followers.len()));
        }
        graph.first.push(number(graph.kinds.len()));
        graph.first_stream.push(number(graph.stream_numbers.len()));
        self.waits.clear();
        self.streams.clear();
        self.last = None;
    }

    /// Sorts the dependencies of the current rank by the operation that is awaited.
    fn place(&mut self, count: usize) {
        self.next.clear();
        self.next.resize(count + 1, 0);
        for wait in &self.waits {
            self.next[wait.on as usize + 1] += 1;
        }
        for at in 1..=count {
            self.next[at] += self.next[at - 1];
        }
        self.sorted.clear();
        self.sorted.resize(self.waits.len(), Wait::default());
        for wait in &self.waits {
            let place = &mut self.next[wait.on as usize];
            self.sorted[*place as usize] = *wait;
            *place += 1;
        }
    }

    /// Returns the graph of a trace whose size is known to fit.
    pub(super) fn into_graph(self) -> TraceGraph {
        self.graph
    }

    /// Returns the graph.
    pub(super) fn finish(mut self) -> Result<TraceGraph, TraceError> {
        check_size(self.graph.operations())?;
        let graph = &mut self.graph;
        for column in [&mut graph.amounts, &mut graph.peers, &mut graph.tags, &mut graph.streams] {
            column.shrink();
        }
        graph.followers.shrink();
        graph.first_follower.shrink_to_fit();
        graph.kinds.shrink_to_fit();
        Ok(self.graph)
    }
}

/// The order of operations that become ready at the same time.
fn order(of: u8) -> u8 {
    match of {
        kind::SEND => 0,
        kind::RECEIVE => 1,
        kind::TIMED => 2,
        _ => 3,
    }
}

/// The distance from an operation to its follower, its sign, and whether it awaits the start.
fn pack(wait: &Wait) -> u64 {
    let distance = u64::from(wait.owner.abs_diff(wait.on));
    distance << 2 | u64::from(wait.owner < wait.on) << 1 | u64::from(wait.on_start)
}
