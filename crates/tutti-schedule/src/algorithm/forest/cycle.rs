//! All trees along one Hamiltonian cycle, in steps: every rank forwards what it received last.
//!
//! If every rank has one link, or groups of ranks share a slow link, a cycle of short edges loads
//! each link once per step. Its time is within the groups' local traffic of the limit. Every rank
//! sends and receives in every step, so messages of different steps do not contend; packed trees of
//! the same load do.

use crate::algorithm::on_graph::{Edge, LinkGraph, Move, Timetable};

/// The ratio to the previous cycle's time below which another cycle is worth its additional
/// messages.
const BETTER: f64 = 0.99;

/// Returns the fastest timetable and its time per byte of the payload. The candidates are the cycle
/// in ascending order, one along the least loaded edges, and the first with half of each shard in
/// each direction. `None` without a cycle.
pub(super) fn round(graph: &LinkGraph) -> Option<(f64, Timetable)> {
    let ascending: Vec<u32> = (0..graph.ranks).collect();
    let back: Vec<u32> = ascending.iter().rev().copied().collect();
    let mut found: Option<(f64, Vec<Vec<u32>>)> = None;
    let cheapest = cheapest(graph);
    for turns in [vec![ascending.clone()], vec![cheapest], vec![ascending, back]] {
        let Some(takes) = takes(graph, &turns) else { continue };
        if found.as_ref().is_none_or(|(least, _)| takes < BETTER * least) {
            found = Some((takes, turns));
        }
    }
    found.map(|(takes, turns)| (takes, timetable(graph.ranks, &turns)))
}

/// Adds an edge to the load of its links in a step; returns the maximum load of these links.
fn load(graph: &LinkGraph, edge: Edge, busy: &mut [f64]) -> f64 {
    let mut most = 0.0;
    for (link, pace) in graph.paced(edge) {
        busy[link] += graph.rates[pace].ps_per_byte();
        most = f64::max(most, busy[link]);
    }
    most
}

/// Follows from each rank the edge with the least loaded links, then the shortest, then the one to
/// the lowest rank. Ends if no edge leads on.
fn cheapest(graph: &LinkGraph) -> Vec<u32> {
    let mut busy = vec![0.0; graph.rates.len()];
    let mut inside = vec![false; graph.ranks as usize];
    let mut order = vec![0];
    let mut at = 0;
    loop {
        inside[at as usize] = true;
        let outside = graph.from(at).iter().filter(|edge| !inside[edge.to as usize]);
        let cost = |edge: Edge| {
            let links = graph.paced(edge);
            links
                .map(|(link, pace)| busy[link] + graph.rates[pace].ps_per_byte())
                .fold(0.0, f64::max)
        };
        let key = |edge: &Edge| (cost(*edge), graph.links(*edge).len());
        let next = outside.map(|edge| (key(edge), *edge));
        let next = next.min_by(|(a, _), (b, _)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let Some((_, edge)) = next else { return order };
        load(graph, edge, &mut busy);
        order.push(edge.to);
        at = edge.to;
    }
}

/// Returns the time of all steps on the most loaded link, with one piece per order of the ranks in
/// `turns`.
fn takes(graph: &LinkGraph, turns: &[Vec<u32>]) -> Option<f64> {
    let (ranks, mut most) = (graph.ranks, 0.0);
    let mut busy = vec![0.0; graph.rates.len()];
    for order in turns {
        for (at, &rank) in (1..).zip(order) {
            let edge = graph.index(rank, *order.get(at % ranks as usize)?)?;
            most = f64::max(most, load(graph, graph.edges()[edge], &mut busy));
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
                // The chunk whose root is that many steps behind.
                let chunk = rank(place + ranks - slot) * pieces + piece;
                let (from, to) = (rank(place), rank(place + 1));
                let one = Move { sent, there: sent + 2, chunk, from, to, folds: false };
                timetable.moves.push(one);
            }
        }
    }
    timetable
}
