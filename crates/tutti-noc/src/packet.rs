//! Packets as the network sees them, and flits.

/// What a routing knows of a packet, and may note on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Head {
    /// How many packets were created before it: draws for a packet depend on this alone.
    pub serial: u64,
    /// The node that sends it.
    pub source: u32,
    /// The node it goes to.
    pub destination: u32,
    /// A node on the way, for routings that choose one.
    pub intermediate: u32,
    /// Routers it has left.
    pub hops: u16,
    /// Its message class (virtual network).
    pub class: u8,
    /// How far on the way it is, for routings that have phases.
    pub phase: u8,
}

/// A packet to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Order {
    /// The cycle from which its latency counts.
    pub created: u64,
    /// The node it goes to.
    pub destination: u32,
    /// Its length; at least one.
    pub flits: u32,
    /// Its message class.
    pub class: u8,
    /// Larger goes first, where allocators look at priorities.
    pub priority: i64,
    /// Handed back when it has arrived.
    pub tag: u64,
}

/// A packet that has arrived.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Delivery {
    /// The cycle in which its last flit is at its destination.
    pub arrived: u64,
    /// The node it has come to.
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

/// Who sends packets, and hears of what has arrived.
///
/// Each node has a queue for each class, first in first out. The network asks for the next packet of a
/// queue when the one before it has been injected wholly.
pub trait Source {
    /// When the next packet of a queue is there, if one is known: its [`Order::created`]. Asked again
    /// after [`Source::take`], and of a queue for which there was none after [`Source::refilled`].
    fn next_at(&mut self, node: u32, class: u8) -> Option<u64>;

    /// The packet whose time [`Source::next_at`] told.
    fn take(&mut self, node: u32, class: u8) -> Order;

    /// A packet has arrived.
    fn delivered(&mut self, delivery: &Delivery);

    /// Queues (node, class) which have got a packet since they were asked and had none; they are
    /// pushed once each.
    fn refilled(&mut self, queues: &mut Vec<(u32, u8)>);
}
