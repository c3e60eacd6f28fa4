//! Counts and distances of a topology, for reports.

use super::graph::{Topology, VertexKind};
use super::search::steps;
use tutti_units::ids::VertexId;

/// Counts and distances of a topology.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Facts {
    /// NPUs, equal to the number of ranks.
    pub npus: u32,
    /// Switches.
    pub switches: u64,
    /// Routers.
    pub routers: u64,
    /// Unidirectional links; a cable counts as two.
    pub links: u64,
    /// The minimum and maximum number of links that leave an NPU.
    pub npu_degree: (u64, u64),
    /// The maximum number of links that leave a switch or router; 0 without any.
    pub radix: u64,
    /// The most hops of a shortest path between two connected NPUs.
    pub diameter: u32,
    /// Links per direction across the bisection; `None` if the family has no closed form.
    pub bisection_links: Option<u64>,
}

impl Topology {
    /// Returns all counts. Without a closed form, the diameter takes a breadth-first search from
    /// every NPU that the symmetry of the family does not exclude.
    #[must_use]
    pub fn facts(&self) -> Facts {
        let count = |kind| self.kinds.iter().filter(|&&k| k == kind).count() as u64;
        let degree = |vertex: VertexId| self.links_out(vertex).len() as u64;
        let (npus, others) = (self.npus(), self.vertices().skip(self.npus() as usize));
        let degrees = || (0..npus).map(VertexId).map(degree);
        Facts {
            npus,
            switches: count(VertexKind::Switch),
            routers: count(VertexKind::Router),
            links: self.link_count() as u64,
            npu_degree: (degrees().min().unwrap_or(0), degrees().max().unwrap_or(0)),
            radix: others.map(degree).max().unwrap_or(0),
            diameter: self.diameter(),
            bisection_links: self.family().and_then(super::Family::bisection),
        }
    }

    /// The most hops of a shortest path between two connected NPUs.
    #[must_use]
    pub fn diameter(&self) -> u32 {
        let known = self.family().and_then(super::Family::diameter);
        known.unwrap_or_else(|| {
            let representatives = self.family().and_then(super::Family::representatives);
            match representatives {
                Some(sources) => farthest(self, sources),
                None => diameter_by_search(self),
            }
        })
    }
}

/// The diameter by a breadth-first search from every NPU, without closed forms.
#[must_use]
pub fn diameter_by_search(topology: &Topology) -> u32 {
    farthest(topology, (0..topology.npus()).map(VertexId))
}

/// The most hops from one of `sources` to an NPU.
fn farthest(topology: &Topology, sources: impl IntoIterator<Item = VertexId>) -> u32 {
    let next = |at, visit: &mut dyn FnMut(u32)| {
        topology.links_out(VertexId(at)).for_each(|link| visit(topology.link_to(link).0));
    };
    let farthest = |source: VertexId| {
        let hops = steps(topology.vertex_count(), source.0, next);
        hops[..topology.npus() as usize].iter().copied().filter(|&hops| hops < u32::MAX).max()
    };
    sources.into_iter().filter_map(farthest).max().unwrap_or(0)
}
