//! A configuration: live links, checked against the mesh.

use super::error::BypassError;
use super::mesh::{BypassMesh, Port};
use super::ports::{Candidate, Taken, assign};
use super::request::{Kind, LinkRequest};
use super::segments::{Segments, Span};

/// A live link in one direction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Link {
    /// The source node.
    pub source: u32,
    /// The destination node.
    pub destination: u32,
    /// The bypass wire, counted within its line and direction, that the piece belongs to; `None`
    /// for a mesh link.
    pub wire: Option<u32>,
    /// The output port at the source.
    pub output: Port,
    /// The input port at the destination.
    pub input: Port,
}

impl Link {
    /// Whether the link is a piece of a bypass wire.
    #[must_use]
    pub fn is_bypass(&self) -> bool {
        self.wire.is_some()
    }

    /// The sort key: mesh links first, then by source, destination and wire.
    fn order(&self) -> (bool, u32, u32, Option<u32>) {
        (self.is_bypass(), self.source, self.destination, self.wire)
    }

    /// The request that yields this link.
    pub(super) fn request(&self, with_ports: bool) -> LinkRequest {
        let Link { source, destination, wire, output, input } = *self;
        let ports = with_ports.then_some((output, input));
        let kind = if wire.is_some() { Kind::Bypass { wire, ports } } else { Kind::Mesh };
        LinkRequest { source, destination, kind }
    }
}

/// Why a configuration is rejected, and which of the requested links is at fault.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refused {
    /// The position of the link among the requests.
    pub number: usize,
    /// What is wrong with the link.
    pub error: BypassError,
}

/// The live links of a mesh. Pieces of one wire share no segment, and a port has at most one link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Configuration {
    mesh: BypassMesh,
    links: Vec<Link>,
}

/// A validated link whose wire and ports are not all assigned yet.
#[derive(Clone, Copy)]
struct Draft {
    request: LinkRequest,
    direction: Port,
    wire: Option<u32>,
    /// The position of the link among the requests.
    number: usize,
}

impl Draft {
    fn order(&self) -> (bool, u32, u32, Option<u32>) {
        (self.wire.is_some(), self.request.source, self.request.destination, self.wire)
    }

    /// The ports, if they are fixed already.
    fn ports(&self) -> Option<(Port, Port)> {
        match self.request.kind {
            Kind::Mesh => Some((self.direction, self.direction.opposite())),
            Kind::Bypass { ports, .. } => ports,
        }
    }
}

/// Which end of its links a router is at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Output,
    Input,
}

impl Configuration {
    /// Assigns a wire and ports to each link that leaves them open.
    ///
    /// Explicit wires are assigned first. The other pieces then take the lowest free wire, in the
    /// order of `requests`. Ports are a bipartite matching at every router, which does not depend
    /// on the order of the links.
    ///
    /// # Errors
    /// A link is impossible, or two links need the same segment or port.
    pub fn new(mesh: BypassMesh, requests: &[LinkRequest]) -> Result<Configuration, Refused> {
        let mut drafts = wired(mesh, requests)?;
        drafts.sort_by_key(Draft::order);
        let outputs = ports(mesh, &drafts, End::Output)?;
        let inputs = ports(mesh, &drafts, End::Input)?;
        let links = drafts.iter().zip(outputs).zip(inputs);
        let link = |((draft, output), input): ((&Draft, Port), Port)| Link {
            source: draft.request.source,
            destination: draft.request.destination,
            wire: draft.wire,
            output,
            input,
        };
        Ok(Configuration { mesh, links: links.map(link).collect() })
    }

    /// The mesh.
    #[must_use]
    pub fn mesh(&self) -> &BypassMesh {
        &self.mesh
    }

    /// The live links: mesh links first, then by source, destination and wire.
    #[must_use]
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// The number of live mesh links.
    #[must_use]
    pub fn used_mesh_links(&self) -> u64 {
        self.links.iter().filter(|link| !link.is_bypass()).count() as u64
    }

    /// The number of bypass wire segments that belong to a piece.
    #[must_use]
    pub fn used_bypass_segments(&self) -> u64 {
        let pieces = self.links.iter().filter(|link| link.is_bypass());
        pieces.map(|piece| u64::from(self.span(piece))).sum()
    }

    /// The number of segments that a link spans; 1 for a mesh link.
    #[must_use]
    pub fn span(&self, link: &Link) -> u32 {
        self.mesh.displacement(link.source, link.destination).map_or(0, |(_, span)| span)
    }

    /// The ports without a link: node, side, and whether it is an output port.
    #[must_use]
    pub fn idle_ports(&self) -> Vec<(u32, Port, bool)> {
        let mut idle = vec![true; self.mesh.nodes() as usize * 8];
        let place = |node: u32, port: Port, output: bool| {
            (node as usize * 4 + port.index()) * 2 + usize::from(!output)
        };
        for link in &self.links {
            idle[place(link.source, link.output, true)] = false;
            idle[place(link.destination, link.input, false)] = false;
        }
        let all = (0..self.mesh.nodes()).flat_map(|node| {
            let both = move |port| [(node, port, true), (node, port, false)];
            Port::ALL.into_iter().flat_map(both)
        });
        all.filter(|&(node, port, output)| idle[place(node, port, output)]).collect()
    }

    /// Returns this configuration with every mesh link live whose two ports are idle.
    #[must_use]
    pub fn filled(&self) -> Configuration {
        let idle = self.idle_ports();
        let is_idle = |end: &(u32, Port, bool)| idle.binary_search_by_key(&key(end), key).is_ok();
        let mut links = self.links.clone();
        for (source, output, destination) in self.mesh.mesh_links() {
            let input = output.opposite();
            if is_idle(&(source, output, true)) && is_idle(&(destination, input, false)) {
                links.push(Link { source, destination, wire: None, output, input });
            }
        }
        links.sort_by_key(Link::order);
        Configuration { mesh: self.mesh, links }
    }
}

/// The sort key of idle ports.
fn key(&(node, port, output): &(u32, Port, bool)) -> (u32, Port, bool) {
    (node, port, !output)
}

/// Checks each link and assigns segments to the pieces.
fn wired(mesh: BypassMesh, requests: &[LinkRequest]) -> Result<Vec<Draft>, Refused> {
    let refused = |number| move |error| Refused { number, error };
    let mut drafts = Vec::with_capacity(requests.len());
    for (number, &link) in requests.iter().enumerate() {
        let (direction, _) = link.check(&mesh).map_err(refused(number))?;
        drafts.push(Draft { request: link, direction, wire: None, number });
    }
    let mut segments = Segments::none_taken(mesh);
    // Pieces with an explicit wire come first, because the others can use any wire.
    for given in [true, false] {
        for draft in &mut drafts {
            let Kind::Bypass { wire, .. } = draft.request.kind else { continue };
            if wire.is_some() == given {
                let span = Span::of(&mesh, &draft.request, draft.direction);
                let taken = segments.take(requests, draft.number, span, wire);
                draft.wire = Some(taken.map_err(refused(draft.number))?);
            }
        }
    }
    Ok(drafts)
}

/// Returns the port of every link at one of its ends.
fn ports(mesh: BypassMesh, drafts: &[Draft], end: End) -> Result<Vec<Port>, Refused> {
    let mut at: Vec<Vec<usize>> = vec![Vec::new(); mesh.nodes() as usize];
    for (link, draft) in drafts.iter().enumerate() {
        let node =
            if end == End::Output { draft.request.source } else { draft.request.destination };
        at[node as usize].push(link);
    }
    let mut found = vec![Port::East; drafts.len()];
    for (node, links) in (0..).zip(&at) {
        let taken = Router { mesh, drafts, end, node, links }.ports()?;
        for (port, link) in Port::ALL.into_iter().zip(taken) {
            if let Some(link) = link {
                found[link] = port;
            }
        }
    }
    Ok(found)
}

/// The links at one end of a router.
struct Router<'a> {
    mesh: BypassMesh,
    drafts: &'a [Draft],
    end: End,
    node: u32,
    links: &'a [usize],
}

impl Router<'_> {
    fn ports(&self) -> Result<Taken, Refused> {
        let mut fixed: Taken = [None; 4];
        let mut open = Vec::new();
        for &link in self.links {
            let Some((output, input)) = self.drafts[link].ports() else {
                open.push(Candidate { link, ports: self.choices(link) });
                continue;
            };
            let port = if self.end == End::Output { output } else { input };
            if let Some(other) = fixed[port.index()].replace(link) {
                return Err(self.port_taken(port, link, other));
            }
        }
        assign(&open, &fixed).map_err(|place| self.no_port(&open[place], &open, &fixed))
    }

    /// The ports that a piece may use here.
    fn choices(&self, link: usize) -> Vec<Port> {
        let direction = self.drafts[link].direction;
        match self.end {
            End::Output => self.mesh.muxes().outputs(direction),
            End::Input => self.mesh.muxes().inputs(direction),
        }
    }

    fn end_name(&self) -> &'static str {
        if self.end == End::Output { "output" } else { "input" }
    }

    /// Rejects the later request of two links that need the same port.
    fn port_taken(&self, port: Port, link: usize, other: usize) -> Refused {
        let (link, other) = (&self.drafts[link], &self.drafts[other]);
        let (link, other) = if link.number > other.number { (link, other) } else { (other, link) };
        let error = BypassError::PortTaken {
            link: written(link),
            node: self.node,
            end: self.end_name(),
            port: port.name(),
            other: written(other),
        };
        Refused { number: link.number, error }
    }

    fn no_port(&self, alone: &Candidate, open: &[Candidate], fixed: &Taken) -> Refused {
        let draft = &self.drafts[alone.link];
        let settled = fixed.iter().flatten().copied();
        let others = settled.chain(open.iter().map(|candidate| candidate.link));
        let others: Vec<String> = others
            .filter(|&link| link != alone.link)
            .map(|link| written(&self.drafts[link]))
            .collect();
        let error = BypassError::NoPort {
            link: written(draft),
            node: self.node,
            end: self.end_name(),
            muxes: self.mesh.muxes().name(),
            known: alone.ports.iter().map(|port| port.name()).collect::<Vec<_>>().join(", "),
            others: others.join(", "),
        };
        Refused { number: draft.number, error }
    }
}

/// A link in notation.
fn written(draft: &Draft) -> String {
    let sign = if draft.wire.is_some() { "=>" } else { ">" };
    format!("{}{sign}{}", draft.request.source, draft.request.destination)
}
