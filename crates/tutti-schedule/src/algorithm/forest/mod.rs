//! Forest: several spanning trees from every rank, packed so that all links of a graph are busy
//! until the end. Its bandwidth is that of the graph's minimum cuts, as far as the routes allow.
//!
//! Trees that share the links fractionally exist up to the limit of [`super::bound`] (Edmonds 1973;
//! Zhao et al., "ForestColl", 2024, who compute them exactly by removing switches one at a time).
//! Here the trees are packed approximately ([`packing`]), on the routes of the network. Every
//! message gets a time ([`times`]), so that large payloads keep every loaded link busy. More pieces
//! per shard come closer to the limit, with more messages; the default is the smallest number
//! within 4 % of the limit. If one cycle through all ranks achieves that ([`cycle`]), the cycle is
//! used.
//!
//! Trees are packed on few edges and on many, at two kinds of prices, and timed in two orders
//! ([`Manner`]). The shortest timetable with a few pieces determines which is used. Few edges are
//! tried first. Where packets queue, links far from the ranks with one sender serve messages in
//! timetable order; links with several senders do not.
//!
//! **all_gather** goes down the trees; **reduce_scatter** goes up trees of the reversed edges,
//! backwards in time. **all_reduce** goes up and down the same trees if each edge has a reverse
//! edge, and otherwise is the two in sequence. Packing undirected spanning trees (Tutte and
//! Nash-Williams) is better than two separate halves if some rank has fewer links than others.
//!
//! With `depth=least` the trees have minimum depth instead ([`shallow`]), for small payloads.

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
use packing::{PackingProblem, pack};
use times::{Order, Timing, timed};
use tutti_topology::Routes;

pub(super) const ENTRY: Entry = Entry {
    name: "forest",
    summary: "spanning trees from every rank, packed to approach the bandwidth limit of the topology",
    source: "Edmonds 1973; Nash-Williams 1961; after Zhao et al. 2024 (ForestColl)",
    argument: "[pieces=K,] [lag=L,] or [depth=least,] and a topology, such as torus:4x4 (default fully connected)",
    collectives: &["all_reduce", "reduce_scatter", "all_gather"],
    ranks: "the number of NPUs of the topology, at most 1024; at most 64 without a topology",
    claims: |request| request.ranks >= 2 && request.ranks <= on_graph::MOST_FLAT_RANKS,
    build,
    critical_path: super::multi_tree::all_at_once,
};

/// The ratio to the limit that is close enough.
const ENOUGH: f64 = 0.96;
/// The number of messages per phase above which shards are not divided further by default.
const MOST_MESSAGES: u32 = 1_200_000;
/// The number of pieces with which all of [`Manner::ALL`] are tried; larger numbers use only the
/// best of these.
const TRIAL: u32 = 4;
/// The minimum number of chunks where edges lead through several switches: a message that waits for
/// a slow link fills the buffers before it and blocks others, for longer the longer the message is.
const LEAST_CHUNKS: u32 = 2048;
/// The maximum of `pieces`.
const MOST_PIECES: u32 = 1024;

/// The ratio to the limit at which one piece is enough.
const EXACT: f64 = 0.995;
/// The default of `lag`: the delay before a message is forwarded, in multiples of its duration. For
/// edges that are links, and for edges through switches.
const LAG: [u32; 2] = [1, 2];
/// The maximum of `lag`.
const MOST_LAG: u32 = 64;

/// The options before the topology.
#[derive(Clone, Copy)]
enum Variant {
    /// For large payloads: the number of pieces, if given, and the delay of messages.
    Packed { pieces: Option<u32>, lag: Option<u32> },
    /// For small payloads.
    Shallow,
}

fn build(request: &Request) -> Result<Arc<dyn Schedule>, AlgorithmError> {
    let argument = on_graph::read(request.argument);
    let options = options(request, &argument)?;
    let routes = on_graph::routes(ENTRY.name, request, &argument)?;
    Ok(lay_out(request, &routes, options))
}

/// Builds the algorithm on a graph that the request does not name.
pub(super) fn build_on(
    request: &Request,
    routes: &Routes,
) -> Result<Arc<dyn Schedule>, AlgorithmError> {
    on_graph::check_ranks(ENTRY.name, request, routes)?;
    let options = options(request, &on_graph::read(request.argument))?;
    Ok(lay_out(request, routes, options))
}

fn options(
    request: &Request,
    argument: &on_graph::GraphArgument,
) -> Result<Variant, AlgorithmError> {
    let (mut pieces, mut lag, mut shallow) = (None, None, false);
    for &(option, value, at) in &argument.options {
        let number: Option<u32> = value.parse().ok();
        match (option, number) {
            ("pieces", Some(1..=MOST_PIECES)) if !shallow => pieces = number,
            ("lag", Some(0..=MOST_LAG)) if !shallow => lag = number,
            ("depth", None) if value == "least" && pieces.or(lag).is_none() => shallow = true,
            _ => {
                let known = "pieces=K, the pieces per shard, 1 to 1024; lag=L, the forwarding delay in \
                             message times, 0 to 64; or depth=least alone";
                let given = (option, value, at);
                return Err(on_graph::wrong_option(ENTRY.name, request, given, known));
            }
        }
    }
    let packed = Variant::Packed { pieces, lag };
    Ok(if shallow { Variant::Shallow } else { packed })
}

fn lay_out(request: &Request, routes: &Routes, variant: Variant) -> Arc<dyn Schedule> {
    let timetable = match variant {
        Variant::Packed { pieces, lag } => best(request, routes, pieces, lag).1,
        Variant::Shallow => {
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

/// A timetable, and its duration per byte of the payload.
type Timed = (f64, Timetable);

/// Returns the timetable with that many pieces, or with the fewest that are close enough to the
/// limit.
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
    let bound = by_links(collective, ranks, routes.topology()).ps_per_byte();
    let found = graph.make(collective, 1, &mut manners);
    // Through several switches, messages contend that a timetable separates, and a cycle is the
    // safer choice.
    let alone = graph.all[0].longest() <= 2;
    if alone && bound >= EXACT * found.0 {
        return found;
    }
    let round = graph.round(collective);
    if let Some(round) = round.filter(|round| bound >= ENOUGH * round.0) {
        return round;
    }
    let least = if alone { 1 } else { LEAST_CHUNKS / ranks };
    graph.cut_finer(collective, found, (bound, least), &mut manners)
}

impl ForestGraph<'_> {
    /// Increases the number of pieces until the timetable is close enough to `bound` and has the
    /// `least` number of pieces, or there would be too many messages.
    fn cut_finer(
        &self,
        collective: Collective,
        mut found: Timed,
        (bound, least): (f64, u32),
        manners: &mut Manners,
    ) -> Timed {
        let ranks = self.ranks;
        let mut pieces = 1;
        while (bound < ENOUGH * found.0 || pieces < least) && pieces < MOST_PIECES / 2 {
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

/// A method of packing and timing trees.
#[derive(Clone, Copy)]
struct Manner {
    /// Whether to use the fewest edges that cover every link, if there are such.
    sparse: bool,
    /// Whether prices rise while a tree grows.
    rising: bool,
    order: Order,
}

impl Manner {
    /// Methods with the same packing are adjacent.
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

/// The traffic along the trees in one phase.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Gather,
    Scatter,
    Both,
}

/// The best method for each phase with [`TRIAL`] pieces.
#[derive(Default)]
struct Manners {
    best: [Option<Manner>; 3],
}

/// A graph with its edges in both directions of time: all of them, and those used for packing.
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
    /// Returns the limit of one phase, per byte of the payload.
    fn limit(&self, phase: Phase) -> f64 {
        let limit = || by_links(phase.collective(), self.ranks, self.routes.topology());
        *self.limits[phase as usize].get_or_init(|| limit().ps_per_byte())
    }

    /// Returns the timetable along one cycle; `None` without a cycle.
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
        made.expect("trees in one direction can always be packed")
    }

    /// Up and down the same trees; two separate halves if that is impossible or not close to the
    /// limit.
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

    /// Packs and times one phase: returns its time per byte of the full payload, and its timetable.
    /// `None` if it requires reverse edges that do not exist.
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

    /// Returns whether a method differs from those before it: on edges of single links there is
    /// only one.
    fn differs(&self, phase: Phase, manner: Manner) -> bool {
        let direct = self.thinned[phase.direction()].longest() == 1;
        let sparse = self.sparse[phase.direction()].is_some();
        if manner.sparse { sparse } else { !(direct && manner.rising) }
    }

    /// Computes one packing, timed in several orders until one is close to the limit.
    fn packed(
        &self,
        phase: Phase,
        pieces: u32,
        manners: &[Manner],
    ) -> Option<Vec<(Timed, Manner)>> {
        let Manner { sparse, rising, .. } = manners[0];
        let thinned = &self.thinned[phase.direction()];
        let graph = self.sparse[phase.direction()].as_ref().filter(|_| sparse).unwrap_or(thinned);
        let (limit, both_directions) = (self.limit(phase), phase == Phase::Both);
        let packing = pack(&PackingProblem { graph, pieces, limit, both_directions, rising })?;
        let trees = in_shards(packing.trees);
        let mut found: Vec<(Timed, Manner)> = Vec::new();
        for &manner in manners {
            let timing = Timing { pieces, both_directions, lag: self.lag, order: manner.order };
            let (takes, timetable) = timed(&trees, graph, timing);
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

    /// Returns the index of the edges: 0 forwards, 1 reversed.
    fn direction(self) -> usize {
        usize::from(self == Phase::Scatter)
    }
}

/// Returns the two in sequence, if both divide the payload alike.
fn together(first: Timed, second: Timed) -> Option<Timed> {
    let alike = first.1.chunks == second.1.chunks;
    alike.then(|| (first.0 + second.0, first.1.then(second.1)))
}

/// Sorts the trees so that the chunks of a shard are contiguous.
fn in_shards(mut trees: Vec<packing::Tree>) -> Vec<packing::Tree> {
    trees.sort_by_key(|tree| tree.root);
    trees
}
