//! Arrivals: the cycles in which packets are generated, without visiting the cycles between.
//!
//! The time to an event of constant probability per cycle is geometric; it is drawn directly. The
//! result has the distribution of a test in every cycle.

use super::Process;
use super::draw::{Stream, bits, share};
use tutti_units::random::unit;

/// The cycles in which nodes generate packets, each ascending.
#[derive(Clone, Debug)]
pub struct Arrivals {
    sampler: Sampler,
    seed: u64,
    nodes: Vec<Node>,
}

/// A process, with the logarithms that its draws divide by.
#[derive(Clone, Copy, Debug)]
enum Sampler {
    Bernoulli { gap: Geometric },
    OnOff { on: Geometric, off: Geometric, gap: Geometric },
    Periodic { rate: f64 },
}

#[derive(Clone, Copy, Debug)]
struct Node {
    /// Its next packet; `NEVER` if it sends no more.
    next: u64,
    /// Draws so far; packets so far where they are periodic.
    drawn: u64,
    /// The first cycle after the burst that `next` is in.
    burst_end: u64,
    /// How far into a period the node starts.
    phase: f64,
}

const NEVER: u64 = u64::MAX;

impl Arrivals {
    /// For so many nodes, from cycle 0 on.
    #[must_use]
    pub fn new(process: Process, nodes: u32, seed: u64) -> Arrivals {
        let sampler = match process {
            Process::Bernoulli { rate } => Sampler::Bernoulli { gap: Geometric::new(rate) },
            Process::Periodic { rate, .. } => Sampler::Periodic { rate },
            Process::OnOff { alpha, beta, r1 } => Sampler::OnOff {
                on: Geometric::new(beta),
                off: Geometric::new(alpha),
                gap: Geometric::new(r1),
            },
        };
        let aligned = !matches!(process, Process::Periodic { aligned: false, .. });
        let start = |number| {
            let phase = if aligned { 1.0 } else { share(seed, Stream::Phase, number, 0) };
            let mut node = Node { next: 0, drawn: 0, burst_end: 0, phase: 1.0 - phase };
            sampler.start(&mut node, &mut Draws { seed, node: number });
            node
        };
        Arrivals { sampler, seed, nodes: (0..nodes).map(start).collect() }
    }

    /// The first cycle at or after `from` in which `node` generates a packet, at most one in each
    /// cycle; `None` when it never does again. `from` never decreases.
    ///
    /// # Panics
    /// When the node does not exist.
    #[inline]
    pub fn next(&mut self, node: u32, from: u64) -> Option<u64> {
        let state = &mut self.nodes[node as usize];
        while state.next < from && state.next != NEVER {
            let after = state.next + 1;
            self.sampler.advance(state, after, &mut Draws { seed: self.seed, node });
        }
        (state.next != NEVER).then_some(state.next)
    }
}

/// The random numbers of a node.
struct Draws {
    seed: u64,
    node: u32,
}

impl Draws {
    #[inline]
    fn bits(&mut self, state: &mut Node) -> u64 {
        let number = state.drawn;
        state.drawn += 1;
        bits(self.seed, Stream::Arrival, self.node, number)
    }

    #[inline]
    fn cycles(&mut self, state: &mut Node, distribution: Geometric) -> u64 {
        let bits = self.bits(state);
        distribution.draw(bits)
    }
}

impl Sampler {
    /// The first packet.
    fn start(self, state: &mut Node, draws: &mut Draws) {
        if let Sampler::OnOff { on, off, .. } = self {
            // The state before cycle 0 decides with which chance cycle 0 has the other.
            let is_on = draws.bits(state) >> 63 == 1;
            if is_on {
                state.burst_end = draws.cycles(state, on);
            } else {
                let start = draws.cycles(state, off);
                state.burst_end = burst_end(state, draws, on, start);
                return self.advance(state, start, draws);
            }
        }
        self.advance(state, 0, draws);
    }

    /// The next packet at or after `from`, which for bursts is in a burst or the cycle after one.
    #[inline]
    fn advance(self, state: &mut Node, from: u64, draws: &mut Draws) {
        state.next = match self {
            Sampler::Bernoulli { gap } => from.saturating_add(draws.cycles(state, gap)),
            Sampler::OnOff { on, off, gap } => {
                let wait = draws.cycles(state, gap);
                within_bursts(state, draws, [on, off], from, wait)
            }
            Sampler::Periodic { rate } => periodic(state, rate, from),
        };
    }
}

/// The cycle in which `wait` cycles of bursts have passed since `from`.
fn within_bursts(
    state: &mut Node,
    draws: &mut Draws,
    [on, off]: [Geometric; 2],
    mut from: u64,
    mut wait: u64,
) -> u64 {
    while from != NEVER {
        let left = state.burst_end.saturating_sub(from);
        if wait < left {
            return from + wait;
        }
        // A burst without end never runs out of cycles, so the wait does: it is without end too.
        if wait == NEVER || state.burst_end == NEVER {
            return NEVER;
        }
        wait -= left;
        // At least one cycle off, then at least one on.
        from = state.burst_end.saturating_add(1).saturating_add(draws.cycles(state, off));
        state.burst_end = burst_end(state, draws, on, from);
    }
    NEVER
}

/// The end of a burst that starts at `start`.
fn burst_end(state: &mut Node, draws: &mut Draws, on: Geometric, start: u64) -> u64 {
    start.saturating_add(1).saturating_add(draws.cycles(state, on))
}

/// The cycle of the next of the packets that come at (phase + k) / rate.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "cycles beyond 2^53 are out of reach; a float that is too large saturates"
)]
fn periodic(state: &mut Node, rate: f64, from: u64) -> u64 {
    if rate <= 0.0 {
        return NEVER;
    }
    let cycle = libm::floor((state.drawn as f64 + state.phase) / rate) as u64;
    state.drawn += 1;
    // Two in a cycle would come of rounding only.
    cycle.max(from)
}

/// How many cycles without come before one with, when each has the same chance.
#[derive(Clone, Copy, Debug)]
enum Geometric {
    Never,
    Always,
    /// The inverse of the logarithm of the chance of a cycle without.
    Sometimes {
        scale: f64,
    },
}

impl Geometric {
    fn new(chance: f64) -> Geometric {
        if chance <= 0.0 {
            Geometric::Never
        } else if chance >= 1.0 {
            Geometric::Always
        } else {
            Geometric::Sometimes { scale: 1.0 / libm::log1p(-chance) }
        }
    }

    /// Longer than k with chance (1 - chance)^(k + 1): by inversion.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "not negative; what is too large saturates"
    )]
    fn draw(self, bits: u64) -> u64 {
        match self {
            Geometric::Never => NEVER,
            Geometric::Always => 0,
            Geometric::Sometimes { scale } => libm::floor(libm::log(unit(bits)) * scale) as u64,
        }
    }
}
