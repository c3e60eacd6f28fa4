//! Columns of integers in the bytes that their largest value needs.

/// A column that widens when a value does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Narrow {
    One(Vec<u8>),
    Two(Vec<u16>),
    Four(Vec<u32>),
    Eight(Vec<u64>),
}

impl Default for Narrow {
    fn default() -> Narrow {
        Narrow::One(Vec::new())
    }
}

impl Narrow {
    #[inline]
    pub(super) fn get(&self, at: usize) -> u64 {
        match self {
            Narrow::One(column) => column[at].into(),
            Narrow::Two(column) => column[at].into(),
            Narrow::Four(column) => column[at].into(),
            Narrow::Eight(column) => column[at],
        }
    }

    #[inline]
    pub(super) fn push(&mut self, value: u64) {
        let fits = match self {
            Narrow::One(column) => u8::try_from(value).map(|value| column.push(value)).is_ok(),
            Narrow::Two(column) => u16::try_from(value).map(|value| column.push(value)).is_ok(),
            Narrow::Four(column) => u32::try_from(value).map(|value| column.push(value)).is_ok(),
            Narrow::Eight(column) => {
                column.push(value);
                true
            }
        };
        if !fits {
            self.widen(value);
            self.push(value);
        }
    }

    /// Adds 1 to a value.
    pub(super) fn increment(&mut self, at: usize) {
        let value = self.get(at) + 1;
        let fits = match self {
            Narrow::One(column) => u8::try_from(value).map(|value| column[at] = value).is_ok(),
            Narrow::Two(column) => u16::try_from(value).map(|value| column[at] = value).is_ok(),
            Narrow::Four(column) => u32::try_from(value).map(|value| column[at] = value).is_ok(),
            Narrow::Eight(column) => {
                column[at] = value;
                true
            }
        };
        if !fits {
            self.widen(value);
            self.increment(at);
        }
    }

    /// Subtracts 1 from a positive value; returns whether it is zero now.
    #[inline]
    pub(super) fn decrement(&mut self, at: usize) -> bool {
        macro_rules! decrement {
            ($column:expr) => {{
                $column[at] -= 1;
                $column[at] == 0
            }};
        }
        match self {
            Narrow::One(column) => decrement!(column),
            Narrow::Two(column) => decrement!(column),
            Narrow::Four(column) => decrement!(column),
            Narrow::Eight(column) => decrement!(column),
        }
    }

    /// Returns zeros.
    pub(super) fn zeros(length: usize) -> Narrow {
        Narrow::One(vec![0; length])
    }

    /// Frees unused capacity.
    pub(super) fn shrink(&mut self) {
        match self {
            Narrow::One(column) => column.shrink_to_fit(),
            Narrow::Two(column) => column.shrink_to_fit(),
            Narrow::Four(column) => column.shrink_to_fit(),
            Narrow::Eight(column) => column.shrink_to_fit(),
        }
    }

    /// Widens the column until it has space for a value.
    #[cold]
    fn widen(&mut self, value: u64) {
        *self = match self {
            Narrow::One(column) if value <= u16::MAX.into() => {
                Narrow::Two(column.iter().map(|&value| value.into()).collect())
            }
            Narrow::One(column) if value <= u32::MAX.into() => {
                Narrow::Four(column.iter().map(|&value| value.into()).collect())
            }
            Narrow::Two(column) if value <= u32::MAX.into() => {
                Narrow::Four(column.iter().map(|&value| value.into()).collect())
            }
            _ => Narrow::Eight((0..self.len()).map(|at| self.get(at)).collect()),
        };
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Narrow::One(column) => column.len(),
            Narrow::Two(column) => column.len(),
            Narrow::Four(column) => column.len(),
            Narrow::Eight(column) => column.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Narrow;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn columns_hold_values_of_any_width(
            values in prop::collection::vec((any::<u64>(), 0_u32..64), 0..60),
            raised in prop::collection::vec(0_usize..60, 0..300),
        ) {
            let mut expected: Vec<u64> = values.iter().map(|&(value, by)| value >> by).collect();
            let mut column = Narrow::default();
            for &value in &expected {
                column.push(value);
            }
            for at in raised {
                if expected.get(at).is_some_and(|&value| value < u64::MAX) {
                    expected[at] += 1;
                    column.increment(at);
                }
            }
            for (at, value) in expected.iter_mut().enumerate().step_by(3) {
                if *value > 0 {
                    *value -= 1;
                    prop_assert_eq!(column.decrement(at), *value == 0);
                }
            }
            column.shrink();
            prop_assert_eq!(column.len(), expected.len());
            let found: Vec<u64> = (0..expected.len()).map(|at| column.get(at)).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
