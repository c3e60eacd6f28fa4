//! The resources of each flow, in one array.

/// A resource of a flow.
#[derive(Clone, Copy)]
pub(super) struct Used {
    pub(super) resource: u32,
    /// The capacity that the flow takes per unit of its rate, in units of 1 / [`super::ALL`].
    pub(super) share: u32,
}

/// What a solution does not need of a resource of a flow.
#[derive(Clone, Copy)]
pub(super) struct Kept {
    /// The share of its bytes.
    pub(super) part: u32,
    /// The place of the flow among those of the resource.
    pub(super) position: u32,
}

/// The entries of a flow in the arrays.
#[derive(Clone, Copy, Default)]
struct Slot {
    start: u32,
    length: u32,
    /// How many of the first resources are solved.
    solved: u32,
    /// The entries that it may use: 0, or a power of two.
    capacity: u32,
}

/// The resources of each flow, by flow index.
#[derive(Default)]
pub(super) struct UsedResources {
    slots: Vec<Slot>,
    used: Vec<Used>,
    kept: Vec<Kept>,
    /// By the logarithm of the capacity, slots that no flow uses.
    unused: Vec<Vec<u32>>,
    /// Working memory.
    next: (Vec<Used>, Vec<Kept>),
}

impl UsedResources {
    /// The resources of a flow that are solved.
    #[inline]
    pub(super) fn of(&self, flow: u32) -> &[Used] {
        let Slot { start, solved, .. } = self.slots[flow as usize];
        &self.used[start as usize..(start + solved) as usize]
    }

    /// The resources of a flow, those that are solved first.
    #[inline]
    pub(super) fn all(&self, flow: u32) -> &[Used] {
        let slot = self.slots[flow as usize];
        &self.used[slot.range()]
    }

    /// Adds a resource of a flow to those that are solved; returns its new place, where it is exchanged for
    /// another.
    pub(super) fn solve(&mut self, flow: u32, place: u32) -> u32 {
        let Slot { start, solved, .. } = self.slots[flow as usize];
        self.slots[flow as usize].solved += 1;
        self.used.swap((start + place) as usize, (start + solved) as usize);
        self.kept.swap((start + place) as usize, (start + solved) as usize);
        solved
    }

    #[inline]
    pub(super) fn kept(&self, flow: u32) -> &[Kept] {
        let slot = self.slots[flow as usize];
        &self.kept[slot.range()]
    }

    #[inline]
    pub(super) fn kept_mut(&mut self, flow: u32) -> &mut [Kept] {
        let slot = self.slots[flow as usize];
        &mut self.kept[slot.range()]
    }

    /// Empty lists for the resources of a flow.
    pub(super) fn take(&mut self) -> (Vec<Used>, Vec<Kept>) {
        let (mut used, mut kept) = std::mem::take(&mut self.next);
        used.clear();
        kept.clear();
        (used, kept)
    }

    /// Sets the resources of a flow, of which the first `solved` are solved.
    pub(super) fn put(&mut self, flow: u32, used: Vec<Used>, kept: Vec<Kept>, solved: usize) {
        let places = self.slots.len().max(flow as usize + 1);
        self.slots.resize(places, Slot::default());
        let length = index(used.len());
        if length > self.slots[flow as usize].capacity {
            let old = std::mem::take(&mut self.slots[flow as usize]);
            self.release(old);
            self.slots[flow as usize] = self.slot(length.next_power_of_two());
        }
        let slot = &mut self.slots[flow as usize];
        (slot.length, slot.solved) = (length, index(solved));
        self.used[slot.range()].copy_from_slice(&used);
        self.kept[slot.range()].copy_from_slice(&kept);
        self.next = (used, kept);
    }

    fn release(&mut self, slot: Slot) {
        if slot.capacity > 0 {
            self.unused_of(slot.capacity).push(slot.start);
        }
    }

    /// A slot of a capacity.
    fn slot(&mut self, capacity: u32) -> Slot {
        let start = self.unused_of(capacity).pop().unwrap_or_else(|| {
            let start = self.used.len();
            let end = start + capacity as usize;
            self.used.resize(end, Used { resource: 0, share: 0 });
            self.kept.resize(end, Kept { part: 0, position: 0 });
            index(start)
        });
        Slot { start, length: 0, solved: 0, capacity }
    }

    fn unused_of(&mut self, capacity: u32) -> &mut Vec<u32> {
        let class = capacity.trailing_zeros() as usize;
        if class >= self.unused.len() {
            self.unused.resize_with(class + 1, Vec::new);
        }
        &mut self.unused[class]
    }
}

impl Slot {
    #[inline]
    fn range(self) -> std::ops::Range<usize> {
        self.start as usize..(self.start + self.length) as usize
    }
}

fn index(place: usize) -> u32 {
    u32::try_from(place).expect("fewer than 2^32 resources of active flows")
}
