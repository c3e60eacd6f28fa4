//! The best schedules of any number of ranks on a flat network: branch and bound.
//!
//! A **branch** is a kind of schedule with fixed ends: the base of a collapse or the last base of a merge, and
//! the number of ranks in the exchanges. The [`bounds`](super::bounds) yield a lower bound of its schedules
//! from F, the cheapest product of that number of ranks ([`Products`]). Branches are opened in the order of
//! their bounds. An open branch enumerates its products of bases, and for each the orders of its factors, which
//! matter if some ranks are late.
//!
//! The search ends with a proof of optimality if the bound of the next branch is not below the worst stored
//! schedule. Otherwise it ends at its limit of evaluated messages, and the bound of the first open branch limits
//! the distance to the optimum. Both depend on the input alone, never on the clock.

use super::bounds::Bounds;
use super::multiset::{Visit, each_product, next_order};
use super::products::Products;
use super::{Flat, Scored};
use tutti_schedule::algorithm::search::{self, Kind};
use tutti_schedule::notation::Notation;
use tutti_units::Time;

/// Bases that are tried first, to find good schedules early.
const SMALL_BASES: u32 = 16;
/// Limit of messages evaluated for them.
const FIRST_LOOK: u64 = 200_000;
/// The largest base of the exchanges of a split or merged schedule.
const LARGEST_BASE: u32 = 4096;

/// How hard to search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Effort {
    /// How many schedules to return; schedules that differ only in the order of stages count as one.
    pub keep: usize,
    /// Approximate number of messages to evaluate.
    pub messages: u64,
}

impl Default for Effort {
    fn default() -> Effort {
        Effort { keep: 1, messages: 20_000_000 }
    }
}

/// The result of a search.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Best {
    /// Best first.
    pub found: Vec<Scored>,
    /// Lower bound of the optimum.
    pub bound: Time,
    /// Schedules that were scored.
    pub scored: u64,
    /// Evaluated messages.
    pub messages: u64,
}

impl Best {
    /// Whether the best schedule is proven optimal.
    #[must_use]
    pub fn is_proved(&self) -> bool {
        self.found.first().is_some_and(|best| best.time <= self.bound)
    }
}

/// The best schedules of these kinds for `ranks` ranks, at least two.
#[must_use]
pub fn best(flat: &Flat, ranks: u32, kinds: &[Kind], effort: Effort) -> Best {
    let mut search = Search::new(flat, ranks, effort);
    let mut least_open = Time::MAX;
    if kinds.contains(&Kind::Factored) {
        let products = Products::of_divisors(search.bounds, ranks);
        let least = products.least(ranks).unwrap_or(Time::MAX);
        let bound = search.bounds.in_all(least);
        let branch = Branch { bound, kind: Kind::Factored, inner: ranks, end: 1 };
        least_open = least_open.min(search.open_all(&products, &[branch], effort.messages));
    }
    let kinds: Vec<Kind> = kinds.iter().copied().filter(|kind| *kind != Kind::Factored).collect();
    if !kinds.is_empty() {
        // The second pass finds what this one misses.
        search.look(&kinds, SMALL_BASES, 0);
        least_open = least_open.min(search.look(&kinds, LARGEST_BASE, effort.messages));
    }
    search.best(least_open)
}

/// The schedules of one kind with some of their numbers fixed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Branch {
    /// Their lower bound.
    bound: Time,
    kind: Kind,
    /// Ranks that take part in the exchanges.
    inner: u32,
    /// Base of the collapse, or of the inverse merge; one in a factored schedule.
    end: u32,
}

/// Schedules that differ in the order of their exchanges only.
type Likeness = (Kind, u32, u32, Vec<u32>);

struct Search<'a> {
    flat: &'a Flat,
    bounds: Bounds<'a>,
    ranks: u32,
    effort: Effort,
    /// Whether the times of a factored schedule's stages add up.
    adds_up: bool,
    kept: Vec<(Scored, Likeness)>,
    scored: u64,
    messages: u64,
}

impl<'a> Search<'a> {
    fn new(flat: &'a Flat, ranks: u32, effort: Effort) -> Search<'a> {
        let bounds = Bounds::new(flat);
        Search {
            flat,
            bounds,
            ranks,
            effort,
            adds_up: flat.adds_up(),
            kept: Vec::new(),
            scored: 0,
            messages: 0,
        }
    }

    /// The time below which a schedule is stored.
    fn under(&self) -> Time {
        let last = self.effort.keep.max(1) - 1;
        self.kept.get(last).map_or(Time::MAX, |(scored, _)| scored.time)
    }

    /// All split and merged schedules with bases up to `largest`; a bound for those not exhausted.
    fn look(&mut self, kinds: &[Kind], largest: u32, messages: u64) -> Time {
        let under = self.under();
        let costs = self.bounds.sum_for(under);
        let products = Products::up_to(self.bounds, self.inner(under), largest, costs);
        let mut branches = Vec::new();
        for kind in kinds {
            match kind {
                Kind::Split => self.split(&products, largest, &mut branches),
                Kind::Merged => self.merged(&products, &mut branches),
                Kind::Factored => {}
            }
        }
        // Of equal bounds first what takes more ranks along.
        branches.sort_unstable_by_key(|b| (b.bound, b.kind, std::cmp::Reverse(b.inner), b.end));
        self.sample(&products, &branches);
        self.open_all(&products, &branches, messages).min(self.beyond(largest))
    }

    /// A bound for schedules with a base above `largest`.
    fn beyond(&self, largest: u32) -> Time {
        if largest >= self.ranks {
            return Time::MAX;
        }
        self.bounds.in_all(self.bounds.exchange(largest + 1).min(self.bounds.expand(largest + 1)))
    }

    /// From how many to how many ranks the exchanges can have.
    ///
    /// A rank that sends m messages in a stage takes at least the time of sending them. A rank that
    /// expands sends to (N - P) / G ranks where G is at most P; a member of the last group of base B
    /// sends to at least (N - P) B / P more.
    fn inner(&self, under: Time) -> (u32, u32) {
        let too_many = |messages: &u32| self.bounds.expand(*messages + 1) >= under;
        let mut most = 1;
        while most < self.ranks && !too_many(&most) {
            most = most.saturating_mul(2);
        }
        // P (1 + m) is at least N.
        (self.ranks.div_ceil(most.saturating_add(1)), self.ranks - 1)
    }

    /// Branches of split schedules.
    fn split(&self, products: &Products, largest: u32, branches: &mut Vec<Branch>) {
        let under = self.under();
        for (inner, cost) in products.numbers() {
            let gone = self.ranks - inner;
            for base in 2..=gone.saturating_add(1).min(largest) {
                if self.bounds.in_all(cost + self.bounds.expand(base)) >= under {
                    break;
                }
                let groups = gone / (base - 1);
                if !gone.is_multiple_of(base - 1) || groups > inner {
                    continue;
                }
                let bound = self.bounds.in_all(cost + self.bounds.split(base, groups == inner));
                if bound < under {
                    branches.push(Branch { bound, kind: Kind::Split, inner, end: base });
                }
            }
        }
    }

    /// Branches of merged schedules.
    fn merged(&self, products: &Products, branches: &mut Vec<Branch>) {
        let under = self.under();
        for (inner, _) in products.numbers().skip(1) {
            let remainder = self.ranks - inner;
            for (end, _) in products.bases_of(inner).filter(|(base, _)| *base < inner) {
                let Some(rest) = products.least(inner / end) else { continue };
                let listening = remainder.div_ceil(inner / end);
                let bound = self.bounds.in_all(rest + self.bounds.inverse_merge(end, listening));
                if bound < under {
                    branches.push(Branch { bound, kind: Kind::Merged, inner, end });
                }
            }
        }
    }

    /// The cheapest product of each of the first branches, to know early what is good.
    fn sample(&mut self, products: &Products, branches: &[Branch]) {
        let until = self.messages + FIRST_LOOK;
        for &branch in branches {
            if branch.bound >= self.under() || self.messages >= until {
                break;
            }
            let factors = products.cheapest(branch.number());
            let mut order = factors.clone();
            Open { search: self, branch, until }.score(&order, &factors);
            order.reverse();
            Open { search: self, branch, until }.score(&order, &factors);
        }
    }

    /// Opens branches until no bound is better; returns the minimum bound of the open ones.
    fn open_all(&mut self, products: &Products, branches: &[Branch], messages: u64) -> Time {
        let until = self.messages.saturating_add(messages);
        for &branch in branches {
            if branch.bound >= self.under() {
                break;
            }
            let mut open = Open { search: self, branch, until };
            if !each_product(products, branch.number(), &mut open) {
                return branch.bound;
            }
        }
        Time::MAX
    }

    /// Scores a schedule and keeps it if it is good enough.
    fn try_schedule(&mut self, notation: Notation, likeness: Likeness) {
        let (time, method, messages) = self.flat.measure(&notation);
        self.scored += 1;
        self.messages += messages.max(1);
        if time >= self.under() {
            return;
        }
        if let Some(at) = self.kept.iter().position(|(_, known)| *known == likeness) {
            if self.kept[at].0.time <= time {
                return;
            }
            self.kept.remove(at);
        }
        let at = self.kept.partition_point(|(scored, _)| scored.time <= time);
        self.kept.insert(at, (Scored { time, method, notation }, likeness));
        self.kept.truncate(self.effort.keep.max(1));
    }

    fn best(self, bound: Time) -> Best {
        let launch = self.flat.costs.launch;
        let launched = |scored: Scored| Scored { time: launch + scored.time, ..scored };
        let found: Vec<Scored> =
            self.kept.into_iter().map(|(scored, _)| launched(scored)).collect();
        let bound = found.first().map_or(bound, |best| best.time.min(launch + bound));
        Best { found, bound, scored: self.scored, messages: self.messages }
    }
}

/// An open branch.
struct Open<'s, 'a> {
    search: &'s mut Search<'a>,
    branch: Branch,
    /// The limit of evaluated messages.
    until: u64,
}

impl Visit for Open<'_, '_> {
    /// What the exchanges that are left to choose must cost less than.
    fn under(&self) -> Time {
        let Branch { kind, inner, end, .. } = self.branch;
        let remainder = self.search.ranks - inner;
        let bounds = self.search.bounds;
        let ends = match kind {
            Kind::Factored => Time::ZERO,
            Kind::Split => bounds.split(end, remainder / (end - 1) == inner),
            Kind::Merged => bounds.inverse_merge(end, remainder.div_ceil(inner / end)),
        };
        let under = self.search.under();
        if under == Time::MAX { under } else { bounds.sum_for(under) - ends }
    }

    fn product(&mut self, factors: &[u32], cost: Time) -> bool {
        let Branch { kind, inner, end, .. } = self.branch;
        let adds_up = self.search.adds_up;
        match kind {
            Kind::Factored => self.orders(factors, adds_up),
            // If all ranks collect, all continue together.
            Kind::Split => self.orders(factors, adds_up && inner * end == self.search.ranks),
            Kind::Merged => self.merged(factors, cost),
        }
    }
}

impl Open<'_, '_> {
    /// Tries one order of the factors; whether to go on.
    fn score(&mut self, order: &[u32], factors: &[u32]) -> bool {
        let Branch { kind, inner, end, .. } = self.branch;
        let gone = self.search.ranks - inner;
        let notation = match kind {
            Kind::Factored => search::factors(order),
            Kind::Split => search::collapsed(gone / (end - 1) * end, end, order),
            Kind::Merged => search::merging(gone, &[order, &[end]].concat()),
        };
        self.search.try_schedule(notation, (kind, inner, end, factors.to_vec()));
        self.search.messages < self.until
    }

    /// Tries all orders of the factors, or one if all are alike; whether to go on.
    fn orders(&mut self, factors: &[u32], alike: bool) -> bool {
        let mut order = factors.to_vec();
        while self.score(&order, factors) {
            if alike || !next_order(&mut order) {
                return true;
            }
        }
        false
    }

    /// Of each first stage that may be good enough all orders of the others; whether to go on.
    fn merged(&mut self, factors: &[u32], cost: Time) -> bool {
        let Branch { inner, end, .. } = self.branch;
        let Search { ranks, bounds, .. } = *self.search;
        let mut firsts = factors.to_vec();
        firsts.dedup();
        for first in firsts {
            let middle = cost - bounds.exchange(first);
            if bounds.merged(middle, ranks - inner, inner, (first, end)) >= self.search.under() {
                continue;
            }
            let at = factors.iter().position(|factor| *factor == first).unwrap_or(0);
            let mut order = [&[first], &factors[..at], &factors[at + 1..]].concat();
            loop {
                if !self.score(&order, factors) {
                    return false;
                }
                if !next_order(&mut order[1..]) {
                    break;
                }
            }
        }
        true
    }
}

impl Branch {
    /// What the bases that are left to choose multiply to.
    fn number(self) -> u32 {
        if self.kind == Kind::Merged { self.inner / self.end } else { self.inner }
    }
}
