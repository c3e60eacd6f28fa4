//! What is wired to what: routers, the channels between their ports, and where nodes hang.
//!
//! A *node* injects and ejects; node n is NPU n unless NPUs are several. A *channel* carries a flit
//! from an output port to an input port, and credits back. Ports of a router are numbered from
//! zero, outputs and inputs apart. An NPU may be several nodes of its router, so that it injects
//! and ejects as many flits in a cycle.
//!
//! A `Topology` is not enough for a flit engine: leaf NPUs have no router, NPUs have several ports,
//! channels to nodes are no links, and times are in cycles. Engines copy a wiring into flat arrays.

use std::sync::Arc;

use super::{FlitError, Settings};
use tutti_topology::{Link, LinkParameters, Topology, VertexKind};
use tutti_units::ids::{LinkId, VertexId};
use tutti_units::{Bytes, Length, Time};

/// One end of a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// A port of a router.
    Router {
        /// Which router.
        router: u32,
        /// Which of its outputs, where the channel starts there, or inputs, where it ends there.
        port: u32,
    },
    /// A node.
    Node(u32),
}

/// What a channel is like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChannelParameters {
    /// Cycles from when a flit is sent to when it is there.
    pub latency: u32,
    /// Cycles that a credit takes in the other direction.
    pub credit_latency: u32,
    /// How long it is busy with a flit.
    pub flit_time: Time,
    /// Where it is known.
    pub length: Option<Length>,
}

/// A one-directional channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Channel {
    /// Where flits enter it.
    pub from: End,
    /// Where they leave it.
    pub to: End,
    /// What it is like.
    pub parameters: ChannelParameters,
}

/// Routers, channels and nodes. Built with [`Wiring::new`] and [`Wiring::connect`], or from a
/// graph.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wiring {
    cycle: Time,
    nodes: u32,
    /// Nodes of each NPU.
    ports: u32,
    channels: Vec<Channel>,
    /// Per router, the channel of each output port.
    outputs: Vec<Vec<u32>>,
    /// Per router, the channel of each input port.
    inputs: Vec<Vec<u32>>,
    /// Per node, the channels into the network and out of it.
    injects: Vec<u32>,
    ejects: Vec<u32>,
    graph: Option<RouterGraph>,
}

/// The graph that a wiring was built from.
#[derive(Clone, PartialEq, Eq, Debug)]
struct RouterGraph {
    topology: Arc<Topology>,
    /// Per router, its vertex.
    vertices: Vec<VertexId>,
    /// Per vertex, its router; none at leaves.
    routers: Vec<u32>,
    /// Per link, the output port it is at the router it leaves; none where it leaves a node.
    ports: Vec<u32>,
}

const NONE: u32 = u32::MAX;

impl Wiring {
    /// So many routers and nodes, not yet connected.
    #[must_use]
    pub fn new(routers: u32, nodes: u32, cycle: Time) -> Wiring {
        Wiring {
            cycle,
            nodes,
            ports: 1,
            channels: Vec::new(),
            outputs: vec![Vec::new(); routers as usize],
            inputs: vec![Vec::new(); routers as usize],
            injects: vec![NONE; nodes as usize],
            ejects: vec![NONE; nodes as usize],
            graph: None,
        }
    }

    /// Adds a channel from router to router; the output port and the input port it takes are the
    /// next ones that are free.
    pub fn connect(&mut self, from: u32, to: u32, parameters: ChannelParameters) -> (u32, u32) {
        let (output, input) = (self.next_output(from), self.next_input(to));
        self.add(Channel {
            from: End::Router { router: from, port: output },
            to: End::Router { router: to, port: input },
            parameters,
        });
        (output, input)
    }

    /// Hangs a node on a router: the input port it injects into and the output port it ejects from.
    pub fn attach(
        &mut self,
        node: u32,
        router: u32,
        injection: ChannelParameters,
        ejection: ChannelParameters,
    ) -> (u32, u32) {
        self.attach_between(node, (router, injection), (router, ejection))
    }

    /// The same where a node injects into one router and ejects from another, as in a butterfly.
    pub fn attach_between(
        &mut self,
        node: u32,
        (to, injection): (u32, ChannelParameters),
        (from, ejection): (u32, ChannelParameters),
    ) -> (u32, u32) {
        let (input, output) = (self.next_input(to), self.next_output(from));
        self.injects[node as usize] = self.add(Channel {
            from: End::Node(node),
            to: End::Router { router: to, port: input },
            parameters: injection,
        });
        self.ejects[node as usize] = self.add(Channel {
            from: End::Router { router: from, port: output },
            to: End::Node(node),
            parameters: ejection,
        });
        (input, output)
    }

    fn next_output(&self, router: u32) -> u32 {
        count(self.outputs[router as usize].len())
    }

    fn next_input(&self, router: u32) -> u32 {
        count(self.inputs[router as usize].len())
    }

    fn add(&mut self, channel: Channel) -> u32 {
        let id = count(self.channels.len());
        if let End::Router { router, .. } = channel.from {
            self.outputs[router as usize].push(id);
        }
        if let End::Router { router, .. } = channel.to {
            self.inputs[router as usize].push(id);
        }
        self.channels.push(channel);
        id
    }

    /// The network of a graph: each vertex is a router, except NPUs that have one link out and one
    /// in, neither to or from an NPU: they are nodes without a router. Each other NPU is the node
    /// of a dedicated router, over `port` channels. Links come first among a router's ports, in the
    /// order of their ids.
    ///
    /// A link's latency is rounded up to integer cycles, and is at least one.
    ///
    /// # Errors
    /// When the cycle is of no length, or a latency is of too many cycles.
    pub fn of(
        topology: Arc<Topology>,
        cycle: Time,
        flit: Bytes,
        port: ChannelParameters,
    ) -> Result<Wiring, FlitError> {
        Wiring::with_ports(topology, cycle, flit, port, 1)
    }

    /// The same where each NPU is so many nodes of its router: p x `ports` to those before (p + 1)
    /// x `ports` of NPU p.
    ///
    /// # Errors
    /// As [`Wiring::of`], and when there are several and an NPU has no dedicated router.
    pub fn with_ports(
        topology: Arc<Topology>,
        cycle: Time,
        flit: Bytes,
        port: ChannelParameters,
        ports: u32,
    ) -> Result<Wiring, FlitError> {
        if cycle == Time::ZERO {
            return Err(FlitError::NoCycle);
        }
        let graph = RouterGraph::of(topology);
        let nodes = graph.topology.npus().saturating_mul(ports);
        let mut wiring = Wiring::new(count(graph.vertices.len()), nodes, cycle);
        wiring.ports = ports;
        for link in graph.topology.links() {
            let link = graph.topology.link(link);
            let (from, to) = (graph.routers[link.from.index()], graph.routers[link.to.index()]);
            if from != NONE && to != NONE {
                wiring.connect(from, to, parameters(&link.parameters, cycle, flit)?);
            }
        }
        for node in 0..graph.topology.npus() {
            let router = graph.routers[node as usize];
            if router != NONE {
                for own in node * ports..(node + 1) * ports {
                    wiring.attach(own, router, port, port);
                }
                continue;
            }
            wiring.attach_leaf(&graph, node, flit)?;
        }
        wiring.graph = Some(graph);
        Ok(wiring)
    }

    /// Hangs an NPU without a dedicated router on the routers of its links.
    fn attach_leaf(
        &mut self,
        graph: &RouterGraph,
        node: u32,
        flit: Bytes,
    ) -> Result<(), FlitError> {
        let npu = VertexId(node);
        if self.ports > 1 {
            let name = graph.topology.vertex_name(npu);
            let problem = format!(
                "{name} hangs on a router by one link per direction, which limits it; expected at most 1"
            );
            return Err(FlitError::Clash { what: "flits per cycle of an NPU", problem });
        }
        let (out, back) = leaf_links(&graph.topology, npu);
        let injection = parameters(&out.parameters, self.cycle, flit)?;
        let ejection = parameters(&back.parameters, self.cycle, flit)?;
        let (to, from) = (graph.routers[out.to.index()], graph.routers[back.from.index()]);
        self.attach_between(node, (to, injection), (from, ejection));
        Ok(())
    }

    /// Sets the time of a flit on the ports between nodes and dedicated routers, by direction: what
    /// limits how much a node injects and ejects. Links of the graph keep their rates.
    pub fn limit_ports(&mut self, injection: Time, ejection: Time) {
        for node in (0..self.nodes).filter(|&node| !self.is_leaf(node)).collect::<Vec<_>>() {
            let (into, out) = (self.injects(node), self.ejects(node));
            self.channels[into as usize].parameters.flit_time = injection;
            self.channels[out as usize].parameters.flit_time = ejection;
        }
    }

    /// The length of a cycle.
    #[must_use]
    pub fn cycle(&self) -> Time {
        self.cycle
    }

    /// How many nodes there are.
    #[must_use]
    pub fn nodes(&self) -> u32 {
        self.nodes
    }

    /// How many nodes each NPU is.
    #[must_use]
    pub fn ports(&self) -> u32 {
        self.ports
    }

    /// The NPU that a node is of.
    #[must_use]
    pub fn npu(&self, node: u32) -> u32 {
        node / self.ports
    }

    /// How many routers there are.
    #[must_use]
    pub fn routers(&self) -> u32 {
        count(self.outputs.len())
    }

    /// Every channel.
    #[must_use]
    pub fn channels(&self) -> &[Channel] {
        &self.channels
    }

    /// The channels of a router's output ports, in order of the ports.
    #[must_use]
    pub fn outputs(&self, router: u32) -> &[u32] {
        &self.outputs[router as usize]
    }

    /// The channels of a router's input ports, in order of the ports.
    #[must_use]
    pub fn inputs(&self, router: u32) -> &[u32] {
        &self.inputs[router as usize]
    }

    /// The channel into the network of a node.
    #[must_use]
    pub fn injects(&self, node: u32) -> u32 {
        self.injects[node as usize]
    }

    /// The channel out of the network to a node.
    #[must_use]
    pub fn ejects(&self, node: u32) -> u32 {
        self.ejects[node as usize]
    }

    /// The router that a node ejects from, and the output port that leads to the node.
    #[must_use]
    pub fn home(&self, node: u32) -> (u32, u32) {
        match self.channels[self.ejects(node) as usize].from {
            End::Router { router, port } => (router, port),
            End::Node(_) => unreachable!("a node ejects from a router"),
        }
    }

    /// The graph that it was built from, if it was.
    #[must_use]
    pub fn topology(&self) -> Option<&Arc<Topology>> {
        self.graph.as_ref().map(|graph| &graph.topology)
    }

    /// The vertex of a router, where the wiring was built from a graph.
    #[must_use]
    pub fn vertex(&self, router: u32) -> Option<VertexId> {
        self.graph.as_ref()?.vertices.get(router as usize).copied()
    }

    /// The output port of a link of the graph, if it has a router at either end.
    #[must_use]
    pub fn port_of(&self, link: LinkId) -> Option<u32> {
        let port = *self.graph.as_ref()?.ports.get(link.index())?;
        (port != NONE).then_some(port)
    }

    /// What an end is called: the vertex of the graph, if the wiring was built from one.
    #[must_use]
    pub fn name(&self, end: End) -> String {
        let (vertex, plain) = match end {
            End::Router { router, .. } => (self.vertex(router), format!("router {router}")),
            End::Node(node) => (Some(VertexId(self.npu(node))), format!("node {node}")),
        };
        let graph = self.topology().zip(vertex);
        graph.map_or(plain, |(graph, vertex)| graph.vertex_name(vertex).to_owned())
    }

    /// Refuses channels that take longer for a flit of that size than a cycle of their slower end.
    ///
    /// # Errors
    /// When there is one.
    pub fn check_widths(&self, flit: Bytes, settings: &Settings) -> Result<(), FlitError> {
        let cycle_of = |channel: &Channel| {
            let [from, to] = settings.clocks_of(channel, self.cycle);
            from.period.max(to.period)
        };
        let narrow = |channel: &&Channel| channel.parameters.flit_time > cycle_of(channel);
        let Some(channel) = self.channels.iter().find(narrow) else { return Ok(()) };
        let cycle = cycle_of(channel);
        let time = u128::from(channel.parameters.flit_time.ps());
        let carried = u128::from(flit.0) * u128::from(cycle.ps()) / time;
        Err(FlitError::TooWide {
            flit,
            from: self.name(channel.from),
            to: self.name(channel.to),
            carries: Bytes(u64::try_from(carried).unwrap_or(flit.0)),
            cycle,
        })
    }

    /// The channel that a link of the graph is.
    #[must_use]
    pub fn channel_of(&self, link: LinkId) -> Option<u32> {
        let graph = self.graph.as_ref()?;
        let Link { from, to, .. } = graph.topology.link(link);
        let router = |vertex: VertexId| {
            let router = graph.routers[vertex.index()];
            (router != NONE).then_some(router)
        };
        match (router(from), router(to)) {
            (None, _) => Some(self.injects(from.0)),
            (_, None) => Some(self.ejects(to.0)),
            (Some(router), _) => Some(self.outputs(router)[self.port_of(link)? as usize]),
        }
    }

    /// Whether a node hangs on a router by links of the graph, without a dedicated router.
    #[must_use]
    pub fn is_leaf(&self, node: u32) -> bool {
        self.graph.as_ref().is_some_and(|graph| graph.routers[self.npu(node) as usize] == NONE)
    }
}

impl RouterGraph {
    fn of(topology: Arc<Topology>) -> RouterGraph {
        let mut routers = vec![NONE; topology.vertex_count()];
        let mut vertices = Vec::new();
        for vertex in topology.vertices().filter(|&vertex| !is_leaf(&topology, vertex)) {
            routers[vertex.index()] = count(vertices.len());
            vertices.push(vertex);
        }
        let mut next = vec![0; vertices.len()];
        let mut port = |link: LinkId| {
            let link = topology.link(link);
            let (from, to) = (routers[link.from.index()], routers[link.to.index()]);
            if from == NONE || to == NONE {
                return NONE;
            }
            next[from as usize] += 1;
            next[from as usize] - 1
        };
        let ports = topology.links().map(&mut port).collect();
        RouterGraph { topology, vertices, routers, ports }
    }
}

/// An NPU with one link out and one link in, to and from a router or switch, or two of them.
fn is_leaf(topology: &Topology, vertex: VertexId) -> bool {
    let mut out = topology.links_out(vertex);
    let (Some(only), None) = (out.next(), out.next()) else { return false };
    let to = topology.link_to(only);
    let [back] = *topology.links_in(vertex) else { return false };
    topology.kind(vertex) == VertexKind::Npu
        && topology.kind(to) != VertexKind::Npu
        && topology.kind(topology.link_from(back)) != VertexKind::Npu
}

fn leaf_links(topology: &Topology, vertex: VertexId) -> (Link, Link) {
    let out = topology.links_out(vertex).next().expect("a leaf has a link out");
    (topology.link(out), topology.link(topology.links_in(vertex)[0]))
}

fn parameters(
    link: &LinkParameters,
    cycle: Time,
    flit: Bytes,
) -> Result<ChannelParameters, FlitError> {
    let latency = cycles(link.latency, cycle)?.max(1);
    let flit_time = link.rate.of(flit);
    Ok(ChannelParameters { latency, credit_latency: latency, flit_time, length: link.length })
}

/// So long in integer cycles, rounded up.
fn cycles(time: Time, cycle: Time) -> Result<u32, FlitError> {
    let cycles = time.ps().div_ceil(cycle.ps());
    u32::try_from(cycles)
        .ok()
        .filter(|&cycles| cycles <= super::LONGEST_DELAY)
        .ok_or(FlitError::TooManyCycles { time, cycle, most: super::LONGEST_DELAY })
}

/// Counts are bounded by what a graph may hold.
fn count(number: usize) -> u32 {
    u32::try_from(number).expect("fewer than 2^32 of anything")
}
