//! What flows share: links, then injection ports, then ejection ports, and which flows use them.

use super::resource::{ENDED, FRESH, Member, NEVER, NONE, Resource};
use super::route::{Crossing, FlowRouting};
use super::used::{Kept, Used, UsedResources};
use super::{ALL, FlowLevel};
use crate::packet::LinkUse;
use tutti_topology::Topology;
use tutti_units::ids::{LinkId, RankId};
use tutti_units::{Bytes, Time, TimePerByte};

/// All resources of a network.
pub(super) struct Resources {
    pub(super) all: Vec<Resource>,
    /// The number of links.
    links: usize,
    /// The resources of each flow.
    pub(super) used: UsedResources,
    /// The resources with flows that are solved, and how many flows there are.
    pub(super) active: Vec<u32>,
    pub(super) active_flows: usize,
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
            active: Vec::new(),
            active_flows: 0,
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
    /// bytes take capacity, although it ends when the charged ones are through. `is_path` is whether the route
    /// visits each resource once.
    pub(super) fn join(
        &mut self,
        flow: u32,
        route: &[Crossing],
        is_path: bool,
        (bytes, charged): (Bytes, Bytes),
        now: Time,
    ) -> bool {
        let takes_time = |crossing: &&Crossing| self.per_byte(crossing.link) != TimePerByte::ZERO;
        let last = route.iter().rev().find(takes_time).copied().filter(|_| is_path);
        for &crossing in route {
            self.place_within(crossing, route, last);
        }
        let (mut shares, mut solved) = (false, 0);
        let (mut used, mut kept) = self.used.take();
        for are_solved in [true, false] {
            for &Crossing { link, share: part } in route {
                let resource = &mut self.all[link as usize];
                let is_solved = resource.within == NONE;
                if resource.per_byte == TimePerByte::ZERO || is_solved != are_solved {
                    continue;
                }
                if resource.members.is_empty() {
                    resource.busy_since = now;
                    if is_solved {
                        resource.place = index(self.active.len());
                        self.active.push(link);
                    }
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
            if are_solved {
                solved = used.len();
            }
        }
        self.used.put(flow, used, kept, solved);
        shares
    }

    /// Determines whether a resource that a flow is about to use lies within another.
    ///
    /// The last resource of a path contains the others that only its flows use, such as the links of a tree
    /// down to a host. A resource that lies within one of no more capacity is full at the same level as that,
    /// with the same flows, or at none. One that is to be solved again stays solved.
    fn place_within(&mut self, crossing: Crossing, route: &[Crossing], last: Option<Crossing>) {
        let Resource { capacity, within, dirty, ref members, .. } =
            self.all[crossing.link as usize];
        let contains = |other: &Crossing| other.share == crossing.share;
        if members.is_empty() {
            let fits = |other: &Crossing| {
                !dirty
                    && other.link != crossing.link
                    && contains(other)
                    && self.all[other.link as usize].capacity <= capacity
            };
            let within = last.filter(fits).map_or(NONE, |other| other.link);
            let resource = &mut self.all[crossing.link as usize];
            (resource.within, resource.full) = (within, NEVER);
        } else if within != NONE {
            let uses_it = route.iter().rev().any(|other| other.link == within && contains(other));
            if last.is_none() || !uses_it {
                self.separate(crossing.link);
            }
        }
    }

    /// Solves a resource that lay within another from now on.
    fn separate(&mut self, link: u32) {
        let mut members = std::mem::take(&mut self.all[link as usize].members);
        let mut levels = Vec::with_capacity(members.len());
        for Member { flow, place } in &mut members {
            let new = self.used.solve(*flow, *place);
            if new != *place {
                let other = self.used.all(*flow)[*place as usize].resource;
                let Kept { position, .. } = self.used.kept(*flow)[*place as usize];
                self.all[other as usize].members[position as usize].place = *place;
                *place = new;
            }
            let share = self.used.all(*flow)[new as usize].share;
            levels.push((self.levels[*flow as usize], u64::from(share)));
        }
        levels.retain(|&(level, _)| level != FRESH);
        let resource = &mut self.all[link as usize];
        resource.set_stages(&mut levels);
        (resource.members, resource.within) = (members, NONE);
        resource.place = index(self.active.len());
        self.active.push(link);
        resource.mark(link, &mut self.dirty);
    }

    /// Sets the rate without other flows of a flow that has joined; `shares` is whether it has others.
    pub(super) fn set_alone(&mut self, flow: u32, rate: f64, shares: bool) {
        let places = self.levels.len().max(flow as usize + 1);
        self.levels.resize(places, ENDED);
        self.alone.resize(places, FRESH);
        self.active_flows += 1;
        let level = rate.to_bits();
        self.alone[flow as usize] = level;
        self.levels[flow as usize] = if shares { FRESH } else { level };
        if shares {
            return self.fresh.push(flow);
        }
        for &Used { resource, share } in self.used.of(flow) {
            let resource = &mut self.all[resource as usize];
            resource.set_stages(&mut [(level, share.into())]);
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
        let level = std::mem::replace(&mut self.levels[flow as usize], ENDED);
        self.active_flows -= 1;
        for place in 0..self.used.all(flow).len() {
            let Used { resource: link, share: taken } = self.used.all(flow)[place];
            let Kept { part: share, position } = self.used.kept(flow)[place];
            let resource = &mut self.all[link as usize];
            resource.usage.packets += 1;
            resource.usage.bytes += Crossing { link, share }.bytes(bytes).0;
            resource.members.swap_remove(position as usize);
            if let Some(moved) = resource.members.get(position as usize) {
                self.used.kept_mut(moved.flow)[moved.place as usize].position = position;
            }
            resource.forget(level, taken.into());
            if resource.full != NEVER && !resource.members.is_empty() {
                resource.mark(link, &mut self.dirty);
            }
            if resource.members.is_empty() {
                self.release_resource(link, now);
            }
        }
    }

    /// Accounts for a resource whose last flow has left.
    fn release_resource(&mut self, link: u32, now: Time) {
        let Resource { within, place, busy_since, .. } = self.all[link as usize];
        self.all[link as usize].usage.busy += now - busy_since;
        if within == NONE {
            self.active.swap_remove(place as usize);
            if let Some(&moved) = self.active.get(place as usize) {
                self.all[moved as usize].place = place;
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
        let all = self.used.all(flow).iter().zip(self.used.kept(flow));
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

    /// Whether a pass over the rates of all flows takes little time for each that has not ended.
    pub(super) fn are_dense(&self) -> bool {
        8 * self.active_flows >= self.levels.len()
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
