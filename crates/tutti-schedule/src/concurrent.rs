//! Channels that progress concurrently, as the thread blocks of a GPU do.

use std::sync::Arc;

use super::{Blocks, ChunkRange, Digit, Local, Schedule, Shape, Step};
use tutti_units::ids::RankId;

/// Channels of a schedule: which chunks belong to which. Chunks are dealt to the channels in runs
/// of equal length, cyclically.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Channels {
    /// The number of channels, at least one.
    pub count: u32,
    /// The chunks of a run, at least one.
    pub run: u32,
}

impl Channels {
    /// Returns the channel of a chunk.
    #[inline]
    #[must_use]
    pub fn of(self, chunk: u32) -> u32 {
        chunk / self.run % self.count
    }

    /// Returns whether chunks are in one run.
    fn hold(self, chunks: ChunkRange) -> bool {
        chunks.start / self.run == chunks.end.saturating_sub(1).max(chunks.start) / self.run
    }
}

/// A schedule whose channels cannot progress concurrently.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum ConcurrentError {
    /// No channels, or runs that do not divide the chunks.
    #[error("{channels} channels of {run} chunks do not divide the {chunks} chunks of {name}")]
    Chunks { name: String, channels: u32, run: u32, chunks: u32 },
    /// An op on chunks of several channels, or on none.
    #[error("step {step} of {rank} in {name} has an op that does not belong to one channel")]
    Mixed { name: String, rank: RankId, step: u32 },
}

/// A schedule whose channels progress concurrently: a rank's next ops in a channel do not wait for
/// its ops in other channels. Each channel executes the steps of the rank in order.
pub struct Concurrent {
    inner: Arc<dyn Schedule>,
    channels: Channels,
}

impl Concurrent {
    /// Lets the channels of a schedule progress concurrently. Reads all steps.
    ///
    /// # Errors
    /// When the channels do not divide the chunks, or an op belongs to several channels or to none.
    pub fn new(
        inner: Arc<dyn Schedule>,
        channels: Channels,
    ) -> Result<Concurrent, ConcurrentError> {
        let Shape { name, ranks, chunks, .. } = inner.shape().clone();
        let Channels { count, run } = channels;
        let all = u64::from(count) * u64::from(run);
        if all == 0 || !u64::from(chunks).is_multiple_of(all) {
            return Err(ConcurrentError::Chunks { name, channels: count, run, chunks });
        }
        let mut out = Step::new();
        for rank in (0..ranks).map(RankId) {
            for step in 0..inner.steps(rank) {
                out.clear();
                inner.step(rank, step, &mut out);
                if !is_divided(&out, channels) {
                    return Err(ConcurrentError::Mixed { name, rank, step });
                }
            }
        }
        Ok(Concurrent { inner, channels })
    }
}

/// Whether each op of a step belongs to one channel.
fn is_divided(step: &Step, channels: Channels) -> bool {
    let mut messages = step.sends.iter().chain(&step.recvs);
    let locals = || step.locals.iter().all(|local| chunk_of(local, channels).is_some());
    step.marks().is_empty() && messages.all(|message| channels.hold(message.chunks)) && locals()
}

/// A chunk of a local op, if all of its chunks are in one channel.
fn chunk_of(local: &Local, channels: Channels) -> Option<u32> {
    match *local {
        Local::Reduce { chunks, .. } => channels.hold(chunks).then_some(chunks.start),
        Local::Copy { chunks, to, .. } => {
            let same = channels.of(chunks.start) == channels.of(to);
            (same && channels.hold(chunks)).then_some(chunks.start)
        }
        Local::Compute { .. } | Local::Sleep { .. } => None,
    }
}

impl Step {
    /// Removes the ops of other channels than `channel`. The step belongs to a [`Concurrent`]
    /// schedule with these channels.
    pub fn keep_channel(&mut self, channels: Channels, channel: u32) {
        self.sends.retain(|message| channels.of(message.chunks.start) == channel);
        self.recvs.retain(|message| channels.of(message.chunks.start) == channel);
        let chunk = |local: &Local| chunk_of(local, channels).map(|chunk| channels.of(chunk));
        self.locals.retain(|local| chunk(local) == Some(channel));
    }
}

impl Schedule for Concurrent {
    fn shape(&self) -> &Shape {
        self.inner.shape()
    }

    fn steps(&self, rank: RankId) -> u32 {
        self.inner.steps(rank)
    }

    fn step(&self, rank: RankId, step: u32, out: &mut Step) {
        self.inner.step(rank, step, out);
    }

    fn moves_chunks(&self) -> bool {
        self.inner.moves_chunks()
    }

    fn blocks(&self) -> Option<&Blocks> {
        self.inner.blocks()
    }

    fn phases(&self) -> u32 {
        self.inner.phases()
    }

    fn phase(&self, rank: RankId, step: u32) -> u32 {
        self.inner.phase(rank, step)
    }

    fn is_ordered(&self, rank: RankId, step: u32) -> bool {
        self.inner.is_ordered(rank, step)
    }

    fn is_part(&self) -> bool {
        self.inner.is_part()
    }

    fn symmetry(&self) -> Option<Vec<Digit>> {
        self.inner.symmetry()
    }

    fn channel(&self, rank: RankId, step: u32, send: u32) -> u32 {
        self.inner.channel(rank, step, send)
    }

    fn channels(&self) -> Option<Channels> {
        Some(self.channels)
    }

    fn step_of_channel(&self, at: (RankId, u32), channels: Channels, channel: u32, out: &mut Step) {
        self.inner.step_of_channel(at, channels, channel, out);
    }

    fn step_name(&self, rank: RankId, step: u32) -> String {
        self.inner.step_name(rank, step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::build;
    use crate::collective::Collective;

    fn concurrent(notation: &str, count: u32, run: u32) -> Result<Concurrent, ConcurrentError> {
        let inner = build(notation, Collective::AllReduce, 8).unwrap();
        Concurrent::new(inner, Channels { count, run })
    }

    /// The channels of a step are its ops, each once.
    #[test]
    fn channels_divide_the_ops_of_each_step() {
        for (notation, count, run) in [
            ("ring:node=4,channels=4", 4, 1),
            ("double_binary_tree:nccl,node=4,channels=4,3", 8, 3),
            ("ring", 1, 8),
        ] {
            let schedule = concurrent(notation, count, run).unwrap();
            let channels = schedule.channels().unwrap();
            let mut complete = Step::new();
            for (rank, step) in (0..8)
                .flat_map(|rank| (0..schedule.steps(RankId(rank))).map(move |step| (rank, step)))
            {
                complete.clear();
                schedule.step(RankId(rank), step, &mut complete);
                let mut found = 0;
                for channel in 0..count {
                    let mut part = complete.clone();
                    part.keep_channel(channels, channel);
                    found += part.ops().count();
                }
                assert_eq!(found, complete.ops().count(), "{notation}");
            }
        }
    }

    #[test]
    fn mixed_channels_are_refused() {
        let text =
            |notation, count, run| concurrent(notation, count, run).err().unwrap().to_string();
        assert_eq!(text("ring", 3, 1), "3 channels of 1 chunks do not divide the 8 chunks of ring");
        assert_eq!(text("ring", 0, 1), "0 channels of 1 chunks do not divide the 8 chunks of ring");
        let mixed = text("recursive_halving_doubling", 8, 1);
        assert!(mixed.contains("does not belong to one channel"), "{mixed}");
    }
}
