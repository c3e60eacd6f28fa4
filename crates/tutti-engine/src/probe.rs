//! Observers of a run, which cannot change it.

use std::collections::{BTreeMap, VecDeque};

use super::record::{MessageRecord, Span, Timeline};
use tutti_units::ids::RankId;
use tutti_units::{Bytes, Time};

/// Observes a run.
pub trait Probe {
    /// Whether the run is observed; if not, the engine skips the bookkeeping.
    const OBSERVES: bool;

    /// A rank was active during a span.
    fn span(&mut self, span: Span);

    /// A message was handed to the network.
    fn sent(&mut self, source: RankId, destination: RankId, bytes: Bytes, at: Time, arrival: Time);

    /// The message from `source` that arrived at `arrival` was received; of several, the one sent
    /// first.
    fn received(&mut self, source: RankId, destination: RankId, arrival: Time, at: Time);
}

/// Observes nothing.
pub struct Silent;

impl Probe for Silent {
    const OBSERVES: bool = false;
    fn span(&mut self, _: Span) {}
    fn sent(&mut self, _: RankId, _: RankId, _: Bytes, _: Time, _: Time) {}
    fn received(&mut self, _: RankId, _: RankId, _: Time, _: Time) {}
}

/// Records every span and message.
#[derive(Default)]
pub struct TimelineProbe {
    spans: Vec<Span>,
    /// Per pair: its messages, and those not received yet. Messages of one step may overtake each
    /// other, so these are not always the last ones.
    pairs: BTreeMap<(RankId, RankId), (Vec<MessageRecord>, VecDeque<usize>)>,
}

impl TimelineProbe {
    /// The record, sorted.
    #[must_use]
    pub fn into_timeline(mut self) -> Timeline {
        // A stable sort: the spans of one rank were recorded in order of time.
        self.spans.sort_by_key(|span| span.rank);
        let messages = self.pairs.into_values().flat_map(|(messages, _)| messages).collect();
        Timeline { spans: self.spans, messages }
    }
}

impl Probe for TimelineProbe {
    const OBSERVES: bool = true;

    fn span(&mut self, span: Span) {
        if span.start < span.end {
            self.spans.push(span);
        }
    }

    fn sent(&mut self, source: RankId, destination: RankId, bytes: Bytes, at: Time, arrival: Time) {
        let (messages, waiting) = self.pairs.entry((source, destination)).or_default();
        let index = u32::try_from(messages.len()).unwrap_or(u32::MAX);
        waiting.push_back(messages.len());
        messages.push(MessageRecord {
            source,
            destination,
            channel: 0,
            index,
            bytes,
            sent: at,
            arrival,
            received: arrival,
        });
    }

    fn received(&mut self, source: RankId, destination: RankId, arrival: Time, at: Time) {
        if let Some((messages, waiting)) = self.pairs.get_mut(&(source, destination)) {
            let taken = waiting.iter().position(|&index| messages[index].arrival == arrival);
            if let Some(index) = taken.and_then(|position| waiting.remove(position)) {
                messages[index].received = at;
            }
        }
    }
}
