//! The events of a fabric, and the order of simultaneous events.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::npu::Piece;
use tutti_network::EventQueue;
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

/// Ordered by its fields, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) time: Time,
    pub(super) chunk: u32,
    pub(super) step: u32,
    pub(super) piece: u32,
    pub(super) hop: u16,
    pub(super) kind: Kind,
    /// The next stop; the link that the packet has left.
    pub(super) stop: u16,
    /// The NPU of the packet; if its route depends on the sender, its receiver.
    pub(super) npu: u32,
}

impl Event {
    /// Everything but the time, as two numbers: NPUs in lockstep differ in the last field only, and
    /// a comparison of eight fields branches at each.
    #[inline]
    fn rank(&self) -> (u128, u64) {
        let high = u128::from(self.chunk) << 96
            | u128::from(self.step) << 64
            | u128::from(self.piece) << 32
            | u128::from(self.hop) << 16
            | self.kind as u128;
        (high, u64::from(self.stop) << 32 | u64::from(self.npu))
    }
}

impl Ord for Event {
    #[inline]
    fn cmp(&self, other: &Event) -> Ordering {
        (self.time, self.rank()).cmp(&(other.time, other.rank()))
    }
}

impl PartialOrd for Event {
    #[inline]
    fn partial_cmp(&self, other: &Event) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The events of a fabric in their order. None is scheduled before the last one removed.
pub(super) struct Events {
    later: EventQueue<Event>,
    /// Those of the current time, including new ones.
    now: BinaryHeap<Reverse<Event>>,
}

impl Events {
    pub(super) fn new() -> Events {
        Events { later: EventQueue::new(), now: BinaryHeap::new() }
    }

    #[inline]
    pub(super) fn push(&mut self, event: Event) {
        debug_assert!(event.time >= self.later.now(), "an event in the past");
        if event.time == self.later.now() {
            self.now.push(Reverse(event));
        } else {
            self.later.push(event.time, event);
        }
    }

    /// The time of the next event.
    #[inline]
    pub(super) fn next(&self) -> Option<Time> {
        if self.now.is_empty() { self.later.earliest() } else { Some(self.later.now()) }
    }

    pub(super) fn pop(&mut self) -> Option<Event> {
        if let Some(Reverse(event)) = self.now.pop() {
            return Some(event);
        }
        self.later.advance_to(self.later.earliest()?);
        let first = self.later.pop()?;
        // Events of one NPU are rarely simultaneous.
        let Some(second) = self.later.pop() else { return Some(first) };
        self.now.extend([first, second].map(Reverse));
        self.now.extend(std::iter::from_fn(|| self.later.pop()).map(Reverse));
        self.now.pop().map(|Reverse(event)| event)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.next().is_none()
    }
}

/// A packet at an NPU.
#[derive(Clone, Copy)]
pub(super) struct Job {
    /// The NPU that handles it.
    pub(super) npu: u32,
    /// The NPU that receives it, if its route depends on the sender; else `npu`.
    pub(super) to: u32,
    pub(super) kind: Kind,
    pub(super) at: Piece,
}

impl Job {
    /// A packet at an NPU that is not on its route to another.
    #[inline]
    pub(super) fn new(npu: u32, kind: Kind, at: Piece) -> Job {
        Job { npu, to: npu, kind, at }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What distinguishes events at equal times, in their order.
    type Fields = (u32, u32, u32, u16, bool, u16, u32);

    fn event(time: Time, fields: Fields) -> Event {
        let (chunk, step, piece, hop, came, stop, npu) = fields;
        let kind = if came { Kind::Came } else { Kind::Own };
        Event { time, chunk, step, piece, hop, kind, stop, npu }
    }

    proptest! {
        /// Compared with a heap of times and fields; half of the actions remove an event.
        #[test]
        fn events_come_by_time_and_fields(
            actions in prop::collection::vec((any::<bool>(), 0_u64..3, any::<Fields>()), 1..200),
        ) {
            let (mut events, mut heap) = (Events::new(), BinaryHeap::new());
            let mut now = Time::ZERO;
            for (removes, ahead, fields) in actions {
                if removes {
                    let expected = heap.pop().map(|Reverse((time, fields))| event(time, fields));
                    prop_assert_eq!(events.next(), expected.map(|event| event.time));
                    now = expected.map_or(now, |event| event.time);
                    prop_assert_eq!(events.pop(), expected);
                } else {
                    let time = now + Time::from_ps(ahead);
                    events.push(event(time, fields));
                    heap.push(Reverse((time, fields)));
                }
                prop_assert_eq!(events.is_empty(), heap.is_empty());
            }
        }
    }
}
