//! The network of a training run, and the packets on it.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use super::TrainingRunError;
use super::npu::Piece;
use super::operations::Operation;
use super::rounds::InNetwork;
use super::torus::Torus;
use crate::workload::{Content, Transfer};
use tutti_network::flow::{FlowLevel, FlowNetwork, FlowRouting};
use tutti_network::packet::{Choice, Ends, LinkUse, PacketNetwork, PacketRouting, Packets};
use tutti_network::{Carried, Progress, Stepped, Ticket};
use tutti_topology::{Distances, Routes};
use tutti_units::ids::{RankId, VertexId};
use tutti_units::{Bytes, Time, TimePerByte};

/// The network between the endpoints.
#[derive(Clone, Debug)]
pub enum StepNetwork {
    /// FIFO links between neighbours of a torus; NPUs relay packets.
    Torus(Torus),
    /// Messages on any topology; switches and routers forward them without the endpoints.
    Graph(Graph),
    /// Routers of a mesh, which may fork and combine messages.
    Mesh(Arc<dyn Mesh>),
    /// No network: each transfer takes as long as it takes alone.
    Isolated(Isolated),
}

/// A mesh that another crate simulates; NPU i is node i.
pub trait Mesh: fmt::Debug + Send + Sync {
    /// The number of NPUs.
    fn npus(&self) -> u32;

    /// Whether routers fork multicasts.
    fn multicasts(&self) -> bool;

    /// Whether routers reduce.
    fn reduces(&self) -> bool;

    /// The time per byte of the port of an NPU, and the least latency of a message.
    fn port(&self) -> (TimePerByte, Time);

    /// The empty mesh.
    fn network(&self) -> Box<dyn Stepped + '_>;
}

/// The times of transfers alone.
#[derive(Clone, Debug, Default)]
pub struct Isolated {
    /// The number of NPUs.
    pub npus: u32,
    /// The time of each collective.
    pub collectives: BTreeMap<Transfer, Time>,
    /// The time of a message of each size.
    pub messages: BTreeMap<Bytes, Time>,
    /// Whether a group performs its collectives concurrently, not one at a time.
    pub concurrent: bool,
}

impl Isolated {
    /// Checks that all operations have a time.
    pub(super) fn check(&self, operations: &[Operation]) -> Result<(), TrainingRunError> {
        for &operation in operations {
            let (known, name) = match operation {
                Operation::Collective(transfer) => {
                    let transfer = Transfer { level: 0, content: Content::default(), ..transfer };
                    (self.collectives.contains_key(&transfer), transfer.collective.name())
                }
                _ => (self.messages.contains_key(&operation.bytes()), "message"),
            };
            if !known {
                let bytes = operation.bytes();
                return Err(TrainingRunError::NoTime { name, bytes });
            }
        }
        Ok(())
    }

    /// The time of a checked collective.
    pub(super) fn time(&self, operation: Operation) -> Time {
        let Operation::Collective(transfer) = operation else { return Time::ZERO };
        let transfer = Transfer { level: 0, content: Content::default(), ..transfer };
        self.collectives.get(&transfer).copied().unwrap_or(Time::ZERO)
    }

    /// The time of a checked message.
    pub(super) fn message(&self, bytes: Bytes) -> Time {
        self.messages.get(&bytes).copied().unwrap_or(Time::ZERO)
    }
}

/// A topology, and how messages share it.
#[derive(Clone, Debug)]
pub struct Graph {
    /// The routes.
    pub routes: Arc<Routes>,
    /// Chooses among minimal paths instead, with a seed.
    pub choosing: Option<(Arc<Distances>, Choice, u64)>,
    /// The model of contention.
    pub sharing: Sharing,
}

/// A model of contention.
#[derive(Clone, Debug)]
pub enum Sharing {
    /// Flows with these ports.
    Flows(FlowLevel),
    /// Packets.
    Packets(Packets),
}

/// A link that leaves an NPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Exit {
    /// Its number at the NPU; the first of a bundle of parallel links.
    pub(super) link: u16,
    /// That of the bundle.
    pub(super) per_byte: TimePerByte,
    /// The latency of the path that starts with it.
    pub(super) latency: Time,
}

impl StepNetwork {
    /// Whether the network multicasts and reduces.
    pub(super) fn in_network(&self) -> InNetwork {
        let sharing = match self {
            StepNetwork::Graph(Graph { sharing, .. }) => sharing,
            StepNetwork::Mesh(mesh) => {
                return InNetwork { multicasts: mesh.multicasts(), reduces: mesh.reduces() };
            }
            StepNetwork::Torus(_) | StepNetwork::Isolated(_) => return InNetwork::default(),
        };
        let (multicast, reduce) = match sharing {
            Sharing::Flows(flow) => (&flow.multicast, &flow.reduce),
            Sharing::Packets(packets) => (&packets.multicast, &packets.reduce),
        };
        InNetwork { multicasts: multicast.is_some(), reduces: reduce.is_some() }
    }

    /// The number of NPUs.
    #[must_use]
    pub fn npus(&self) -> u32 {
        match self {
            StepNetwork::Torus(torus) => torus.npus(),
            StepNetwork::Graph(graph) => graph.routes.topology().npus(),
            StepNetwork::Mesh(mesh) => mesh.npus(),
            StepNetwork::Isolated(isolated) => isolated.npus,
        }
    }

    /// The time per byte and the latency of each link that leaves an NPU.
    pub(super) fn exits(&self, npu: u32) -> Vec<(TimePerByte, Time)> {
        match self {
            StepNetwork::Torus(torus) => {
                let both = |ring: &super::Ring| [(ring.per_byte, ring.latency); 2];
                torus.rings().iter().flat_map(both).collect()
            }
            StepNetwork::Graph(graph) => {
                let topology = graph.routes.topology();
                let links = topology.links_out(VertexId(npu));
                let of = |link| (topology.parameters(link).rate, topology.parameters(link).latency);
                links.map(of).collect()
            }
            StepNetwork::Mesh(mesh) => vec![mesh.port()],
            StepNetwork::Isolated(_) => Vec::new(),
        }
    }

    /// The link ids of the links that leave an NPU of a graph.
    pub(super) fn exit_links(&self, npu: u32) -> Vec<usize> {
        let StepNetwork::Graph(graph) = self else { return Vec::new() };
        let links = graph.routes.topology().links_out(VertexId(npu));
        links.map(|link| link.0 as usize).collect()
    }

    /// Checks that a message has a path.
    pub(super) fn check_path(&self, from: u32, to: u32) -> Result<(), TrainingRunError> {
        match self {
            StepNetwork::Torus(_) if from == to => Err(TrainingRunError::SelfMessage { npu: from }),
            StepNetwork::Graph(graph) if from == to || !graph.reaches(from, to) => {
                Err(TrainingRunError::NoPath { from, to })
            }
            StepNetwork::Mesh(_) if from == to => Err(TrainingRunError::NoPath { from, to }),
            _ => Ok(()),
        }
    }

    /// The names of the links that leave an NPU: by ring and direction, or by where they lead.
    pub(super) fn names(&self, npu: u32) -> Vec<String> {
        match self {
            StepNetwork::Torus(torus) => {
                let both = |ring| [format!("ring {ring} +"), format!("ring {ring} -")];
                (0..torus.rings().len()).flat_map(both).collect()
            }
            StepNetwork::Graph(graph) => {
                let topology = graph.routes.topology();
                let links = topology.links_out(VertexId(npu));
                let to = |link| topology.vertex_name(topology.link_to(link)).to_owned();
                links.map(to).collect()
            }
            StepNetwork::Mesh(_) => vec!["router".to_owned()],
            StepNetwork::Isolated(_) => Vec::new(),
        }
    }

    /// The first link from one NPU to another.
    pub(super) fn exit(&self, from: u32, to: u32, channel: u32) -> Exit {
        match self {
            StepNetwork::Torus(torus) => {
                let link = torus.first_link(from, to, channel);
                let ring = torus.rings()[usize::from(link) / 2];
                Exit { link, per_byte: ring.per_byte, latency: ring.latency }
            }
            StepNetwork::Graph(graph) => graph.exit(from, to),
            StepNetwork::Mesh(mesh) => {
                let (per_byte, latency) = mesh.port();
                Exit { link: 0, per_byte, latency }
            }
            StepNetwork::Isolated(_) => Exit::default(),
        }
    }
}

impl Graph {
    /// Without a fixed route, the first link of a shortest path.
    pub(super) fn exit(&self, from: u32, to: u32) -> Exit {
        let topology = self.routes.topology();
        let vertex = VertexId(from);
        let link = self.routes.next_link(RankId(from), RankId(to), vertex, 0);
        let first = topology.links_out(vertex).next().unwrap_or(link);
        Exit {
            link: u16::try_from(link.0 - first.0).unwrap_or(u16::MAX),
            per_byte: self.routes.parameters(link).rate,
            latency: self.routes.pair(RankId(from), RankId(to)).latency,
        }
    }

    /// Whether a path connects one NPU to another.
    pub(super) fn reaches(&self, from: u32, to: u32) -> bool {
        !self.routes.has_unreachable_pairs() || self.routes.reach(RankId(from), RankId(to))
    }

    pub(super) fn network(&self) -> Box<dyn Stepped + '_> {
        match &self.sharing {
            Sharing::Flows(level) => {
                let routing = match &self.choosing {
                    Some((distances, ..)) => FlowRouting::Spread(distances),
                    None => FlowRouting::Routed(&self.routes),
                };
                Box::new(FlowNetwork::new(routing, level.clone(), Ends::FREE))
            }
            Sharing::Packets(packets) => {
                let routing = match &self.choosing {
                    &Some((ref distances, choice, seed)) => {
                        PacketRouting::PerPacket { distances, choice, seed }
                    }
                    None => PacketRouting::Routed(&self.routes),
                };
                Box::new(PacketNetwork::new(routing, packets.clone(), Ends::FREE))
            }
        }
    }
}

/// A packet in flight.
#[derive(Clone, Copy)]
pub(super) struct InFlight {
    pub(super) source: u32,
    pub(super) link: u16,
    pub(super) sent: Time,
    pub(super) destination: u32,
    /// At the sender, and as it arrives.
    pub(super) at: Piece,
    pub(super) onward: Piece,
    pub(super) bytes: Bytes,
    has_left: bool,
}

impl InFlight {
    pub(super) fn new(
        (source, link, at): (u32, u16, Piece),
        (destination, onward): (u32, Piece),
        bytes: Bytes,
        sent: Time,
    ) -> InFlight {
        InFlight { source, link, sent, destination, at, onward, bytes, has_left: false }
    }
}

/// What happens to a packet; the first time that it leaves or arrives.
pub(super) enum News {
    Left(InFlight, Time),
    Arrived(InFlight, Time),
}

/// The packets of endpoints as messages of a network.
pub(super) struct Messages<'a> {
    network: Box<dyn Stepped + 'a>,
    /// Whether the network reports when a message has left its sender.
    reports: bool,
    packets: Vec<InFlight>,
    unused: Vec<u32>,
    arrived: Option<(InFlight, Time)>,
    /// The packets that wait, by sender and queue; present while one of the queue is in the network.
    waiting: BTreeMap<(u32, u16), VecDeque<InFlight>>,
}

impl<'a> Messages<'a> {
    /// The empty network; None where it carries no messages.
    pub(super) fn new(network: &'a StepNetwork) -> Option<Messages<'a>> {
        let (network, reports) = match network {
            StepNetwork::Graph(graph) => {
                (graph.network(), matches!(graph.sharing, Sharing::Flows(_)))
            }
            StepNetwork::Mesh(mesh) => (mesh.network(), false),
            StepNetwork::Torus(_) | StepNetwork::Isolated(_) => return None,
        };
        Some(Messages {
            network,
            reports,
            packets: Vec::new(),
            unused: Vec::new(),
            arrived: None,
            waiting: BTreeMap::new(),
        })
    }

    /// Whether the network buffers packets at their senders: endpoints do not wait for links.
    pub(super) fn buffers(&self) -> bool {
        !self.reports
    }

    /// The utilisation of each link of the graph, by link id.
    pub(super) fn used_links(&self) -> Vec<LinkUse> {
        self.network.used_links()
    }

    /// Sends a packet. The packets from one NPU to another are served first come, first served: only
    /// the first of them is in the network, unless that has buffers.
    pub(super) fn send(&mut self, packet: InFlight) {
        if self.reports {
            let link = (packet.source, packet.link);
            if let Some(waiting) = self.waiting.get_mut(&link) {
                return waiting.push_back(packet);
            }
            self.waiting.insert(link, VecDeque::new());
        }
        self.inject(packet);
    }

    /// A packet has left: its queue serves the next one.
    fn serve_next(&mut self, left: &InFlight, now: Time) {
        let link = (left.source, left.link);
        match self.waiting.get_mut(&link).and_then(VecDeque::pop_front) {
            Some(next) => self.inject(InFlight { sent: now, ..next }),
            None => drop(self.waiting.remove(&link)),
        }
    }

    /// Sends the packets of a multicast or, `inwards`, of a combine as one message.
    pub(super) fn send_tree(&mut self, packets: Vec<InFlight>, inwards: bool) {
        let sent: Vec<_> = packets.into_iter().map(|packet| self.ticketed(packet)).collect();
        self.network.send_tree(&sent, inwards);
    }

    fn inject(&mut self, packet: InFlight) {
        let (ticket, carried) = self.ticketed(packet);
        self.network.send(ticket, carried);
    }

    fn ticketed(&mut self, packet: InFlight) -> (Ticket, Carried) {
        let (source, destination) = (RankId(packet.source), RankId(packet.destination));
        let carried = Carried { source, destination, bytes: packet.bytes, arrival: packet.sent };
        let ticket = match self.unused.pop() {
            Some(ticket) => {
                self.packets[ticket as usize] = packet;
                ticket
            }
            None => {
                self.packets.push(packet);
                u32::try_from(self.packets.len() - 1).expect("fewer than 2^32 packets in flight")
            }
        };
        (Ticket(ticket), carried)
    }

    /// What happens next, but not after `until`. A packet leaves before it arrives.
    pub(super) fn next(&mut self, until: Time) -> Option<News> {
        if let Some((packet, time)) = self.arrived.take() {
            return Some(News::Arrived(packet, time));
        }
        match self.network.progress(until)? {
            Progress::Left(ticket, time) => {
                let packet = &mut self.packets[ticket.0 as usize];
                packet.has_left = true;
                let packet = *packet;
                self.serve_next(&packet, time);
                Some(News::Left(packet, time))
            }
            Progress::Arrived(ticket, time) => {
                self.unused.push(ticket.0);
                let packet = self.packets[ticket.0 as usize];
                if packet.has_left || !self.reports {
                    return Some(News::Arrived(packet, time));
                }
                self.arrived = Some((packet, time));
                self.serve_next(&packet, time);
                Some(News::Left(packet, time))
            }
        }
    }
}
