//! The formulas in real numbers: for choosing parameters and drawing figures, never for simulating.

use std::f64::consts::E;

use tutti_units::Time;

/// The number of overlapping messages per stage that makes a small all_reduce fastest in the pipelining
/// postal model: b_opt = exp(W((alpha_p - alpha_r) / (e alpha_r)) + 1) - 1 (Ruefenacht et al. 2017,
/// eq. (5)), where N may be any real power of b + 1.
///
/// A ratio alpha_p / alpha_r of 1 gives e - 1 = 1.72, of 4 gives 3.97. `None` when alpha_r is zero: then
/// more messages cost nothing and one stage is best.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "a formula in real numbers")]
pub fn b_opt(alpha_p: Time, alpha_r: Time) -> Option<f64> {
    if alpha_r == Time::ZERO {
        return None;
    }
    let ratio = alpha_p.ps() as f64 / alpha_r.ps() as f64;
    // The argument is at least -1/e, where rounding must not push it below.
    let argument = ((ratio - 1.0) / E).max(-1.0 / E);
    lambert_w0(argument).map(|w| libm::exp(w + 1.0) - 1.0)
}

/// The principal branch of Lambert's W: the w >= -1 with w e^w = x; `None` for x < -1/e.
///
/// Halley's iteration. Close to -1/e, W itself turns a relative error of epsilon in x into one of
/// sqrt(epsilon), whatever computes it.
#[must_use]
pub fn lambert_w0(x: f64) -> Option<f64> {
    if x.is_nan() || x < -1.0 / E {
        return None;
    }
    if x.is_infinite() {
        return Some(x);
    }
    let mut w = first_guess(x);
    for _ in 0..64 {
        if w <= -1.0 {
            return Some(-1.0);
        }
        let power = libm::exp(w);
        let error = w * power - x;
        let step = error / (power * (w + 1.0) - (w + 2.0) * error / (2.0 * w + 2.0));
        w -= step;
        if step.abs() <= 2.0 * f64::EPSILON * w.abs() {
            break;
        }
    }
    Some(w)
}

/// A series about the branch point, or the logarithms that W grows like.
fn first_guess(x: f64) -> f64 {
    if x < -0.2 {
        let p = libm::sqrt(2.0 * (E * x + 1.0).max(0.0));
        -1.0 + p - p * p / 3.0 + 11.0 / 72.0 * p * p * p
    } else if x < E {
        libm::log1p(x)
    } else {
        let log = libm::log(x);
        log - libm::log(log)
    }
}

/// Time in picoseconds of a small all_reduce on `ranks` ranks whose stages all send `b` messages, in the
/// pipelining postal model: (alpha_p + b alpha_r) log_(b+1) N (Ruefenacht et al. 2017, eq. (4) and
/// Fig. 4). Exact where `ranks` is a power of b + 1, a continuation elsewhere; `b` must be positive.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "a formula in real numbers")]
pub fn time_of_uniform_stages(alpha_p: Time, alpha_r: Time, b: f64, ranks: f64) -> f64 {
    let stage = alpha_p.ps() as f64 + b * alpha_r.ps() as f64;
    stage * libm::log(ranks) / libm::log1p(b)
}
