//! The interface of all designs to their drivers.

use super::counts::Counts;
use super::message::{Arrival, Flow, FlowId, Message};
use crate::FlitError;

/// A network on a chip, cycle by cycle.
///
/// In a cycle the driver sends its packets ([`Fabric::send`], with [`Message::created`] at most
/// [`Fabric::now`]), calls [`Fabric::step`], and receives the arrivals of that cycle. A packet sent
/// in cycle t takes part in arbitration in cycle t if its NIC has no earlier packet. A NIC has an
/// infinite queue for each class and injects a flit per cycle.
pub trait Fabric {
    /// The cycle that the next [`Fabric::step`] runs.
    fn now(&self) -> u64;

    /// The number of nodes.
    fn nodes(&self) -> u32;

    /// Starts a reduction; responses may be sent from now on.
    ///
    /// # Errors
    /// When the flow has no members, or names unknown nodes or an unknown class.
    fn open(&mut self, flow: Flow) -> Result<FlowId, FlitError>;

    /// Frees the table entry of a flow that was [`Flow::held`], once its last response has arrived.
    /// Call it once for each such flow.
    fn release(&mut self, flow: FlowId);

    /// Queues a packet at its source.
    ///
    /// # Errors
    /// When it has no destination, names unknown nodes, or does not fit its class.
    fn send(&mut self, message: Message) -> Result<(), FlitError>;

    /// Packets that the NIC of a node has not started to inject; 0 for fabrics without queues.
    fn queued(&self, _node: u32) -> usize {
        0
    }

    /// Runs a cycle, and pushes its arrivals, ordered by node.
    fn step(&mut self, arrivals: &mut Vec<Arrival>);

    /// Whether nothing is queued or in flight.
    fn is_empty(&self) -> bool;

    /// Skips cycles without events; only when [`Fabric::is_empty`].
    fn skip_to(&mut self, cycle: u64);

    /// The event counters, for energy and statistics.
    fn counts(&self) -> &Counts;

    /// The first cycle after the last move, if packets are in flight and none has moved for
    /// [`super::Settings::patience`] cycles.
    fn stalled_since(&self) -> Option<u64>;
}
