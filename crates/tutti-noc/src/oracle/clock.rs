//! Clocks: each counts its cycles, and has one that starts in a cycle of the network or none.

use crate::{Channel, Clock, End, Settings, Wiring};

/// The clock of a router, or of a node in one direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ticks {
    /// In picoseconds.
    pub(super) period: u64,
    /// Its next cycle.
    next: u64,
    /// Its cycle that has started since the cycle before of the network.
    pub(super) started: Option<u64>,
}

impl Ticks {
    /// The clock of a router.
    pub(super) fn of(router: u32, wiring: &Wiring, settings: &Settings) -> Ticks {
        let shared = Clock { domain: 0, period: wiring.cycle(), synchroniser: 0 };
        Ticks::new(settings.clocks.get(router as usize).copied().unwrap_or(shared))
    }

    fn new(clock: Clock) -> Ticks {
        Ticks { period: clock.period.ps(), next: 0, started: None }
    }

    /// A cycle of the network starts, at this time.
    pub(super) fn tick(&mut self, time: u64) {
        self.started = None;
        if self.next * self.period <= time {
            self.started = Some(self.next);
            self.next += 1;
        }
    }

    /// When the cycle that has started did, if one has.
    pub(super) fn start(&self) -> Option<u64> {
        Some(self.started? * self.period)
    }
}

/// The clocks of the two ends of a channel, and the cycles that their synchronisers take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends {
    pub(super) from: Ticks,
    pub(super) to: Ticks,
    pub(super) flits_wait: u64,
    pub(super) credits_wait: u64,
}

impl Ends {
    pub(super) fn new(channel: &Channel, wiring: &Wiring, settings: &Settings) -> Ends {
        let of_router = |end: End| match end {
            End::Router { router, .. } => settings.clocks.get(router as usize).copied(),
            End::Node(_) => None,
        };
        let (from, to) = (of_router(channel.from), of_router(channel.to));
        let shared = Clock { domain: 0, period: wiring.cycle(), synchroniser: 0 };
        // Nodes share the clock of their router.
        let (from, to) = (from.or(to).unwrap_or(shared), to.or(from).unwrap_or(shared));
        let crosses = from.domain != to.domain;
        let wait = |receiver: Clock| if crosses { u64::from(receiver.synchroniser) } else { 0 };
        let (flits_wait, credits_wait) = (wait(to), wait(from));
        Ends { from: Ticks::new(from), to: Ticks::new(to), flits_wait, credits_wait }
    }

    pub(super) fn tick(&mut self, time: u64) {
        self.from.tick(time);
        self.to.tick(time);
    }
}
