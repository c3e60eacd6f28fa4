//! The critical path of a run, and the share of each cause in its completion time.
//!
//! The path is followed backwards from the last activity. A wait leads to the sender of the message
//! that ended it, any other activity to the one before it on the same rank. The time of a message is
//! compared with that of the same message alone on the platform, and with that of a message of one
//! byte:
//!
//! - latency: the time of one byte, alone.
//! - bandwidth: the additional time of all bytes, alone.
//! - contention: the additional time in the run.
//!
//! A send or a receive that delays the next activity of its rank has the same three parts, with the
//! endpoint instead of the latency. On a platform whose messages share nothing, the additional time
//! in the run is bandwidth: a rank waits until its earlier bytes have left. Differences of times are
//! never below zero.

use std::collections::BTreeMap;
use std::sync::Arc;

use tutti_engine::{Activity, EngineError, MessageRecord, Span, Timeline};
use tutti_schedule::collective::Collective;
use tutti_schedule::{ChunkRange, Explicit, Slot};
use tutti_units::ids::RankId;
use tutti_units::{Bytes, Time};

use crate::{Case, Payload, Platform};

/// Most distinct messages that are timed alone.
const MOST_PROBED: usize = 512;

/// A cause of time on a critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, tutti_units::Named)]
pub enum Cause {
    /// The time of a byte on the network.
    Latency,
    /// The additional time of all bytes of a message.
    Bandwidth,
    /// The additional time due to other messages.
    Contention,
    /// Reductions and copies.
    Reduction,
    /// Launches, and the time of a send or receive of one byte.
    Endpoint,
    /// Noise, arrival and computation.
    Other,
}

/// What a part of a critical path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HopKind {
    /// An activity of the rank.
    Activity(Activity),
    /// A message to the rank.
    Message,
    /// No activity.
    Idle,
}

impl HopKind {
    /// The name of the activity, `message` or `idle`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            HopKind::Activity(activity) => activity.name(),
            HopKind::Message => "message",
            HopKind::Idle => "idle",
        }
    }
}

/// A part of a critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The rank.
    pub rank: RankId,
    /// What it does.
    pub kind: HopKind,
    /// The start.
    pub start: Time,
    /// The end.
    pub end: Time,
    /// The sender of a message, or the peer of an activity.
    pub source: Option<RankId>,
    /// The bytes of the message or activity.
    pub bytes: Bytes,
}

/// The critical path of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CriticalPath {
    /// Its parts, in order of time.
    pub hops: Vec<Hop>,
    /// The time of each [`Cause`]; the sum is the completion time.
    pub shares: [Time; 6],
}

impl Case {
    /// The critical path of a recorded run of this case.
    ///
    /// # Errors
    /// When a message of the path cannot be timed alone.
    pub fn critical_path(
        &self,
        timeline: &Timeline,
        completion: Time,
    ) -> Result<CriticalPath, EngineError> {
        let hops = Record::new(timeline).follow();
        let mut probes = Probes::new(Arc::clone(&self.platform));
        let mut shares = [Time::ZERO; 6];
        for hop in &hops {
            for (cause, time) in probes.causes(hop)? {
                shares[cause as usize] += time;
            }
        }
        let explained: Time = shares.into_iter().sum();
        shares[Cause::Other as usize] += completion - explained;
        Ok(CriticalPath { hops, shares })
    }
}

/// A rank and its channel.
type Worker = (RankId, u32);

/// The activities of each rank and channel by end, and the messages to them by arrival.
struct Record<'a> {
    activities: BTreeMap<Worker, Vec<&'a Span>>,
    arrived: BTreeMap<(Worker, Time), Vec<&'a MessageRecord>>,
}

impl<'a> Record<'a> {
    fn new(timeline: &'a Timeline) -> Record<'a> {
        let mut activities: BTreeMap<_, Vec<&Span>> = BTreeMap::new();
        for span in timeline.spans.iter().filter(|span| span.end > span.start) {
            activities.entry((span.rank, span.channel)).or_default().push(span);
        }
        for spans in activities.values_mut() {
            spans.sort_by_key(|span| span.end);
        }
        let mut arrived: BTreeMap<_, Vec<&MessageRecord>> = BTreeMap::new();
        for message in &timeline.messages {
            let to = (message.destination, message.channel);
            arrived.entry((to, message.arrival)).or_default().push(message);
        }
        Record { activities, arrived }
    }

    /// The last activity of a rank and channel that ends at a time or before.
    fn last(&self, of: Worker, at: Time) -> Option<&'a Span> {
        let spans = self.activities.get(&of)?;
        let place = spans.partition_point(|span| span.end <= at);
        place.checked_sub(1).map(|last| spans[last])
    }

    /// The parts of the path, in order of time. Of ranks that end last, it starts at the first.
    fn follow(&self) -> Vec<Hop> {
        let ends = self.activities.iter().filter_map(|(&of, spans)| Some((spans.last()?.end, of)));
        let last = ends.max_by_key(|&(end, of)| (end, std::cmp::Reverse(of)));
        let Some((mut at, (mut rank, mut channel))) = last else { return Vec::new() };
        let mut hops = Vec::new();
        while let Some(span) = self.last((rank, channel), at) {
            let &Span { start, end, activity, peer, bytes, .. } = span;
            if end < at {
                let (kind, source) = (HopKind::Idle, None);
                hops.push(Hop { rank, kind, start: end, end: at, source, bytes: Bytes(0) });
            }
            let of = (rank, channel);
            let ended_by = (activity == Activity::Wait).then(|| self.ended_by(of, end, peer));
            if let Some(message) = ended_by.flatten() {
                let &MessageRecord { source, sent, bytes, channel: of, .. } = message;
                let (kind, from) = (HopKind::Message, Some(source));
                hops.push(Hop { rank, kind, start: sent, end, source: from, bytes });
                (rank, channel, at) = (source, of, sent);
            } else {
                let kind = HopKind::Activity(activity);
                hops.push(Hop { rank, kind, start, end, source: peer, bytes });
                at = start;
            }
        }
        hops.reverse();
        hops
    }

    /// The message that ended a wait: the last one sent, from its peer if there is one.
    fn ended_by(&self, of: Worker, at: Time, peer: Option<RankId>) -> Option<&'a MessageRecord> {
        let arrived = self.arrived.get(&(of, at))?.iter().filter(|message| message.sent < at);
        let last_sent = |message: &&&MessageRecord| (message.sent, message.source, message.bytes);
        let from_peer = arrived.clone().filter(|message| Some(message.source) == peer);
        from_peer.max_by_key(last_sent).or_else(|| arrived.max_by_key(last_sent)).copied()
    }
}

/// The times of a message alone: in the network, its send, and its receive.
#[derive(Clone, Copy, Default)]
struct Alone {
    message: Time,
    send: Time,
    recv: Time,
}

/// Times single messages on a platform without other traffic.
struct Probes {
    platform: Arc<Platform>,
    /// By source, target and size, in the order in which they were timed.
    known: Vec<((RankId, RankId, Bytes), Alone)>,
}

impl Probes {
    fn new(platform: Arc<Platform>) -> Probes {
        Probes { platform, known: Vec::new() }
    }

    /// The time of each cause in a part of the path.
    fn causes(&mut self, hop: &Hop) -> Result<Vec<(Cause, Time)>, EngineError> {
        let taken = hop.end - hop.start;
        let (ends, part): (_, fn(Alone) -> Time) = match (hop.kind, hop.source) {
            (HopKind::Message, Some(source)) => ((source, hop.rank), |alone| alone.message),
            (HopKind::Activity(Activity::Send), Some(peer)) => {
                ((hop.rank, peer), |alone| alone.send)
            }
            (HopKind::Activity(Activity::Recv), Some(peer)) => {
                ((peer, hop.rank), |alone| alone.recv)
            }
            (HopKind::Activity(Activity::Launch), _) => return Ok(vec![(Cause::Endpoint, taken)]),
            (HopKind::Activity(Activity::Reduce | Activity::Copy), _) => {
                return Ok(vec![(Cause::Reduction, taken)]);
            }
            _ => return Ok(vec![(Cause::Other, taken)]),
        };
        let alone = part(self.alone(ends, hop.bytes)?);
        let least = part(self.alone(ends, Bytes(1))?);
        let first = least.min(taken);
        let rest = taken - first;
        let is_shared = self.platform.contention().is_some();
        let second = if is_shared { (alone - least).min(rest) } else { rest };
        let of_one_byte =
            if hop.kind == HopKind::Message { Cause::Latency } else { Cause::Endpoint };
        Ok(vec![
            (of_one_byte, first),
            (Cause::Bandwidth, second),
            (Cause::Contention, rest - second),
        ])
    }

    /// The times of a message alone. After many messages, those of the first of the same size.
    fn alone(
        &mut self,
        (source, target): (RankId, RankId),
        bytes: Bytes,
    ) -> Result<Alone, EngineError> {
        let key = (source, target, bytes.max(Bytes(1)));
        let is_full = self.known.len() >= MOST_PROBED;
        let same = |of: &&((RankId, RankId, Bytes), Alone)| of.0 == key;
        let same_size = |of: &&((RankId, RankId, Bytes), Alone)| is_full && of.0.2 == key.2;
        let known = self.known.iter().find(same).or_else(|| self.known.iter().find(same_size));
        if let Some(&(_, alone)) = known {
            return Ok(alone);
        }
        let alone = self.timed(key)?;
        self.known.push((key, alone));
        Ok(alone)
    }

    fn timed(&self, (source, target, size): (RankId, RankId, Bytes)) -> Result<Alone, EngineError> {
        let ranks = source.max(target).0 + 1;
        let mut builder = Explicit::builder(Collective::AllReduce, ranks, 1);
        let all = ChunkRange::new(0, 1);
        builder.send(source, target, Slot(0), all).recv(target, source, Slot(1), all);
        let schedule = builder.build().expect("a send and a receive form a schedule");
        let payload = Payload { size, element: 1 };
        let case = Case::new(Arc::new(schedule), Arc::clone(&self.platform), payload);
        let run = case.expect("the ranks of the path are on the platform").run_recorded()?;
        let Timeline { spans, messages } = run.timeline.unwrap_or_default();
        let time = |activity| {
            let span = spans.iter().rev().find(|span: &&Span| span.activity == activity);
            span.map_or(Time::ZERO, |span| span.end - span.start)
        };
        Ok(Alone {
            message: messages.first().map_or(Time::ZERO, |message| message.arrival - message.sent),
            send: time(Activity::Send),
            recv: time(Activity::Recv),
        })
    }
}
