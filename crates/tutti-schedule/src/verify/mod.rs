//! The verifier: proves that a schedule performs its collective, independent of timing.
//!
//! A schedule is executed symbolically, in one causal order. One order suffices: every rank waits
//! for all of a step before it continues, messages between two ranks are matched in order, and a
//! step whose outcome would depend on the order of arrival is refused. All orders therefore lead to
//! the same contents. For the same reason **a verified schedule always produces the same bits from
//! run to run**: folds are in the order of the schedule, never in the order of arrival. (A network
//! that combines folds in the order in which messages meet: there this holds for associative
//! operations.)
//!
//! The checks are:
//! - every position of the result has the right contributions, each exactly once (for a barrier: at
//!   least once), and no position is read before it is written;
//! - the blocks of an all_to_all_v stay at their positions, whose sizes differ; those without bytes
//!   need not arrive;
//! - every message matches a receive of the same number of chunks, no message is left over, and no
//!   rank waits forever;
//! - the marks of multicasts and combines agree at all participating ranks;
//! - no receive of a step accesses chunks of another message of the step: such a step would depend
//!   on the order of messages, and MPI forbids it in any order (see `check.rs` for the rule and its
//!   cost);
//! - how many messages per pair of ranks must be buffered to avoid deadlock, at best none
//!   (rendezvous): then it is safe on any network;
//! - which [`Reproducibility`] class it has.
//!
//! There are two verifiers. The exact one is simple, tracks every contribution and explains errors;
//! the fast one moves ids and compares fingerprints. [`verify`] runs the fast one. If it finds an
//! error in a sufficiently small schedule, the exact one explains it. The fast one never refuses a
//! correct schedule. It accepts an incorrect one with probability below 2^-48, derived with the
//! fingerprints. It executes rank 0 only where all ranks act alike after a rotation, which it checks
//! (`rotated.rs`).

mod check;
mod error;
mod exact;
mod fast;
mod fingerprint;
mod folds;
mod marks;
mod rotated;
mod slots;
mod stuck;
mod tokens;

#[cfg(test)]
mod tests;

use crate::Schedule;
use crate::collective::Collective;

pub use error::{Fold, VerifyError};

/// The verified properties of a correct schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verification {
    /// Total steps of all ranks.
    pub steps: u64,
    /// Total messages of all ranks.
    pub messages: u64,
    /// Total additions of a chunk to a chunk, of all ranks.
    pub reductions: u64,
    /// The number of messages from one rank to another that must be buffered to avoid deadlock.
    /// With 0 the schedule is rendezvous-safe: it runs on any network, however small its buffers.
    pub buffering: u32,
    /// The maximum number of unexpected messages from one rank to another, in the verifier's order:
    /// one step per rank in turn, as far as buffers of that size permit.
    pub in_flight: u32,
    /// The maximum number of unexpected messages at one rank, in that order.
    pub waiting: u32,
    /// Messages to several ranks that a network may fork.
    pub multicasts: u64,
    /// Folds that a network may perform, in the order in which messages meet: the statements about
    /// bits then hold for associative operations.
    pub combines: u64,
    /// Which results have the same bits, for collectives that reduce.
    pub reproducibility: Reproducibility,
}

impl Verification {
    /// Returns whether it runs without any buffers.
    #[must_use]
    pub fn rendezvous_safe(&self) -> bool {
        self.buffering == 0
    }
}

/// Which results have the same bits, for an operation that commutes but does not associate, such as
/// floating-point addition.
///
/// Every verified schedule produces the same bits from run to run, so that property is not listed.
/// A collective that does not reduce has all of these properties.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reproducibility {
    /// Every rank obtains the same bits: the fold trees are equal up to the order of the two
    /// operands of an addition. A fold of several operands is `((x1 + x2) + x3) + ...`.
    pub same_on_all_ranks: bool,
    /// Every rank obtains the same bits even if exchanging two operands changes them (a maximum
    /// with NaN, user-defined operations): the fold trees are equal, with the operands in the same
    /// order.
    pub same_order_on_all_ranks: bool,
    /// Every result has the bits of the sequential sum `((x0 + x1) + x2) + ...` in rank order.
    pub sequential: bool,
    /// Contributions are combined in rank order, with any association: the requirement of an
    /// operation that associates but does not commute.
    pub rank_order: bool,
}

impl Reproducibility {
    const ALL: Reproducibility = Reproducibility {
        same_on_all_ranks: true,
        same_order_on_all_ranks: true,
        sequential: true,
        rank_order: true,
    };
}

/// The exact verifier explains errors of schedules up to this size, in ranks x ranks x chunks.
const EXPLAINED: u64 = 1 << 21;

/// Verifies a schedule.
///
/// # Errors
/// The first error found.
pub fn verify(schedule: &dyn Schedule) -> Result<Verification, VerifyError> {
    refuse_part(schedule)?;
    let fast = verify_fast(schedule);
    let Err(error) = fast else { return with_marks(schedule, fast) };
    let shape = schedule.shape();
    let ranks = u64::from(shape.ranks);
    let size = ranks.checked_mul(ranks).and_then(|size| size.checked_mul(u64::from(shape.chunks)));
    if size.is_none_or(|size| size > EXPLAINED) {
        return Err(error);
    }
    Err(exact::verify(schedule).err().unwrap_or(error))
}

/// As [`verify`], by tracking every contribution: slow, but simple and exact. Memory is
/// proportional to ranks x ranks x chunks. It leaves `in_flight` and `waiting` at 0.
///
/// # Errors
/// The first error found.
pub fn verify_exactly(schedule: &dyn Schedule) -> Result<Verification, VerifyError> {
    refuse_part(schedule)?;
    with_marks(schedule, exact::verify(schedule))
}

/// Checks marks after all other checks; until then all marks count as multicasts.
fn with_marks(
    schedule: &dyn Schedule,
    proved: Result<Verification, VerifyError>,
) -> Result<Verification, VerifyError> {
    let proved = proved?;
    if proved.multicasts == 0 {
        return Ok(proved);
    }
    let marks::InNetwork { multicasts, combines } = marks::check(schedule)?;
    Ok(Verification { multicasts, combines, ..proved })
}

/// Refuses a part: it might by chance satisfy the postcondition of the collective.
fn refuse_part(schedule: &dyn Schedule) -> Result<(), VerifyError> {
    if schedule.is_part() {
        return Err(VerifyError::Part { name: schedule.shape().name.clone() });
    }
    Ok(())
}

fn verify_fast(schedule: &dyn Schedule) -> Result<Verification, VerifyError> {
    rotated::verify(schedule).map_or_else(|| verify_all(schedule), Ok)
}

/// As [`verify_fast`], by executing all ranks.
fn verify_all(schedule: &dyn Schedule) -> Result<Verification, VerifyError> {
    let shape = schedule.shape();
    match shape.collective {
        Collective::Barrier => {
            fast::verify(schedule, tokens::Tokens::new(shape.ranks, shape.chunks))
        }
        _ => {
            let values = fingerprint::Fingerprints::new(shape.ranks, shape.chunks);
            fast::verify(schedule, values)
        }
    }
}
