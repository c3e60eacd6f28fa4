//! The max-min fair allocation by progressive filling: all rates rise together until a resource is full; its
//! flows keep that rate, and the others rise further.
//!
//! Flows that share no resource, directly or through others, do not affect each other, so only the flows
//! connected to a change are solved. Nor does a change affect rates below the lowest level at which a changed
//! resource is or was full: rates rise from that level, and flows with a lower rate connect nothing. The result
//! is independent of what else is solved: flows and resources that reach their limit at the same level are fixed
//! together, and what they take from a resource is subtracted in one operation. So where most flows are
//! connected, all are solved, and no connections are followed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::resource::{ENDED, Member, NEVER, left_by, level_of};
use super::resources::Resources;

/// The rate of a flow that still rises, as bits.
const RISING: u64 = u64::MAX;

/// How many solutions may take all flows as connected, if most were.
const ASSUMED: u32 = 15;

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
    fn level(&self) -> f64 {
        level_of(self.free, self.rising)
    }
}

/// The solver and its working memory.
#[derive(Default)]
pub(super) struct MaxMin {
    epoch: u32,
    filling: Vec<Filling>,
    /// The flows of the current solution, with their previous rates as bits; how many of them still rise.
    flows: Vec<(u32, u64)>,
    rising: usize,
    /// Resources with several flows, by a level below which they are not full. As bits: positive floating-point
    /// numbers and their bits have the same order.
    heap: BinaryHeap<Reverse<(u64, u32)>>,
    /// No rising flow has a lower rate alone.
    lowest_alone: u64,
    /// Flows by their rate alone, descending, if sorted; most solutions do not need them.
    alone: Vec<(u64, u32)>,
    is_sorted: bool,
    /// Solutions that take all flows as connected before connections are followed again.
    assumed: u32,
    /// Resources to visit, resources full at the current level, and those that flows fixed at it use.
    next: Vec<u32>,
    full: Vec<u32>,
    touched: Vec<u32>,
    /// The result: flows whose rate has changed, with their rates.
    pub(super) rates: Vec<(u32, f64)>,
}

impl MaxMin {
    /// Solves the flows connected to the marked resources.
    pub(super) fn solve(&mut self, resources: &mut Resources) {
        self.collect(resources);
        while self.rising > 0 {
            self.fill(resources);
        }
        self.rates.clear();
        for &(flow, before) in &self.flows {
            let level = resources.levels[flow as usize];
            if level != before {
                self.rates.push((flow, f64::from_bits(level)));
            }
        }
    }

    /// Collects the flows to solve, and the resources that they use.
    fn collect(&mut self, resources: &mut Resources) {
        self.epoch += 1;
        self.flows.clear();
        self.lowest_alone = NEVER;
        self.is_sorted = false;
        self.filling.resize(resources.all.len(), Filling::default());
        let mut next = std::mem::take(&mut self.next);
        let lowest = resources.take_dirty(&mut next);
        let mut heap = std::mem::take(&mut self.heap).into_vec();
        heap.clear();
        if self.assumed > 0 && resources.are_dense() {
            self.assumed -= 1;
            next.clear();
            self.take_all(resources, lowest, &mut heap);
        } else {
            self.follow(resources, lowest, &mut next, &mut heap);
            let are_most = 2 * self.flows.len() >= resources.active_flows;
            self.assumed = if are_most { ASSUMED } else { 0 };
        }
        self.rising = self.flows.len();
        (self.next, self.heap) = (next, BinaryHeap::from(heap));
    }

    /// Collects the flows with a rate from `lowest` on that are connected to the resources in `next`.
    fn follow(
        &mut self,
        resources: &mut Resources,
        lowest: u64,
        next: &mut Vec<u32>,
        heap: &mut Vec<Reverse<(u64, u32)>>,
    ) {
        for &link in &*next {
            self.reach(resources, link, lowest, heap);
        }
        while let Some(link) = next.pop() {
            let members = std::mem::take(&mut resources.all[link as usize].members);
            for &Member { flow, .. } in &members {
                let level = &mut resources.levels[flow as usize];
                if *level < lowest || *level == RISING {
                    continue;
                }
                self.flows.push((flow, std::mem::replace(level, RISING)));
                self.lowest_alone = self.lowest_alone.min(resources.alone[flow as usize]);
                for place in 0..resources.used.of(flow).len() {
                    let used = resources.used.of(flow)[place].resource;
                    if self.filling[used as usize].epoch != self.epoch
                        && self.reach(resources, used, lowest, heap)
                    {
                        next.push(used);
                    }
                }
            }
            resources.all[link as usize].members = members;
        }
    }

    /// Collects all flows with a rate from `lowest` on.
    fn take_all(
        &mut self,
        resources: &mut Resources,
        lowest: u64,
        heap: &mut Vec<Reverse<(u64, u32)>>,
    ) {
        for place in 0..resources.active.len() {
            let link = resources.active[place];
            // A resource that is full below has no flow with a higher rate.
            if resources.all[link as usize].full >= lowest {
                self.reach(resources, link, lowest, heap);
            }
        }
        let lowest = lowest.max(ENDED + 1);
        for ((flow, level), &alone) in (0..).zip(&mut resources.levels).zip(&resources.alone) {
            if *level >= lowest {
                self.flows.push((flow, std::mem::replace(level, RISING)));
                self.lowest_alone = self.lowest_alone.min(alone);
            }
        }
    }

    /// Starts to fill a resource at a level, as bits; returns whether it has several flows.
    #[inline]
    fn reach(
        &mut self,
        resources: &mut Resources,
        link: u32,
        level: u64,
        heap: &mut Vec<Reverse<(u64, u32)>>,
    ) -> bool {
        let resource = &mut resources.all[link as usize];
        let (free, rising) = resource.lower(level);
        let filling = Filling { epoch: self.epoch, free, rising, fixed: 0 };
        self.filling[link as usize] = filling;
        let is_shared = resource.members.len() > 1;
        if is_shared && rising > 0 {
            let full = filling.level().max(f64::from_bits(level));
            heap.push(Reverse((full.to_bits(), link)));
        }
        is_shared
    }

    /// Raises all rates to the next level at which resources are full or flows reach their rate alone, and
    /// fixes those flows.
    fn fill(&mut self, resources: &mut Resources) {
        let level = self.next_level(resources);
        while self.is_sorted
            && let Some(&(rate, flow)) = self.alone.last()
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
            let resource = &mut resources.all[link as usize];
            resource.full = level;
            let members = std::mem::take(&mut resource.members);
            for &Member { flow, .. } in &members {
                let Filling { rising, fixed, .. } = self.filling[link as usize];
                if rising == fixed {
                    break; // other full resources have fixed the rest
                }
                self.fix(resources, flow, level);
            }
            resources.all[link as usize].members = members;
        }
        self.full = full;
        self.subtract(resources, level);
    }

    /// The next level, as bits.
    fn next_level(&mut self, resources: &Resources) -> u64 {
        let full = self.raise().unwrap_or(RISING);
        if full >= self.lowest_alone {
            self.lowest_alone = self.next_alone(resources);
        }
        full.min(self.lowest_alone)
    }

    /// The lowest rate alone of a flow that still rises, as bits.
    fn next_alone(&mut self, resources: &Resources) -> u64 {
        let is_rising = |flow: u32| resources.levels[flow as usize] == RISING;
        if !self.is_sorted {
            let rising = self.flows.iter().filter(|&&(flow, _)| is_rising(flow));
            self.alone.clear();
            self.alone.extend(rising.map(|&(flow, _)| (resources.alone[flow as usize], flow)));
            // Most flows have one of few rates, which sorts them in linear time.
            self.alone.sort_unstable_by_key(|&(rate, _)| Reverse(rate));
            self.is_sorted = true;
        }
        while let Some(&(_, flow)) = self.alone.last()
            && !is_rising(flow)
        {
            self.alone.pop();
        }
        self.alone.last().map_or(RISING, |&(rate, _)| rate)
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
    #[inline]
    fn fix(&mut self, resources: &mut Resources, flow: u32, level: u64) {
        let rate = &mut resources.levels[flow as usize];
        if *rate != RISING {
            return;
        }
        *rate = level;
        self.rising -= 1;
        for used in resources.used.of(flow) {
            let filling = &mut self.filling[used.resource as usize];
            if filling.fixed == 0 {
                self.touched.push(used.resource);
            }
            filling.fixed += u64::from(used.share);
        }
    }

    /// Subtracts what the flows fixed at a level take from their resources.
    fn subtract(&mut self, resources: &mut Resources, level: u64) {
        for link in self.touched.drain(..) {
            let filling = &mut self.filling[link as usize];
            filling.free = left_by(filling.free, f64::from_bits(level), filling.fixed);
            filling.rising -= filling.fixed;
            filling.fixed = 0;
            resources.all[link as usize].add_stage(level, filling.free, filling.rising);
        }
    }
}
