//! Forest: several spanning trees from every rank, packed so that all links of a graph are in use until the
//! end. Its bandwidth is that of the graph's smallest cuts, as far as the routes allow.
//!
//! What is to be reached is a theorem: trees that share the links fractionally exist up to the limit of
//! [`super::bound`] (Edmonds 1973; Zhao et al., "ForestColl", 2024, who compute them exactly, by removing
//! switches one after the other). Here the trees are packed approximately ([`packing`]), on the ways that
//! the routes of the network really take, and every message gets a time ([`times`]), so that large
//! payloads keep every loaded link busy. The more pieces a shard is cut into, the closer to the limit, and
//! the more messages; without `pieces=K` it is the fewest that come within a twenty-fifth of the limit. Where
//! one cycle through all ranks does that ([`cycle`]), it is taken.
//!
//! Trees are packed on few ways and on many, at prices of two kinds, and timed in two orders ([`Manner`]); whatever
//! the graph, that is kept whose timetable is shortest with a few pieces. Few ways come first: where packets queue,
//! links far from the ranks that have one sender are served in the order of the timetable, and links on which
//! several senders meet are not.
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

use std::cell::OnceCell;
use std::sync::Arc;

use super::bound::by_links;
use super::on_graph::{self, LinkGraph, Timetable};
use super::{AlgorithmError, Entry, Request};
use crate::Schedule;
use crate::collective::Collective;
use packing::{Wanted, pack};
use times::{Order, Timing, timed};
use tutti_topology::Routes;

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
const MOST_MESSAGES: u32 = 1_200_000;
/// Pieces with which all of [`Manner::ALL`] are tried; with more, only what was best with these.
const TRIAL: u32 = 4;
/// Where ways lead through several switches, so many chunks at least: a message that waits for a slow link fills
/// the buffers before it, and others behind it wait as well, the longer the longer it is.
const LEAST_CHUNKS: u32 = 2048;
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
    on_graph::check_ranks(ENTRY.name, request, routes)?;
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
            let grown = |back| shallow::grow(&LinkGraph::of(routes, request.ranks, back));
            match request.collective {
                Collective::AllGather => grown(false),
                Collective::ReduceScatter => grown(true).reversed(),
                _ => grown(true).reversed().then(grown(false)),
            }
        }
    };
    let schedule = timetable.lay_out(&request.notation(ENTRY.name), request.collective);
    Arc::new(schedule.expect("the ranks and chunks of a timetable are those of its request"))
}

/// A timetable, and how long it takes, per byte of the payload.
type Timed = (f64, Timetable);

/// The timetable with that many pieces, or with the fewest that are close enough to the limit.
fn best(request: &Request, routes: &Routes, pieces: Option<u32>, lag: Option<u32>) -> Timed {
    let (ranks, collective) = (request.ranks, request.collective);
    let all = [false, true].map(|back| LinkGraph::of(routes, ranks, back));
    let graph = ForestGraph {
        routes,
        ranks,
        lag: lag.unwrap_or(LAG[usize::from(all[0].longest() > 1)]),
        sparse: all.each_ref().map(|all| (all.longest() > 1).then(|| all.sparse()).flatten()),
        thinned: all.each_ref().map(LinkGraph::thinned),
        all,
        limits: Default::default(),
    };
    let mut manners = Manners::default();
    if let Some(pieces) = pieces {
        if pieces > TRIAL {
            graph.make(collective, TRIAL, &mut manners);
        }
        return graph.make(collective, pieces, &mut manners);
    }
    let wanted = by_links(collective, ranks, routes.topology()).ps_per_byte();
    let found = graph.make(collective, 1, &mut manners);
    // Through several switches messages meet that a timetable keeps apart, and a cycle is the safer choice.
    let alone = graph.all[0].longest() <= 2;
    if alone && wanted >= EXACT * found.0 {
        return found;
    }
    let round = graph.round(collective);
    if let Some(round) = round.filter(|round| wanted >= ENOUGH * round.0) {
        return round;
    }
    let least = if alone { 1 } else { LEAST_CHUNKS / ranks };
    graph.cut_finer(collective, found, (wanted, least), &mut manners)
}

impl ForestGraph<'_> {
    /// The timetable with more and more pieces, until it is close enough to what is `wanted` and has the
    /// `least` number of them, or there would be too many messages.
    fn cut_finer(
        &self,
        collective: Collective,
        mut found: Timed,
        (wanted, least): (f64, u32),
        manners: &mut Manners,
    ) -> Timed {
        let ranks = self.ranks;
        let mut pieces = 1;
        while (wanted < ENOUGH * found.0 || pieces < least) && pieces < MOST_PIECES / 2 {
            pieces *= if pieces < TRIAL { TRIAL } else { 2 };
            if ranks.saturating_mul(ranks).saturating_mul(pieces) > MOST_MESSAGES {
                break;
            }
            let next = self.make(collective, pieces, manners);
            if next.0 < found.0 {
                found = next;
            }
        }
        found
    }
}

/// How trees are packed and timed.
#[derive(Clone, Copy)]
struct Manner {
    /// On as few ways as use every link, where there are such; else on more.
    sparse: bool,
    /// At prices that rise while a tree grows.
    rising: bool,
    order: Order,
}

impl Manner {
    /// Those that share a packing side by side.
    const ALL: [Manner; 6] = {
        let [turns, staggered] = [Order::Turns, Order::Staggered];
        [
            Manner { sparse: true, rising: false, order: turns },
            Manner { sparse: true, rising: false, order: staggered },
            Manner { sparse: false, rising: false, order: turns },
            Manner { sparse: false, rising: false, order: staggered },
            Manner { sparse: false, rising: true, order: turns },
            Manner { sparse: false, rising: true, order: staggered },
        ]
    };
}

/// What goes along trees at once.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Gather,
    Scatter,
    Both,
}

/// The manner that was best for each phase with [`TRIAL`] pieces.
#[derive(Default)]
struct Manners {
    best: [Option<Manner>; 3],
}

/// A graph, with its ways in both directions of time: all of them, and those that are packed.
struct ForestGraph<'a> {
    routes: &'a Routes,
    ranks: u32,
    lag: u32,
    all: [LinkGraph; 2],
    sparse: [Option<LinkGraph>; 2],
    thinned: [LinkGraph; 2],
    limits: [OnceCell<f64>; 3],
}

impl ForestGraph<'_> {
    /// What the links allow one phase, per byte of the payload.
    fn limit(&self, phase: Phase) -> f64 {
        let limit = || by_links(phase.collective(), self.ranks, self.routes.topology());
        *self.limits[phase as usize].get_or_init(|| limit().ps_per_byte())
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

    fn make(&self, collective: Collective, pieces: u32, manners: &mut Manners) -> Timed {
        let made = match collective {
            Collective::AllGather => self.phase(Phase::Gather, pieces, manners),
            Collective::ReduceScatter => self.phase(Phase::Scatter, pieces, manners),
            _ => self.reduce(pieces, manners),
        };
        made.expect("one-way trees can always be packed")
    }

    /// Up and down the same trees; where that is not close to the limit or not possible, two halves.
    fn reduce(&self, pieces: u32, manners: &mut Manners) -> Option<Timed> {
        let limit = self.limit(Phase::Both);
        let one = self.phase(Phase::Both, pieces, manners);
        if one.as_ref().is_some_and(|(takes, _)| limit >= 0.9 * takes) {
            return one;
        }
        let scatter = self.phase(Phase::Scatter, pieces, manners)?;
        let apart = together(scatter, self.phase(Phase::Gather, pieces, manners)?)?;
        Some(one.filter(|one| one.0 <= apart.0).unwrap_or(apart))
    }

    /// Packs and times one phase: its time per byte of the whole payload, and its timetable. `None` when
    /// it should go both ways and cannot.
    fn phase(&self, phase: Phase, pieces: u32, manners: &mut Manners) -> Option<Timed> {
        let known = &mut manners.best[phase as usize];
        let all = known.map_or(Manner::ALL.to_vec(), |best| vec![best]);
        let mut best: Option<(Timed, Manner)> = None;
        for alike in all.chunk_by(|a, b| (a.sparse, a.rising) == (b.sparse, b.rising)) {
            if !self.differs(phase, alike[0]) {
                continue;
            }
            for (timed, manner) in self.packed(phase, pieces, alike)? {
                if best.as_ref().is_none_or(|(least, _)| timed.0 < least.0) {
                    best = Some((timed, manner));
                }
            }
            let least = best.as_ref().map_or(f64::MAX, |(least, _)| least.0);
            if self.limit(phase) >= ENOUGH * least {
                break;
            }
        }
        let (timed, manner) = best?;
        if pieces >= TRIAL {
            *known = Some(manner);
        }
        Some(match phase {
            Phase::Scatter => (timed.0, timed.1.reversed()),
            _ => timed,
        })
    }

    /// Whether a manner of packing is another than those before it: over links alone there is but one.
    fn differs(&self, phase: Phase, manner: Manner) -> bool {
        let direct = self.thinned[phase.direction()].longest() == 1;
        let sparse = self.sparse[phase.direction()].is_some();
        if manner.sparse { sparse } else { !(direct && manner.rising) }
    }

    /// One packing, timed in several orders until one is close to the limit.
    fn packed(
        &self,
        phase: Phase,
        pieces: u32,
        manners: &[Manner],
    ) -> Option<Vec<(Timed, Manner)>> {
        let Manner { sparse, rising, .. } = manners[0];
        let thinned = &self.thinned[phase.direction()];
        let wiring = self.sparse[phase.direction()].as_ref().filter(|_| sparse).unwrap_or(thinned);
        let (limit, both_ways) = (self.limit(phase), phase == Phase::Both);
        let packing = pack(&Wanted { wiring, pieces, limit, both_ways, rising })?;
        let trees = in_shards(packing.trees);
        let mut found: Vec<(Timed, Manner)> = Vec::new();
        for &manner in manners {
            let timing = Timing { pieces, both_ways, lag: self.lag, order: manner.order };
            let (takes, timetable) = timed(&trees, wiring, timing);
            let takes = takes / f64::from(self.ranks) / f64::from(pieces);
            found.push(((takes, timetable), manner));
            if limit >= ENOUGH * takes {
                break;
            }
        }
        Some(found)
    }
}

impl Phase {
    fn collective(self) -> Collective {
        match self {
            Phase::Gather => Collective::AllGather,
            Phase::Scatter => Collective::ReduceScatter,
            Phase::Both => Collective::AllReduce,
        }
    }

    /// Of the ways: ahead or back.
    fn direction(self) -> usize {
        usize::from(self == Phase::Scatter)
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
