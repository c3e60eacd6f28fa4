//! The roofline model: the time of a kernel bound by arithmetic or memory.

use tutti_units::{Bytes, OpRate, Time, TimePerByte};

/// The work of a kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Operations; a multiply-accumulate counts two.
    pub flops: u64,
    /// Bytes read from and written to memory.
    pub bytes: Bytes,
}

/// The compute part of an NPU: the longer of arithmetic and memory time counts (Williams, Waterman,
/// Patterson 2009).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Roofline {
    /// The rate of arithmetic.
    pub arithmetic: OpRate,
    /// Time per byte of memory.
    pub memory: TimePerByte,
}

impl Roofline {
    /// Returns the time of `work`, rounded up to a picosecond; the maximum if the rate is zero.
    #[must_use]
    pub fn time(&self, work: Work) -> Time {
        self.arithmetic.of(work.flops).max(self.memory.of(work.bytes))
    }

    /// Whether `work` is memory-bound.
    #[must_use]
    pub fn is_memory_bound(&self, work: Work) -> bool {
        self.memory.of(work.bytes) > self.arithmetic.of(work.flops)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 120 TFLOP/s and 900 GB/s: the ridge lies at 133.3 operations a byte.
    fn v100() -> Roofline {
        let memory = TimePerByte::parse("900 GB/s").unwrap();
        Roofline { arithmetic: OpRate::per_second(120_000_000_000_000), memory }
    }

    #[test]
    fn arithmetic_bound_above_the_ridge() {
        let work = Work { flops: 1_200_000_000, bytes: Bytes(1_000_000) };
        assert_eq!(v100().time(work), Time::from_ps(10_000_000));
        assert!(!v100().is_memory_bound(work));
    }

    #[test]
    fn memory_bound_below_it() {
        let work = Work { flops: 1_000, bytes: Bytes(9_000) };
        assert_eq!(v100().time(work), Time::from_ps(10_000));
        assert!(v100().is_memory_bound(work));
    }

    #[test]
    fn fractions_of_a_picosecond_round_up() {
        assert_eq!(v100().time(Work { flops: 121, bytes: Bytes(0) }), Time::from_ps(2));
        assert_eq!(v100().time(Work::default()), Time::ZERO);
    }

    #[test]
    fn a_zero_arithmetic_rate_never_completes() {
        let none = Roofline { arithmetic: OpRate::per_second(0), ..v100() };
        assert_eq!(none.time(Work { flops: 1, bytes: Bytes(0) }), Time::MAX);
        assert_eq!(none.time(Work { flops: 0, bytes: Bytes(9) }), Time::from_ps(10));
    }
}
