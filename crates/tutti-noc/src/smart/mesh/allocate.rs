//! Switch allocation at each router (SA-L): inputs nominate, outputs choose.

use super::super::settings::Arbiter;
use super::Mesh;
use super::geometry::{LOCAL, PORTS, input_of, opposite};
use super::state::index;
use super::vcs::{ByOutput, Input, STAGES, VcId, low_bit};

/// The winner, by the pointer of the arbiter and the requesting ports.
const FIRST: [[u8; 1 << PORTS]; PORTS] = {
    let mut table = [[0; 1 << PORTS]; PORTS];
    let mut turn = 0;
    while turn < PORTS {
        let mut requesting = 1;
        while requesting < 1 << PORTS {
            let mut port = turn;
            while requesting >> port & 1 == 0 {
                port = (port + 1) % PORTS;
            }
            #[expect(clippy::cast_possible_truncation, reason = "five ports")]
            let first = port as u8;
            table[turn][requesting] = first;
            requesting += 1;
        }
        turn += 1;
    }
    table
};

/// By mask of outputs: a byte for each, the first bit set where the output is in it.
const SPREAD: [u64; 1 << PORTS] = {
    let mut table = [0; 1 << PORTS];
    let mut mask = 0;
    while mask < 1 << PORTS {
        let mut output = 0;
        while output < PORTS {
            table[mask] |= ((mask >> output & 1) as u64) << (8 * output);
            output += 1;
        }
        mask += 1;
    }
    table
};

/// The free VCs after the outputs of a router in a cycle.
#[derive(Clone, Copy)]
struct Open {
    /// By output, the VCs of an input that have a free VC there, or the NIC.
    free: [u64; PORTS],
    /// The same of multicasts on private trees, before the turn and after it.
    turns: [ByOutput; 2],
    /// By output, all VCs, or none while the output is reserved for preset paths.
    usable: [u64; PORTS],
}

/// A flit that was granted outputs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grant {
    pub(super) place: VcId,
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

    /// Grants the outputs of a router; returns whether it has a ready flit.
    #[inline]
    fn allocate_at(&mut self, router: usize, crossing: u64) -> bool {
        let (reserved_in, open) = self.open_after(router, crossing);
        let inputs = self.vcs.inputs[router * PORTS..].first_chunk::<PORTS>();
        let inputs = inputs.expect("each router has five");
        let mut nominees = [0; PORTS];
        let (mut ready, mut requesting, mut arbitrations) = (0, 0, 0);
        for port in 0..PORTS {
            let input = &inputs[port];
            ready |= input.ready;
            if input.ready == 0 || reserved_in >> port & 1 == 1 {
                continue;
            }
            let at = router * PORTS + port;
            let mut can = open.to(input);
            if let Some(turns) = self.vcs.turns.get(at) {
                open.add_turns(&mut can, turns);
            }
            let (vc, outputs) = if self.settings.arbiter == Arbiter::Oldest {
                self.nominate_oldest(at, &can)
            } else {
                nominate(&can, self.input_turns[at])
            };
            nominees[port] = vc;
            requesting |= SPREAD[usize::from(outputs)] << port;
            arbitrations += u64::from(outputs != 0);
        }
        self.counts.input_arbitrations += arbitrations;
        if requesting != 0 {
            self.choose(router, &nominees, requesting);
        }
        ready != 0
    }

    /// The VC that an input nominates, of those with an open output that with the oldest packet,
    /// and the outputs open to it.
    fn nominate_oldest(&self, at: usize, can: &[u64; PORTS]) -> (u8, u8) {
        let input = u32::try_from(at).expect("inputs are counted in 32 bits");
        let any = can.iter().fold(0, |any, can| any | can);
        let later = any & u64::MAX << self.input_turns[at];
        let mut first: Option<(u64, u8)> = None;
        for mut bits in [later, any & !later] {
            while bits != 0 {
                let vc = low_bit(bits);
                bits &= bits - 1;
                let created = self.created(VcId { input, vc });
                if first.is_none_or(|(before, _)| created < before) {
                    first = Some((created, vc));
                }
            }
        }
        first.map_or((0, 0), |(_, vc)| (vc, outputs_of(can, vc)))
    }

    /// When the packet of a VC was created.
    fn created(&self, place: VcId) -> u64 {
        self.packets.get(self.vcs.at(place).packet).created
    }

    /// The input of the oldest packet among the nominees that request an output, in turn from a
    /// pointer.
    fn oldest(&self, router: usize, nominees: &[u8; PORTS], inputs: u64, turn: u8) -> u8 {
        let ports = (0..PORTS).map(|step| (usize::from(turn) + step) % PORTS);
        let created = |&port: &usize| {
            let input =
                u32::try_from(router * PORTS + port).expect("inputs are counted in 32 bits");
            self.created(VcId { input, vc: nominees[port] })
        };
        let requesting = ports.filter(|port| inputs >> port & 1 == 1);
        let port = requesting.min_by_key(created).expect("an input requests the output");
        low_bit(1 << port)
    }

    /// The inputs of a router that are reserved for preset paths, and the VCs that are free after
    /// its outputs.
    #[inline]
    fn open_after(&self, router: usize, crossing: u64) -> (u8, Open) {
        let free = self.vcs.free_after(router);
        let of = |stage: usize| -> ByOutput {
            std::array::from_fn(|output| free[output * usize::from(STAGES) + stage])
        };
        let [east, west, north, south] = of(0);
        let free = [east, west, north, south, u64::MAX];
        let turns = if self.vcs.turns.is_empty() { [[0; 4]; 2] } else { [of(1), of(2)] };
        let open = Open { free, turns, usable: [u64::MAX; PORTS] };
        if self.geometry.interval.is_none() {
            return (0, open);
        }
        self.open_around_preset(router, crossing, open)
    }

    /// The same with preset paths.
    fn open_around_preset(&self, router: usize, crossing: u64, mut open: Open) -> (u8, Open) {
        let router = u32::try_from(router).expect("routers are counted in 32 bits");
        let (reserved_in, reserved_out) = self.geometry.reserved(router, crossing);
        for (output, usable) in open.usable.iter_mut().enumerate().take(LOCAL) {
            *usable = if reserved_out >> output & 1 == 0 { u64::MAX } else { 0 };
        }
        if self.geometry.blocks_ejection(crossing) {
            open.usable[LOCAL] = 0;
        }
        (reserved_in, open)
    }

    /// Whether a flit of a packet can get a VC after an output of a router.
    #[inline]
    pub(super) fn takes(&self, router: u32, output: usize, pool: u8, slot: u32) -> bool {
        self.vcs.has_free_after(router, output, pool)
            || self.packets.get(slot).flits > 1 && {
                let next = self.geometry.neighbour(router, output);
                self.vcs.of_packet(input_of(next, opposite(output)), pool, slot).is_some()
            }
    }

    /// Lets each output choose among the nominees that request it: one bit for each in the output's
    /// byte.
    fn choose(&mut self, router: usize, nominees: &[u8; PORTS], requesting: u64) {
        let (mut won, mut winners, mut requested) = ([0u8; PORTS], 0u8, 0u8);
        let mut left = requesting;
        while left != 0 {
            let output = left.trailing_zeros() as usize / 8;
            let inputs = left >> (8 * output) & 0xff;
            left ^= inputs << (8 * output);
            requested |= 1 << output;
            self.counts.output_arbitrations += 1;
            let turn = self.output_turns[router * PORTS + output];
            let port = if self.settings.arbiter == Arbiter::Oldest {
                self.oldest(router, nominees, inputs, turn)
            } else {
                FIRST[usize::from(turn)][index(inputs)]
            };
            won[usize::from(port)] |= 1 << output;
            winners |= 1 << port;
            let next = if usize::from(port) + 1 == PORTS { 0 } else { port + 1 };
            self.output_turns[router * PORTS + output] = next;
        }
        self.granted[router] = (winners, requested);
        while winners != 0 {
            let port = winners.trailing_zeros() as usize;
            winners &= winners - 1;
            let input = router * PORTS + port;
            let vc = nominees[port];
            self.input_turns[input] = if vc + 1 == self.vcs.per_port { 0 } else { vc + 1 };
            let input = u32::try_from(input).expect("inputs are counted in 32 bits");
            self.grants.push(Grant { place: VcId { input, vc }, outputs: won[port] });
        }
    }
}

impl Open {
    /// By output, the VCs of an input whose first flit could be granted it.
    #[inline]
    fn to(&self, input: &Input) -> [u64; PORTS] {
        std::array::from_fn(|output| {
            let open = (self.free[output] | input.follows) & self.usable[output];
            input.requests[output] & open
        })
    }

    /// And multicasts on private trees.
    #[inline]
    fn add_turns(&self, can: &mut [u64; PORTS], turns: &[ByOutput; 2]) {
        for (output, can) in can.iter_mut().enumerate().take(LOCAL) {
            let [before, after] = [0, 1].map(|turn| turns[turn][output] & self.turns[turn][output]);
            *can |= (before | after) & self.usable[output];
        }
    }
}

/// The VC that an input nominates, going round from its pointer, and the outputs open to it.
#[inline]
fn nominate(can: &[u64; PORTS], turn: u8) -> (u8, u8) {
    let [east, west, north, south, nic] = *can;
    let any = east | west | north | south | nic;
    if any == 0 {
        return (0, 0);
    }
    let later = any & u64::MAX << turn;
    let vc = low_bit(if later == 0 { any } else { later });
    (vc, outputs_of(can, vc))
}

/// The outputs open to a VC of an input.
#[inline]
fn outputs_of(can: &[u64; PORTS], vc: u8) -> u8 {
    let [east, west, north, south, nic] = *can;
    let bit = |word: u64| u8::from(word >> vc & 1 == 1);
    let mesh = bit(east) | bit(west) << 1 | bit(north) << 2 | bit(south) << 3;
    mesh | bit(nic) << LOCAL
}
