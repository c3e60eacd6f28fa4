//! The max-min fair allocation by progressive filling: all rates rise together until a resource is full; its
//! flows keep that rate, and the others rise further.
//!
//! Flows that share no resource, directly or through others, do not affect each other, so only the flows
//! connected to a change are solved. The result is independent of what else is solved: flows and resources that
//! reach their limit at the same level are fixed together, and what they take from a resource is subtracted in
//! one operation.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::ALL;
use super::resources::{Member, Resources, Used};

/// The state of a resource while rates rise.
#[derive(Clone, Copy, Default)]
struct Filling {
    /// The solution that the values belong to.
    epoch: u32,
    /// Capacity not taken by fixed flows.
    free: f64,
    /// The shares of the flows that still rise, and of those fixed at the current level.
    rising: u64,
    fixed: u64,
}

impl Filling {
    /// The level at which the resource is full.
    #[inline]
    #[expect(clippy::cast_precision_loss, reason = "a rate; times are rounded at the end")]
    fn level(&self) -> f64 {
        self.free / (self.rising as f64 / f64::from(ALL))
    }
}

/// The solver and its working memory.
#[derive(Default)]
pub(super) struct MaxMin {
    epoch: u32,
    filling: Vec<Filling>,
    /// By flow, the solution in which it was visited, and that in which it was fixed.
    visited: Vec<u32>,
    fixed: Vec<u32>,
    /// The flows of the current solution.
    flows: Vec<u32>,
    /// Resources with several flows, by a level below which they are not full. As bits: positive floating-point
    /// numbers and their bits have the same order.
    heap: BinaryHeap<Reverse<(u64, u32)>>,
    /// Flows by their rate alone, descending.
    alone: Vec<(u64, u32)>,
    /// Resources to visit, resources full at the current level, and those that flows fixed at it use.
    next: Vec<u32>,
    full: Vec<u32>,
    touched: Vec<u32>,
    /// The result: flows with their rates.
    pub(super) rates: Vec<(u32, f64)>,
}

impl MaxMin {
    /// Solves the flows connected to the marked resources; `alone` is the rate of a flow without others.
    pub(super) fn solve(&mut self, resources: &mut Resources, alone: impl Fn(u32) -> f64) {
        self.collect(resources);
        self.alone.clear();
        self.alone.extend(self.flows.iter().map(|&flow| (alone(flow).to_bits(), flow)));
        self.alone.sort_unstable_by(|a, b| b.cmp(a));
        self.rates.clear();
        while self.rates.len() < self.flows.len() {
            self.fill(resources);
        }
    }

    /// Collects the flows connected to the marked resources, and the resources that they use.
    fn collect(&mut self, resources: &mut Resources) {
        self.epoch += 1;
        self.flows.clear();
        self.filling.resize(resources.all.len(), Filling::default());
        let mut next = std::mem::take(&mut self.next);
        resources.take_dirty(&mut next);
        for &link in &next {
            self.empty(resources, link);
        }
        let mut shared = std::mem::take(&mut self.full);
        while let Some(link) = next.pop() {
            if resources.all[link as usize].members.len() > 1 {
                shared.push(link);
            }
            for place in 0..resources.all[link as usize].members.len() {
                let Member { flow, .. } = resources.all[link as usize].members[place];
                if self.visit(flow) {
                    self.reach(resources, flow, &mut next);
                }
            }
        }
        self.heap.clear();
        for link in shared.drain(..) {
            self.heap.push(Reverse((self.filling[link as usize].level().to_bits(), link)));
        }
        (self.next, self.full) = (next, shared);
    }

    /// Adds a flow to what its resources carry; those with other flows are visited next.
    fn reach(&mut self, resources: &mut Resources, flow: u32, next: &mut Vec<u32>) {
        for place in 0..resources.of(flow).len() {
            let Used { resource: link, share, .. } = resources.of(flow)[place];
            if self.filling[link as usize].epoch != self.epoch {
                self.empty(resources, link);
                if resources.all[link as usize].members.len() > 1 {
                    next.push(link);
                }
            }
            self.filling[link as usize].rising += u64::from(share);
        }
    }

    /// Starts to fill a resource.
    fn empty(&mut self, resources: &mut Resources, link: u32) {
        let resource = &mut resources.all[link as usize];
        resource.limits = false;
        let (epoch, free) = (self.epoch, resource.capacity);
        self.filling[link as usize] = Filling { epoch, free, rising: 0, fixed: 0 };
    }

    /// Adds a flow, unless it was added before.
    fn visit(&mut self, flow: u32) -> bool {
        let places = self.visited.len().max(flow as usize + 1);
        self.visited.resize(places, 0);
        self.fixed.resize(places, 0);
        let new = std::mem::replace(&mut self.visited[flow as usize], self.epoch) != self.epoch;
        if new {
            self.flows.push(flow);
        }
        new
    }

    /// Raises all rates to the next level at which resources are full or flows reach their rate alone, and
    /// fixes those flows.
    fn fill(&mut self, resources: &mut Resources) {
        let level = self.next_level();
        while let Some(&(rate, flow)) = self.alone.last()
            && rate <= level
        {
            self.alone.pop();
            self.fix(resources, flow, level);
        }
        let mut full = std::mem::take(&mut self.full);
        while let Some(link) = self.next_full(level) {
            full.push(link);
        }
        for link in full.drain(..) {
            resources.all[link as usize].limits = true;
            for place in 0..resources.all[link as usize].members.len() {
                let Member { flow, .. } = resources.all[link as usize].members[place];
                self.fix(resources, flow, level);
            }
        }
        self.full = full;
        self.subtract(f64::from_bits(level));
    }

    /// The next level, as bits.
    fn next_level(&mut self) -> u64 {
        while let Some(&(_, flow)) = self.alone.last()
            && self.fixed[flow as usize] == self.epoch
        {
            self.alone.pop();
        }
        let alone = self.alone.last().map_or(u64::MAX, |&(rate, _)| rate);
        self.raise().unwrap_or(u64::MAX).min(alone)
    }

    /// The lowest level at which a resource is full, as bits. Levels only rise while flows are fixed, so a level
    /// in the heap that is out of date is too low.
    fn raise(&mut self) -> Option<u64> {
        loop {
            let mut top = self.heap.peek_mut()?;
            let Reverse((known, link)) = *top;
            let filling = &self.filling[link as usize];
            let level = filling.level();
            if filling.rising == 0 {
                std::collections::binary_heap::PeekMut::pop(top);
            } else if level > f64::from_bits(known) {
                *top = Reverse((level.to_bits(), link));
            } else {
                return Some(known);
            }
        }
    }

    /// Removes a resource that is full at `level` from the heap.
    fn next_full(&mut self, level: u64) -> Option<u32> {
        (self.raise()? == level).then(|| self.heap.pop().map(|Reverse((_, link))| link)).flatten()
    }

    /// Fixes the rate of a flow, unless it is fixed already.
    fn fix(&mut self, resources: &Resources, flow: u32, level: u64) {
        if std::mem::replace(&mut self.fixed[flow as usize], self.epoch) == self.epoch {
            return;
        }
        self.rates.push((flow, f64::from_bits(level)));
        for used in resources.of(flow) {
            let filling = &mut self.filling[used.resource as usize];
            if filling.fixed == 0 {
                self.touched.push(used.resource);
            }
            filling.fixed += u64::from(used.share);
        }
    }

    /// Subtracts what the flows fixed at a level take from their resources.
    #[expect(clippy::cast_precision_loss, reason = "a rate; times are rounded at the end")]
    fn subtract(&mut self, level: f64) {
        for link in self.touched.drain(..) {
            let filling = &mut self.filling[link as usize];
            filling.free -= level * (filling.fixed as f64 / f64::from(ALL));
            filling.rising -= filling.fixed;
            filling.fixed = 0;
        }
    }
}
