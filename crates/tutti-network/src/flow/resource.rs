//! A link, a bundle of links, or a port, and the flows that use it.

use super::ALL;
use crate::packet::LinkUse;
use tutti_units::{Time, TimePerByte};

/// A flow on a resource: the flow, and the place of the resource among the flow's.
#[derive(Clone, Copy)]
pub(super) struct Member {
    pub(super) flow: u32,
    pub(super) place: u32,
}

/// The rate of a flow that was never solved, as bits: above all rates, which are positive and finite.
pub(super) const FRESH: u64 = u64::MAX - 1;
/// The rate of a flow that has ended, as bits: below all rates.
pub(super) const ENDED: u64 = 0;
/// No resource.
pub(super) const NONE: u32 = u32::MAX;
/// The level at which a resource is full that never is, as bits.
pub(super) const NEVER: u64 = u64::MAX - 1;

/// The flows that a resource has when all rates have risen to a level.
#[derive(Clone, Copy)]
struct Stage {
    /// The level, as bits: positive floating-point numbers and their bits have the same order.
    level: u64,
    /// The shares of the flows with this rate or a lower one.
    fixed: u64,
    /// The capacity that they leave.
    free: f64,
}

/// A link, a bundle of links, or a port.
pub(super) struct Resource {
    /// Bytes per picosecond; infinite if bytes take no time.
    pub(super) capacity: f64,
    pub(super) per_byte: TimePerByte,
    pub(super) members: Vec<Member>,
    /// A resource that each of its flows uses, with no more capacity, so that this one never limits a flow and
    /// is not solved; or [`NONE`].
    pub(super) within: u32,
    /// Its place among the active resources, if it has flows and is solved.
    pub(super) place: u32,
    /// The level at which it is full and limits its flows, as bits, as of the last solution.
    pub(super) full: u64,
    /// The shares of all its flows.
    pub(super) total: u64,
    /// By level, the flows whose rate the last solution fixed.
    stages: Vec<Stage>,
    /// Whether it must be solved again.
    pub(super) dirty: bool,
    /// The batch that uses it alone, by flow.
    pub(super) batch: Option<u32>,
    pub(super) busy_since: Time,
    pub(super) usage: LinkUse,
}

/// Bytes per picosecond; infinite if bytes take no time.
#[expect(clippy::cast_precision_loss, reason = "a rate; times are rounded at the end")]
pub(super) fn rate_of(per_byte: TimePerByte) -> f64 {
    let (ps, bytes) = per_byte.fraction();
    bytes as f64 / ps as f64
}

/// The level at which rising flows fill a resource.
#[inline]
#[expect(clippy::cast_precision_loss, reason = "a rate; times are rounded at the end")]
pub(super) fn level_of(free: f64, rising: u64) -> f64 {
    free / (rising as f64 / f64::from(ALL))
}

/// What flows of a rate leave of a capacity.
#[inline]
#[expect(clippy::cast_precision_loss, reason = "a rate; times are rounded at the end")]
pub(super) fn left_by(free: f64, level: f64, fixed: u64) -> f64 {
    free - level * (fixed as f64 / f64::from(ALL))
}

impl Resource {
    pub(super) fn new(per_byte: TimePerByte) -> Resource {
        Resource {
            capacity: rate_of(per_byte),
            per_byte,
            members: Vec::new(),
            within: NONE,
            place: 0,
            full: NEVER,
            total: 0,
            stages: Vec::new(),
            dirty: false,
            batch: None,
            busy_since: Time::ZERO,
            usage: LinkUse::default(),
        }
    }
}

impl Resource {
    /// A level below which the resource is not full, now and as of the last solution, as bits, if all flows
    /// with a lower rate keep it.
    pub(super) fn lowest_change(&self) -> u64 {
        if self.members.len() < 2 {
            return self.full;
        }
        let (mut fixed, mut free) = (0, self.capacity);
        for stage in &self.stages {
            let level = level_of(free, self.total - fixed).max(0.0).to_bits();
            if level <= stage.level {
                return level.min(self.full);
            }
            (fixed, free) = (stage.fixed, stage.free);
        }
        match self.total - fixed {
            0 => self.full,
            rising => level_of(free, rising).max(0.0).to_bits().min(self.full),
        }
    }

    /// Forgets the rates from a level on; returns the capacity that lower rates leave, and the shares of the
    /// flows that rise to the level.
    #[inline]
    pub(super) fn lower(&mut self, level: u64) -> (f64, u64) {
        while self.stages.last().is_some_and(|stage| stage.level >= level) {
            self.stages.pop();
        }
        self.full = NEVER;
        self.stages
            .last()
            .map_or((self.capacity, self.total), |stage| (stage.free, self.total - stage.fixed))
    }

    /// Adds the flows that have a rate: `free` is the capacity that they leave, `rising` the shares of others.
    #[inline]
    pub(super) fn add_stage(&mut self, level: u64, free: f64, rising: u64) {
        self.stages.push(Stage { level, fixed: self.total - rising, free });
    }

    /// Sets the flows whose rate is fixed, each as rate and share.
    pub(super) fn set_stages(&mut self, fixed_flows: &mut [(u64, u64)]) {
        fixed_flows.sort_unstable();
        self.stages.clear();
        let (mut fixed, mut free) = (0, self.capacity);
        for equal in fixed_flows.chunk_by(|a, b| a.0 == b.0) {
            let (level, shares) = (equal[0].0, equal.iter().map(|&(_, share)| share).sum());
            free = left_by(free, f64::from_bits(level), shares);
            fixed += shares;
            self.stages.push(Stage { level, fixed, free });
        }
    }

    /// Removes the share of a flow with a rate.
    pub(super) fn forget(&mut self, level: u64, share: u64) {
        self.total -= share;
        let Some(at) = self.stages.iter().rposition(|stage| stage.level == level) else { return };
        let (mut fixed, mut free) = match at.checked_sub(1) {
            Some(before) => (self.stages[before].fixed, self.stages[before].free),
            None => (0, self.capacity),
        };
        for stage in &mut self.stages[at..] {
            stage.fixed -= share;
            free = left_by(free, f64::from_bits(stage.level), stage.fixed - fixed);
            (fixed, stage.free) = (stage.fixed, free);
        }
        let before = at.checked_sub(1).map_or(0, |before| self.stages[before].fixed);
        if self.stages[at].fixed == before {
            self.stages.remove(at);
        }
    }

    /// Marks the resource to be solved again, if it is solved.
    #[inline]
    pub(super) fn mark(&mut self, link: u32, dirty: &mut Vec<u32>) {
        if self.within == NONE && !std::mem::replace(&mut self.dirty, true) {
            dirty.push(link);
        }
    }
}
