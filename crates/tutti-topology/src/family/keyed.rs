//! Arguments of the form `p=2,a=16x6,h=4`: values by key, in any order, each at most once.

use super::{TopologyError, count, wrong};

/// A parsed argument whose values are read by key.
pub(super) struct Keyed<'a> {
    family: &'static str,
    argument: &'a str,
    values: Vec<(&'a str, &'a str)>,
}

impl<'a> Keyed<'a> {
    /// Splits `argument` into keys with values and words without.
    pub(super) fn read(
        family: &'static str,
        argument: &'a str,
        keys: &[&str],
        words: &[&str],
    ) -> Result<Keyed<'a>, TopologyError> {
        let mut keyed = Keyed { family, argument, values: Vec::new() };
        for part in argument.split(',') {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let name = key.trim();
            let known = if part.contains('=') { keys } else { words };
            if !known.contains(&name) {
                return Err(wrong(family, argument, part, expected(part.trim(), keys, words)));
            }
            if keyed.find(name).is_some() {
                return Err(wrong(family, argument, part, format!("`{name}` is given twice")));
            }
            keyed.values.push((name, value));
        }
        Ok(keyed)
    }

    fn find(&self, key: &str) -> Option<&'a str> {
        self.values.iter().find(|(name, _)| *name == key).map(|&(_, value)| value)
    }

    /// Whether the key or word is present.
    pub(super) fn has(&self, key: &str) -> bool {
        self.find(key).is_some()
    }

    /// An integer of at least `least`, or `None` without the key.
    pub(super) fn number(&self, key: &str, least: u32) -> Result<Option<u32>, TopologyError> {
        let read = |value| number(self.family, self.argument, value, least);
        self.find(key).map(read).transpose()
    }

    /// Integers of at least `least` separated by `x`, such as `16x6`.
    pub(super) fn sizes(&self, key: &str, least: u32) -> Result<Option<Vec<u32>>, TopologyError> {
        let read = |value| sizes(self.family, self.argument, value, least);
        self.find(key).map(read).transpose()
    }

    /// As [`Keyed::sizes`], one for each of the `length` sizes of `other`; ones without the key.
    pub(super) fn same_length(
        &self,
        key: &str,
        other: &str,
        length: usize,
    ) -> Result<Vec<u32>, TopologyError> {
        let values = self.sizes(key, 1)?.unwrap_or_else(|| vec![1; length]);
        if values.len() == length {
            return Ok(values);
        }
        let given = values.len();
        let problem = format!("{given} counts of cables; expected {length}, as for `{other}`");
        Err(self.wrong(key, problem))
    }

    /// Returns the value of a required key, or an error.
    pub(super) fn required<T>(&self, key: &str, value: Option<T>) -> Result<T, TopologyError> {
        value.ok_or_else(|| self.wrong(key, format!("`{key}` is missing")))
    }

    /// Places an error at the value of `key`, or at the entire argument without the key.
    pub(super) fn wrong(&self, key: &str, problem: String) -> TopologyError {
        let part = self.find(key).unwrap_or(self.argument);
        wrong(self.family, self.argument, part, problem)
    }
}

fn number(
    family: &'static str,
    argument: &str,
    part: &str,
    least: u32,
) -> Result<u32, TopologyError> {
    let value = count(family, argument, part, u64::from(least))?;
    // `count` reads 32 bits.
    Ok(u32::try_from(value).unwrap_or(u32::MAX))
}

/// Parses sizes such as `4x4x2` from `part`, a piece of `argument`, each at least `least`.
pub(super) fn sizes(
    family: &'static str,
    argument: &str,
    part: &str,
    least: u32,
) -> Result<Vec<u32>, TopologyError> {
    part.split('x').map(|part| number(family, argument, part, least)).collect()
}

/// The product of sizes; saturates.
pub(super) fn product(sizes: &[u32]) -> u64 {
    sizes.iter().fold(1, |product: u64, &size| product.saturating_mul(u64::from(size)))
}

fn expected(found: &str, keys: &[&str], words: &[&str]) -> String {
    let keys = keys.iter().map(|key| format!("`{key}=...`"));
    let all: Vec<String> = keys.chain(words.iter().map(|word| format!("`{word}`"))).collect();
    let found = if found.is_empty() { "nothing".to_owned() } else { format!("`{found}`") };
    format!("found {found}; expected any of {}, with commas between", all.join(", "))
}

/// The notation of sizes, such as `16x6`.
pub(super) fn crossed(sizes: &[u32]) -> String {
    sizes.iter().map(u32::to_string).collect::<Vec<_>>().join("x")
}
