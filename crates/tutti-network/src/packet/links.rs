//! The state of the links and ports: occupancy, waiting packets, buffer capacity.

use super::waiting::Waiting;
use super::{NONE, Packets};
use tutti_topology::Topology;
use tutti_units::ids::VertexId;
use tutti_units::{Bytes, Time, TimePerByte};

/// The utilisation of a link in a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LinkUse {
    /// Packets that crossed it.
    pub packets: u64,
    /// Their bytes, headers included.
    pub bytes: u64,
    /// How long packets occupied it.
    pub busy: Time,
}

/// A link of the graph, or a port of an NPU: a link from the NPU to itself. It fills two cache lines.
#[repr(align(64))]
pub(super) struct Link {
    /// The destination of which it is the last link, ports included; [`NONE`] of none.
    pub(super) last_of: u32,
    /// The next packet can start at this time.
    pub(super) free: Time,
    /// The time of its next wake event; `Time::MAX` if none is scheduled.
    pub(super) wake: Time,
    pub(super) waiting: Waiting,
    pub(super) latency: Time,
    /// Serialization time of a full packet.
    full: Time,
    rate: TimePerByte,
    /// Queued bytes.
    pub(super) backlog: u64,
    /// Capacity of each class of the buffer at its end, in bytes.
    pub(super) capacity: u64,
    pub(super) usage: LinkUse,
}

impl Link {
    /// Serialization time of a packet of `bytes`, header included.
    #[inline]
    pub(super) fn pass(&self, bytes: u64, full: u64) -> Time {
        if bytes == full { self.full } else { self.rate.of(Bytes(bytes)) }
    }

    /// Queueing delay of a packet that arrives now, behind all queued packets.
    pub(super) fn wait(&self, now: Time) -> Time {
        (self.free - now) + self.rate.of(Bytes(self.backlog))
    }
}

/// The links of a graph, then injection ports, then ejection ports, where there are any.
pub(super) struct Links {
    pub(super) all: Vec<Link>,
    pub(super) count: usize,
    /// The vertex that each ends at.
    ends: Box<[u32]>,
    /// The vertex that each starts at.
    starts: Box<[u32]>,
    injection: u32,
    ejection: u32,
}

impl Links {
    pub(super) fn new(topology: &Topology, packets: &Packets) -> Links {
        let count = topology.link_count();
        let graph = || topology.links().map(|id| topology.link(id));
        let ejects = packets.ejection.is_some();
        let last_of = |to: VertexId| if ejects { NONE } else { to.0 };
        let mut ends: Vec<u32> = graph().map(|link| link.to.0).collect();
        let mut starts: Vec<u32> = graph().map(|link| link.from.0).collect();
        let mut all: Vec<Link> = graph()
            .map(|link| {
                let wire = link.parameters;
                make(packets, last_of(link.to), wire.rate, wire.latency)
            })
            .collect();
        let mut ports = |rate: Option<TimePerByte>, last| {
            let Some(rate) = rate else { return NONE };
            let first = u32::try_from(all.len()).unwrap_or(NONE);
            let npus = 0..topology.npus();
            let last_of = |npu| if last { npu } else { NONE };
            all.extend(npus.clone().map(|npu| make(packets, last_of(npu), rate, Time::ZERO)));
            ends.extend(npus.clone());
            starts.extend(npus);
            first
        };
        let injection = ports(packets.injection, false);
        let ejection = ports(packets.ejection, true);
        Links { all, count, ends: ends.into(), starts: starts.into(), injection, ejection }
    }

    /// The vertex at which a link ends; for a port, the vertex of its NPU.
    #[inline]
    pub(super) fn end(&self, link: u32) -> u32 {
        self.ends[link as usize]
    }

    /// The NPU at whose port, or on one of whose links, a message enters.
    #[inline]
    pub(super) fn start(&self, link: u32) -> u32 {
        self.starts[link as usize]
    }

    /// The injection port of an NPU.
    #[inline]
    pub(super) fn injection(&self, npu: u32) -> Option<u32> {
        (self.injection != NONE).then(|| self.injection + npu)
    }

    /// The ejection port of an NPU.
    #[inline]
    pub(super) fn ejection(&self, npu: u32) -> Option<u32> {
        (self.ejection != NONE).then(|| self.ejection + npu)
    }
}

fn make(packets: &Packets, last_of: u32, rate: TimePerByte, latency: Time) -> Link {
    Link {
        last_of,
        free: Time::ZERO,
        wake: Time::MAX,
        waiting: Waiting::EMPTY,
        latency,
        full: rate.of(packets.size + packets.header),
        rate,
        backlog: 0,
        capacity: rate.bytes_in(latency).0.saturating_add(packets.buffer.0),
        usage: LinkUse::default(),
    }
}

impl std::ops::Index<u32> for Links {
    type Output = Link;

    #[inline]
    fn index(&self, index: u32) -> &Link {
        &self.all[index as usize]
    }
}

impl std::ops::IndexMut<u32> for Links {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut Link {
        &mut self.all[index as usize]
    }
}
