//! The result of a run: outcome and timeline.

use tutti_units::ids::RankId;
use tutti_units::{Bytes, Time};

/// The outcome of one simulated collective.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// When each rank entered the collective.
    pub start: Vec<Time>,
    /// When each rank completed its last op.
    pub finish: Vec<Time>,
    /// Messages sent by ranks; a multicast counts as one.
    pub messages: u64,
    /// Bytes in these.
    pub bytes: u128,
    /// Messages received by ranks: one at each receiver of a multicast, and one per in-network
    /// reduction. Without these, as many as were sent.
    pub delivered: u64,
    /// Bytes in these.
    pub delivered_bytes: u128,
}

/// The activity of a rank during a span of a [`Timeline`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, tutti_units::Named)]
pub enum Activity {
    /// Launching the collective.
    Launch,
    /// Delayed by injected noise.
    Noise,
    /// Sending a message.
    Send,
    /// Blocked until a message arrives.
    Wait,
    /// Receiving a message.
    Recv,
    /// Reducing operands.
    Reduce,
    /// Copying chunks.
    Copy,
    /// Computing (application work).
    Compute,
    /// Sleeping.
    Sleep,
}

/// One activity of a rank. The spans of a rank and channel neither overlap nor leave gaps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// The rank.
    pub rank: RankId,
    /// Its channel, if channels progress concurrently; else 0.
    pub channel: u32,
    /// Its step.
    pub step: u32,
    /// The activity.
    pub activity: Activity,
    /// The start.
    pub start: Time,
    /// The end.
    pub end: Time,
    /// The peer of a send, wait or receive; None for a multicast.
    pub peer: Option<RankId>,
    /// Bytes sent, received or reduced.
    pub bytes: Bytes,
}

/// One message, from its send op to its receive op. A multicast has a record per receiver, an
/// in-network reduction one per sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MessageRecord {
    /// The sender.
    pub source: RankId,
    /// The receiver.
    pub destination: RankId,
    /// Its channel, if channels progress concurrently; else 0.
    pub channel: u32,
    /// Its index among the messages of its pair.
    pub index: u32,
    /// Its size.
    pub bytes: Bytes,
    /// When its send started.
    pub sent: Time,
    /// When its last byte arrived at the destination's port.
    pub arrival: Time,
    /// When the destination had received it.
    pub received: Time,
}

/// All spans and messages of a run, for timelines and traces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// By rank, then channel, then time.
    pub spans: Vec<Span>,
    /// By source, then destination, then index.
    pub messages: Vec<MessageRecord>,
}
