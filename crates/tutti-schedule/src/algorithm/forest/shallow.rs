//! Trees of minimum depth, for payloads so small that only the number of steps matters: every rank
//! receives each shard over the smallest number of messages. Among several such edges it takes the
//! one with the least loaded links. Adjacent shards on the same edge in the same step form one
//! message.

use crate::algorithm::on_graph::{LinkGraph, Move, Timetable};

/// Returns a timetable in which a shard arrives in slot d at a rank d messages from its root.
pub(super) fn grow(graph: &LinkGraph) -> Timetable {
    let ranks = graph.ranks;
    let mut timetable = Timetable { ranks, chunks: ranks, ..Timetable::default() };
    let mut into: Vec<Vec<usize>> = vec![Vec::new(); ranks as usize];
    for (at, edge) in graph.edges().iter().enumerate() {
        into[edge.to as usize].push(at);
    }
    let mut busy = vec![0.0; graph.rates.len()];
    for root in 0..ranks {
        let depth = graph.steps_from(root);
        for to in (0..ranks).filter(|&to| to != root) {
            let deep = depth[to as usize];
            let edges = into[to as usize].iter().map(|&at| graph.edges()[at]);
            let shortest = edges.filter(|edge| depth[edge.from as usize] + 1 == deep);
            let worst = |edge| {
                let links = graph.paced(edge);
                links
                    .map(|(link, pace)| busy[link] + graph.rates[pace].ps_per_byte())
                    .fold(0.0, f64::max)
            };
            let Some(edge) = shortest.min_by(|&a, &b| worst(a).total_cmp(&worst(b))) else {
                continue;
            };
            for (link, pace) in graph.paced(edge) {
                busy[link] += graph.rates[pace].ps_per_byte();
            }
            let there = 2 * u64::from(deep);
            let (sent, from) = (there - 2, edge.from);
            timetable.moves.push(Move { sent, there, chunk: root, from, to, folds: false });
            timetable.end = timetable.end.max(there);
        }
    }
    timetable
}
