//! The pipelining postal model with the protocols of an MPI library: a message of up to `eager_limit` bytes is
//! eager, a longer one uses the rendezvous protocol. Source: Ruefenacht et al. 2017, eq. (3), with a threshold
//! of the size as S of LogGPS (Ino, Fujimoto, Hagihara, "LogGPS: a parallel computational model for
//! synchronization analysis", PPoPP 2001).
//!
//! b consecutive messages of n bytes take alpha_p(n) + b (alpha_r(n) + n beta(n)), with
//!
//! - the eager alpha_p, alpha_r and beta for n <= `eager_limit`;
//! - those of rendezvous above; a parameter that is absent equals the eager one;
//! - `beta_long` instead of the rendezvous beta for n >= `long_from`: such messages leave the cache.
//!
//! The handshake of a rendezvous is part of its latency. Inferred: it does not wait for the receiver. In LogGPS
//! it does.
//!
//! **Order of sizes.** A longer message takes at least as long as a shorter one; other parameters are rejected.
//! Its sender may be free earlier, since rendezvous can avoid a copy.

use super::{ModelError, takes_time};
use crate::{MessageModel, Port, Sent, Serialization};
use tutti_units::parameter::ParameterError;
use tutti_units::{Bytes, Time, TimePerByte};

tutti_units::parameters! {
    /// Pipelining postal model whose parameters differ between eager and rendezvous messages.
    ///
    /// b consecutive messages of n bytes take alpha_p + b (alpha_r + n beta), with the parameters of their size.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Protocols(
        "protocols" as "Protocols",
        "after Ruefenacht et al. 2017, eq. (3), and Ino et al. 2001",
        ModelError
    ) {
        /// The largest eager message, at least 1 B.
        eager_limit: Bytes,
        /// The part of an eager message's latency that overlaps with further messages.
        alpha_p: Time,
        /// The part of an eager message's latency that does not overlap.
        alpha_r: Time,
        /// Time per byte of eager messages; does not overlap.
        beta: TimePerByte = "0 ns/B",
        /// As alpha_p, for messages above eager_limit. If absent, alpha_p.
        alpha_p_rendezvous: Option<Time>,
        /// As alpha_r, for messages above eager_limit. If absent, alpha_r.
        alpha_r_rendezvous: Option<Time>,
        /// As beta, for messages above eager_limit. If absent, beta.
        beta_rendezvous: Option<TimePerByte>,
        /// As beta, for messages of at least long_from, which leave the cache.
        beta_long: Option<TimePerByte>,
        /// The smallest message that takes beta_long per byte; more than eager_limit.
        long_from: Option<Bytes>,
    }
}

/// The parameters of the pipelining postal model that apply to messages of some sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The smallest message.
    pub from: Bytes,
    /// The part of the latency that overlaps with further messages.
    pub alpha_p: Time,
    /// The part of the latency that does not overlap.
    pub alpha_r: Time,
    /// Time per byte.
    pub beta: TimePerByte,
}

impl Segment {
    /// How long a message of the segment occupies its sender.
    #[inline]
    #[must_use]
    pub fn issue(&self, bytes: Bytes) -> Time {
        self.alpha_r + self.beta.of(bytes)
    }
}

impl Protocols {
    /// Checks the parameters.
    ///
    /// # Errors
    /// When a message takes no time or a longer message less time than a shorter one, a limit is not positive,
    /// `long_from` does not exceed `eager_limit`, or only one of `long_from` and `beta_long` is given.
    pub fn checked(self) -> Result<Protocols, ModelError> {
        self.check_limits()?;
        let some = self.alpha_p + self.alpha_r != Time::ZERO || self.beta != TimePerByte::ZERO;
        takes_time(some, &Protocols::GROUP, "alpha_p, alpha_r and beta")?;
        for segment in self.larger() {
            let (shorter, longer) = (Bytes(segment.from.0 - 1), segment.from);
            let (short_time, long_time) = (self.time(shorter), self.time(longer));
            if long_time < short_time {
                let (shorter, longer) = ((shorter, short_time), (longer, long_time));
                return Err(ModelError::LongerTakesLess {
                    model: Protocols::GROUP.name,
                    longer,
                    shorter,
                });
            }
        }
        Ok(self)
    }

    /// Checks the sizes at which parameters change.
    fn check_limits(&self) -> Result<(), ParameterError> {
        let invalid = |parameter, value: Bytes, expected| {
            Err(ParameterError::OutOfRange { parameter, value: value.0, expected })
        };
        let missing = |name: &str| {
            let mut parameters = Protocols::GROUP.parameters.iter();
            let missing = parameters.find(|parameter| parameter.name == name);
            missing.map_or(Ok(()), |missing| Err(Protocols::GROUP.missing(missing)))
        };
        if self.eager_limit == Bytes(0) || self.eager_limit == Bytes(u64::MAX) {
            let expected = "at least 1 B, and less than 16 EiB".to_owned();
            return invalid("eager_limit", self.eager_limit, expected);
        }
        match (self.long_from, self.beta_long) {
            (Some(from), Some(_)) if from <= self.eager_limit => {
                let expected = format!("more than `eager_limit` ({})", self.eager_limit);
                invalid("long_from", from, expected)
            }
            (Some(_), None) => missing("beta_long"),
            (None, Some(_)) => missing("long_from"),
            _ => Ok(()),
        }
    }

    /// The parameters of eager messages.
    #[inline]
    #[must_use]
    pub fn eager(&self) -> Segment {
        let Protocols { alpha_p, alpha_r, beta, .. } = *self;
        Segment { from: Bytes(0), alpha_p, alpha_r, beta }
    }

    /// The parameters of messages above `eager_limit`.
    #[inline]
    #[must_use]
    pub fn rendezvous(&self) -> Segment {
        Segment {
            from: Bytes(self.eager_limit.0.saturating_add(1)),
            alpha_p: self.alpha_p_rendezvous.unwrap_or(self.alpha_p),
            alpha_r: self.alpha_r_rendezvous.unwrap_or(self.alpha_r),
            beta: self.beta_rendezvous.unwrap_or(self.beta),
        }
    }

    /// The parameters of messages that leave the cache, if they differ.
    #[inline]
    #[must_use]
    pub fn long(&self) -> Option<Segment> {
        let (from, beta) = (self.long_from?, self.beta_long?);
        Some(Segment { from, beta, ..self.rendezvous() })
    }

    /// The segments above `eager_limit`; rendezvous is not among them if all its messages are long.
    pub fn larger(&self) -> impl Iterator<Item = Segment> {
        let (rendezvous, long) = (self.rendezvous(), self.long());
        let some = long.is_none_or(|long| long.from > rendezvous.from);
        [some.then_some(rendezvous), long].into_iter().flatten()
    }

    /// The parameters of messages of that size.
    #[inline]
    #[must_use]
    pub fn segment(&self, bytes: Bytes) -> Segment {
        if bytes <= self.eager_limit {
            return self.eager();
        }
        let long = self.long().filter(|long| bytes >= long.from);
        long.unwrap_or_else(|| self.rendezvous())
    }

    /// The time of one message: alpha_p(n) + alpha_r(n) + n beta(n).
    #[must_use]
    pub fn time(&self, bytes: Bytes) -> Time {
        let segment = self.segment(bytes);
        segment.alpha_p + segment.issue(bytes)
    }

    /// n beta(n).
    #[must_use]
    pub fn serialization(&self) -> Serialization {
        let mut larger = self.larger().map(|segment| (segment.from, segment.beta));
        Serialization::by_size(self.beta, [larger.next(), larger.next()])
    }
}

impl MessageModel for Protocols {
    #[inline]
    fn send(&self, _port: &mut Port, now: Time, bytes: Bytes) -> Sent {
        let segment = self.segment(bytes);
        let free = now + segment.issue(bytes);
        Sent { free, arrival: free + segment.alpha_p }
    }

    #[inline]
    fn receive(&self, _port: &mut Port, now: Time, arrival: Time, _bytes: Bytes) -> Time {
        now.max(arrival)
    }

    // With one alpha_p, a message waits only for the bytes of earlier messages. Otherwise a short message can
    // leave before an earlier long one.
    fn keeps_order(&self, bytes: Serialization) -> bool {
        let one_latency = self.rendezvous().alpha_p == self.alpha_p;
        one_latency && (bytes == Serialization::NONE || bytes == self.serialization())
    }
}
