//! A resource that serves packets sequentially.

use super::ServerKind;
use tutti_units::{Bytes, Time, TimePerByte};

/// The utilisation of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerUse {
    /// Busy time.
    pub busy: Time,
    /// Total queueing delay.
    pub waited: Time,
    /// Bytes served.
    pub bytes: u64,
    /// Packets served.
    pub pieces: u64,
}

/// A FIFO server with a rate.
#[derive(Clone, Debug)]
pub struct Server {
    per_byte: TimePerByte,
    free: Time,
    used: ServerUse,
    /// Its busy intervals, for tests.
    #[cfg(test)]
    pub(crate) intervals: Vec<(Time, Time)>,
}

impl Server {
    /// An idle server.
    #[must_use]
    pub fn new(kind: ServerKind) -> Server {
        Server {
            per_byte: kind.per_byte,
            free: Time::ZERO,
            used: ServerUse::default(),
            #[cfg(test)]
            intervals: Vec::new(),
        }
    }

    /// Serves a packet that arrives at `now`, no earlier than the previous one; returns the start
    /// and the end of service.
    #[inline]
    pub fn serve(&mut self, now: Time, bytes: Bytes) -> (Time, Time) {
        let start = self.free.max(now);
        let work = self.per_byte.of(bytes);
        self.free = start + work;
        self.used.busy += work;
        self.used.waited += start - now;
        self.used.bytes += bytes.0;
        self.used.pieces += 1;
        #[cfg(test)]
        self.intervals.push((start, self.free));
        (start, self.free)
    }

    /// The busy time before `now`, and that after it for packets already accepted. No packet arrived
    /// after `now`.
    #[must_use]
    pub fn busy_at(&self, now: Time) -> (Time, Time) {
        let ahead = self.free - now;
        (self.used.busy - ahead, ahead)
    }

    /// Counts a packet that another model has served.
    pub fn count(&mut self, bytes: Bytes) {
        self.used.busy += self.per_byte.of(bytes);
        self.used.bytes += bytes.0;
        self.used.pieces += 1;
    }

    /// The utilisation so far.
    #[must_use]
    pub fn used(&self) -> ServerUse {
        self.used
    }
}
