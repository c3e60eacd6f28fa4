//! A configuration: the links that are live, checked against what the mesh has.

use super::asked::{Asked, Kind};
use super::error::BypassError;
use super::mesh::{BypassMesh, Port};
use super::ports::{Candidate, Taken, assign};
use super::segments::{Segments, Span};

/// A live link, in one direction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Link {
    /// The node it leaves.
    pub source: u32,
    /// The node it reaches.
    pub destination: u32,
    /// The bypass wire, of its line and direction, that it is a piece of; none of a mesh link.
    pub wire: Option<u32>,
    /// The port by which it leaves.
    pub output: Port,
    /// The port at which it arrives.
    pub input: Port,
}

impl Link {
    /// Whether it is a piece of a bypass wire.
    #[must_use]
    pub fn is_bypass(&self) -> bool {
        self.wire.is_some()
    }

    /// What links are ordered by: the mesh's first, then by where they lead.
    fn order(&self) -> (bool, u32, u32, Option<u32>) {
        (self.is_bypass(), self.source, self.destination, self.wire)
    }

    /// The same link, settled.
    pub(super) fn asked(&self, with_ports: bool) -> Asked {
        let Link { source, destination, wire, output, input } = *self;
        let ports = with_ports.then_some((output, input));
        let kind = if wire.is_some() { Kind::Bypass { wire, ports } } else { Kind::Mesh };
        Asked { source, destination, kind }
    }
}

/// Why a configuration is refused, and because of which of the links asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refused {
    /// Its number among those asked for.
    pub number: usize,
    /// What is wrong with it.
    pub error: BypassError,
}

/// The live links of a mesh: pieces of a wire share no segment, and every port has one link at most.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Configuration {
    mesh: BypassMesh,
    links: Vec<Link>,
}

/// A link that was checked, on its way to be settled.
#[derive(Clone, Copy)]
struct Draft {
    asked: Asked,
    direction: Port,
    wire: Option<u32>,
    /// Its number among those asked for.
    number: usize,
}

impl Draft {
    fn order(&self) -> (bool, u32, u32, Option<u32>) {
        (self.wire.is_some(), self.asked.source, self.asked.destination, self.wire)
    }

    /// Its ports, where they are settled already.
    fn ports(&self) -> Option<(Port, Port)> {
        match self.asked.kind {
            Kind::Mesh => Some((self.direction, self.direction.opposite())),
            Kind::Bypass { ports, .. } => ports,
        }
    }
}

/// Which end of links a router is at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Output,
    Input,
}

impl Configuration {
    /// Settles which wire and which ports each link gets, where that was left open.
    ///
    /// Wires that were asked for are given first, then the others get the lowest free one in the order of
    /// `asked`. Ports are a matching at every router, which depends on the links alone, not on their order.
    ///
    /// # Errors
    /// When a link cannot be, or two need the same.
    pub fn new(mesh: BypassMesh, asked: &[Asked]) -> Result<Configuration, Refused> {
        let mut drafts = wired(mesh, asked)?;
        drafts.sort_by_key(Draft::order);
        let outputs = ports(mesh, &drafts, End::Output)?;
        let inputs = ports(mesh, &drafts, End::Input)?;
        let links = drafts.iter().zip(outputs).zip(inputs);
        let link = |((draft, output), input): ((&Draft, Port), Port)| Link {
            source: draft.asked.source,
            destination: draft.asked.destination,
            wire: draft.wire,
            output,
            input,
        };
        Ok(Configuration { mesh, links: links.map(link).collect() })
    }

    /// The mesh that is configured.
    #[must_use]
    pub fn mesh(&self) -> &BypassMesh {
        &self.mesh
    }

    /// The live links: those of the mesh first, then by where they leave and arrive, then by wire.
    #[must_use]
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// The mesh links that are live.
    #[must_use]
    pub fn used_mesh_links(&self) -> u64 {
        self.links.iter().filter(|link| !link.is_bypass()).count() as u64
    }

    /// The segments of bypass wires that are part of a piece.
    #[must_use]
    pub fn used_bypass_segments(&self) -> u64 {
        let pieces = self.links.iter().filter(|link| link.is_bypass());
        pieces.map(|piece| u64::from(self.span(piece))).sum()
    }

    /// How many segments a link spans; a mesh link is one long.
    #[must_use]
    pub fn span(&self, link: &Link) -> u32 {
        self.mesh.way(link.source, link.destination).map_or(0, |(_, span)| span)
    }

    /// The ports that no link has: node, side, and whether it is the output.
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

    /// The same with every mesh link live whose ports are idle at both of its ends.
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

/// Idle ports are in this order.
fn key(&(node, port, output): &(u32, Port, bool)) -> (u32, Port, bool) {
    (node, port, !output)
}

/// Checks every link by itself, and gives the pieces their segments.
fn wired(mesh: BypassMesh, asked: &[Asked]) -> Result<Vec<Draft>, Refused> {
    let refused = |number| move |error| Refused { number, error };
    let mut drafts = Vec::with_capacity(asked.len());
    for (number, &link) in asked.iter().enumerate() {
        let (direction, _) = link.check(&mesh).map_err(refused(number))?;
        drafts.push(Draft { asked: link, direction, wire: None, number });
    }
    let mut segments = Segments::none_taken(mesh);
    // What asked for a wire comes first: the others may move out of its way.
    for given in [true, false] {
        for draft in &mut drafts {
            let Kind::Bypass { wire, .. } = draft.asked.kind else { continue };
            if wire.is_some() == given {
                let span = Span::of(&mesh, &draft.asked, draft.direction);
                let taken = segments.take(asked, draft.number, span, wire);
                draft.wire = Some(taken.map_err(refused(draft.number))?);
            }
        }
    }
    Ok(drafts)
}

/// The port of every link at one of its ends.
fn ports(mesh: BypassMesh, drafts: &[Draft], end: End) -> Result<Vec<Port>, Refused> {
    let mut at: Vec<Vec<usize>> = vec![Vec::new(); mesh.nodes() as usize];
    for (link, draft) in drafts.iter().enumerate() {
        let node = if end == End::Output { draft.asked.source } else { draft.asked.destination };
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

    /// The ports that a piece may take here.
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

    /// Of two links that need the same port, the one asked for later is refused.
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

/// A link as it is written.
fn written(draft: &Draft) -> String {
    let sign = if draft.wire.is_some() { "=>" } else { ">" };
    format!("{}{sign}{}", draft.asked.source, draft.asked.destination)
}
