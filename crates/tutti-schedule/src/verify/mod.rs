//! The verifier: proves that a schedule does what its collective asks, whatever the timing.
//!
//! A schedule is executed symbolically, in one causal order. One is enough: every rank waits for all of a
//! step before it goes on, messages between two ranks are matched in order, and a step whose outcome would
//! depend on who comes first is refused, so all orders lead to the same contents. For the same reason
//! **a verified schedule gives the same bits from run to run**, always: folds are in the order that the
//! schedule gives, never in the order of arrival. (A network that combines on the way folds as messages meet:
//! there this holds of operations that associate.)
//!
//! What is checked:
//! - every position of the result holds the right contributions, each exactly once (for a barrier: at least
//!   once), and nothing is read that nothing has written;
//! - every message meets a receive of as many chunks, nothing is left over, nobody waits forever;
//! - what a network may fork or combine is so marked at all ranks that have a part in it;
//! - no receive of a step touches what another message of the step touches: such a step would depend on the order in
//!   which messages travel, and MPI forbids it in any order (`check.rs` has the rule, and what it costs: nothing);
//! - how many messages per pair of ranks must be buffered so that it does not deadlock, at best none
//!   (rendezvous): then it is safe on any network;
//! - which [`Reproducibility`] it gives.
//!
//! Two verifiers live here. The exact one is obvious, follows every contribution and explains what went
//! wrong; the fast one moves ids and compares fingerprints. [`verify`] runs the fast one and,
//! when it finds a fault in a schedule that is small enough, has the exact one explain it. The fast one
//! never refuses a right schedule; how likely it lets a wrong one pass is said with its fingerprints: less
//! than 2^-48.

mod check;
mod error;
mod exact;
mod fast;
mod fingerprint;
mod marks;
mod slots;
mod stuck;
mod tokens;

#[cfg(test)]
mod tests;

use crate::Schedule;
use crate::collective::Collective;

pub use error::{Fold, VerifyError};

/// What holds of a schedule that is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verification {
    /// Steps of all ranks together.
    pub steps: u64,
    /// Messages of all ranks together.
    pub messages: u64,
    /// Additions of a chunk to a chunk, of all ranks together.
    pub reductions: u64,
    /// How many messages from one rank to another must be buffered for it not to deadlock. With 0 it
    /// is rendezvous-safe: it runs on any network, however small its buffers.
    pub buffering: u32,
    /// The most messages from one rank to another that were sent before they were expected, in the
    /// verifier's order: ranks in turn, one step each, as far as buffers that small let them.
    pub in_flight: u32,
    /// The most messages at one rank that were sent before they were expected, in that order.
    pub waiting: u32,
    /// Messages to several ranks that a network may fork.
    pub multicasts: u64,
    /// Folds that a network may do on the way: then in the order in which messages meet, so what is said of bits
    /// holds of operations that associate.
    pub combines: u64,
    /// Which results have the same bits, where ranks fold.
    pub reproducibility: Reproducibility,
}

impl Verification {
    /// Whether it runs without any buffers.
    #[must_use]
    pub fn rendezvous_safe(&self) -> bool {
        self.buffering == 0
    }
}

/// Which results have the same bits, for an operation that commutes but does not associate, such as the
/// addition of floating-point numbers.
///
/// The same bits from run to run are not listed, for every verified schedule gives them. A collective that
/// does not reduce has all of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reproducibility {
    /// Every rank gets the same bits: their fold trees are equal, but for the two operands of an addition
    /// changing places. A fold of several is `((x1 + x2) + x3) + ...`.
    pub same_on_all_ranks: bool,
    /// Every rank gets the same bits even where exchanging two operands changes them (a maximum with
    /// NaN, user-defined operations): fold trees are equal, operands in the same order.
    pub same_order_on_all_ranks: bool,
    /// Every result has the bits of the sequential sum `((x0 + x1) + x2) + ...` in the order of the ranks.
    pub sequential: bool,
    /// Contributions are combined in the order of the ranks, in whatever brackets: what an operation
    /// that associates but does not commute needs.
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

/// The exact verifier explains faults of schedules up to this size, in ranks x ranks x chunks.
const EXPLAINED: u64 = 1 << 21;

/// Proves a schedule right, or says what is wrong with it.
///
/// # Errors
/// The first fault that was found.
pub fn verify(schedule: &dyn Schedule) -> Result<Verification, VerifyError> {
    whole(schedule)?;
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

/// As [`verify`], following every contribution by name: slow, but obvious, and exact. Memory grows with
/// ranks x ranks x chunks. It leaves `in_flight` and `waiting` at 0.
///
/// # Errors
/// The first fault that was found.
pub fn verify_exactly(schedule: &dyn Schedule) -> Result<Verification, VerifyError> {
    whole(schedule)?;
    with_marks(schedule, exact::verify(schedule))
}

/// Looks at marks where all else is right; until then they are all counted as multicasts.
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

/// A part might by chance do what the collective asks of the whole: that would be no proof of either.
fn whole(schedule: &dyn Schedule) -> Result<(), VerifyError> {
    if schedule.is_part() {
        return Err(VerifyError::Part { name: schedule.shape().name.clone() });
    }
    Ok(())
}

fn verify_fast(schedule: &dyn Schedule) -> Result<Verification, VerifyError> {
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
