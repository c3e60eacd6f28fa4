//! Routings by name: one line of [`REGISTRY`] each.

use std::sync::Arc;

use super::{
    Compass, DimensionOrder, Fixed, Flow, GridLegs, GroupLegs, Legs, Minimal, MinimalAdaptive,
    NearestAncestor, O1Turn, Routing, RowLegs, SourceRouted, Through, TorusOrder, TwoPhases,
    least_latency, up_down,
};
use crate::{FlitError, VcRange, Wiring};
use tutti_topology::{Dragonfly, Family, Hop, Routes, Topology, TopologyError};
use tutti_units::ids::RankId;

/// A line of the registry.
pub struct Entry {
    /// Its name in configuration files and results.
    pub name: &'static str,
    /// What may follow the name and a colon; empty where nothing may.
    pub argument: &'static str,
    /// One sentence for lists.
    pub summary: &'static str,
    build: fn(&Call<'_>) -> Result<Arc<dyn Routing>, FlitError>,
}

/// Every routing there is.
pub const REGISTRY: &[Entry] = &[
    Entry {
        name: "dimension_order",
        argument: "[yx|balanced]",
        summary: "dimension-order routing; in a torus with datelines, on two VCs \
                  or more",
        build: dimension_order,
    },
    Entry {
        name: "o1_turn",
        argument: "[adaptive]",
        summary: "in a mesh, half of the packets XY, half YX, on two VCs or more",
        build: o1_turn,
    },
    Entry {
        name: "romm",
        argument: "",
        summary: "in a mesh, over a random node between source and destination, on two VCs or more",
        build: romm,
    },
    Entry {
        name: "valiant",
        argument: "",
        summary: "over a random node: in a mesh or flattened butterfly on two VCs or more, in a dragonfly \
                  on three, in a torus on four",
        build: valiant,
    },
    Entry {
        name: "ugal",
        argument: "[THRESHOLD]",
        summary: "the minimal path, or one over a random node with fewer credits in use times hops (UGAL-L); \
                  VCs as for valiant",
        build: ugal,
    },
    Entry {
        name: "minimal_adaptive",
        argument: "[first_dimension|one_vc]",
        summary: "any minimal path with free VCs, dimension order as escape; one VC more than the escape has",
        build: minimal_adaptive,
    },
    Entry {
        name: "shortest_path",
        argument: "",
        summary: "on any graph, a shortest path for each pair",
        build: |call| call.along(|graph| Ok(Routes::shortest_path(graph))),
    },
    Entry {
        name: "least_latency",
        argument: "",
        summary: "on any graph, the path with the least latency for each pair, as BookSim's anynet",
        build: |call| call.table(least_latency::next_links),
    },
    Entry {
        name: "up_down",
        argument: "",
        summary: "on any graph, deadlock-free on one VC: up towards the root of a breadth-first search, \
                  then down",
        build: up_or_down,
    },
    Entry {
        name: "minimal",
        argument: "[one_vc]",
        summary: "in a dragonfly, over at most one global link, on two VCs or more",
        build: minimal,
    },
    Entry {
        name: "d_mod_k",
        argument: "",
        summary: "in a fat tree, up by the digits of the destination's number",
        build: |call| call.along(Routes::d_mod_k),
    },
    Entry {
        name: "nca",
        argument: "[adaptive]",
        summary: "in a fat tree, up by random links to a nearest common ancestor",
        build: nca,
    },
    Entry {
        name: "source_routed",
        argument: "FLOW[;FLOW...][;*=ROUTING]",
        summary: "flows with their output ports, as `0-5=1.1.3`; other pairs by another routing",
        build: source_routed,
    },
    Entry {
        name: "paths",
        argument: "NODE>NODE[>...][;...]",
        summary: "paths as lists of nodes, such as `0>4>5`, over any of the parallel links; a shortest \
                  path for other pairs",
        build: paths,
    },
    Entry {
        name: "ecmp",
        argument: "[SEED]",
        summary: "on any graph, one of the paths with the fewest hops, drawn for each pair",
        build: ecmp,
    },
];

/// Other names for routings of [`REGISTRY`], with their arguments.
const ALIASES: &[(&str, &str)] = &[
    ("xy", "dimension_order"),
    ("yx", "dimension_order:yx"),
    ("dor", "dimension_order"),
    ("dim_order", "dimension_order"),
];

/// The threshold of UGAL in BookSim 2's flattened butterfly.
const THRESHOLD: u32 = 2;

/// The most entries of a routing table that is built before the run.
const LARGEST_TABLE: u64 = 1 << 24;

/// Someone requests a routing.
struct Call<'a> {
    text: &'a str,
    entry: &'static Entry,
    argument: Option<&'a str>,
    wiring: &'a Arc<Wiring>,
}

/// The routing of a notation, `name` or `name:argument` as [`REGISTRY`] lists them, on a wiring
/// that was built from a graph.
///
/// # Errors
/// When there is no such routing, its argument cannot be read, or the graph does not suit it.
pub fn parse(text: &str, wiring: &Arc<Wiring>) -> Result<Arc<dyn Routing>, FlitError> {
    let text = text.trim();
    let alias = ALIASES.iter().find(|(alias, _)| *alias == text);
    let text = alias.map_or(text, |(_, text)| text);
    let (name, argument) = match text.split_once(':') {
        None => (text, None),
        Some((name, argument)) => (name.trim(), Some(argument.trim())),
    };
    let entry = REGISTRY.iter().find(|entry| entry.name == name).ok_or_else(|| {
        let known: Vec<_> = REGISTRY.iter().map(|entry| entry.name).collect();
        FlitError::UnknownRouting { name: name.to_owned(), known: known.join(", ") }
    })?;
    let call = Call { text, entry, argument, wiring };
    if entry.argument.is_empty() && argument.is_some() {
        return Err(call.malformed());
    }
    (entry.build)(&call)
}

/// Refuses classes with fewer VCs than a routing needs; `name` is what errors call it.
///
/// # Errors
/// When a class has too few.
pub fn check_vcs(name: &str, routing: &dyn Routing, classes: &[VcRange]) -> Result<(), FlitError> {
    let needs = routing.least_vcs();
    match classes.iter().enumerate().find(|(_, vcs)| vcs.count() < needs) {
        None => Ok(()),
        Some((class, vcs)) => {
            let (routing, has) = (name.to_owned(), vcs.count());
            Err(FlitError::TooFewVcs { routing, needs, class, has })
        }
    }
}

impl Call<'_> {
    fn malformed(&self) -> FlitError {
        let Entry { name, argument, .. } = self.entry;
        let options = argument.trim_matches(['[', ']']).split('|').filter(|one| !one.is_empty());
        let forms = options.map(|option| format!(" or `{name}:{option}`")).collect::<String>();
        let expected = format!("`{name}`{forms}");
        FlitError::RoutingArgument { text: self.text.to_owned(), expected }
    }

    /// `text` is the argument, or all of the routing if it has none.
    fn malformed_paths(&self, text: &str) -> FlitError {
        let name = if text == self.text { "paths:" } else { "" };
        let expected = format!("{name}NODE>NODE..., such as `{name}0>4>5`, with `;` between paths");
        FlitError::RoutingArgument { text: text.to_owned(), expected }
    }

    fn malformed_flow(part: &str) -> FlitError {
        let text = part.trim().to_owned();
        let expected = "FROM-TO=PORT.PORT..., such as `0-5=1.1.3`, or once `*=ROUTING`".to_owned();
        FlitError::RoutingArgument { text, expected }
    }

    /// Whether the argument is this word; refuses all others.
    fn has_option(&self, word: &str) -> Result<bool, FlitError> {
        match self.argument {
            None => Ok(false),
            Some(argument) if argument == word => Ok(true),
            Some(_) => Err(self.malformed()),
        }
    }

    fn unsuited(&self, needs: &'static str) -> FlitError {
        let network = self.wiring.topology().map_or("this network", |graph| graph.name());
        let (routing, network) = (self.text.to_owned(), network.to_owned());
        FlitError::RoutingDoesNotFit { routing, needs, network }
    }

    fn graph(&self) -> Result<Arc<Topology>, FlitError> {
        let graph = self.wiring.topology().map(Arc::clone);
        graph.ok_or_else(|| self.unsuited("a network built from a graph"))
    }

    /// Where routers are, if they are those of a mesh or torus.
    fn compass(&self) -> Option<Compass> {
        let grid = self.wiring.topology()?.family().and_then(Family::router_grid)?;
        Compass::of(self.wiring, grid.sizes(), grid.wraps())
    }

    fn mesh(&self) -> Result<Compass, FlitError> {
        let mesh = self.compass().filter(|compass| !compass.wraps());
        mesh.ok_or_else(|| self.unsuited("a mesh"))
    }

    fn mesh_or_torus(&self) -> Result<Compass, FlitError> {
        self.compass().ok_or_else(|| self.unsuited("a mesh or torus"))
    }

    fn dragonfly(&self) -> Result<&Dragonfly, FlitError> {
        let family = self.wiring.topology().and_then(|graph| graph.family()?.dragonfly());
        family.ok_or_else(|| self.unsuited("a dragonfly"))
    }

    /// The paths over another node.
    fn legs(&self) -> Result<Arc<dyn Legs>, FlitError> {
        if let Some(compass) = self.compass() {
            return Ok(Arc::new(GridLegs::new(compass, self.wiring.nodes())));
        }
        let family = self.wiring.topology().and_then(|graph| graph.family());
        let in_rows = family.and_then(|family| RowLegs::new(self.wiring, family.row_sizes()?));
        if let Some(legs) = in_rows {
            return Ok(Arc::new(legs));
        }
        let needs = "a mesh, torus, flattened butterfly, HyperX or dragonfly";
        let groups = family.and_then(|family| GroupLegs::new(self.wiring, family.dragonfly()?));
        groups.map_or_else(|| Err(self.unsuited(needs)), |legs| Ok(Arc::new(legs) as Arc<dyn Legs>))
    }

    /// Over another node.
    fn two_phases(&self, through: Through) -> Result<Arc<dyn Routing>, FlitError> {
        Ok(Arc::new(TwoPhases::along(self.legs()?, self.wiring.nodes(), through)))
    }

    /// Along the routes that a rule finds in the graph.
    fn along(
        &self,
        rule: impl FnOnce(Arc<Topology>) -> Result<Routes, TopologyError>,
    ) -> Result<Arc<dyn Routing>, FlitError> {
        let routes = Arc::new(rule(self.graph()?)?);
        Ok(Arc::new(Fixed::new(routes, Arc::clone(self.wiring))?))
    }

    /// By a table of the next link from each vertex to each node.
    fn table(
        &self,
        next_links: impl FnOnce(&Topology) -> Vec<Hop>,
    ) -> Result<Arc<dyn Routing>, FlitError> {
        let graph = self.graph()?;
        if graph.vertex_count() as u64 * u64::from(graph.npus()) > LARGEST_TABLE {
            return Err(self.unsuited("a graph of at most 2^24 pairs of vertex and node"));
        }
        self.along(|graph| {
            let hops = next_links(&graph);
            Routes::next_hops(graph, hops)
        })
    }
}

fn dimension_order(call: &Call<'_>) -> Result<Arc<dyn Routing>, FlitError> {
    match (call.compass(), call.argument) {
        (Some(torus), argument) if torus.wraps() => {
            let balanced = argument.is_some() && call.has_option("balanced")?;
            Ok(Arc::new(TorusOrder::new(torus, balanced)))
        }
        (Some(mesh), argument) => {
            let descending = argument.is_some() && call.has_option("yx")?;
            Ok(Arc::new(DimensionOrder::new(mesh, descending)))
        }
        // What has dimensions of another kind has routes of the graph along them.
        (None, None) => call.along(Routes::dimension_order),
        (None, Some("yx" | "balanced")) => Err(call.unsuited("a mesh or torus")),
        (None, Some(_)) => Err(call.malformed()),
    }
}

fn o1_turn(call: &Call<'_>) -> Result<Arc<dyn Routing>, FlitError> {
    let adaptive = call.has_option("adaptive")?;
    Ok(Arc::new(O1Turn::new(call.mesh()?, adaptive)))
}

fn romm(call: &Call<'_>) -> Result<Arc<dyn Routing>, FlitError> {
    Ok(Arc::new(TwoPhases::new(call.mesh()?, call.wiring.nodes(), Through::Quadrant)))
}

fn valiant(call: &Call<'_>) -> Result<Arc<dyn Routing>, FlitError> {
    call.two_phases(Through::Any)
}

fn ugal(call: &Call<'_>) -> Result<Arc<dyn Routing>, FlitError> {
    let threshold = match call.argument {
        None => THRESHOLD,
        Some(text) => text.parse().map_err(|_| call.malformed())?,
    };
    call.two_phases(Through::Either { threshold })
}

fn minimal_adaptive(call: &Call<'_>) -> Result<Arc<dyn Routing>, FlitError> {
    let build = match call.argument {
        None => MinimalAdaptive::new,
        Some("first_dimension") => MinimalAdaptive::first_dimension,
        Some("one_vc") => MinimalAdaptive::one_vc,
        Some(_) => return Err(call.malformed()),
    };
    Ok(Arc::new(build(call.mesh_or_torus()?)))
}

fn up_or_down(call: &Call<'_>) -> Result<Arc<dyn Routing>, FlitError> {
    let graph = call.graph()?;
    let has_reverse =
        |link| graph.links_between(graph.link_to(link), graph.link_from(link)).next().is_some();
    if !graph.links().all(has_reverse) {
        return Err(call.unsuited("a graph with links in both directions"));
    }
    call.table(up_down::next_links)
}

fn minimal(call: &Call<'_>) -> Result<Arc<dyn Routing>, FlitError> {
    let minimal = Minimal::new(call.wiring, call.dragonfly()?, call.has_option("one_vc")?);
    Ok(Arc::new(minimal.ok_or_else(|| call.unsuited("a dragonfly"))?))
}

fn nca(call: &Call<'_>) -> Result<Arc<dyn Routing>, FlitError> {
    let adaptive = call.has_option("adaptive")?;
    let tree = call.wiring.topology().and_then(|graph| graph.family()?.fat_tree());
    let nca = tree.and_then(|tree| NearestAncestor::new(call.wiring, tree, adaptive));
    Ok(Arc::new(nca.ok_or_else(|| call.unsuited("a fat tree"))?))
}

fn source_routed(call: &Call<'_>) -> Result<Arc<dyn Routing>, FlitError> {
    let (mut flows, mut others) = (Vec::new(), None);
    for part in call.argument.unwrap_or("").split(';') {
        match part.split_once('=') {
            // Flows within flows would nest without end.
            Some((pair, routing))
                if pair.trim() == "*"
                    && others.is_none()
                    && !routing.trim().starts_with(call.entry.name) =>
            {
                others = Some(parse(routing, call.wiring)?);
            }
            _ => flows.push(flow(part).ok_or_else(|| Call::malformed_flow(part))?),
        }
    }
    Ok(Arc::new(SourceRouted::new(call.wiring, flows, others)?))
}

/// `0-5=1.1.3`: from node 0 to node 5, by the output ports 1, 1 and 3.
fn flow(text: &str) -> Option<Flow> {
    let (pair, ports) = text.split_once('=')?;
    let (source, destination) = pair.split_once('-')?;
    let number = |text: &str| text.trim().parse().ok();
    Some(Flow {
        source: number(source)?,
        destination: number(destination)?,
        ports: ports.split('.').map(number).collect::<Option<_>>()?,
    })
}

fn paths(call: &Call<'_>) -> Result<Arc<dyn Routing>, FlitError> {
    let mut given = Vec::new();
    let Some(argument) = call.argument.filter(|argument| !argument.is_empty()) else {
        return Err(call.malformed_paths(call.text));
    };
    for part in argument.split(';') {
        let nodes = part.split('>').map(|node| node.trim().parse().ok().map(RankId));
        let nodes: Option<Vec<RankId>> = nodes.collect();
        let Some(nodes) = nodes.filter(|nodes| nodes.len() > 1) else {
            return Err(call.malformed_paths(part.trim()));
        };
        given.push((nodes[0], nodes[nodes.len() - 1], nodes));
    }
    call.along(|graph| Routes::node_paths(graph, given))
}

fn ecmp(call: &Call<'_>) -> Result<Arc<dyn Routing>, FlitError> {
    let seed = match call.argument {
        None => 0,
        Some(text) => text.parse().map_err(|_| call.malformed())?,
    };
    call.along(|graph| Ok(Routes::ecmp(graph, seed)))
}
