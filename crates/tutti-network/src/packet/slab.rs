//! Things with an index, whose places are used again.

/// A growing array that gives out the places of things that were taken away.
pub(super) struct Slab<T> {
    all: Vec<T>,
    unused: Vec<u32>,
}

impl<T: Copy> Slab<T> {
    pub(super) fn new() -> Slab<T> {
        Slab { all: Vec::new(), unused: Vec::new() }
    }

    #[inline]
    pub(super) fn put(&mut self, thing: T) -> u32 {
        if let Some(index) = self.unused.pop() {
            self.all[index as usize] = thing;
            return index;
        }
        self.all.push(thing);
        u32::try_from(self.all.len() - 1).expect("fewer than 2^32 are under way at once")
    }

    #[inline]
    pub(super) fn remove(&mut self, index: u32) -> T {
        self.unused.push(index);
        self.all[index as usize]
    }

    /// How many there are room for: the most there ever were at once.
    pub(super) fn most(&self) -> usize {
        self.all.len()
    }
}

impl<T> std::ops::Index<u32> for Slab<T> {
    type Output = T;

    #[inline]
    fn index(&self, index: u32) -> &T {
        &self.all[index as usize]
    }
}

impl<T> std::ops::IndexMut<u32> for Slab<T> {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut T {
        &mut self.all[index as usize]
    }
}
