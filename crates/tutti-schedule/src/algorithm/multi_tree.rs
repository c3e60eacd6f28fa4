//! MultiTree: a spanning tree from every rank, built together so that every link of the graph
//! carries at most one chunk in each time step. Source: Huang, Majhi, Kim, Kwon et al.,
//! "Communication Algorithm-Architecture Co-Design for Distributed Deep Learning", ISCA 2021.
//!
//! **Construction.** Step t starts with all links free. The trees take turns, in the order of their
//! roots, and add one rank per turn. A tree takes the first free edge from a rank that was in the
//! tree before the step (in the order of joining) to a rank outside the tree, and reserves the
//! edge's links for this step. When a complete round of turns adds nothing, the next step starts.
//! The construction ends when all trees span all ranks. An edge follows the routes: a link between
//! neighbours, or links through switches, which neither copy nor fold. With `ports=P`, a rank sends
//! and receives at most P chunks per step.
//!
//! **all_gather** follows the trees down. **reduce_scatter** follows the trees of the reversed
//! edges up, backwards in time. **all_reduce** is the two in sequence. Chunk i belongs to tree i.

use std::sync::Arc;

use super::on_graph::{self, LinkGraph, Move, Timetable};
use super::{AlgorithmError, Entry, Request, Stage};
use crate::Schedule;
use crate::collective::Collective;
use tutti_topology::Routes;

pub(super) const ENTRY: Entry = Entry {
    name: "multi_tree",
    summary: "a spanning tree from every rank, built together so that each link carries one message at a time",
    source: "Huang et al., ISCA 2021",
    argument: "[ports=P,] and a topology, such as torus:4x4 (default fully connected)",
    collectives: &["all_reduce", "reduce_scatter", "all_gather"],
    ranks: "the number of NPUs of the topology, at most 1024; at most 64 without a topology",
    claims: |request| request.ranks >= 2 && request.ranks <= on_graph::MOST_FLAT_RANKS,
    build,
    critical_path: all_at_once,
};

fn build(request: &Request) -> Result<Arc<dyn Schedule>, AlgorithmError> {
    let argument = on_graph::read(request.argument);
    let ports = ports(request, &argument)?;
    let routes = on_graph::routes(ENTRY.name, request, &argument)?;
    lay_out(request, &routes, ports)
}

/// Builds the algorithm on a graph that the request does not name.
pub(super) fn build_on(
    request: &Request,
    routes: &Routes,
) -> Result<Arc<dyn Schedule>, AlgorithmError> {
    on_graph::check_ranks(ENTRY.name, request, routes)?;
    let ports = ports(request, &on_graph::read(request.argument))?;
    lay_out(request, routes, ports)
}

fn ports(request: &Request, argument: &on_graph::GraphArgument) -> Result<u32, AlgorithmError> {
    let mut ports = u32::MAX;
    for &(option, value, at) in &argument.options {
        ports = match value.parse() {
            Ok(count @ 1..) if option == "ports" => count,
            _ => {
                let known =
                    "ports=P, the maximum number of chunks that a rank sends per step, at least 1";
                let given = (option, value, at);
                return Err(on_graph::wrong_option(ENTRY.name, request, given, known));
            }
        };
    }
    Ok(ports)
}

fn lay_out(
    request: &Request,
    routes: &Routes,
    ports: u32,
) -> Result<Arc<dyn Schedule>, AlgorithmError> {
    let timetable = timetable(request.collective, request.ranks, routes, ports);
    let schedule = timetable.lay_out(&request.notation(ENTRY.name), request.collective);
    Ok(Arc::new(schedule.expect("the ranks and chunks of a timetable are those of its request")))
}

/// Returns all messages of the trees of a graph; chunk i belongs to tree i.
pub(super) fn timetable(
    collective: Collective,
    ranks: u32,
    routes: &Routes,
    ports: u32,
) -> Timetable {
    let grown = |backwards| grow(&LinkGraph::of(routes, ranks, backwards), ports);
    match collective {
        Collective::AllGather => grown(false),
        Collective::ReduceScatter => grown(true).reversed(),
        _ => grown(true).reversed().then(grown(false)),
    }
}

/// On fully connected ranks all messages are sent at once: one chunk to each other rank.
pub(super) fn all_at_once(request: &Request) -> Option<Vec<Stage>> {
    let others = request.ranks.checked_sub(1)?;
    if request.argument.is_some() {
        return None;
    }
    let stage = |reductions| Stage {
        messages: others,
        receives: others,
        chunks: 1,
        reductions,
        of: request.ranks,
    };
    Some(match request.collective {
        Collective::AllGather => vec![stage(0)],
        Collective::ReduceScatter => vec![stage(others)],
        _ => vec![stage(others), stage(0)],
    })
}

/// A tree during construction.
struct Tree {
    /// In the order in which they joined.
    members: Vec<u32>,
    inside: Vec<bool>,
    /// The number of members at the start of the step.
    old: usize,
    /// Where the search resumes: a member and one of its edges. Earlier edges are taken or lead to
    /// members.
    at: (usize, usize),
}

/// The resources used in a step.
struct InUse {
    links: Vec<bool>,
    /// Chunks that each rank sends and receives.
    sends: Vec<u32>,
    receives: Vec<u32>,
    ports: u32,
}

impl InUse {
    fn take(&mut self, from: u32, to: u32, links: &[u32]) -> bool {
        let (from, to) = (from as usize, to as usize);
        let free = self.sends[from] < self.ports
            && self.receives[to] < self.ports
            && links.iter().all(|&link| !self.links[link as usize]);
        if free {
            self.sends[from] += 1;
            self.receives[to] += 1;
            links.iter().for_each(|&link| self.links[link as usize] = true);
        }
        free
    }
}

/// Builds the trees of an all_gather.
fn grow(graph: &LinkGraph, ports: u32) -> Timetable {
    let ranks = graph.ranks;
    let tree = |root: u32| {
        let mut inside = vec![false; ranks as usize];
        inside[root as usize] = true;
        Tree { members: vec![root], inside, old: 1, at: (0, 0) }
    };
    let mut trees: Vec<Tree> = (0..ranks).map(tree).collect();
    let mut timetable = Timetable { ranks, chunks: ranks, ..Timetable::default() };
    while trees.iter().any(|tree| tree.members.len() < ranks as usize) {
        let mut used = InUse {
            links: vec![false; graph.rates.len()],
            sends: vec![0; ranks as usize],
            receives: vec![0; ranks as usize],
            ports,
        };
        let slot = timetable.end;
        for tree in &mut trees {
            tree.old = tree.members.len();
            tree.at = (0, 0);
        }
        let mut added = true;
        while std::mem::take(&mut added) {
            for (chunk, tree) in (0..).zip(&mut trees) {
                if let Some((from, to)) = tree.join(graph, &mut used) {
                    let one = Move { sent: slot, there: slot + 2, chunk, from, to, folds: false };
                    timetable.moves.push(one);
                    added = true;
                }
            }
        }
        timetable.end += 2;
    }
    timetable
}

impl Tree {
    /// Adds one rank if a free edge leads to one.
    fn join(&mut self, graph: &LinkGraph, used: &mut InUse) -> Option<(u32, u32)> {
        while self.at.0 < self.old && self.members.len() < self.inside.len() {
            let from = self.members[self.at.0];
            let edges = graph.from(from);
            let Some(&edge) = edges.get(self.at.1) else {
                self.at = (self.at.0 + 1, 0);
                continue;
            };
            self.at.1 += 1;
            let outside = !self.inside[edge.to as usize];
            if outside && used.take(from, edge.to, graph.links(edge)) {
                self.inside[edge.to as usize] = true;
                self.members.push(edge.to);
                return Some((from, edge.to));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::{build as build_any, check};
    use tutti_topology::{Builder, LinkParameters};
    use tutti_units::ids::VertexId;
    use tutti_units::{Time, TimePerByte};

    fn link() -> LinkParameters {
        LinkParameters::new(TimePerByte::new(1, 1).unwrap(), Time::ZERO)
    }

    fn steps(routes: &Routes, ports: u32) -> u32 {
        let graph = LinkGraph::of(routes, routes.topology().npus(), false);
        u32::try_from(grow(&graph, ports).end / 2).unwrap()
    }

    fn on(notation: &str) -> Routes {
        Routes::shortest_path(Arc::new(tutti_topology::build(notation, &[link()]).unwrap()))
    }

    /// All nodes of a row, and of a column, are connected pairwise.
    fn flattened_butterfly(side: u32) -> Routes {
        let mut builder = Builder::new("flattened butterfly", side * side);
        let nodes = 0..side * side;
        for (a, b) in nodes.clone().flat_map(|a| nodes.clone().map(move |b| (a, b))) {
            if a != b && (a / side == b / side || a % side == b % side) {
                builder.link(VertexId(a), VertexId(b), link());
            }
        }
        Routes::shortest_path(Arc::new(builder.build().unwrap()))
    }

    /// Steps of a phase, from an independent re-implementation of the published construction.
    #[test]
    fn steps_are_those_of_the_construction() {
        let all = u32::MAX;
        for (notation, expected) in
            [("mesh:4x4", 8), ("mesh:8x8", 32), ("torus:4x4", 5), ("torus:8x8", 17)]
        {
            assert_eq!(steps(&on(notation), all), expected, "{notation}");
        }
        for (side, ports, expected) in [(4, all, 3), (8, all, 5), (4, 4, 5), (8, 4, 18)] {
            let found = steps(&flattened_butterfly(side), ports);
            assert_eq!(found, expected, "flattened butterfly {side}, {ports} ports");
        }
    }

    #[test]
    fn it_does_what_it_claims_on_every_kind_of_graph() {
        for (topology, ranks) in [
            ("ring:7", 7),
            ("mesh:3x4", 12),
            ("torus:4x2x2", 16),
            ("switch:8", 8),
            ("fully_connected:6", 6),
            ("hierarchical:switch:4/ring:3", 12),
            ("hierarchical:ring:3/rail:switch:4", 12),
            ("ports=1,torus:3x3", 9),
        ] {
            for collective in
                [Collective::AllReduce, Collective::AllGather, Collective::ReduceScatter]
            {
                let proof = check::performs(&format!("multi_tree:{topology}"), collective, ranks);
                assert!(proof.rendezvous_safe(), "{topology}");
            }
        }
    }

    #[test]
    fn without_a_graph_there_is_a_closed_form() {
        for ranks in [2, 3, 8, 13] {
            for collective in
                [Collective::AllReduce, Collective::AllGather, Collective::ReduceScatter]
            {
                assert!(check::critical_path_is_exact("multi_tree", collective, ranks));
                assert!(!check::critical_path_is_exact("multi_tree:ports=1", collective, ranks));
            }
        }
    }

    #[test]
    fn a_graph_can_be_given_separately() {
        let torus = on("torus:4x4");
        let gather = Collective::AllGather;
        let build_on = |notation| crate::algorithm::build_on(notation, gather, 16, &torus);
        let named = build_any("multi_tree:torus:4x4", gather, 16).unwrap();
        let given = build_on("multi_tree").unwrap().unwrap();
        assert_eq!(given.shape().name, "multi_tree");
        for rank in (0..16).map(tutti_units::ids::RankId) {
            let steps = |schedule: &dyn Schedule| {
                let step = |index| {
                    let mut step = crate::Step::new();
                    schedule.step(rank, index, &mut step);
                    step
                };
                (0..schedule.steps(rank)).map(step).collect::<Vec<_>>()
            };
            assert_eq!(steps(&*named), steps(&*given));
        }
        assert!(build_on("multi_tree:ports=1").unwrap().is_some());
        assert!(build_on("multi_tree:ring:16").unwrap().is_none());
        assert!(build_on("ring").unwrap().is_none());
        let beyond = crate::algorithm::build_on("multi_tree", gather, 17, &torus).err().unwrap();
        assert!(beyond.to_string().contains("at most the 16 NPUs of torus:4x4"), "{beyond}");
        let some = crate::algorithm::build_on("multi_tree", gather, 5, &torus).unwrap().unwrap();
        crate::verify(&*some).unwrap();
    }

    #[test]
    fn invalid_requests_are_refused() {
        for (notation, expected) in [
            (
                "multi_tree:torus:4x5",
                "multi_tree does not work on 16 ranks: it needs 20, the number of NPUs of torus:4x5",
            ),
            ("multi_tree:taurus:4x4", "`taurus:4x4` does not fit multi_tree: "),
            ("multi_tree:torus:4y4", "`torus:4y4` does not fit multi_tree: "),
            (
                "multi_tree:ports=0,torus:4x4",
                "`ports=0,torus:4x4` does not fit multi_tree: invalid option `ports=0`: expected ports=P",
            ),
            ("multi_tree:doors=2", "invalid option `doors=2`"),
        ] {
            let error = build_any(notation, Collective::AllReduce, 16).err().unwrap().to_string();
            assert!(error.contains(expected), "{error}");
        }
        let many = build_any("multi_tree", Collective::AllReduce, 65).err().unwrap().to_string();
        assert!(many.contains("it needs at most 64"), "{many}");
    }
}
