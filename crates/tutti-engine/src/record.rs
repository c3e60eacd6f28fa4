//! What a run leaves behind, as it happened.

use tutti_units::ids::RankId;
use tutti_units::{Bytes, Time};

/// The outcome of one simulated collective.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// When each rank entered the collective.
    pub start: Vec<Time>,
    /// When each rank had done its last op.
    pub finish: Vec<Time>,
    /// Messages that ranks handed to the network; one that it forks is one.
    pub messages: u64,
    /// Bytes in these.
    pub bytes: u128,
    /// Messages that ranks took: one at each receiver of one that was forked, and one where the network combined
    /// several. As many as were handed over where it does neither.
    pub delivered: u64,
    /// Bytes in these.
    pub delivered_bytes: u128,
}

/// What a rank does during a span of a [`Timeline`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, tutti_units::Named)]
pub enum Activity {
    /// Delayed by injected noise.
    Noise,
    /// Handing a message to the network.
    Send,
    /// Nothing to do until a message arrives.
    Wait,
    /// Taking a message from the network.
    Recv,
    /// Folding operands.
    Reduce,
    /// Copying chunks.
    Copy,
    /// The application's own work.
    Compute,
    /// Sleeping.
    Sleep,
}

/// One thing a rank did, from when to when. A rank's spans neither overlap nor leave gaps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// Who.
    pub rank: RankId,
    /// In which of its steps.
    pub step: u32,
    /// What.
    pub activity: Activity,
    /// From.
    pub start: Time,
    /// To.
    pub end: Time,
    /// The other rank of a send, wait or receive; none where the network forks what is sent to several.
    pub peer: Option<RankId>,
    /// Bytes sent, received or folded.
    pub bytes: Bytes,
}

/// One message, from the send op that made it to the receive op that took it. Of one that the network forks there is
/// a record for each receiver, and of what it combines one for each sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MessageRecord {
    /// The sender.
    pub source: RankId,
    /// The receiver.
    pub destination: RankId,
    /// Its place among the messages from this source to this destination.
    pub index: u32,
    /// Its size.
    pub bytes: Bytes,
    /// When its send began.
    pub sent: Time,
    /// When it was wholly at the destination's port.
    pub arrival: Time,
    /// When the destination held it.
    pub received: Time,
}

/// Everything that happened, for drawings and traces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// By rank, then time.
    pub spans: Vec<Span>,
    /// By source, then destination, then index.
    pub messages: Vec<MessageRecord>,
}
