//! Who waits for a link: a queue per input and buffer class, served in turn. A queue whose first packet
//! finds no room stands aside, so that nobody looks at it again before a packet of its class has left.

use super::{NONE, SOURCE};

/// Where a packet comes from: the link it came over, or [`SOURCE`], and how many it has crossed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Input {
    pub(super) link: u32,
    pub(super) class: u16,
}

impl Input {
    /// That of the NPU's own packets.
    pub(super) const SOURCE: Input = Input { link: SOURCE, class: 0 };
}

/// Packets of one input, first in first out, as a list through the packets themselves.
#[derive(Clone, Copy)]
struct Queue {
    head: u32,
    tail: u32,
    input: Input,
    /// The queue after it in its line; of an unused queue, another unused one.
    next: u32,
}

/// Queues one after the other.
#[derive(Clone, Copy)]
pub(super) struct Line {
    first: u32,
    last: u32,
}

impl Line {
    pub(super) const EMPTY: Line = Line { first: NONE, last: NONE };

    /// The queue that has been there longest.
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
    /// Those in turn.
    turn: Line,
    /// All of them, those that stand aside as well.
    open: Vec<(Input, u32)>,
}

impl Waiting {
    pub(super) const NOBODY: Waiting = Waiting { turn: Line::EMPTY, open: Vec::new() };

    /// Whether packets of an input wait.
    #[inline]
    pub(super) fn holds(&self, input: Input) -> bool {
        self.open.iter().any(|&(of, _)| of == input)
    }

    /// Whether a queue is in turn.
    #[inline]
    pub(super) fn in_turn(&self) -> Option<QueueId> {
        self.turn.first()
    }
}

/// Where in its queue a packet was put.
pub(super) enum Neighbour {
    /// Behind this packet.
    Behind(u32),
    /// Before this packet.
    Before(u32),
    /// Alone.
    Nobody,
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

    /// The packet at the head of a queue, and where all of them come from.
    #[inline]
    pub(super) fn head(&self, queue: QueueId) -> (u32, Input) {
        let Queue { head, input, .. } = self.slab[queue.0 as usize];
        (head, input)
    }

    /// Puts a packet last, or `first`, into the queue of its input.
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
            return Neighbour::Nobody;
        };
        let queue = &mut self.slab[at as usize];
        if first {
            Neighbour::Before(std::mem::replace(&mut queue.head, packet))
        } else {
            Neighbour::Behind(std::mem::replace(&mut queue.tail, packet))
        }
    }

    /// The queue in turn goes to the end of the line.
    #[inline]
    pub(super) fn rotate(&mut self, waiting: &mut Waiting) {
        let at = self.shift(&mut waiting.turn);
        self.append(&mut waiting.turn, at);
    }

    /// Takes the first packet of the queue in turn, whose next one is `next`; the queue goes to the end
    /// of the line, or away when it is empty.
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

    /// The queue in turn stands aside.
    pub(super) fn stand_aside(&mut self, waiting: &mut Waiting, aside: &mut Line) {
        let at = self.shift(&mut waiting.turn);
        self.append(aside, at);
    }

    /// The queue that has stood aside longest comes back to the end of the line.
    pub(super) fn come_back(&mut self, waiting: &mut Waiting, aside: &mut Line) {
        let at = self.shift(aside);
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
    fn append(&mut self, line: &mut Line, at: u32) {
        self.slab[at as usize].next = NONE;
        if line.last == NONE {
            line.first = at;
        } else {
            self.slab[line.last as usize].next = at;
        }
        line.last = at;
    }

    /// Takes the first queue out of a line that is not empty.
    #[inline]
    fn shift(&self, line: &mut Line) -> u32 {
        let at = line.first;
        line.first = self.slab[at as usize].next;
        if line.first == NONE {
            line.last = NONE;
        }
        at
    }
}
