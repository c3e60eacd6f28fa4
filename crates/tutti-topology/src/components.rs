//! Strongly connected components of the NPUs.

use std::fmt;

use super::graph::Topology;
use super::search;
use tutti_units::ids::{RankId, VertexId};

/// Groups of NPUs that can all reach each other; groups and members are sorted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Components(Vec<Vec<RankId>>);

impl Components {
    /// The groups.
    #[must_use]
    pub fn groups(&self) -> &[Vec<RankId>] {
        &self.0
    }

    /// The strongly connected components (Kosaraju), restricted to NPUs.
    pub(super) fn of(topology: &Topology) -> Components {
        let mut component = vec![u32::MAX; topology.vertex_count()];
        let mut count = 0;
        for &root in finishing_order(topology).iter().rev() {
            if component[root.index()] != u32::MAX {
                continue;
            }
            let mut stack = vec![root];
            component[root.index()] = count;
            while let Some(at) = stack.pop() {
                for from in topology.links_in(at).iter().map(|&link| topology.link_from(link)) {
                    if component[from.index()] == u32::MAX {
                        component[from.index()] = count;
                        stack.push(from);
                    }
                }
            }
            count += 1;
        }
        let mut groups = vec![Vec::new(); count as usize];
        for rank in 0..topology.npus() {
            groups[component[rank as usize] as usize].push(RankId(rank));
        }
        groups.retain(|group| !group.is_empty());
        groups.sort();
        Components(groups)
    }
}

impl fmt::Display for Components {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const GROUPS: usize = 4;
        const MEMBERS: usize = 6;
        write!(f, "the NPUs form {} strongly connected components, ", self.0.len())?;
        for (index, group) in self.0.iter().take(GROUPS).enumerate() {
            let shown: Vec<String> =
                group.iter().take(MEMBERS).map(|rank| rank.0.to_string()).collect();
            let more = if group.len() > MEMBERS { ", ..." } else { "" };
            let between = if index == 0 { "" } else { " " };
            write!(f, "{between}{{{}{more}}}", shown.join(", "))?;
        }
        f.write_str(if self.0.len() > GROUPS { " and more" } else { "" })
    }
}

/// Two NPUs of which the first cannot reach the second; one of them is NPU 0.
pub(super) fn unreachable_pair(topology: &Topology) -> Option<(VertexId, VertexId)> {
    let (root, vertices) = (VertexId(0), topology.vertex_count());
    let forward = search::steps(vertices, root.0, |at, visit| {
        topology.links_out(VertexId(at)).for_each(|link| visit(topology.link_to(link).0));
    });
    let backward = search::steps(vertices, root.0, |at, visit| {
        let links = topology.links_in(VertexId(at)).iter();
        links.for_each(|&link| visit(topology.link_from(link).0));
    });
    let lost = |steps: Vec<u32>| (0..topology.npus()).find(|&npu| steps[npu as usize] == u32::MAX);
    let from_root = lost(forward).map(|npu| (root, VertexId(npu)));
    from_root.or_else(|| lost(backward).map(|npu| (VertexId(npu), root)))
}

/// The vertices in finishing order of a depth-first search along the links.
fn finishing_order(topology: &Topology) -> Vec<VertexId> {
    let mut order = Vec::with_capacity(topology.vertex_count());
    let mut seen = vec![false; topology.vertex_count()];
    for root in topology.vertices() {
        if std::mem::replace(&mut seen[root.index()], true) {
            continue;
        }
        let mut stack = vec![(root, topology.links_out(root))];
        while let Some((at, links)) = stack.last_mut() {
            let Some(link) = links.next() else {
                order.push(*at);
                stack.pop();
                continue;
            };
            let next = topology.link_to(link);
            if !std::mem::replace(&mut seen[next.index()], true) {
                stack.push((next, topology.links_out(next)));
            }
        }
    }
    order
}
