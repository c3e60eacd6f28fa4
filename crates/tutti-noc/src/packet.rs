//! Packets as the network sees them, and flits.

/// The fields of a packet that a routing reads and may change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Head {
    /// How many packets were created before it: draws for a packet depend on this alone.
    pub serial: u64,
    /// The node that sends it.
    pub source: u32,
    /// Its destination node.
    pub destination: u32,
    /// An intermediate node, for routings that choose one.
    pub intermediate: u32,
    /// Routers it has left.
    pub hops: u16,
    /// Its message class (virtual network).
    pub class: u8,
    /// The phase of its route, for routings that have phases.
    pub phase: u8,
}

/// A packet to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Order {
    /// The cycle from which its latency counts.
    pub created: u64,
    /// Its destination node.
    pub destination: u32,
    /// Its length; at least one.
    pub flits: u32,
    /// Its message class.
    pub class: u8,
    /// Larger values win, where allocators use priorities.
    pub priority: i64,
    /// Returned on its delivery.
    pub tag: u64,
}

/// A packet that has arrived.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Delivery {
    /// The cycle in which its last flit is at its destination.
    pub arrived: u64,
    /// The node at which it arrived.
    pub destination: u32,
    /// The node that sent it.
    pub source: u32,
    /// The cycle from which its latency counts.
    pub created: u64,
    /// The cycle in which its first flit was injected.
    pub injected: u64,
    /// The cycle in which its first flit was at its destination.
    pub head_arrived: u64,
    /// Routers it has passed through.
    pub hops: u16,
    /// Its message class.
    pub class: u8,
    /// Its length.
    pub flits: u32,
    /// As ordered.
    pub tag: u64,
    /// How many packets were injected before it.
    pub serial: u64,
}

/// Hands packets to nodes, and learns of deliveries.
///
/// Each node has a FIFO queue for each class, or one for several classes
/// ([`crate::Settings::queues`]). The network requests the next packet of a queue when the one before
/// it has been injected completely.
pub trait Source {
    /// The cycle in which the next packet of a queue is ready, if one is known. Called again after
    /// [`Source::take`], and for an empty queue after [`Source::refilled`].
    fn next_at(&mut self, node: u32, queue: u8) -> Option<u64>;

    /// The next packet of a queue, in a cycle no sooner than [`Source::next_at`] returned.
    fn take(&mut self, node: u32, queue: u8, now: u64) -> Order;

    /// A packet has arrived.
    fn delivered(&mut self, delivery: &Delivery);

    /// Pushes the queues (node, queue) that were empty at the last call and have a packet since,
    /// once each.
    fn refilled(&mut self, queues: &mut Vec<(u32, u8)>);

    /// Pushes the queues (node, queue) whose next packet is ready before the cycle that
    /// [`Source::next_at`] returned, which is not past, once each.
    fn hastened(&mut self, _queues: &mut Vec<(u32, u8)>) {}
}
