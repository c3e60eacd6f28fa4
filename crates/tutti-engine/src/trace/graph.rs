//! A trace in memory: the operations of all ranks in narrow columns, and their followers.

use super::builder::GraphBuilder;
use super::checks::{check_dependencies, check_lengths, check_peer, check_size, check_values};
use super::narrow::Narrow;
use super::{ANY, Operations, TraceError, kind};
use tutti_units::ids::RankId;

/// No operation, channel or entry.
pub(super) const NONE: u32 = u32::MAX;

/// An operation that awaits the completion or the start of another.
#[derive(Clone, Copy)]
pub(super) struct Follower {
    pub(super) operation: u32,
    pub(super) on_start: bool,
}

/// The operations of all ranks, numbered rank by rank. Each operation has the operations that await
/// it: sends first, then receives, then timed collectives, then computations, as `LogGOPSim` starts
/// operations that become ready at the same time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceGraph {
    pub(super) kinds: Vec<u8>,
    /// Picoseconds of a computation, bytes of a message.
    pub(super) amounts: Narrow,
    /// One more than the peer; 0 for [`ANY`] and for computations.
    pub(super) peers: Narrow,
    /// One more than the tag, modulo 2^64.
    pub(super) tags: Narrow,
    /// The index of the stream among those of its rank.
    pub(super) streams: Narrow,
    /// The first operation of each rank, and the number of operations.
    pub(super) first: Vec<u32>,
    /// The first stream of each rank, and the number of streams.
    pub(super) first_stream: Vec<u32>,
    /// The number of each stream in the trace.
    pub(super) stream_numbers: Vec<i32>,
    pub(super) first_follower: Vec<u32>,
    /// The distance from an operation to its follower; see [`super::builder`].
    pub(super) followers: Narrow,
}

impl Default for TraceGraph {
    fn default() -> TraceGraph {
        TraceGraph {
            kinds: Vec::new(),
            amounts: Narrow::default(),
            peers: Narrow::default(),
            tags: Narrow::default(),
            streams: Narrow::default(),
            first: vec![0],
            first_stream: vec![0],
            stream_numbers: Vec::new(),
            first_follower: vec![0],
            followers: Narrow::default(),
        }
    }
}

impl TraceGraph {
    /// Checks the columns of all ranks and builds their graph.
    ///
    /// # Errors
    /// When columns have different lengths or values are out of range.
    pub fn of_columns(trace: &[Operations]) -> Result<TraceGraph, TraceError> {
        let operations = trace.iter().map(Operations::len).sum();
        check_size(operations)?;
        let ranks = number(trace.len());
        let mut builder = GraphBuilder::default();
        for (rank, of) in (0..ranks).zip(trace) {
            check_lengths(RankId(rank), of)?;
            check_values(rank, ranks, of)?;
            check_dependencies(rank, of)?;
            builder.add(of);
        }
        builder.finish()
    }

    /// Returns the messages of all ranks, at the index that they have among all operations, without
    /// a check of their values.
    ///
    /// # Errors
    /// When columns have different lengths.
    pub fn of_messages(trace: &[Operations]) -> Result<TraceGraph, TraceError> {
        check_size(trace.iter().map(Operations::len).sum())?;
        let mut builder = GraphBuilder::default();
        for (rank, of) in (0..).zip(trace) {
            check_lengths(RankId(rank), of)?;
            for at in 0..of.len() {
                let message = of.kinds[at] == kind::SEND || of.kinds[at] == kind::RECEIVE;
                let kind = if message { of.kinds[at] } else { kind::COMPUTE };
                let peer = if of.peers[at] < ANY { i32::MAX } else { of.peers[at] };
                builder.push(kind, of.sizes[at].cast_unsigned(), (peer, of.tags[at]), 0);
            }
            builder.end_rank();
        }
        builder.finish()
    }

    /// The number of ranks.
    #[must_use]
    pub fn ranks(&self) -> usize {
        self.first.len() - 1
    }

    /// The number of operations of all ranks.
    #[must_use]
    pub fn operations(&self) -> usize {
        self.kinds.len()
    }

    /// The operations of a rank.
    #[inline]
    pub(super) fn of_rank(&self, rank: usize) -> std::ops::Range<u32> {
        self.first[rank]..self.first[rank + 1]
    }

    /// The rank of an operation.
    pub(super) fn rank(&self, operation: u32) -> u32 {
        number(self.first.partition_point(|&first| first <= operation) - 1)
    }

    /// The rank of an operation, and its index among those of the rank.
    pub(super) fn place(&self, operation: u32) -> (RankId, u32) {
        let rank = self.rank(operation);
        (RankId(rank), operation - self.first[rank as usize])
    }

    #[inline]
    pub(super) fn kind(&self, operation: u32) -> u8 {
        self.kinds[operation as usize]
    }

    /// Picoseconds of a computation, bytes of a message.
    #[inline]
    pub(super) fn amount(&self, operation: u32) -> u64 {
        self.amounts.get(operation as usize)
    }

    /// The destination or the source, or [`ANY`].
    #[inline]
    pub(super) fn peer(&self, operation: u32) -> i32 {
        let peer = self.peers.get(operation as usize).cast_signed() - 1;
        i32::try_from(peer).unwrap_or(i32::MAX)
    }

    #[inline]
    pub(super) fn tag(&self, operation: u32) -> i64 {
        self.tags.get(operation as usize).wrapping_sub(1).cast_signed()
    }

    /// Whether a receive accepts messages of several channels.
    pub(super) fn is_open(&self, operation: u32) -> bool {
        let any = self.peer(operation) == ANY || self.tag(operation) == i64::from(ANY);
        self.kind(operation) == kind::RECEIVE && any
    }

    /// The stream of an operation of a rank, numbered over all ranks.
    #[inline]
    pub(super) fn stream(&self, rank: u32, operation: u32) -> usize {
        self.first_stream[rank as usize] as usize + index(self.streams.get(operation as usize))
    }

    /// The streams of a rank, numbered over all ranks.
    pub(super) fn streams_of(&self, rank: usize) -> std::ops::Range<usize> {
        self.first_stream[rank] as usize..self.first_stream[rank + 1] as usize
    }

    /// The number of a stream in the trace.
    pub(super) fn stream_number(&self, stream: usize) -> i32 {
        self.stream_numbers[stream]
    }

    /// The positions of the followers of an operation.
    #[inline]
    pub(super) fn followers(&self, operation: u32) -> std::ops::Range<usize> {
        let at = operation as usize;
        self.first_follower[at] as usize..self.first_follower[at + 1] as usize
    }

    /// A follower of an operation, by its position.
    #[inline]
    pub(super) fn follower(&self, of: u32, at: usize) -> Follower {
        let packed = self.followers.get(at);
        let distance = (packed >> 2).cast_signed();
        let distance = if packed & 2 == 0 { distance } else { -distance };
        let operation = u32::try_from(i64::from(of) + distance).unwrap_or(NONE);
        Follower { operation, on_start: packed & 1 == 1 }
    }

    /// The number of dependencies of each operation.
    pub(super) fn needs(&self) -> Narrow {
        let mut needs = Narrow::zeros(self.operations());
        for operation in 0..number(self.operations()) {
            for at in self.followers(operation) {
                needs.increment(self.follower(operation, at).operation as usize);
            }
        }
        needs
    }

    /// The columns of a rank. The dependencies of an operation are in ascending order.
    #[must_use]
    pub fn columns(&self, rank: usize) -> Operations {
        let own = self.of_rank(rank);
        let mut of = Operations::new();
        let mut counts = vec![0_usize; own.len() + 1];
        for operation in own.clone() {
            let (kind, amount) = (self.kind(operation), self.amount(operation).cast_signed());
            let lasts = kind == kind::COMPUTE || kind == kind::TIMED;
            let stream = self.stream_numbers[self.stream(number(rank), operation)];
            let peer = self.peer(operation);
            of.push(kind, amount, (peer, self.tag(operation)), stream);
            if lasts {
                let at = of.len() - 1;
                (of.sizes[at], of.durations[at]) = (0, amount);
            }
            for at in self.followers(operation) {
                counts[(self.follower(operation, at).operation - own.start) as usize + 1] += 1;
            }
        }
        for at in 1..counts.len() {
            counts[at] += counts[at - 1];
        }
        of.first_dependency = counts.iter().map(|&count| count as i64).collect();
        let total = counts.last().copied().unwrap_or_default();
        (of.dependencies, of.on_start) = (vec![0; total], vec![false; total]);
        for operation in own.clone() {
            for at in self.followers(operation) {
                let follower = self.follower(operation, at);
                let place = &mut counts[(follower.operation - own.start) as usize];
                of.dependencies[*place] = i64::from(operation - own.start);
                of.on_start[*place] = follower.on_start;
                *place += 1;
            }
        }
        of
    }

    /// The same trace with the ranks in another order.
    pub(super) fn reordered(&self, order: &[usize]) -> TraceGraph {
        let mut builder = GraphBuilder::default();
        for &rank in order {
            builder.add(&self.columns(rank));
        }
        builder.into_graph()
    }

    /// Checks the peers of messages.
    pub(super) fn check_peers(&self) -> Result<(), TraceError> {
        let ranks = number(self.ranks());
        for rank in 0..ranks {
            for operation in self.of_rank(rank as usize) {
                let (kind, peer) = (self.kind(operation), self.peer(operation));
                let at = (operation - self.first[rank as usize]) as usize;
                check_peer((rank, at), kind, peer, ranks)?;
            }
        }
        Ok(())
    }
}

/// A checked offset as an index.
pub(super) fn position(value: i64) -> usize {
    usize::try_from(value).unwrap_or_default()
}

fn index(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

/// A count below the most operations.
pub(super) fn number(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(NONE)
}
