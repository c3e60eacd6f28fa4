//! The private caches of a core: two levels, exclusive, the least recently used line goes.

use super::program::LINE_WORDS;
use super::settings::{LINE_BYTES, SystemSettings};

/// The words of a line.
pub(super) type Words = [u64; LINE_WORDS];

/// What a core may do with its copy of a line, and what it owes others (MOESI; no copy is invalid).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum State {
    /// May be read; others may have copies, too.
    #[default]
    Shared,
    /// May be read, others may have copies, and whoever misses gets the line from here.
    Owned,
    /// The only copy; memory has the same.
    Exclusive,
    /// The only copy, and it was written.
    Modified,
}

impl State {
    /// Whether the core may write.
    #[inline]
    pub(super) fn writable(self) -> bool {
        matches!(self, State::Exclusive | State::Modified)
    }

    /// Whether others get the line from here.
    #[inline]
    pub(super) fn owns(self) -> bool {
        self != State::Shared
    }
}

/// A line in a cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Held {
    pub(super) line: u32,
    pub(super) state: State,
    /// Whether memory has to be told before the last copy goes.
    pub(super) dirty: bool,
    /// With tokens, how many.
    pub(super) tokens: u32,
    pub(super) words: Words,
}

/// The rest of a [`Held`].
#[derive(Clone, Copy, Default)]
struct Rest {
    /// When it was last used; larger is later.
    used: u64,
    held: Held,
}

/// A set-associative cache.
pub(super) struct Cache {
    sets: u32,
    ways: u32,
    /// A line's number and one; 0 where there is none.
    tags: Vec<u32>,
    /// For each way of each set, its place in `rest`, and one; 0 where there never was a line. So what
    /// is never filled takes no memory.
    places: Vec<u32>,
    rest: Vec<Rest>,
    clock: u64,
}

impl Cache {
    pub(super) fn new(bytes: u32, ways: u32) -> Cache {
        let lines = (bytes / LINE_BYTES) as usize;
        let sets = bytes / LINE_BYTES / ways;
        let (tags, places) = (vec![0; lines], vec![0; lines]);
        Cache { sets, ways, tags, places, rest: Vec::new(), clock: 0 }
    }

    #[inline]
    fn set(&self, line: u32) -> std::ops::Range<usize> {
        let set =
            if self.sets.is_power_of_two() { line & (self.sets - 1) } else { line % self.sets };
        let first = (set * self.ways) as usize;
        first..first + self.ways as usize
    }

    #[inline]
    fn find(&self, line: u32) -> Option<usize> {
        let set = self.set(line);
        let first = set.start;
        self.tags[set].iter().position(|&tag| tag == line + 1).map(|way| first + way)
    }

    #[inline]
    fn rest(&self, at: usize) -> &Rest {
        &self.rest[self.places[at] as usize - 1]
    }

    #[inline]
    fn rest_mut(&mut self, at: usize) -> &mut Rest {
        &mut self.rest[self.places[at] as usize - 1]
    }

    /// A line, which is not used by this.
    #[inline]
    pub(super) fn get(&self, line: u32) -> Option<&Held> {
        self.find(line).map(|at| &self.rest(at).held)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, line: u32) -> Option<&mut Held> {
        self.find(line).map(|at| &mut self.rest_mut(at).held)
    }

    /// A line that is now the one used last.
    #[inline]
    pub(super) fn touch(&mut self, line: u32) -> Option<&mut Held> {
        let at = self.find(line)?;
        self.clock += 1;
        let clock = self.clock;
        let rest = self.rest_mut(at);
        rest.used = clock;
        Some(&mut rest.held)
    }

    pub(super) fn remove(&mut self, line: u32) -> Option<Held> {
        let at = self.find(line)?;
        self.tags[at] = 0;
        Some(self.rest(at).held)
    }

    /// Puts a line in that is not there; what had to go for it.
    pub(super) fn insert(&mut self, held: Held) -> Option<Held> {
        debug_assert!(self.find(held.line).is_none(), "the line is there already");
        let set = self.set(held.line);
        let key = |&at: &usize| if self.tags[at] == 0 { 0 } else { self.rest(at).used };
        let at = set.min_by_key(key).expect("sets have ways");
        let gone = (self.tags[at] != 0).then(|| self.rest(at).held);
        self.clock += 1;
        self.tags[at] = held.line + 1;
        if self.places[at] == 0 {
            self.rest.push(Rest::default());
            self.places[at] = u32::try_from(self.rest.len()).expect("lines are fewer than bytes");
        }
        *self.rest_mut(at) = Rest { used: self.clock, held };
        gone
    }

    /// All lines, in no order that means anything.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Held> {
        let taken = (0..self.tags.len()).filter(|&at| self.tags[at] != 0);
        taken.map(|at| &self.rest(at).held)
    }
}

/// Both caches of a core. A line is in one of them at the most.
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

    /// A line, wherever it is; it is not used by this.
    #[inline]
    pub(super) fn get(&self, line: u32) -> Option<&Held> {
        self.l1.get(line).or_else(|| self.l2.get(line))
    }

    pub(super) fn get_mut(&mut self, line: u32) -> Option<&mut Held> {
        if self.l1.get(line).is_some() { self.l1.get_mut(line) } else { self.l2.get_mut(line) }
    }

    pub(super) fn remove(&mut self, line: u32) -> Option<Held> {
        self.l1.remove(line).or_else(|| self.l2.remove(line))
    }

    /// Puts a line that is in neither into the first; what fell out of the second.
    pub(super) fn insert(&mut self, held: Held) -> Option<Held> {
        debug_assert!(self.get(held.line).is_none(), "the line is there already");
        let fallen = self.l1.insert(held)?;
        self.l2.insert(fallen)
    }

    /// Moves a line from the second to the first; what fell out of the second.
    pub(super) fn promote(&mut self, line: u32) -> Option<Held> {
        let held = self.l2.remove(line)?;
        self.insert(held)
    }

    /// All lines.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Held> {
        self.l1.iter().chain(self.l2.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(line: u32) -> Held {
        Held { line, ..Held::default() }
    }

    #[test]
    fn the_least_recently_used_line_of_the_set_goes() {
        let mut cache = Cache::new(4 * LINE_BYTES, 2);
        assert_eq!(cache.insert(held(0)), None);
        assert_eq!(cache.insert(held(2)), None);
        assert_eq!(cache.insert(held(1)), None);
        assert!(cache.touch(0).is_some());
        assert_eq!(cache.insert(held(4)).map(|gone| gone.line), Some(2));
        assert!(cache.get(0).is_some() && cache.get(4).is_some() && cache.get(1).is_some());
        assert_eq!(cache.remove(0).map(|gone| gone.line), Some(0));
        assert_eq!(cache.insert(held(6)), None, "the place that is free is taken first");
    }

    #[test]
    fn a_line_is_in_one_level_only_and_falls_from_the_first_to_the_second_and_out() {
        let mut settings = SystemSettings::new(2, 2, super::super::Protocol::Ht);
        (settings.l1_bytes, settings.l1_ways) = (2 * LINE_BYTES, 2);
        (settings.l2_bytes, settings.l2_ways) = (2 * LINE_BYTES, 2);
        let mut caches = Caches::new(&settings);
        for line in 0..4 {
            assert_eq!(caches.insert(held(line)), None);
        }
        assert!(caches.l1.get(0).is_none() && caches.get(0).is_some());
        assert_eq!(caches.promote(0), None, "it leaves a place for what it drives out");
        assert!(caches.l1.get(0).is_some() && caches.l1.get(2).is_none());
        assert_eq!(caches.insert(held(9)).map(|gone| gone.line), Some(1));
        let mut all: Vec<u32> = caches.iter().map(|held| held.line).collect();
        all.sort_unstable();
        assert_eq!(all, [0, 2, 3, 9]);
    }
}
