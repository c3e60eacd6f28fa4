//! What is counted of a load.

use super::{Measured, Phases};
use crate::measure::statistics::real;
use crate::measure::window::{Acceptance, Offer, WindowTally};

/// A load's messages in flight, and the statistics of its finished messages.
pub(super) struct Tally {
    pub(super) window: WindowTally,
    cycles: u64,
    open: Vec<Open>,
    free: Vec<u32>,
    /// Messages that have not ended.
    pub(super) active: u64,
    /// Those when the window started.
    queued: u64,
    active_cycles: u64,
    part_latency: u64,
    parts_ended: u64,
    arrivals: u64,
}

/// A message in flight.
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
        Tally {
            window: WindowTally::new(phases, 1),
            cycles: phases.measure,
            open: Vec::new(),
            free: Vec::new(),
            active: 0,
            queued: 0,
            active_cycles: 0,
            part_latency: 0,
            parts_ended: 0,
            arrivals: 0,
        }
    }

    /// A message of so many parts starts; by which number it is known.
    pub(super) fn begin(&mut self, created: u64, parts: u64) -> u32 {
        self.window.create(created, parts);
        self.active += 1;
        let open = Open { created, missing: parts, arrivals: 0, latest: 0, part_latency: 0, parts };
        if let Some(place) = self.free.pop() {
            self.open[place as usize] = open;
            return place;
        }
        self.open.push(open);
        u32::try_from(self.open.len() - 1).expect("fewer messages than 2^32 are in flight")
    }

    /// So many parts of a message arrived together, or all that it has.
    pub(super) fn arrive(&mut self, place: u32, arrived: u64, parts: Option<u64>) {
        let parts = parts.unwrap_or(self.open[place as usize].missing);
        self.window.accept(arrived, parts);
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
        if self.window.end(ended.created, ended.latest).is_some() {
            self.part_latency += ended.part_latency;
            self.parts_ended += ended.parts;
            self.arrivals += ended.arrivals;
        }
    }

    /// A cycle of the window has passed, with so many messages that were not sent.
    pub(super) fn pass(&mut self, waiting: u64) {
        self.active_cycles += self.active - waiting;
    }

    /// The window starts now.
    pub(super) fn start(&mut self) {
        self.queued = self.active;
    }

    /// Whether 97 % of what was offered in the window, which ends now, was accepted.
    pub(super) fn acceptance(&self, nodes: u32) -> Acceptance {
        let WindowTally { created, created_parts, .. } = self.window;
        let offer = Offer {
            messages: created,
            parts: created_parts,
            accepted: self.window.accepted_parts(),
            queued: [self.queued, self.active],
            nodes: u64::from(nodes),
            tolerated_percent: TOLERATED_PERCENT,
        };
        offer.acceptance()
    }

    pub(super) fn measured(&self) -> Measured {
        let WindowTally { created, created_parts, latency, histogram, .. } = &self.window;
        let cycles = real(self.cycles);
        let parts = real(*created_parts) / real(*created);
        let accepted = real(self.window.accepted_parts()) / parts;
        let (_, ended) = latency.total();
        Measured {
            messages: ended,
            offered: real(*created) / cycles,
            accepted: if *created == 0 { 0.0 } else { accepted / cycles },
            parts,
            latency: latency.estimate().mean,
            latency_extremes: histogram.extremes(),
            quantiles: histogram.quantiles(),
            part_latency: real(self.part_latency) / real(self.parts_ended),
            arrivals: real(self.arrivals) / real(ended),
            active: real(self.active_cycles) / cycles,
        }
    }
}

/// The share of parts that may be missing at the end of a window because they are in flight.
const TOLERATED_PERCENT: u64 = 3;
