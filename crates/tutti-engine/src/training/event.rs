//! The events of a fabric, and the order of simultaneous events.

use super::npu::Piece;
use tutti_units::Time;

/// The kind of an event, in the order of simultaneous events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// A packet has left for the link: its buffer is free.
    Left,
    /// A local packet.
    Own,
    /// A packet from a neighbour.
    Came,
    /// A part of a chunk that is loaded.
    Load,
    /// A part of a chunk that is stored.
    Store,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Event {
    pub(super) time: Time,
    pub(super) chunk: u32,
    pub(super) step: u32,
    pub(super) piece: u32,
    pub(super) hop: u16,
    pub(super) kind: Kind,
    /// The next stop; the link that the packet has left.
    pub(super) stop: u16,
    pub(super) npu: u32,
}

/// A packet at an NPU.
#[derive(Clone, Copy)]
pub(super) struct Job {
    pub(super) npu: u32,
    pub(super) kind: Kind,
    pub(super) at: Piece,
}
