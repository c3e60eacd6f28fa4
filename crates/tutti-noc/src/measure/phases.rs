//! The phases of a measurement, for every engine: warm up, measure, drain.

use super::window::Acceptance;
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
    /// All packets of the window have arrived. Fewer were accepted than offered, but no fewer than
    /// chance explains in a window of so few.
    Undecided,
    /// Packets were in flight and none moved.
    Deadlocked,
}

/// How a run ended, and how long its window has to be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Verdict {
    /// How it ended.
    pub(crate) ending: Ending,
    /// For [`Ending::Undecided`], cycles of a window that decides.
    pub(crate) long_enough: Option<u64>,
}

impl From<Ending> for Verdict {
    fn from(ending: Ending) -> Verdict {
        Verdict { ending, long_enough: None }
    }
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

/// The longest window.
const LONGEST: u64 = 1 << 40;

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

    /// Whether the offered load was accepted in the window, which has just ended.
    fn acceptance(&self) -> Acceptance;

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
pub(crate) fn run<N: Measurable>(network: &mut N, phases: &Phases) -> Result<Verdict, FlitError> {
    let end = phases.end();
    let deadlocked = network.advance(phases.warmup)?;
    let mut deadlocked = network.advance_window(end, deadlocked)?;
    let acceptance = network.acceptance();
    if !deadlocked && (N::DRAINS_OVERLOADED || acceptance != Acceptance::Overloaded) {
        deadlocked = network.drain(end + phases.drain)?;
    }
    if deadlocked {
        return Ok(Ending::Deadlocked.into());
    }
    if !network.has_drained() {
        return Ok(Ending::Saturated.into());
    }
    Ok(match acceptance {
        Acceptance::Accepted => Ending::Stable.into(),
        Acceptance::Overloaded => Ending::Saturated.into(),
        Acceptance::Undecided { longer } => {
            let cycles = phases.measure.saturating_mul(longer).min(LONGEST);
            Verdict { ending: Ending::Undecided, long_enough: Some(cycles) }
        }
    })
}
