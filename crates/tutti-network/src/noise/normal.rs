//! Normal deviates, and reals rounded to picoseconds.

use tutti_units::Time;

/// Rounds to picoseconds, clamped to [0, maximum].
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float becomes the nearest integer that there is"
)]
pub(super) fn picoseconds(real: f64) -> Time {
    Time::from_ps(libm::round(real.max(0.0)) as u64)
}

/// The probability that a standard normal deviate is below `z`.
pub(super) fn normal_below(z: f64) -> f64 {
    0.5 * libm::erfc(-z / std::f64::consts::SQRT_2)
}

/// The quantile of the standard normal distribution at p in (0, 1). Wichura's AS 241
/// ("The percentage points of the normal distribution", 1988), to about 1 part in 10^16.
pub(super) fn normal_quantile(p: f64) -> f64 {
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        return q * ratio(0.180_625 - q * q, &MIDDLE);
    }
    let tail = if q < 0.0 { p } else { 1.0 - p };
    let r = libm::sqrt(-libm::log(tail));
    let z = if r <= 5.0 { ratio(r - 1.6, &SHOULDER) } else { ratio(r - 5.0, &TAIL) };
    if q < 0.0 { -z } else { z }
}

/// Numerator and denominator of a rational approximation, constant terms first.
type Rational = [[f64; 8]; 2];

fn ratio(x: f64, [above, below]: &Rational) -> f64 {
    let horner = |terms: &[f64; 8]| terms.iter().rev().fold(0.0, |sum, term| sum * x + term);
    horner(above) / horner(below)
}

#[expect(clippy::unreadable_literal, clippy::excessive_precision, reason = "as published")]
const MIDDLE: Rational = [
    [
        3.3871328727963666080e0,
        1.3314166789178437745e2,
        1.9715909503065514427e3,
        1.3731693765509461125e4,
        4.5921953931549871457e4,
        6.7265770927008700853e4,
        3.3430575583588128105e4,
        2.5090809287301226727e3,
    ],
    [
        1.0,
        4.2313330701600911252e1,
        6.8718700749205790830e2,
        5.3941960214247511077e3,
        2.1213794301586595867e4,
        3.9307895800092710610e4,
        2.8729085735721942674e4,
        5.2264952788528545610e3,
    ],
];

#[expect(clippy::unreadable_literal, clippy::excessive_precision, reason = "as published")]
const SHOULDER: Rational = [
    [
        1.42343711074968357734e0,
        4.63033784615654529590e0,
        5.76949722146069140550e0,
        3.64784832476320460504e0,
        1.27045825245236838258e0,
        2.41780725177450611770e-1,
        2.27238449892691845833e-2,
        7.74545014278341407640e-4,
    ],
    [
        1.0,
        2.05319162663775882187e0,
        1.67638483018380384940e0,
        6.89767334985100004550e-1,
        1.48103976427480074590e-1,
        1.51986665636164571966e-2,
        5.47593808499534494600e-4,
        1.05075007164441684324e-9,
    ],
];

#[expect(clippy::unreadable_literal, clippy::excessive_precision, reason = "as published")]
const TAIL: Rational = [
    [
        6.65790464350110377720e0,
        5.46378491116411436990e0,
        1.78482653991729133580e0,
        2.96560571828504891230e-1,
        2.65321895265761230930e-2,
        1.24266094738807843860e-3,
        2.71155556874348757815e-5,
        2.01033439929228813265e-7,
    ],
    [
        1.0,
        5.99832206555887937690e-1,
        1.36929880922735805310e-1,
        1.48753612908506148525e-2,
        7.86869131145613259100e-4,
        1.84631831751005468180e-5,
        1.42151175831644588870e-7,
        2.04426310338993978564e-15,
    ],
];
