//! Lower bounds of schedules from formulas.
//!
//! Let f(B) be the time of an exchange of base B that all ranks start together. Two facts hold in every
//! model, because ports and clocks only delay a rank:
//!
//! 1. A rank ends an exchange no sooner than f(B) after the *earliest* start in its group. A rank in all
//!    exchanges thus ends no sooner than the sum of f.
//! 2. If some rank starts an exchange at x, some rank ends it no sooner than x + f(B). Either f is the time in
//!    which a rank is busy with its sends, or the time until its last message is received. The rank that ends
//!    last is the sender or that receiver. A delay is therefore never lost: it persists to the end.
//!
//! **Split**: collecting ranks start collect(B) late, so by 2 the exchanges end no sooner than
//! collect + sum of f. By 1 no rank returns the result sooner than the sum of f, which takes another
//! expand(B). The bound is the larger of the two; the actual time is often longer, as collecting delays ranks
//! that return. If all participating ranks have collected, the times add up.
//!
//! **Merged**: with R remainder ranks the last member of a group receives a message from each one in its group,
//! which was the sender's B-th; by 2 that delay persists. In the last exchange some group sends
//! e = ceil(R / G) more messages, and by 1 its members start it no sooner than the sum of the previous f.
//!
//! **Busy ports**: if the gap of LogP or LogGP outlasts a stage, messages still leave s apart. A rank's first
//! message of the next stage then leaves no sooner than (B - 1) s after that of this one. f is the larger of the
//! two, and the excess charged to the last exchange is subtracted.

use super::Flat;
use crate::closed_form::stage_time;
use tutti_schedule::notation::{Notation, Stage};
use tutti_units::Time;

/// Lower bounds of stages on a flat network.
#[derive(Clone, Copy)]
pub struct Bounds<'a> {
    flat: &'a Flat,
    /// s; zero where it makes no difference.
    apart: Time,
    /// What any exchange is charged too much by if it is the last.
    excess: Time,
}

impl<'a> Bounds<'a> {
    pub(super) fn new(flat: &'a Flat) -> Bounds<'a> {
        let stage = |messages| stage_time(&flat.model, messages, 1, flat.bytes);
        // Only there do the stages of a factored schedule not add up.
        let apart = if flat.adds_up() { Time::ZERO } else { stage(2) - stage(1) };
        Bounds { flat, apart, excess: apart - stage(1) }
    }

    fn stage(self, messages: u32, receives: u32) -> Time {
        stage_time(&self.flat.model, messages, receives, self.flat.bytes)
    }

    fn reduce(self, operands: u32) -> Time {
        self.flat.costs.reduce(operands, self.flat.bytes)
    }

    /// f: an exchange that all ranks start together.
    pub(super) fn exchange(self, base: u32) -> Time {
        let alone = self.stage(base - 1, base - 1) + self.reduce(base);
        alone.max(self.apart.times(u64::from(base - 1)))
    }

    /// A schedule whose stages cost so much each.
    pub(super) fn in_all(self, sum: Time) -> Time {
        sum - self.excess
    }

    /// What stages may cost for the schedule to take `time`.
    pub(super) fn sum_for(self, time: Time) -> Time {
        time + self.excess
    }

    /// Until collecting ranks have the values of their groups.
    pub(super) fn collect(self, base: u32) -> Time {
        self.stage(1, base - 1) + self.reduce(base)
    }

    /// Until the last of a group has the result.
    pub(super) fn expand(self, base: u32) -> Time {
        self.stage(base - 1, 1)
    }

    /// The first exchange, for the last member of a group that most remainder ranks belong to.
    pub(super) fn merge(self, base: u32, joining: u32) -> Time {
        let messages = self.stage(base - 1, base - 1).max(self.stage(base, 1));
        messages + self.reduce(base + joining)
    }

    /// The last exchange, of a group that most remainder ranks listen to.
    pub(super) fn inverse_merge(self, base: u32, listening: u32) -> Time {
        self.stage(base - 1 + listening, base - 1) + self.reduce(base)
    }

    /// The time of collapse and expand; `late` if all ranks in the exchanges collect.
    pub(super) fn split(self, base: u32, late: bool) -> Time {
        let (collect, expand) = (self.collect(base), self.expand(base));
        if late { collect + expand } else { collect.max(expand) }
    }

    /// A merged schedule whose exchanges but the first and the last take `middle` in all.
    pub(super) fn merged(self, middle: Time, remainder: u32, inner: u32, ends: (u32, u32)) -> Time {
        let (first, last) = ends;
        let joining = remainder.div_ceil(inner / first);
        let listening = remainder.div_ceil(inner / last);
        let late = self.merge(first, joining) + self.exchange(last);
        let long = self.exchange(first) + self.inverse_merge(last, listening);
        self.in_all(middle + late.max(long))
    }

    /// The lower bound of a schedule.
    #[must_use]
    pub fn of(self, notation: &Notation) -> Time {
        let stages = notation.stages();
        let exchanges = |stages: &[Stage]| {
            let exchanges = stages.iter().filter(|stage| stage.is_exchange());
            exchanges.map(|stage| self.exchange(stage.base())).sum()
        };
        match (stages[0], stages[stages.len() - 1]) {
            (Stage::Collapse { threshold, base }, _) => {
                let late = threshold / base == notation.inner();
                self.in_all(exchanges(stages) + self.split(base, late))
            }
            (Stage::Merge { remainder, base: first, .. }, last) => {
                let middle = exchanges(&stages[1..stages.len() - 1]);
                self.merged(middle, remainder, notation.inner(), (first, last.base()))
            }
            _ => self.in_all(exchanges(stages)),
        }
    }
}
