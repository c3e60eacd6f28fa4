//! Schedules for networks on which distances count: which stages, and in which order.
//!
//! There a stage of base B costs what it costs because of where its groups lie, and that follows from the
//! product M of the bases before it: members are M ranks apart. So stage costs c(M, B) sit on the edges of
//! the lattice of divisors, M to M B, and the cheapest factored schedules, orders included, are its shortest
//! paths from 1 to N. A split or merged schedule takes its bases from the [`best`] of flat networks with the least, the
//! mean and the most latency that there is between ranks; all orders of them are compared.
//!
//! c(M, B) is the time of the stage on the network model, with the distances, for the slowest of the watched
//! ranks, if all start together: all ranks up to [`WATCHED`], and as many, evenly spread,
//! beyond. In truth ranks that were lucky in one stage may make up for another, so the sum of the stages is an
//! **estimate**, mostly a little too long: it chooses candidates for the engine to decide between.

use std::collections::BTreeMap;

use super::bounds::Bounds;
use super::multiset::next_order;
use super::products::divisors;
use super::{Effort, Flat, best};
use tutti_engine::Distance;
use tutti_network::{MessageModel, Port};
use tutti_schedule::algorithm::search::{self, Kind};
use tutti_schedule::notation::{Notation, Stage};
use tutti_units::Time;
use tutti_units::ids::RankId;

/// Ranks evaluated in every stage.
const WATCHED: u32 = 512;
/// Ranks sampled for the mean distance.
const MEASURED: u32 = 64;
/// Limit of evaluated messages of a search on a flat network.
const LIKELY: u64 = 2_000_000;
/// Orders of one product that are compared.
const ORDERS: usize = 5_000;
/// Orders of one product of a split or merged schedule that are stored.
const KEPT_ORDERS: usize = 3;

/// A schedule, and about what it takes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// The sum of its stages, each at its slowest.
    pub estimate: Time,
    /// The schedule.
    pub notation: Notation,
}

/// Returns about `keep` candidates per kind for the best schedule with delays of `distance`; lowest estimate
/// first.
#[must_use]
pub fn orders(
    flat: &Flat,
    distance: &dyn Distance,
    ranks: u32,
    kinds: &[Kind],
    keep: usize,
) -> Vec<Candidate> {
    let effort = Effort { keep, messages: LIKELY };
    let likely = nearby(flat, distance, ranks).into_iter().flat_map(|flat| {
        kinds.iter().flat_map(move |kind| best(&flat, ranks, &[*kind], effort).found)
    });
    let mut likely: Vec<Notation> = likely.map(|scored| scored.notation).collect();
    likely.sort_unstable();
    likely.dedup();
    let mut found = Vec::new();
    for notation in likely {
        reordered(flat, distance, &notation, &mut found);
    }
    if kinds.contains(&Kind::Factored) {
        let under = found.iter().map(|candidate: &Candidate| candidate.estimate).min();
        let under = under.unwrap_or(Time::MAX);
        found.extend(paths(
            &mut Costs::new(flat, distance, RankMapping::Plain, ranks),
            keep,
            under,
        ));
    }
    for candidate in &mut found {
        candidate.estimate += flat.costs.launch;
    }
    found.sort_by(|one, other| {
        (one.estimate, &one.notation).cmp(&(other.estimate, &other.notation))
    });
    found.dedup();
    found
}

/// Flat networks that have something of this one: its least, its mean and its most latency.
fn nearby(flat: &Flat, distance: &dyn Distance, ranks: u32) -> Vec<Flat> {
    let count = ranks.min(MEASURED);
    let place = |index: u32| RankId(spread(index, count, ranks));
    let (mut least, mut most, mut sum, mut pairs) = (Time::MAX, Time::ZERO, Time::ZERO, 0);
    for (one, other) in (0..count).flat_map(|one| (0..count).map(move |other| (one, other))) {
        if one != other {
            let extra = distance.extra(place(one), place(other), flat.bytes);
            (least, most, sum, pairs) = (least.min(extra), most.max(extra), sum + extra, pairs + 1);
        }
    }
    let mean = Time::from_ps(sum.ps() / pairs.max(1));
    let mut all = vec![least, mean, most];
    all.dedup();
    let shifted = |more| Flat { model: flat.model.with_more_latency(more), ..*flat };
    all.into_iter().map(shifted).collect()
}

/// The `index`-th of `count` numbers spread evenly below `all`.
fn spread(index: u32, count: u32, all: u32) -> u32 {
    let product = u64::from(index) * u64::from(all) / u64::from(count);
    u32::try_from(product).expect("it is below the number of ranks")
}

/// The cheapest factored schedules: shortest paths over the divisors, without bases that alone take as
/// long as `under`.
fn paths(costs: &mut Costs, keep: usize, under: Time) -> Vec<Candidate> {
    let divisors = divisors(costs.inner);
    let mut candidates: BTreeMap<u32, Vec<(Time, Vec<u32>)>> =
        BTreeMap::from([(1, vec![(Time::ZERO, vec![])])]);
    for &to in &divisors[1..] {
        let mut all = Vec::new();
        for &mask in divisors.iter().filter(|mask| **mask < to && to.is_multiple_of(**mask)) {
            let base = to / mask;
            if costs.bounds.exchange(base) >= under {
                continue;
            }
            let stage = costs.exchange(mask, base);
            for (cost, bases) in candidates.get(&mask).into_iter().flatten() {
                all.push((*cost + stage, [&bases[..], &[base]].concat()));
            }
        }
        all.sort_unstable();
        all.truncate(keep);
        candidates.insert(to, all);
    }
    let found = candidates.remove(&costs.inner).unwrap_or_default();
    let candidate = |(estimate, bases): (Time, Vec<u32>)| {
        let notation = search::factors(&bases);
        Candidate { estimate, notation }
    };
    found.into_iter().map(candidate).collect()
}

/// The schedule with its exchanges in the cheapest orders.
fn reordered(
    flat: &Flat,
    distance: &dyn Distance,
    notation: &Notation,
    found: &mut Vec<Candidate>,
) {
    let stages = notation.stages();
    let (place, remainder) = match stages[0] {
        Stage::Collapse { threshold, base } => (RankMapping::Collapsed { threshold, base }, 0),
        Stage::Merge { remainder, .. } => (RankMapping::Merged { remainder }, remainder),
        _ => (RankMapping::Plain, 0),
    };
    let mut costs = Costs::new(flat, distance, place, notation.inner());
    let exchanges = stages.iter().filter(|stage| stage.is_exchange());
    let mut order: Vec<u32> = exchanges.map(|stage| stage.base()).collect();
    order.sort_unstable_by(|one, other| other.cmp(one));
    let mut candidates = Vec::new();
    for _ in 0..ORDERS {
        candidates.push((costs.in_order(&order, remainder), order.clone()));
        if !next_order(&mut order) {
            break;
        }
    }
    candidates.sort_unstable();
    for (estimate, order) in candidates.into_iter().take(KEPT_ORDERS) {
        let notation = match place {
            RankMapping::Collapsed { threshold, base } => {
                search::collapsed(threshold, base, &order)
            }
            RankMapping::Merged { remainder } => search::merging(remainder, &order),
            RankMapping::Plain => search::factors(&order),
        };
        found.push(Candidate { estimate, notation });
    }
}

/// Which rank a virtual rank is.
#[derive(Clone, Copy)]
enum RankMapping {
    Plain,
    Collapsed { threshold: u32, base: u32 },
    Merged { remainder: u32 },
}

impl RankMapping {
    fn rank(self, w: u32) -> RankId {
        RankId(match self {
            RankMapping::Plain => w,
            RankMapping::Collapsed { threshold, base } => {
                let groups = threshold / base;
                if w < groups { w * base + base - 1 } else { w + threshold - groups }
            }
            RankMapping::Merged { remainder } => w + remainder,
        })
    }
}

/// What stages cost, each found out once.
struct Costs<'a> {
    flat: &'a Flat,
    bounds: Bounds<'a>,
    distance: &'a dyn Distance,
    place: RankMapping,
    /// Ranks that take part in the exchanges.
    inner: u32,
    known: BTreeMap<(u32, u32), Time>,
}

impl<'a> Costs<'a> {
    fn new(
        flat: &'a Flat,
        distance: &'a dyn Distance,
        place: RankMapping,
        inner: u32,
    ) -> Costs<'a> {
        let bounds = flat.bounds();
        Costs { flat, bounds, distance, place, inner, known: BTreeMap::new() }
    }

    /// Exchanges of these bases in sequence, and the stages before and after them.
    fn in_order(&mut self, bases: &[u32], remainder: u32) -> Time {
        let mut mask = 1;
        let mut total = Time::ZERO;
        for &base in bases {
            total += self.exchange(mask, base);
            mask *= base;
        }
        match (self.place, bases.first(), bases.last()) {
            (RankMapping::Merged { .. }, Some(&first), Some(&last)) => {
                let joining = remainder.div_ceil(self.inner / first);
                let listening = remainder.div_ceil(self.inner / last);
                let merge = self.bounds.merge(first, joining) - self.bounds.exchange(first);
                let inverse =
                    self.bounds.inverse_merge(last, listening) - self.bounds.exchange(last);
                total + merge + inverse
            }
            (RankMapping::Collapsed { base, .. }, ..) => {
                total + self.bounds.collect(base) + self.bounds.expand(base)
            }
            _ => total,
        }
    }

    /// c(mask, base).
    fn exchange(&mut self, mask: u32, base: u32) -> Time {
        if let Some(&known) = self.known.get(&(mask, base)) {
            return known;
        }
        let mut port = Port::default();
        let mut clock = Time::ZERO;
        let mut sent = Vec::new();
        for _ in 1..base {
            let message = self.flat.model.send(&mut port, clock, self.flat.bytes);
            sent.push(message.arrival);
            clock = message.free;
        }
        let watched = self.inner.min(WATCHED);
        let mut slowest = Time::ZERO;
        for w in (0..watched).map(|index| spread(index, watched, self.inner)) {
            slowest = slowest.max(self.receive(w, (mask, base), &sent, (clock, port)));
        }
        let time = slowest + self.flat.costs.reduce(base, self.flat.bytes);
        self.known.insert((mask, base), time);
        time
    }

    /// When virtual rank `w` has received the messages of its group; `sent` holds their send times.
    fn receive(
        &self,
        w: u32,
        (mask, base): (u32, u32),
        sent: &[Time],
        (mut clock, mut port): (Time, Port),
    ) -> Time {
        let bytes = self.flat.bytes;
        let digit = w / mask % base;
        let first = w - digit * mask;
        let rank = self.place.rank(w);
        let arrival = |sender: u32| {
            let from = self.place.rank(first + sender * mask);
            let distance = if sender < digit { digit - sender } else { digit + base - sender };
            sent[distance as usize - 1] + self.distance.extra(from, rank, bytes)
        };
        let mut inbox: Vec<Time> =
            (0..base).filter(|sender| *sender != digit).map(arrival).collect();
        inbox.sort_unstable();
        for arrival in inbox {
            clock = self.flat.model.receive(&mut port, clock, arrival, bytes);
        }
        clock
    }
}
