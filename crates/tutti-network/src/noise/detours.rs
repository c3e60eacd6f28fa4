//! Detours: times in which a rank's processor is interrupted, in a repeating cycle.
//!
//! The ticks of an operating system are one detour per period; a recorded trace repeats. Each rank starts at
//! a random phase of the cycle, as in LogGOPSim (Hoefler, Schneider, Lumsdaine, HPDC 2010), or all at the
//! same phase (coscheduled). The lost time depends on when a rank works, not on its number of steps: a longer
//! run has more detours.

use std::sync::Arc;

use super::{Distribution, NoiseError};
use tutti_units::Time;
use tutti_units::random::random_bits;

/// Number of detours in a random cycle.
const RANDOM: u32 = 1 << 14;

/// Detours in a cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detours {
    cycle: Time,
    /// Time for work in a cycle; not zero.
    free: Time,
    /// Start and end, ascending and disjoint, within the cycle.
    windows: Arc<[(Time, Time)]>,
    aligned: bool,
}

impl Detours {
    /// One detour of `duration` in every `period`.
    ///
    /// # Errors
    /// When it leaves no time for work.
    pub fn periodic(period: Time, duration: Time, aligned: bool) -> Result<Detours, NoiseError> {
        Detours::trace(period, &[(Time::ZERO, duration)], aligned)
    }

    /// Detours as (start, duration) within a cycle. Overlapping ones count once; one that exceeds the end of
    /// the cycle wraps around.
    ///
    /// # Errors
    /// When one starts after the cycle's end, or they leave no time for work.
    pub fn trace(
        cycle: Time,
        detours: &[(Time, Time)],
        aligned: bool,
    ) -> Result<Detours, NoiseError> {
        if let Some(&(start, _)) = detours.iter().find(|(start, _)| *start > cycle) {
            return Err(NoiseError::OutsideCycle { start, cycle });
        }
        let longest = detours.iter().map(|&(_, duration)| duration).max().unwrap_or_default();
        let all = |lost| NoiseError::NoTimeToWork { lost, cycle };
        if longest >= cycle {
            return Err(all(longest));
        }
        let windows = apart(cycle, detours);
        let lost = windows.iter().fold(Time::ZERO, |sum, (start, end)| sum + (*end - *start));
        if lost >= cycle {
            return Err(all(lost));
        }
        Ok(Detours { cycle, free: cycle - lost, windows: windows.into(), aligned })
    }

    /// Random detours (a Poisson process) with mean `interval`, and durations drawn from `duration`. The cycle
    /// has 2^14 detours and is the same for every seed; the seed determines the phase of each rank.
    ///
    /// # Errors
    /// When the interval is zero, or they leave no time for work.
    pub fn random(
        interval: Time,
        duration: &Distribution,
        aligned: bool,
    ) -> Result<Detours, NoiseError> {
        if interval == Time::ZERO {
            return Err(NoiseError::NoTimeToWork { lost: interval, cycle: interval });
        }
        let (gap, mut now) = (Distribution::Exponential(interval), Time::ZERO);
        let mut detours = Vec::new();
        for number in 0..RANDOM {
            now += gap.draw(random_bits(0, [number, 0, 0, 0]));
            detours.push((now, duration.draw(random_bits(0, [number, 1, 0, 0]))));
        }
        Detours::trace(now, &detours, aligned)
    }

    /// The length of the cycle.
    #[must_use]
    pub fn cycle(&self) -> Time {
        self.cycle
    }

    /// Whether all ranks have the same phase.
    #[must_use]
    pub fn aligned(&self) -> bool {
        self.aligned
    }

    /// Whether there are no detours.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.windows.is_empty()
    }

    /// When a rank completes `work` that it starts at `start`, given its `phase` at time zero. Zero work
    /// completes at the end of the detour that contains `start`.
    #[must_use]
    pub fn done(&self, phase: Time, start: Time, work: Time) -> Time {
        let mut now = start;
        let mut at = self.place(phase, start);
        while let Some(&(_, end)) = self.windows[..self.started(at)].last().filter(|w| at < w.1) {
            now += end - at;
            // A detour may continue at the start of the next cycle.
            at = if end == self.cycle { Time::ZERO } else { end };
        }
        if work == Time::ZERO {
            return now;
        }
        // Complete cycles first; at least 1 ps remains, so the loop ends within one cycle.
        let cycles = (work.ps() - 1) / self.free.ps();
        now += self.cycle.times(cycles);
        let mut left = work - self.free.times(cycles);
        let next = self.started(at);
        let (passed, coming) = self.windows.split_at(next);
        let again = passed.iter().map(|&(start, end)| (start + self.cycle, end + self.cycle));
        for (start, end) in coming.iter().copied().chain(again) {
            if left <= start - at {
                break;
            }
            left = left - (start - at);
            now += end - at;
            at = end;
        }
        now + left
    }

    /// The position of a rank in the cycle.
    fn place(&self, phase: Time, now: Time) -> Time {
        let place = (u128::from(phase.ps()) + u128::from(now.ps())) % u128::from(self.cycle.ps());
        u64::try_from(place).map_or(Time::ZERO, Time::from_ps)
    }

    /// How many detours have started at a position in the cycle.
    fn started(&self, at: Time) -> usize {
        self.windows.partition_point(|&(start, _)| start <= at)
    }
}

/// Merges detours into ascending, disjoint windows within the cycle.
fn apart(cycle: Time, detours: &[(Time, Time)]) -> Vec<(Time, Time)> {
    let mut all = Vec::new();
    for &(start, duration) in detours.iter().filter(|(_, duration)| *duration > Time::ZERO) {
        let end = start + duration;
        all.push((start, end.min(cycle)));
        if end > cycle {
            all.push((Time::ZERO, end - cycle));
        }
    }
    all.sort_unstable();
    let mut windows: Vec<(Time, Time)> = Vec::new();
    for (start, end) in all.into_iter().filter(|(start, end)| start < end) {
        match windows.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => windows.push((start, end)),
        }
    }
    windows
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Picosecond by picosecond.
    fn slowly(cycle: u64, detours: &[(u64, u64)], phase: u64, start: u64, work: u64) -> u64 {
        let lost = |now: u64| {
            let at = (now + phase) % cycle;
            let within = |from: u64, long: u64| (at + cycle - from % cycle) % cycle < long;
            detours.iter().any(|&(from, long)| within(from, long))
        };
        let mut now = start;
        while lost(now) {
            now += 1;
        }
        let mut left = work;
        while left > 0 {
            left -= u64::from(!lost(now));
            now += 1;
        }
        now
    }

    #[test]
    fn work_completes_as_in_a_simulation_of_every_picosecond() {
        let cases: [(u64, &[(u64, u64)]); 6] = [
            (10, &[(0, 3)]),
            (10, &[(8, 4)]),
            (12, &[(1, 2), (5, 1), (9, 2)]),
            (12, &[(9, 5), (3, 3), (4, 1)]),
            (7, &[(2, 5)]),
            (5, &[(5, 2)]),
        ];
        for (cycle, detours) in cases {
            let times: Vec<_> = detours
                .iter()
                .map(|&(start, long)| (Time::from_ps(start), Time::from_ps(long)))
                .collect();
            let fast = Detours::trace(Time::from_ps(cycle), &times, false).unwrap();
            for phase in 0..cycle {
                for start in 0..2 * cycle {
                    for work in 0..3 * cycle {
                        let [p, s, w] = [phase, start, work].map(Time::from_ps);
                        let slow = slowly(cycle, detours, phase, start, work);
                        let case = (cycle, detours, phase, start, work);
                        assert_eq!(fast.done(p, s, w).ps(), slow, "{case:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn long_work_takes_no_longer_to_compute() {
        let ticks = Detours::periodic(Time::from_ps(1_000), Time::from_ps(1), true).unwrap();
        // 10^15 ps of work at 999 ps of work per cycle, started right after a detour.
        let done = ticks.done(Time::from_ps(1), Time::ZERO, Time::from_ps(999_000_000_000_000));
        assert_eq!(done.ps(), 999_999_999_999_999);
    }

    #[expect(clippy::cast_precision_loss, reason = "a share of time")]
    #[test]
    fn random_detours_take_the_expected_fraction_of_time() {
        let (us, tick) =
            (Time::from_ps(1_000_000), Distribution::parse("exponential(1 us)").unwrap());
        let detours = Detours::random(us.times(4), &tick, false).unwrap();
        // Busy as an M/G/infinity queue: free with probability exp(-1/4) = 0.7788. Sigma of the mean gap is 0.8 %.
        let free = detours.free.ps() as f64 / detours.cycle.ps() as f64;
        assert!((free - 0.7788).abs() < 0.01, "{free}");
        let mean = detours.cycle.ps() as f64 / f64::from(RANDOM);
        assert!((mean / 4e6 - 1.0).abs() < 0.04, "{mean}");
        assert!(Detours::random(Time::ZERO, &tick, false).is_err());
    }

    #[test]
    fn detours_that_leave_no_time_are_rejected() {
        let ps = Time::from_ps;
        let error = |result: Result<Detours, NoiseError>| result.unwrap_err().to_string();
        let full = Detours::periodic(ps(5), ps(5), false);
        assert_eq!(error(full), "detours of 5 ps leave no time for work in a cycle of 5 ps");
        let both = Detours::trace(ps(6), &[(ps(0), ps(3)), (ps(3), ps(3))], false);
        assert_eq!(error(both), "detours of 6 ps leave no time for work in a cycle of 6 ps");
        assert!(error(Detours::periodic(ps(0), ps(0), false)).contains("no time for work"));
        let late = Detours::trace(ps(6), &[(ps(7), ps(1))], false);
        assert_eq!(error(late), "a detour starts at 7 ps, after the cycle of 6 ps has ended");
    }
}
