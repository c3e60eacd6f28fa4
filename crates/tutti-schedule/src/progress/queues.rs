//! The queues of pending messages, one per pair of ranks: linked lists of nodes.

use super::pairs::{Pairs, Queue, QueueIndex};
use crate::{ChunkRange, Message, Slot};

/// The meaning of a queue node.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// A receive of the destination's posted step.
    #[default]
    Recv,
    /// A send of the source's posted step, which waits for it.
    Send,
    /// A completed send of the source's posted step.
    Eager,
    /// A send of an earlier step.
    Buffered,
}

#[derive(Clone, Copy, Default)]
pub(super) struct Node {
    pub(super) next: u32,
    /// Its number in its queue.
    pub(super) ordinal: u32,
    /// Read from or written to; for a buffered send, its index in `buffered` instead.
    pub(super) slot: Slot,
    pub(super) chunks: ChunkRange,
    pub(super) kind: Kind,
}

pub(super) struct Queues {
    pub(super) pairs: Pairs,
    /// Node 0 is the null node.
    pub(super) nodes: Vec<Node>,
    /// Nodes in no queue. A separate list, because following links through the nodes waits for
    /// memory.
    free: Vec<u32>,
}

impl Queues {
    pub(super) fn new() -> Queues {
        Queues { pairs: Pairs::new(), nodes: vec![Node::default()], free: Vec::new() }
    }

    /// Returns whether no message is in a queue.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.nodes.len() == self.free.len() + 1
    }

    /// Prefetches the first nodes of queues into the cache.
    #[inline]
    pub(super) fn touch_first(&mut self, places: &[QueueIndex]) {
        let kind = |place: &QueueIndex| self.nodes[self.pairs.at(*place).head as usize].kind as u32;
        std::hint::black_box(places.iter().map(kind).sum::<u32>());
    }

    /// Removes the first node of a non-empty queue.
    #[inline]
    pub(super) fn pop(&mut self, place: QueueIndex, mut queue: Queue) -> Node {
        let first = queue.head;
        let node = self.nodes[first as usize];
        queue.head = node.next;
        if queue.head == 0 {
            queue.tail = 0;
        }
        *self.pairs.at(place) = queue;
        self.free.push(first);
        node
    }

    /// Appends a node to a queue; returns its index and the length of the queue.
    #[inline]
    pub(super) fn append(
        &mut self,
        place: QueueIndex,
        mut queue: Queue,
        kind: Kind,
        message: Message,
    ) -> (u32, u32) {
        let tail = self.nodes[queue.tail as usize];
        let ordinal = if queue.head == 0 { 0 } else { tail.ordinal.wrapping_add(1) };
        let Message { slot, chunks, .. } = message;
        let node = Node { next: 0, ordinal, slot, chunks, kind };
        let index = if let Some(index) = self.free.pop() {
            self.nodes[index as usize] = node;
            index
        } else {
            self.nodes.push(node);
            u32::try_from(self.nodes.len() - 1).expect("fewer than 2^32 messages are pending")
        };
        if queue.head == 0 {
            queue.head = index;
        } else {
            self.nodes[queue.tail as usize].next = index;
        }
        queue.tail = index;
        *self.pairs.at(place) = queue;
        let first = self.nodes[queue.head as usize].ordinal;
        (index, ordinal.wrapping_sub(first).wrapping_add(1))
    }
}
