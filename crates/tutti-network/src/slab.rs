//! A slab: values at stable indices, which are reused.

/// A growing array that reuses the indices of removed values.
pub(crate) struct Slab<T> {
    all: Vec<T>,
    unused: Vec<u32>,
}

impl<T: Copy> Slab<T> {
    pub(crate) fn new() -> Slab<T> {
        Slab { all: Vec::new(), unused: Vec::new() }
    }

    #[inline]
    pub(crate) fn put(&mut self, thing: T) -> u32 {
        if let Some(index) = self.unused.pop() {
            self.all[index as usize] = thing;
            return index;
        }
        self.all.push(thing);
        u32::try_from(self.all.len() - 1).expect("fewer than 2^32 are in flight at once")
    }

    #[inline]
    pub(crate) fn remove(&mut self, index: u32) -> T {
        self.unused.push(index);
        self.all[index as usize]
    }

    /// The capacity: the peak number of values.
    pub(crate) fn most(&self) -> usize {
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
