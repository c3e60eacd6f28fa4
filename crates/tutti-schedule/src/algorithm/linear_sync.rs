//! Linear gather with synchronisation: the root requests the shards of one rank at a time.
//!
//! In rank order, the root sends every other rank an empty message and waits for the first segment
//! of its shard. A rank sends nothing before it has received that message; then it sends the first
//! segment and the rest of its shard. The root receives the rests at the end. At most one first
//! segment is thus in flight, where all shards of a [`direct`](super::direct) gather reach the root
//! at once. The first segment is 1/C of the shard; with C = 1 it is the shard, and the rest is an
//! empty message. Source: Open MPI's `linear_sync` gather, whose first segment has a size in bytes.

use std::sync::Arc;

use super::pipeline::{MOST_SEGMENTS, Options};
use super::{AlgorithmError, Entry, Request};
use crate::{ChunkRange, Schedule, Shape, Slot, Step};
use tutti_units::ids::RankId;

pub(super) const ENTRY: Entry = Entry {
    name: "linear_sync",
    summary: "gather in which the root requests one shard at a time; few messages in flight to the root",
    source: "Open MPI",
    argument: "segments=C: 1/C of the shard is in the first message of a rank (default 2)",
    collectives: &["gather"],
    ranks: "any",
    claims: |request| request.ranks >= 2 && segments(request).is_ok(),
    build,
    // The rest of a shard reaches the root while it requests others: the network determines when.
    critical_path: |_| None,
};

const SEGMENTS: u32 = 2;

fn segments(request: &Request) -> Result<u32, AlgorithmError> {
    let mut options = Options::of(request.argument);
    let most = MOST_SEGMENTS.min(u32::MAX / 2 / request.ranks);
    let mut read = || {
        let segments = options.number_or("segments", most, SEGMENTS)?;
        options.end("`segments=C`, such as `segments=8`")?;
        Ok(segments)
    };
    read().map_err(|misfit| request.misfit(ENTRY.name, misfit))
}

fn build(request: &Request) -> Result<Arc<dyn Schedule>, AlgorithmError> {
    let segments = segments(request)?;
    let shape = request.shape(ENTRY.name, request.ranks * segments, 1);
    let root = request.collective.root().unwrap_or_default();
    Ok(Arc::new(LinearSync { shape, root, segments }))
}

struct LinearSync {
    shape: Shape,
    root: RankId,
    segments: u32,
}

impl LinearSync {
    /// Returns the first segment of a rank's shard.
    fn first(&self, rank: RankId) -> ChunkRange {
        ChunkRange::one(rank.0 * self.segments)
    }

    /// Returns the other segments of a rank's shard.
    fn rest(&self, rank: RankId) -> ChunkRange {
        let start = rank.0 * self.segments;
        ChunkRange::new(start + 1, start + self.segments)
    }

    /// Returns the chunks of an empty message.
    fn request(&self, rank: RankId) -> ChunkRange {
        let start = rank.0 * self.segments;
        ChunkRange::new(start, start)
    }

    fn collect(&self, step: u32, out: &mut Step) {
        if step + 1 < self.shape.ranks {
            let peer = RankId(step + u32::from(step >= self.root.0));
            out.send(peer, Slot::DATA, self.request(peer));
            out.recv(peer, Slot::DATA, self.first(peer));
        } else {
            let others = (0..self.shape.ranks).map(RankId).filter(|&peer| peer != self.root);
            others.for_each(|peer| out.recv(peer, Slot::DATA, self.rest(peer)));
        }
    }
}

impl Schedule for LinearSync {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, rank: RankId) -> u32 {
        if rank == self.root { self.shape.ranks } else { 2 }
    }

    fn step(&self, rank: RankId, step: u32, out: &mut Step) {
        match step {
            _ if rank == self.root => self.collect(step, out),
            0 => out.recv(self.root, Slot::DATA, self.request(rank)),
            _ => {
                out.send(self.root, Slot::DATA, self.first(rank));
                out.send(self.root, Slot::DATA, self.rest(rank));
            }
        }
    }

    fn step_name(&self, rank: RankId, step: u32) -> String {
        let name = match step {
            _ if rank == self.root && step + 1 < self.shape.ranks => "first segment",
            _ if rank == self.root => "other segments",
            0 => "request",
            _ => "shard",
        };
        name.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::check;
    use crate::collective::Collective;

    #[test]
    fn it_does_what_it_claims_at_every_rank_count_and_needs_no_buffers() {
        for ranks in 2..=128 {
            for notation in ["linear_sync", "linear_sync:segments=1", "linear_sync:segments=5"] {
                check::claims(&ENTRY, notation, ranks);
                let gather = Collective::Gather { root: RankId(ranks / 2) };
                assert!(check::performs(notation, gather, ranks).rendezvous_safe());
            }
        }
    }

    #[test]
    fn the_root_requests_one_shard_at_a_time() {
        let gather = Collective::Gather { root: RankId(1) };
        let schedule = crate::algorithm::build("linear_sync:segments=3", gather, 4).unwrap();
        let mut out = Step::new();
        for (step, peer) in (0..).zip([0, 2, 3]) {
            out.clear();
            schedule.step(RankId(1), step, &mut out);
            let (sent, received) = (out.sends[0], out.recvs[0]);
            assert_eq!((sent.peer.0, received.peer.0, out.recvs.len()), (peer, peer, 1));
            assert_eq!((sent.chunks.len(), received.chunks.len()), (0, 1));
        }
        out.clear();
        schedule.step(RankId(1), 3, &mut out);
        assert!(out.recvs.len() == 3 && out.recvs.iter().all(|recv| recv.chunks.len() == 2));
    }

    #[test]
    fn other_arguments_are_refused() {
        for (argument, at) in [("segments=0", 0), (" 4", 1), ("", 0)] {
            let gather = Collective::Gather { root: RankId(0) };
            let notation = format!("linear_sync:{argument}");
            let error = crate::algorithm::build(&notation, gather, 8).err().unwrap();
            assert!(matches!(error, AlgorithmError::Argument { at: found, .. } if found == at));
        }
    }
}
