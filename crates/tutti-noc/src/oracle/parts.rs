//! The parts of nodes and routers: flits, outputs with the credits of the buffers downstream,
//! channels.

use std::collections::VecDeque;

use super::clock::{Ends, Ticks};
use crate::packet::{Head, Order};
use crate::{Channel, PortBuffers, Priority, Settings, Wiring};

/// A flit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Flit {
    /// Its packet's serial number.
    pub(super) packet: u64,
    pub(super) head: bool,
    pub(super) tail: bool,
    /// The VC it is in, or will be in.
    pub(super) vc: u32,
}

/// A packet in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    pub(super) head: Head,
    pub(super) order: Order,
    pub(super) injected: u64,
    pub(super) head_arrived: u64,
}

impl Packet {
    /// Its priority, in a range that leaves lower values for speculative requests.
    pub(super) fn priority(&self, settings: &Settings) -> i64 {
        match settings.priority {
            Priority::None => 0,
            Priority::Ordered => self.order.priority.clamp(-(1 << 61), 1 << 61),
            Priority::Age => {
                i64::try_from(self.order.created).map_or(-(1 << 61), |created| -created)
            }
        }
    }
}

/// The state of one VC of the downstream buffer, at an output.
#[derive(Clone, Copy, Debug)]
pub(super) struct OutputVc {
    pub(super) credits: u32,
    /// Whether it is allocated.
    pub(super) taken: bool,
    /// Whether the last flit of that packet has been sent.
    pub(super) tail_sent: bool,
}

/// An output port, of a router or a node.
#[derive(Clone, Debug)]
pub(super) struct Output {
    pub(super) channel: usize,
    pub(super) vcs: Vec<OutputVc>,
    /// Flits that each buffer behind it holds.
    pub(super) capacity: u32,
    /// Flits that have crossed the switch and are not yet on the channel.
    pub(super) queue: VecDeque<Flit>,
    /// When the channel can take the next flit, in picoseconds.
    pub(super) free_at: u64,
    /// How long the channel is busy with a flit, if that is longer than a cycle, else 0.
    slow_by: u64,
    /// The period of its clock.
    cycle: u64,
}

impl Output {
    pub(super) fn new(wiring: &Wiring, channel: u32, settings: &Settings) -> Output {
        let wire = &wiring.channels()[channel as usize];
        let flit_time = wire.parameters.flit_time;
        let PortBuffers { vcs, buffer } = settings.buffers_behind(wire);
        // A VC that is not there is never given to a packet.
        let vc = |vc| OutputVc { credits: buffer, taken: vcs >> vc & 1 == 0, tail_sent: false };
        Output {
            channel: channel as usize,
            vcs: (0..settings.vcs).map(vc).collect(),
            capacity: buffer,
            queue: VecDeque::new(),
            free_at: 0,
            slow_by: if flit_time > wiring.cycle() { flit_time.ps() } else { 0 },
            cycle: Ends::new(wire, wiring, settings).from.period,
        }
    }

    /// A credit has come back.
    pub(super) fn credit(&mut self, vc: u32, settings: &Settings) {
        let vc = &mut self.vcs[vc as usize];
        vc.credits += 1;
        if settings.wait_for_tail_credit && vc.tail_sent && vc.credits == self.capacity {
            vc.taken = false;
        }
    }

    /// Allocates a VC to a packet.
    pub(super) fn take(&mut self, vc: u32) {
        let vc = &mut self.vcs[vc as usize];
        assert!(!vc.taken, "a VC is given to one packet at a time");
        vc.taken = true;
        vc.tail_sent = false;
    }

    /// A flit is about to leave: it uses a credit, and the tail frees its VC.
    pub(super) fn use_credit(&mut self, flit: &Flit, settings: &Settings) {
        let vc = &mut self.vcs[flit.vc as usize];
        assert!(vc.taken && vc.credits > 0, "a flit leaves for an allocated VC with a credit");
        vc.credits -= 1;
        if flit.tail {
            vc.tail_sent = true;
            vc.taken = settings.wait_for_tail_credit;
        }
    }

    /// Whether the channel is busy for all of the cycle that starts now. A channel that becomes
    /// free within the cycle takes a flit, so that one of 1.5 cycles per flit takes two in three
    /// cycles, not one in two.
    pub(super) fn is_busy(&self, now: u64) -> bool {
        self.free_at >= now + self.cycle
    }

    /// The channel is busy with a flit from `now` on, or from the end of the flits before it, if it
    /// is slower than a flit per cycle.
    pub(super) fn occupy(&mut self, now: u64) {
        if self.slow_by > 0 {
            self.free_at = self.free_at.max(now) + self.slow_by;
        }
    }
}

/// The flits and credits in flight on a channel, with the time in picoseconds at which they are at
/// its other end.
#[derive(Clone, Debug)]
pub(super) struct Wire {
    pub(super) channel: Channel,
    pub(super) clocks: Ends,
    /// A cycle of the network, in picoseconds.
    pub(super) cycle: u64,
    pub(super) flits: VecDeque<(u64, Flit)>,
    /// Credits that were sent together: for several VCs.
    pub(super) credits: VecDeque<(u64, Vec<u32>)>,
    /// Cycles that its upstream end takes to count a credit.
    pub(super) credit_delay: u32,
    /// Flits sent, by VC.
    pub(super) sent: Vec<u64>,
}

impl Wire {
    /// A flit is on the wire when this cycle of the sender ends.
    pub(super) fn send(&mut self, flit: Flit) {
        self.sent[flit.vc as usize] += 1;
        let arrives = self.crossed(self.clocks.from, self.channel.parameters.latency);
        self.flits.push_back((arrives, flit));
    }

    /// Credits are on the wire when this cycle of the receiver of flits ends.
    pub(super) fn send_credits(&mut self, vcs: Vec<u32>) {
        let arrives = self.crossed(self.clocks.to, self.channel.parameters.credit_latency);
        self.credits.push_back((arrives, vcs));
    }

    fn crossed(&self, sender: Ticks, latency: u32) -> u64 {
        let cycle = sender.started.expect("a part acts when a cycle of its clock starts");
        (cycle + 1) * sender.period + u64::from(latency) * self.cycle
    }

    /// The first flit in the synchroniser, if the receiver can take one now.
    pub(super) fn take_flit(&mut self) -> Option<Flit> {
        first_through(&mut self.flits, self.clocks.to, self.clocks.flits_wait)
    }

    /// All credits that count now.
    pub(super) fn take_credits(&mut self) -> Vec<u32> {
        let waits = self.clocks.credits_wait + u64::from(self.credit_delay);
        let mut taken = Vec::new();
        while let Some(vcs) = first_through(&mut self.credits, self.clocks.from, waits) {
            taken.extend(vcs);
        }
        taken
    }
}

/// The first item, if it was there so many cycles of the receiver ago.
fn first_through<T>(line: &mut VecDeque<(u64, T)>, receiver: Ticks, waits: u64) -> Option<T> {
    let sampled = receiver.started?.checked_sub(waits)?;
    if line.front()?.0 > sampled * receiver.period {
        return None;
    }
    line.pop_front().map(|(_, item)| item)
}
