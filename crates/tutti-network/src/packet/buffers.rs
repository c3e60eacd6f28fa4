//! The buffers at the ends of links: the occupancy of each class, and the queues blocked on it.

use super::waiting::QueueList;

/// One class of the buffer at the end of a link.
#[derive(Clone, Copy)]
struct ClassBuffer {
    used: u64,
    /// Queues whose first packet does not fit.
    blocked: QueueList,
}

impl ClassBuffer {
    const EMPTY: ClassBuffer = ClassBuffer { used: 0, blocked: QueueList::EMPTY };
}

/// All classes of all links, contiguous per link; the number of classes grows on demand.
pub(super) struct Buffers {
    classes: usize,
    all: Vec<ClassBuffer>,
}

impl Buffers {
    pub(super) fn new(links: usize) -> Buffers {
        Buffers { classes: 1, all: vec![ClassBuffer::EMPTY; links] }
    }

    /// Whether `bytes` more fit into a class of `capacity` bytes.
    #[inline]
    pub(super) fn fits(&self, link: u32, class: u16, capacity: u64, bytes: u64) -> bool {
        let class = usize::from(class);
        class >= self.classes || capacity - self.all[self.place(link, class)].used >= bytes
    }

    /// Reserves space for a packet that starts towards the class.
    #[inline]
    pub(super) fn reserve(&mut self, link: u32, class: u16, bytes: u64) {
        self.class(link, class).used += bytes;
    }

    /// Releases the space of a packet that leaves the class.
    #[inline]
    pub(super) fn release(&mut self, link: u32, class: u16, bytes: u64) {
        self.class(link, class).used -= bytes;
    }

    /// The queues blocked on a class.
    #[inline]
    pub(super) fn blocked(&mut self, link: u32, class: u16) -> &mut QueueList {
        &mut self.class(link, class).blocked
    }

    #[inline]
    fn class(&mut self, link: u32, class: u16) -> &mut ClassBuffer {
        let class = usize::from(class);
        if class >= self.classes {
            self.widen(class + 1);
        }
        let place = self.place(link, class);
        &mut self.all[place]
    }

    #[inline]
    fn place(&self, link: u32, class: usize) -> usize {
        link as usize * self.classes + class
    }

    /// Adds classes for packets that cross more links than any before.
    #[cold]
    fn widen(&mut self, classes: usize) {
        let classes = classes.next_power_of_two();
        let mut all = Vec::with_capacity(self.all.len() / self.classes * classes);
        for link in self.all.chunks(self.classes) {
            all.extend_from_slice(link);
            all.resize(all.len() + classes - self.classes, ClassBuffer::EMPTY);
        }
        (self.classes, self.all) = (classes, all);
    }
}
