//! Messages in flight, delivered per pair in the order of their sends.
//!
//! With contention, messages of a pair may overtake each other. The k-th message still matches the
//! k-th receive, so an early message is held until all earlier ones have arrived. This changes no
//! time: a receiver that waits for it waits for the earlier ones as well.

use tutti_network::Ticket;
use tutti_units::ids::RankId;
use tutti_units::{Bytes, Time};

/// No parcel.
const NONE: u32 = u32::MAX;

/// Initial capacity of parcels and buckets.
const FEW: usize = 64;

/// A message in flight, or held.
#[derive(Clone, Copy)]
pub(super) struct Parcel {
    pub(super) source: RankId,
    pub(super) destination: RankId,
    pub(super) bytes: Bytes,
    pub(super) sent: Time,
    /// `Time::MAX` while in flight.
    pub(super) arrival: Time,
    /// The bucket's parcels sent before and after it.
    before: u32,
    after: u32,
}

impl Parcel {
    #[inline]
    fn is_of(&self, pair: (RankId, RankId)) -> bool {
        (self.source, self.destination) == pair
    }
}

/// All parcels. The parcels of a pair are in one bucket, in the order sent; the assignment of
/// buckets has no effect on results.
pub(super) struct Transit {
    slab: Vec<Parcel>,
    unused: Vec<u32>,
    /// The parcel sent last in each bucket; a power of two of them.
    last: Vec<u32>,
    /// How many have arrived and are held.
    held: usize,
}

impl Transit {
    pub(super) fn new() -> Transit {
        Transit { slab: Vec::new(), unused: Vec::new(), last: vec![NONE; FEW], held: 0 }
    }

    /// Whether no message is in flight or held.
    pub(super) fn is_empty(&self) -> bool {
        self.slab.len() == self.unused.len()
    }

    /// Records a message that is handed to the network.
    pub(super) fn send(&mut self, pair: (RankId, RankId), bytes: Bytes, sent: Time) -> Ticket {
        if self.slab.len() - self.unused.len() >= self.last.len() {
            self.spread();
        }
        let (source, destination) = pair;
        let (arrival, before, after) = (Time::MAX, NONE, NONE);
        let parcel = Parcel { source, destination, bytes, sent, arrival, before, after };
        let at = if let Some(at) = self.unused.pop() {
            self.slab[at as usize] = parcel;
            at
        } else {
            self.slab.push(parcel);
            u32::try_from(self.slab.len() - 1).expect("fewer than 2^32 messages are in flight")
        };
        self.append(at);
        Ticket(at)
    }

    /// Records an arrival; puts the message, and messages that it held, into `into` in the order
    /// sent.
    pub(super) fn arrive(&mut self, ticket: Ticket, arrival: Time, into: &mut Vec<Parcel>) {
        self.slab[ticket.0 as usize].arrival = arrival;
        if self.is_out_of_order(ticket.0) {
            self.held += 1;
            return;
        }
        let Parcel { source, destination, after, .. } = self.slab[ticket.0 as usize];
        into.push(self.remove(ticket.0));
        let mut next = after;
        while self.held > 0 && next != NONE {
            let parcel = self.slab[next as usize];
            if parcel.is_of((source, destination)) {
                if parcel.arrival == Time::MAX {
                    return;
                }
                self.held -= 1;
                into.push(self.remove(next));
            }
            next = parcel.after;
        }
    }

    /// Whether an earlier message of the same pair has not arrived.
    fn is_out_of_order(&self, at: u32) -> bool {
        let Parcel { source, destination, mut before, .. } = self.slab[at as usize];
        while before != NONE {
            let parcel = &self.slab[before as usize];
            if parcel.is_of((source, destination)) {
                return true;
            }
            before = parcel.before;
        }
        false
    }

    #[inline]
    fn bucket(&self, source: RankId, destination: RankId) -> usize {
        let pair = u64::from(source.0) << 32 | u64::from(destination.0);
        let mixed = pair.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let bucket = mixed >> (u64::BITS - self.last.len().trailing_zeros());
        usize::try_from(bucket).expect("below the number of buckets")
    }

    #[inline]
    fn append(&mut self, at: u32) {
        let Parcel { source, destination, .. } = self.slab[at as usize];
        let bucket = self.bucket(source, destination);
        let before = std::mem::replace(&mut self.last[bucket], at);
        self.slab[at as usize].before = before;
        self.slab[at as usize].after = NONE;
        if before != NONE {
            self.slab[before as usize].after = at;
        }
    }

    fn remove(&mut self, at: u32) -> Parcel {
        let parcel = self.slab[at as usize];
        if parcel.before != NONE {
            self.slab[parcel.before as usize].after = parcel.after;
        }
        if parcel.after == NONE {
            let bucket = self.bucket(parcel.source, parcel.destination);
            self.last[bucket] = parcel.before;
        } else {
            self.slab[parcel.after as usize].before = parcel.before;
        }
        self.unused.push(at);
        parcel
    }

    /// Four times as many buckets. The parcels of a pair stay in their order.
    #[cold]
    fn spread(&mut self) {
        let buckets = vec![NONE; self.last.len() * 4];
        for last in std::mem::replace(&mut self.last, buckets) {
            let mut newest_first = Vec::new();
            let mut at = last;
            while at != NONE {
                newest_first.push(at);
                at = self.slab[at as usize].before;
            }
            for at in newest_first.into_iter().rev() {
                self.append(at);
            }
        }
    }
}
