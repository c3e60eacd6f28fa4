//! What flows share: links, then injection ports, then ejection ports, and which flows use them.

use super::route::{Crossing, FlowRouting};
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

/// A resource of a flow, and the place of the flow among those of the resource.
#[derive(Clone, Copy)]
pub(super) struct Used {
    pub(super) resource: u32,
    /// The capacity that the flow takes per unit of its rate, in units of 1 / [`ALL`].
    pub(super) share: u32,
    /// The share of its bytes.
    part: u32,
    position: u32,
}

/// A link, a bundle of links, or a port.
pub(super) struct Resource {
    /// Bytes per picosecond; infinite if bytes take no time.
    pub(super) capacity: f64,
    pub(super) per_byte: TimePerByte,
    pub(super) members: Vec<Member>,
    /// Whether it limits a flow that shares it, as of the last solution.
    pub(super) limits: bool,
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

impl Resource {
    fn new(per_byte: TimePerByte) -> Resource {
        Resource {
            capacity: rate_of(per_byte),
            per_byte,
            members: Vec::new(),
            limits: false,
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
    /// By flow.
    used: Vec<Vec<Used>>,
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
        Resources { all, links, used: Vec::new(), ports, charges_all, dirty: Vec::new() }
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

    /// The resources of a flow.
    #[inline]
    pub(super) fn of(&self, flow: u32) -> &[Used] {
        &self.used[flow as usize]
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
        let places = self.used.len().max(flow as usize + 1);
        self.used.resize_with(places, Vec::new);
        let used = &mut self.used[flow as usize];
        used.clear();
        let mut shares = false;
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
            used.push(Used { resource: link, share, part, position });
        }
        shares
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
        for place in 0..self.used[flow as usize].len() {
            let Used { resource: link, part: share, position, .. } =
                self.used[flow as usize][place];
            let resource = &mut self.all[link as usize];
            resource.usage.packets += 1;
            resource.usage.bytes += Crossing { link, share }.bytes(bytes).0;
            resource.members.swap_remove(position as usize);
            if let Some(moved) = resource.members.get(position as usize) {
                self.used[moved.flow as usize][moved.place as usize].position = position;
            }
            if resource.members.is_empty() {
                resource.usage.busy += now - resource.busy_since;
            } else if resource.limits {
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
        let rate = |used: &Used| {
            // An endpoint takes no time for bytes that it does not charge, but other flows wait for them.
            let share = if self.is_endpoint(used.resource) { used.part } else { used.share };
            self.all[used.resource as usize].capacity / (f64::from(share) / f64::from(ALL))
        };
        self.of(flow).iter().map(rate).fold(f64::INFINITY, f64::min)
    }

    /// Whether a resource is a port with the rate of its endpoint.
    fn is_endpoint(&self, resource: u32) -> bool {
        let [_, ejection] = self.ports;
        let side = usize::from(ejection.is_some_and(|first| resource >= first));
        resource as usize >= self.links && !self.charges_all[side]
    }

    /// Takes the resources to solve again, in the order in which they were marked.
    pub(super) fn take_dirty(&mut self, into: &mut Vec<u32>) {
        into.append(&mut self.dirty);
        for &link in into.iter() {
            self.all[link as usize].dirty = false;
        }
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
