//! The endpoints of a carrier: cycles and times, flits and bytes, the ports of receivers, and
//! messages that have arrived. [`crate::FlitCarrier`] and [`crate::smart::FabricCarrier`] share
//! them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use tutti_network::packet::Ends;
use tutti_network::{Carried, Deadlock, Ticket};
use tutti_units::{Bytes, Time};

/// See the module.
pub(crate) struct Endpoints<'a> {
    cycle: Time,
    /// Bytes of a message in a flit.
    payload: Bytes,
    ends: Ends,
    /// Per receiver, when its ejection port is free.
    free: Vec<Time>,
    /// Messages that have arrived and were not reported yet, in order of time.
    arrived: VecDeque<(Ticket, Time)>,
    pub(crate) stop: Option<&'a AtomicBool>,
}

impl Endpoints<'_> {
    pub(crate) fn new(cycle: Time, payload: Bytes, ends: Ends, receivers: usize) -> Self {
        let (free, arrived) = (vec![Time::ZERO; receivers], VecDeque::new());
        Endpoints { cycle, payload, ends, free, arrived, stop: None }
    }

    /// Whether the caller has stopped the run.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    /// The first complete cycle from a time on.
    pub(crate) fn cycle_of(&self, time: Time) -> u64 {
        time.ps().div_ceil(self.cycle.ps())
    }

    pub(crate) fn time_of(&self, cycle: u64) -> Time {
        Time::from_ps(cycle.saturating_mul(self.cycle.ps()))
    }

    /// The number of flits of `bytes` bytes; at least one.
    pub(crate) fn flits(&self, bytes: Bytes) -> u64 {
        bytes.0.div_ceil(self.payload.0).max(1)
    }

    /// Bytes in so many flits of a message; its last flit may be filled in part.
    pub(crate) fn carried(&self, message: Bytes, flits: u64) -> Bytes {
        Bytes((flits * self.payload.0).min(message.0))
    }

    /// When the first byte of a message leaves: the model's arrival counts the time at the sender's
    /// port.
    pub(crate) fn departure(&self, message: &Carried) -> Time {
        let handed_over = self.handed_over(message.bytes, message.bytes);
        message.arrival - handed_over.min(message.arrival)
    }

    /// The serialization time of the first `bytes` of a message at the sender's port.
    pub(crate) fn handed_over(&self, bytes: Bytes, message: Bytes) -> Time {
        self.ends.hands_over.first(bytes, message)
    }

    /// When the receiver's port has received a packet whose first and last flit arrive at these
    /// times.
    pub(crate) fn take(&mut self, receiver: u32, head: Time, tail: Time, bytes: Bytes) -> Time {
        let Some(takes) = self.ends.takes else { return tail };
        let free = &mut self.free[receiver as usize];
        let start = head.max(*free);
        *free = (start + takes.per_byte().of(bytes)).max(tail);
        (start + takes.of(bytes)).max(tail)
    }

    /// A message has arrived.
    pub(crate) fn arrive(&mut self, ticket: Ticket, time: Time) {
        let place = self.arrived.partition_point(|&(_, earlier)| earlier <= time);
        self.arrived.insert(place, (ticket, time));
    }

    /// A network deadlocked since a cycle, with the VCs of the deadlock cycle.
    pub(crate) fn deadlock(
        &self,
        since: u64,
        messages: usize,
        deadlock_cycle: Vec<String>,
    ) -> Deadlock {
        Deadlock { since: self.time_of(since), messages, deadlock_cycle }
    }

    /// The cycle from which on the first message that has arrived can be reported.
    pub(crate) fn due(&self) -> Option<u64> {
        self.arrived.front().map(|&(_, time)| self.cycle_of(time))
    }

    /// The first message that has arrived, not reported yet.
    pub(crate) fn next(&self) -> Option<(Ticket, Time)> {
        self.arrived.front().copied()
    }

    /// Reports the first message that has arrived.
    pub(crate) fn report(&mut self) -> Option<(Ticket, Time)> {
        self.arrived.pop_front()
    }
}
