//! all_to_all_v: an all_to_all whose messages carry blocks of different sizes.
//!
//! The messages and their order are those of an all_to_all that sends each block directly to its
//! destination. Empty blocks are not sent. Algorithms that forward blocks of several ranks, such as
//! `bruck`, are excluded: a rank does not know the sizes of the blocks that it forwards. Source:
//! MPI 4.1, section 6.8, `MPI_Alltoallv`.

use std::sync::Arc;

use super::{AlgorithmError, Entry, Request};
use crate::collective::Collective;
use crate::{Blocks, ChunkRange, Local, Message, Schedule, Shape, Slot, Step};
use tutti_units::ids::RankId;

/// Builds an all_to_all_v of these blocks; equal blocks without any.
pub(super) fn build(
    entry: &Entry,
    request: &Request,
    blocks: Option<&Blocks>,
) -> Result<Arc<dyn Schedule>, AlgorithmError> {
    let blocks = match blocks {
        Some(blocks) => blocks.clone(),
        None => Blocks::equal(request.ranks)
            .map_err(|_| request.wrong_ranks(entry.name, "at most 4,096 ranks for all_to_all_v"))?,
    };
    let inner = (entry.build)(&Request { collective: Collective::AllToAll, ..*request })?;
    let (collective, chunks) = (Collective::AllToAllV, blocks.chunks());
    let shape = Shape { collective, chunks, ..inner.shape().clone() };
    Ok(Arc::new(Unequal { shape, blocks, inner }))
}

/// An all_to_all that sends each block directly, with blocks of different sizes.
struct Unequal {
    shape: Shape,
    blocks: Blocks,
    inner: Arc<dyn Schedule>,
}

impl Unequal {
    /// Returns the block at a position of a rank's data, which it sends, or of its result.
    fn block(&self, rank: RankId, slot: Slot, chunks: ChunkRange) -> ChunkRange {
        debug_assert_eq!(chunks.len(), 1, "each message has one block");
        let peer = RankId(chunks.start);
        let is_sent = slot == Slot::DATA;
        let (source, destination) = if is_sent { (rank, peer) } else { (peer, rank) };
        ChunkRange::one(self.blocks.chunk(source, destination))
    }
}

impl Schedule for Unequal {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, rank: RankId) -> u32 {
        self.inner.steps(rank)
    }

    fn step(&self, rank: RankId, step: u32, out: &mut Step) {
        self.inner.step(rank, step, out);
        let is_kept = |message: &mut Message| {
            message.chunks = self.block(rank, message.slot, message.chunks);
            !self.blocks.is_empty(message.chunks.start)
        };
        out.sends.retain_mut(is_kept);
        out.recvs.retain_mut(is_kept);
        out.locals.retain_mut(|local| {
            let Local::Copy { chunks, to, from, .. } = local else { return true };
            *chunks = self.block(rank, *from, *chunks);
            *to = chunks.start;
            !self.blocks.is_empty(*to)
        });
    }

    fn blocks(&self) -> Option<&Blocks> {
        Some(&self.blocks)
    }

    fn step_name(&self, rank: RankId, step: u32) -> String {
        self.inner.step_name(rank, step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::{REGISTRY, build_blocks};
    use crate::{Layout, verify, verify_exactly};
    use proptest::prelude::*;
    use tutti_units::Bytes;

    fn all(blocks: &Blocks) -> impl Iterator<Item = Arc<dyn Schedule>> {
        let entries = REGISTRY.iter().filter(|entry| entry.collectives.contains(&"all_to_all_v"));
        entries.map(|entry| build_blocks(entry.name, blocks).unwrap())
    }

    /// Bytes sent from each rank to each other rank.
    fn sent(schedule: &dyn Schedule, layout: &Layout) -> Vec<u64> {
        let ranks = schedule.shape().ranks;
        let mut bytes = vec![0; (ranks * ranks) as usize];
        let mut step = Step::new();
        for rank in (0..ranks).map(RankId) {
            for index in 0..schedule.steps(rank) {
                step.clear();
                schedule.step(rank, index, &mut step);
                for send in &step.sends {
                    let size = layout.bytes(send.chunks).0;
                    assert!(size > 0, "an empty block is sent");
                    bytes[(rank.0 * ranks + send.peer.0) as usize] += size;
                }
            }
        }
        bytes
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        /// Both verifiers accept it, and each pair of ranks exchanges exactly its bytes.
        #[test]
        fn every_block_is_sent_once_in_full(
            ranks in 2..8_u32,
            sizes in proptest::collection::vec(prop_oneof![Just(0_u64), 1..9_u64, 1..1_u64 << 40], 49),
        ) {
            let sizes = &sizes[..(ranks * ranks) as usize];
            prop_assume!(sizes.iter().any(|&size| size > 0));
            let blocks = Blocks::new(ranks, sizes).unwrap();
            let mut off_diagonal = sizes.to_vec();
            (0..ranks).for_each(|rank| off_diagonal[(rank * (ranks + 1)) as usize] = 0);
            for schedule in all(&blocks) {
                let (fast, exact) = (verify(&*schedule).unwrap(), verify_exactly(&*schedule).unwrap());
                prop_assert_eq!(fast.messages, exact.messages);
                let layout = Layout::of_schedule(&*schedule, Bytes(blocks.largest()), 1).unwrap();
                prop_assert_eq!(&sent(&*schedule, &layout), &off_diagonal);
            }
        }
    }

    #[test]
    fn the_busiest_source_sends_the_size_whatever_it_is() {
        let blocks = Blocks::new(3, &[0, 2, 1, 1, 1, 5, 0, 0, 0]).unwrap();
        let schedule = build_blocks("direct", &blocks).unwrap();
        for size in [0, 4, 8, 1000, 700_000] {
            let layout = Layout::of_schedule(&*schedule, Bytes(size), 4).unwrap();
            assert_eq!(layout.bytes(ChunkRange::new(3, 6)), Bytes(size));
            assert_eq!(layout.size(), Bytes(size));
        }
    }
}
