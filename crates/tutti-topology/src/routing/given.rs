//! Ways that are written down for some pairs of ranks, as the NPUs that they pass.

use std::collections::BTreeMap;
use std::fmt;

use super::explicit::{check_path, check_rank};
use crate::{Topology, TopologyError};
use tutti_units::ids::{LinkId, RankId, VertexId};

/// The ways by pair of ranks; of parallel links the first stands for all.
pub(super) struct Given {
    ways: BTreeMap<(RankId, RankId), Box<[LinkId]>>,
    text: String,
}

impl Given {
    pub(super) fn new(
        topology: &Topology,
        ways: impl IntoIterator<Item = (RankId, RankId, Vec<RankId>)>,
    ) -> Result<Given, TopologyError> {
        let mut given = BTreeMap::new();
        let mut passed = BTreeMap::new();
        for (from, to, nodes) in ways {
            for &rank in [from, to].iter().chain(&nodes) {
                check_rank(topology, rank)?;
            }
            let links = links(topology, from, to, &nodes)?;
            check_path(topology, from, to, &links)?;
            if given.insert((from, to), links.into()).is_some() {
                return Err(TopologyError::DoublePath { source_rank: from, destination: to });
            }
            let names: Vec<String> = nodes.iter().map(|node| node.0.to_string()).collect();
            passed.insert((from, to), names.join(">"));
        }
        let text = passed.into_values().map(|way| format!("{way}, ")).collect();
        Ok(Given { ways: given, text })
    }

    /// The way of a pair, if it has one.
    #[inline]
    pub(super) fn way(&self, from: RankId, to: RankId) -> Option<&[LinkId]> {
        self.ways.get(&(from, to)).map(AsRef::as_ref)
    }
}

/// The first link between each two nodes of a way.
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

/// All of them: equal ways are written alike.
impl fmt::Display for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
