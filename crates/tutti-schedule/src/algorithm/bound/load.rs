//! The load of a schedule on the links: the time of the most loaded link, to compare with the
//! limit.

use crate::{Message, Schedule, Step};
use tutti_topology::{Routes, TopologyError};
use tutti_units::TimePerByte;
use tutti_units::ids::{LinkId, RankId};

/// Returns the time per byte of the size for which the most loaded link is busy when a schedule's
/// messages follow these routes. It is a lower bound of every run in which messages share links.
///
/// # Errors
/// If the topology has fewer NPUs than the schedule has ranks.
pub fn most_loaded(schedule: &dyn Schedule, routes: &Routes) -> Result<TimePerByte, TopologyError> {
    let shape = schedule.shape();
    let chunks = by_link(schedule, routes, |message| u64::from(message.chunks.len()))?;
    let busy = (0..).zip(chunks).map(|(link, chunks)| {
        let (ps, bytes) = routes.parameters(LinkId(link)).rate.fraction();
        fraction(u128::from(ps) * u128::from(chunks), u128::from(bytes) * u128::from(shape.chunks))
    });
    Ok(busy.max().unwrap_or(TimePerByte::ZERO))
}

/// Returns the sum of `amount` over the messages of a schedule that cross each link. The first of
/// several shared parallel links represents all of them.
///
/// # Errors
/// If the topology has fewer NPUs than the schedule has ranks.
pub fn by_link(
    schedule: &dyn Schedule,
    routes: &Routes,
    amount: impl Fn(&Message) -> u64,
) -> Result<Vec<u64>, TopologyError> {
    let mut sums = vec![0_u64; routes.topology().link_count()];
    let mut step = Step::new();
    for rank in (0..schedule.shape().ranks).map(RankId) {
        for index in 0..schedule.steps(rank) {
            step.clear();
            schedule.step(rank, index, &mut step);
            for message in &step.sends {
                let amount = amount(message);
                for link in routes.path(rank, message.peer)? {
                    let first = routes.bundle(link).next().unwrap_or(link);
                    sums[first.index()] = sums[first.index()].saturating_add(amount);
                }
            }
        }
    }
    Ok(sums)
}

/// Returns the fraction in lowest terms; rounded down if it does not fit.
fn fraction(mut ps: u128, mut bytes: u128) -> TimePerByte {
    while ps.max(bytes) > u128::from(u64::MAX) {
        ps >>= 1;
        bytes = bytes.div_ceil(2);
    }
    let narrow = |wide| u64::try_from(wide).unwrap_or(u64::MAX);
    TimePerByte::new(narrow(ps), narrow(bytes)).unwrap_or(TimePerByte::ZERO)
}
