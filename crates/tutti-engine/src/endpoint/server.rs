//! A resource that serves packets in the order of their arrival.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tutti_units::{Bytes, Time, TimePerByte};

/// How a server serves a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// Time per byte of a unit.
    pub per_byte: TimePerByte,
    /// Time that a packet occupies a unit in addition.
    pub per_packet: Time,
    /// Time from the end of service until the packet continues; the unit serves others in it.
    pub latency: Time,
    /// Units that serve packets in parallel.
    pub units: u32,
}

impl Service {
    /// One unit with a rate.
    #[must_use]
    pub fn at(per_byte: TimePerByte) -> Service {
        Service { per_byte, per_packet: Time::ZERO, latency: Time::ZERO, units: 1 }
    }

    /// How long a packet occupies a unit.
    #[inline]
    #[must_use]
    pub fn work(self, bytes: Bytes) -> Time {
        self.per_packet + self.per_byte.of(bytes)
    }
}

/// The utilisation of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerUse {
    /// Busy time; the mean of its units.
    pub busy: Time,
    /// Total queueing delay.
    pub waited: Time,
    /// Bytes served.
    pub bytes: u64,
    /// Packets served.
    pub pieces: u64,
}

/// A FIFO server.
#[derive(Clone, Debug)]
pub struct Server {
    service: Service,
    /// When its first unit is free.
    free: Time,
    /// When each of the others is free, the earliest first.
    others: BinaryHeap<Reverse<Time>>,
    used: ServerUse,
    /// Its busy intervals, for tests.
    #[cfg(test)]
    pub(crate) intervals: Vec<(Time, Time)>,
}

impl Server {
    /// An idle server.
    #[must_use]
    pub fn new(service: Service) -> Server {
        Server {
            service,
            free: Time::ZERO,
            others: (1..service.units).map(|_| Reverse(Time::ZERO)).collect(),
            used: ServerUse::default(),
            #[cfg(test)]
            intervals: Vec::new(),
        }
    }

    /// Serves a packet that arrives at `now`, no earlier than the previous one; returns the start of
    /// service, and when the packet continues.
    #[inline]
    pub fn serve(&mut self, now: Time, bytes: Bytes) -> (Time, Time) {
        let start = self.free.max(now);
        let work = self.service.work(bytes);
        let end = start + work;
        self.free = end;
        if let Some(mut earliest) = self.others.peek_mut()
            && earliest.0 < end
        {
            self.free = std::mem::replace(&mut earliest.0, end);
        }
        self.used.busy += work;
        self.used.waited += start - now;
        self.used.bytes += bytes.0;
        self.used.pieces += 1;
        #[cfg(test)]
        self.intervals.push((start, end));
        (start, end + self.service.latency)
    }

    /// The busy time before `now`, and that after it for packets already accepted, of a server with one
    /// unit. No packet arrived after `now`.
    #[must_use]
    pub fn busy_at(&self, now: Time) -> (Time, Time) {
        let ahead = self.free - now;
        (self.used.busy - ahead, ahead)
    }

    /// Counts a packet that another model has served.
    pub fn count(&mut self, bytes: Bytes) {
        self.used.busy += self.service.work(bytes);
        self.used.bytes += bytes.0;
        self.used.pieces += 1;
    }

    /// The utilisation so far.
    #[must_use]
    pub fn used(&self) -> ServerUse {
        let busy = Time::from_ps(self.used.busy.ps() / u64::from(self.service.units.max(1)));
        ServerUse { busy, ..self.used }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Each packet takes the unit that is free first; a server without units in parallel is FIFO.
        #[test]
        fn packets_take_the_first_free_unit(
            units in 1_u32..5,
            packets in prop::collection::vec((0_u64..20, 1_u64..30), 1..40),
        ) {
            let service = Service {
                per_byte: TimePerByte::new(1, 1).unwrap(),
                per_packet: Time::from_ps(3),
                latency: Time::from_ps(11),
                units,
            };
            let mut server = Server::new(service);
            let mut free = vec![0; units as usize];
            let (mut now, mut busy) = (0, 0);
            for (gap, bytes) in packets {
                now += gap;
                let unit = (0..free.len()).min_by_key(|&unit| free[unit]).unwrap();
                let start: u64 = now.max(free[unit]);
                free[unit] = start + bytes + 3;
                busy += bytes + 3;
                let expected = (Time::from_ps(start), Time::from_ps(free[unit] + 11));
                prop_assert_eq!(server.serve(Time::from_ps(now), Bytes(bytes)), expected);
            }
            prop_assert_eq!(server.used().busy.ps(), busy / u64::from(units));
        }
    }
}
