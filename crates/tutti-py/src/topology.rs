//! Topologies and their routes.

use std::sync::Arc;

use pyo3::prelude::*;
use tutti_network::packet::Choice;
use tutti_schedule::algorithm::bound::{by_links, most_loaded};
use tutti_simulation::Routing;
use tutti_topology::{Builder, Hop, LinkParameters, TopologyError, VertexKind};
use tutti_units::ids::{LinkId, RankId, VertexId};
use tutti_units::{Length, Time};

use crate::algorithm::collective_named;
use crate::errors::{OrRaise, refuse};
use crate::schedule::{Number, Schedule};
use crate::units::TimePerByte;

/// Micrometres of a length such as "12.5 mm".
#[pyfunction]
pub(crate) fn parse_length(text: &str) -> PyResult<u64> {
    Length::parse(text).or_raise().map(Length::um)
}

/// A length in micrometres in a fitting unit, without loss.
#[pyfunction]
pub(crate) fn format_length(um: u64) -> String {
    Length::from_um(um).to_string()
}

/// The parameters of a link: time per byte, latency in ps, length in um.
type Parameters = (TimePerByte, u64, Option<u64>);

fn parameters((rate, latency_ps, length_um): Parameters) -> LinkParameters {
    LinkParameters {
        rate: rate.0,
        latency: Time::from_ps(latency_ps),
        length: length_um.map(Length::from_um),
    }
}

/// An entry of the registry of topology families.
#[pyclass(frozen, get_all, module = "tutti._core")]
pub(crate) struct TopologyFamily {
    /// The name in the notation `name:argument`.
    name: &'static str,
    /// A summary of one sentence.
    summary: &'static str,
    /// The argument after the colon.
    argument: &'static str,
    /// An example.
    example: &'static str,
}

#[pymethods]
impl TopologyFamily {
    fn __repr__(&self) -> String {
        format!("<TopologyFamily {}:{}>", self.name, self.argument)
    }
}

/// Every family, in the order of the registry.
#[pyfunction]
pub(crate) fn topology_families() -> Vec<TopologyFamily> {
    let line = |entry: &tutti_topology::Entry| TopologyFamily {
        name: entry.name,
        summary: entry.summary,
        argument: entry.argument,
        example: entry.example,
    };
    tutti_topology::REGISTRY.iter().map(line).collect()
}

/// The link classes of `notation`, in order.
#[pyfunction]
pub(crate) fn topology_link_classes(notation: &str) -> PyResult<Vec<String>> {
    tutti_topology::parse(notation).or_raise().map(|family| family.link_classes())
}

/// A link of a topology.
#[pyclass(frozen, get_all, eq, module = "tutti._core")]
#[derive(PartialEq, Eq)]
pub(crate) struct TopologyLink {
    /// The vertex that it leaves.
    source: u32,
    /// The vertex that it enters.
    target: u32,
    /// Time per byte.
    rate: TimePerByte,
    /// Its latency.
    latency_ps: u64,
    /// Its length, where it is known.
    length_um: Option<u64>,
}

/// An immutable graph of NPUs, switches and routers, joined by one-directional links.
#[pyclass(frozen, eq, module = "tutti._core")]
#[derive(PartialEq, Eq)]
pub(crate) struct Topology {
    pub(crate) inner: Arc<tutti_topology::Topology>,
}

#[pymethods]
impl Topology {
    /// Builds `notation` with one set of link parameters for all links, or one for each link class.
    #[staticmethod]
    fn build(py: Python<'_>, notation: &str, links: Vec<Parameters>) -> PyResult<Topology> {
        let links: Vec<LinkParameters> = links.into_iter().map(parameters).collect();
        let built = py.detach(|| tutti_topology::build(notation, &links));
        built.or_raise().map(|inner| Topology { inner: Arc::new(inner) })
    }

    /// Builds a graph from vertices and links. NPUs are the vertices 0, 1, ...; the other vertices
    /// follow, each with its kind. Links refer to vertices by number.
    #[staticmethod]
    fn from_links(
        py: Python<'_>,
        name: &str,
        npus: Vec<String>,
        others: Vec<(String, String)>,
        links: Vec<(u32, u32, Parameters)>,
    ) -> PyResult<Topology> {
        let count = u32::try_from(npus.len()).unwrap_or(u32::MAX);
        let mut builder = Builder::new(name, count);
        for (vertex, name) in (0..).map(VertexId).zip(npus) {
            builder.rename(vertex, name);
        }
        for (kind, name) in others {
            match kind.as_str() {
                "switch" => builder.switch(name),
                "router" => builder.router(name),
                _ => return Err(no_such_kind(&kind)),
            };
        }
        for (from, to, link) in links {
            builder.link(VertexId(from), VertexId(to), parameters(link));
        }
        let built = py.detach(|| builder.build());
        built.or_raise().map(|inner| Topology { inner: Arc::new(inner) })
    }

    /// Its notation, or the name it was given.
    #[getter]
    fn name(&self) -> &str {
        self.inner.name()
    }

    /// The number of NPUs, hence of ranks.
    #[getter]
    fn ranks(&self) -> u32 {
        self.inner.npus()
    }

    /// Name and kind of every vertex, NPUs first.
    fn vertices(&self) -> Vec<(&str, &'static str)> {
        let vertex = |v| (self.inner.vertex_name(v), self.inner.kind(v).name());
        self.inner.vertices().map(vertex).collect()
    }

    /// The number of links.
    #[getter]
    fn link_count(&self) -> usize {
        self.inner.link_count()
    }

    /// Every link.
    fn links(&self) -> Vec<TopologyLink> {
        let link = |id| {
            let tutti_topology::Link { from, to, parameters } = self.inner.link(id);
            TopologyLink {
                source: from.0,
                target: to.0,
                rate: TimePerByte(parameters.rate),
                latency_ps: parameters.latency.ps(),
                length_um: parameters.length.map(Length::um),
            }
        };
        self.inner.links().map(link).collect()
    }

    /// Whether it was built from a notation.
    #[getter]
    fn is_family(&self) -> bool {
        self.inner.family().is_some()
    }

    /// The sizes of a mesh or torus, and whether its rows wrap; None for other topologies.
    fn grid(&self) -> Option<(Vec<u32>, bool)> {
        let grid = self.inner.family().and_then(tutti_topology::Family::grid)?;
        Some((grid.sizes().to_vec(), grid.wraps()))
    }

    /// Lower bound due to the links, per byte of a collective's size, on the first `ranks` NPUs.
    #[pyo3(signature = (collective, ranks, *, root=Number(0)))]
    #[pyo3(text_signature = "($self, collective, ranks, *, root=0)")]
    fn bound_by_links(
        &self,
        py: Python<'_>,
        collective: &str,
        ranks: Number,
        root: Number,
    ) -> PyResult<TimePerByte> {
        let collective = collective_named(collective, root.0)?;
        for rank in [Some(RankId(ranks.0.max(1) - 1)), collective.root()].into_iter().flatten() {
            if self.inner.npu(rank).is_none() {
                let last = self.inner.npus() - 1;
                return Err(TopologyError::UnknownRank { rank, last }).or_raise();
            }
        }
        Ok(TimePerByte(py.detach(|| by_links(collective, ranks.0, &self.inner))))
    }

    /// Counts and distances.
    fn facts(&self, py: Python<'_>) -> TopologyFacts {
        let facts = py.detach(|| self.inner.facts());
        TopologyFacts {
            npus: facts.npus,
            switches: facts.switches,
            routers: facts.routers,
            links: facts.links,
            npu_degree: facts.npu_degree,
            radix: facts.radix,
            diameter: facts.diameter,
            bisection_links: facts.bisection_links,
        }
    }
}

fn no_such_kind(kind: &str) -> PyErr {
    let known = [VertexKind::Switch.name(), VertexKind::Router.name()].join(", ");
    let message = format!("unknown kind of vertex `{kind}`: expected one of {known}");
    refuse("TopologyError", "attribute", &message)
}

/// Counts and distances of a topology.
#[pyclass(frozen, get_all, module = "tutti._core")]
pub(crate) struct TopologyFacts {
    /// NPUs, hence ranks.
    npus: u32,
    /// Switches.
    switches: u64,
    /// Routers.
    routers: u64,
    /// One-directional links.
    links: u64,
    /// Minimum and maximum out-degree of the NPUs.
    npu_degree: (u64, u64),
    /// Maximum out-degree of switches and routers.
    radix: u64,
    /// The diameter in hops between NPUs.
    diameter: u32,
    /// The bisection in one-directional links, if known.
    bisection_links: Option<u64>,
}

/// A path between two ranks, as a single wire.
#[pyclass(frozen, get_all, module = "tutti._core")]
pub(crate) struct Wire {
    /// The sum of the links' latencies.
    latency_ps: u64,
    /// The time per byte of the slowest link; zero from a rank to itself.
    bottleneck: TimePerByte,
    /// The number of hops.
    hops: u32,
}

/// The routes between all ranks of a topology, or a per-packet routing algorithm.
#[pyclass(frozen, module = "tutti._core")]
pub(crate) struct Routes(pub(crate) Routing);

impl Routes {
    fn of(routes: tutti_topology::Routes) -> Routes {
        Routes(Routing::fixed(routes))
    }

    /// The routes; for per-packet routing, minimal ones.
    pub(crate) fn fixed(&self) -> &tutti_topology::Routes {
        self.0.routes()
    }
}

#[pymethods]
impl Routes {
    /// Minimum hops, then latency, then link ids.
    #[staticmethod]
    fn shortest_path(topology: &Topology) -> Routes {
        Routes::of(tutti_topology::Routes::shortest_path(Arc::clone(&topology.inner)))
    }

    /// Dimension-order routing in a mesh or torus.
    #[staticmethod]
    fn dimension_order(topology: &Topology) -> PyResult<Routes> {
        let routes = tutti_topology::Routes::dimension_order(Arc::clone(&topology.inner));
        routes.or_raise().map(Routes::of)
    }

    /// Minimal routing in a dragonfly, with at most one global link.
    #[staticmethod]
    fn minimal(topology: &Topology) -> PyResult<Routes> {
        let routes = tutti_topology::Routes::minimal(Arc::clone(&topology.inner));
        routes.or_raise().map(Routes::of)
    }

    /// Destination-based up/down routing in a fat tree (d-mod-k).
    #[staticmethod]
    fn d_mod_k(topology: &Topology) -> PyResult<Routes> {
        let routes = tutti_topology::Routes::d_mod_k(Arc::clone(&topology.inner));
        routes.or_raise().map(Routes::of)
    }

    /// ECMP: at every vertex one of the minimal links, by a hash of pair and seed.
    #[staticmethod]
    fn ecmp(topology: &Topology, seed: u64) -> Routes {
        Routes::of(tutti_topology::Routes::ecmp(Arc::clone(&topology.inner), seed))
    }

    /// Per-packet routing: `adaptive`, `valiant` or `ugal`.
    #[staticmethod]
    fn chosen(topology: &Topology, choice: &str) -> PyResult<Routes> {
        let Some(choice) = Choice::from_name(choice) else {
            let known = Choice::ALL.map(Choice::name).join(", ");
            let message = format!("unknown per-packet routing `{choice}`: expected one of {known}");
            return Err(refuse("TopologyError", "argument", &message));
        };
        Routing::per_packet(&topology.inner, choice).or_raise().map(Routes)
    }

    /// The name of the per-packet routing; None for fixed routes.
    #[getter]
    fn choice(&self) -> Option<&'static str> {
        self.0.choice().map(Choice::name)
    }

    /// Routes from a table of (vertex, destination rank, link).
    #[staticmethod]
    fn next_hops(topology: &Topology, hops: Vec<(u32, u32, u32)>) -> PyResult<Routes> {
        let hops = hops.into_iter().map(|(at, destination, link)| Hop {
            at: VertexId(at),
            destination: RankId(destination),
            link: LinkId(link),
        });
        let routes = tutti_topology::Routes::next_hops(Arc::clone(&topology.inner), hops);
        routes.or_raise().map(Routes::of)
    }

    /// Routes from a path of links per pair of ranks.
    #[staticmethod]
    fn paths(topology: &Topology, paths: Vec<(u32, u32, Vec<u32>)>) -> PyResult<Routes> {
        let paths = paths.into_iter().map(|(from, to, links)| {
            (RankId(from), RankId(to), links.into_iter().map(LinkId).collect())
        });
        let routes = tutti_topology::Routes::paths(Arc::clone(&topology.inner), paths);
        routes.or_raise().map(Routes::of)
    }

    /// Routes from paths for some pairs, each the ranks from source to destination; shortest paths
    /// for the others. Packets share parallel links between two ranks.
    #[staticmethod]
    fn node_paths(topology: &Topology, paths: Vec<(u32, u32, Vec<u32>)>) -> PyResult<Routes> {
        let paths = paths.into_iter().map(|(from, to, passed)| {
            (RankId(from), RankId(to), passed.into_iter().map(RankId).collect())
        });
        let routes = tutti_topology::Routes::node_paths(Arc::clone(&topology.inner), paths);
        routes.or_raise().map(Routes::of)
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }

    /// The links from one rank to another, in order.
    fn path(&self, source: u32, destination: u32) -> PyResult<Vec<u32>> {
        let path = self.fixed().path(RankId(source), RankId(destination)).or_raise()?;
        Ok(path.into_iter().map(|link| link.0).collect())
    }

    /// Time per byte of the size for which a schedule occupies its most loaded link.
    fn most_loaded(&self, py: Python<'_>, schedule: &Schedule) -> PyResult<TimePerByte> {
        let busy = py.detach(|| most_loaded(&*schedule.inner, self.fixed()));
        busy.or_raise().map(TimePerByte)
    }

    /// Latency, bottleneck and hops of the path from one rank to another.
    fn pair(&self, source: u32, destination: u32) -> PyResult<Wire> {
        let wire = self.fixed().try_pair(RankId(source), RankId(destination)).or_raise()?;
        let bottleneck = TimePerByte(wire.bottleneck);
        Ok(Wire { latency_ps: wire.latency.ps(), bottleneck, hops: wire.hops })
    }
}
