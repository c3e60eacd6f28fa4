//! The end of a run: the outcome or an error.

use super::super::record::Outcome;
use super::super::{EngineError, Probe, Waiting};
use super::Executor;
use tutti_network::{Carrier, Deadlock, MessageModel};
use tutti_units::Time;
use tutti_units::ids::RankId;

/// The most blocked ranks that an error lists.
const LISTED: usize = 16;

impl<M: MessageModel, C: Carrier, P: Probe> Executor<'_, M, C, P> {
    /// Returns the outcome or the error.
    pub(crate) fn finish(mut self) -> Result<Outcome, EngineError> {
        if let Some(error) = self.invalid_send {
            return Err(error);
        }
        if let Some(Deadlock { since, messages, deadlock_cycle }) = self.carrier.deadlock() {
            return Err(EngineError::NetworkDeadlock { since, messages, deadlock_cycle });
        }
        self.check_all_done()?;
        self.check_all_received()?;
        if self.messages == 0 {
            return Err(EngineError::NothingMoved);
        }
        let finish: Vec<Time> = self.ranks.iter().map(|progress| progress.clock).collect();
        if let Some((rank, _)) = (0..).zip(&finish).find(|(_, time)| **time > Time::LATEST) {
            return Err(EngineError::TimeOverflow { rank: RankId(rank) });
        }
        let ranks = 0..self.simulation.schedule.shape().ranks;
        let start = ranks.map(|rank| self.simulation.conditions.start(RankId(rank))).collect();
        Ok(Outcome {
            start,
            finish,
            messages: self.messages,
            bytes: self.bytes,
            delivered: self.messages + self.copied.messages - self.combined.messages,
            delivered_bytes: self.bytes + self.copied.bytes - self.combined.bytes,
        })
    }

    #[cold]
    pub(super) fn note_invalid_send(&mut self, sender: RankId, step: u32, receiver: RankId) {
        let ranks = self.simulation.schedule.shape().ranks;
        self.invalid_send.get_or_insert(EngineError::NoSuchRank { sender, step, receiver, ranks });
    }

    fn check_all_done(&mut self) -> Result<(), EngineError> {
        let stuck: Vec<RankId> = (0..)
            .zip(&self.ranks)
            .filter(|(_, progress)| progress.step < progress.steps)
            .map(|(rank, _)| RankId(rank))
            .collect();
        if stuck.is_empty() {
            return Ok(());
        }
        let waiting = stuck.iter().take(LISTED).map(|&rank| self.missing_messages(rank)).collect();
        let ranks = self.simulation.schedule.shape().ranks;
        Err(EngineError::Deadlock { waiting, stuck: stuck.len(), ranks })
    }

    fn missing_messages(&mut self, rank: RankId) -> Waiting {
        self.load_step(rank);
        let progress = &mut self.ranks[rank.index()];
        let mut on = Vec::new();
        for recv in &self.step.recvs {
            if self.awaited.missing(rank).is_some() {
                on.extend(self.awaited.holds(rank, recv.peer).then_some(recv.peer));
            } else if self.letters.take(&mut progress.mailbox, recv.peer).is_none() {
                on.push(recv.peer);
            }
        }
        Waiting { rank, step: progress.step, on }
    }

    fn check_all_received(&self) -> Result<(), EngineError> {
        let count = self.ranks.iter().map(|progress| u64::from(progress.mailbox.count())).sum();
        let first = (0..).zip(&self.ranks).find_map(|(rank, progress)| {
            Some((RankId(rank), self.letters.first(progress.mailbox)?))
        });
        match first {
            None => Ok(()),
            Some((receiver, sender)) => Err(EngineError::Unreceived { count, sender, receiver }),
        }
    }
}
