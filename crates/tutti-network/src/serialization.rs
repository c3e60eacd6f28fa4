//! Serialization: how long the bytes of a message occupy a port.

use tutti_units::{Bytes, Time, TimePerByte};

/// The serialization time of a message in a model, as a function of its size.
///
/// The postal models charge n beta for n bytes. LogGP charges (n - 1) G, from the first byte to the last, and
/// nothing for a message of no bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Serialization {
    per_byte: TimePerByte,
    /// Bytes at the start of a message that take no time.
    free: u64,
}

impl Serialization {
    /// Bytes take no time.
    pub const NONE: Serialization = Serialization::of_every_byte(TimePerByte::ZERO);

    /// Every byte takes `per_byte`.
    #[must_use]
    pub const fn of_every_byte(per_byte: TimePerByte) -> Serialization {
        Serialization { per_byte, free: 0 }
    }

    /// Every byte but the first takes `per_byte`.
    #[must_use]
    pub const fn after_the_first(per_byte: TimePerByte) -> Serialization {
        Serialization { per_byte, free: 1 }
    }

    /// The time per byte: the inverse of the port's rate.
    #[must_use]
    pub const fn per_byte(self) -> TimePerByte {
        self.per_byte
    }

    /// The bytes of a message that take time.
    #[inline]
    #[must_use]
    pub fn charged(self, bytes: Bytes) -> Bytes {
        Bytes(bytes.0.saturating_sub(self.free))
    }

    /// Time from when a message's first byte is at the port until its last has left.
    #[inline]
    #[must_use]
    pub fn of(self, bytes: Bytes) -> Time {
        self.per_byte.of(self.charged(bytes))
    }
}
