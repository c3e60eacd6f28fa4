//! Prefetches packets that are about to be used, many in parallel.
//!
//! When more packets are in flight than the cache holds, each is cold when its turn comes, and the chain of
//! accesses is dependent. The events of one time and the links that they activate are known in advance, though:
//! these accesses are independent, so the loads overlap.

use super::links::Links;
use super::pieces::Packet;
use super::waiting::Queues;
use crate::slab::Slab;

/// Packets that fit into the L2 cache of a core next to the other data.
const CACHED: usize = 8192;

/// The most events to prefetch for; with more, the first ones would be evicted from the L1 cache.
const EVENTS: usize = 64;

/// The links that events of the current time have activated, with duplicates.
pub(super) struct Prefetcher {
    active: Vec<u32>,
}

impl Prefetcher {
    pub(super) fn new() -> Prefetcher {
        Prefetcher { active: Vec::new() }
    }

    /// Notes a link that will be served.
    #[inline]
    pub(super) fn note(&mut self, link: u32) {
        self.active.push(link);
    }

    /// Fetches the packets next in turn at the noted links.
    #[inline]
    pub(super) fn fetch_first(&mut self, links: &Links, queues: &Queues, packets: &Slab<Packet>) {
        if packets.most() > CACHED {
            let waiting = self.active.iter().filter_map(|&link| links[link].waiting.in_turn());
            fetch_all(packets, waiting.map(|queue| queues.head(queue).0));
        }
        self.active.clear();
    }
}

/// Fetches packets that are about to arrive.
#[inline]
pub(super) fn fetch(packets: &Slab<Packet>, arriving: impl Iterator<Item = u32>) {
    if packets.most() > CACHED {
        fetch_all(packets, arriving.take(EVENTS));
    }
}

#[inline]
fn fetch_all(packets: &Slab<Packet>, places: impl Iterator<Item = u32>) {
    // Using the sum prevents the compiler from removing the loads.
    std::hint::black_box(places.fold(0, |sum, place| sum ^ packets[place].bytes));
}
