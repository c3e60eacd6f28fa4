//! Trees of the least depth, for payloads so small that only the number of steps counts: every rank gets
//! each shard on a way of as few messages as there is. Of several such ways it takes the one on which least
//! goes already, and shards that take the same way in the same step are one message where they stand side by
//! side.

use crate::algorithm::on_graph::{LinkGraph, Move, Timetable};

/// A timetable in which what is d messages from its root arrives in slot d.
pub(super) fn grow(wiring: &LinkGraph) -> Timetable {
    let ranks = wiring.ranks;
    let mut timetable = Timetable { ranks, chunks: ranks, ..Timetable::default() };
    let mut into: Vec<Vec<usize>> = vec![Vec::new(); ranks as usize];
    for (at, way) in wiring.edges().iter().enumerate() {
        into[way.to as usize].push(at);
    }
    let mut busy = vec![0.0; wiring.rates.len()];
    for root in 0..ranks {
        let depth = wiring.steps_from(root);
        for to in (0..ranks).filter(|&to| to != root) {
            let deep = depth[to as usize];
            let ways = into[to as usize].iter().map(|&at| wiring.edges()[at]);
            let shortest = ways.filter(|way| depth[way.from as usize] + 1 == deep);
            let worst = |way| {
                let links = wiring.paced(way);
                links
                    .map(|(link, pace)| busy[link] + wiring.rates[pace].ps_per_byte())
                    .fold(0.0, f64::max)
            };
            let Some(way) = shortest.min_by(|&a, &b| worst(a).total_cmp(&worst(b))) else {
                continue;
            };
            for (link, pace) in wiring.paced(way) {
                busy[link] += wiring.rates[pace].ps_per_byte();
            }
            let there = 2 * u64::from(deep);
            let (sent, from) = (there - 2, way.from);
            timetable.moves.push(Move { sent, there, chunk: root, from, to, folds: false });
            timetable.end = timetable.end.max(there);
        }
    }
    timetable
}
