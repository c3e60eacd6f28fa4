//! Closed forms: the time of an algorithm's critical path on a model, without simulation.
//!
//! An algorithm's [`Stage`]s describe what its slowest rank does between two waits: m messages sent, k
//! received, all of n bytes, then a reduction. The formulas below yield the time of a stage. They are
//! independent of the code of the models, and a test checks that the engine agrees to the picosecond.
//!
//! **Lockstep.** All ranks start a stage together, here at time 0, with idle ports. An exchange has m = k:
//! the i-th message a rank receives is the i-th of some peer. A fan-out has k = 1: the receiver receives the
//! sender's last message. A fan-in has m = 1: the receiver receives k messages sent simultaneously.
//!
//! **Postal.** The i-th message arrives after i (alpha + n beta), receiving is free: m (alpha + n beta).
//!
//! **Pipelining postal.** The i-th message leaves after i (alpha_r + n beta) and travels alpha_p:
//! alpha_p + m (alpha_r + n beta), eq. (3) of Ruefenacht et al. 2017.
//!
//! **Protocols.** As pipelining postal, with the parameters of messages of n bytes: eager, rendezvous or long.
//!
//! **LogP, LogGP, LogfP.** Let l = (n - 1) G (zero but in LogGP). Sends start at u_1 = 0, then o apart
//! while exempt from the gap (i <= f; f = 1 except in LogfP) and s = max(o, g + l) apart beyond: u_i. The last
//! send ends at F = u_m + o; the i-th message arrives at D + u_i, where D = o + l + L. Messages are received
//! with the same spacing, each after its arrival and none before F. In an exchange the i-th receive
//! starts at t_i = max(t_(i-1) + u_i - u_(i-1), D + u_i), t_1 = max(F, D), so by induction
//! t_i = max(F, D) + u_i. With k = 1 it is t = D + u_m, and D >= o makes F irrelevant; with m = 1 it is
//! t_k = max(F, D) + u_k. All three are t = max(F + u_k, D + u_max(m, k)), and the stage takes t + o.
//!
//! The next stage finds idle ports if it starts no sooner than g + l after the last send, and its first
//! message arrives no sooner than g + l after the last receive. It starts at t + o >= u_m + D + o, so both hold
//! if and only if g <= L + 2 o. Otherwise more than one stage **has no closed form**. In LogfP every burst is
//! independent, so both always hold.
//!
//! **LoP.** The j-th send ends at h_j = o_first + (j - 1) o_next. The time of i messages in the adapter is
//! C(i) = i processing + max(0, i - knee) saturation. The adapter completes the m-th message at x = max over
//! j of h_j + C(m) - C(j - 1). As h_j - C(j - 1) is concave in j with a bend at knee + 1, the maximum is
//! at 1, at knee + 1 or at m. The message arrives at x + L. The delay x_i - i o_next of the i-th message
//! never decreases with i, since the adapter only becomes slower. In an exchange the receives therefore end at
//! max(h_m + k o_next, x + L + o_next); in a fan-in at x + L + k o_next.

mod real;

pub use real::{b_opt, lambert_w0, time_of_uniform_stages};

use tutti_network::{LoP, LogGP, LogfP, Model, Protocols};
use tutti_schedule::algorithm::Stage;
use tutti_units::{Bytes, Time};

/// Returns the time of the stages in sequence, on a payload of `size` bytes in elements of `element` bytes;
/// `reduce` is the time of reducing a number of operands of a number of bytes.
///
/// `None` without a closed form. This is the case if the chunks of a stage are not an integer number of elements,
/// so that messages differ. It is also the case if the gap of LogP or LogGP is so long (g > L + 2 o) that ports
/// are still busy with the previous stage.
pub fn time(
    model: &Model,
    stages: &[Stage],
    size: Bytes,
    element: u64,
    reduce: impl Fn(u32, Bytes) -> Time,
) -> Option<Time> {
    if stages.len() > 1 && outlasts_a_stage(model) {
        return None;
    }
    let mut total = Time::ZERO;
    for stage in stages {
        let bytes = message_bytes(stage, size, element)?;
        total += stage_time(model, stage.messages, stage.receives, bytes);
        if stage.reductions > 0 {
            total += reduce(stage.reductions + 1, bytes);
        }
    }
    Some(total)
}

/// The bytes of a stage's messages, if all are equal.
fn message_bytes(stage: &Stage, size: Bytes, element: u64) -> Option<Bytes> {
    let elements = size.0.checked_div(element).filter(|count| count * element == size.0)?;
    let product = u128::from(elements) * u128::from(stage.chunks);
    let of = u128::from(stage.of);
    if of == 0 || !product.is_multiple_of(of) {
        return None;
    }
    u64::try_from(product / of).ok().map(|elements| Bytes(elements * element))
}

/// Whether a port may still be busy when the next stage starts.
fn outlasts_a_stage(model: &Model) -> bool {
    let outlasts = |m: &LogGP| m.g > m.L + m.o.times(2);
    match model {
        Model::LogP(m) => outlasts(&m.as_loggp()),
        Model::LogGP(m) => outlasts(m),
        Model::Postal(_)
        | Model::PipeliningPostal(_)
        | Model::LoP(_)
        | Model::LogfP(_)
        | Model::Protocols(_) => false,
    }
}

/// Time until the stage's last message is received: `m` sent sequentially, `k` received, of `n` bytes each.
#[must_use]
pub fn stage_time(model: &Model, m: u32, k: u32, n: Bytes) -> Time {
    if m == 0 || k == 0 {
        return Time::ZERO;
    }
    match model {
        Model::Postal(p) => (p.alpha + p.beta.of(n)).times(u64::from(m)),
        Model::PipeliningPostal(p) => p.alpha_p + (p.alpha_r + p.beta.of(n)).times(u64::from(m)),
        Model::LogP(p) => Rhythm::of_loggp(&p.as_loggp(), Bytes(0)).stage(m, k),
        Model::LogGP(p) => Rhythm::of_loggp(p, n).stage(m, k),
        Model::LogfP(p) => Rhythm::of_logfp(p).stage(m, k),
        Model::LoP(p) => lop_stage(p, m, k),
        Model::Protocols(p) => protocols_stage(p, m, n),
    }
}

/// What LogP, LogGP and LogfP have in common for messages of one size.
struct Rhythm {
    overhead: Time,
    /// l + L.
    wire: Time,
    /// s = max(o, g + l).
    apart: Time,
    /// Messages only o apart at the start of a burst.
    free: u32,
}

impl Rhythm {
    fn of_loggp(model: &LogGP, bytes: Bytes) -> Rhythm {
        let length = model.length(bytes);
        let overhead = model.o;
        let apart = overhead.max(model.g + length);
        Rhythm { overhead, wire: length + model.L, apart, free: 1 }
    }

    fn of_logfp(model: &LogfP) -> Rhythm {
        let overhead = model.o;
        let apart = overhead.max(model.g);
        Rhythm { overhead, wire: model.L, apart, free: model.f }
    }

    /// u_i.
    fn start(&self, i: u32) -> Time {
        let free = i.min(self.free);
        self.overhead.times(u64::from(free - 1)) + self.apart.times(u64::from(i - free))
    }

    fn stage(&self, m: u32, k: u32) -> Time {
        let sent = self.start(m) + self.overhead;
        let there = self.overhead + self.wire;
        let taken_from = (sent + self.start(k)).max(there + self.start(m.max(k)));
        taken_from + self.overhead
    }
}

fn lop_stage(p: &LoP, m: u32, k: u32) -> Time {
    let work = |i: u32| {
        let slow = u64::from(i.saturating_sub(p.knee));
        p.processing.times(u64::from(i)) + p.saturation.times(slow)
    };
    let handed_over = |j: u32| p.o_first + p.o_next.times(u64::from(j - 1));
    let candidate = |j: u32| handed_over(j) + (work(m) - work(j - 1));
    let bend = p.knee.saturating_add(1).min(m);
    let processed = candidate(1).max(candidate(bend)).max(candidate(m));
    let behind = u64::from(k.saturating_sub(m) + 1);
    let all_there = processed + p.L + p.o_next.times(behind);
    all_there.max(handed_over(m) + p.o_next.times(u64::from(k)))
}

fn protocols_stage(p: &Protocols, m: u32, n: Bytes) -> Time {
    let eager = n <= p.eager_limit;
    let (alpha_p, alpha_r) = if eager {
        (p.alpha_p, p.alpha_r)
    } else {
        (p.alpha_p_rendezvous.unwrap_or(p.alpha_p), p.alpha_r_rendezvous.unwrap_or(p.alpha_r))
    };
    let is_long = p.long_from.is_some_and(|from| n >= from);
    let beta = match (eager, is_long) {
        (true, _) => None,
        (false, true) => p.beta_long,
        (false, false) => p.beta_rendezvous,
    };
    alpha_p + (alpha_r + beta.unwrap_or(p.beta).of(n)).times(u64::from(m))
}

#[cfg(test)]
mod tests;
