//! What is counted of a load.

use super::{Measured, Phases};
use crate::measure::statistics::{Histogram, real};

/// A load's messages that are under way, and what was counted of those that ended.
#[derive(Default)]
pub(super) struct Tally {
    phases: Phases,
    open: Vec<Open>,
    free: Vec<u32>,
    /// Messages under way.
    pub(super) active: u64,
    active_cycles: u64,
    created: u64,
    created_parts: u64,
    accepted_parts: u64,
    /// Messages of the window that have not ended.
    pub(super) missing: u64,
    ended: u64,
    latency: u64,
    part_latency: u64,
    parts_ended: u64,
    arrivals: u64,
    histogram: Histogram,
}

/// A message under way.
#[derive(Clone, Copy)]
struct Open {
    created: u64,
    /// Parts that have not arrived.
    missing: u64,
    arrivals: u64,
    latest: u64,
    part_latency: u64,
    parts: u64,
}

impl Tally {
    pub(super) fn new(phases: Phases) -> Tally {
        Tally { phases, ..Tally::default() }
    }

    /// A message of so many parts begins; by which number it is known.
    pub(super) fn begin(&mut self, created: u64, parts: u64) -> u32 {
        if self.phases.in_window(created).is_some() {
            self.created += 1;
            self.created_parts += parts;
            self.missing += 1;
        }
        self.active += 1;
        let open = Open { created, missing: parts, arrivals: 0, latest: 0, part_latency: 0, parts };
        if let Some(place) = self.free.pop() {
            self.open[place as usize] = open;
            return place;
        }
        self.open.push(open);
        u32::try_from(self.open.len() - 1).expect("fewer messages than 2^32 are under way")
    }

    /// So many parts of a message arrived together, or all that it has.
    pub(super) fn arrive(&mut self, place: u32, arrived: u64, parts: Option<u64>) {
        let parts = parts.unwrap_or(self.open[place as usize].missing);
        if self.phases.in_window(arrived).is_some() {
            self.accepted_parts += parts;
        }
        let open = &mut self.open[place as usize];
        open.missing = open.missing.checked_sub(parts).expect("no more parts than it has");
        open.arrivals += 1;
        open.latest = open.latest.max(arrived);
        open.part_latency += parts * (arrived - open.created);
        if open.missing > 0 {
            return;
        }
        let ended = *open;
        self.free.push(place);
        self.active -= 1;
        if self.phases.in_window(ended.created).is_some() {
            self.end(&ended);
        }
    }

    fn end(&mut self, open: &Open) {
        let latency = open.latest - open.created;
        self.missing -= 1;
        self.ended += 1;
        self.latency += latency;
        self.part_latency += open.part_latency;
        self.parts_ended += open.parts;
        self.arrivals += open.arrivals;
        self.histogram.add(latency);
    }

    /// A cycle of the window has passed.
    pub(super) fn pass(&mut self) {
        self.active_cycles += self.active;
    }

    /// Whether less than 97 % of what was offered in the window was accepted.
    pub(super) fn is_overloaded(&self) -> bool {
        self.accepted_parts * 100 < self.created_parts * 97
    }

    pub(super) fn measured(&self) -> Measured {
        let window = real(self.phases.measure);
        let parts = real(self.created_parts) / real(self.created);
        let accepted = if self.created == 0 { 0.0 } else { real(self.accepted_parts) / parts };
        Measured {
            messages: self.ended,
            offered: real(self.created) / window,
            accepted: accepted / window,
            parts,
            latency: real(self.latency) / real(self.ended),
            latency_extremes: self.histogram.extremes(),
            quantiles: self.histogram.quantiles(),
            part_latency: real(self.part_latency) / real(self.parts_ended),
            arrivals: real(self.arrivals) / real(self.ended),
            active: real(self.active_cycles) / window,
        }
    }
}
