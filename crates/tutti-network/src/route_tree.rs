//! Trees of routes: the links of a multicast from its root, or of a combine to it.

use std::collections::BTreeMap;

use crate::Switches;
use tutti_topology::{Routes, Topology, VertexKind};
use tutti_units::Time;
use tutti_units::ids::{LinkId, RankId, VertexId};

/// A link of a tree, between the vertex nearer to the root and the other one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hop {
    pub(crate) near: VertexId,
    pub(crate) far: VertexId,
    pub(crate) link: LinkId,
}

/// The routes between a root and its leaves, each up to the first vertex in common.
#[derive(Clone, Debug)]
pub(crate) struct RouteTree {
    root: RankId,
    /// Whether messages flow to the root.
    inwards: bool,
    /// By vertex: the latency between it and the root.
    reached: BTreeMap<VertexId, Time>,
}

impl RouteTree {
    /// The tree of a root alone.
    pub(crate) fn new(root: RankId, inwards: bool) -> RouteTree {
        RouteTree { root, inwards, reached: BTreeMap::from([(VertexId(root.0), Time::ZERO)]) }
    }

    /// Adds the part of a leaf's route that is outside the tree, and returns its hops, from the root on.
    /// `None` if the tree would branch, other than at its root alone, at a vertex that does not.
    pub(crate) fn graft(
        &mut self,
        routes: &Routes,
        leaf: RankId,
        branches: impl Fn(VertexId) -> bool,
    ) -> Option<Vec<Hop>> {
        if self.reached.contains_key(&VertexId(leaf.0)) {
            return branches(VertexId(leaf.0)).then(Vec::new);
        }
        let mut path = self.path(routes, leaf);
        let start = path.iter().rposition(|hop| self.reached.contains_key(&hop.near)).unwrap_or(0);
        if self.reached.len() > 1 && !branches(path[start].near) {
            return None;
        }
        path.drain(..start);
        for hop in &path {
            let latency = self.reached[&hop.near] + routes.parameters(hop.link).latency;
            self.reached.insert(hop.far, latency);
        }
        Some(path)
    }

    /// The latency between a leaf and the root.
    pub(crate) fn latency(&self, leaf: RankId) -> Time {
        self.reached[&VertexId(leaf.0)]
    }

    /// The route between the root and a leaf, from the root.
    fn path(&self, routes: &Routes, leaf: RankId) -> Vec<Hop> {
        let (from, to) = if self.inwards { (leaf, self.root) } else { (self.root, leaf) };
        let (mut path, mut at) = (Vec::new(), VertexId(from.0));
        for hops in 0.. {
            if at.0 == to.0 {
                break;
            }
            let link = routes.next_link(from, to, at, hops);
            let next = routes.topology().link_to(link);
            let (near, far) = if self.inwards { (next, at) } else { (at, next) };
            path.push(Hop { near, far, link });
            at = next;
        }
        if self.inwards {
            path.reverse();
        }
        path
    }
}

/// The vertices at which trees may branch: of multicasts, then of combines; `None` for all.
#[derive(Clone, Debug)]
pub(crate) struct Branching([Option<Vec<bool>>; 2]);

impl Branching {
    /// The given switches of a topology, and NPUs among them.
    pub(crate) fn with_npus(
        topology: &Topology,
        multicast: &Switches,
        reduce: &Switches,
    ) -> Branching {
        let some =
            |switches: &Switches| (*switches != Switches::All).then(|| switches.on(topology));
        Branching([some(multicast), some(reduce)])
    }

    /// The given switches of a topology, without NPUs.
    pub(crate) fn without_npus(
        topology: &Topology,
        multicast: &Switches,
        reduce: &Switches,
    ) -> Branching {
        let some = |switches: &Switches| {
            let forwards = topology.vertices().map(|one| topology.kind(one) != VertexKind::Npu);
            Some(switches.on(topology).iter().zip(forwards).map(|(&on, is)| on && is).collect())
        };
        Branching([some(multicast), some(reduce)])
    }

    /// The parts of a multicast from a root, or of a combine to it (`inwards`).
    pub(crate) fn parts(
        &self,
        routes: &Routes,
        (root, inwards): (RankId, bool),
        leaves: &[RankId],
    ) -> Vec<Vec<usize>> {
        match &self.0[usize::from(inwards)] {
            None => vec![(0..leaves.len()).collect()],
            Some(branches) => parts(routes, (root, inwards), leaves, branches),
        }
    }
}

/// Divides the leaves of a multicast or combine into parts, each the indices of leaves whose tree branches
/// only at vertices that may branch. A leaf joins the first part that has the last such vertex on its
/// route; without one, it is a part alone.
fn parts(
    routes: &Routes,
    (root, inwards): (RankId, bool),
    leaves: &[RankId],
    branches: &[bool],
) -> Vec<Vec<usize>> {
    let may_branch = |vertex: VertexId| branches[vertex.index()];
    let mut parts: Vec<(RouteTree, Vec<usize>)> = Vec::new();
    let mut part_at: BTreeMap<VertexId, usize> = BTreeMap::new();
    for (index, &leaf) in leaves.iter().enumerate() {
        let path = RouteTree::new(root, inwards).path(routes, leaf);
        let known = path.iter().rev().flat_map(|hop| [hop.far, hop.near]);
        let known = known.filter_map(|vertex| part_at.get(&vertex)).next().copied();
        let joined = known.is_some_and(|part| {
            let (tree, members) = &mut parts[part];
            let grafted = tree.graft(routes, leaf, may_branch).is_some();
            members.extend(grafted.then_some(index));
            grafted
        });
        let part = if joined { known.unwrap_or(0) } else { parts.len() };
        if !joined {
            let mut tree = RouteTree::new(root, inwards);
            let _ = tree.graft(routes, leaf, may_branch);
            parts.push((tree, vec![index]));
        }
        for hop in path {
            for vertex in [hop.near, hop.far].into_iter().filter(|&vertex| may_branch(vertex)) {
                part_at.entry(vertex).or_insert(part);
            }
        }
    }
    parts.into_iter().map(|(_, members)| members).collect()
}
