//! A resource that serves one piece after the other.

use super::ServerKind;
use tutti_units::{Bytes, Time, TimePerByte};

/// What a server has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerUse {
    /// How long it worked.
    pub busy: Time,
    /// How long pieces waited for it, all together.
    pub waited: Time,
    /// Bytes served.
    pub bytes: u64,
    /// Pieces served.
    pub pieces: u64,
}

/// First come, first served, at a rate.
#[derive(Clone, Debug)]
pub struct Server {
    per_byte: TimePerByte,
    free: Time,
    used: ServerUse,
}

impl Server {
    /// One that nobody has used yet.
    #[must_use]
    pub fn new(kind: ServerKind) -> Server {
        Server { per_byte: kind.per_byte, free: Time::ZERO, used: ServerUse::default() }
    }

    /// A piece comes at `now`, no earlier than the one before it: when the server begins with it and when
    /// it is done.
    #[inline]
    pub fn serve(&mut self, now: Time, bytes: Bytes) -> (Time, Time) {
        let start = self.free.max(now);
        let work = self.per_byte.of(bytes);
        self.free = start + work;
        self.used.busy += work;
        self.used.waited += start - now;
        self.used.bytes += bytes.0;
        self.used.pieces += 1;
        (start, self.free)
    }

    /// What it has done so far.
    #[must_use]
    pub fn used(&self) -> ServerUse {
        self.used
    }
}
