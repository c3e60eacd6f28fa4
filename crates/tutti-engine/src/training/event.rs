//! What happens on a fabric, and the order of what happens at one time.

use super::npu::Piece;
use tutti_units::Time;

/// What an event is about; the order is that of events of one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// A piece has left for the link: its buffer is free.
    Left,
    /// A piece of the NPU's own.
    Own,
    /// A piece from a neighbour.
    Came,
    /// Part of a chunk that is fetched.
    Load,
    /// Part of a chunk that is put back.
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
    /// The stop that comes next.
    pub(super) stop: u8,
    pub(super) npu: u32,
}

/// A piece at an NPU.
#[derive(Clone, Copy)]
pub(super) struct Job {
    pub(super) npu: u32,
    pub(super) kind: Kind,
    pub(super) at: Piece,
}
