//! What is looked at soon is fetched from memory now, much of it at once.
//!
//! Where more packets are under way than the cache holds, each is cold when its turn comes, and what to look
//! at next is known only when it is there. All events of a time are known beforehand, though, and so are the links
//! that they stir: a look at each, of which nothing depends on another, takes hardly longer than at one.

use super::links::Links;
use super::pieces::Packet;
use super::slab::Slab;
use super::waiting::Queues;

/// So many packets fit into the second cache of a core besides everything else.
const CACHED: usize = 8192;

/// Events of one time to look at; with more, the first would be out of the first cache again.
const EVENTS: usize = 64;

/// The links that events of the present time have stirred, some of them twice.
pub(super) struct Ahead {
    stirred: Vec<u32>,
}

impl Ahead {
    pub(super) fn new() -> Ahead {
        Ahead { stirred: Vec::new() }
    }

    /// A link will be served.
    #[inline]
    pub(super) fn note(&mut self, link: u32) {
        self.stirred.push(link);
    }

    /// Fetches the packets that are first in turn at the links noted.
    #[inline]
    pub(super) fn fetch_first(&mut self, links: &Links, queues: &Queues, packets: &Slab<Packet>) {
        if packets.most() > CACHED {
            let waiting = self.stirred.iter().filter_map(|&link| links[link].waiting.in_turn());
            fetch_all(packets, waiting.map(|queue| queues.head(queue).0));
        }
        self.stirred.clear();
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
    // Nobody wants the sum; without it nothing would be read.
    std::hint::black_box(places.fold(0, |sum, place| sum ^ packets[place].bytes));
}
