//! An all_reduce on a ring whose shards are reduced segment by segment.
//!
//! Every shard has K segments. The reduce_scatter is performed for the first segment of every
//! shard, then for the second, and so on: K (n - 1) steps with 1/K of a shard each. The all_gather
//! forwards complete shards, as without segments. A rank folds smaller pieces, which fit its
//! caches, but waits for the latency of more messages. Source: Open MPI's `segmented_ring`, whose
//! segments have a size in bytes instead of a count.

use crate::algorithm::pipeline::MOST_SEGMENTS;
use crate::collective::Collective;
use crate::{ChunkRange, Digit, Schedule, Shape, Slot, Step};
use tutti_units::ids::RankId;

pub(super) struct Segmented {
    shape: Shape,
    /// K, the segments per shard.
    segments: u32,
}

/// Returns the maximum number of segments: steps and chunks are counted in 32 bits.
pub(super) fn most_segments(ranks: u32) -> u32 {
    MOST_SEGMENTS.min(u32::MAX / 2 / ranks)
}

impl Segmented {
    pub(super) fn new(name: String, ranks: u32, segments: u32) -> Segmented {
        let shape = Shape::in_place(name, Collective::AllReduce, ranks, ranks * segments, 2);
        Segmented { shape, segments }
    }

    /// Returns the segment and the step of its reduce_scatter, or `None` and the step of the
    /// all_gather.
    fn locate(&self, step: u32) -> (Option<u32>, u32) {
        let around = self.shape.ranks - 1;
        let segment = step / around;
        (Some(segment).filter(|&segment| segment < self.segments), step % around)
    }
}

impl Schedule for Segmented {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, _rank: RankId) -> u32 {
        (self.segments + 1) * (self.shape.ranks - 1)
    }

    fn step(&self, rank: RankId, step: u32, out: &mut Step) {
        let n = self.shape.ranks;
        let wrap = |value: u32| if value >= n { value - n } else { value };
        let (right, left) = (RankId(wrap(rank.0 + 1)), RankId(wrap(rank.0 + n - 1)));
        let (segment, step) = self.locate(step);
        // The reduction of shard s ends at rank s, which first sends shard s - 1.
        let first = if segment.is_some() { left } else { rank };
        let sent = wrap(first.0 + n - step) * self.segments;
        let received = wrap(first.0 + n - step - 1) * self.segments;
        match segment {
            Some(segment) => {
                out.send(right, Slot::DATA, ChunkRange::one(sent + segment));
                out.fold_in(left, ChunkRange::one(received + segment));
            }
            None => {
                let shard = |start| ChunkRange::new(start, start + self.segments);
                out.send(right, Slot::DATA, shard(sent));
                out.recv(left, Slot::DATA, shard(received));
            }
        }
    }

    fn symmetry(&self) -> Option<Vec<Digit>> {
        Some(vec![Digit { stride: 1, size: self.shape.ranks }])
    }

    fn step_name(&self, _rank: RankId, step: u32) -> String {
        match self.locate(step) {
            (Some(segment), step) => format!("reduce_scatter {step}, segment {segment}"),
            (None, step) => format!("all_gather {step}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::{build, check};

    #[test]
    fn it_does_what_it_claims_at_every_rank_count() {
        for ranks in 2..=128 {
            for segments in [1, 2, 5] {
                let notation = format!("ring:segments={segments}");
                check::performs(&notation, Collective::AllReduce, ranks);
            }
        }
        for ranks in 2..=24 {
            let notation = "ring:segments=3";
            assert!(check::critical_path_is_exact(notation, Collective::AllReduce, ranks));
        }
        assert!(check::is_symmetric("ring:segments=3", Collective::AllReduce, 5));
    }

    #[test]
    fn one_segment_is_the_ring() {
        for ranks in [2, 3, 8, 13] {
            let [ring, segmented] = ["ring", "ring:segments=1"]
                .map(|notation| build(notation, Collective::AllReduce, ranks).unwrap());
            check::same_steps(&*ring, &*segmented);
        }
    }

    #[test]
    fn invalid_segments_and_other_collectives_are_refused() {
        let problem =
            |notation, collective| build(notation, collective, 4).err().unwrap().to_string();
        assert_eq!(
            problem("ring:segments=0", Collective::AllReduce),
            "`segments=0` does not fit ring: invalid number of segments `0`: expected 1 to 1048576"
        );
        assert_eq!(
            problem("ring:segments=2", Collective::AllGather),
            "`segments=2` does not fit ring: all_gather does not support `segments`"
        );
    }
}
