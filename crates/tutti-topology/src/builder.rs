//! Declares vertices and links, in any order, and seals them into a [`Topology`].

use std::collections::BTreeMap;
use std::sync::Arc;

use super::components::{self, Components};
use super::error::TopologyError;
use super::family::Family;
use super::graph::{Link, LinkParameters, Topology, VertexKind};
use super::search::starts;
use tutti_units::TimePerByte;
use tutti_units::ids::{LinkId, VertexId};

/// The most NPUs, equal to the most ranks of a schedule.
pub const MAX_NPUS: u64 = 1 << 24;
/// The most vertices.
pub const MAX_VERTICES: u64 = 1 << 25;
/// The most links: a fully connected group of 8192 NPUs still fits.
pub const MAX_LINKS: u64 = 1 << 26;

/// A topology under construction. Nothing is checked before [`Builder::build`].
///
/// ```
/// use tutti_topology::{Builder, LinkParameters};
/// use tutti_units::ids::VertexId;
/// use tutti_units::{Time, TimePerByte};
///
/// let cable = LinkParameters::new(TimePerByte::parse("50 GB/s")?, Time::parse("300 ns")?);
/// let mut builder = Builder::new("two and a switch", 2);
/// let switch = builder.switch("leaf");
/// builder.cable(VertexId(0), switch, cable);
/// builder.cable(VertexId(1), switch, cable);
/// assert_eq!(builder.build()?.link_count(), 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Builder {
    name: String,
    npus: u32,
    kinds: Vec<VertexKind>,
    names: Vec<String>,
    links: Vec<Link>,
    family: Option<Arc<dyn Family>>,
}

impl Builder {
    /// Starts with `npus` NPUs: the vertices 0, 1, ..., named `npu0`, `npu1`, ...
    #[must_use]
    pub fn new(name: impl Into<String>, npus: u32) -> Builder {
        // `build` rejects a count beyond the limit; until then, no vertices are allocated for it.
        let made = if u64::from(npus) > MAX_NPUS { 0 } else { npus };
        Builder {
            name: name.into(),
            npus,
            kinds: vec![VertexKind::Npu; made as usize],
            names: (0..made).map(|rank| format!("npu{rank}")).collect(),
            links: Vec::new(),
            family: None,
        }
    }

    /// Adds a switch.
    pub fn switch(&mut self, name: impl Into<String>) -> VertexId {
        self.vertex(VertexKind::Switch, name.into())
    }

    /// Adds a router.
    pub fn router(&mut self, name: impl Into<String>) -> VertexId {
        self.vertex(VertexKind::Router, name.into())
    }

    fn vertex(&mut self, kind: VertexKind, name: String) -> VertexId {
        // `build` rejects graphs beyond 32 bits by their count, so this id is never used.
        let id = u32::try_from(self.kinds.len()).unwrap_or(u32::MAX);
        self.kinds.push(kind);
        self.names.push(name);
        VertexId(id)
    }

    /// Renames a vertex; one that does not exist is ignored.
    pub fn rename(&mut self, vertex: VertexId, name: impl Into<String>) {
        if let Some(slot) = self.names.get_mut(vertex.index()) {
            *slot = name.into();
        }
    }

    /// Adds a link in one direction. Several links may join the same two vertices.
    pub fn link(&mut self, from: VertexId, to: VertexId, parameters: LinkParameters) {
        self.links.push(Link { from, to, parameters });
    }

    /// Adds a link in each direction.
    pub fn cable(&mut self, a: VertexId, b: VertexId, parameters: LinkParameters) {
        self.link(a, b, parameters);
        self.link(b, a, parameters);
    }

    /// Sets the family, for closed forms and dimension-order routing.
    pub(super) fn set_family(&mut self, family: Arc<dyn Family>) {
        self.family = Some(family);
    }

    /// Validates and seals the graph.
    ///
    /// # Errors
    /// The graph has no NPU, exceeds a limit, repeats a name, has an invalid link (to itself, to a
    /// nonexistent vertex, without time per byte), or an NPU cannot reach another although its
    /// family requires it.
    pub fn build(self) -> Result<Topology, TopologyError> {
        if self.npus == 0 {
            return Err(TopologyError::NoNpus);
        }
        check_counts(u64::from(self.npus), self.kinds.len() as u64, self.links.len() as u64)?;
        self.check_names()?;
        self.check_links()?;
        let topology = self.seal();
        if topology.family().is_some_and(Family::may_be_disconnected) {
            return Ok(topology);
        }
        if let Some((from, to)) = components::unreachable_pair(&topology) {
            return Err(TopologyError::Disconnected {
                from: topology.vertex_name(from).to_owned(),
                to: topology.vertex_name(to).to_owned(),
                components: Components::of(&topology),
            });
        }
        Ok(topology)
    }

    fn check_names(&self) -> Result<(), TopologyError> {
        let mut order: Vec<u32> = (0..).take(self.names.len()).collect();
        order.sort_by_key(|&vertex| (&self.names[vertex as usize], vertex));
        if let Some(&vertex) = order.first().filter(|&&v| self.names[v as usize].is_empty()) {
            return Err(TopologyError::EmptyName { vertex: VertexId(vertex) });
        }
        for pair in order.windows(2) {
            let name = &self.names[pair[0] as usize];
            if *name == self.names[pair[1] as usize] {
                let (first, second) = (VertexId(pair[0]), VertexId(pair[1]));
                return Err(TopologyError::DuplicateName { name: name.clone(), first, second });
            }
        }
        Ok(())
    }

    fn check_links(&self) -> Result<(), TopologyError> {
        let vertices = self.kinds.len();
        for &Link { from, to, parameters } in &self.links {
            if from.index().max(to.index()) >= vertices {
                let last = VertexId(u32::try_from(vertices - 1).unwrap_or(u32::MAX));
                return Err(TopologyError::UnknownVertex { from, to, last });
            }
            if from == to {
                let name = self.names[from.index()].clone();
                return Err(TopologyError::SelfLink { vertex: from, name });
            }
            if parameters.rate == TimePerByte::ZERO {
                return Err(TopologyError::ZeroTimePerByte {
                    from: self.names[from.index()].clone(),
                    to: self.names[to.index()].clone(),
                });
            }
        }
        Ok(())
    }

    /// Numbers the links and builds both adjacency lists.
    fn seal(mut self) -> Topology {
        // Ids depend on the links, not on the order of declaration.
        self.links.sort_unstable_by_key(|link| (link.from, link.to, link.parameters));
        let mut palette: BTreeMap<LinkParameters, u32> = BTreeMap::new();
        for link in &self.links {
            palette.insert(link.parameters, 0);
        }
        for (index, slot) in (0..).zip(palette.values_mut()) {
            *slot = index;
        }
        let out_start = starts(self.kinds.len(), self.links.iter().map(|link| link.from.0));
        let in_start = starts(self.kinds.len(), self.links.iter().map(|link| link.to.0));
        let mut fill = in_start.clone();
        let mut in_links = vec![LinkId(0); self.links.len()];
        for (id, link) in (0..).map(LinkId).zip(&self.links) {
            let slot = &mut fill[link.to.index()];
            in_links[*slot as usize] = id;
            *slot += 1;
        }
        Topology {
            name: self.name,
            npus: self.npus,
            kinds: self.kinds,
            names: self.names,
            from: self.links.iter().map(|link| link.from).collect(),
            to: self.links.iter().map(|link| link.to).collect(),
            parameters: self.links.iter().map(|link| palette[&link.parameters]).collect(),
            palette: palette.into_keys().collect(),
            out_start,
            in_start,
            in_links,
            family: self.family,
        }
    }
}

/// Rejects a graph that exceeds a limit.
pub(super) fn check_counts(npus: u64, vertices: u64, links: u64) -> Result<(), TopologyError> {
    if npus > MAX_NPUS {
        return Err(TopologyError::TooManyNpus { npus, most: MAX_NPUS });
    }
    if vertices > MAX_VERTICES {
        return Err(TopologyError::TooManyVertices { vertices, most: MAX_VERTICES });
    }
    if links > MAX_LINKS {
        return Err(TopologyError::TooManyLinks { links, most: MAX_LINKS });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tutti_units::Time;
    use tutti_units::ids::RankId;

    fn cable() -> LinkParameters {
        LinkParameters::new(TimePerByte::parse("50 GB/s").unwrap(), Time::from_ps(100))
    }

    #[test]
    fn adjacency_lists_every_link_in_both_directions() {
        let mut builder = Builder::new("triangle", 3);
        for (a, b) in [(2, 0), (0, 1), (1, 2)] {
            builder.cable(VertexId(a), VertexId(b), cable());
        }
        let topology = builder.build().unwrap();
        for vertex in topology.vertices() {
            let out: Vec<u32> =
                topology.links_out(vertex).map(|link| topology.link_to(link).0).collect();
            let others: Vec<u32> = (0..3).filter(|&other| other != vertex.0).collect();
            assert_eq!(out, others);
            assert!(topology.links_out(vertex).all(|link| topology.link_from(link) == vertex));
            let into = topology.links_in(vertex).iter();
            assert_eq!(into.map(|&link| topology.link_from(link).0).collect::<Vec<_>>(), others);
        }
    }

    #[test]
    fn npus_that_cannot_reach_each_other_are_named_with_their_groups() {
        let mut builder = Builder::new("split", 5);
        builder.rename(VertexId(3), "gpu3");
        let switch = builder.switch("leaf");
        for npu in [0, 1, 4] {
            builder.cable(VertexId(npu), switch, cable());
        }
        builder.link(VertexId(2), switch, cable());
        builder.link(switch, VertexId(3), cable());
        let error = builder.build().unwrap_err();
        let text = error.to_string();
        assert_eq!(
            text,
            "npu0 cannot reach npu2: the NPUs form 3 strongly connected components, {0, 1, 4} {2} {3}"
        );
        let TopologyError::Disconnected { components, .. } = error else { panic!("{text}") };
        let groups = [vec![RankId(0), RankId(1), RankId(4)], vec![RankId(2)], vec![RankId(3)]];
        assert_eq!(components.groups(), groups);
    }

    #[test]
    fn an_npu_that_only_listens_is_named_too() {
        let mut builder = Builder::new("mute", 2);
        builder.link(VertexId(0), VertexId(1), cable());
        let text = builder.build().unwrap_err().to_string();
        let expected = "npu1 cannot reach npu0: the NPUs form 2 strongly connected components";
        assert!(text.starts_with(expected), "{text}");
    }

    #[test]
    fn what_is_no_graph_is_refused() {
        let refused = |change: &dyn Fn(&mut Builder)| {
            let mut builder = Builder::new("pair", 2);
            builder.cable(VertexId(0), VertexId(1), cable());
            change(&mut builder);
            builder.build().unwrap_err()
        };
        let (a, b) = (VertexId(0), VertexId(1));
        assert_eq!(Builder::new("empty", 0).build().unwrap_err(), TopologyError::NoNpus);
        let many = Builder::new("many", u32::MAX).build().unwrap_err();
        assert!(matches!(many, TopologyError::TooManyNpus { .. }));
        let zero = LinkParameters::new(TimePerByte::ZERO, Time::ZERO);
        assert!(matches!(
            refused(&|builder| builder.link(a, b, zero)),
            TopologyError::ZeroTimePerByte { .. }
        ));
        assert!(matches!(
            refused(&|builder| builder.link(b, b, cable())),
            TopologyError::SelfLink { vertex: VertexId(1), .. }
        ));
        assert!(matches!(
            refused(&|builder| builder.link(a, VertexId(2), cable())),
            TopologyError::UnknownVertex { last: VertexId(1), .. }
        ));
        assert!(matches!(
            refused(&|builder| {
                builder.switch("npu1");
            }),
            TopologyError::DuplicateName { first: VertexId(1), second: VertexId(2), .. }
        ));
        assert!(matches!(
            refused(&|builder| {
                builder.router("");
            }),
            TopologyError::EmptyName { vertex: VertexId(2) }
        ));
    }

    #[test]
    fn a_single_npu_is_a_topology() {
        let topology = Builder::new("one", 1).build().unwrap();
        assert_eq!((topology.link_count(), topology.diameter()), (0, 0));
    }
}
