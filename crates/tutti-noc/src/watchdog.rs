//! The watch for deadlock: cycles in which nothing moves although something is in flight.

use super::{FlitError, Network};

/// Detects that nothing has moved for a number of cycles, its patience.
#[derive(Clone, Copy, Debug)]
pub struct Watchdog {
    patience: u64,
    /// The first cycle after the last move.
    idle_from: u64,
}

impl Watchdog {
    /// The patience of engines that are configured with no other.
    pub const PATIENCE: u64 = 10_000;

    /// A watch that starts in a cycle.
    #[must_use]
    pub fn new(patience: u64, now: u64) -> Watchdog {
        Watchdog { patience, idle_from: now }
    }

    /// Refuses a patience of no cycles.
    ///
    /// # Errors
    /// When it is 0.
    pub fn check(patience: u64) -> Result<(), FlitError> {
        if patience == 0 {
            let expected = "a cycle or more".to_owned();
            return Err(FlitError::OutOfRange { what: "patience", value: 0, expected });
        }
        Ok(())
    }

    /// Notes that something moved in a cycle.
    #[inline]
    pub fn moved(&mut self, cycle: u64) {
        self.idle_from = cycle + 1;
    }

    /// Whether nothing has moved for as long as the patience lasts.
    #[inline]
    #[must_use]
    pub fn is_stalled(&self, now: u64) -> bool {
        now.saturating_sub(self.idle_from) >= self.patience
    }

    /// The first cycle after the last move.
    #[must_use]
    pub fn idle_from(&self) -> u64 {
        self.idle_from
    }
}

/// A watchdog over a flit network, whose counter of moves is compared from time to time.
pub(crate) struct NetworkWatchdog {
    watchdog: Watchdog,
    moves: u64,
}

impl NetworkWatchdog {
    pub(crate) fn new(patience: u64, network: &Network) -> NetworkWatchdog {
        let watchdog = Watchdog::new(patience, network.now());
        NetworkWatchdog { watchdog, moves: network.moves() }
    }

    /// Whether the patience has passed since the last move that was seen, so that a check can find
    /// a deadlock.
    #[inline]
    pub(crate) fn is_due(&self, now: u64) -> bool {
        self.watchdog.is_stalled(now)
    }

    /// The cycle since which nothing has moved, if the network is deadlocked.
    pub(crate) fn check(&mut self, network: &Network) -> Option<u64> {
        let (now, moves) = (network.now(), network.moves());
        if moves != self.moves || network.in_flight() == 0 {
            self.moves = moves;
            self.watchdog.idle_from = now;
        }
        self.watchdog.is_stalled(now).then_some(self.watchdog.idle_from)
    }
}
