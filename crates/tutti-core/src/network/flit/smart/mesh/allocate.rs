//! Switch allocation at each router (SA-L): inputs nominate, outputs choose.

use super::super::settings::Tree;
use super::Mesh;
use super::geometry::{Geometry, PORTS, TO_NIC, input_of, opposite};
use super::state::{Kind, Place, low_bit};

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
    fn open_outputs(&self, router: u32, place: Place, usable: u8) -> u8 {
        let vc = self.vcs.at(place);
        let packet = self.packets.get(vc.packet);
        let stage = vc.stage;
        let many = packet.kind == Kind::Many;
        let preset = many && self.geometry.interval.is_some();
        let mut bits = vc.mask & usable;
        if preset && (stage > 0 || router == packet.destination) {
            bits &= TO_NIC;
        }
        let mut open = bits & TO_NIC;
        bits &= TO_NIC - 1;
        while bits != 0 {
            let output = bits.trailing_zeros() as usize;
            bits &= bits - 1;
            let next = self.geometry.neighbour(router, output);
            let pool = (packet.class, self.next_stage(vc.packet, router, stage, output));
            if self.takes(next, opposite(output), pool, vc.packet) {
                open |= 1 << output;
            }
        }
        open
    }

    /// Whether a flit of a packet can be given a VC at a router's port.
    #[inline]
    pub(super) fn takes(&self, router: u32, port: usize, pool: (u8, u8), slot: u32) -> bool {
        let input = input_of(router, port);
        self.vcs.has_room(input, pool)
            || self.packets.get(slot).flits > 1 && self.vcs.of_packet(input, pool, slot).is_some()
    }

    /// The stage that a flit has at the next router.
    #[inline]
    pub(super) fn next_stage(&self, slot: u32, router: u32, stage: u8, output: usize) -> u8 {
        let packet = self.packets.get(slot);
        let private = packet.kind == Kind::Many && self.geometry.tree == Some(Tree::Private);
        if !private || stage == 0 && router != packet.destination {
            return 0;
        }
        let (straight, _) = Geometry::straight_and_turn(packet.corner);
        if stage < 2 && output == straight { 1 } else { 2 }
    }

    /// Lets each output choose among the nominees.
    fn choose(&mut self, router: usize, nominees: &[(u8, u8); PORTS], asked: u8) {
        let mut won = [0u8; PORTS];
        for output in 0..PORTS {
            if asked >> output & 1 == 0 {
                continue;
            }
            self.counts.output_arbitrations += 1;
            let turn = &mut self.output_turns[router * PORTS + output];
            let first = usize::from(*turn);
            let port = (first..first + PORTS)
                .map(|port| port % PORTS)
                .find(|&port| nominees[port].1 >> output & 1 == 1)
                .expect("some nominee asked");
            won[port] |= 1 << output;
            *turn = low_bit(1 << ((port + 1) % PORTS));
        }
        for port in (0..PORTS).filter(|&port| won[port] != 0) {
            let input = router * PORTS + port;
            let vc = nominees[port].0;
            self.input_turns[input] = (vc + 1) % self.vcs.per_port;
            let input = u32::try_from(input).expect("inputs are counted in 32 bits");
            self.grants.push(Grant { place: Place { input, vc }, outputs: won[port] });
            self.granted[router].0 |= 1 << port;
            self.granted[router].1 |= won[port];
        }
    }
}
