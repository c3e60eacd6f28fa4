//! Routings by name: one line of [`REGISTRY`] each.

use std::sync::Arc;

use super::{
    Compass, DimensionOrder, Fixed, MinimalAdaptive, O1Turn, Routing, Through, TorusOrder,
    TwoPhases,
};
use crate::network::flit::{FlitError, VcRange, Wiring};
use crate::topology::{Family, Routes, Topology, TopologyError};

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
        summary: "one dimension after the other, wherever there are any; in a torus with datelines, on two VCs \
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
        summary: "in a mesh, by way of a random node between source and destination, on two VCs or more",
        build: romm,
    },
    Entry {
        name: "valiant",
        argument: "",
        summary: "by way of a random node: in a mesh on two VCs or more, in a torus on four",
        build: valiant,
    },
    Entry {
        name: "minimal_adaptive",
        argument: "",
        summary: "any minimal way with free VCs, dimension order as escape; one VC more than that takes",
        build: minimal_adaptive,
    },
    Entry {
        name: "shortest_path",
        argument: "",
        summary: "on any graph, a shortest path for each pair",
        build: |call| call.along(|graph| Ok(Routes::shortest_path(graph))),
    },
    Entry {
        name: "minimal",
        argument: "",
        summary: "in a dragonfly, over at most one global link",
        build: |call| call.along(Routes::minimal),
    },
    Entry {
        name: "d_mod_k",
        argument: "",
        summary: "in a fat tree, up by the digits of the destination's number",
        build: |call| call.along(Routes::d_mod_k),
    },
    Entry {
        name: "ecmp",
        argument: "[SEED]",
        summary: "on any graph, one of the paths with the fewest hops, drawn for each pair",
        build: ecmp,
    },
];

/// Someone asks for a routing.
struct Call<'a> {
    text: &'a str,
    entry: &'static Entry,
    argument: Option<&'a str>,
    wiring: &'a Arc<Wiring>,
}

/// The routing of a notation, `name` or `name:argument` as [`REGISTRY`] lists them, on a wiring that was
/// made of a graph.
///
/// # Errors
/// When there is no such routing, its argument cannot be read, or the graph does not suit it.
pub fn parse(text: &str, wiring: &Arc<Wiring>) -> Result<Arc<dyn Routing>, FlitError> {
    let text = text.trim();
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

    /// Whether the argument is this word; refuses all others.
    fn says(&self, word: &str) -> Result<bool, FlitError> {
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
        graph.ok_or_else(|| self.unsuited("a network made of a graph"))
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

    /// Along the routes that a rule finds in the graph.
    fn along(
        &self,
        rule: impl FnOnce(Arc<Topology>) -> Result<Routes, TopologyError>,
    ) -> Result<Arc<dyn Routing>, FlitError> {
        let routes = Arc::new(rule(self.graph()?)?);
        Ok(Arc::new(Fixed::new(routes, Arc::clone(self.wiring))?))
    }
}

fn dimension_order(call: &Call<'_>) -> Result<Arc<dyn Routing>, FlitError> {
    match (call.compass(), call.argument) {
        (Some(torus), argument) if torus.wraps() => {
            let balanced = argument.is_some() && call.says("balanced")?;
            Ok(Arc::new(TorusOrder::new(torus, balanced)))
        }
        (Some(mesh), argument) => {
            let descending = argument.is_some() && call.says("yx")?;
            Ok(Arc::new(DimensionOrder::new(mesh, descending)))
        }
        // What has dimensions of another kind has routes of the graph along them.
        (None, None) => call.along(Routes::dimension_order),
        (None, Some("yx" | "balanced")) => Err(call.unsuited("a mesh or torus")),
        (None, Some(_)) => Err(call.malformed()),
    }
}

fn o1_turn(call: &Call<'_>) -> Result<Arc<dyn Routing>, FlitError> {
    let adaptive = call.says("adaptive")?;
    Ok(Arc::new(O1Turn::new(call.mesh()?, adaptive)))
}

fn romm(call: &Call<'_>) -> Result<Arc<dyn Routing>, FlitError> {
    Ok(Arc::new(TwoPhases::new(call.mesh()?, call.wiring.nodes(), Through::Quadrant)))
}

fn valiant(call: &Call<'_>) -> Result<Arc<dyn Routing>, FlitError> {
    Ok(Arc::new(TwoPhases::new(call.mesh_or_torus()?, call.wiring.nodes(), Through::Any)))
}

fn minimal_adaptive(call: &Call<'_>) -> Result<Arc<dyn Routing>, FlitError> {
    Ok(Arc::new(MinimalAdaptive::new(call.mesh_or_torus()?)))
}

fn ecmp(call: &Call<'_>) -> Result<Arc<dyn Routing>, FlitError> {
    let seed = match call.argument {
        None => 0,
        Some(text) => text.parse().map_err(|_| call.malformed())?,
    };
    call.along(|graph| Ok(Routes::ecmp(graph, seed)))
}
