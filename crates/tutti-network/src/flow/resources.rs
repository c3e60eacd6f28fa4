//! What flows share: links, then injection ports, then ejection ports, and which flows use them.

use super::route::{Crossing, FlowRouting};
use super::used::{Kept, Used, UsedResources};
use super::{ALL, FlowLevel};
use crate::packet::LinkUse;
use tutti_topology::Topology;
use tutti_units::ids::{LinkId, RankId};
use tutti_units::{Bytes, Time, TimePerByte};

/// A flow on a resource: the flow, and the place of the resource among the flow's.
#[derive(Clone, Copy)]
pub(super) struct Member {
    pub(super) flow: u32,
    pub(super) place: u32,
}

/// The rate of a flow that was never solved, as bits: above all rates, which are positive and finite.
pub(super) const FRESH: u64 = u64::MAX - 1;
/// The level at which a resource is full that never is, as bits.
pub(super) const NEVER: u64 = u64::MAX - 1;

/// The flows that a resource has when all rates have risen to a level.
#[derive(Clone, Copy)]
struct Stage {
    /// The level, as bits: positive floating-point numbers and their bits have the same order.
    level: u64,
    /// The shares of the flows with this rate or a lower one.
    fixed: u64,
    /// The capacity that they leave.
    free: f64,
}

/// A link, a bundle of links, or a port.
pub(super) struct Resource {
    /// Bytes per picosecond; infinite if bytes take no time.
    pub(super) capacity: f64,
    pub(super) per_byte: TimePerByte,
    pub(super) members: Vec<Member>,
    /// The level at which it is full and limits its flows, as bits, as of the last solution.
    pub(super) full: u64,
    /// The shares of all its flows.
    total: u64,
    /// By level, the flows whose rate the last solution fixed.
    stages: Vec<Stage>,
    /// Whether it must be solved again.
    dirty: bool,
    /// The batch that uses it alone, by flow.
    batch: Option<u32>,
    busy_since: Time,
    usage: LinkUse,
}

/// Bytes per picosecond; infinite if bytes take no time.
#[expect(clippy::cast_precision_loss, reason = "a rate; times are rounded at the end")]
pub(super) fn rate_of(per_byte: TimePerByte) -> f64 {
    let (ps, bytes) = per_byte.fraction();
    bytes as f64 / ps as f64
}

/// The level at which rising flows fill a resource.
#[inline]
#[expect(clippy::cast_precision_loss, reason = "a rate; times are rounded at the end")]
pub(super) fn level_of(free: f64, rising: u64) -> f64 {
    free / (rising as f64 / f64::from(ALL))
}

/// What flows of a rate leave of a capacity.
#[inline]
#[expect(clippy::cast_precision_loss, reason = "a rate; times are rounded at the end")]
pub(super) fn left_by(free: f64, level: f64, fixed: u64) -> f64 {
    free - level * (fixed as f64 / f64::from(ALL))
}

impl Resource {
    fn new(per_byte: TimePerByte) -> Resource {
        Resource {
            capacity: rate_of(per_byte),
            per_byte,
            members: Vec::new(),
            full: NEVER,
            total: 0,
            stages: Vec::new(),
            dirty: false,
            batch: None,
            busy_since: Time::ZERO,
            usage: LinkUse::default(),
        }
    }
}

/// All resources of a network.
pub(super) struct Resources {
    pub(super) all: Vec<Resource>,
    /// The number of links.
    links: usize,
    /// The resources of each flow.
    pub(super) used: UsedResources,
    /// By flow, its rate as of the last solution, and that without other flows, as bits.
    pub(super) levels: Vec<u64>,
    pub(super) alone: Vec<u64>,
    /// Flows to solve for the first time.
    fresh: Vec<u32>,
    /// The first injection and the first ejection port, if there are such ports.
    ports: [Option<u32>; 2],
    /// Whether the ports charge all bytes of a message, since they are no faster than the endpoints.
    charges_all: [bool; 2],
    dirty: Vec<u32>,
}

impl Resources {
    pub(super) fn new(
        routing: &FlowRouting<'_>,
        ports: &FlowLevel,
        charges_all: [bool; 2],
    ) -> Resources {
        let topology: &Topology = routing.topology();
        let mut all: Vec<Resource> =
            topology.links().map(|link| Resource::new(routing.rate(link))).collect();
        let links = all.len();
        let ports = [ports.injection, ports.ejection].map(|rate| {
            let rate = rate.filter(|&rate| rate != TimePerByte::ZERO)?;
            let first = u32::try_from(all.len()).ok()?;
            all.extend((0..topology.npus()).map(|_| Resource::new(rate)));
            Some(first)
        });
        Resources {
            all,
            links,
            used: UsedResources::default(),
            levels: Vec::new(),
            alone: Vec::new(),
            fresh: Vec::new(),
            ports,
            charges_all,
            dirty: Vec::new(),
        }
    }

    /// The injection ports of sources and the ejection ports of destinations, if any.
    pub(super) fn ports<'a>(
        &self,
        sources: &'a [RankId],
        destinations: &'a [RankId],
    ) -> impl Iterator<Item = Crossing> + 'a {
        let [injection, ejection] = self.ports;
        let of = |first: Option<u32>, ranks: &'a [RankId]| {
            let first = first.into_iter();
            first.flat_map(|first| ranks.iter().map(move |rank| first + rank.0))
        };
        let ports = of(injection, sources).chain(of(ejection, destinations));
        ports.map(|link| Crossing { link, share: ALL })
    }

    /// Adds a flow to the resources of its route that take time; returns whether it shares any. All of its
    /// bytes take capacity, although it ends when the charged ones are through.
    pub(super) fn join(
        &mut self,
        flow: u32,
        route: &[Crossing],
        (bytes, charged): (Bytes, Bytes),
        now: Time,
    ) -> bool {
        let mut shares = false;
        let (mut used, mut kept) = self.used.take();
        for &Crossing { link, share: part } in route {
            let resource = &mut self.all[link as usize];
            if resource.per_byte == TimePerByte::ZERO {
                continue;
            }
            if resource.members.is_empty() {
                resource.busy_since = now;
            } else {
                shares = true;
                resource.mark(link, &mut self.dirty);
            }
            let position = index(resource.members.len());
            resource.members.push(Member { flow, place: index(used.len()) });
            let share = surcharged(part, bytes, charged);
            resource.total += u64::from(share);
            used.push(Used { resource: link, share });
            kept.push(Kept { part, position });
        }
        self.used.put(flow, used, kept);
        shares
    }

    /// Sets the rate without other flows of a flow that has joined; `shares` is whether it has others.
    pub(super) fn set_alone(&mut self, flow: u32, rate: f64, shares: bool) {
        let places = self.levels.len().max(flow as usize + 1);
        self.levels.resize(places, FRESH);
        self.alone.resize(places, FRESH);
        let level = rate.to_bits();
        self.alone[flow as usize] = level;
        self.levels[flow as usize] = if shares { FRESH } else { level };
        if shares {
            return self.fresh.push(flow);
        }
        for &Used { resource, share } in self.used.of(flow) {
            let resource = &mut self.all[resource as usize];
            let free = left_by(resource.capacity, rate, share.into());
            resource.stages.clear();
            resource.stages.push(Stage { level, fixed: share.into(), free });
        }
    }

    /// The time per byte of a resource.
    #[inline]
    pub(super) fn per_byte(&self, resource: u32) -> TimePerByte {
        self.all[resource as usize].per_byte
    }

    /// The batch that uses a resource alone, by flow.
    #[inline]
    pub(super) fn batch(&self, resource: u32) -> Option<u32> {
        self.all[resource as usize].batch
    }

    /// Assigns resources to a batch; returns false, and changes nothing, if any has other flows.
    pub(super) fn claim(&mut self, uses: &[(u32, u32)], batch: u32, now: Time) -> bool {
        let is_free = |&(link, _): &(u32, u32)| {
            let resource = &self.all[link as usize];
            resource.members.is_empty() && resource.batch.is_none()
        };
        if !uses.iter().all(is_free) {
            return false;
        }
        for &(link, _) in uses {
            let resource = &mut self.all[link as usize];
            (resource.batch, resource.busy_since) = (Some(batch), now);
        }
        true
    }

    /// Withdraws resources from a batch.
    pub(super) fn release(&mut self, uses: &[(u32, u32)]) {
        for &(link, _) in uses {
            self.all[link as usize].batch = None;
        }
    }

    /// Withdraws resources from a batch whose messages of `bytes` each have been transmitted.
    pub(super) fn transmitted(&mut self, uses: &[(u32, u32)], bytes: Bytes, now: Time) {
        for &(link, messages) in uses {
            let resource = &mut self.all[link as usize];
            resource.batch = None;
            resource.usage.packets += u64::from(messages);
            resource.usage.bytes += u64::from(messages) * bytes.0;
            resource.usage.busy += now - resource.busy_since;
        }
    }

    /// Removes a flow of `bytes` from its resources; marks those that limited other flows.
    pub(super) fn leave(&mut self, flow: u32, bytes: Bytes, now: Time) {
        let level = self.levels[flow as usize];
        for place in 0..self.used.of(flow).len() {
            let Used { resource: link, share: taken } = self.used.of(flow)[place];
            let Kept { part: share, position } = self.used.kept(flow)[place];
            let resource = &mut self.all[link as usize];
            resource.usage.packets += 1;
            resource.usage.bytes += Crossing { link, share }.bytes(bytes).0;
            resource.members.swap_remove(position as usize);
            if let Some(moved) = resource.members.get(position as usize) {
                self.used.kept_mut(moved.flow)[moved.place as usize].position = position;
            }
            resource.forget(level, taken.into());
            if resource.members.is_empty() {
                resource.usage.busy += now - resource.busy_since;
            } else if resource.full != NEVER {
                resource.mark(link, &mut self.dirty);
            }
        }
    }

    /// The time of a flow of `bytes` on a link, without other flows.
    #[inline]
    pub(super) fn time(&self, crossing: Crossing, bytes: Bytes) -> Time {
        self.all[crossing.link as usize].per_byte.of(crossing.bytes(bytes))
    }

    /// The rate of a flow without other flows, in charged bytes per picosecond.
    pub(super) fn rate_alone(&self, flow: u32) -> f64 {
        let rate = |(used, kept): (&Used, &Kept)| {
            // An endpoint takes no time for bytes that it does not charge, but other flows wait for them.
            let share = if self.is_endpoint(used.resource) { kept.part } else { used.share };
            self.all[used.resource as usize].capacity / (f64::from(share) / f64::from(ALL))
        };
        let all = self.used.of(flow).iter().zip(self.used.kept(flow));
        all.map(rate).fold(f64::INFINITY, f64::min)
    }

    /// Whether a resource is a port with the rate of its endpoint.
    fn is_endpoint(&self, resource: u32) -> bool {
        let [_, ejection] = self.ports;
        let side = usize::from(ejection.is_some_and(|first| resource >= first));
        resource as usize >= self.links && !self.charges_all[side]
    }

    /// Takes the resources to solve again, in the order in which they were marked. Returns a level, as bits:
    /// flows with a lower rate keep it.
    pub(super) fn take_dirty(&mut self, into: &mut Vec<u32>) -> u64 {
        into.append(&mut self.dirty);
        let mut lowest = NEVER;
        for &link in into.iter() {
            let resource = &mut self.all[link as usize];
            resource.dirty = false;
            lowest = lowest.min(resource.lowest_change());
        }
        let alone = self.fresh.drain(..).map(|flow| self.alone[flow as usize]);
        alone.fold(lowest, u64::min)
    }

    #[inline]
    pub(super) fn is_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// What flows that have ended did on each link of the graph; a bundle's is divided among its links.
    pub(super) fn link_use(&self, routing: &FlowRouting<'_>) -> Vec<LinkUse> {
        let bundles = routing.topology().links().map(|link| (link, routing.bundle(link)));
        let share = |(link, bundle): (LinkId, std::ops::Range<u32>)| {
            let LinkUse { packets, bytes, busy } = self.all[bundle.start as usize].usage;
            let (count, place) =
                (u64::from(bundle.end - bundle.start), u64::from(link.0 - bundle.start));
            let part = |total: u64| total / count + u64::from(place < total % count);
            LinkUse { packets: part(packets), bytes: part(bytes), busy }
        };
        bundles.map(share).collect()
    }
}

impl Resource {
    /// A level below which the resource is not full, now and as of the last solution, as bits, if all flows
    /// with a lower rate keep it.
    fn lowest_change(&self) -> u64 {
        if self.members.len() < 2 {
            return self.full;
        }
        let (mut fixed, mut free) = (0, self.capacity);
        for stage in &self.stages {
            let level = level_of(free, self.total - fixed).max(0.0).to_bits();
            if level <= stage.level {
                return level.min(self.full);
            }
            (fixed, free) = (stage.fixed, stage.free);
        }
        match self.total - fixed {
            0 => self.full,
            rising => level_of(free, rising).max(0.0).to_bits().min(self.full),
        }
    }

    /// Forgets the rates from a level on; returns the capacity that lower rates leave, and the shares of the
    /// flows that rise to the level.
    #[inline]
    pub(super) fn lower(&mut self, level: u64) -> (f64, u64) {
        while self.stages.last().is_some_and(|stage| stage.level >= level) {
            self.stages.pop();
        }
        self.full = NEVER;
        self.stages
            .last()
            .map_or((self.capacity, self.total), |stage| (stage.free, self.total - stage.fixed))
    }

    /// Adds the flows that have a rate: `free` is the capacity that they leave, `rising` the shares of others.
    #[inline]
    pub(super) fn add_stage(&mut self, level: u64, free: f64, rising: u64) {
        self.stages.push(Stage { level, fixed: self.total - rising, free });
    }

    /// Removes the share of a flow with a rate.
    fn forget(&mut self, level: u64, share: u64) {
        self.total -= share;
        let Some(at) = self.stages.iter().rposition(|stage| stage.level == level) else { return };
        let (mut fixed, mut free) = match at.checked_sub(1) {
            Some(before) => (self.stages[before].fixed, self.stages[before].free),
            None => (0, self.capacity),
        };
        for stage in &mut self.stages[at..] {
            stage.fixed -= share;
            free = left_by(free, f64::from_bits(stage.level), stage.fixed - fixed);
            (fixed, stage.free) = (stage.fixed, free);
        }
        let before = at.checked_sub(1).map_or(0, |before| self.stages[before].fixed);
        if self.stages[at].fixed == before {
            self.stages.remove(at);
        }
    }

    /// Marks the resource to be solved again.
    #[inline]
    fn mark(&mut self, link: u32, dirty: &mut Vec<u32>) {
        if !std::mem::replace(&mut self.dirty, true) {
            dirty.push(link);
        }
    }
}

/// The capacity that a flow takes per unit of its rate in charged bytes, rounded up.
pub(super) fn surcharged(part: u32, bytes: Bytes, charged: Bytes) -> u32 {
    if bytes == charged {
        return part;
    }
    let share = (u128::from(part) * u128::from(bytes.0)).div_ceil(u128::from(charged.0.max(1)));
    u32::try_from(share).unwrap_or(u32::MAX)
}

fn index(place: usize) -> u32 {
    u32::try_from(place).expect("fewer than 2^32 flows are active")
}
