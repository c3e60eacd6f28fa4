//! Legs through a dragonfly: groups of routers, with global channels between every two groups.

use super::legs::{Legs, SECOND, any};
use super::{Candidate, Routing, RoutingContext};
use crate::packet::Head;
use crate::settings::VcRange;
use crate::{End, Wiring};
use tutti_topology::Dragonfly;

/// A channel from one group to another.
#[derive(Clone, Copy, Debug)]
struct Global {
    near: u32,
    port: u32,
    far: u32,
}

/// The groups, and the paths in and between them.
///
/// Of several channels to a group a packet takes one with the fewest hops, selected by the number
/// of its destination. Within a group it uses dimension order, over one hop where every two routers
/// are joined.
#[derive(Clone, Debug)]
struct Groups {
    /// Per router, its group and its number there.
    places: Vec<(u32, u32)>,
    /// Routers along each dimension of a group.
    sizes: Vec<u32>,
    count: u32,
    /// Per router and number in its group, the ports towards it.
    local: Vec<Vec<u32>>,
    /// By group and other group.
    global: Vec<Vec<Global>>,
    homes: Vec<(u32, u32)>,
}

impl Groups {
    /// The routers of a wiring that was built from a dragonfly. `None` when they are not its
    /// switches.
    fn of(wiring: &Wiring, family: &Dragonfly) -> Option<Groups> {
        let count = family.groups();
        let per_group = u32::try_from(family.switches_per_group()).ok()?;
        if u64::from(wiring.routers()) != u64::from(count) * u64::from(per_group) {
            return None;
        }
        let place = |router| {
            let vertex = wiring.vertex(router)?;
            let group = family.group_of(vertex);
            Some((group, vertex.0.checked_sub(family.switch(group, 0).0)?))
        };
        let mut groups = Groups {
            places: (0..wiring.routers()).map(place).collect::<Option<_>>()?,
            sizes: family.sizes().to_vec(),
            count,
            local: vec![Vec::new(); (wiring.routers() * per_group) as usize],
            global: vec![Vec::new(); (count * count) as usize],
            homes: (0..wiring.nodes()).map(|node| wiring.home(node)).collect(),
        };
        for channel in wiring.channels() {
            if let (End::Router { router, port }, End::Router { router: to, .. }) =
                (channel.from, channel.to)
            {
                groups.enter(router, port, to);
            }
        }
        groups.spread(per_group);
        Some(groups)
    }

    /// Adds a channel; local ones by their destination.
    fn enter(&mut self, router: u32, port: u32, to: u32) {
        let ((group, _), (other, number)) = (self.place(router), self.place(to));
        if group == other {
            let index = self.local_index(router, number);
            self.local[index].push(port);
        } else {
            let index = (group * self.count + other) as usize;
            self.global[index].push(Global { near: router, port, far: to });
        }
    }

    /// Fills in ports towards routers of the group that are not adjacent: those of the next router
    /// in dimension order.
    fn spread(&mut self, per_group: u32) {
        let direct = self.local.clone();
        for router in 0..self.places.len() {
            let router = u32::try_from(router).unwrap_or(u32::MAX);
            for number in 0..per_group {
                let next = self.towards(self.place(router).1, number);
                let index = self.local_index(router, number);
                let next = self.local_index(router, next);
                self.local[index].clone_from(&direct[next]);
            }
        }
    }

    fn place(&self, router: u32) -> (u32, u32) {
        self.places[router as usize]
    }

    fn local_index(&self, router: u32, number: u32) -> usize {
        let per_group: u32 = self.sizes.iter().product();
        router as usize * per_group as usize + number as usize
    }

    /// The router of a group after another in dimension order.
    fn towards(&self, from: u32, to: u32) -> u32 {
        let mut stride = 1;
        for &size in &self.sizes {
            let (here, there) = (from / stride % size, to / stride % size);
            if here != there {
                return from - stride * here + stride * there;
            }
            stride *= size;
        }
        to
    }

    /// Hops between two routers of a group.
    fn within(&self, from: u32, to: u32) -> u32 {
        let (mut at, to, mut hops) = (self.place(from).1, self.place(to).1, 0);
        while at != to {
            at = self.towards(at, to);
            hops += 1;
        }
        hops
    }

    /// The port towards a router of the same group, for a packet to a node.
    fn inside(&self, router: u32, to: u32, node: u32) -> u32 {
        let cables = &self.local[self.local_index(router, self.place(to).1)];
        cables[node as usize % cables.len()]
    }

    /// The channel to the group of a node, on the shortest path to its router, or, if it is to be
    /// `entered` only, to the group.
    fn leaving(&self, router: u32, node: u32, entered: bool) -> Global {
        let to = self.homes[node as usize].0;
        let hops = |global: &Global| {
            let (near, beyond) = (self.within(router, global.near), self.within(global.far, to));
            (if entered { near } else { near + beyond }, near)
        };
        let (group, other) = (self.place(router).0, self.place(to).0);
        let all = &self.global[(group * self.count + other) as usize];
        let least = all.iter().map(hops).min();
        let best = || all.iter().filter(|global| Some(hops(global)) == least);
        let turn = node as usize % best().count().max(1);
        *best().nth(turn).expect("every two groups are joined")
    }

    /// The port towards a node's router or, `entered`, its group, and whether that is over a global
    /// channel; `None` when there.
    fn next(&self, router: u32, node: u32, entered: bool) -> Option<(u32, bool)> {
        let to = self.homes[node as usize].0;
        if self.place(router).0 == self.place(to).0 {
            return (router != to && !entered).then(|| (self.inside(router, to, node), false));
        }
        let Global { near, port, .. } = self.leaving(router, node, entered);
        if near == router {
            return Some((port, true));
        }
        Some((self.inside(router, near, node), false))
    }

    /// Whether a node is in another group than a router.
    fn is_beyond(&self, router: u32, node: u32) -> bool {
        self.place(router).0 != self.place(self.homes[node as usize].0).0
    }

    /// Hops to a node's router.
    fn straight(&self, from: u32, node: u32) -> u32 {
        let to = self.homes[node as usize].0;
        if !self.is_beyond(from, node) {
            return self.within(from, to);
        }
        let Global { near, far, .. } = self.leaving(from, node, false);
        self.within(from, near) + 1 + self.within(far, to)
    }
}

/// First to the group of another node, then to the destination, each over at most one global
/// channel.
///
/// A third of the VCs is for the first leg, one for the second up to its global channel, and one
/// from there on (Kim, Dally, Scott and Abts, "Technology-driven, highly-scalable dragonfly
/// topology", ISCA 2008).
#[derive(Clone, Debug)]
pub struct GroupLegs {
    groups: Groups,
}

impl GroupLegs {
    /// On a dragonfly. `None` when the wiring was not built from one.
    #[must_use]
    pub fn new(wiring: &Wiring, family: &Dragonfly) -> Option<GroupLegs> {
        Some(GroupLegs { groups: Groups::of(wiring, family)? })
    }
}

impl Legs for GroupLegs {
    fn home(&self, node: u32) -> (u32, u32) {
        self.groups.homes[node as usize]
    }

    /// In the group of the intermediate node, or in that of the destination.
    fn is_over(&self, router: u32, head: &Head) -> bool {
        [head.intermediate, head.destination]
            .iter()
            .any(|&node| !self.groups.is_beyond(router, node))
    }

    fn next(&self, place: &RoutingContext<'_>, head: &mut Head, _: bool) -> Option<(u32, VcRange)> {
        if head.phase & SECOND == 0 {
            let (port, _) = self.groups.next(place.router, head.intermediate, true)?;
            return Some((port, place.vcs.part(0, 3)));
        }
        let (port, global) = self.groups.next(place.router, head.destination, false)?;
        let before = !global && self.groups.is_beyond(place.router, head.destination);
        Some((port, place.vcs.part(if before { 1 } else { 2 }, 3)))
    }

    fn via(&self, place: &RoutingContext<'_>, head: &Head) -> u32 {
        any(place, head, u32::try_from(self.groups.homes.len()).unwrap_or(u32::MAX))
    }

    fn straight(&self, from: u32, to: u32) -> u32 {
        self.groups.straight(from, to)
    }

    fn detour(&self, from: u32, via: u32, to: u32) -> u32 {
        let Global { near, far, .. } = self.groups.leaving(from, via, true);
        self.groups.within(from, near) + 1 + self.groups.straight(far, to)
    }

    fn least_vcs(&self) -> u32 {
        3
    }
}

/// The shortest path: over at most one global channel, on half of the VCs before it, on the others
/// from there on.
#[derive(Clone, Debug)]
pub struct Minimal {
    groups: Groups,
    /// On the first VC up to the global channel and within a group, and on the second from there
    /// on, as in BookSim 2; other VCs are for injection only.
    one_vc: bool,
}

impl Minimal {
    /// On a dragonfly. `None` when the wiring was not built from one.
    #[must_use]
    pub fn new(wiring: &Wiring, family: &Dragonfly, one_vc: bool) -> Option<Minimal> {
        Some(Minimal { groups: Groups::of(wiring, family)?, one_vc })
    }

    /// Routes on one VC for each phase; ejection is on that of the last channel.
    fn route_on_one_vc(&self, place: &RoutingContext<'_>, head: &mut Head) -> Candidate {
        let next = self.groups.next(place.router, head.destination, false);
        if place.injected {
            head.phase = 0;
        }
        if let Some((_, true)) = next {
            head.phase = 1;
        }
        let port = next.map_or(self.groups.homes[head.destination as usize].1, |(port, _)| port);
        let vc = place.vcs.first + u32::from(head.phase);
        Candidate { port, vcs: VcRange { first: vc, last: vc }, priority: 0 }
    }
}

impl Routing for Minimal {
    fn name(&self) -> &'static str {
        "minimal"
    }

    fn route(&self, place: &RoutingContext<'_>, head: &mut Head, candidates: &mut Vec<Candidate>) {
        if self.one_vc {
            candidates.push(self.route_on_one_vc(place, head));
            return;
        }
        let candidate = match self.groups.next(place.router, head.destination, false) {
            Some((port, global)) => {
                let before = !global && self.groups.is_beyond(place.router, head.destination);
                Candidate { port, vcs: place.vcs.half(!before), priority: 0 }
            }
            None => {
                let port = self.groups.homes[head.destination as usize].1;
                Candidate { port, vcs: place.vcs, priority: 0 }
            }
        };
        candidates.push(candidate);
    }

    fn least_vcs(&self) -> u32 {
        2
    }
}
