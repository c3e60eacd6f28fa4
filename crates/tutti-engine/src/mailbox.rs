//! Mailboxes: messages in flight or arrived, one queue per receiver, all in one slab.

use tutti_units::Time;
use tutti_units::ids::RankId;

/// No letter.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Letter {
    arrival: Time,
    source: RankId,
    next: u32,
}

/// A rank's queue: letters in the order they were sent.
#[derive(Clone, Copy)]
pub(super) struct Mailbox {
    head: u32,
    tail: u32,
    count: u32,
}

impl Mailbox {
    pub(super) const EMPTY: Mailbox = Mailbox { head: NONE, tail: NONE, count: 0 };

    #[inline]
    pub(super) fn count(self) -> u32 {
        self.count
    }
}

/// The slab that all mailboxes share; a letter taken leaves its place to the next one sent.
#[derive(Default)]
pub(super) struct Letters {
    slab: Vec<Letter>,
    free: Vec<u32>,
}

impl Letters {
    /// Appends a letter.
    #[inline]
    pub(super) fn put(&mut self, mailbox: &mut Mailbox, source: RankId, arrival: Time) {
        let letter = Letter { arrival, source, next: NONE };
        let index = if let Some(index) = self.free.pop() {
            self.slab[index as usize] = letter;
            index
        } else {
            self.slab.push(letter);
            u32::try_from(self.slab.len() - 1).expect("fewer than 2^32 messages are in flight")
        };
        if mailbox.tail == NONE {
            mailbox.head = index;
        } else {
            self.slab[mailbox.tail as usize].next = index;
        }
        mailbox.tail = index;
        mailbox.count += 1;
    }

    /// Takes the earliest-sent letter from `source`: the k-th sent meets the k-th receive.
    #[inline]
    pub(super) fn take(&mut self, mailbox: &mut Mailbox, source: RankId) -> Option<Time> {
        let (mut before, mut at) = (NONE, mailbox.head);
        while at != NONE {
            let letter = self.slab[at as usize];
            if letter.source == source {
                self.unlink(mailbox, before, at, letter.next);
                return Some(letter.arrival);
            }
            (before, at) = (at, letter.next);
        }
        None
    }

    /// Takes every letter, as (source, arrival) in the order sent.
    #[inline]
    pub(super) fn take_all(&mut self, mailbox: &mut Mailbox, into: &mut Vec<(RankId, Time)>) {
        let mut at = mailbox.head;
        while at != NONE {
            let letter = self.slab[at as usize];
            into.push((letter.source, letter.arrival));
            self.free.push(at);
            at = letter.next;
        }
        *mailbox = Mailbox::EMPTY;
    }

    /// The sender of the earliest-sent letter.
    pub(super) fn first(&self, mailbox: Mailbox) -> Option<RankId> {
        (mailbox.head != NONE).then(|| self.slab[mailbox.head as usize].source)
    }

    #[inline]
    fn unlink(&mut self, mailbox: &mut Mailbox, before: u32, at: u32, next: u32) {
        if before == NONE {
            mailbox.head = next;
        } else {
            self.slab[before as usize].next = next;
        }
        if mailbox.tail == at {
            mailbox.tail = before;
        }
        mailbox.count -= 1;
        self.free.push(at);
    }
}
