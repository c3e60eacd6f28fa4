//! Explicit paths for some pairs of ranks, as lists of NPUs.

use std::collections::BTreeMap;
use std::fmt;

use super::explicit::{check_path, check_rank};
use crate::{Topology, TopologyError};
use tutti_units::ids::{LinkId, RankId, VertexId};

/// The paths by pair of ranks; the first of parallel links represents all of them.
pub(super) struct NodePaths {
    paths: BTreeMap<(RankId, RankId), Box<[LinkId]>>,
    text: String,
}

impl NodePaths {
    pub(super) fn new(
        topology: &Topology,
        paths: impl IntoIterator<Item = (RankId, RankId, Vec<RankId>)>,
    ) -> Result<NodePaths, TopologyError> {
        let mut found = BTreeMap::new();
        let mut names_of = BTreeMap::new();
        for (from, to, nodes) in paths {
            for &rank in [from, to].iter().chain(&nodes) {
                check_rank(topology, rank)?;
            }
            let links = links(topology, from, to, &nodes)?;
            check_path(topology, from, to, &links)?;
            if found.insert((from, to), links.into()).is_some() {
                return Err(TopologyError::DoublePath { source_rank: from, destination: to });
            }
            let names: Vec<String> = nodes.iter().map(|node| node.0.to_string()).collect();
            names_of.insert((from, to), names.join(">"));
        }
        let text = names_of.into_values().map(|path| format!("{path}, ")).collect();
        Ok(NodePaths { paths: found, text })
    }

    /// The explicit path of a pair, if any.
    #[inline]
    pub(super) fn path(&self, from: RankId, to: RankId) -> Option<&[LinkId]> {
        self.paths.get(&(from, to)).map(AsRef::as_ref)
    }
}

/// The first link between consecutive nodes of a path.
fn links(
    topology: &Topology,
    from: RankId,
    to: RankId,
    nodes: &[RankId],
) -> Result<Vec<LinkId>, TopologyError> {
    let name = |rank: RankId| topology.vertex_name(VertexId(rank.0)).to_owned();
    if nodes.first() != Some(&from) {
        let start = nodes.first().map_or_else(|| "nowhere".to_owned(), |&rank| name(rank));
        return Err(TopologyError::WrongStart { source_rank: from, destination: to, start });
    }
    let step = |pair: &[RankId]| {
        let mut between = topology.links_between(VertexId(pair[0].0), VertexId(pair[1].0));
        between.next().ok_or_else(|| TopologyError::NoLink {
            source_rank: from,
            destination: to,
            at: name(pair[0]),
            next: name(pair[1]),
        })
    };
    nodes.windows(2).map(step).collect()
}

/// Lists all paths, so that equal sets of paths have equal text.
impl fmt::Display for NodePaths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
