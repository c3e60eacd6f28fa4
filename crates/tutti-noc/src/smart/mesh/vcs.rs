//! VCs: their packets, the routes of these, and the free VCs downstream.

use super::super::settings::{Fault, Settings, Tree};
use super::geometry::{
    EAST, Geometry, LOCAL, NOWHERE, PORTS, TO_NIC, opposite, port_of, router_of,
};
use super::state::{NO_PACKET, index};

/// All outputs but the NIC.
const MESH: u8 = TO_NIC - 1;

/// Stages of a class: all packets but multicasts on private trees have the first.
pub(super) const STAGES: u8 = 3;

/// Outputs and stages of a router.
pub(super) const FREE_WORDS: usize = STAGES as usize * (PORTS - 1);

/// The packet has several flits.
pub(super) const SEVERAL: u8 = 1;
/// It is a multicast that has come to its tree.
pub(super) const ON_TREE: u8 = 2;
/// It is a response.
pub(super) const RESPONSE: u8 = 4;
/// It is a multicast that has not reached its tree.
pub(super) const TO_TREE: u8 = 8;
/// Without any of these flags, the route state of a packet stays the same along its route.
pub(super) const CHANGES: u8 = SEVERAL | ON_TREE | TO_TREE;

/// The pool of a class and a stage.
#[inline]
pub(super) fn pool_of(class: u8, stage: u8) -> u8 {
    class * STAGES + stage
}

/// The state of a packet in a VC that routers need, computed once.
#[derive(Clone, Copy, Debug)]
pub(super) struct RouteState {
    /// Of [`SEVERAL`], [`ON_TREE`], [`RESPONSE`] and [`TO_TREE`].
    pub(super) flags: u8,
    /// Outputs along which it needs a VC of the first of two pools; along other outputs, of the
    /// second.
    pub(super) straight: u8,
    pub(super) pools: [u8; 2],
}

/// A VC. State of responses and preset paths is stored elsewhere: the fields that every cycle
/// inspects have to be close together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vc {
    /// The packet that the VC is allocated to.
    pub(super) packet: u32,
    /// The stage of its flit on a private tree: to the corner, before the turn, after it.
    pub(super) stage: u8,
    /// Outputs that its first flit still has to go to, or will have when it lands: none for a copy
    /// that is dropped on landing.
    pub(super) mask: u8,
    pub(super) route: RouteState,
    /// Flits of the packet that were granted the path here, that arrived, and that left; bypassing
    /// flits count in all three.
    pub(super) due: u16,
    pub(super) come: u16,
    pub(super) left: u16,
}

impl RouteState {
    /// Whether the packet has any of some flags.
    #[inline]
    pub(super) fn is(&self, flags: u8) -> bool {
        self.flags & flags != 0
    }

    /// The pool in which its flit needs a VC along an output.
    #[inline]
    pub(super) fn pool(&self, output: usize) -> u8 {
        self.pools[usize::from(self.straight >> output & 1 == 0)]
    }
}

impl Vc {
    /// Whether its packet has any of some flags.
    #[inline]
    pub(super) fn is(&self, flags: u8) -> bool {
        self.route.is(flags)
    }

    /// The pool in which its flit needs a VC along an output.
    #[inline]
    pub(super) fn pool(&self, output: usize) -> u8 {
        self.route.pool(output)
    }
}

/// An input: each word has a bit for each of its VCs. Allocation reads only this.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
pub(super) struct Input {
    /// VCs with a flit that can go.
    pub(super) ready: u64,
    /// VCs that are allocated or not yet released.
    pub(super) taken: u64,
    /// VCs whose packet already has a VC along its output, since an earlier flit took it.
    pub(super) follows: u64,
    /// By output: VCs whose first flit requests it. For mesh outputs of multicasts on a private
    /// tree see [`Vcs::turns`].
    pub(super) requests: [u64; PORTS],
}

/// The VCs that a class has for a stage.
#[derive(Clone, Copy, Debug)]
struct Pool {
    vcs: u64,
    /// The VCs of the class for any stage.
    of_class: u64,
}

/// By mesh output, a bit for each VC of an input.
pub(super) type ByOutput = [u64; PORTS - 1];

const NO_ROUTE: RouteState = RouteState { flags: 0, straight: 0, pools: [0; 2] };
const EMPTY: Vc =
    Vc { packet: NO_PACKET, stage: 0, mask: 0, route: NO_ROUTE, due: 0, come: 0, left: 0 };

/// The position of a VC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct VcId {
    /// Router x ports + port.
    pub(super) input: u32,
    pub(super) vc: u8,
}

/// The pool of a VC; with [`Fault::SharedVcs`] all pools of its class, which are one.
#[derive(Clone, Copy, Debug)]
struct Share {
    vcs: u64,
    of_class: u64,
    /// The first of these pools, and their number.
    stage: u8,
    pools: u8,
}

/// All VCs.
#[derive(Clone, Debug)]
pub(super) struct Vcs {
    /// VCs of a port.
    pub(super) per_port: u8,
    slots: Vec<Vc>,
    /// By VC, if paths are preset: the cycle in which its first flit arrived.
    since: Vec<u64>,
    /// By VC, for responses: how many are combined in it, and their value.
    sums: Vec<(u32, u64)>,
    pub(super) inputs: Vec<Input>,
    /// By input, on private trees: VCs with a multicast that requests an output, and a VC of the
    /// stage before or after the turn.
    pub(super) turns: Vec<[ByOutput; 2]>,
    /// A bit for each router that may have a ready flit.
    pub(super) busy: Vec<u64>,
    /// By class and stage.
    pools: Vec<Pool>,
    /// By VC of a port.
    shares: Vec<Share>,
    /// By router, mesh output and stage: the VCs of the classes that have a free VC downstream.
    free: Vec<u64>,
    /// Whether multicasts on their tree use preset paths only.
    preset: bool,
    /// By input: where the upstream router reads its free VCs, see [`Vcs::free`].
    before: Vec<u32>,
    /// By cycle modulo its length, a power of two: VCs that are released after it.
    releases: Vec<Vec<VcId>>,
    credit_delay: u64,
}

impl Vcs {
    pub(super) fn new(settings: &Settings, geometry: &Geometry) -> Vcs {
        let (pools, shares) = pools(settings);
        let inputs = settings.nodes() as usize * PORTS;
        let slots = inputs * shares.len();
        let before = (0..settings.nodes())
            .flat_map(|router| (0..PORTS).map(move |port| (router, port)))
            .map(|(router, port)| before(geometry, router, port))
            .collect();
        let private = settings.tree() == Some(Tree::Private);
        let all = pools.iter().fold(0, |all, pool: &Pool| all | pool.vcs);
        // Inputs without an upstream router report to an unused entry.
        let words = STAGES as usize * (PORTS - 1) * (settings.nodes() as usize + 1);
        Vcs {
            per_port: u8::try_from(shares.len()).expect("at most 64 VCs"),
            slots: vec![EMPTY; slots],
            since: vec![0; slots],
            sums: vec![(0, 0); slots],
            inputs: vec![Input::default(); inputs],
            turns: vec![Default::default(); if private { inputs } else { 0 }],
            busy: vec![0; (settings.nodes() as usize).div_ceil(64)],
            free: vec![all; words],
            preset: geometry.interval.is_some(),
            pools,
            shares,
            before,
            releases: vec![Vec::new(); (settings.credit_delay as usize + 1).next_power_of_two()],
            credit_delay: u64::from(settings.credit_delay),
        }
    }

    #[inline]
    fn slot(&self, place: VcId) -> usize {
        place.input as usize * usize::from(self.per_port) + usize::from(place.vc)
    }

    #[inline]
    pub(super) fn at(&self, place: VcId) -> &Vc {
        &self.slots[self.slot(place)]
    }

    #[inline]
    pub(super) fn at_mut(&mut self, place: VcId) -> &mut Vc {
        let slot = self.slot(place);
        &mut self.slots[slot]
    }

    /// For a response: how many are combined in it, and their value.
    #[inline]
    pub(super) fn sum(&self, place: VcId) -> (u32, u64) {
        self.sums[self.slot(place)]
    }

    #[inline]
    pub(super) fn set_sum(&mut self, place: VcId, sum: (u32, u64)) {
        let slot = self.slot(place);
        self.sums[slot] = sum;
    }

    /// The cycle in which its first flit arrived.
    #[inline]
    pub(super) fn since(&self, place: VcId) -> u64 {
        self.since[self.slot(place)]
    }

    /// Records that a flit arrives in a VC.
    #[inline]
    pub(super) fn arrives(&mut self, place: VcId, now: u64) {
        let slot = self.slot(place);
        let vc = &mut self.slots[slot];
        if self.preset && vc.come == vc.left {
            self.since[slot] = now;
        }
        vc.come += 1;
        let Vc { route, left, mask, .. } = *vc;
        let input = &mut self.inputs[place.input as usize];
        input.ready |= 1 << place.vc;
        if route.is(SEVERAL) && left > 0 {
            input.follows |= 1 << place.vc;
        }
        self.set_requests(place, mask, &route);
        self.set_busy(place);
    }

    /// Marks the router of a VC as one with a ready flit.
    #[inline]
    fn set_busy(&mut self, place: VcId) {
        let router = router_of(place.input) as usize;
        self.busy[router / 64] |= 1 << (router % 64);
    }

    /// Lets the flit of a VC, the only one of its packet, request its outputs after
    /// [`Vcs::set_bare`].
    pub(super) fn requests_again(&mut self, place: VcId) {
        let Vc { route, mask, .. } = *self.at(place);
        self.inputs[place.input as usize].ready |= 1 << place.vc;
        self.set_requests(place, mask, &route);
        self.set_busy(place);
    }

    /// Sets the requests of the first flit of a VC.
    #[inline]
    fn set_requests(&mut self, place: VcId, mask: u8, route: &RouteState) {
        let bit = 1 << place.vc;
        let requests = &mut self.inputs[place.input as usize].requests;
        if route.pools[0] != route.pools[1] {
            requests[LOCAL] |= u64::from(mask >> LOCAL & 1) << place.vc;
            if !self.preset {
                let [straight, other] = &mut self.turns[place.input as usize];
                each(mask & route.straight & MESH, |output| straight[output] |= bit);
                each(mask & !route.straight & MESH, |output| other[output] |= bit);
            }
            return;
        }
        each(mask, |output| requests[output] |= bit);
    }

    /// Clears the outputs that the first flit of a VC has gone to; returns the rest of its mask.
    #[inline]
    pub(super) fn clear_outputs(&mut self, place: VcId, outputs: u8) -> u8 {
        let vc = self.at_mut(place);
        vc.mask &= !outputs;
        let Vc { mask, route: RouteState { pools: [first, second], .. }, .. } = *vc;
        let bit = !(1 << place.vc);
        let input = &mut self.inputs[place.input as usize];
        each(outputs, |output| input.requests[output] &= bit);
        if first != second {
            let [straight, other] = &mut self.turns[place.input as usize];
            each(outputs & MESH, |output| {
                straight[output] &= bit;
                other[output] &= bit;
            });
        }
        mask
    }

    /// Whether a pool has a free VC at an input.
    #[inline]
    pub(super) fn has_free_vc(&self, input: u32, pool: u8) -> bool {
        let Pool { vcs, .. } = self.pools[usize::from(pool)];
        self.inputs[input as usize].taken & vcs != vcs
    }

    /// By output and stage of a router, the VCs of the classes that have a free VC downstream.
    #[inline]
    pub(super) fn free_after(&self, router: usize) -> &[u64; FREE_WORDS] {
        let free = self.free[router * FREE_WORDS..].first_chunk();
        free.expect("there is one for each router")
    }

    /// Whether a pool has a free VC downstream of an output of a router.
    #[inline]
    pub(super) fn has_free_after(&self, router: u32, output: usize, pool: u8) -> bool {
        let Pool { of_class, .. } = self.pools[usize::from(pool)];
        let first = free_index(router, output) as usize;
        self.free[first + usize::from(pool % STAGES)] & of_class != 0
    }

    /// The VC that a packet has in a pool.
    pub(super) fn of_packet(&self, input: u32, pool: u8, packet: u32) -> Option<VcId> {
        let Pool { vcs, .. } = self.pools[usize::from(pool)];
        let mut bits = vcs & self.inputs[input as usize].taken;
        while bits != 0 {
            let place = VcId { input, vc: low_bit(bits) };
            if self.at(place).packet == packet {
                return Some(place);
            }
            bits &= bits - 1;
        }
        None
    }

    /// Allocates the lowest free VC of a pool to a packet.
    #[inline]
    pub(super) fn give(&mut self, input: u32, pool: u8, packet: u32, route: RouteState) -> VcId {
        let taken = &mut self.inputs[input as usize].taken;
        let free = self.pools[usize::from(pool)].vcs & !*taken;
        assert!(free != 0, "no VC is left at input {input} in pool {pool}");
        let place = VcId { input, vc: low_bit(free) };
        *taken |= 1 << place.vc;
        let taken = *taken;
        self.note_free(place, taken);
        *self.at_mut(place) = Vc { packet, stage: pool % STAGES, route, ..EMPTY };
        place
    }

    /// Updates the free VCs at the upstream router after a VC was allocated or released.
    #[inline]
    fn note_free(&mut self, place: VcId, taken: u64) {
        let Share { vcs, of_class, stage, pools } = self.shares[usize::from(place.vc)];
        let first = (self.before[place.input as usize] + u32::from(stage)) as usize;
        for stage in 0..usize::from(pools) {
            let free = &mut self.free[first + stage];
            *free = if taken & vcs == vcs { *free & !of_class } else { *free | of_class };
        }
    }

    /// Records that a VC holds no flit now.
    #[inline]
    pub(super) fn set_bare(&mut self, place: VcId) {
        let mask = self.at(place).mask;
        let input = &mut self.inputs[place.input as usize];
        let bit = !(1 << place.vc);
        (input.ready, input.follows) = (input.ready & bit, input.follows & bit);
        each(mask, |output| input.requests[output] &= bit);
    }

    /// A packet's tail has left its VC, or bypassed it.
    #[inline]
    pub(super) fn vacate(&mut self, place: VcId, now: u64) {
        self.set_bare(place);
        self.at_mut(place).packet = NO_PACKET;
        let local = port_of(place.input) == LOCAL;
        let wait = if local { 0 } else { self.credit_delay };
        self.releases_of(now + wait).push(place);
    }

    /// A flit for a VC was discarded on arrival: the VC was never occupied.
    pub(super) fn discard(&mut self, place: VcId, now: u64) {
        self.at_mut(place).packet = NO_PACKET;
        self.releases_of(now).push(place);
    }

    #[inline]
    fn releases_of(&mut self, cycle: u64) -> &mut Vec<VcId> {
        let last = self.releases.len() - 1;
        &mut self.releases[index(cycle) & last]
    }

    /// Ends a cycle: releases the VCs that are due.
    pub(super) fn release(&mut self, now: u64) {
        let mut due = std::mem::take(self.releases_of(now));
        for place in due.drain(..) {
            let taken = &mut self.inputs[place.input as usize].taken;
            *taken &= !(1 << place.vc);
            let taken = *taken;
            self.note_free(place, taken);
        }
        *self.releases_of(now) = due;
    }

    /// How many cycles releases reach ahead.
    pub(super) fn horizon(&self) -> u64 {
        self.releases.len() as u64
    }
}

/// By class and stage, the VCs of a port; and by VC, its pool.
fn pools(settings: &Settings) -> (Vec<Pool>, Vec<Share>) {
    let (mut pools, mut shares) = (Vec::new(), Vec::new());
    let shared = settings.fault == Some(Fault::SharedVcs);
    for class in &settings.classes {
        let counts = settings.stages(class);
        let first = u32::try_from(shares.len()).expect("at most 64 VCs");
        let bits = |from: u32, count: u32| (u64::MAX >> (64 - count)) << from;
        let of_class = bits(first, counts.iter().sum());
        let mut masks = [bits(first, counts[0]); STAGES as usize];
        for (stage, &count) in (0..).zip(&counts) {
            let from = shares.len();
            if !shared {
                masks[usize::from(stage)] =
                    bits(u32::try_from(from).expect("at most 64 VCs"), count);
            }
            let vcs = masks[usize::from(stage)];
            let (stage, pools) = if shared { (0, STAGES) } else { (stage, 1) };
            shares.resize(from + count as usize, Share { vcs, of_class, stage, pools });
        }
        pools.extend(masks.map(|vcs| Pool { vcs, of_class }));
    }
    (pools, shares)
}

/// The index of the free VCs downstream of an output: that of the first stage.
#[inline]
fn free_index(router: u32, output: usize) -> u32 {
    let output = low_bit(1 << output);
    (router * 4 + u32::from(output)) * u32::from(STAGES)
}

/// The index where the upstream router of an input reads its free VCs; an unused entry for inputs
/// without one.
fn before(geometry: &Geometry, router: u32, port: usize) -> u32 {
    let outside = geometry.columns * geometry.rows;
    let from = if port == LOCAL { NOWHERE } else { geometry.neighbour(router, port) };
    if from == NOWHERE { free_index(outside, EAST) } else { free_index(from, opposite(port)) }
}

/// Calls a function with each output of a mask.
#[inline]
fn each(mut mask: u8, mut act: impl FnMut(usize)) {
    while mask != 0 {
        act(mask.trailing_zeros() as usize);
        mask &= mask - 1;
    }
}

#[inline]
pub(super) fn low_bit(bits: u64) -> u8 {
    #[expect(clippy::cast_possible_truncation, reason = "at most 64")]
    let bit = bits.trailing_zeros() as u8;
    bit
}
