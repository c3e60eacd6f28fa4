//! Utilisation over time, in windows of equal length.

use tutti_units::Time;

/// Busy time in each window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Windows {
    width: Time,
    busy: Vec<Time>,
}

impl Windows {
    /// Windows of `width`; zero records nothing.
    #[must_use]
    pub fn new(width: Time) -> Windows {
        Windows { width, busy: Vec::new() }
    }

    /// Total busy time of each window.
    #[must_use]
    pub fn busy(&self) -> &[Time] {
        &self.busy
    }

    /// Adds work from `start` to `end`.
    #[inline]
    pub fn add(&mut self, start: Time, end: Time) {
        if self.width == Time::ZERO {
            return;
        }
        let mut from = start;
        while from < end {
            let index = from.ps() / self.width.ps();
            let until = self.width.times(index + 1).min(end);
            let index = usize::try_from(index).expect("windows fit into memory");
            if index >= self.busy.len() {
                self.busy.resize(index + 1, Time::ZERO);
            }
            self.busy[index] += until - from;
            from = until;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_divided_among_windows() {
        let mut windows = Windows::new(Time::from_ps(10));
        windows.add(Time::from_ps(5), Time::from_ps(25));
        windows.add(Time::from_ps(20), Time::from_ps(21));
        assert_eq!(windows.busy(), [5, 10, 6].map(Time::from_ps));
    }
}
