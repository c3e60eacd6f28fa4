//! A torus of FIFO links: the network on which the NPUs of Rashidi et al. 2021 relay packets.
//!
//! A packet occupies a link for its bytes, and arrives after the link's latency. Packets for other
//! NPUs pass the endpoints on their route: along the first ring, then the second, and so on, in the
//! shorter direction.

use tutti_units::{Bytes, Time, TimePerByte};

/// A bidirectional ring of a torus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    /// NPUs on it.
    pub nodes: u32,
    /// Time per byte of a link, per direction.
    pub per_byte: TimePerByte,
    /// Latency of a link.
    pub latency: Time,
}

/// A torus: its rings, the one inside a package first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Torus {
    rings: Vec<Ring>,
    /// Time per byte of each ring after its link, at a store-and-forward switch without contention;
    /// empty: no switch.
    relays: Vec<Option<TimePerByte>>,
}

/// Why a torus is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, tutti_units::Refusal)]
#[refusal(class = "TopologyError")]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum TorusError {
    /// Fewer than two NPUs.
    #[error("a torus of {npus} NPUs has no links: expected at least 2 NPUs")]
    #[refusal(kind = "torus_too_small")]
    TooFew { npus: u64 },
    /// More NPUs than supported.
    #[error("a torus of {npus} NPUs is too large: expected at most 2^24")]
    #[refusal(kind = "torus_too_large")]
    TooMany { npus: u64 },
    /// A ring without nodes.
    #[error("ring {ring} has no NPU: expected at least 1")]
    #[refusal(kind = "empty_ring")]
    NoNodes { ring: usize },
    /// A link without latency: simultaneous events at its two ends have no order.
    #[error("ring {ring} has links of no latency: expected at least 1 ps")]
    NoLatency { ring: usize },
}

impl Torus {
    /// Of these rings.
    ///
    /// # Errors
    /// When there are too few or too many NPUs, or a link takes no time.
    pub fn new(rings: Vec<Ring>) -> Result<Torus, TorusError> {
        if let Some(ring) = rings.iter().position(|ring| ring.nodes == 0) {
            return Err(TorusError::NoNodes { ring });
        }
        if let Some(ring) = rings.iter().position(|ring| ring.latency == Time::ZERO) {
            return Err(TorusError::NoLatency { ring });
        }
        let count = |npus: u64, ring: &Ring| npus.saturating_mul(u64::from(ring.nodes));
        match rings.iter().fold(1, count) {
            npus @ (0 | 1) => Err(TorusError::TooFew { npus }),
            npus if npus > 1 << 24 => Err(TorusError::TooMany { npus }),
            _ => Ok(Torus { relays: vec![None; rings.len()], rings }),
        }
    }

    /// Adds a store-and-forward switch between the NPUs of a ring, with this additional time per
    /// byte.
    #[must_use]
    pub fn relayed(mut self, ring: usize, per_byte: TimePerByte) -> Torus {
        if let Some(relay) = self.relays.get_mut(ring) {
            *relay = Some(per_byte);
        }
        self
    }

    /// Time of `bytes` on a ring after their link.
    #[inline]
    #[must_use]
    pub fn relay(&self, ring: usize, bytes: Bytes) -> Time {
        self.relays[ring].map_or(Time::ZERO, |per_byte| per_byte.of(bytes))
    }

    /// Its rings.
    #[must_use]
    pub fn rings(&self) -> &[Ring] {
        &self.rings
    }

    /// How many NPUs it has.
    #[must_use]
    pub fn npus(&self) -> u32 {
        self.rings.iter().map(|ring| ring.nodes).product()
    }

    /// The neighbour of `npu` on `ring` in the given direction.
    #[must_use]
    pub fn neighbour(&self, npu: u32, ring: usize, direction: u8) -> u32 {
        let stride: u32 = self.rings[..ring].iter().map(|ring| ring.nodes).product();
        let nodes = self.rings[ring].nodes;
        let at = npu / stride % nodes;
        let step = if direction == 0 { 1 } else { nodes - 1 };
        npu - at * stride + (at + step) % nodes * stride
    }

    /// The ring and the direction of the hop after `hop` hops towards the NPU at `offset` from the
    /// sender; None at the destination.
    #[must_use]
    pub fn hop(&self, offset: u32, hop: u32) -> Option<(usize, u8)> {
        let digits = |rest: &mut u32, ring: &Ring| {
            let digit = *rest % ring.nodes;
            *rest /= ring.nodes;
            Some(digit)
        };
        let sum: u32 = self.rings.iter().scan(offset, digits).sum();
        let mut before = hop;
        for (index, (ring, ahead)) in
            self.rings.iter().zip(self.rings.iter().scan(offset, digits)).enumerate()
        {
            let back = ring.nodes - ahead;
            // At half the ring, packets with an odd sum of the other distances take direction 1.
            let tie = u32::from(ahead == back) * ((sum - ahead) & 1);
            let (hops, direction) = if ahead < back + 1 - tie { (ahead, 0) } else { (back, 1) };
            if before < hops {
                return Some((index, direction));
            }
            before -= hops;
        }
        None
    }

    /// The NPU after `hops` hops on the route from `from` to the NPU at `offset`.
    #[must_use]
    pub fn after(&self, from: u32, offset: u32, hops: u32) -> u32 {
        let steps = (0..hops).map_while(|hop| self.hop(offset, hop));
        steps.fold(from, |at, (ring, direction)| self.neighbour(at, ring, direction))
    }

    /// The links of the route to the NPU at `offset` from the sender, two per ring: ascending first.
    #[must_use]
    pub fn route(&self, offset: u32) -> Vec<u16> {
        let hops = (0..).map_while(|hop| self.hop(offset, hop));
        hops.map(|(ring, direction)| Torus::link(ring, direction)).collect()
    }

    /// The number of a link among those of an NPU.
    #[inline]
    #[must_use]
    pub fn link(ring: usize, direction: u8) -> u16 {
        u16::try_from(2 * ring + usize::from(direction)).unwrap_or(u16::MAX)
    }

    /// The first link from one NPU to another; `channel` selects one of two links between them.
    #[must_use]
    pub fn first_link(&self, from: u32, to: u32, channel: u32) -> u16 {
        let offset = self.offset(from, to);
        let (ring, direction) = self.hop(offset, 0).unwrap_or((0, 0));
        let is_double = self.rings[ring].nodes == 2 && self.hop(offset, 1).is_none();
        let direction = if is_double { u8::from(channel % 2 == 1) } else { direction };
        Torus::link(ring, direction)
    }

    /// The offset of NPU `to` from NPU `from`.
    #[must_use]
    pub fn offset(&self, from: u32, to: u32) -> u32 {
        let (mut stride, mut offset) = (1, 0);
        for ring in &self.rings {
            let digit = |npu: u32| npu / stride % ring.nodes;
            offset += (digit(to) + ring.nodes - digit(from)) % ring.nodes * stride;
            stride *= ring.nodes;
        }
        offset
    }
}
