//! The packets that wait for a link: a queue per input and buffer class, served round robin. A queue whose
//! first packet lacks buffer space is blocked until a packet of its class leaves.

use super::{NONE, SOURCE};

/// The input of a packet: the link it arrived on, or [`SOURCE`], and the number of links crossed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Input {
    pub(super) link: u32,
    pub(super) class: u16,
}

impl Input {
    /// The input of packets injected by the NPU.
    pub(super) const SOURCE: Input = Input { link: SOURCE, class: 0 };
}

/// A FIFO queue of the packets of one input, linked through the packets.
#[derive(Clone, Copy)]
struct Queue {
    head: u32,
    tail: u32,
    input: Input,
    /// The next queue in its list; of an unused queue, the next unused one.
    next: u32,
}

/// A list of queues.
#[derive(Clone, Copy)]
pub(super) struct QueueList {
    first: u32,
    last: u32,
}

impl QueueList {
    pub(super) const EMPTY: QueueList = QueueList { first: NONE, last: NONE };

    /// The queue that has been in the list longest.
    #[inline]
    pub(super) fn first(self) -> Option<QueueId> {
        (self.first != NONE).then_some(QueueId(self.first))
    }
}

/// A queue among those of all links.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct QueueId(u32);

/// The queues of one link.
pub(super) struct Waiting {
    /// The ready queues, in round-robin order.
    turn: QueueList,
    /// All queues, including blocked ones.
    open: Vec<(Input, u32)>,
}

impl Waiting {
    pub(super) const EMPTY: Waiting = Waiting { turn: QueueList::EMPTY, open: Vec::new() };

    /// Whether packets of an input wait.
    #[inline]
    pub(super) fn holds(&self, input: Input) -> bool {
        self.open.iter().any(|&(of, _)| of == input)
    }

    /// The next queue to serve.
    #[inline]
    pub(super) fn in_turn(&self) -> Option<QueueId> {
        self.turn.first()
    }
}

/// The neighbour of a packet that was queued.
pub(super) enum Neighbour {
    /// Behind this packet.
    Behind(u32),
    /// Before this packet.
    Before(u32),
    /// The packet is alone in its queue.
    Alone,
}

/// The queues of all links.
pub(super) struct Queues {
    slab: Vec<Queue>,
    unused: u32,
}

impl Queues {
    pub(super) fn new() -> Queues {
        Queues { slab: Vec::new(), unused: NONE }
    }

    /// The packet at the head of a queue, and the input of the queue.
    #[inline]
    pub(super) fn head(&self, queue: QueueId) -> (u32, Input) {
        let Queue { head, input, .. } = self.slab[queue.0 as usize];
        (head, input)
    }

    /// Puts a packet at the tail, or with `first` at the head, of the queue of its input.
    pub(super) fn put(
        &mut self,
        waiting: &mut Waiting,
        input: Input,
        packet: u32,
        first: bool,
    ) -> Neighbour {
        let open = waiting.open.iter().find(|(of, _)| *of == input);
        let Some(&(_, at)) = open else {
            let at = self.open(Queue { head: packet, tail: packet, input, next: NONE });
            waiting.open.push((input, at));
            self.append(&mut waiting.turn, at);
            return Neighbour::Alone;
        };
        let queue = &mut self.slab[at as usize];
        if first {
            Neighbour::Before(std::mem::replace(&mut queue.head, packet))
        } else {
            Neighbour::Behind(std::mem::replace(&mut queue.tail, packet))
        }
    }

    /// Moves the next queue to the end of the round.
    #[inline]
    pub(super) fn rotate(&mut self, waiting: &mut Waiting) {
        let at = self.shift(&mut waiting.turn);
        self.append(&mut waiting.turn, at);
    }

    /// Dequeues the first packet of the next queue; its successor is `next`. The queue moves to the end of
    /// the round, or is closed when it is empty.
    #[inline]
    pub(super) fn take(&mut self, waiting: &mut Waiting, next: u32) {
        let at = self.shift(&mut waiting.turn);
        let queue = &mut self.slab[at as usize];
        if queue.tail == queue.head {
            queue.tail = next;
        }
        queue.head = next;
        if next != NONE {
            return self.append(&mut waiting.turn, at);
        }
        queue.next = self.unused;
        self.unused = at;
        let place = waiting.open.iter().position(|&(_, queue)| queue == at);
        waiting.open.swap_remove(place.expect("a queue that is used is open"));
    }

    /// Blocks the next queue.
    pub(super) fn block(&mut self, waiting: &mut Waiting, blocked: &mut QueueList) {
        let at = self.shift(&mut waiting.turn);
        self.append(blocked, at);
    }

    /// Moves the queue that has been blocked longest to the end of the round.
    pub(super) fn unblock(&mut self, waiting: &mut Waiting, blocked: &mut QueueList) {
        let at = self.shift(blocked);
        self.append(&mut waiting.turn, at);
    }

    fn open(&mut self, queue: Queue) -> u32 {
        let at = self.unused;
        if at == NONE {
            self.slab.push(queue);
            return u32::try_from(self.slab.len() - 1).expect("fewer queues than packets");
        }
        self.unused = self.slab[at as usize].next;
        self.slab[at as usize] = queue;
        at
    }

    #[inline]
    fn append(&mut self, line: &mut QueueList, at: u32) {
        self.slab[at as usize].next = NONE;
        if line.last == NONE {
            line.first = at;
        } else {
            self.slab[line.last as usize].next = at;
        }
        line.last = at;
    }

    /// Removes the first queue of a list that is not empty.
    #[inline]
    fn shift(&self, line: &mut QueueList) -> u32 {
        let at = line.first;
        line.first = self.slab[at as usize].next;
        if line.first == NONE {
            line.last = NONE;
        }
        at
    }
}
