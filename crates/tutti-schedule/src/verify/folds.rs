//! The folds of a schedule: the operands of all, and the fingerprints of the last ones.
//!
//! A fingerprint has 32 bytes, and the operands of a fold of two values have 8. Ranks take turns,
//! so a fold usually reads values that were folded within the last turns. Only those have stored
//! fingerprints. A fold that reads an older one widens the window, which evaluates all folds again:
//! each of them read within the narrower window. Results that are older than the window when they
//! are compared are evaluated once more, all together.

use super::VerifyError;
use super::fast::COMPUTED;
use super::fingerprint::{Adder, Value, leaf};

/// In place of the first operand of a fold of more than two.
const WIDE: u32 = u32::MAX;

/// The number of fingerprints that are stored at first (512 KiB): they fit into the second cache.
const WINDOW: usize = 1 << 14;

/// Bits of a word of [`Recalled::requested`].
const WORD: usize = u64::BITS as usize;

pub(super) struct Folds {
    adder: Adder,
    /// The operands of each fold; of more than two, [`WIDE`] and their place in `wide`.
    operands: Vec<[u32; 2]>,
    /// The number of operands of each fold of more than two, followed by these operands.
    wide: Vec<u32>,
    /// The values of the last folds, each at its number modulo the window.
    recent: Vec<Value>,
    /// A power of two.
    window: usize,
    recalled: Recalled,
}

/// Values older than the window.
#[derive(Default)]
struct Recalled {
    /// A bit per fold.
    requested: Vec<u64>,
    /// The number of set bits before each word.
    before: Vec<usize>,
    values: Vec<Value>,
}

impl Recalled {
    fn index(&self, fold: usize) -> usize {
        let lower = self.requested[fold / WORD] & ((1 << (fold % WORD)) - 1);
        self.before[fold / WORD] + lower.count_ones() as usize
    }
}

impl Folds {
    pub(super) fn new(ranks: u32) -> Folds {
        Folds::with_window(ranks, WINDOW)
    }

    /// As [`Folds::new`], with another first window, a power of two.
    pub(super) fn with_window(ranks: u32, window: usize) -> Folds {
        Folds {
            adder: Adder::new(ranks),
            operands: Vec::new(),
            wide: Vec::new(),
            recent: Vec::new(),
            window,
            recalled: Recalled::default(),
        }
    }

    /// Returns the sum of two values, which is not a fold of the schedule.
    #[inline]
    pub(super) fn add(&self, a: &Value, b: &Value) -> Value {
        self.adder.add(a, b)
    }

    /// Adds a fold of these values, at least two, left to right; returns its id.
    #[inline]
    pub(super) fn fold(&mut self, ids: &[u32]) -> Result<u32, VerifyError> {
        let fold = self.operands.len();
        let limit = u32::try_from(fold).ok().filter(|&fold| fold < COMPUTED - 1);
        let id = COMPUTED + limit.ok_or_else(|| too_large("its folds", COMPUTED - 1))?;
        if ids.iter().any(|&id| self.is_old(id)) {
            self.widen(ids);
        }
        let value = self.sum(ids);
        let operands = if let &[first, second] = ids { [first, second] } else { self.list(ids)? };
        self.operands.push(operands);
        self.store(fold, value);
        Ok(id)
    }

    /// Returns whether a value has to be recalled before it is read.
    #[inline]
    pub(super) fn is_old(&self, id: u32) -> bool {
        id >= COMPUTED && self.age(id) > self.window && self.recalled.requested.is_empty()
    }

    /// Returns a value that is not old; of those recalled, only the requested ones.
    #[inline]
    pub(super) fn value(&self, id: u32) -> Value {
        if id < COMPUTED {
            leaf(id)
        } else if self.age(id) > self.window {
            let fold = (id - COMPUTED) as usize;
            self.recalled.values[self.recalled.index(fold)]
        } else {
            self.recent(id)
        }
    }

    /// Makes all folds among these ids readable; no fold may follow.
    #[cold]
    pub(super) fn recall(&mut self, ids: impl Iterator<Item = u32>) {
        let folds = self.operands.len();
        let mut requested = vec![0_u64; folds.div_ceil(WORD)];
        let folded = ids.filter_map(|id| id.checked_sub(COMPUTED)).map(|fold| fold as usize);
        for fold in folded.filter(|&fold| fold < folds) {
            requested[fold / WORD] |= 1 << (fold % WORD);
        }
        let mut values = Vec::new();
        self.evaluate(|fold, value| {
            if requested[fold / WORD] >> (fold % WORD) & 1 == 1 {
                values.push(value);
            }
        });
        let counts = requested.iter().scan(0, |sum, word| {
            let before = *sum;
            *sum += word.count_ones() as usize;
            Some(before)
        });
        self.recalled = Recalled { before: counts.collect(), requested, values };
    }

    /// Returns how many folds ago a value was folded, counted from 1.
    #[inline]
    fn age(&self, id: u32) -> usize {
        self.operands.len() - (id - COMPUTED) as usize
    }

    #[inline]
    fn recent(&self, id: u32) -> Value {
        if id < COMPUTED {
            return leaf(id);
        }
        self.recent[(id - COMPUTED) as usize & (self.window - 1)]
    }

    /// Inlined, so that the value is stored from registers: a copy of it would wait until its parts
    /// are written.
    #[inline(always)]
    fn sum(&self, ids: &[u32]) -> Value {
        if let &[first, second] = ids {
            return self.adder.add(&self.recent(first), &self.recent(second));
        }
        let first = self.recent(ids[0]);
        ids[1..].iter().fold(first, |sum, &id| self.adder.add(&sum, &self.recent(id)))
    }

    /// Stores the value of a fold; of folds in order.
    #[inline]
    fn store(&mut self, fold: usize, value: Value) {
        let place = fold & (self.window - 1);
        if place == self.recent.len() {
            self.recent.push(value);
        } else {
            self.recent[place] = value;
        }
    }

    /// Stores the operands of a fold of more than two.
    fn list(&mut self, ids: &[u32]) -> Result<[u32; 2], VerifyError> {
        let place = |length| u32::try_from(length).ok();
        let end = place(self.wide.len() + 1 + ids.len());
        let (Some(start), Some(_), Some(count)) = (place(self.wide.len()), end, place(ids.len()))
        else {
            return Err(too_large("the operands of its folds", u32::MAX));
        };
        self.wide.push(count);
        self.wide.extend_from_slice(ids);
        Ok([WIDE, start])
    }

    /// Widens the window to twice the age of the oldest of these values, and at least four times:
    /// few evaluations of all folds, even if ages grow slowly.
    #[cold]
    fn widen(&mut self, ids: &[u32]) {
        let folded = ids.iter().filter(|&&id| id >= COMPUTED);
        let oldest = folded.map(|&id| self.age(id)).max().unwrap_or(0);
        self.window = (2 * oldest).next_power_of_two().max(4 * self.window);
        self.evaluate(|_, _| {});
    }

    /// Evaluates all folds again, in order.
    fn evaluate(&mut self, mut each: impl FnMut(usize, Value)) {
        self.recent.clear();
        for fold in 0..self.operands.len() {
            let value = match self.operands[fold] {
                [WIDE, start] => {
                    let list = &self.wide[start as usize..];
                    self.sum(&list[1..=list[0] as usize])
                }
                ref two => self.sum(two),
            };
            self.store(fold, value);
            each(fold, value);
        }
    }
}

fn too_large(what: &str, most: u32) -> VerifyError {
    VerifyError::TooLarge { what: what.to_owned(), most: u64::from(most) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Folds of contributions and of earlier folds, mostly of recent ones: a narrow window widens,
    /// and results are recalled.
    #[test]
    fn values_do_not_depend_on_the_window() {
        let folds = 3_000;
        let mut all = Folds::with_window(8, 1 << 12);
        let mut few = Folds::with_window(8, 1);
        let mut state = 5_u64;
        let mut pick = |below: u32| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            u32::try_from((state >> 33) % u64::from(below)).unwrap()
        };
        for fold in 0..folds {
            let ids: Vec<u32> = (0..2 + pick(3) / 2 * pick(4))
                .map(|_| match fold {
                    0 => pick(100),
                    _ if pick(3) == 0 => pick(100),
                    _ => COMPUTED + fold - 1 - pick(fold.min(10 + fold / 8)),
                })
                .collect();
            let id = few.fold(&ids).unwrap();
            assert_eq!(all.fold(&ids).unwrap(), id);
            assert_eq!(all.value(id), few.value(id));
        }
        assert!(few.window > 256 && few.window < folds as usize, "{}", few.window);
        let requested: Vec<u32> = (0..folds).step_by(7).map(|fold| COMPUTED + fold).collect();
        assert!(few.is_old(requested[0]) && !all.is_old(requested[0]));
        few.recall([u32::MAX, 3].into_iter().chain(requested.iter().copied()));
        for id in requested {
            assert!(!few.is_old(id));
            assert_eq!(all.value(id), few.value(id));
        }
    }
}
