//! Serialization: how long the bytes of a message occupy a port.

use tutti_units::{Bytes, Time, TimePerByte};

/// The serialization time of a message in a model, as a function of its size.
///
/// The postal models charge n beta for n bytes. LogGP charges (n - 1) G, from the first byte to the last, and
/// nothing for a message of no bytes. With protocols, beta depends on n.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Serialization {
    per_byte: TimePerByte,
    /// Bytes at the start of a message that take no time.
    free: u64,
    /// The times per byte of messages of at least so many bytes, by ascending size.
    larger: [Option<(Bytes, TimePerByte)>; 2],
}

impl Serialization {
    /// Bytes take no time.
    pub const NONE: Serialization = Serialization::of_every_byte(TimePerByte::ZERO);

    /// Every byte takes `per_byte`.
    #[must_use]
    pub const fn of_every_byte(per_byte: TimePerByte) -> Serialization {
        Serialization { per_byte, free: 0, larger: [None; 2] }
    }

    /// Every byte but the first takes `per_byte`.
    #[must_use]
    pub const fn after_the_first(per_byte: TimePerByte) -> Serialization {
        Serialization { per_byte, free: 1, larger: [None; 2] }
    }

    /// Every byte takes `per_byte`; in larger messages, the time of the last of these sizes that the message
    /// reaches.
    #[must_use]
    pub const fn by_size(
        per_byte: TimePerByte,
        larger: [Option<(Bytes, TimePerByte)>; 2],
    ) -> Serialization {
        Serialization { per_byte, free: 0, larger }
    }

    /// The time per byte: the inverse of the port's rate, which is that of the fastest messages.
    #[must_use]
    pub fn per_byte(self) -> TimePerByte {
        let larger = self.larger.into_iter().flatten();
        larger.map(|(_, per_byte)| per_byte).fold(self.per_byte, TimePerByte::min)
    }

    /// The time per byte of a message.
    #[inline]
    #[must_use]
    pub fn per_byte_of(self, message: Bytes) -> TimePerByte {
        let reached = |larger: &(Bytes, TimePerByte)| message >= larger.0;
        let mut larger = self.larger.into_iter().flatten().filter(reached);
        larger.next_back().map_or(self.per_byte, |(_, per_byte)| per_byte)
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
        self.first(bytes, bytes)
    }

    /// Time from when a message's first byte is at the port until its first `bytes` have left.
    #[inline]
    #[must_use]
    pub fn first(self, bytes: Bytes, message: Bytes) -> Time {
        self.per_byte_of(message).of(self.charged(bytes))
    }
}
