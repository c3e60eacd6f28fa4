//! Broadcasts and reductions along chains of ranks in any order, one per channel, as in NCCL.
//!
//! Each chain has an equal share of the payload, in pieces. A rank forwards a piece while it receives
//! the next: the rank at place k of a chain sends piece p in step k + p. Steps are generated from the
//! places, so that many pieces take no memory.

use super::{Channels, ChunkRange, Schedule, Shape, Slot, Step};
use crate::collective::Collective;
use tutti_units::ids::RankId;

/// Chains that do not perform their collective.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum ChainsError {
    /// Neither a broadcast nor a reduce.
    #[error("chains perform a broadcast or a reduce, not {collective}")]
    Collective { collective: Collective },
    /// No chains, or other ranks than all, each once.
    #[error("chain {chain} does not have each of {ranks} ranks once")]
    Ranks { chain: usize, ranks: usize },
    /// A chain of a broadcast that does not start at the root, or one of a reduce that does not end
    /// there.
    #[error("chain {chain} of a {collective} does not {verb} at the root, {root}")]
    Root { chain: usize, collective: Collective, verb: &'static str, root: RankId },
    /// No pieces, or more chunks or steps than 32 bits count.
    #[error("{chains} chains with {pieces} pieces: expected 1 to 2^31 chunks")]
    Pieces { chains: usize, pieces: u32 },
}

/// Chains of ranks in any order. Chunk c belongs to chain c modulo their number.
pub struct Chains {
    shape: Shape,
    pieces: u32,
    count: u32,
    /// The ranks before, at and after each rank's place: by rank, then chain.
    links: Vec<Link>,
}

/// The place of a rank in a chain, and its neighbours.
#[derive(Clone, Copy)]
struct Link {
    at: u32,
    before: Option<RankId>,
    after: Option<RankId>,
}

impl Chains {
    /// Returns the broadcast or the reduce along chains, each from its first sender to its last
    /// receiver, with `pieces` pieces of the share of a chain.
    ///
    /// # Errors
    /// When a chain does not have each rank once, or the root at its end, or there are no pieces or
    /// too many.
    pub fn new(
        collective: Collective,
        chains: &[Vec<RankId>],
        pieces: u32,
    ) -> Result<Chains, ChainsError> {
        let ranks = chains.first().map_or(0, Vec::len);
        for (index, chain) in chains.iter().enumerate() {
            check(collective, (index, chain), ranks)?;
        }
        let many = ChainsError::Pieces { chains: chains.len(), pieces };
        let all = (chains.len() as u64).saturating_mul(u64::from(pieces));
        let (Ok(count), Ok(width)) = (u32::try_from(chains.len()), u32::try_from(ranks)) else {
            return Err(many);
        };
        if all == 0 || all.max(u64::from(pieces) + u64::from(width)) > 1 << 31 {
            return Err(many);
        }
        let name = format!("chains:{count},{pieces}");
        let slots = if matches!(collective, Collective::Reduce { .. }) { 2 } else { 1 };
        let shape = Shape::in_place(name, collective, width, pieces * count, slots);
        Ok(Chains { shape, pieces, count, links: links_of(chains, ranks) })
    }

    /// Adds the send of a rank in a chain and step.
    #[inline]
    fn send(&self, chain: u32, link: Link, step: u32, out: &mut Step) {
        if let (Some(after), Some(chunk)) = (link.after, self.chunk(chain, link.at, step)) {
            out.send(after, Slot::DATA, chunk);
        }
    }

    /// Adds its receive; returns the chunk.
    #[inline]
    fn recv(&self, chain: u32, link: Link, step: u32, out: &mut Step) -> Option<ChunkRange> {
        let before = link.before?;
        let chunk = self.chunk(chain, link.at - 1, step)?;
        out.recv(before, Slot(self.shape.slots - 1), chunk);
        Some(chunk)
    }

    /// The chunk that the rank at a place of a chain sends in a step.
    #[inline]
    fn chunk(&self, chain: u32, place: u32, step: u32) -> Option<ChunkRange> {
        let piece = step.checked_sub(place).filter(|&piece| piece < self.pieces)?;
        Some(ChunkRange::one(piece * self.count + chain))
    }

    /// Adds the reduction of a chunk that a rank has received.
    #[inline]
    fn fold(&self, chunk: ChunkRange, out: &mut Step) {
        if self.shape.slots > 1 {
            out.reduce(Slot::DATA, [Slot::DATA, Slot(1)], chunk);
        }
    }

    fn links(&self, rank: RankId) -> &[Link] {
        let count = self.count as usize;
        &self.links[rank.index() * count..(rank.index() + 1) * count]
    }
}

/// Refuses a chain that does not have each rank once, or the root at the wrong end.
fn check(
    collective: Collective,
    (chain, members): (usize, &[RankId]),
    ranks: usize,
) -> Result<(), ChainsError> {
    let mut seen = vec![false; ranks];
    let is_new = |rank: &RankId| {
        seen.get_mut(rank.index()).is_some_and(|seen| !std::mem::replace(seen, true))
    };
    if members.len() != ranks || !members.iter().all(is_new) {
        return Err(ChainsError::Ranks { chain, ranks });
    }
    let (root, end, verb) = match collective {
        Collective::Broadcast { root } => (root, members.first(), "start"),
        Collective::Reduce { root } => (root, members.last(), "end"),
        _ => return Err(ChainsError::Collective { collective }),
    };
    match end {
        Some(&end) if end == root => Ok(()),
        _ => Err(ChainsError::Root { chain, collective, verb, root }),
    }
}

fn links_of(chains: &[Vec<RankId>], ranks: usize) -> Vec<Link> {
    let mut links = vec![Link { at: 0, before: None, after: None }; ranks * chains.len()];
    for (index, chain) in chains.iter().enumerate() {
        let mut before = None;
        for (at, (place, &rank)) in (0..).zip(chain.iter().enumerate()) {
            let after = chain.get(place + 1).copied();
            links[rank.index() * chains.len() + index] = Link { at, before, after };
            before = Some(rank);
        }
    }
    links
}

impl Schedule for Chains {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, _rank: RankId) -> u32 {
        self.pieces + self.shape.ranks - 1
    }

    fn step(&self, rank: RankId, step: u32, out: &mut Step) {
        let links = self.links(rank);
        for (chain, &link) in (0..).zip(links) {
            self.send(chain, link, step, out);
        }
        for (chain, &link) in (0..).zip(links) {
            self.recv(chain, link, step, out);
        }
        for index in 0..out.recvs.len() {
            self.fold(out.recvs[index].chunks, out);
        }
    }

    fn step_of_channel(
        &self,
        (rank, step): (RankId, u32),
        channels: Channels,
        channel: u32,
        out: &mut Step,
    ) {
        if channels.run == 1 && channels.count == self.count {
            let link = self.links(rank)[channel as usize];
            self.send(channel, link, step, out);
            if let Some(chunk) = self.recv(channel, link, step, out) {
                self.fold(chunk, out);
            }
            return;
        }
        self.step(rank, step, out);
        out.keep_channel(channels, channel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Explicit, verify};

    const ROOT: RankId = RankId(1);

    fn chains(orders: &[&[u32]]) -> Vec<Vec<RankId>> {
        orders.iter().map(|order| order.iter().copied().map(RankId).collect()).collect()
    }

    /// The same schedule, op by op.
    fn written(collective: Collective, orders: &[&[u32]], pieces: u32) -> Explicit {
        let (count, ranks) = (orders.len(), orders[0].len());
        let every = u32::try_from(ranks).unwrap();
        let chunks = pieces * u32::try_from(count).unwrap();
        let mut builder = Explicit::builder(collective, every, chunks);
        let folds = matches!(collective, Collective::Reduce { .. });
        builder.name(&format!("chains:{count},{pieces}"));
        for rank in 0..every {
            for step in 0..pieces + every - 1 {
                builder.start_step(RankId(rank), "");
                let mut received = Vec::new();
                for sends in [true, false] {
                    for (chain, order) in (0..).zip(orders) {
                        let at = order.iter().position(|&one| one == rank).unwrap();
                        let (from, to) =
                            if sends { (at, at + 1) } else { (at.wrapping_sub(1), at) };
                        let (Some(&source), Some(&target)) = (order.get(from), order.get(to))
                        else {
                            continue;
                        };
                        let Some(piece) = step.checked_sub(u32::try_from(from).unwrap()) else {
                            continue;
                        };
                        if piece >= pieces {
                            continue;
                        }
                        let chunk = ChunkRange::one(piece * u32::try_from(count).unwrap() + chain);
                        if sends {
                            builder.send(RankId(rank), RankId(target), Slot::DATA, chunk);
                        } else {
                            let slot = Slot(u32::from(folds));
                            builder.recv(RankId(rank), RankId(source), slot, chunk);
                            received.push(chunk);
                        }
                    }
                }
                for chunk in received.into_iter().filter(|_| folds) {
                    builder.reduce(RankId(rank), Slot::DATA, &[Slot::DATA, Slot(1)], chunk);
                }
            }
        }
        builder.build().unwrap()
    }

    #[test]
    fn steps_are_those_of_an_explicit_schedule() {
        let broadcast: &[&[u32]] = &[&[1, 0, 3, 2], &[1, 2, 3, 0], &[1, 3, 0, 2]];
        let reduce: &[&[u32]] = &[&[2, 3, 0, 1], &[0, 3, 2, 1], &[2, 0, 3, 1]];
        for (collective, orders) in [
            (Collective::Broadcast { root: ROOT }, broadcast),
            (Collective::Reduce { root: ROOT }, reduce),
        ] {
            for pieces in [1, 2, 5] {
                let schedule = Chains::new(collective, &chains(orders), pieces).unwrap();
                assert_eq!(verify(&schedule).unwrap().messages, u64::from(9 * pieces));
                let explicit = written(collective, orders, pieces);
                assert_eq!(schedule.shape(), explicit.shape());
                assert_eq!(Explicit::of(&schedule), explicit);
                assert_eq!(schedule.step_name(ROOT, 1), explicit.step_name(ROOT, 1));
                channels_are_parts(&schedule);
            }
        }
    }

    /// The ops of a channel are those of the complete step that belong to it.
    fn channels_are_parts(schedule: &Chains) {
        let channels = Channels { count: schedule.count, run: 1 };
        let (mut complete, mut part) = (Step::new(), Step::new());
        for (rank, step) in
            (0..4).flat_map(|rank| (0..schedule.steps(ROOT)).map(move |step| (RankId(rank), step)))
        {
            for channel in 0..schedule.count {
                complete.clear();
                part.clear();
                schedule.step(rank, step, &mut complete);
                complete.keep_channel(channels, channel);
                schedule.step_of_channel((rank, step), channels, channel, &mut part);
                assert!(part.ops().eq(complete.ops()), "{rank} {step} {channel}");
            }
        }
    }

    #[test]
    fn invalid_chains_are_refused() {
        let broadcast = Collective::Broadcast { root: ROOT };
        let problem = |collective, orders: &[&[u32]], pieces| {
            Chains::new(collective, &chains(orders), pieces).err().unwrap().to_string()
        };
        let text = problem(Collective::AllReduce, &[&[1, 0]], 1);
        assert_eq!(text, "chains perform a broadcast or a reduce, not all_reduce");
        for order in [&[1, 1][..], &[1, 2], &[1]] {
            let text = problem(broadcast, &[&[1, 0], order], 1);
            assert_eq!(text, "chain 1 does not have each of 2 ranks once");
        }
        let text = problem(broadcast, &[&[0, 1]], 1);
        assert_eq!(text, "chain 0 of a broadcast does not start at the root, rank 1");
        let text = problem(Collective::Reduce { root: ROOT }, &[&[1, 0]], 1);
        assert_eq!(text, "chain 0 of a reduce does not end at the root, rank 1");
        for (orders, pieces) in [(&[][..], 1), (&[&[1, 0][..]], 0), (&[&[1, 0]], 1 << 31)] {
            let text = problem(broadcast, orders, pieces);
            assert!(text.ends_with("expected 1 to 2^31 chunks"), "{text}");
        }
    }
}
