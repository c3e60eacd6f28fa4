//! Channels that progress concurrently: each channel of a rank is a *worker*, which the executor
//! runs like a rank. Worker `rank x channels + channel` shares the port of its rank in
//! the network, and its port of the model delays only its messages.

use tutti_network::{Carried, Carrier, Deadlock, Ticket};
use tutti_schedule::{Channels, Schedule, Shape, Step};
use tutti_units::ids::RankId;
use tutti_units::{Bytes, Time};

use super::{Distance, Disturbance, EngineError, Outcome, Timeline};

/// The number of workers of a rank.
#[derive(Clone, Copy)]
pub(super) struct PerRank(u32);

impl PerRank {
    fn rank(self, worker: RankId) -> RankId {
        RankId(worker.0 / self.0)
    }

    fn channel(self, worker: RankId) -> u32 {
        worker.0 % self.0
    }

    /// The outcome of the ranks: a rank ends with its last worker.
    pub(super) fn outcome(self, of_workers: Outcome) -> Outcome {
        let each = self.0 as usize;
        let start = of_workers.start.iter().step_by(each).copied().collect();
        let last = |workers: &[Time]| workers.iter().copied().max().unwrap_or_default();
        let finish = of_workers.finish.chunks(each).map(last).collect();
        Outcome { start, finish, ..of_workers }
    }

    /// The record of the ranks: each span and message has its channel.
    fn timeline(self, mut of_workers: Timeline) -> Timeline {
        for span in &mut of_workers.spans {
            span.channel = self.channel(span.rank);
            span.rank = self.rank(span.rank);
            span.peer = span.peer.map(|peer| self.rank(peer));
        }
        let messages = &mut of_workers.messages;
        for message in messages.iter_mut() {
            message.channel = self.channel(message.source);
            message.source = self.rank(message.source);
            message.destination = self.rank(message.destination);
        }
        messages.sort_by_key(|one| (one.source, one.destination, one.sent, one.channel, one.index));
        let mut pair = (RankId(u32::MAX), RankId(u32::MAX), 0);
        for message in messages.iter_mut() {
            let next = (message.source, message.destination);
            pair = (next.0, next.1, if (pair.0, pair.1) == next { pair.2 + 1 } else { 0 });
            message.index = pair.2;
        }
        of_workers
    }

    /// The error with ranks in place of workers.
    pub(super) fn error(self, of_workers: EngineError) -> EngineError {
        match of_workers {
            EngineError::Deadlock { mut waiting, stuck, ranks } => {
                for one in &mut waiting {
                    one.rank = self.rank(one.rank);
                    one.on.iter_mut().for_each(|peer| *peer = self.rank(*peer));
                }
                EngineError::Deadlock {
                    waiting,
                    stuck: stuck.div_ceil(self.0 as usize),
                    ranks: ranks / self.0,
                }
            }
            EngineError::Unreceived { count, sender, receiver } => EngineError::Unreceived {
                count,
                sender: self.rank(sender),
                receiver: self.rank(receiver),
            },
            EngineError::NoSuchRank { sender, step, receiver, ranks } => EngineError::NoSuchRank {
                sender: self.rank(sender),
                step,
                receiver: self.rank(receiver),
                ranks: ranks / self.0,
            },
            EngineError::TimeOverflow { rank } => {
                EngineError::TimeOverflow { rank: self.rank(rank) }
            }
            other => other,
        }
    }
}

impl Timeline {
    /// Returns the record of the ranks of a schedule, if channels of theirs progress concurrently
    /// and were observed like ranks.
    #[must_use]
    pub fn by_rank(self, schedule: &dyn Schedule) -> Timeline {
        match Workers::of(schedule) {
            None => self,
            Some(workers) => workers.per_rank().timeline(self),
        }
    }
}

/// The workers of a schedule.
pub(super) struct Workers<'a> {
    inner: &'a dyn Schedule,
    channels: Channels,
    shape: Shape,
}

impl<'a> Workers<'a> {
    /// The workers; `None` if the channels of the schedule do not progress concurrently.
    pub(super) fn of(inner: &'a dyn Schedule) -> Option<Workers<'a>> {
        let channels = inner.channels().filter(|channels| channels.count > 1)?;
        let mut shape = inner.shape().clone();
        shape.ranks *= channels.count;
        Some(Workers { inner, channels, shape })
    }

    pub(super) fn per_rank(&self) -> PerRank {
        PerRank(self.channels.count)
    }
}

impl Schedule for Workers<'_> {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, worker: RankId) -> u32 {
        self.inner.steps(self.per_rank().rank(worker))
    }

    fn step(&self, worker: RankId, step: u32, out: &mut Step) {
        let channel = self.per_rank().channel(worker);
        let rank = self.per_rank().rank(worker);
        self.inner.step_of_channel((rank, step), self.channels, channel, out);
        let count = self.channels.count;
        out.rewrite(|peer| RankId(peer.0 * count + channel), |slot| slot, |chunks| chunks);
    }
}

/// The conditions or the network of ranks, as those of their workers.
pub(super) struct OfWorkers<T> {
    pub(super) of_ranks: T,
    pub(super) per_rank: PerRank,
}

impl Disturbance for OfWorkers<&dyn Disturbance> {
    fn start(&self, worker: RankId) -> Time {
        self.of_ranks.start(self.per_rank.rank(worker))
    }

    fn before_step(&self, worker: RankId, step: u32) -> Time {
        self.of_ranks.before_step(self.per_rank.rank(worker), step)
    }

    fn on_message(&self, worker: RankId, step: u32, index: u32) -> Time {
        let (rank, channel) = (self.per_rank.rank(worker), self.per_rank.channel(worker));
        self.of_ranks.on_message(rank, step, index * self.per_rank.0 + channel)
    }

    fn local(&self, worker: RankId, nominal: Time) -> Time {
        self.of_ranks.local(self.per_rank.rank(worker), nominal)
    }

    fn done(&self, worker: RankId, start: Time, work: Time) -> Time {
        self.of_ranks.done(self.per_rank.rank(worker), start, work)
    }

    fn waits_for_sends(&self) -> bool {
        self.of_ranks.waits_for_sends()
    }

    fn delays_messages(&self) -> bool {
        self.of_ranks.delays_messages()
    }

    fn on_route(&self, (worker, step, index): (RankId, u32, u32), to: RankId) -> Time {
        let (rank, channel) = (self.per_rank.rank(worker), self.per_rank.channel(worker));
        let from = (rank, step, index * self.per_rank.0 + channel);
        self.of_ranks.on_route(from, self.per_rank.rank(to))
    }
}

impl Distance for OfWorkers<&dyn Distance> {
    fn extra(&self, source: RankId, destination: RankId, bytes: Bytes) -> Time {
        self.of_ranks.extra(self.per_rank.rank(source), self.per_rank.rank(destination), bytes)
    }
}

impl<C: Carrier> Carrier for OfWorkers<&mut C> {
    const CONTENDED: bool = C::CONTENDED;

    fn carry(&mut self, ticket: Ticket, message: Carried) {
        let source = self.per_rank.rank(message.source);
        let destination = self.per_rank.rank(message.destination);
        self.of_ranks.carry(ticket, Carried { source, destination, ..message });
    }

    fn next_arrival(&mut self) -> Option<(Ticket, Time)> {
        self.of_ranks.next_arrival()
    }

    fn deadlock(&self) -> Option<Deadlock> {
        self.of_ranks.deadlock()
    }
}
