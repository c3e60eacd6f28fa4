//! Explicit routing tables and paths, validated on construction.

use std::collections::BTreeMap;

use super::{NONE, Row};
use crate::{Topology, TopologyError};
use tutti_units::ids::{LinkId, RankId, VertexId};

/// An entry of a routing table: messages for `destination` that are at `at` continue over `link`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hop {
    /// The current vertex of the message.
    pub at: VertexId,
    /// The destination rank.
    pub destination: RankId,
    /// The next link.
    pub link: LinkId,
}

/// Collects the entries into one row per destination and follows each.
pub(super) fn rows(
    topology: &Topology,
    hops: impl IntoIterator<Item = Hop>,
) -> Result<Vec<Row>, TopologyError> {
    let mut by_destination: BTreeMap<RankId, Vec<Hop>> = BTreeMap::new();
    for hop in hops {
        check_rank(topology, hop.destination)?;
        check_link(topology, hop.at, hop.destination, hop.link)?;
        by_destination.entry(hop.destination).or_default().push(hop);
    }
    // Rows are built one by one, so that a table without a destination fails before memory is
    // allocated.
    let mut rows = Vec::new();
    for destination in (0..topology.npus()).map(RankId) {
        let mut row = vec![NONE; topology.vertex_count()].into_boxed_slice();
        for hop in by_destination.get(&destination).into_iter().flatten() {
            let slot = &mut row[hop.at.index()];
            if *slot != NONE && *slot != hop.link.0 {
                let at = topology.vertex_name(hop.at).to_owned();
                let (first, second) = (LinkId(*slot), hop.link);
                return Err(TopologyError::DoubleRoute { at, destination, first, second });
            }
            *slot = hop.link.0;
        }
        check_row(topology, destination, &row)?;
        rows.push(row);
    }
    Ok(rows)
}

/// Checks that messages from every rank arrive. Each vertex is visited once.
fn check_row(topology: &Topology, destination: RankId, row: &Row) -> Result<(), TopologyError> {
    let mut arrives = vec![false; row.len()];
    arrives[destination.index()] = true;
    for source in (0..topology.npus()).map(RankId) {
        let mut walked: Vec<VertexId> = Vec::new();
        let mut at = VertexId(source.0);
        while !arrives[at.index()] {
            if walked.len() >= row.len() {
                return Err(looping(topology, source, destination, &walked, at));
            }
            walked.push(at);
            let link = row[at.index()];
            if link == NONE {
                let at = topology.vertex_name(at).to_owned();
                return Err(TopologyError::NoRoute { at, source_rank: source, destination });
            }
            at = topology.link_to(LinkId(link));
        }
        for vertex in walked {
            arrives[vertex.index()] = true;
        }
    }
    Ok(())
}

/// Names the vertices of a routing loop; `at` is on it.
fn looping(
    topology: &Topology,
    source: RankId,
    destination: RankId,
    walked: &[VertexId],
    at: VertexId,
) -> TopologyError {
    let last = walked.iter().rposition(|&vertex| vertex == at).unwrap_or(0);
    let names = walked[last..].iter().chain([&at]);
    let vertices = names.map(|&vertex| topology.vertex_name(vertex).to_owned()).collect();
    TopologyError::RoutingLoop { source_rank: source, destination, vertices }
}

pub(super) fn check_rank(topology: &Topology, rank: RankId) -> Result<(), TopologyError> {
    if rank.0 < topology.npus() {
        return Ok(());
    }
    Err(TopologyError::UnknownRank { rank, last: topology.npus() - 1 })
}

/// Checks that the link exists and leaves `at`.
fn check_link(
    topology: &Topology,
    at: VertexId,
    destination: RankId,
    link: LinkId,
) -> Result<(), TopologyError> {
    let links = topology.link_count();
    if link.index() >= links {
        return Err(TopologyError::UnknownLink { link, links });
    }
    let from = topology.link_from(link);
    if from == at {
        return Ok(());
    }
    let known = at.index() < topology.vertex_count();
    let at = if known { topology.vertex_name(at).to_owned() } else { at.to_string() };
    let leaves = topology.vertex_name(from).to_owned();
    Err(TopologyError::ForeignLink { at, destination, link, leaves })
}

/// A path for every pair of ranks, in one allocation.
pub(super) struct Paths {
    ranks: usize,
    /// The start of the path from a to b is at `a * ranks + b`; the path ends at the next start.
    start: Vec<usize>,
    links: Vec<LinkId>,
}

impl Paths {
    pub(super) fn new(
        topology: &Topology,
        paths: impl IntoIterator<Item = (RankId, RankId, Vec<LinkId>)>,
    ) -> Result<Paths, TopologyError> {
        let ranks = topology.npus() as usize;
        let mut given: BTreeMap<(RankId, RankId), Vec<LinkId>> = BTreeMap::new();
        for (from, to, links) in paths {
            check_rank(topology, from)?;
            check_rank(topology, to)?;
            check_path(topology, from, to, &links)?;
            if given.insert((from, to), links).is_some() {
                return Err(TopologyError::DoublePath { source_rank: from, destination: to });
            }
        }
        let mut all = Paths { ranks, start: vec![0], links: Vec::new() };
        let pairs = (0..topology.npus())
            .flat_map(|from| (0..topology.npus()).map(move |to| (RankId(from), RankId(to))));
        for (from, to) in pairs {
            match given.remove(&(from, to)) {
                Some(path) => all.links.extend(path),
                None if from == to => {}
                None => {
                    let at = topology.vertex_name(VertexId(from.0)).to_owned();
                    return Err(TopologyError::NoRoute { at, source_rank: from, destination: to });
                }
            }
            all.start.push(all.links.len());
        }
        Ok(all)
    }

    /// The path from one rank to another.
    pub(super) fn path(&self, from: RankId, to: RankId) -> &[LinkId] {
        let index = from.index() * self.ranks + to.index();
        &self.links[self.start[index]..self.start[index + 1]]
    }
}

/// Checks that a path connects two ranks without visiting a vertex twice.
pub(super) fn check_path(
    topology: &Topology,
    from: RankId,
    to: RankId,
    links: &[LinkId],
) -> Result<(), TopologyError> {
    let mut at = VertexId(from.0);
    let mut visited = vec![at];
    for &link in links {
        check_link(topology, at, to, link)?;
        at = topology.link_to(link);
        if visited.contains(&at) {
            return Err(looping(topology, from, to, &visited, at));
        }
        visited.push(at);
    }
    if at == VertexId(to.0) {
        return Ok(());
    }
    let end = topology.vertex_name(at).to_owned();
    Err(TopologyError::WrongEnd { source_rank: from, destination: to, end })
}
