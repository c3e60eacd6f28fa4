//! Observers of a run: they see everything and can change nothing.

use std::collections::BTreeMap;

use super::record::{MessageRecord, Span, Timeline};
use crate::ids::RankId;
use crate::units::{Bytes, Time};

/// Sees what happens in a run.
pub trait Probe {
    /// Whether anybody looks; where not, the engine skips the bookkeeping.
    const LOOKS: bool;

    /// A rank did something for a while.
    fn span(&mut self, span: Span);

    /// A message was handed to the network.
    fn sent(&mut self, source: RankId, destination: RankId, bytes: Bytes, at: Time, arrival: Time);

    /// The earliest message from `source` that `destination` had not taken yet was taken.
    fn received(&mut self, source: RankId, destination: RankId, at: Time);
}

/// Looks at nothing.
pub struct Silent;

impl Probe for Silent {
    const LOOKS: bool = false;
    fn span(&mut self, _: Span) {}
    fn sent(&mut self, _: RankId, _: RankId, _: Bytes, _: Time, _: Time) {}
    fn received(&mut self, _: RankId, _: RankId, _: Time) {}
}

/// Records every span and message.
#[derive(Default)]
pub struct TimelineProbe {
    spans: Vec<Span>,
    /// Per pair: its messages, and how many of them have been received.
    pairs: BTreeMap<(RankId, RankId), (Vec<MessageRecord>, usize)>,
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
    const LOOKS: bool = true;

    fn span(&mut self, span: Span) {
        if span.start < span.end {
            self.spans.push(span);
        }
    }

    fn sent(&mut self, source: RankId, destination: RankId, bytes: Bytes, at: Time, arrival: Time) {
        let (messages, _) = self.pairs.entry((source, destination)).or_default();
        let index = u32::try_from(messages.len()).unwrap_or(u32::MAX);
        messages.push(MessageRecord {
            source,
            destination,
            index,
            bytes,
            sent: at,
            arrival,
            received: arrival,
        });
    }

    fn received(&mut self, source: RankId, destination: RankId, at: Time) {
        if let Some((messages, taken)) = self.pairs.get_mut(&(source, destination)) {
            messages[*taken].received = at;
            *taken += 1;
        }
    }
}
