//! The phases of a measurement, for every engine: warm up, measure, drain.

use crate::FlitError;

/// Cycles of each phase of a measurement.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Phases {
    /// Cycles before the window.
    pub warmup: u64,
    /// Cycles of the window.
    pub measure: u64,
    /// Cycles after the window in which the packets that were created in it must arrive.
    pub drain: u64,
}

/// How a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, tutti_units::Named)]
pub enum Ending {
    /// All packets of the window have arrived, and the offered load was accepted.
    Stable,
    /// The offered load exceeded the accepted load: queues grew, and latencies depend on the length
    /// of the run.
    Saturated,
    /// Packets were in flight and none moved.
    Deadlocked,
}

impl Phases {
    /// The cycle after the window.
    pub(crate) fn end(&self) -> u64 {
        self.warmup + self.measure
    }

    /// The cycle counted from the start of the window, if it is in the window.
    pub(crate) fn in_window(&self, cycle: u64) -> Option<u64> {
        cycle.checked_sub(self.warmup).filter(|&after| after < self.measure)
    }
}

/// A network under traffic, which a measurement advances phase by phase.
pub(crate) trait Measurable {
    /// Whether an overloaded network is drained as well; its latencies are then complete.
    const DRAINS_OVERLOADED: bool;

    /// Advances to a cycle; returns whether the network deadlocked.
    ///
    /// # Errors
    /// When the run was stopped, or the network refuses traffic.
    fn advance(&mut self, end: u64) -> Result<bool, FlitError>;

    /// Advances through the window, which starts now and ends before `end`, and measures it;
    /// returns whether the network deadlocked.
    ///
    /// # Errors
    /// As [`Measurable::advance`].
    fn advance_window(&mut self, end: u64, deadlocked: bool) -> Result<bool, FlitError>;

    /// Whether the accepted load in the window was lower than the offered load.
    fn is_overloaded(&self) -> bool;

    /// Whether all packets of the window have arrived.
    fn has_drained(&mut self) -> bool;

    /// Advances until all packets of the window have arrived, at most to a cycle; returns whether
    /// the network deadlocked.
    ///
    /// # Errors
    /// As [`Measurable::advance`].
    fn drain(&mut self, end: u64) -> Result<bool, FlitError>;
}

/// Runs all phases from an empty network.
///
/// # Errors
/// As [`Measurable::advance`].
pub(crate) fn run<N: Measurable>(network: &mut N, phases: &Phases) -> Result<Ending, FlitError> {
    let end = phases.end();
    let deadlocked = network.advance(phases.warmup)?;
    let mut deadlocked = network.advance_window(end, deadlocked)?;
    let overloaded = network.is_overloaded();
    if !deadlocked && (N::DRAINS_OVERLOADED || !overloaded) {
        deadlocked = network.drain(end + phases.drain)?;
    }
    Ok(if deadlocked {
        Ending::Deadlocked
    } else if network.has_drained() && !overloaded {
        Ending::Stable
    } else {
        Ending::Saturated
    })
}
