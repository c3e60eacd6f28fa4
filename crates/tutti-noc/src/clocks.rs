//! Clocks of routers that differ from the network's.
//!
//! Cycle k of a clock with period P starts at k P. A router and the nodes at its ports act when a
//! cycle of their clock starts. Times are exact; the network performs a cycle of a router in the
//! first of its own cycles that does not start before it.

use tutti_units::Time;

use super::{Channel, End, FlitError, Settings, Wiring};

/// The longest period of a clock, in cycles of the network.
const LONGEST_PERIOD: u64 = 64;

/// The most cycles of the network that flits of full buffers, and the delays of a router, take.
const LONGEST_WAIT: u64 = 1 << 20;

/// The longest synchroniser, in cycles.
const LONGEST_SYNCHRONISER: u32 = 64;

/// The clock of a router.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Clock {
    /// Its number: links between routers of different numbers have synchronisers.
    pub domain: u32,
    /// From one of its cycles to the next.
    pub period: Time,
    /// Cycles that flits and credits from another clock wait in the synchroniser.
    pub synchroniser: u32,
}

impl Settings {
    /// The clocks of the two ends of a channel. A node has the clock of the router at the other end.
    #[must_use]
    pub fn clocks_of(&self, channel: &Channel, cycle: Time) -> [Clock; 2] {
        let shared = Clock { domain: 0, period: cycle, synchroniser: 0 };
        let clock = |end: End| match end {
            End::Router { router, .. } => {
                Some(self.clocks.get(router as usize).copied().unwrap_or(shared))
            }
            End::Node(_) => None,
        };
        let (from, to) = (clock(channel.from), clock(channel.to));
        [from.or(to).unwrap_or(shared), to.or(from).unwrap_or(shared)]
    }

    /// The cycles that flits, and credits, wait in synchronisers at the ends of a channel.
    #[must_use]
    pub fn synchronisers(&self, channel: &Channel, cycle: Time) -> [u32; 2] {
        let [from, to] = self.clocks_of(channel, cycle);
        if from.domain == to.domain { [0, 0] } else { [to.synchroniser, from.synchroniser] }
    }

    /// The time per flit that a channel sustains: its own, or the period of its slower end.
    #[must_use]
    pub fn flit_time(&self, channel: &Channel, cycle: Time) -> Time {
        let [from, to] = self.clocks_of(channel, cycle);
        channel.parameters.flit_time.max(from.period).max(to.period)
    }

    /// The longest period of a clock.
    #[must_use]
    pub fn longest_period(&self, cycle: Time) -> Time {
        self.clocks.iter().map(|clock| clock.period).max().unwrap_or(cycle)
    }

    /// Whether routers have several clocks, or one that differs from that of the network.
    pub(super) fn has_clocks(&self, cycle: Time) -> bool {
        let first = self.clocks.first().map_or(0, |clock| clock.domain);
        self.clocks.iter().any(|clock| (clock.domain, clock.period) != (first, cycle))
    }

    /// Checks the clocks of routers, and what they exclude.
    pub(super) fn check_clocks(&self, wiring: &Wiring) -> Result<(), FlitError> {
        let (routers, cycle) = (wiring.routers(), wiring.cycle());
        if !self.has_clocks(cycle) {
            return Ok(());
        }
        let number = self.clocks.len() as u64;
        if number != u64::from(routers) {
            let expected = format!("{routers}, one for each router");
            return Err(FlitError::OutOfRange { what: "clocks", value: number, expected });
        }
        self.check_periods(cycle)?;
        if self.queues_behind_switch() {
            let problem =
                "flits queue behind the switch: expected `output_speedup` and `internal_speedup` \
                 of 1 and no `output_buffer`, or one clock"
                    .to_owned();
            return Err(FlitError::Clash { what: "clocks", problem });
        }
        self.check_waits(cycle)
    }

    /// Refuses waits that the engine cannot count.
    fn check_waits(&self, cycle: Time) -> Result<(), FlitError> {
        let flits = u64::from(self.vcs) * u64::from(self.buffer);
        let delays = [self.routing_delay, self.traversal_delay, self.credit_delay];
        let delays = delays.into_iter().map(u64::from).sum::<u64>();
        let cycles = self.longest_period(cycle).ps().div_ceil(cycle.ps());
        if (flits + delays) * cycles > LONGEST_WAIT {
            let problem = format!(
                "buffers of {flits} flits and delays of {delays} cycles, in cycles that take up to \
                 {cycles} of the network: expected a product of at most {LONGEST_WAIT}"
            );
            return Err(FlitError::Clash { what: "clocks", problem });
        }
        Ok(())
    }

    fn check_periods(&self, cycle: Time) -> Result<(), FlitError> {
        let longest = Time::from_ps(cycle.ps().saturating_mul(LONGEST_PERIOD));
        for Clock { period, synchroniser, .. } in &self.clocks {
            if !(cycle..=longest).contains(period) {
                let problem = format!(
                    "a period of {period}: expected {cycle}, the cycle of the network, to {longest}"
                );
                return Err(FlitError::Clash { what: "clocks", problem });
            }
            if *synchroniser > LONGEST_SYNCHRONISER {
                let (what, value) = ("synchroniser", u64::from(*synchroniser));
                let expected = format!("0 to {LONGEST_SYNCHRONISER}");
                return Err(FlitError::OutOfRange { what, value, expected });
            }
        }
        Ok(())
    }
}
