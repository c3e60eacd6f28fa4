//! Lower bounds of messages whose parameters depend on their size.
//!
//! The segments are s = 0 (eager), 1 (rendezvous), 2 (long). A schedule may use messages of any segment, so the
//! bounds are minima over them. The sender may be busy longer with a shorter message.

use tutti_network::{Protocols, Segment};
use tutti_units::{Bytes, Time, TimePerByte};

/// How long a message of at least `bytes` occupies its sender at least.
pub(super) fn issue(m: &Protocols, bytes: Bytes) -> Time {
    let larger = m.larger().filter(|segment| segment.from > bytes);
    let larger = larger.map(|segment| segment.issue(segment.from));
    larger.fold(m.segment(bytes).issue(bytes), Time::min)
}

/// The smallest time of a message on its sender, and the smallest time per byte.
pub(super) fn fastest(m: &Protocols) -> (Time, TimePerByte) {
    let larger = m.larger();
    larger.fold((m.alpha_r, m.beta), |(time, per_byte), segment| {
        (time.min(segment.alpha_r), per_byte.min(segment.beta))
    })
}

/// Time until the receivers have at least `bytes` that a rank sends in any messages.
///
/// Let s be the largest segment in use, and t the bytes sent: at least `bytes` and, with s > 0, a message of s.
///
/// - s = 0: at least t / `eager_limit` messages, rounded up, and the alpha_p of the last.
/// - s > 0: one message of s costs alpha_r of s. Each of the t bytes costs at least the smallest beta of a
///   segment up to s, or what it costs in the largest eager message. The last message to leave has the smaller
///   alpha_p at least.
///
/// Every term is the rounded-up minimum of an exact sum, so rounding each message up cannot be below it.
pub(super) fn sent(m: &Protocols, bytes: Bytes) -> Time {
    let eager = |t: Bytes, messages: u64| m.alpha_r.times(messages) + m.beta.of(t);
    let mut least = m.alpha_p + eager(bytes, bytes.0.div_ceil(m.eager_limit.0).max(1));
    let mut beta: Option<TimePerByte> = None;
    for Segment { from, alpha_p, alpha_r, beta: slope } in m.larger() {
        let t = bytes.max(from);
        let smallest = beta.map_or(slope, |beta| beta.min(slope));
        let per_byte = smallest.of(t).min(eager(t, t.0 / m.eager_limit.0));
        least = least.min(alpha_p.min(m.alpha_p) + alpha_r + per_byte);
        beta = Some(smallest);
    }
    least
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The smallest time in which messages of at least `bytes` in total arrive, over all multisets of messages.
    fn by_enumeration(m: &Protocols, bytes: usize) -> Time {
        let most = bytes.max(60);
        let issue = |n: usize| m.segment(Bytes(n as u64)).issue(Bytes(n as u64));
        // The time on the sender of any messages of exactly so many bytes.
        let mut busy = vec![Time::ZERO];
        for total in 1..=most {
            let last = |n: usize| busy[total - n] + issue(n);
            busy.push((1..=total).map(last).min().unwrap());
        }
        let last = |n: usize| {
            let before = busy[bytes.saturating_sub(n)..].iter().min().unwrap();
            *before + m.time(Bytes(n as u64))
        };
        (0..=most).map(last).min().unwrap()
    }

    proptest! {
        #[test]
        fn no_messages_are_faster(
            (p, r, later_p, later_r) in (0_u64..90, 1_u64..90, 0_u64..90, 0_u64..90),
            (beta, later_beta, long_beta) in (0_u64..9, 0_u64..9, 0_u64..9),
            (limit, beyond, bytes) in (1_u64..20, 1_u64..20, 0_usize..70),
        ) {
            let protocols = Protocols {
                eager_limit: Bytes(limit),
                alpha_p: Time::from_ps(p),
                alpha_r: Time::from_ps(r),
                beta: TimePerByte::new(beta, 3).unwrap(),
                alpha_p_rendezvous: Some(Time::from_ps(later_p)),
                alpha_r_rendezvous: Some(Time::from_ps(later_r)),
                beta_rendezvous: TimePerByte::new(later_beta, 3),
                beta_long: TimePerByte::new(long_beta, 3),
                long_from: Some(Bytes(limit + beyond)),
            };
            prop_assume!(protocols.checked().is_ok());
            let least = sent(&protocols, Bytes(bytes as u64));
            prop_assert!(least <= by_enumeration(&protocols, bytes));
            let issues = (bytes as u64..100).map(|n| protocols.segment(Bytes(n)).issue(Bytes(n)));
            prop_assert_eq!(Some(issue(&protocols, Bytes(bytes as u64))), issues.min());
        }

        #[test]
        fn equal_parameters_have_the_bound_of_one_message(
            (p, r, beta) in (0_u64..90, 1_u64..90, 0_u64..9),
            (limit, bytes) in (1_u64..20, 0_u64..70),
        ) {
            let protocols = Protocols {
                eager_limit: Bytes(limit),
                alpha_p: Time::from_ps(p),
                alpha_r: Time::from_ps(r),
                beta: TimePerByte::new(beta, 3).unwrap(),
                ..Protocols::default()
            };
            prop_assert_eq!(sent(&protocols, Bytes(bytes)), protocols.time(Bytes(bytes)));
        }
    }
}
