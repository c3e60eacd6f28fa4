//! VCs: what they hold, where those go on, and where there is room for them.

use super::super::settings::{Fault, Settings};
use super::geometry::{Geometry, LOCAL, NOWHERE, PORTS, opposite, port_of, router_of};
use super::state::{NOBODY, index};

/// Stages of a class: what is not a multicast on private trees has the first.
const STAGES: u8 = 3;

/// The packet has several flits.
pub(super) const SEVERAL: u8 = 1;
/// It is a multicast that has come to its tree.
pub(super) const ON_TREE: u8 = 2;
/// It is an answer.
pub(super) const ANSWER: u8 = 4;
/// It is a multicast on the way to its tree.
pub(super) const TO_TREE: u8 = 8;
/// Of what is none of these, what a router has to know is the same all along its way.
pub(super) const CHANGES: u8 = SEVERAL | ON_TREE | TO_TREE;

/// The number of the VCs that a class has for a stage.
#[inline]
pub(super) fn pool_of(class: u8, stage: u8) -> u8 {
    class * STAGES + stage
}

/// What routers have to know of a packet in a VC, looked up once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    /// Of [`SEVERAL`], [`ON_TREE`], [`ANSWER`] and [`TO_TREE`].
    pub(super) flags: u8,
    /// Outputs along which it needs a VC of the first of two pools; along others of the second.
    pub(super) straight: u8,
    pub(super) pools: [u8; 2],
}

/// A VC. What only answers or preset paths need is kept elsewhere: those that are looked at in every cycle have to
/// be close together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vc {
    /// Whose flits it holds, or has been given to.
    pub(super) packet: u32,
    /// How far on the way of a multicast its flit is: to the corner, before the turn, after it.
    pub(super) stage: u8,
    /// Outputs that its first flit still has to go to.
    pub(super) mask: u8,
    pub(super) way: Way,
    /// Flits of the packet that have been granted the way here, have come, and have left; those that passed
    /// are counted in all three.
    pub(super) due: u16,
    pub(super) come: u16,
    pub(super) left: u16,
}

impl Way {
    /// Whether the packet has any of some properties.
    #[inline]
    pub(super) fn is(&self, flags: u8) -> bool {
        self.flags & flags != 0
    }
}

impl Vc {
    /// Whether its packet has any of some properties.
    #[inline]
    pub(super) fn is(&self, flags: u8) -> bool {
        self.way.is(flags)
    }

    /// The pool that its flit needs a VC of along an output.
    #[inline]
    pub(super) fn pool(&self, output: usize) -> u8 {
        self.way.pools[usize::from(self.way.straight >> output & 1 == 0)]
    }
}

const NO_WAY: Way = Way { flags: 0, straight: 0, pools: [0; 2] };
const EMPTY: Vc = Vc { packet: NOBODY, stage: 0, mask: 0, way: NO_WAY, due: 0, come: 0, left: 0 };

/// Where a VC is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Place {
    /// Router x ports + port.
    pub(super) input: u32,
    pub(super) vc: u8,
}

/// Where a router learns that an input after one of its outputs has room.
#[derive(Clone, Copy, Debug)]
struct Before {
    /// The first of its places in [`Vcs::room`].
    first: u32,
    /// The bit of the output; none if nothing comes to the input from a router.
    output: u8,
}

/// All VCs.
#[derive(Clone, Debug)]
pub(super) struct Vcs {
    /// VCs of a port.
    pub(super) per_port: u8,
    slots: Vec<Vc>,
    /// By VC: the cycle in which its first flit came.
    since: Vec<u64>,
    /// By VC, of answers: how many it stands for, and their value.
    sums: Vec<(u32, u64)>,
    /// By input: a bit for each VC with a flit that can go.
    pub(super) ready: Vec<u64>,
    /// By input: a bit for each VC that nobody may be given.
    pub(super) taken: Vec<u64>,
    /// A bit for each router that may have a flit that can go.
    pub(super) busy: Vec<u64>,
    /// By class and stage: the VCs.
    pools: Vec<u64>,
    /// By VC of a port: the first of the pools that it may be of, and how many are.
    pools_of: Vec<(u8, u8)>,
    /// By router and pool: a bit for each output after which there is a VC to give.
    room: Vec<u8>,
    /// By input.
    before: Vec<Before>,
    /// By cycle modulo its length, a power of two: VCs that are free after it.
    releases: Vec<Vec<Place>>,
    credit_delay: u64,
}

impl Vcs {
    pub(super) fn new(settings: &Settings, geometry: &Geometry) -> Vcs {
        let (pools, pools_of) = pools(settings);
        let inputs = settings.nodes() as usize * PORTS;
        let slots = inputs * pools_of.len();
        let before = (0..settings.nodes())
            .flat_map(|router| (0..PORTS).map(move |port| (router, port)))
            .map(|(router, port)| before(geometry, router, port, pools.len()))
            .collect();
        Vcs {
            per_port: u8::try_from(pools_of.len()).expect("at most 64 VCs"),
            slots: vec![EMPTY; slots],
            since: vec![0; slots],
            sums: vec![(0, 0); slots],
            ready: vec![0; inputs],
            taken: vec![0; inputs],
            busy: vec![0; (settings.nodes() as usize).div_ceil(64)],
            room: vec![u8::MAX; settings.nodes() as usize * pools.len()],
            pools,
            pools_of,
            before,
            releases: vec![Vec::new(); (settings.credit_delay as usize + 1).next_power_of_two()],
            credit_delay: u64::from(settings.credit_delay),
        }
    }

    #[inline]
    fn slot(&self, place: Place) -> usize {
        place.input as usize * usize::from(self.per_port) + usize::from(place.vc)
    }

    #[inline]
    pub(super) fn at(&self, place: Place) -> &Vc {
        &self.slots[self.slot(place)]
    }

    #[inline]
    pub(super) fn at_mut(&mut self, place: Place) -> &mut Vc {
        let slot = self.slot(place);
        &mut self.slots[slot]
    }

    /// Of an answer: how many it stands for, and their value.
    #[inline]
    pub(super) fn sum(&self, place: Place) -> (u32, u64) {
        self.sums[self.slot(place)]
    }

    #[inline]
    pub(super) fn set_sum(&mut self, place: Place, sum: (u32, u64)) {
        let slot = self.slot(place);
        self.sums[slot] = sum;
    }

    /// The cycle in which its first flit came.
    #[inline]
    pub(super) fn since(&self, place: Place) -> u64 {
        self.since[self.slot(place)]
    }

    /// Marks that a flit comes, whose VC may have none.
    #[inline]
    pub(super) fn comes(&mut self, place: Place, mask: u8, now: u64) {
        let slot = self.slot(place);
        let vc = &mut self.slots[slot];
        if vc.come == vc.left {
            self.since[slot] = now;
        }
        vc.come += 1;
        vc.mask = mask;
        self.ready[place.input as usize] |= 1 << place.vc;
        let router = router_of(place.input) as usize;
        self.busy[router / 64] |= 1 << (router % 64);
    }

    /// Whether a pool has a VC to give at an input.
    #[inline]
    pub(super) fn has_room(&self, input: u32, pool: u8) -> bool {
        let pool = self.pools[usize::from(pool)];
        self.taken[input as usize] & pool != pool
    }

    /// A bit for each output of a router after which a pool has a VC to give.
    #[inline]
    pub(super) fn room_after(&self, router: u32, pool: u8) -> u8 {
        self.room[router as usize * self.pools.len() + usize::from(pool)]
    }

    /// The VC that a packet has in a pool.
    pub(super) fn of_packet(&self, input: u32, pool: u8, packet: u32) -> Option<Place> {
        let mut bits = self.pools[usize::from(pool)] & self.taken[input as usize];
        while bits != 0 {
            let place = Place { input, vc: low_bit(bits) };
            if self.at(place).packet == packet {
                return Some(place);
            }
            bits &= bits - 1;
        }
        None
    }

    /// Gives a packet the lowest VC of a pool that is not taken.
    pub(super) fn give(&mut self, input: u32, pool: u8, packet: u32, way: Way) -> Place {
        let free = self.pools[usize::from(pool)] & !self.taken[input as usize];
        assert!(free != 0, "no VC is left at input {input} in pool {pool}");
        let place = Place { input, vc: low_bit(free) };
        self.taken[input as usize] |= 1 << place.vc;
        self.note_room(place);
        *self.at_mut(place) = Vc { packet, stage: pool % STAGES, way, ..EMPTY };
        place
    }

    /// Tells the router before an input what has room since a VC was given or released.
    #[inline]
    fn note_room(&mut self, place: Place) {
        let taken = self.taken[place.input as usize];
        let Before { first, output } = self.before[place.input as usize];
        let (pool, count) = self.pools_of[usize::from(place.vc)];
        for pool in usize::from(pool)..usize::from(pool + count) {
            let room = &mut self.room[first as usize + pool];
            let full = taken & self.pools[pool] == self.pools[pool];
            *room = if full { *room & !output } else { *room | output };
        }
    }

    /// Marks that a VC holds no flit now.
    #[inline]
    pub(super) fn set_bare(&mut self, place: Place) {
        self.ready[place.input as usize] &= !(1 << place.vc);
    }

    /// A packet's last flit has left its VC, or passed it.
    pub(super) fn vacate(&mut self, place: Place, now: u64) {
        self.set_bare(place);
        self.at_mut(place).packet = NOBODY;
        let local = port_of(place.input) == LOCAL;
        let wait = if local { 0 } else { self.credit_delay };
        self.releases_of(now + wait).push(place);
    }

    /// What came for a VC was not kept: nothing ever was in it.
    pub(super) fn forgo(&mut self, place: Place, now: u64) {
        self.at_mut(place).packet = NOBODY;
        self.releases_of(now).push(place);
    }

    #[inline]
    fn releases_of(&mut self, cycle: u64) -> &mut Vec<Place> {
        let last = self.releases.len() - 1;
        &mut self.releases[index(cycle) & last]
    }

    /// Ends a cycle: VCs that were taken up to it are free.
    pub(super) fn release(&mut self, now: u64) {
        let mut due = std::mem::take(self.releases_of(now));
        for place in due.drain(..) {
            self.taken[place.input as usize] &= !(1 << place.vc);
            self.note_room(place);
        }
        *self.releases_of(now) = due;
    }

    /// How many cycles releases reach ahead.
    pub(super) fn horizon(&self) -> u64 {
        self.releases.len() as u64
    }
}

/// By class and stage, the VCs of a port; by VC, the first of these that it may be of, and how many are.
fn pools(settings: &Settings) -> (Vec<u64>, Vec<(u8, u8)>) {
    let (mut pools, mut pools_of) = (Vec::new(), Vec::new());
    for (class, number) in settings.classes.iter().zip(0..) {
        let counts = settings.stages(class);
        let first = pool_of(number, 0);
        let mut masks = [0_u64; STAGES as usize];
        for (mask, &count) in masks.iter_mut().zip(&counts) {
            for vc in pools_of.len()..pools_of.len() + count as usize {
                *mask |= 1 << vc;
            }
            let of = if counts.len() == 1 { 1 } else { STAGES };
            pools_of.resize(pools_of.len() + count as usize, (first, of));
        }
        if counts.len() == 1 || settings.fault == Some(Fault::SharedVcs) {
            masks = [masks[0]; STAGES as usize];
        }
        pools.extend(masks);
    }
    (pools, pools_of)
}

/// Where it is known whether an input has room, if there are so many pools.
fn before(geometry: &Geometry, router: u32, port: usize, pools: usize) -> Before {
    let from = if port == LOCAL { NOWHERE } else { geometry.neighbour(router, port) };
    if from == NOWHERE {
        return Before { first: 0, output: 0 };
    }
    let first = u32::try_from(from as usize * pools).expect("pools are counted in 32 bits");
    Before { first, output: 1 << opposite(port) }
}

#[inline]
pub(super) fn low_bit(bits: u64) -> u8 {
    #[expect(clippy::cast_possible_truncation, reason = "at most 64")]
    let bit = bits.trailing_zeros() as u8;
    bit
}
