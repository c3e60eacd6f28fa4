//! A checked trace, with the followers of each operation, its stream and its channel.

use super::{ANY, Operations, TraceError, kind};
use tutti_units::ids::RankId;
use tutti_units::{Bytes, Time};

/// No operation, channel or entry.
pub(super) const NONE: u32 = u32::MAX;

/// The most operations: a follower has one more bit.
const MOST: u32 = 1 << 31;

/// An operation that awaits the completion or the start of another.
#[derive(Clone, Copy)]
pub(super) struct Follower(u32);

impl Follower {
    pub(super) fn operation(self) -> u32 {
        self.0 >> 1
    }

    pub(super) fn on_start(self) -> bool {
        self.0 & 1 == 1
    }
}

/// What an operation does.
#[derive(Clone, Copy)]
pub(super) struct Work {
    pub(super) kind: u8,
    pub(super) rank: u32,
    /// The destination, or the source; [`ANY`] accepts any.
    pub(super) peer: i32,
    pub(super) tag: i64,
    /// Picoseconds of a computation, bytes of a message.
    amount: u64,
    /// Numbered over all ranks.
    pub(super) stream: u32,
    /// The (source, destination, tag) of a message; [`NONE`] for a receive that accepts any.
    pub(super) channel: u32,
}

impl Work {
    pub(super) fn duration(&self) -> Time {
        Time::from_ps(self.amount)
    }

    pub(super) fn bytes(&self) -> Bytes {
        Bytes(self.amount)
    }

    /// Whether it sends or receives.
    pub(super) fn is_message(&self) -> bool {
        self.kind == kind::SEND || self.kind == kind::RECEIVE
    }

    /// Whether a receive accepts messages of several channels.
    pub(super) fn is_open(&self) -> bool {
        self.kind == kind::RECEIVE && (self.peer == ANY || self.tag == i64::from(ANY))
    }
}

/// The operations of all ranks, numbered rank by rank.
pub(super) struct Graph {
    pub(super) works: Vec<Work>,
    /// The first operation of each rank, and the number of operations.
    pub(super) first: Vec<u32>,
    pub(super) streams: usize,
    pub(super) channels: usize,
    pub(super) needs: Vec<u32>,
    first_follower: Vec<u32>,
    followers: Vec<Follower>,
}

impl Graph {
    /// Checks a trace and builds its graph.
    pub(super) fn of(trace: &[Operations]) -> Result<Graph, TraceError> {
        let operations = trace.iter().map(Operations::len).sum();
        if operations >= MOST as usize {
            return Err(TraceError::TooLarge { operations, most: MOST });
        }
        let ranks = u32::try_from(trace.len()).unwrap_or(u32::MAX);
        let mut graph = Graph {
            works: Vec::with_capacity(operations),
            first: vec![0],
            streams: 0,
            channels: 0,
            needs: vec![0; operations],
            first_follower: vec![0; operations + 1],
            followers: Vec::new(),
        };
        for (rank, of) in (0..ranks).zip(trace) {
            check_lengths(RankId(rank), of)?;
            graph.add_works(rank, ranks, of)?;
            graph.count_followers(rank, of)?;
            graph.first.push(number(graph.works.len()));
        }
        graph.place_followers(trace);
        graph.number_channels();
        Ok(graph)
    }

    pub(super) fn followers(&self, operation: u32) -> std::ops::Range<usize> {
        let at = operation as usize;
        self.first_follower[at] as usize..self.first_follower[at + 1] as usize
    }

    pub(super) fn follower(&self, at: usize) -> Follower {
        self.followers[at]
    }

    /// The index of an operation among those of its rank.
    pub(super) fn index(&self, operation: u32) -> u32 {
        operation - self.first[self.works[operation as usize].rank as usize]
    }

    fn add_works(&mut self, rank: u32, ranks: u32, of: &Operations) -> Result<(), TraceError> {
        let mut streams = of.streams.clone();
        streams.sort_unstable();
        streams.dedup();
        for at in 0..of.len() {
            let (kind, peer, tag) = (of.kinds[at], of.peers[at], of.tags[at]);
            let (computes, timed) = (kind == kind::COMPUTE, kind == kind::TIMED);
            let lasts = computes || timed;
            let refuse = |column, value, expected| refused((rank, at), column, value, expected);
            if kind > kind::RECEIVE && !timed {
                return refuse("kind", kind.into(), "a computation, a send or a receive");
            }
            let amount = if lasts { of.durations[at] } else { of.sizes[at] };
            let Ok(amount) = u64::try_from(amount) else {
                return refuse(if lasts { "duration" } else { "size" }, amount, "0 or more");
            };
            if timed && !u32::try_from(peer).is_ok_and(|size| (1..=ranks).contains(&size)) {
                return refuse("peer", peer.into(), "the number of ranks of a group");
            }
            let any = kind == kind::RECEIVE && peer == ANY;
            if !lasts && !any && !u32::try_from(peer).is_ok_and(|peer| peer < ranks) {
                return refuse("peer", peer.into(), "a rank of the trace");
            }
            if of.streams[at] < 0 {
                return refuse("stream", of.streams[at].into(), "0 or more");
            }
            let stream = streams.partition_point(|&stream| stream < of.streams[at]) + self.streams;
            let (stream, channel) = (number(stream), NONE);
            self.works.push(Work { kind, rank, peer, tag, amount, stream, channel });
        }
        self.streams += streams.len();
        Ok(())
    }

    /// Checks the dependencies of a rank; counts them, and the followers of each operation.
    fn count_followers(&mut self, rank: u32, of: &Operations) -> Result<(), TraceError> {
        let base = self.first[rank as usize] as usize;
        for at in 0..of.len() {
            let refuse = |column, value, expected| refused((rank, at), column, value, expected);
            let (start, end) = (of.first_dependency[at], of.first_dependency[at + 1]);
            if start < 0 || end < start || end > of.dependencies.len() as i64 {
                return refuse("first_dependency", start, "ascending offsets into dependencies");
            }
            for &on in dependencies(of, at) {
                if on < 0 || on >= of.len() as i64 {
                    return refuse("dependency", on, "an operation of the same rank");
                }
                self.first_follower[base + index(on) + 1] += 1;
            }
            self.needs[base + at] = number(index(end - start));
        }
        Ok(())
    }

    /// Places the followers of each operation: sends first, then receives, then computations, as
    /// `LogGOPSim` does with operations that become ready at the same time.
    fn place_followers(&mut self, trace: &[Operations]) {
        for at in 1..self.first_follower.len() {
            self.first_follower[at] += self.first_follower[at - 1];
        }
        let mut next = self.first_follower.clone();
        self.followers = vec![Follower(0); *next.last().unwrap_or(&0) as usize];
        for chosen in [kind::SEND, kind::RECEIVE, kind::TIMED, kind::COMPUTE] {
            for (&base, of) in self.first.iter().zip(trace) {
                for at in (0..of.len()).filter(|&at| of.kinds[at] == chosen) {
                    let start = index(of.first_dependency[at]);
                    for (offset, &on) in dependencies(of, at).iter().enumerate() {
                        let on_start = u32::from(of.on_start[start + offset]);
                        let place = &mut next[base as usize + index(on)];
                        let operation = base + number(at);
                        self.followers[*place as usize] = Follower(operation << 1 | on_start);
                        *place += 1;
                    }
                }
            }
        }
    }

    /// Numbers the channels of sends and of receives that accept one channel.
    fn number_channels(&mut self) {
        let key = |work: &Work| {
            let peer = u32::try_from(work.peer).unwrap_or(NONE);
            let sends = work.kind == kind::SEND;
            let (source, destination) = if sends { (work.rank, peer) } else { (peer, work.rank) };
            (destination, source, work.tag)
        };
        let messages = (0..).zip(&self.works);
        let messages = messages.filter(|(_, work)| work.is_message() && !work.is_open());
        let mut order: Vec<(_, u32)> = messages.map(|(at, work)| (key(work), at)).collect();
        order.sort_unstable();
        let mut last = None;
        for (key, at) in order {
            if last != Some(key) {
                self.channels += 1;
                last = Some(key);
            }
            self.works[at as usize].channel = number(self.channels - 1);
        }
    }
}

fn dependencies(of: &Operations, at: usize) -> &[i64] {
    &of.dependencies[index(of.first_dependency[at])..index(of.first_dependency[at + 1])]
}

/// A checked offset as an index.
fn index(value: i64) -> usize {
    usize::try_from(value).unwrap_or_default()
}

/// A count below the most operations.
fn number(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(NONE)
}

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

fn check_lengths(rank: RankId, of: &Operations) -> Result<(), TraceError> {
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
