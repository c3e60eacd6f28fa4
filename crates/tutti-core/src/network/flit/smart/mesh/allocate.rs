//! Switch allocation at each router (SA-L): inputs nominate, outputs choose.

use super::Mesh;
use super::geometry::{PORTS, TO_NIC, input_of, opposite};
use super::vcs::{ON_TREE, Place, SEVERAL, low_bit};

/// By whose turn it is and which ports ask: who is first.
const FIRST: [[u8; 1 << PORTS]; PORTS] = {
    let mut table = [[0; 1 << PORTS]; PORTS];
    let mut turn = 0;
    while turn < PORTS {
        let mut asking = 1;
        while asking < 1 << PORTS {
            let mut port = turn;
            while asking >> port & 1 == 0 {
                port = (port + 1) % PORTS;
            }
            #[expect(clippy::cast_possible_truncation, reason = "five ports")]
            let first = port as u8;
            table[turn][asking] = first;
            asking += 1;
        }
        turn += 1;
    }
    table
};

/// A flit that was granted outputs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grant {
    pub(super) place: Place,
    pub(super) outputs: u8,
}

impl Mesh {
    /// Grants outputs to buffered flits.
    pub(super) fn allocate(&mut self) {
        self.grants.clear();
        self.granted.fill((0, 0));
        let crossing = self.crossing();
        for word in 0..self.vcs.busy.len() {
            let mut bits = self.vcs.busy[word];
            while bits != 0 {
                let router = 64 * word + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                if !self.allocate_at(router, crossing) {
                    self.vcs.busy[word] &= !(1 << (router % 64));
                }
            }
        }
    }

    /// Grants the outputs of a router; whether it has any flit that can go.
    fn allocate_at(&mut self, router: usize, crossing: u64) -> bool {
        let mut busy = false;
        let number = u32::try_from(router).expect("routers are counted in 32 bits");
        let (kept_in, kept_out) = self.geometry.kept(number, crossing);
        let nic = if self.geometry.blocks_ejection(crossing) { 0 } else { TO_NIC };
        let usable = !kept_out & (TO_NIC - 1) | nic;
        let mut nominees = [(0, 0); PORTS];
        let mut asked = 0;
        for (port, nominee) in nominees.iter_mut().enumerate() {
            let ready = self.vcs.ready[router * PORTS + port];
            busy |= ready != 0;
            if ready != 0 && kept_in >> port & 1 == 0 {
                *nominee = self.nominate(number, port, ready, usable);
                asked |= nominee.1;
                self.counts.input_arbitrations += u64::from(nominee.1 != 0);
            }
        }
        if asked != 0 {
            self.choose(router, &nominees, asked);
        }
        busy
    }

    /// The VC that an input nominates, and the outputs open to it.
    fn nominate(&self, router: u32, port: usize, ready: u64, usable: u8) -> (u8, u8) {
        let input = input_of(router, port);
        let later = u64::MAX << self.input_turns[input as usize];
        for mut bits in [ready & later, ready & !later] {
            while bits != 0 {
                let vc = low_bit(bits);
                bits &= bits - 1;
                let open = self.open_outputs(router, Place { input, vc }, usable);
                if open != 0 {
                    return (vc, open);
                }
            }
        }
        (0, 0)
    }

    /// The outputs of its mask that the first flit of a VC could be granted.
    #[inline]
    fn open_outputs(&self, router: u32, place: Place, usable: u8) -> u8 {
        let vc = self.vcs.at(place);
        let mut bits = vc.mask & usable;
        if vc.is(ON_TREE) && self.geometry.interval.is_some() {
            bits &= TO_NIC;
        }
        let [straight, other] = vc.way.pools.map(|pool| self.vcs.room_after(router, pool));
        let room = straight & vc.way.straight | other & !vc.way.straight | TO_NIC;
        let open = bits & room;
        if open != bits && vc.is(SEVERAL) {
            return open | bits & self.own_way(router, place);
        }
        open
    }

    /// The output after which a packet of several flits has a VC, if it has one.
    #[inline(never)]
    fn own_way(&self, router: u32, place: Place) -> u8 {
        let vc = self.vcs.at(place);
        let output = vc.mask.trailing_zeros() as usize;
        let input = input_of(self.geometry.neighbour(router, output), opposite(output));
        u8::from(self.vcs.of_packet(input, vc.pool(output), vc.packet).is_some()) << output
    }

    /// Whether a flit of a packet can be given a VC after an output of a router.
    #[inline]
    pub(super) fn takes(&self, router: u32, output: usize, pool: u8, slot: u32) -> bool {
        self.vcs.room_after(router, pool) >> output & 1 == 1
            || self.packets.get(slot).flits > 1 && {
                let next = self.geometry.neighbour(router, output);
                self.vcs.of_packet(input_of(next, opposite(output)), pool, slot).is_some()
            }
    }

    /// Lets each output choose among the nominees.
    fn choose(&mut self, router: usize, nominees: &[(u8, u8); PORTS], asked: u8) {
        let mut asking = [0u8; PORTS];
        for (port, &(_, open)) in nominees.iter().enumerate() {
            for (output, asking) in asking.iter_mut().enumerate() {
                *asking |= (open >> output & 1) << port;
            }
        }
        let (mut won, mut winners) = ([0u8; PORTS], 0u8);
        self.counts.output_arbitrations += u64::from(asked.count_ones());
        let mut bits = asked;
        while bits != 0 {
            let output = bits.trailing_zeros() as usize;
            bits &= bits - 1;
            let turn = &mut self.output_turns[router * PORTS + output];
            let port = FIRST[usize::from(*turn)][usize::from(asking[output])];
            won[usize::from(port)] |= 1 << output;
            winners |= 1 << port;
            *turn = if usize::from(port) + 1 == PORTS { 0 } else { port + 1 };
        }
        self.granted[router] = (winners, asked);
        while winners != 0 {
            let port = winners.trailing_zeros() as usize;
            winners &= winners - 1;
            let input = router * PORTS + port;
            let vc = nominees[port].0;
            self.input_turns[input] = if vc + 1 == self.vcs.per_port { 0 } else { vc + 1 };
            let input = u32::try_from(input).expect("inputs are counted in 32 bits");
            self.grants.push(Grant { place: Place { input, vc }, outputs: won[port] });
        }
    }
}
