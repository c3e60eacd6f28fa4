//! The private caches of a core: two levels, exclusive, LRU replacement.

use super::program::LINE_WORDS;
use super::settings::{LINE_BYTES, SystemSettings};

/// The words of a line.
pub(super) type Words = [u64; LINE_WORDS];

/// State of a cached line (MOESI without I).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum State {
    /// Readable; other caches may have copies.
    #[default]
    Shared,
    /// Readable; other caches may have copies, and this one serves misses.
    Owned,
    /// The only copy, equal to memory.
    Exclusive,
    /// The only copy, modified.
    Modified,
}

impl State {
    /// Returns whether the core may write.
    #[inline]
    pub(super) fn writable(self) -> bool {
        matches!(self, State::Exclusive | State::Modified)
    }

    /// Returns whether this copy serves misses of other cores.
    #[inline]
    pub(super) fn owns(self) -> bool {
        self != State::Shared
    }
}

/// A line in a cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct CachedLine {
    pub(super) line: u32,
    pub(super) state: State,
    /// Whether the line must be written back before its last copy is dropped.
    pub(super) dirty: bool,
    /// With token coherence, the number of tokens.
    pub(super) tokens: u32,
    pub(super) words: Words,
}

/// A line, and when it was last used.
#[derive(Clone, Copy, Default)]
struct Entry {
    /// Time of the last use; larger is later.
    last_used: u64,
    held: CachedLine,
}

/// A set-associative cache.
pub(super) struct Cache {
    sets: u32,
    associativity: u32,
    /// Line number plus one; 0 for an invalid entry.
    tags: Vec<u32>,
    /// Index plus one of each tag's entry in `entries`; 0 if the tag was never valid. Entries are
    /// allocated on first use, so an unused cache takes no memory.
    entry_of_tag: Vec<u32>,
    entries: Vec<Entry>,
    clock: u64,
}

impl Cache {
    pub(super) fn new(bytes: u32, associativity: u32) -> Cache {
        let lines = (bytes / LINE_BYTES) as usize;
        let sets = bytes / LINE_BYTES / associativity;
        let (tags, entry_of_tag) = (vec![0; lines], vec![0; lines]);
        Cache { sets, associativity, tags, entry_of_tag, entries: Vec::new(), clock: 0 }
    }

    #[inline]
    fn set(&self, line: u32) -> std::ops::Range<usize> {
        let set =
            if self.sets.is_power_of_two() { line & (self.sets - 1) } else { line % self.sets };
        let first = (set * self.associativity) as usize;
        first..first + self.associativity as usize
    }

    #[inline]
    fn find(&self, line: u32) -> Option<usize> {
        let set = self.set(line);
        let first = set.start;
        self.tags[set].iter().position(|&tag| tag == line + 1).map(|index| first + index)
    }

    #[inline]
    fn entry(&self, at: usize) -> &Entry {
        &self.entries[self.entry_of_tag[at] as usize - 1]
    }

    #[inline]
    fn entry_mut(&mut self, at: usize) -> &mut Entry {
        &mut self.entries[self.entry_of_tag[at] as usize - 1]
    }

    /// Returns a line without updating its last use.
    #[inline]
    pub(super) fn get(&self, line: u32) -> Option<&CachedLine> {
        self.find(line).map(|at| &self.entry(at).held)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, line: u32) -> Option<&mut CachedLine> {
        self.find(line).map(|at| &mut self.entry_mut(at).held)
    }

    /// Returns a line and marks it as the most recently used.
    #[inline]
    pub(super) fn touch(&mut self, line: u32) -> Option<&mut CachedLine> {
        let at = self.find(line)?;
        self.clock += 1;
        let clock = self.clock;
        let entry = self.entry_mut(at);
        entry.last_used = clock;
        Some(&mut entry.held)
    }

    pub(super) fn remove(&mut self, line: u32) -> Option<CachedLine> {
        let at = self.find(line)?;
        self.tags[at] = 0;
        Some(self.entry(at).held)
    }

    /// Inserts a line that is not in the cache; returns the evicted line.
    pub(super) fn insert(&mut self, held: CachedLine) -> Option<CachedLine> {
        debug_assert!(self.find(held.line).is_none(), "the line is cached already");
        let set = self.set(held.line);
        let key = |&at: &usize| if self.tags[at] == 0 { 0 } else { self.entry(at).last_used };
        let at = set.min_by_key(key).expect("sets are not empty");
        let evicted = (self.tags[at] != 0).then(|| self.entry(at).held);
        self.clock += 1;
        self.tags[at] = held.line + 1;
        if self.entry_of_tag[at] == 0 {
            self.entries.push(Entry::default());
            self.entry_of_tag[at] =
                u32::try_from(self.entries.len()).expect("lines are fewer than bytes");
        }
        *self.entry_mut(at) = Entry { last_used: self.clock, held };
        evicted
    }

    /// Returns all lines, in an unspecified order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &CachedLine> {
        let valid = (0..self.tags.len()).filter(|&at| self.tags[at] != 0);
        valid.map(|at| &self.entry(at).held)
    }
}

/// Both caches of a core. A line is in at most one of them.
pub(super) struct Caches {
    pub(super) l1: Cache,
    l2: Cache,
}

impl Caches {
    pub(super) fn new(settings: &SystemSettings) -> Caches {
        Caches {
            l1: Cache::new(settings.l1_bytes, settings.l1_ways),
            l2: Cache::new(settings.l2_bytes, settings.l2_ways),
        }
    }

    /// Returns a line in either level without updating its last use.
    #[inline]
    pub(super) fn get(&self, line: u32) -> Option<&CachedLine> {
        self.l1.get(line).or_else(|| self.l2.get(line))
    }

    pub(super) fn get_mut(&mut self, line: u32) -> Option<&mut CachedLine> {
        if self.l1.get(line).is_some() { self.l1.get_mut(line) } else { self.l2.get_mut(line) }
    }

    pub(super) fn remove(&mut self, line: u32) -> Option<CachedLine> {
        self.l1.remove(line).or_else(|| self.l2.remove(line))
    }

    /// Inserts a line that is in neither level into the L1; returns the line evicted from the L2.
    pub(super) fn insert(&mut self, held: CachedLine) -> Option<CachedLine> {
        debug_assert!(self.get(held.line).is_none(), "the line is cached already");
        let evicted = self.l1.insert(held)?;
        self.l2.insert(evicted)
    }

    /// Moves a line from the L2 to the L1; returns the line evicted from the L2.
    pub(super) fn promote(&mut self, line: u32) -> Option<CachedLine> {
        let held = self.l2.remove(line)?;
        self.insert(held)
    }

    /// Returns all lines of both levels.
    pub(super) fn iter(&self) -> impl Iterator<Item = &CachedLine> {
        self.l1.iter().chain(self.l2.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(line: u32) -> CachedLine {
        CachedLine { line, ..CachedLine::default() }
    }

    #[test]
    fn the_least_recently_used_line_of_the_set_is_evicted() {
        let mut cache = Cache::new(4 * LINE_BYTES, 2);
        assert_eq!(cache.insert(held(0)), None);
        assert_eq!(cache.insert(held(2)), None);
        assert_eq!(cache.insert(held(1)), None);
        assert!(cache.touch(0).is_some());
        assert_eq!(cache.insert(held(4)).map(|evicted| evicted.line), Some(2));
        assert!(cache.get(0).is_some() && cache.get(4).is_some() && cache.get(1).is_some());
        assert_eq!(cache.remove(0).map(|evicted| evicted.line), Some(0));
        assert_eq!(cache.insert(held(6)), None, "an invalid entry is used first");
    }

    #[test]
    fn the_l2_stores_lines_that_the_l1_evicts() {
        let mut settings = SystemSettings::new(2, 2, super::super::Protocol::Ht);
        (settings.l1_bytes, settings.l1_ways) = (2 * LINE_BYTES, 2);
        (settings.l2_bytes, settings.l2_ways) = (2 * LINE_BYTES, 2);
        let mut caches = Caches::new(&settings);
        for line in 0..4 {
            assert_eq!(caches.insert(held(line)), None);
        }
        assert!(caches.l1.get(0).is_none() && caches.get(0).is_some());
        assert_eq!(caches.promote(0), None, "its entry in the L2 takes the line that it replaces");
        assert!(caches.l1.get(0).is_some() && caches.l1.get(2).is_none());
        assert_eq!(caches.insert(held(9)).map(|evicted| evicted.line), Some(1));
        let mut all: Vec<u32> = caches.iter().map(|held| held.line).collect();
        all.sort_unstable();
        assert_eq!(all, [0, 2, 3, 9]);
    }
}
