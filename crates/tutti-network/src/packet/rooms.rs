//! The buffers at the ends of links: how full each class is, and which queues stand aside for want of room.

use super::waiting::Line;

/// One class of the buffer at the end of a link.
#[derive(Clone, Copy)]
struct Room {
    used: u64,
    /// Queues whose first packet found no room here.
    aside: Line,
}

impl Room {
    const EMPTY: Room = Room { used: 0, aside: Line::EMPTY };
}

/// All classes of all links, those of a link side by side. There are as many as any packet needed.
pub(super) struct Rooms {
    classes: usize,
    all: Vec<Room>,
}

impl Rooms {
    pub(super) fn new(links: usize) -> Rooms {
        Rooms { classes: 1, all: vec![Room::EMPTY; links] }
    }

    /// Whether so many bytes more fit into a class that holds `capacity`.
    #[inline]
    pub(super) fn has(&self, link: u32, class: u16, capacity: u64, bytes: u64) -> bool {
        let class = usize::from(class);
        class >= self.classes || capacity - self.all[self.place(link, class)].used >= bytes
    }

    /// A packet starts towards a class.
    #[inline]
    pub(super) fn take(&mut self, link: u32, class: u16, bytes: u64) {
        self.room(link, class).used += bytes;
    }

    /// A packet leaves it.
    #[inline]
    pub(super) fn give(&mut self, link: u32, class: u16, bytes: u64) {
        self.room(link, class).used -= bytes;
    }

    /// The queues that stand aside for a class.
    #[inline]
    pub(super) fn aside(&mut self, link: u32, class: u16) -> &mut Line {
        &mut self.room(link, class).aside
    }

    #[inline]
    fn room(&mut self, link: u32, class: u16) -> &mut Room {
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

    /// Packets go farther than any so far.
    #[cold]
    fn widen(&mut self, classes: usize) {
        let classes = classes.next_power_of_two();
        let mut all = Vec::with_capacity(self.all.len() / self.classes * classes);
        for link in self.all.chunks(self.classes) {
            all.extend_from_slice(link);
            all.resize(all.len() + classes - self.classes, Room::EMPTY);
        }
        (self.classes, self.all) = (classes, all);
    }
}
