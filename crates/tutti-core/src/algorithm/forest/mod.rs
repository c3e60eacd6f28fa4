//! Forest: several spanning trees from every rank, packed so that all links of a graph are in use until the
//! end. Its bandwidth is that of the graph's smallest cuts, as far as the routes allow.
//!
//! What is to be reached is a theorem: trees that share the links fractionally exist up to the limit of
//! [`super::bound`] (Edmonds 1973; Zhao et al., "ForestColl", 2024, who compute them exactly, by removing
//! switches one after the other). Here the trees are packed approximately ([`packing`]), on the ways that
//! the routes of the network really take, and every message gets a slot of time ([`slots`]), so that large
//! payloads keep every loaded link busy. The more pieces a shard is cut into, the closer to the limit, and
//! the more messages; without `pieces=K` it is the fewest that come within a twentieth of the limit.
//!
//! **all_gather** goes down the trees; **reduce_scatter** up trees of the reversed ways, backwards in
//! time. **all_reduce** goes up and down the same trees wherever each way has a way back (a packing of
//! undirected spanning trees, after Tutte and Nash-Williams, is better than two separate halves wherever some
//! rank has fewer links than others), and else is one after the other.

mod packing;
mod slots;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use super::bound::by_links;
use super::on_graph::{self, Timetable, Wiring};
use super::{AlgorithmError, Entry, Request};
use crate::collective::Collective;
use crate::schedule::Schedule;
use crate::topology::Routes;
use packing::{Packing, Wanted, pack};

pub(super) const ENTRY: Entry = Entry {
    name: "forest",
    summary: "spanning trees from every rank, packed to fill the links of a graph up to its limit",
    source: "Edmonds 1973; Nash-Williams 1961; after Zhao et al. 2024 (ForestColl)",
    argument: "[pieces=K,] and a topology, such as torus:4x4; the ranks as fully connected without",
    collectives: &["all_reduce", "reduce_scatter", "all_gather"],
    ranks: "as many as the topology has NPUs, at most 1024; at most 64 without one",
    claims: |request| request.ranks >= 2 && request.ranks <= on_graph::MOST_FLAT_RANKS,
    build,
    critical_path: super::multi_tree::all_at_once,
};

/// Of the time that the limit allows: so close is close enough.
const ENOUGH: f64 = 0.96;
/// Messages of one phase beyond which shards are not cut further unless somebody asks for it.
const MOST_MESSAGES: u32 = 600_000;
/// Pieces of a shard that can be asked for.
const MOST_PIECES: u32 = 1024;

fn build(request: &Request) -> Result<Arc<dyn Schedule>, AlgorithmError> {
    let asked = on_graph::read(request.argument);
    let pieces = pieces(request, &asked)?;
    let routes = on_graph::routes(ENTRY.name, request, &asked)?;
    Ok(lay_out(request, &routes, pieces))
}

/// On a graph that the request does not name.
pub(super) fn build_on(
    request: &Request,
    routes: &Routes,
) -> Result<Arc<dyn Schedule>, AlgorithmError> {
    on_graph::check_ranks(ENTRY.name, request.ranks, routes)?;
    let pieces = pieces(request, &on_graph::read(request.argument))?;
    Ok(lay_out(request, routes, pieces))
}

fn pieces(request: &Request, asked: &on_graph::Asked) -> Result<Option<u32>, AlgorithmError> {
    let mut pieces = None;
    for &(option, value, at) in &asked.options {
        pieces = match value.parse() {
            Ok(count @ 1..=MOST_PIECES) if option == "pieces" => Some(count),
            _ => {
                let known = "pieces=K, into how many pieces a shard is cut, from 1 to 1024";
                let given = (option, value, at);
                return Err(on_graph::wrong_option(ENTRY.name, request, given, known));
            }
        };
    }
    Ok(pieces)
}

fn lay_out(request: &Request, routes: &Routes, pieces: Option<u32>) -> Arc<dyn Schedule> {
    let (_, timetable) = best(request, routes, pieces);
    let schedule = timetable.lay_out(&on_graph::title(ENTRY.name, request), request.collective);
    Arc::new(schedule.expect("the ranks and chunks of a timetable are those of its request"))
}

/// A timetable, and how long its slots are in all, per byte of the payload.
type Timed = (f64, Timetable);

/// The timetable with that many pieces, or with the fewest that are close enough to the limit.
fn best(request: &Request, routes: &Routes, pieces: Option<u32>) -> Timed {
    let ranks = request.ranks;
    let graph = Graph {
        routes,
        ranks,
        ahead: Wiring::of(routes, ranks, false),
        back: Wiring::of(routes, ranks, true),
    };
    if let Some(pieces) = pieces {
        return graph.make(request.collective, pieces);
    }
    let wanted = graph.limit(request.collective);
    let mut pieces = 1;
    let mut found = graph.make(request.collective, pieces);
    while wanted < ENOUGH * found.0 && pieces < MOST_PIECES / 2 {
        pieces *= 2;
        if ranks.saturating_mul(ranks).saturating_mul(pieces) > MOST_MESSAGES {
            break;
        }
        let next = graph.make(request.collective, pieces);
        if next.0 < found.0 {
            found = next;
        }
    }
    found
}

/// A graph, with its ways in both directions of time.
struct Graph<'a> {
    routes: &'a Routes,
    ranks: u32,
    ahead: Wiring,
    back: Wiring,
}

impl Graph<'_> {
    fn limit(&self, collective: Collective) -> f64 {
        by_links(collective, self.ranks, self.routes.topology()).ps_per_byte()
    }

    fn make(&self, collective: Collective, pieces: u32) -> Timed {
        let made = match collective {
            Collective::AllGather => self.gather(pieces),
            Collective::ReduceScatter => self.scatter(pieces),
            _ => self.reduce(pieces),
        };
        made.expect("one-way trees can always be packed")
    }

    fn gather(&self, pieces: u32) -> Option<Timed> {
        phase(&self.ahead, pieces, self.limit(Collective::AllGather), false)
    }

    fn scatter(&self, pieces: u32) -> Option<Timed> {
        let (takes, timetable) =
            phase(&self.back, pieces, self.limit(Collective::ReduceScatter), false)?;
        Some((takes, timetable.reversed()))
    }

    /// Up and down the same trees; where that is not close to the limit or not possible, two halves.
    fn reduce(&self, pieces: u32) -> Option<Timed> {
        let limit = self.limit(Collective::AllReduce);
        let together = phase(&self.ahead, pieces, limit, true);
        if together.as_ref().is_some_and(|(takes, _)| limit >= 0.9 * takes) {
            return together;
        }
        let (scattered, gathered) = (self.scatter(pieces)?, self.gather(pieces)?);
        let apart = (scattered.0 + gathered.0, scattered.1.then(gathered.1));
        Some(together.filter(|one| one.0 <= apart.0).unwrap_or(apart))
    }
}

/// Packs and times one phase: its time per byte of the whole payload, and its timetable. `None` when it
/// should go both ways and cannot.
fn phase(wiring: &Wiring, pieces: u32, limit: f64, both_ways: bool) -> Option<Timed> {
    let packing = pack(&Wanted { wiring, pieces, limit, both_ways })?;
    let slot = slot_of(wiring, &packing);
    let trees = in_shards(packing.trees);
    let timetable = slots::schedule(&trees, wiring, (pieces, both_ways), slot);
    let chunks = f64::from(wiring.ranks) * f64::from(pieces);
    Some((f64::from(timetable.slots) * slot / chunks, timetable))
}

/// Chunks of one shard stand together.
fn in_shards(mut trees: Vec<packing::Tree>) -> Vec<packing::Tree> {
    trees.sort_by_key(|tree| tree.root);
    trees
}

/// A slot is as long as a chunk takes on the slowest of the links that are used the most.
fn slot_of(wiring: &Wiring, packing: &Packing) -> f64 {
    let worst = packing.worst();
    let much = packing.usage.iter().zip(&wiring.rates).filter(|(usage, _)| **usage >= 0.9 * worst);
    much.map(|(_, rate)| rate.ps_per_byte()).fold(0.0, f64::max)
}
