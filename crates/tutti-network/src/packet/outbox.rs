//! Messages that wait at their source: in line for a link, or a port, before anything of them has started.
//!
//! A message waits here whole; its first packet is cut when it is its turn. So what is posted long before
//! it can leave takes one small entry, and the packets under way are bounded by the buffers of the links
//! and by one for each line.

use super::slab::Slab;
use super::ways::Traveller;
use super::{NONE, Ticket};
use tutti_units::Time;

/// A message of which no packet has been cut.
#[derive(Clone, Copy)]
pub(super) struct Posted {
    pub(super) ticket: Ticket,
    /// Of its first packet.
    pub(super) way: Traveller,
    /// The message behind it in its line.
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
        way: Traveller,
        bytes: u64,
        head: Time,
        serial: u64,
    ) -> Posted {
        Posted { ticket, way, next: NONE, bytes, head, serial }
    }
}

/// All such messages, and a line of them for each link and port.
pub(super) struct Outbox {
    posted: Slab<Posted>,
    /// The first and the last of each line.
    lines: Box<[(u32, u32)]>,
}

impl Outbox {
    pub(super) fn new(links: usize) -> Outbox {
        Outbox { posted: Slab::new(), lines: vec![(NONE, NONE); links].into() }
    }

    /// Takes note of a message.
    pub(super) fn post(&mut self, posted: Posted) -> u32 {
        self.posted.put(posted)
    }

    /// A message goes to the end of the line for a link.
    pub(super) fn line_up(&mut self, link: u32, id: u32) {
        let (first, last) = &mut self.lines[link as usize];
        if *last == NONE {
            *first = id;
        } else {
            self.posted[*last].next = id;
        }
        *last = id;
    }

    /// The message whose turn it is at a link.
    #[inline]
    pub(super) fn next(&mut self, link: u32) -> Option<u32> {
        let (first, last) = &mut self.lines[link as usize];
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

    /// Takes a message out that is in no line, or no longer.
    pub(super) fn take(&mut self, id: u32) -> Posted {
        self.posted.remove(id)
    }

    /// The most there ever were at once.
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
