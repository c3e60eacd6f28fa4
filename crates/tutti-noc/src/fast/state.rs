//! Memory layout of the state of routers: a few flat arrays, few bytes for each VC.

use super::bits::Bits;
use crate::{End, PortBuffers, Settings, VcRange, Wiring};

/// No packet, no port.
pub(super) const NONE: u32 = u32::MAX;
/// The owner of an output VC of a node while a packet is injected.
pub(super) const INJECTING: u32 = u32::MAX - 1;

/// A flit: its packet, and whether it is the head or the tail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Flit(u32);

impl Flit {
    #[inline]
    pub(super) fn new(packet: u32, head: bool, tail: bool) -> Flit {
        Flit(packet << 2 | u32::from(head) << 1 | u32::from(tail))
    }

    #[inline]
    pub(super) fn packet(self) -> u32 {
        self.0 >> 2
    }

    #[inline]
    pub(super) fn is_head(self) -> bool {
        self.0 & 2 != 0
    }

    #[inline]
    pub(super) fn is_tail(self) -> bool {
        self.0 & 1 != 0
    }
}

/// The state of the first packet of a VC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// The VC is empty.
    Idle,
    /// Its head is being routed.
    Routing,
    /// It waits for a VC of an output.
    Waiting,
    /// Its VC allocation is in flight.
    Pending,
    /// It has a VC.
    Active,
}

/// An input VC.
#[derive(Clone, Copy, Debug)]
pub(super) struct InVc {
    /// The slot of its buffer that holds the first flit.
    pub(super) front: u16,
    /// Flits in its buffer.
    pub(super) length: u16,
    /// The output VC of the packet that is first.
    pub(super) out: u32,
    /// Its router.
    pub(super) router: u32,
    /// Its number, counted from the router's first.
    pub(super) local: u16,
    /// The output VC that its credits go to, and cycles until they count there.
    pub(super) credits_to: u32,
    pub(super) credit_after: u32,
    /// The output port of its packet, if that has one candidate only.
    pub(super) port: u16,
    /// The VCs of that candidate, a bit for each.
    pub(super) allowed: u64,
    pub(super) stage: Stage,
    /// Whether its packet has several candidates; they are stored elsewhere.
    pub(super) many: bool,
    /// Whether its switch allocation is in flight.
    pub(super) switch_pending: bool,
    /// The output VC that its turn starts with, counted from the router's first; or the number of
    /// these, for the first.
    pub(super) turn: u16,
}

impl InVc {
    /// The VCs of its only candidate.
    pub(super) fn vcs(&self) -> VcRange {
        let (first, last) = (self.allowed.trailing_zeros(), 63 - self.allowed.leading_zeros());
        VcRange { first, last }
    }
}

/// An output VC: the state of the input VC downstream.
#[derive(Clone, Copy, Debug)]
pub(super) struct OutVc {
    /// Free slots in the buffer behind it.
    pub(super) credits: u16,
    /// The input VC that its turn starts with, counted from the router's first; or the number of
    /// these, for the first.
    pub(super) turn: u16,
    /// The input VC whose packet holds it.
    pub(super) owner: u32,
    /// Its output port, and its number there.
    pub(super) port: u32,
    pub(super) vc: u8,
    /// The input VC behind it, or the node.
    pub(super) to: u32,
    /// Flits sent, modulo 2^32.
    pub(super) sent: u32,
}

/// An input port.
#[derive(Clone, Copy, Debug)]
pub(super) struct InPort {
    /// Whether a node injects here.
    pub(super) injected: bool,
    /// The output port of the router that its turn starts with, or the number of these, for the
    /// first; and the VC of the turn.
    pub(super) turn: u32,
    pub(super) vc_turn: u32,
}

/// An output port.
#[derive(Clone, Copy, Debug)]
pub(super) struct OutPort {
    /// Cycles from when a flit leaves its buffer to its arrival there.
    pub(super) after: u32,
    /// The VCs that no packet holds.
    pub(super) free: u64,
    /// Flits that a buffer behind it holds.
    pub(super) capacity: u16,
    /// Flits sent.
    pub(super) sent: u64,
    /// Whether a node ejects here.
    pub(super) ejects: bool,
    /// Cycles from when a node has received a flit to when the credit counts here.
    pub(super) credit_after: u32,
    /// The input port of the router that its turn starts with, or the number of these, for the
    /// first.
    pub(super) turn: u32,
}

/// When an output port can send again: for ports slower than a flit per cycle, and for ports with
/// more than one switch output.
#[derive(Clone, Copy, Debug)]
pub(super) struct Serial {
    /// In picoseconds.
    pub(super) flit_time: u64,
    pub(super) free_at: u64,
    /// The cycle in which the last flit was sent, and one more.
    pub(super) next: u64,
}

impl Serial {
    /// A flit is sent. Matters only to ports slower than a flit per cycle.
    #[inline]
    pub(super) fn occupy(&mut self, now: u64, cycle: u64) {
        if self.flit_time > cycle {
            self.free_at = self.free_at.max(now) + self.flit_time;
        }
    }

    /// A flit is sent that would arrive in a cycle; returns when it does, one flit in each cycle.
    pub(super) fn send(&mut self, now: u64, cycle: u64, arrives: u64) -> u64 {
        self.occupy(now * cycle, cycle);
        let arrives = arrives.max(self.next);
        self.next = arrives + 1;
        arrives
    }
}

/// A router.
#[derive(Clone, Copy, Debug)]
pub(super) struct Router<const W: usize> {
    /// Its first input port and output port.
    pub(super) first_in: u32,
    pub(super) first_out: u32,
    /// Its first input VC and output VC.
    pub(super) first_in_vc: u32,
    pub(super) first_out_vc: u32,
    pub(super) inputs: u32,
    pub(super) outputs: u32,
    /// Input VCs whose packets request an output VC, counted from its first.
    pub(super) vc_requests: Bits<W>,
    /// Input VCs whose next flit has an output VC and a credit.
    pub(super) ready: Bits<W>,
}

/// Ports and VCs of a complete network: those of routers in order, then the nodes'.
pub(super) struct NetworkState<const W: usize> {
    pub(super) routers: Vec<Router<W>>,
    pub(super) in_vcs: Vec<InVc>,
    pub(super) out_vcs: Vec<OutVc>,
    pub(super) in_ports: Vec<InPort>,
    pub(super) out_ports: Vec<OutPort>,
    pub(super) serial: Vec<Serial>,
    /// The channel of each output port.
    pub(super) channels: Vec<u32>,
}

/// Returns the routers without requests, and how many outputs they have together.
fn routers<const W: usize>(wiring: &Wiring, vcs: u32) -> (Vec<Router<W>>, u32) {
    let mut routers = Vec::new();
    let (mut first_in, mut first_out) = (0, 0);
    for router in 0..wiring.routers() {
        let inputs = count(wiring.inputs(router).len());
        let outputs = count(wiring.outputs(router).len());
        routers.push(Router {
            first_in,
            first_out,
            first_in_vc: first_in * vcs,
            first_out_vc: first_out * vcs,
            inputs,
            outputs,
            vc_requests: Bits::EMPTY,
            ready: Bits::EMPTY,
        });
        first_in += inputs;
        first_out += outputs;
    }
    (routers, first_out)
}

impl<const W: usize> NetworkState<W> {
    pub(super) fn of(wiring: &Wiring, settings: &Settings) -> NetworkState<W> {
        let (routers, router_outputs) = routers(wiring, settings.vcs);
        let mut layout = NetworkState {
            routers,
            in_vcs: Vec::new(),
            out_vcs: Vec::new(),
            in_ports: Vec::new(),
            out_ports: Vec::new(),
            serial: Vec::new(),
            channels: Vec::new(),
        };
        for router in 0..wiring.routers() {
            for &channel in wiring.outputs(router) {
                layout.output(wiring, settings, channel, settings.traversal_delay);
            }
        }
        for node in 0..wiring.nodes() {
            layout.output(wiring, settings, wiring.injects(node), 0);
        }
        for router in 0..wiring.routers() {
            for &channel in wiring.inputs(router) {
                layout.input(wiring, settings, channel, router, router_outputs);
            }
        }
        layout
    }

    /// The most inputs or outputs of a router.
    pub(super) fn most_ports(&self) -> u32 {
        self.routers.iter().map(|router| router.inputs.max(router.outputs)).max().unwrap_or(0)
    }

    fn output(&mut self, wiring: &Wiring, settings: &Settings, channel: u32, delay: u32) {
        let wire = wiring.channels()[channel as usize];
        let (to, ejects) = match wire.to {
            End::Router { router, port } => {
                (self.routers[router as usize].first_in_vc + port * settings.vcs, false)
            }
            End::Node(node) => (node, true),
        };
        let port = count(self.out_ports.len());
        let PortBuffers { vcs, buffer } = settings.buffers_behind(&wire);
        self.out_ports.push(OutPort {
            after: delay + wire.parameters.latency + 1,
            free: vcs,
            capacity: low_half(buffer),
            sent: 0,
            ejects,
            credit_after: wire.parameters.credit_latency + 1 + settings.credit_delay,
            turn: 0,
        });
        let flit_time = wire.parameters.flit_time.ps();
        self.serial.push(Serial { flit_time, free_at: 0, next: 0 });
        self.channels.push(channel);
        // VCs that are not there have credits, too: they count as empty, and are never free.
        let credits = low_half(buffer);
        self.out_vcs.extend((0..settings.vcs).map(|vc| {
            let to = if ejects { to } else { to + vc };
            OutVc { credits, turn: 0, owner: NONE, port, vc: low_byte(vc), to, sent: 0 }
        }));
    }

    fn input(
        &mut self,
        wiring: &Wiring,
        settings: &Settings,
        channel: u32,
        router: u32,
        nodes: u32,
    ) {
        let wire = wiring.channels()[channel as usize];
        let (port, injected) = match wire.from {
            End::Router { router, port } => (self.routers[router as usize].first_out + port, false),
            End::Node(node) => (nodes + node, true),
        };
        let counts_after = if injected { 0 } else { settings.credit_delay };
        let first_in_vc = self.routers[router as usize].first_in_vc as usize;
        self.in_ports.push(InPort { injected, turn: 0, vc_turn: 0 });
        let first = self.in_vcs.len() - first_in_vc;
        self.in_vcs.extend((0..settings.vcs).map(|vc| InVc {
            front: 0,
            length: 0,
            out: NONE,
            router,
            local: low_half(count(first) + vc),
            credits_to: port * settings.vcs + vc,
            credit_after: wire.parameters.credit_latency + 1 + counts_after,
            port: 0,
            allowed: 0,
            stage: Stage::Idle,
            many: false,
            switch_pending: false,
            turn: 0,
        }));
    }
}

/// An index into an array that has been built. Unlike [`count`], it does not check.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "arrays are counted by `count` when built")]
pub(super) fn index(number: usize) -> u32 {
    number as u32
}

/// A port, a VC of a router or a count of credits: there are fewer than 2^16.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "bounded by Network::MOST_VCS and settings")]
pub(super) fn low_half(number: u32) -> u16 {
    number as u16
}

/// A VC: there are at most 64.
#[expect(clippy::cast_possible_truncation, reason = "VCs are bounded by settings")]
fn low_byte(vc: u32) -> u8 {
    vc as u8
}

/// Counts are bounded by what a graph may hold.
pub(super) fn count(number: usize) -> u32 {
    u32::try_from(number).expect("fewer than 2^32 of anything")
}
