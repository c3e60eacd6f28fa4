//! All trees along one cycle through the ranks, in steps: every rank passes on what it received last.
//!
//! Where every rank has one link, or groups of ranks share a slow one, a cycle of short ways loads each link
//! once in a step, and the limit is met to within what a group keeps for itself. Every rank sends and
//! receives in every step, so that no message meets another that was meant to be before or after it; packed
//! trees of the same load are in each other's way there.

use crate::algorithm::on_graph::{Edge, LinkGraph, Move, Timetable};

/// What another cycle has to reach, in the time of the one before, to be worth its many messages.
const BETTER: f64 = 0.99;

/// The fastest of a cycle in ascending order, one that goes on wherever least goes already, and half of each
/// shard each way round the first; and how long it takes per byte of the payload. `None` where there is none.
pub(super) fn round(wiring: &LinkGraph) -> Option<(f64, Timetable)> {
    let ascending: Vec<u32> = (0..wiring.ranks).collect();
    let back: Vec<u32> = ascending.iter().rev().copied().collect();
    let mut found: Option<(f64, Vec<Vec<u32>>)> = None;
    let cheapest = cheapest(wiring);
    for turns in [vec![ascending.clone()], vec![cheapest], vec![ascending, back]] {
        let Some(takes) = takes(wiring, &turns) else { continue };
        if found.as_ref().is_none_or(|(least, _)| takes < BETTER * least) {
            found = Some((takes, turns));
        }
    }
    found.map(|(takes, turns)| (takes, timetable(wiring.ranks, &turns)))
}

/// Adds a way to what its links do in a step; the most that any of them then does.
fn load(wiring: &LinkGraph, way: Edge, busy: &mut [f64]) -> f64 {
    let mut most = 0.0;
    for (link, pace) in wiring.paced(way) {
        busy[link] += wiring.rates[pace].ps_per_byte();
        most = f64::max(most, busy[link]);
    }
    most
}

/// From rank to rank, always over the way whose links do the least; of these the shortest, and of these to
/// the lowest rank. It ends where no way leads on.
fn cheapest(wiring: &LinkGraph) -> Vec<u32> {
    let mut busy = vec![0.0; wiring.rates.len()];
    let mut inside = vec![false; wiring.ranks as usize];
    let mut order = vec![0];
    let mut at = 0;
    loop {
        inside[at as usize] = true;
        let outside = wiring.from(at).iter().filter(|way| !inside[way.to as usize]);
        let cost = |way: Edge| {
            let links = wiring.paced(way);
            links
                .map(|(link, pace)| busy[link] + wiring.rates[pace].ps_per_byte())
                .fold(0.0, f64::max)
        };
        let key = |way: &Edge| (cost(*way), wiring.links(*way).len());
        let next = outside.map(|way| (key(way), *way));
        let next = next.min_by(|(a, _), (b, _)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let Some((_, way)) = next else { return order };
        load(wiring, way, &mut busy);
        order.push(way.to);
        at = way.to;
    }
}

/// With as many pieces as turns, each an order of the ranks: what a step takes on the most loaded link, for
/// all steps.
fn takes(wiring: &LinkGraph, turns: &[Vec<u32>]) -> Option<f64> {
    let (ranks, mut most) = (wiring.ranks, 0.0);
    let mut busy = vec![0.0; wiring.rates.len()];
    for order in turns {
        for (at, &rank) in (1..).zip(order) {
            let way = wiring.index(rank, *order.get(at % ranks as usize)?)?;
            most = f64::max(most, load(wiring, wiring.edges()[way], &mut busy));
        }
    }
    let pieces = u32::try_from(turns.len()).unwrap_or(u32::MAX);
    Some(f64::from(ranks - 1) * most / (f64::from(ranks) * f64::from(pieces)))
}

fn timetable(ranks: u32, turns: &[Vec<u32>]) -> Timetable {
    let pieces = u32::try_from(turns.len()).unwrap_or(u32::MAX);
    let end = 2 * u64::from(ranks - 1);
    let mut timetable = Timetable { ranks, chunks: ranks * pieces, end, ..Timetable::default() };
    for slot in 0..ranks - 1 {
        let sent = 2 * u64::from(slot);
        for (piece, order) in (0..).zip(turns) {
            let rank = |place: u32| order[(place % ranks) as usize];
            for place in 0..ranks {
                // What has come so many steps from its root.
                let chunk = rank(place + ranks - slot) * pieces + piece;
                let (from, to) = (rank(place), rank(place + 1));
                let one = Move { sent, there: sent + 2, chunk, from, to, folds: false };
                timetable.moves.push(one);
            }
        }
    }
    timetable
}
