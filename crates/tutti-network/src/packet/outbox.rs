//! Messages that wait at their source, queued per link or port before their first packet starts.
//!
//! A waiting message is one small entry; its first packet is created at the head of its queue. The packets
//! in flight are therefore bounded by the buffers of the links plus one per queue.

use super::routing::Traveller;
use super::{NONE, Ticket};
use crate::slab::Slab;
use tutti_units::Time;

/// A message without packets yet.
#[derive(Clone, Copy)]
pub(super) struct Posted {
    pub(super) ticket: Ticket,
    /// The routing state of its first packet.
    pub(super) traveller: Traveller,
    /// The next message in its queue.
    next: u32,
    pub(super) bytes: u64,
    /// When its first byte is at its source's port.
    pub(super) head: Time,
    /// How many messages were sent before it.
    pub(super) serial: u64,
}

impl Posted {
    /// The `serial`-th message, whose first byte is at its source's port at `head`.
    pub(super) fn new(
        ticket: Ticket,
        traveller: Traveller,
        bytes: u64,
        head: Time,
        serial: u64,
    ) -> Posted {
        Posted { ticket, traveller, next: NONE, bytes, head, serial }
    }
}

/// All posted messages, and a FIFO queue of them per link and port.
pub(super) struct Outbox {
    posted: Slab<Posted>,
    /// The first and the last message of each queue.
    queues: Box<[(u32, u32)]>,
}

impl Outbox {
    pub(super) fn new(links: usize) -> Outbox {
        Outbox { posted: Slab::new(), queues: vec![(NONE, NONE); links].into() }
    }

    /// Stores a message.
    pub(super) fn post(&mut self, posted: Posted) -> u32 {
        self.posted.put(posted)
    }

    /// Appends a message to the queue of a link.
    pub(super) fn enqueue(&mut self, link: u32, id: u32) {
        let (first, last) = &mut self.queues[link as usize];
        if *last == NONE {
            *first = id;
        } else {
            self.posted[*last].next = id;
        }
        *last = id;
    }

    /// Dequeues the first message of a link.
    #[inline]
    pub(super) fn next(&mut self, link: u32) -> Option<u32> {
        let (first, last) = &mut self.queues[link as usize];
        let id = *first;
        if id == NONE {
            return None;
        }
        *first = self.posted[id].next;
        if *first == NONE {
            *last = NONE;
        }
        Some(id)
    }

    /// Removes a message that is not in a queue.
    pub(super) fn take(&mut self, id: u32) -> Posted {
        self.posted.remove(id)
    }

    /// The peak number of posted messages.
    pub(super) fn most(&self) -> usize {
        self.posted.most()
    }
}

impl std::ops::Index<u32> for Outbox {
    type Output = Posted;

    #[inline]
    fn index(&self, index: u32) -> &Posted {
        &self.posted[index]
    }
}

impl std::ops::IndexMut<u32> for Outbox {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut Posted {
        &mut self.posted[index]
    }
}
