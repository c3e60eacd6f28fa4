//! Forest: several spanning trees from every rank, packed so that all links of a graph are in use until the
//! end. Its bandwidth is that of the graph's smallest cuts, as far as the routes allow.
//!
//! What is to be reached is a theorem: trees that share the links fractionally exist up to the limit of
//! [`super::bound`] (Edmonds 1973; Zhao et al., "ForestColl", 2024, who compute them exactly, by removing
//! switches one after the other). Here the trees are packed approximately ([`packing`]), on the ways that
//! the routes of the network really take, and every message gets a time ([`times`]), so that large
//! payloads keep every loaded link busy. The more pieces a shard is cut into, the closer to the limit, and
//! the more messages; without `pieces=K` it is the fewest that come within a twentieth of the limit. Where
//! one cycle through all ranks does that ([`cycle`]), it is taken.
//!
//! **all_gather** goes down the trees; **reduce_scatter** up trees of the reversed ways, backwards in
//! time. **all_reduce** goes up and down the same trees wherever each way has a way back (a packing of
//! undirected spanning trees, after Tutte and Nash-Williams, is better than two separate halves wherever some
//! rank has fewer links than others), and else is one after the other.
//!
//! With `depth=least` the trees are as shallow as they can be instead ([`shallow`]), for small payloads.

mod cycle;
mod packing;
mod shallow;
#[cfg(test)]
mod tests;
mod times;

use std::sync::Arc;

use super::bound::by_links;
use super::on_graph::{self, Timetable, Wiring};
use super::{AlgorithmError, Entry, Request};
use crate::collective::Collective;
use crate::schedule::Schedule;
use crate::topology::Routes;
use packing::{Wanted, pack};
use times::{Timing, timed};

pub(super) const ENTRY: Entry = Entry {
    name: "forest",
    summary: "spanning trees from every rank, packed to fill the links of a graph up to its limit",
    source: "Edmonds 1973; Nash-Williams 1961; after Zhao et al. 2024 (ForestColl)",
    argument: "[pieces=K,] [lag=L,] or [depth=least,] and a topology, such as torus:4x4; the ranks as fully connected without",
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

/// Of the time that the limit allows: what one piece has to reach to be left as it is.
const EXACT: f64 = 0.995;
/// How many times its own length later than it could be a message is sent on, unless somebody asks for another
/// number: where ways are links, and where they lead through switches.
const LAG: [u32; 2] = [1, 2];
/// The most that can be asked for.
const MOST_LAG: u32 = 64;

/// What is asked for beside the topology.
#[derive(Clone, Copy)]
enum Asked {
    /// Large payloads: a number of pieces, if one is given, and how much time messages have.
    Packed { pieces: Option<u32>, lag: Option<u32> },
    /// Small payloads.
    Shallow,
}

fn build(request: &Request) -> Result<Arc<dyn Schedule>, AlgorithmError> {
    let asked = on_graph::read(request.argument);
    let options = options(request, &asked)?;
    let routes = on_graph::routes(ENTRY.name, request, &asked)?;
    Ok(lay_out(request, &routes, options))
}

/// On a graph that the request does not name.
pub(super) fn build_on(
    request: &Request,
    routes: &Routes,
) -> Result<Arc<dyn Schedule>, AlgorithmError> {
    on_graph::check_ranks(ENTRY.name, request.ranks, routes)?;
    let options = options(request, &on_graph::read(request.argument))?;
    Ok(lay_out(request, routes, options))
}

fn options(request: &Request, asked: &on_graph::Asked) -> Result<Asked, AlgorithmError> {
    let (mut pieces, mut lag, mut shallow) = (None, None, false);
    for &(option, value, at) in &asked.options {
        let number: Option<u32> = value.parse().ok();
        match (option, number) {
            ("pieces", Some(1..=MOST_PIECES)) if !shallow => pieces = number,
            ("lag", Some(0..=MOST_LAG)) if !shallow => lag = number,
            ("depth", None) if value == "least" && pieces.or(lag).is_none() => shallow = true,
            _ => {
                let known = "pieces=K, into how many pieces a shard is cut, from 1 to 1024; lag=L, for \
                             how many messages' time one may be late, from 0 to 64; or depth=least alone";
                let given = (option, value, at);
                return Err(on_graph::wrong_option(ENTRY.name, request, given, known));
            }
        }
    }
    let packed = Asked::Packed { pieces, lag };
    Ok(if shallow { Asked::Shallow } else { packed })
}

fn lay_out(request: &Request, routes: &Routes, asked: Asked) -> Arc<dyn Schedule> {
    let timetable = match asked {
        Asked::Packed { pieces, lag } => best(request, routes, pieces, lag).1,
        Asked::Shallow => {
            let grown = |back| shallow::grow(&Wiring::of(routes, request.ranks, back));
            match request.collective {
                Collective::AllGather => grown(false),
                Collective::ReduceScatter => grown(true).reversed(),
                _ => grown(true).reversed().then(grown(false)),
            }
        }
    };
    let schedule = timetable.lay_out(&on_graph::title(ENTRY.name, request), request.collective);
    Arc::new(schedule.expect("the ranks and chunks of a timetable are those of its request"))
}

/// A timetable, and how long it takes, per byte of the payload.
type Timed = (f64, Timetable);

/// The timetable with that many pieces, or with the fewest that are close enough to the limit.
fn best(request: &Request, routes: &Routes, pieces: Option<u32>, lag: Option<u32>) -> Timed {
    let (ranks, collective) = (request.ranks, request.collective);
    let all = [false, true].map(|back| Wiring::of(routes, ranks, back));
    let graph = Graph {
        routes,
        ranks,
        lag: lag.unwrap_or(LAG[usize::from(all[0].longest() > 1)]),
        ahead: all[0].thinned(),
        back: all[1].thinned(),
        all,
    };
    if let Some(pieces) = pieces {
        return graph.make(collective, pieces);
    }
    let wanted = graph.limit(collective);
    let mut found = graph.make(collective, 1);
    // Through several switches messages meet that a timetable keeps apart, and a cycle is the safer choice.
    let alone = graph.all[0].longest() <= 2;
    if alone && wanted >= EXACT * found.0 {
        return found;
    }
    let round = graph.round(collective);
    if let Some(round) = round.filter(|round| wanted >= ENOUGH * round.0) {
        return round;
    }
    let mut pieces = 1;
    while wanted < ENOUGH * found.0 && pieces < MOST_PIECES / 2 {
        pieces *= 2;
        if ranks.saturating_mul(ranks).saturating_mul(pieces) > MOST_MESSAGES {
            break;
        }
        let next = graph.make(collective, pieces);
        if next.0 < found.0 {
            found = next;
        }
    }
    found
}

/// A graph, with its ways in both directions of time: all of them, and those that are packed.
struct Graph<'a> {
    routes: &'a Routes,
    ranks: u32,
    lag: u32,
    all: [Wiring; 2],
    ahead: Wiring,
    back: Wiring,
}

impl Graph<'_> {
    fn limit(&self, collective: Collective) -> f64 {
        by_links(collective, self.ranks, self.routes.topology()).ps_per_byte()
    }

    /// Along one cycle; `None` where there is none.
    fn round(&self, collective: Collective) -> Option<Timed> {
        let [ahead, back] = &self.all;
        let scatter = || cycle::round(back).map(|(takes, table)| (takes, table.reversed()));
        match collective {
            Collective::AllGather => cycle::round(ahead),
            Collective::ReduceScatter => scatter(),
            _ => together(scatter()?, cycle::round(ahead)?),
        }
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
        self.phase(&self.ahead, pieces, self.limit(Collective::AllGather), false)
    }

    fn scatter(&self, pieces: u32) -> Option<Timed> {
        let limit = self.limit(Collective::ReduceScatter);
        let (takes, timetable) = self.phase(&self.back, pieces, limit, false)?;
        Some((takes, timetable.reversed()))
    }

    /// Up and down the same trees; where that is not close to the limit or not possible, two halves.
    fn reduce(&self, pieces: u32) -> Option<Timed> {
        let limit = self.limit(Collective::AllReduce);
        let one = self.phase(&self.ahead, pieces, limit, true);
        if one.as_ref().is_some_and(|(takes, _)| limit >= 0.9 * takes) {
            return one;
        }
        let apart = together(self.scatter(pieces)?, self.gather(pieces)?)?;
        Some(one.filter(|one| one.0 <= apart.0).unwrap_or(apart))
    }

    /// Packs and times one phase: its time per byte of the whole payload, and its timetable. `None` when
    /// it should go both ways and cannot.
    fn phase(&self, wiring: &Wiring, pieces: u32, limit: f64, both_ways: bool) -> Option<Timed> {
        let mut found: Option<Timed> = None;
        for rising in [false, true] {
            let packing = pack(&Wanted { wiring, pieces, limit, both_ways, rising })?;
            let trees = in_shards(packing.trees);
            let timing = Timing { pieces, both_ways, lag: self.lag };
            let (takes, timetable) = timed(&trees, wiring, timing);
            let takes = takes / f64::from(self.ranks) / f64::from(pieces);
            if found.as_ref().is_none_or(|(least, _)| takes < *least) {
                found = Some((takes, timetable));
            }
            // Over links alone the two are the same.
            if wiring.longest() == 1 || limit >= ENOUGH * takes {
                break;
            }
        }
        found
    }
}

/// One after the other, if both cut the payload alike.
fn together(first: Timed, second: Timed) -> Option<Timed> {
    let alike = first.1.chunks == second.1.chunks;
    alike.then(|| (first.0 + second.0, first.1.then(second.1)))
}

/// Chunks of one shard stand together.
fn in_shards(mut trees: Vec<packing::Tree>) -> Vec<packing::Tree> {
    trees.sort_by_key(|tree| tree.root);
    trees
}
